//! A client that appends as DuckLake does: it reads the lake at its snapshot, chooses ids and merges statistics from what it
//! read, and stages the sum. Its merging is written from DuckLake's source, apart from what it is to be compared with.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_codec::Record;
use moraine_codec::proto::{
    ColumnValue, DataFileValue, FileColumnStatsValue, SchemaVersionValue, SnapshotValue,
    TableColumnStatsValue, TableStatsValue,
};
use moraine_commit::{Catalog, CatalogOptions, CatalogTransaction, Change, InlineChange, StageError};
use moraine_keys::{
    ColumnKey, DataFileKey, FileColumnStatsKey, Kind, SchemaVersionKey, SnapshotKey, TableColumnStatsKey,
    TableScoped, TableStatsKey,
};
use moraine_store::{MemoryStore, ReadExt};

use crate::support::{changes, insert, table};

/// DuckLake types of the columns, by column id from 1 on. Values of the last have no bounds.
pub const TYPES: [&str; 5] = ["int64", "varchar", "float64", "date", "varchar"];
/// The column id of those without bounds.
const WITHOUT_BOUNDS: usize = 5;
pub const TABLES: [u64; 2] = [1, 2];

/// A row; `None` is NULL. What a number means is up to the column's type.
pub type Row = [Option<i8>; TYPES.len()];

/// What one transaction adds to one table.
#[derive(Debug, Clone)]
pub struct TableAppend {
    pub table_id: u64,
    pub files: Vec<Vec<Row>>,
    pub inlined: Vec<Row>,
}

pub async fn rebasing_lake() -> (Arc<Catalog>, MemoryStore) {
    let store = MemoryStore::new();
    let options = CatalogOptions {
        rebase_appends: true,
        ..CatalogOptions::default()
    };
    let catalog = Catalog::with_options(Arc::new(store.clone()), &options);
    catalog.create(Some("data/"), false).await.unwrap();
    with_tables(&catalog).await;
    (catalog, store)
}

/// Both tables, and inlined tables for them.
pub async fn with_tables(catalog: &Arc<Catalog>) {
    let mut transaction = catalog.begin().await.unwrap();
    let row = SnapshotValue {
        snapshot_id: 1,
        schema_version: 1,
        next_catalog_id: 3,
        next_file_id: 0,
        ..SnapshotValue::default()
    };
    transaction.insert_snapshot(row).await.unwrap();
    for table_id in TABLES {
        let mut records = vec![insert(table(table_id, 1, &format!("t{table_id}")))];
        for (at, column_type) in TYPES.iter().enumerate() {
            let column_id = at as u64 + 1;
            let value = ColumnValue {
                table_id,
                column_id,
                begin_snapshot: 1,
                column_order: column_id,
                column_name: format!("c{column_id}"),
                column_type: (*column_type).to_owned(),
                ..ColumnValue::default()
            };
            records.push(insert((ColumnKey { table_id, column_id }, value)));
        }
        records.push(schema_version(table_id, 1, 1));
        transaction.stage(records).await.unwrap();
        let schema_version = 1;
        let register = InlineChange::Register {
            table_id,
            schema_version,
        };
        transaction.inline(register).await.unwrap();
        let create = InlineChange::CreateTable {
            table_id,
            schema_version,
            schema: inlined_columns(),
        };
        transaction.inline(create).await.unwrap();
    }
    let made = r#"created_table:"main"."t1",created_table:"main"."t2""#;
    transaction.set_snapshot_changes(changes(1, made)).await.unwrap();
    transaction.commit().await.unwrap();
}

pub fn schema_version(table_id: u64, begin_snapshot: u64, schema_version: u64) -> Change {
    let key = SchemaVersionKey {
        table_id,
        begin_snapshot,
    };
    let value = SchemaVersionValue {
        schema_version,
        ..SchemaVersionValue::default()
    };
    insert((key, value))
}

fn inlined_columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("c1", DataType::Int64, true)]))
}

/// The newest snapshot that a transaction sees.
pub async fn seen_snapshot(transaction: &CatalogTransaction) -> SnapshotValue {
    let snapshot_id = transaction.head().unwrap().snapshot_id;
    transaction
        .read()
        .value(&SnapshotKey { snapshot_id })
        .await
        .unwrap()
        .unwrap()
}

