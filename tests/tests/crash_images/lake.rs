//! The life that is interrupted: a lake whose n-th commit makes table n with a column, a data file and inlined rows, and
//! ends the data file of the commit before. So every whole state is known from its newest snapshot alone.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use moraine_codec::Record;
use moraine_codec::proto::{ColumnValue, DataFileValue, SchemaVersionValue, SnapshotValue, TableValue};
use moraine_commit::{Catalog, CatalogTransaction, Change, InlineChange, SnapshotChanges, views};
use moraine_keys::{ColumnKey, DataFileKey, Kind, SchemaVersionKey, TableKey};
use moraine_store::census;

/// Commits of a whole life.
pub(crate) const COMMITS: u64 = 5;
const COLUMN: u64 = 1;
const INLINED_ROWS: u64 = 3;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Makes commit `n`, durable when this returns.
pub(crate) async fn commit(catalog: &Arc<Catalog>, n: u64) -> Result<(), Failure> {
    staged(catalog, n).await?.commit().await?;
    Ok(())
}

/// Commit `n` up to its last step.
pub(crate) async fn staged(catalog: &Arc<Catalog>, n: u64) -> Result<CatalogTransaction, Failure> {
    let mut transaction = catalog.begin().await?;
    transaction
        .insert_snapshot(SnapshotValue {
            snapshot_id: n,
            schema_version: n,
            next_catalog_id: n + 1,
            next_file_id: n + 1,
            ..SnapshotValue::default()
        })
        .await?;
    transaction
        .set_snapshot_changes(SnapshotChanges {
            snapshot_id: n,
            changes_made: Some(format!("created_table:\"main\".\"t{n}\"")),
            ..SnapshotChanges::default()
        })
        .await?;
    transaction.stage(changes(n)).await?;
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let column: ArrayRef = Arc::new(Int64Array::from_iter(
        (0..INLINED_ROWS).map(|row| i64::try_from(row).ok()),
    ));
    transaction
        .inline(InlineChange::CreateTable {
            table_id: n,
            schema_version: n,
            schema: Arc::clone(&schema),
        })
        .await?;
    transaction
        .inline(InlineChange::Register {
            table_id: n,
            schema_version: n,
        })
        .await?;
    transaction
        .inline(InlineChange::Insert {
            table_id: n,
            schema_version: n,
            begin_snapshot: n,
            row_ids: (0..INLINED_ROWS).collect(),
            batch: RecordBatch::try_new(schema, vec![column])?,
        })
        .await?;
    Ok(transaction)
}

fn changes(n: u64) -> Vec<Change> {
    let table = TableValue {
        table_id: n,
        begin_snapshot: n,
        table_name: format!("t{n}"),
        ..TableValue::default()
    };
    let column = ColumnValue {
        table_id: n,
        column_id: COLUMN,
        begin_snapshot: n,
        column_name: "a".to_owned(),
        column_type: "int64".to_owned(),
        ..ColumnValue::default()
    };
    let version = SchemaVersionValue {
        schema_version: n,
        ..SchemaVersionValue::default()
    };
    let mut changes = vec![
        Change::Insert(Record::Table(TableKey { table_id: n }, table)),
        Change::Insert(Record::Column(
            ColumnKey {
                table_id: n,
                column_id: COLUMN,
            },
            column,
        )),
        Change::Insert(Record::SchemaVersion(
            SchemaVersionKey {
                table_id: n,
                begin_snapshot: n,
            },
            version,
        )),
        Change::Insert(Record::DataFile(file_key(n), file(n, None))),
    ];
    if n > 1 {
        changes.push(Change::Replace {
            old: file_key(n - 1).to_key(),
            new: Record::DataFile(file_key(n - 1), file(n - 1, Some(n))),
        });
    }
    changes
}

pub(crate) fn file_key(n: u64) -> DataFileKey {
    DataFileKey {
        table_id: n,
        data_file_id: n,
    }
}

fn file(n: u64, end_snapshot: Option<u64>) -> DataFileValue {
    DataFileValue {
        table_id: n,
        data_file_id: n,
        begin_snapshot: n,
        end_snapshot,
        path: format!("file-{n}.parquet"),
        file_format: "parquet".to_owned(),
        record_count: 10,
        ..DataFileValue::default()
    }
}

/// The newest snapshot of a store, after checking that the store is exactly the state which that commit made. `None`
/// where no lake has been made.
pub(crate) async fn newest_whole_commit(catalog: &Arc<Catalog>) -> Result<Option<u64>, String> {
    let view = catalog.store().view().map_err(|error| error.to_string())?;
    let counted = census::take(view.as_ref())
        .await
        .map_err(|error| error.to_string())?;
    let Some(head) = counted.head else {
        return if counted.kinds.is_empty() {
            Ok(None)
        } else {
            Err(format!("no head, but {:?}", counted.kinds))
        };
    };
    let n = head.snapshot_id;
    let expected = [
        ("snapshot", n + 1),
        ("current/table", n),
        ("current/column", n),
        ("current/data_file", n.min(1)),
        ("history/data_file", n.saturating_sub(1)),
        ("inline/live/insert", n),
        ("inline/chunk_locator", n),
        ("inline/schema", n),
        // The schema `main` has a name too.
        ("name", n + 1),
    ];
    for (kind, count) in expected {
        let found = counted.kinds.get(kind).map_or(0, |tally| tally.records);
        if found != count {
            return Err(format!(
                "snapshot {n} with {found} records of {kind}, not {count}"
            ));
        }
    }
    let tables = views::tables_at(view.as_ref(), n)
        .await
        .map_err(|error| error.to_string())?;
    let names: Vec<String> = tables.into_iter().map(|(_, table)| table.table_name).collect();
    let expected: Vec<String> = (1..=n).map(|table| format!("t{table}")).collect();
    if names == expected {
        Ok(Some(n))
    } else {
        Err(format!("snapshot {n} with tables {names:?}"))
    }
}
