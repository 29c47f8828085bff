//! A small reader of lakes: the rows that a snapshot shows, from chunks and from Parquet files with their delete files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use moraine_commit::lake::{Column, DataFile, Snapshot, Table};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::model::Shown;

const ROW_ID_FIELD: u64 = 2_147_483_540;
const SNAPSHOT_ID_FIELD: u64 = 2_147_483_539;

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Inlined,
    File { data_file_id: u64, position: u64 },
}

/// One row as a snapshot shows it.
#[derive(Debug)]
pub struct SeenRow {
    pub row_id: u64,
    pub place: Place,
    pub values: Vec<Option<i64>>,
}

/// All tables of a snapshot.
pub async fn shown(snapshot: &Snapshot, folder: &Path) -> Shown {
    let mut shown = Shown::new();
    for table in snapshot.tables().await.unwrap() {
        let rows = rows(snapshot, &table, folder).await;
        let mut rows: Vec<_> = rows.into_iter().map(|row| (row.row_id, row.values)).collect();
        rows.sort();
        shown.insert(table.name.clone(), rows);
    }
    shown
}

/// The rows of one table.
pub async fn rows(snapshot: &Snapshot, table: &Table, folder: &Path) -> Vec<SeenRow> {
    let columns = snapshot.columns(table.table_id).await.unwrap();
    let mut rows = inlined(snapshot, table.table_id, &columns).await;
    let mut deleted: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (data_file_id, position) in snapshot.inlined_file_deletes(table.table_id).await.unwrap() {
        deleted.entry(data_file_id).or_default().insert(position);
    }
    let place = folder.join("main").join(&table.path);
    let mut delete_files = snapshot.delete_files(table.table_id).await.unwrap();
    while let Some(file) = delete_files.next().await.unwrap() {
        let positions = deleted.entry(file.data_file_id).or_default();
        for batch in batches(&place.join(&file.path)) {
            let snapshots = by_field(&batch).get(&SNAPSHOT_ID_FIELD).copied();
            let found = batch.column_by_name("pos").unwrap().as_primitive::<Int64Type>();
            for at in 0..batch.num_rows() {
                let is_due = snapshots.is_none_or(|column| number(&batch, column, at) <= snapshot.id());
                if is_due {
                    positions.insert(u64::try_from(found.value(at)).unwrap());
                }
            }
        }
    }
    let mut files = snapshot.data_files(table.table_id).await.unwrap();
    while let Some(file) = files.next().await.unwrap() {
        let gone = deleted.remove(&file.data_file_id).unwrap_or_default();
        rows.extend(filed(
            &file,
            &place.join(&file.path),
            &columns,
            &gone,
            snapshot.id(),
        ));
    }
    rows
}

async fn inlined(snapshot: &Snapshot, table_id: u64, columns: &[Column]) -> Vec<SeenRow> {
    let mut rows = Vec::new();
    for inlined in snapshot.inlined_tables(table_id).await.unwrap() {
        let mut found = snapshot.inlined_rows(inlined).await.unwrap();
        while let Some(batch) = found.next().await.unwrap() {
            for (at, row_id) in batch.row_ids.iter().enumerate() {
                // Names are never given twice here, so they tell columns apart across schema versions.
                let value = |column: &Column| match batch.columns.schema().index_of(&column.name) {
                    Ok(index) => value(&batch.columns, index, at),
                    Err(_) => default(column),
                };
                rows.push(SeenRow {
                    row_id: *row_id,
                    place: Place::Inlined,
                    values: columns.iter().map(value).collect(),
                });
            }
        }
    }
    rows
}

fn filed(
    file: &DataFile,
    path: &Path,
    columns: &[Column],
    deleted: &BTreeSet<u64>,
    snapshot_id: u64,
) -> Vec<SeenRow> {
    let mut rows = Vec::new();
    let mut position = 0;
    for batch in batches(path) {
        let fields = by_field(&batch);
        for at in 0..batch.num_rows() {
            let here = position;
            position += 1;
            let begins = fields
                .get(&SNAPSHOT_ID_FIELD)
                .map_or(file.begin_snapshot, |column| number(&batch, *column, at));
            if deleted.contains(&here) || begins > snapshot_id {
                continue;
            }
            let row_id = match fields.get(&ROW_ID_FIELD) {
                Some(column) => number(&batch, *column, at),
                None => file.row_id_start.unwrap() + here,
            };
            let value = |column: &Column| match fields.get(&column.column_id) {
                Some(index) => value(&batch, *index, at),
                None => default(column),
            };
            let place = Place::File {
                data_file_id: file.data_file_id,
                position: here,
            };
            rows.push(SeenRow {
                row_id,
                place,
                values: columns.iter().map(value).collect(),
            });
        }
    }
    assert_eq!(position, file.record_count, "{}", path.display());
    rows
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    reader.map(Result::unwrap).collect()
}

/// The columns of a file by their field ids.
fn by_field(batch: &RecordBatch) -> BTreeMap<u64, usize> {
    let schema = batch.schema();
    let fields = schema.fields().iter().enumerate();
    fields
        .filter_map(|(at, field)| {
            let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY)?;
            Some((id.parse().unwrap(), at))
        })
        .collect()
}

fn value(batch: &RecordBatch, column: usize, at: usize) -> Option<i64> {
    let values = batch.column(column).as_primitive::<Int64Type>();
    values.is_valid(at).then(|| values.value(at))
}

fn number(batch: &RecordBatch, column: usize, at: usize) -> u64 {
    u64::try_from(value(batch, column, at).unwrap()).unwrap()
}

fn default(column: &Column) -> Option<i64> {
    column.initial_default.as_ref().map(|text| text.parse().unwrap())
}
