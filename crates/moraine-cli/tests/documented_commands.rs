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
            .args(words(line))
            .arg("--help")
            .output()
            .expect("the command runs");
        assert!(output.status.success(), "moraine {line} is not understood");
    }
}

/// The words of a command line as a shell takes them: what stands in apostrophes is one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (part, text) in line.split('\'').enumerate() {
        let is_quoted = part % 2 == 1;
        let mut pieces = if is_quoted {
            vec![text]
        } else {
            text.split(' ').collect()
        }
        .into_iter();
        if let (Some(last), Some(piece)) = (words.last_mut(), pieces.next()) {
            last.push_str(piece);
        }
        words.extend(pieces.map(str::to_owned));
    }
    words.retain(|word| !word.is_empty());
    words
}
