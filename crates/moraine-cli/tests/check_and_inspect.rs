//! `moraine check` and `moraine inspect` on a lake of known contents, sound and damaged, while somebody has it open.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use moraine_commit::{Catalog, CatalogOptions};
use moraine_keys::{Kind, NameKey};
use moraine_store::{Bytes, OpenOptions, StoreUrl};
use serde_json::Value;

/// A fresh lake below a root, open for writing.
async fn lake(root: &Path, schema: &str) -> Arc<Catalog> {
    let url: StoreUrl = root.display().to_string().parse().expect("a path is a URL");
    let place = url.join("catalog").join("lake").join(schema);
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let catalog = Catalog::open(&place, &options).await.expect("a new store");
    catalog.create(Some("data/"), false).await.expect("a new lake");
    catalog
}

/// Writes below the catalog, as damage would.
async fn write(catalog: &Catalog, key: Bytes, value: Option<Bytes>) {
    let mut transaction = catalog.store().begin().expect("a transaction");
    match value {
        Some(value) => transaction.put(key, value).expect("a write"),
        None => transaction.delete(key).expect("a deletion"),
    }
    let pending = transaction.commit().await.expect("a commit");
    pending.durable().await.expect("the owner still owns the store");
}

fn moraine(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moraine"))
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the command prints, one JSON object a line.
fn objects(arguments: &[&str]) -> Vec<Value> {
    let output = moraine(arguments);
    let text = printed(&output);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_lake_is_said_to_be_sound_while_it_is_open() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path(), "public").await;
    let path = root.path().display().to_string();
    let output = moraine(&["check", &path]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("invariants hold"), "{text}");
    catalog.close().await.expect("the owner has not been disturbed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_is_named_with_its_key_and_its_repair_and_ends_with_a_code() {
    let root = tempfile::tempdir().expect("a folder");
    let first = lake(root.path(), "first").await;
    let second = lake(root.path(), "second").await;
    write(&first, NameKey::schema("main", 0).encode(), None).await;
    let path = root.path().display().to_string();
    let output = moraine(&["check", &path]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for words in [
        "violation names-complete: current/schema{schema_id=0}",
        "repair: ",
        "1 of",
        "catalog/lake/second: ",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let found = objects(&["check", &path, "--json"]);
    assert_eq!(found[0]["key"], "current/schema{schema_id=0}");
    assert_eq!(found[1]["sound"], false);
    assert_eq!(found[1]["findings"]["names-complete"], 1);
    assert_eq!(found[2]["sound"], true);
    for catalog in [first, second] {
        catalog.close().await.expect("a clean end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_are_told_and_end_well() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path(), "public").await;
    let entry = moraine_keys::MultiIndexKey {
        index_id: 3,
        ..moraine_keys::MultiIndexKey::default()
    };
    for row_id in 0..5 {
        let entry = moraine_keys::MultiIndexKey {
            row_id,
            ..entry.clone()
        };
        write(&catalog, entry.encode(), Some(Bytes::new())).await;
    }
    let path = root.path().display().to_string();
    let output = moraine(&["check", &path, "--limit", "2"]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(
        text.matches("leftover index-entries-of-indexes").count(),
        2,
        "{text}"
    );
    assert!(text.contains("5 leftovers"), "{text}");
    catalog.close().await.expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_shown_decoded() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path(), "public").await;
    let path = root.path().display().to_string();
    let shown = objects(&["inspect", &path, "current/schema", "--json"]);
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["key"], "current/schema{schema_id=0}");
    assert_eq!(shown[0]["value"]["schema_name"], "main");
    assert_eq!(shown[0].get("key_hex"), None);
    let table = printed(&moraine(&["inspect", &path, "snapshot{snapshot_id=0}"]));
    for words in ["snapshot{snapshot_id=0}", "changes_made", "created_schema"] {
        assert!(table.contains(words), "no {words:?} in\n{table}");
    }
    let with_bytes = objects(&["inspect", &path, "0x0202", "--json", "--hex"]);
    assert_eq!(with_bytes[0]["key_hex"], "0202");
    assert_eq!(with_bytes[0]["value"]["format_version"], 12);
    let options = objects(&["inspect", &path, "current/option{scope_kind=0}", "--json"]);
    assert_eq!(options[0]["value"]["options"]["data_path"], "data/");
    catalog.close().await.expect("the owner has not been disturbed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_goes_from_key_to_key() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path(), "public").await;
    let path = root.path().display().to_string();
    let all = objects(&["inspect", &path, "--json"]);
    let some = objects(&["inspect", &path, "system", "--to", "snapshot", "--json"]);
    let keys: Vec<&Value> = some.iter().map(|record| &record["key"]).collect();
    assert_eq!(keys, ["system/format", "system/head", "snapshot{snapshot_id=0}"]);
    assert!(all.len() > some.len());
    assert_eq!(objects(&["inspect", &path, "--json", "--limit", "1"]).len(), 1);
    let output = moraine(&["inspect", &path, "snapshot", "--to", "system"]);
    assert_eq!(output.status.code(), Some(1));
    let output = moraine(&["inspect", &path, "tables"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("current/table"));
    catalog.close().await.expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_records_are_shown_as_such() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path(), "public").await;
    let key = moraine_keys::TableKey { table_id: 9 }.encode();
    write(&catalog, key, Some(Bytes::from_static(b"MRNE\0\xff"))).await;
    write(
        &catalog,
        Bytes::from_static(&[0xfe, 1]),
        Some(Bytes::from_static(b"x")),
    )
    .await;
    let path = root.path().display().to_string();
    let shown = objects(&["inspect", &path, "current/table", "--json"]);
    assert!(
        shown[0]["error"]
            .as_str()
            .is_some_and(|error| error.contains("current/table")),
        "{shown:?}"
    );
    assert_eq!(shown[0]["value_hex"], "4d524e4500ff");
    let shown = objects(&["inspect", &path, "0xfe", "--json"]);
    assert_eq!(shown[0]["key"], Value::Null);
    assert_eq!(shown[0]["key_hex"], "fe01");
    catalog.close().await.expect("a clean end");
}
