//! `moraine info` on lakes of known contents, one and several, while somebody has one open.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use moraine_commit::{Catalog, CatalogOptions};
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

/// What `moraine info` prints; it must succeed.
fn info(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_moraine"))
        .arg("info")
        .args(arguments)
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lake_is_shown_in_full_while_it_is_open() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path(), "public").await;
    let path = root.path().display().to_string();
    let text = info(&[&path]);
    for words in [
        "format    12",
        "head      snapshot 0",
        "ducklake_schema",
        "ducklake_metadata",
        "subspace",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    // The owner has not been fenced: what it writes becomes durable.
    let mut transaction = catalog.store().begin().expect("a transaction");
    transaction
        .put(Bytes::from_static(&[0xff]), Bytes::new())
        .expect("a write");
    let pending = transaction.commit().await.expect("a commit");
    pending.durable().await.expect("the owner still owns the store");
    catalog.close().await.expect("the owner closes in good order");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_lakes_are_listed_and_counted() {
    let root = tempfile::tempdir().expect("a folder");
    for schema in ["first", "second"] {
        lake(root.path(), schema)
            .await
            .close()
            .await
            .expect("a clean end");
    }
    let path = root.path().display().to_string();
    let text = info(&[&path]);
    assert!(
        text.contains("catalog/lake/first") && text.contains("catalog/lake/second"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&info(&[&path, "--json"])).expect("JSON");
    let stores = json.as_array().expect("an array of stores");
    assert_eq!(stores.len(), 2);
    for store in stores {
        assert_eq!(store["format"], 12);
        assert_eq!(store["snapshot"], 0);
        assert_eq!(store["kinds"]["schema"]["live"], 1, "the schema main");
        assert_eq!(store["kinds"]["snapshot"]["live"], 1);
        assert_eq!(store["unknown_records"], 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_of_a_store_shows_that_store() {
    let root = tempfile::tempdir().expect("a folder");
    for schema in ["first", "second"] {
        lake(root.path(), schema)
            .await
            .close()
            .await
            .expect("a clean end");
    }
    let store = root.path().join("catalog/lake/second").display().to_string();
    let text = info(&[&store]);
    assert!(text.starts_with(&format!("store     {store}")), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_read_is_named_and_hides_no_other() {
    let root = tempfile::tempdir().expect("a folder");
    for schema in ["good", "bad"] {
        lake(root.path(), schema)
            .await
            .close()
            .await
            .expect("a clean end");
    }
    let manifests = root.path().join("catalog/lake/bad/manifest");
    for manifest in std::fs::read_dir(manifests).expect("the manifests") {
        std::fs::write(manifest.expect("a manifest").path(), b"not a manifest").expect("damage");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_moraine"))
        .arg("info")
        .arg(root.path())
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("catalog/lake/bad") && !said.contains("panicked"),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("catalog/lake/good"));
}
