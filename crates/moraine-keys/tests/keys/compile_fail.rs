//! What must not compile: bounds of one table for kinds that do not begin with a table id.

#[test]
fn table_bounds_exist_only_for_kinds_that_begin_with_a_table_id() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_fail/table_bounds_of_a_table_scoped_kind.rs");
    cases.compile_fail("tests/compile_fail/table_bounds_of_a_schema.rs");
    cases.compile_fail("tests/compile_fail/table_bounds_of_a_tag.rs");
    cases.compile_fail("tests/compile_fail/table_bounds_of_an_ended_schema.rs");
    cases.compile_fail("tests/compile_fail/history_of_an_unversioned_kind.rs");
}
