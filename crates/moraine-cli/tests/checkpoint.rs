//! `moraine checkpoint` and `moraine flush` beside a process that has the lake open.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use moraine_commit::{Catalog, CatalogOptions};
use moraine_store::{Bytes, OpenOptions, StoreUrl};
use serde_json::Value;

/// A fresh lake below a root, open for writing.
async fn lake(root: &Path) -> Arc<Catalog> {
    let url: StoreUrl = root.display().to_string().parse().expect("a path is a URL");
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let place = url.join("catalog/lake/public");
    let catalog = Catalog::open(&place, &options).await.expect("a new store");
    catalog.create(Some("data/"), false).await.expect("a new lake");
    catalog
}

fn moraine(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moraine"))
        .args(arguments)
        .output()
        .expect("the command runs")
}

/// What a command prints; it must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = moraine(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command says when it fails; it must.
fn refused(arguments: &[&str]) -> String {
    let output = moraine(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let printed: Value = serde_json::from_str(&printed(arguments)).expect("JSON");
    printed.as_array().expect("an array").clone()
}

/// Whether what the owner writes becomes durable: nobody has fenced it.
async fn owns(catalog: &Arc<Catalog>) -> bool {
    let Ok(mut transaction) = catalog.store().begin() else {
        return false;
    };
    transaction
        .put(Bytes::from_static(&[0xff]), Bytes::new())
        .expect("a write");
    match transaction.commit().await {
        Ok(pending) => pending.durable().await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_made_listed_and_deleted_beside_an_owner() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path()).await;
    let path = root.path().display().to_string();
    assert!(printed(&["checkpoint", "list", &path]).contains("no checkpoints"));
    let made = json(&[
        "checkpoint",
        "create",
        &path,
        "--name",
        "first",
        "--lifetime",
        "7d",
        "--json",
    ]);
    assert_eq!(made[0]["name"], "first");
    assert_eq!(made[0]["expired"], false);
    assert!(made[0]["expires"].is_string(), "{made:?}");
    let table = printed(&["checkpoint", "create", &path]);
    assert!(table.contains("never"), "{table}");
    let again = refused(&["checkpoint", "create", &path, "--name", "first"]);
    assert!(
        again.contains("already") && again.contains("delete it first"),
        "{again}"
    );
    assert!(owns(&catalog).await);
    let listed = json(&["checkpoint", "list", &path, "--json"]);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0], made[0]);
    let info = printed(&["info", &path]);
    assert!(info.contains("checkpoint first, expires: 20"), "{info}");
    let id = listed[1]["id"].as_str().expect("an id");
    printed(&["checkpoint", "delete", &path, "first"]);
    printed(&["checkpoint", "delete", &path, id]);
    let gone = refused(&["checkpoint", "delete", &path, "first"]);
    assert!(gone.contains("no checkpoint \"first\""), "{gone}");
    assert!(json(&["checkpoint", "list", &path, "--json"]).is_empty());
    assert!(owns(&catalog).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_asks_first_and_shuts_out_nobody() {
    let root = tempfile::tempdir().expect("a folder");
    let catalog = lake(root.path()).await;
    let path = root.path().display().to_string();
    let said = refused(&["flush", &path]);
    assert!(
        said.contains("a server has") && said.contains("--take-over"),
        "{said}"
    );
    assert!(owns(&catalog).await);
    catalog.close().await.expect("a clean end");
    assert!(printed(&["flush", &path]).contains("nothing to flush"));
    let catalog = lake_again(root.path()).await;
    assert!(printed(&["flush", "--take-over", &path]).contains("nothing to flush"));
    assert!(!owns(&catalog).await, "it was shut out");
}

async fn lake_again(root: &Path) -> Arc<Catalog> {
    let url: StoreUrl = root.display().to_string().parse().expect("a path is a URL");
    let options = CatalogOptions::default();
    let opened = Catalog::open(&url.join("catalog/lake/public"), &options).await;
    opened.expect("the lake")
}

#[test]
fn a_server_that_only_reads_needs_a_lake_and_its_checkpoint() {
    let root = tempfile::tempdir().expect("a folder");
    let path = root.path().display().to_string();
    let said = refused(&["serve", &path, "--read-only", "--listen", "127.0.0.1:0"]);
    assert!(
        said.contains("makes no lake") && said.contains("there is no lake"),
        "{said}"
    );
    let said = refused(&["serve", &path, "--checkpoint", "nightly"]);
    assert!(said.contains("--read-only"), "{said}");
    for bad in ["0s", "7", "soon", "-1d"] {
        let said = refused(&["checkpoint", "create", &path, &format!("--lifetime={bad}")]);
        assert!(said.contains("is no time"), "{bad}: {said}");
    }
}
