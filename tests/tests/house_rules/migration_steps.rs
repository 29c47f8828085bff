//! Steps of migrations stay as they are: they import nothing that may change.

use crate::{files, none, shown};

/// Where the steps are, and what they are made of.
const STEPS: &str = "crates/moraine-migrate/src/units/steps";
/// What a step may import from.
const MAY_IMPORT: [&str; 5] = [
    "use bytes::",
    "use std::collections::",
    "use crate::units::frozen::",
    "use crate::units::step::",
    "use crate::units::steps::",
];

#[test]
fn steps_import_nothing_of_the_live_format() {
    let mut findings = Vec::new();
    for (path, text) in files(&[STEPS], &[".rs"]) {
        // What a test within the file imports changes no step.
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in shipped.lines() {
            let imports =
                line.trim_start().starts_with("use ") && !MAY_IMPORT.iter().any(|from| line.contains(from));
            if imports || line.contains("moraine_") || line.contains("proto::") {
                findings.push(format!("{}: {line}", shown(&path)));
            }
        }
    }
    none(&findings, "steps that depend on what may change");
}

#[test]
fn the_helpers_of_steps_import_nothing_of_the_live_format() {
    let mut findings = Vec::new();
    for (path, text) in files(&["crates/moraine-migrate/src/units"], &["frozen.rs", "step.rs"]) {
        let live = text
            .lines()
            .filter(|line| line.contains("moraine_") || line.contains("super::plan"));
        findings.extend(live.map(|line| format!("{}: {line}", shown(&path))));
    }
    none(&findings, "helpers of steps that depend on what may change");
}
