//! The README shows only commands that exist.

use std::process::Command;

#[test]
fn commands_that_the_readme_shows_are_understood() {
    let readme = include_str!("../../../README.md");
    let shown: Vec<&str> = readme
        .split(['`', '\n'])
        .filter_map(|text| text.strip_prefix("moraine "))
        .filter(|text| !text.contains("the catalog of"))
        .collect();
    assert!(shown.len() >= 2, "the README shows {shown:?}");
    for line in shown {
        let output = Command::new(env!("CARGO_BIN_EXE_moraine"))
            .args(line.split_whitespace())
            .arg("--help")
            .output()
            .expect("the command runs");
        assert!(output.status.success(), "moraine {line} is not understood");
    }
}
