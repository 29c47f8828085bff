//! The files of all tables: data files with their partition values, statistics and delete files, one data file after the
//! other, however many there are.

use moraine_commit::bulk::scratch;
use moraine_keys::{FileColumnStatsKey, Kind};
use moraine_tables::{Relation, Value};

use crate::import::context::Context;
use crate::import::error::ImportError;
use crate::import::rules::{number, query};
use crate::import::stream::{next_group, shown};
use crate::lake::Query;

/// Rows that are staged together.
const ROWS_STAGED: usize = 8192;

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
    let mut staged: Vec<Vec<Vec<Value>>> = vec![Vec::new(); TABLES.len()];
    let mut rows_staged = 0;
    while let Some((key, mut group)) = next_group(&mut streams, &mut context.checks).await? {
        check(context, key, &mut group);
        note(context, key, &group);
        for (waiting, rows) in staged.iter_mut().zip(group) {
            rows_staged += rows.len();
            waiting.extend(rows);
        }
        if rows_staged >= ROWS_STAGED {
            rows_staged = 0;
            add(context, &mut staged).await?;
        }
    }
    add(context, &mut staged).await
}

async fn add(context: &mut Context<'_>, staged: &mut [Vec<Vec<Value>>]) -> Result<(), ImportError> {
    let mut tx = scratch().await?;
    for (relation, rows) in TABLES.into_iter().zip(staged) {
        context.stage(&mut tx, relation, rows).await?;
        rows.clear();
    }
    context.add(tx).await
}

/// Leaves out files of tables that are not there, and delete files of data files that are not.
fn check(context: &mut Context<'_>, [_, data_file_id]: [u64; 2], group: &mut [Vec<Vec<Value>>]) {
    let [data_files, .., delete_files] = group else {
        return;
    };
    context.retain_known(Relation::DataFile, data_files, 1, Relation::Table);
    if data_files.is_empty() {
        for row in delete_files.drain(..) {
            let detail = format!("ducklake_data_file has no row of its data file {data_file_id}");
            let row = shown(Relation::DeleteFile, &row);
            context.checks.leave_out(Relation::DeleteFile, row, detail);
        }
    }
}

fn note(context: &mut Context<'_>, [table_id, data_file_id]: [u64; 2], group: &[Vec<Vec<Value>>]) {
    let [data_files, _, stats, _, delete_files] = group else {
        return;
    };
    context.note(Relation::DataFile, data_files);
    context.note(Relation::DeleteFile, delete_files);
    for row in data_files {
        let counts = context.row_counts.entry(table_id).or_default();
        if number(row, RECORDS).is_some_and(|records| records > 0) {
            counts.row_id_max = counts.row_id_max.max(number(row, ROW_ID_START));
        }
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
