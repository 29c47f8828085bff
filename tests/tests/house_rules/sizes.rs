//! Files and functions stay short enough to be read in one go, and every module says what it is.

use crate::rust_source::{functions, without_text};
use crate::{files, none, shown};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

const RUST: &[&str] = &["crates", "xtask", "tests"];

#[test]
fn files_are_short() {
    let mut findings = Vec::new();
    for (path, text) in files(RUST, &[".rs", ".py"]) {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            findings.push(format!("{} has {lines} lines", shown(&path)));
        }
    }
    none(
        &findings,
        &format!("files of more than {FILE_LINES_MAX} lines; split by noun"),
    );
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for (path, text) in files(RUST, &[".rs"]) {
        for function in functions(&text) {
            if function.lines > FUNCTION_LINES_MAX {
                let place = format!("{}:{}", shown(&path), function.line);
                findings.push(format!("{place} {} has {} lines", function.name, function.lines));
            }
        }
    }
    none(
        &findings,
        &format!("functions of more than {FUNCTION_LINES_MAX} lines"),
    );
}

#[test]
fn modules_say_what_they_are() {
    let mut findings = Vec::new();
    for (path, text) in files(RUST, &[".rs"]) {
        let path = shown(&path);
        if path.contains("/src/") && !text.starts_with("//!") {
            findings.push(path);
        }
    }
    none(&findings, "files that do not start with a //! paragraph");
}

#[test]
fn nothing_is_left_for_later() {
    // Put together so that this file does not find itself.
    let words = [["TO", "DO"], ["FIX", "ME"], ["X", "XX"], ["for ", "now"]].map(|word| word.concat());
    // A test that is only run as a child of another one is no skipped test.
    let (ignored, child) = (["#[ig", "nore"].concat(), "= \"a child process of ");
    let mut findings = Vec::new();
    for (path, text) in files(RUST, &[".rs", ".py", ".proto"]) {
        for (number, line) in text.lines().enumerate() {
            let comment = line
                .split_once("//")
                .or_else(|| line.split_once('#'))
                .map_or("", |(_, after)| after);
            let skipped = line.trim_start().starts_with(&ignored) && !line.contains(child);
            if skipped || words.iter().any(|word| comment.contains(word)) {
                findings.push(format!("{}:{} {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    none(&findings, "marks of unfinished work, and tests that do not run");
}

#[test]
fn unsafe_code_is_nowhere() {
    let mut findings = Vec::new();
    for (path, text) in files(RUST, &[".rs"]) {
        let code = without_text(&text);
        for (number, line) in code.lines().enumerate() {
            if line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == "unsafe")
            {
                findings.push(format!("{}:{}", shown(&path), number + 1));
            }
        }
    }
    none(&findings, "unsafe code");
}
