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
use moraine_codec::Record;
use moraine_codec::proto::{
    ColumnValue, PartitionColumn, PartitionValue, SchemaVersionValue, SnapshotValue, TableValue,
};
use moraine_commit::{Catalog, CatalogOptions, Change, InlineChange, SnapshotChanges};
use moraine_keys::{
    ColumnKey, DataFileKey, InlineInsertKey, PartitionKey, SchemaVersionKey, TableKey, TableScoped,
};
use moraine_store::ReadExt;

use mini_s3::{Fault, MiniS3};

async fn open(folder: &Path) -> Arc<Catalog> {
    let url = folder.display().to_string().parse().unwrap();
    let mut options = CatalogOptions::default();
    options.store.create = true;
    Catalog::open(&url, &options).await.unwrap()
}

/// A table of three inlined rows, partitioned by its one column.
fn table() -> Vec<Change> {
    let table = TableValue {
        table_id: 1,
        begin_snapshot: 1,
        table_name: "t".to_owned(),
        path: "t/".to_owned(),
        path_is_relative: true,
        ..TableValue::default()
    };
    let column = ColumnValue {
        table_id: 1,
        column_id: 1,
        begin_snapshot: 1,
        column_order: 1,
        column_name: "n".to_owned(),
        column_type: "int64".to_owned(),
        ..ColumnValue::default()
    };
    let partition = PartitionValue {
        partition_id: 2,
        table_id: 1,
        begin_snapshot: 1,
        columns: vec![PartitionColumn {
            column_id: 1,
            transform: "identity".to_owned(),
            ..PartitionColumn::default()
        }],
        ..PartitionValue::default()
    };
    let version = SchemaVersionKey {
        table_id: 1,
        begin_snapshot: 1,
    };
    let versioned = SchemaVersionValue {
        schema_version: 1,
        ..SchemaVersionValue::default()
    };
    vec![
        Change::Insert(Record::Table(TableKey { table_id: 1 }, table)),
        Change::Insert(Record::Column(
            ColumnKey {
                table_id: 1,
                column_id: 1,
            },
            column,
        )),
        Change::Insert(Record::Partition(
            PartitionKey {
                table_id: 1,
                partition_id: 2,
            },
            partition,
        )),
        Change::Insert(Record::SchemaVersion(version, versioned)),
    ]
}

async fn build(folder: &Path) {
    let catalog = open(folder).await;
    catalog.create(Some("s3://bucket/data/"), false).await.unwrap();
    let mut transaction = catalog.begin().await.unwrap();
    let snapshot = SnapshotValue {
        snapshot_id: 1,
        schema_version: 1,
        next_catalog_id: 10,
        next_file_id: 10,
        ..SnapshotValue::default()
    };
    transaction.insert_snapshot(snapshot).await.unwrap();
    let changes = SnapshotChanges {
        snapshot_id: 1,
        changes_made: Some("created_table:\"main\".\"t\"".to_owned()),
        ..SnapshotChanges::default()
    };
    transaction.set_snapshot_changes(changes).await.unwrap();
    transaction.stage(table()).await.unwrap();
    let (table_id, schema_version) = (1, 1);
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let numbers = Arc::new(Int64Array::from(vec![Some(7), None, Some(7)]));
    for change in [
        InlineChange::CreateTable {
            table_id,
            schema_version,
            schema: Arc::clone(&schema),
        },
        InlineChange::Register {
            table_id,
            schema_version,
        },
        InlineChange::Insert {
            table_id,
            schema_version,
            begin_snapshot: 1,
            row_ids: vec![0, 1, 2],
            batch: RecordBatch::try_new(schema, vec![numbers]).unwrap(),
        },
    ] {
        transaction.inline(change).await.unwrap();
    }
    transaction.commit().await.unwrap();
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
