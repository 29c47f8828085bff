//! `moraine flush` of a lake whose data files are in a bucket: they lie where the catalog says, and nothing lies there that it does
//! not know, whatever the bucket does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "shared with the tests of the store")]
#[path = "../../moraine-store/tests/support/mini_s3.rs"]
mod mini_s3;

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use moraine_commit::lake::{ColumnType, Transform};
use moraine_commit::verbs::{ColumnDefinition, PartitionField, TableDefinition};
use moraine_commit::{Catalog, CatalogOptions};
use moraine_keys::{DataFileKey, InlineInsertKey, TableScoped};
use moraine_store::ReadExt;

use mini_s3::{Fault, MiniS3};

async fn open(folder: &Path) -> Arc<Catalog> {
    let url = folder.display().to_string().parse().unwrap();
    let mut options = CatalogOptions::default();
    options.store.create = true;
    Catalog::open(&url, &options).await.unwrap()
}

/// A table of three inlined rows, partitioned by its one column.
async fn build(folder: &Path) {
    let catalog = open(folder).await;
    catalog.create(Some("s3://bucket/data/"), false).await.unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let numbers = Arc::new(Int64Array::from(vec![Some(7), None, Some(7)]));
    let rows = RecordBatch::try_new(schema, vec![numbers]).unwrap();
    let made = catalog.commit(|tx| {
        let rows = rows.clone();
        async move {
            let columns = vec![ColumnDefinition::new("n", ColumnType::Int64)];
            let table = tx
                .create_table("main", TableDefinition::new("t", columns))
                .await?;
            let by_number = vec![PartitionField::new("n", Transform::Identity)];
            tx.set_partition(table, by_number).await?;
            tx.insert_inlined(table, rows).await
        }
    });
    made.await.unwrap();
    catalog.close().await.unwrap();
}

async fn flush(folder: &Path, server: &MiniS3) -> Output {
    tokio::process::Command::new(env!("CARGO_BIN_EXE_moraine"))
        .args(["flush", "--take-over"])
        .arg(folder)
        .env("AWS_ENDPOINT", server.endpoint())
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "testtest")
        .output()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_lie_in_the_bucket_where_the_catalog_says() {
    let folder = tempfile::tempdir().unwrap();
    let server = MiniS3::start().await;
    build(folder.path()).await;

    server.fail(Fault::ReadOnly);
    let refused = flush(folder.path(), &server).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("s3://bucket/data/main/t"),
        "{refused:?}"
    );
    server.fail(Fault::None);
    assert!(server.keys("data/").is_empty());

    let flushed = flush(folder.path(), &server).await;
    assert!(flushed.status.success(), "{flushed:?}");
    let catalog = open(folder.path()).await;
    let view = catalog.store().view().unwrap();
    let files = view
        .records::<DataFileKey>(DataFileKey::scan_table(1))
        .await
        .unwrap();
    let mut known: Vec<String> = files
        .iter()
        .map(|(_, file)| format!("data/main/t/{}", file.path))
        .collect();
    known.sort();
    let found: Vec<String> = server
        .keys("data/")
        .iter()
        .map(|key| key.replacen("bucket/", "", 1))
        .collect();
    assert_eq!(found, known);
    assert!(known[0].starts_with("data/main/t/n=7/ducklake-"), "{known:?}");
    assert!(
        known[1].starts_with("data/main/t/n=__HIVE_DEFAULT_PARTITION__/"),
        "{known:?}"
    );
    assert!(
        view.keys::<InlineInsertKey>(InlineInsertKey::scan_table(1))
            .await
            .unwrap()
            .is_empty()
    );
    catalog.close().await.unwrap();
}
