//! The files of all tables: data files with their partition values, statistics and delete files, one data file after the
//! other, however many there are.

use std::collections::VecDeque;

use moraine_commit::bulk::scratch;
use moraine_keys::{FileColumnStatsKey, Kind};
use moraine_store::WriteSet;
use moraine_tables::{Relation, Value};
use tokio::task::JoinHandle;

use crate::import::context::{Context, StagedRows, stage_rows};
use crate::import::error::ImportError;
use crate::import::rules::{number, query};
use crate::import::stream::{next_group, shown};
use crate::lake::Query;

/// Rows that are staged together.
const ROWS_STAGED: usize = 8192;
/// Stagings that are under way at the same time.
const STAGED_AHEAD: usize = 3;

/// The tables of this part; rows of the first come before those that need them.
const TABLES: [Relation; 5] = [
    Relation::DataFile,
    Relation::FilePartitionValue,
    Relation::FileColumnStats,
    Relation::FileVariantStats,
    Relation::DeleteFile,
];

/// Positions of columns in `ducklake_data_file`.
const BEGIN: usize = 2;
const END: usize = 3;
const RECORDS: usize = 8;
const BYTES: usize = 9;
const ROW_ID_START: usize = 11;
const PARTITION: usize = 12;
const MAPPING: usize = 14;
const PARTIAL_MAX: usize = 15;

/// The queries of this part.
pub(crate) fn queries() -> Vec<(Relation, Query)> {
    let by_file = |relation| (relation, query(relation, &["table_id", "data_file_id"]));
    TABLES.into_iter().map(by_file).collect()
}

/// Imports this part.
pub(crate) async fn import(context: &mut Context<'_>) -> Result<(), ImportError> {
    let mut streams = Vec::with_capacity(TABLES.len());
    let mut total = 0;
    for (relation, query) in queries() {
        total += context.source.count(&relation.name()).await?;
        streams.push(context.stream(relation, &query).await?);
    }
    context.progress.table("files", Some(total));
    let mut waiting = FileRows::default();
    let mut staged = VecDeque::new();
    let mut rows_waiting = 0;
    while let Some((key, mut group)) = next_group(&mut streams, &mut context.checks).await? {
        check(context, key, &mut group);
        note(context, key, &group);
        for (waiting, rows) in waiting.iter_mut().zip(group) {
            rows_waiting += rows.len();
            waiting.extend(rows);
        }
        if rows_waiting >= ROWS_STAGED {
            rows_waiting = 0;
            staged.push_back(tokio::spawn(stage(std::mem::take(&mut waiting))));
            add(context, &mut staged, STAGED_AHEAD).await?;
        }
    }
    staged.push_back(tokio::spawn(stage(waiting)));
    add(context, &mut staged, 0).await
}

/// Rows of each of the tables.
type FileRows = [Vec<Vec<Value>>; TABLES.len()];

/// What came of rows: what is to be written, and what is to be noted of each of the tables.
type Staged = (WriteSet, Vec<StagedRows>);

/// Stages rows that belong together; others are being read and written meanwhile.
async fn stage(rows: FileRows) -> Result<Staged, ImportError> {
    let mut tx = scratch().await?;
    let mut staged = Vec::with_capacity(rows.len());
    for (relation, rows) in TABLES.into_iter().zip(rows) {
        staged.push(stage_rows(&mut tx, relation, &rows).await?);
    }
    Ok((tx.into_bulk_writes().await?, staged))
}

/// Adds what was staged to the store, in order, until no more than `left` are not there yet.
async fn add(
    context: &mut Context<'_>,
    staged: &mut VecDeque<JoinHandle<Result<Staged, ImportError>>>,
    left: usize,
) -> Result<(), ImportError> {
    while staged.len() > left {
        let Some(next) = staged.pop_front() else { break };
        let (writes, notes) = next.await.map_err(|error| ImportError::Interrupted {
            detail: error.to_string(),
        })??;
        for (relation, note) in TABLES.into_iter().zip(notes) {
            context.take_in(relation, note);
        }
        context.load.add(writes).await?;
    }
    Ok(())
}

