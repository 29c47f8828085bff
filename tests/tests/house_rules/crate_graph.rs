//! Which crate knows which. Arrows point downwards only; a new edge is a change of design, made here first.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::{none, root};

/// The crates of the workspace that each crate may depend on.
const MAY_KNOW: [(&str, &[&str]); 12] = [
    ("moraine-keys", &[]),
    ("moraine-codec", &["moraine-keys"]),
    ("moraine-store", &["moraine-keys", "moraine-codec"]),
    (
        "moraine-inline",
        &["moraine-keys", "moraine-codec", "moraine-store"],
    ),
    (
        "moraine-commit",
        &["moraine-keys", "moraine-codec", "moraine-store", "moraine-inline"],
    ),
    (
        "moraine-tables",
        &[
            "moraine-keys",
            "moraine-codec",
            "moraine-store",
            "moraine-inline",
            "moraine-commit",
        ],
    ),
    (
        "moraine-migrate",
        &[
            "moraine-keys",
            "moraine-codec",
            "moraine-store",
            "moraine-inline",
            "moraine-commit",
            "moraine-tables",
        ],
    ),
    ("moraine-sql", &["moraine-commit", "moraine-tables"]),
    (
        "moraine-server",
        &["moraine-store", "moraine-commit", "moraine-tables", "moraine-sql"],
    ),
    (
        "moraine-cli",
        &[
            "moraine-keys",
            "moraine-codec",
            "moraine-store",
            "moraine-inline",
            "moraine-commit",
            "moraine-migrate",
            "moraine-server",
        ],
    ),
    ("xtask", &["moraine-keys", "moraine-codec", "moraine-inline"]),
    ("moraine-tests", &[]),
];

/// Crates of others that a crate must not come to know, itself, however useful.
const MUST_NOT_KNOW: [(&str, &[&str]); 9] = [
    (
        "moraine-keys",
        &[
            "slatedb",
            "object_store",
            "prost",
            "tokio",
            "arrow-array",
            "pgwire",
            "sqlparser",
        ],
    ),
    (
        "moraine-codec",
        &[
            "slatedb",
            "object_store",
            "tokio",
            "arrow-array",
            "pgwire",
            "sqlparser",
        ],
    ),
    ("moraine-store", &["arrow-array", "pgwire", "sqlparser"]),
    (
        "moraine-inline",
        &["slatedb", "object_store", "pgwire", "sqlparser"],
    ),
    (
        "moraine-commit",
        &["slatedb", "object_store", "pgwire", "sqlparser"],
    ),
    (
        "moraine-tables",
        &["slatedb", "object_store", "pgwire", "sqlparser"],
    ),
    ("moraine-migrate", &["slatedb", "pgwire"]),
    (
        "moraine-sql",
        &[
            "slatedb",
            "object_store",
            "storekey",
            "prost",
            "pgwire",
            "postgres-types",
        ],
    ),
    (
        "moraine-server",
        &["slatedb", "object_store", "storekey", "prost", "datafusion"],
    ),
];

/// What each package of the workspace depends on, tests and benchmarks aside.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let package = |package: cargo_metadata::Package| {
        let shipped = package
            .dependencies
            .into_iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| dependency.name.to_string())
            .collect();
        (package.name.to_string(), shipped)
    };
    metadata.packages.into_iter().map(package).collect()
}

#[test]
fn crates_know_only_what_lies_below_them() {
    let mut findings = Vec::new();
    for (package, known) in dependencies() {
        let Some((_, allowed)) = MAY_KNOW.iter().find(|(name, _)| *name == package) else {
            findings.push(format!("{package} has no line in MAY_KNOW"));
            continue;
        };
        let ours = known.iter().filter(|name| name.starts_with("moraine-"));
        for name in ours.filter(|name| !allowed.contains(&name.as_str())) {
            findings.push(format!("{package} must not depend on {name}"));
        }
    }
    none(&findings, "the crate graph");
}

#[test]
fn crates_do_not_come_to_know_what_is_not_theirs() {
    let known = dependencies();
    let mut findings = Vec::new();
    for (package, forbidden) in MUST_NOT_KNOW {
        let known = known.get(package).expect("a package of the workspace");
        for name in forbidden.iter().filter(|name| known.contains(**name)) {
            findings.push(format!("{package} must not depend on {name}"));
        }
    }
    none(&findings, "what crates must not know");
}