/// Stages all but the row of `ducklake_snapshot_changes`, whose text it gives.
pub async fn stage(
    transaction: &mut CatalogTransaction,
    appends: &[TableAppend],
    label: &str,
) -> Result<(u64, String), StageError> {
    let seen = seen_snapshot(transaction).await;
    let snapshot_id = seen.snapshot_id + 1;
    let mut next_file_id = seen.next_file_id;
    let (mut files, mut inlines, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for append in appends {
        let table_id = append.table_id;
        let mut stats = Stats::seen(transaction, table_id).await;
        for (number, rows) in append.files.iter().enumerate() {
            let file = new_file(table_id, next_file_id, snapshot_id, rows, stats.table.next_row_id);
            next_file_id += 1;
            let path = format!("{label}-{table_id}-{number}.parquet");
            files.extend(file_records(file, path, rows));
            stats.add(rows);
            stats.table.file_size_bytes += 100;
        }
        if !append.inlined.is_empty() {
            let first = stats.table.next_row_id;
            inlines.push(inlined(table_id, snapshot_id, first, &append.inlined));
            stats.add(&append.inlined);
            if append.files.is_empty() {
                next_file_id += 1;
            }
        }
        files.extend(stats.changes(table_id));
        if !append.files.is_empty() {
            made.push(format!("inserted_into_table:{table_id}"));
        }
        if !append.inlined.is_empty() {
            made.push(format!("inlined_insert:{table_id}"));
        }
    }
    let row = SnapshotValue {
        snapshot_id,
        next_file_id,
        changes_made: String::new(),
        ..seen
    };
    transaction.insert_snapshot(row).await?;
    transaction.stage(files).await?;
    for change in inlines {
        transaction.inline(change).await?;
    }
    Ok((snapshot_id, made.join(",")))
}

/// A whole transaction from here on.
pub async fn append(
    mut transaction: CatalogTransaction,
    appends: &[TableAppend],
    label: &str,
) -> Result<u64, StageError> {
    let (snapshot_id, made) = stage(&mut transaction, appends, label).await?;
    transaction
        .set_snapshot_changes(changes(snapshot_id, &made))
        .await?;
    Ok(transaction.commit().await.unwrap().snapshot_id.unwrap())
}

fn new_file(
    table_id: u64,
    data_file_id: u64,
    begin_snapshot: u64,
    rows: &[Row],
    row_id_start: u64,
) -> DataFileValue {
    DataFileValue {
        table_id,
        data_file_id,
        begin_snapshot,
        path_is_relative: true,
        file_format: "parquet".to_owned(),
        record_count: rows.len() as u64,
        file_size_bytes: 100,
        footer_size: 10,
        row_id_start: Some(row_id_start),
        ..DataFileValue::default()
    }
}

fn file_records(mut file: DataFileValue, path: String, rows: &[Row]) -> Vec<Change> {
    file.path = path;
    let (table_id, data_file_id) = (file.table_id, file.data_file_id);
    let key = DataFileKey {
        table_id,
        data_file_id,
    };
    let mut records = vec![insert((key, file))];
    for column in 1..=TYPES.len() {
        let own = Own::of(column, rows);
        let column_id = column as u64;
        let value = FileColumnStatsValue {
            table_id,
            data_file_id,
            column_id,
            value_count: rows.len() as u64,
            null_count: u64::from(own.has_null),
            min_value: own.min,
            max_value: own.max,
            ..FileColumnStatsValue::default()
        };
        let key = FileColumnStatsKey {
            table_id,
            data_file_id,
            column_id,
        };
        records.push(insert((key, value)));
    }
    records
}

pub fn inlined(table_id: u64, begin_snapshot: u64, first: u64, rows: &[Row]) -> InlineChange {
    let values: Vec<Option<i64>> = rows.iter().map(|row| row[0].map(i64::from)).collect();
    InlineChange::Insert {
        table_id,
        schema_version: 1,
        begin_snapshot,
        row_ids: (first..first + rows.len() as u64).collect(),
        batch: RecordBatch::try_new(inlined_columns(), vec![Arc::new(Int64Array::from(values))]).unwrap(),
    }
}

/// The statistics of a table, as a client sees and changes them.
pub struct Stats {
    was_there: bool,
    pub table: TableStatsValue,
    columns: Vec<TableColumnStatsValue>,
}

impl Stats {
    pub async fn seen(transaction: &CatalogTransaction, table_id: u64) -> Stats {
        let read = transaction.read();
        let table = read.value(&TableStatsKey { table_id }).await.unwrap();
        let columns = read
            .records::<TableColumnStatsKey>(TableColumnStatsKey::scan_table(table_id))
            .await
            .unwrap();
        Stats {
            was_there: table.is_some(),
            table: table.unwrap_or(TableStatsValue {
                table_id,
                ..TableStatsValue::default()
            }),
            columns: columns.into_iter().map(|(_, value)| value).collect(),
        }
    }

    /// `DuckLakeTableStats::MergeStats` for the rows of a file or of an inlined insert.
    pub fn add(&mut self, rows: &[Row]) {
        self.table.record_count += rows.len() as u64;
        self.table.next_row_id += rows.len() as u64;
        for column in 1..=TYPES.len() {
            let own = Own::of(column, rows);
            match self.columns.get_mut(column - 1) {
                Some(stats) => own.merge_into(column, stats),
                None => self.columns.push(TableColumnStatsValue {
                    table_id: self.table.table_id,
                    column_id: column as u64,
                    contains_null: Some(own.has_null),
                    min_value: own.min,
                    max_value: own.max,
                    ..TableColumnStatsValue::default()
                }),
            }
        }
    }

    pub fn changes(self, table_id: u64) -> Vec<Change> {
        let was_there = self.was_there;
        let put = |key: Record, old: moraine_keys::Key| match was_there {
            true => Change::Replace { old, new: key },
            false => Change::Insert(key),
        };
        let key = TableStatsKey { table_id };
        let mut changes = vec![put((key.clone(), self.table).into(), key.to_key())];
        for value in self.columns {
            let key = TableColumnStatsKey {
                table_id,
                column_id: value.column_id,
            };
            changes.push(put((key.clone(), value).into(), key.to_key()));
        }
        changes
    }
}

/// What rows add to the statistics of a column.
struct Own {
    has_null: bool,
    any_valid: bool,
    min: Option<String>,
    max: Option<String>,
}

impl Own {
    fn of(column: usize, rows: &[Row]) -> Own {
        let values: Vec<i8> = rows.iter().filter_map(|row| row[column - 1]).collect();
        let bounded = (column != WITHOUT_BOUNDS).then_some(&values);
        let texts: Vec<String> = bounded
            .into_iter()
            .flatten()
            .map(|value| text(column, *value))
            .collect();
        let least = |best: Option<String>, text: &String| match best {
            Some(best) if !is_less(column, text, &best) => Some(best),
            _ => Some(text.clone()),
        };
        let greatest = |best: Option<String>, text: &String| match best {
            Some(best) if !is_less(column, &best, text) => Some(best),
            _ => Some(text.clone()),
        };
        Own {
            has_null: values.len() < rows.len(),
            any_valid: !values.is_empty(),
            min: texts.iter().fold(None, least),
            max: texts.iter().fold(None, greatest),
        }
    }

    /// `DuckLakeColumnStats::MergeStats` on a row of `ducklake_table_column_stats`.
    fn merge_into(self, column: usize, stats: &mut TableColumnStatsValue) {
        stats.contains_null = stats.contains_null.map(|contains| contains || self.has_null);
        if !self.any_valid {
            return;
        }
        if stats.min_value.is_none() && stats.max_value.is_none() {
            stats.min_value = self.min;
            stats.max_value = self.max;
            return;
        }
        stats.min_value = match (stats.min_value.take(), self.min) {
            (Some(current), Some(own)) if is_less(column, &own, &current) => Some(own),
            (Some(current), Some(_)) => Some(current),
            _ => None,
        };
        stats.max_value = match (stats.max_value.take(), self.max) {
            (Some(current), Some(own)) if is_less(column, &current, &own) => Some(own),
            (Some(current), Some(_)) => Some(current),
            _ => None,
        };
    }
}

/// What a number is as a value of a column, in DuckDB's text.
fn text(column: usize, value: i8) -> String {
    match TYPES[column - 1] {
        "int64" => value.to_string(),
        "varchar" => format!("k{value}"),
        "float64" => format!("{:?}", f64::from(value) / 4.0),
        "date" => format!("{}-01-01", 10_000 + 60 * i32::from(value)),
        other => panic!("{other}"),
    }
}

fn is_less(column: usize, left: &str, right: &str) -> bool {
    match TYPES[column - 1] {
        "varchar" => left < right,
        "date" => {
            let year = |text: &str| text.split('-').next().unwrap().parse::<i32>().unwrap();
            year(left) < year(right)
        }
        _ => left.parse::<f64>().unwrap() < right.parse::<f64>().unwrap(),
    }
}
