//! The documents name what exists: files, tests and sessions. (Commands are checked where they are defined.) A document
//! that lies is worse than none.

use std::path::Path;

use crate::{files, none, root};

const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Folders in which a `name` without a path is looked for.
const SOURCES: &[&str] = &["crates", "xtask", "tests"];
/// Endings by which a quoted text is known to be a file.
const FILE_ENDINGS: [&str; 7] = [".rs", ".py", ".md", ".toml", ".proto", ".txt", ".sh"];

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What stands between backticks outside fenced blocks.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// The path within the workspace that a quoted text names, if it names one.
fn path_of(quoted: &str) -> Option<&str> {
    let path = quoted.split("::").next().unwrap_or(quoted);
    let plain = path
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let starts = ["crates/", "tests/", "xtask/", ".ci/", ".cargo/"]
        .iter()
        .any(|start| path.starts_with(start));
    let is_file = FILE_ENDINGS.iter().any(|ending| path.ends_with(ending));
    (plain && (starts || is_file)).then_some(path)
}

#[test]
fn files_that_documents_name_exist() {
    let mut findings = Vec::new();
    for name in DOCUMENTS {
        for quoted in quoted(&document(name)) {
            let Some(path) = path_of(&quoted) else { continue };
            if !root().join(path).exists() {
                findings.push(format!("{name} names {path}"));
            }
        }
    }
    none(&findings, "files that do not exist");
}

/// An invariant names its test as `path/of/file.rs::name_of_the_test`, or `path/of/sessions.py::name_of_the_session`.
#[test]
fn tests_that_documents_name_exist() {
    let mut findings = Vec::new();
    for name in DOCUMENTS {
        for quoted in quoted(&document(name)) {
            let Some((path, test)) = quoted.split_once("::") else {
                continue;
            };
            if path_of(path).is_none() {
                continue;
            }
            let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            let test = test.rsplit("::").next().unwrap_or(test);
            let defined = [
                format!("fn {test}("),
                format!("def {test}("),
                format!("\"{test}\""),
            ];
            if !defined.iter().any(|definition| text.contains(definition)) {
                findings.push(format!("{name} names {quoted}"));
            }
        }
    }
    none(&findings, "tests that do not exist");
}

#[test]
fn every_invariant_names_its_test() {
    let text = document("ARCHITECTURE.md");
    let (_, rest) = text
        .split_once("\n## Invariants\n")
        .expect("a section of invariants");
    let section = rest.split("\n## ").next().unwrap_or(rest);
    let items: Vec<&str> = section.split("\n- ").skip(1).collect();
    assert!(items.len() >= 10, "{} invariants", items.len());
    let untested: Vec<String> = items
        .iter()
        .filter(|item| {
            !quoted(item)
                .iter()
                .any(|text| text.contains("::") && path_of(text).is_some())
        })
        .map(|item| item.lines().next().unwrap_or_default().to_owned())
        .collect();
    none(&untested, "invariants without a test");
}

#[test]
fn the_code_map_is_complete() {
    let text = document("ARCHITECTURE.md");
    let mut missing = Vec::new();
    for folder in ["crates", "."] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder of the workspace") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.join("Cargo.toml").exists() && !text.contains(&format!("`{name}`")) {
                missing.push(name);
            }
        }
    }
    none(&missing, "packages that the code map leaves out");
}

#[test]
fn licences_are_there_in_full() {
    assert!(document("LICENSE-MIT").contains("moraine contributors"));
    assert!(document("LICENSE-APACHE").contains("END OF TERMS AND CONDITIONS"));
}

#[test]
fn documents_of_crates_exist() {
    let manifests = files(SOURCES, &["Cargo.toml"]);
    let undescribed: Vec<String> = manifests
        .iter()
        .filter(|(_, text)| !text.contains("\ndescription = "))
        .map(|(path, _)| crate::shown(Path::new(path)))
        .collect();
    none(&undescribed, "packages without a description");
}
