//! The habits that keep the house in order, checked: which crate may know which, how long files and functions are, what
//! every module starts with, and that the documents name what exists.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used, clippy::panic)]

mod crate_graph;
mod documents;
mod migration_steps;
mod public_types;
mod rust_source;
mod sizes;

use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the package lies in the workspace")
}

/// All files below `folders` of the workspace whose names end with one of `endings`, with their text.
fn files(folders: &[&str], endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry of the folder").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() && name != "target" && name != "__pycache__" {
                open.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let text = std::fs::read_to_string(&path).expect("a file of UTF-8");
                found.push((path, text));
            }
        }
    }
    assert!(
        !found.is_empty(),
        "no files in {folders:?}: is the test looking in the right place?"
    );
    found.sort();
    found
}

/// A path as a reader of the report would type it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Fails with all findings at once.
fn none(findings: &[String], rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
