//! What must not compile: a value under a key of another kind.

#[test]
fn a_value_of_another_kind_cannot_be_stored() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_fail/the_value_of_the_kind.rs");
    cases.compile_fail("tests/compile_fail/the_value_of_another_kind.rs");
    cases.compile_fail("tests/compile_fail/a_value_in_an_archive.rs");
}