/// Leaves out files of tables that are not there, and what is about data files that are not.
fn check(context: &mut Context<'_>, [table_id, data_file_id]: [u64; 2], group: &mut [Vec<Vec<Value>>]) {
    let [data_files, partition_values, .., delete_files] = group else {
        return;
    };
    context.retain_known(Relation::DataFile, data_files, 1, Relation::Table);
    context.retain_known(Relation::DeleteFile, delete_files, 1, Relation::Table);
    context.separate_versions(Relation::DataFile, data_files);
    context.separate_versions(Relation::DeleteFile, delete_files);
    if data_files.is_empty() {
        for (relation, rows) in TABLES.into_iter().zip(group) {
            for row in rows.drain(..) {
                let detail = format!("ducklake_data_file has no row of its data file {data_file_id}");
                context.checks.leave_out(relation, shown(relation, &row), detail);
            }
        }
        return;
    }
    for row in data_files.iter_mut() {
        check_mapping(context, table_id, row);
        if !check_partition(context, table_id, row, partition_values.len()) {
            partition_values.clear();
        }
    }
}

/// Takes away a column mapping that is not there.
fn check_mapping(context: &mut Context<'_>, table_id: u64, row: &mut [Value]) {
    let Some(mapping_id) = number(row, MAPPING) else {
        return;
    };
    if !context.parents.mappings.contains(&(table_id, mapping_id)) {
        let detail = format!("ducklake_column_mapping has no row of its mapping_id {mapping_id}");
        let repair = "mapping_id becomes NULL: the file's columns are found by their field ids";
        context.forget(Relation::DataFile, row, MAPPING, detail, repair);
    }
}

/// Takes away a partitioning that is not there or that the file has not all values of; whether the values may stay.
fn check_partition(context: &mut Context<'_>, table_id: u64, row: &mut [Value], values: usize) -> bool {
    let Some(partition_id) = number(row, PARTITION) else {
        return true;
    };
    let detail = match context.parents.partitions.get(&(table_id, partition_id)) {
        None => format!("ducklake_partition_info has no row of its partition_id {partition_id}"),
        Some(columns) if *columns != values => {
            format!("it has {values} partition values, and partitioning {partition_id} has {columns} columns")
        }
        Some(_) => return true,
    };
    let repair = "partition_id becomes NULL, and the file's partition values are left out";
    context.forget(Relation::DataFile, row, PARTITION, detail, repair);
    false
}

fn note(context: &mut Context<'_>, [table_id, data_file_id]: [u64; 2], group: &[Vec<Vec<Value>>]) {
    let [data_files, _, stats, _, delete_files] = group else {
        return;
    };
    context.note(Relation::DataFile, data_files);
    context.note(Relation::DeleteFile, delete_files);
    for row in data_files {
        let counts = context.row_counts.entry(table_id).or_default();
        counts.row_id_max = counts.row_id_max.max(last_row_id(row));
        if number(row, END).is_none() {
            counts.records += number(row, RECORDS).unwrap_or_default();
            counts.bytes += number(row, BYTES).unwrap_or_default();
        }
        let begin = number(row, BEGIN).unwrap_or_default();
        if context.changelog.covers(begin) {
            for column_id in stats.iter().filter_map(|row| number(row, 2)) {
                let key = FileColumnStatsKey {
                    table_id,
                    data_file_id,
                    column_id,
                };
                context.changelog.note(begin, key.encode());
            }
        }
    }
}

/// The last row id of a file, where it has any. A file of several snapshots carries its row ids, and one may be there more
/// than once.
fn last_row_id(row: &[Value]) -> Option<u64> {
    let records = number(row, RECORDS)?;
    let counted = match row.get(PARTIAL_MAX) {
        Some(Value::Null) | None => records,
        Some(_) => records.min(1),
    };
    let after = number(row, ROW_ID_START)?.saturating_add(counted);
    after.checked_sub(1).filter(|_| counted > 0)
}
