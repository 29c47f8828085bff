//! MultiTombstoneDrop: the drop of a table ends many records at once.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use moraine_codec::Record;
use moraine_codec::proto::{
    ColumnValue, DataFileValue, DeleteFileValue, PartitionValue, SnapshotValue, SortValue, TableValue,
};
use moraine_commit::{Catalog, CatalogTransaction, Change, InlineChange, SnapshotChanges, views};
use moraine_keys::{ColumnKey, DataFileKey, DeleteFileKey, Kind, NameKey, PartitionKey, SortKey, TableKey};
use moraine_store::Read;
use object_store::ObjectStore;

use crate::lake::Failure;
use crate::stopping_store::Fault;
use crate::sweep::{Progress, Story, open, sweep};

const TABLE: u64 = 1;
const COLUMNS: u64 = 12;
const FILES: u64 = 8;
/// The snapshot that makes the table, and the one that drops it.
const MADE: u64 = 1;
const DROPPED: u64 = 2;

/// Every record that is the table's, with `end` as the end of its life.
fn records(end: Option<u64>) -> Vec<Record> {
    let table = TableValue {
        table_id: TABLE,
        begin_snapshot: MADE,
        end_snapshot: end,
        table_name: "t".to_owned(),
        ..TableValue::default()
    };
    let partition = PartitionValue {
        partition_id: 50,
        table_id: TABLE,
        begin_snapshot: MADE,
        end_snapshot: end,
        ..PartitionValue::default()
    };
    let sort = SortValue {
        sort_id: 51,
        table_id: TABLE,
        begin_snapshot: MADE,
        end_snapshot: end,
        ..SortValue::default()
    };
    let mut records = vec![
        Record::Table(TableKey { table_id: TABLE }, table),
        Record::Partition(
            PartitionKey {
                table_id: TABLE,
                partition_id: 50,
            },
            partition,
        ),
        Record::Sort(
            SortKey {
                table_id: TABLE,
                sort_id: 51,
            },
            sort,
        ),
    ];
    records.extend((1..=COLUMNS).map(|column_id| column(column_id, end)));
    records.extend((1..=FILES).flat_map(|file| files(file, end)));
    records
}

fn column(column_id: u64, end: Option<u64>) -> Record {
    let value = ColumnValue {
        table_id: TABLE,
        column_id,
        begin_snapshot: MADE,
        end_snapshot: end,
        column_order: column_id,
        column_name: format!("c{column_id}"),
        column_type: "int64".to_owned(),
        ..ColumnValue::default()
    };
    Record::Column(
        ColumnKey {
            table_id: TABLE,
            column_id,
        },
        value,
    )
}

fn files(n: u64, end: Option<u64>) -> [Record; 2] {
    let (data_file_id, delete_file_id) = (n, 100 + n);
    let data = DataFileValue {
        table_id: TABLE,
        data_file_id,
        begin_snapshot: MADE,
        end_snapshot: end,
        path: format!("{n}.parquet"),
        record_count: 10,
        ..DataFileValue::default()
    };
    let delete = DeleteFileValue {
        table_id: TABLE,
        delete_file_id,
        data_file_id,
        begin_snapshot: MADE,
        end_snapshot: end,
        ..DeleteFileValue::default()
    };
    [
        Record::DataFile(
            DataFileKey {
                table_id: TABLE,
                data_file_id,
            },
            data,
        ),
        Record::DeleteFile(
            DeleteFileKey {
                table_id: TABLE,
                delete_file_id,
            },
            delete,
        ),
    ]
}

async fn begin(catalog: &Arc<Catalog>, id: u64, changes_made: &str) -> Result<CatalogTransaction, Failure> {
    let mut transaction = catalog.begin().await?;
    let snapshot = SnapshotValue {
        snapshot_id: id,
        schema_version: id,
        next_catalog_id: 100,
        next_file_id: 200,
        ..SnapshotValue::default()
    };
    transaction.insert_snapshot(snapshot).await?;
    transaction
        .set_snapshot_changes(SnapshotChanges {
            snapshot_id: id,
            changes_made: Some(changes_made.to_owned()),
            ..SnapshotChanges::default()
        })
        .await?;
    Ok(transaction)
}

struct Drop;

#[async_trait]
impl Story for Drop {
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.create(Some("data/"), false).await?;
        let mut transaction = begin(&catalog, MADE, r#"created_table:"main"."t""#).await?;
        transaction
            .stage(records(None).into_iter().map(Change::Insert).collect())
            .await?;
        let schema = Arc::new(Schema::new(vec![Field::new("c1", DataType::Int64, true)]));
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        for change in [
            InlineChange::CreateTable {
                table_id: TABLE,
                schema_version: MADE,
                schema: Arc::clone(&schema),
            },
            InlineChange::Register {
                table_id: TABLE,
                schema_version: MADE,
            },
            InlineChange::Insert {
                table_id: TABLE,
                schema_version: MADE,
                begin_snapshot: MADE,
                row_ids: (80..85).collect(),
                batch: RecordBatch::try_new(schema, vec![column])?,
            },
        ] {
            transaction.inline(change).await?;
        }
        transaction.commit().await?;
        Ok(catalog.close().await?)
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let catalog = open(store).await?;
        let mut transaction = begin(&catalog, DROPPED, "dropped_table:1").await?;
        let live = records(None).into_iter();
        let ends = live
            .zip(records(Some(DROPPED)))
            .map(|(old, new)| Change::Replace { old: old.key(), new });
        transaction.stage(ends.collect()).await?;
        transaction.commit().await?;
        progress.reached(1);
        Ok(catalog.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let catalog = open(left).await?;
        let transaction = catalog.begin().await?;
        let newest = transaction.newest_snapshot_id().ok_or("no lake")?;
        let dropped = newest == DROPPED;
        let expected = records(None).len() as u64;
        let live = versions(&transaction, newest).await?;
        if live != if dropped { 0 } else { expected } {
            return Err(format!("{live} of {expected} records at snapshot {newest}").into());
        }
        let before = versions(&transaction, MADE).await?;
        if before != expected {
            return Err(format!("{before} of {expected} records at snapshot {MADE}").into());
        }
        let name = NameKey::table(0, "t", TABLE);
        let named = transaction.read().get(&name.encode()).await?.is_some();
        if named == dropped {
            return Err(format!("dropped: {dropped}, and named: {named}").into());
        }
        drop(transaction);
        catalog.close().await?;
        Ok(u64::from(dropped))
    }
}

/// The table's records that a snapshot shows.
async fn versions(transaction: &CatalogTransaction, snapshot: u64) -> Result<u64, Failure> {
    let read = transaction.read();
    let mut count = views::tables_at(read, snapshot).await?.len();
    count += views::columns_at(read, snapshot, TABLE).await?.len();
    count += views::partitions_at(read, snapshot, TABLE).await?.len();
    count += views::sorts_at(read, snapshot, TABLE).await?.len();
    count += views::data_files_at(read, snapshot, TABLE).await?.len();
    count += views::delete_files_at(read, snapshot, TABLE).await?.len();
    Ok(count as u64)
}

#[tokio::test(flavor = "multi_thread")]
async fn multi_tombstone_drop_leaves_the_table_whole_or_gone() {
    for crash in sweep(Drop, Fault::Stops).await {
        assert_eq!(crash.landed, crash.acknowledged);
    }
    sweep(Drop, Fault::StopsUnheard).await;
}
