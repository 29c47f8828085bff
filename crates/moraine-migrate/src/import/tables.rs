//! The tables of a lake: their versions, columns with tags, partitionings, sort orders, statistics and schema versions, one
//! table after the other.

use std::collections::BTreeSet;

use moraine_commit::CatalogTransaction;
use moraine_commit::bulk::scratch;
use moraine_keys::{Kind, TableColumnStatsKey, TableStatsKey};
use moraine_tables::{Relation, Value};

use crate::import::context::Context;
use crate::import::error::{ImportError, Problem};
use crate::import::rules::{number, query};
use crate::import::stream::{next_group, shown};
use crate::lake::Query;

/// Rows that are staged together.
const ROWS_STAGED: usize = 4096;

/// The tables of this part, without columns and their tags, which come first.
const TABLES: [Relation; 10] = [
    Relation::Table,
    Relation::Column,
    Relation::ColumnTag,
    Relation::PartitionInfo,
    Relation::PartitionColumn,
    Relation::SortInfo,
    Relation::SortExpression,
    Relation::TableStats,
    Relation::TableColumnStats,
    Relation::SchemaVersions,
];
const COLUMNS: usize = 1;
const COLUMN_TAGS: usize = 2;
const PARTITIONINGS: usize = 3;
const PARTITION_COLUMNS: usize = 4;
const TABLE_STATS: usize = 7;
const TABLE_COLUMN_STATS: usize = 8;

/// Position of `schema_id` in `ducklake_table`.
const SCHEMA_ID: usize = 4;
/// Positions of `end_snapshot` and `parent_column` in `ducklake_column`.
const COLUMN_END: usize = 2;
const PARENT: usize = 10;
/// Positions of `end_snapshot` in `ducklake_partition_info` and `column_id` in `ducklake_partition_column`.
const PARTITIONING_END: usize = 3;
const PARTITION_COLUMN_ID: usize = 3;

/// The queries of this part.
pub(crate) fn queries() -> Vec<(Relation, Query)> {
    let by_table = |relation| (relation, query(relation, &["table_id"]));
    TABLES.into_iter().map(by_table).collect()
}

/// Imports this part.
pub(crate) async fn import(context: &mut Context<'_>) -> Result<(), ImportError> {
    let mut streams = Vec::with_capacity(TABLES.len());
    let mut total = 0;
    for (relation, query) in queries() {
        total += context.source.count(&relation.name()).await?;
        streams.push(context.stream(relation, &query).await?);
    }
    context.progress.table("tables", Some(total));
    let mut tx = scratch().await?;
    let mut rows_staged = 0;
    while let Some(([table_id, _], mut group)) = next_group(&mut streams, &mut context.checks).await? {
        check(context, table_id, &mut group);
        rows_staged += group.iter().map(Vec::len).sum::<usize>();
        stage(context, &mut tx, &group).await?;
        note_statistics(context, table_id, &group);
        if rows_staged >= ROWS_STAGED {
            rows_staged = 0;
            let full = std::mem::replace(&mut tx, scratch().await?);
            context.add(full).await?;
        }
    }
    context.add(tx).await
}

/// Leaves out what belongs to nothing, and sees to the counters.
fn check(context: &mut Context<'_>, table_id: u64, group: &mut [Vec<Vec<Value>>]) {
    for (relation, rows) in TABLES.into_iter().zip(group.iter_mut()) {
        match relation {
            Relation::Table => context.retain_known(relation, rows, SCHEMA_ID, Relation::Schema),
            Relation::Column => context.retain_known(relation, rows, 3, Relation::Table),
            Relation::TableStats | Relation::TableColumnStats => {
                context.retain_known(relation, rows, 0, Relation::Table);
            }
            Relation::PartitionInfo | Relation::SortInfo => {
                context.retain_known(relation, rows, 1, Relation::Table);
            }
            _ => {}
        }
        context.separate_versions(relation, rows);
        if relation == Relation::Column {
            retain_nested(context, rows);
        }
    }
    end_partitionings(context, group);
    for (relation, rows) in TABLES.into_iter().zip(group.iter()) {
        context.note(relation, rows);
    }
    if let Some(stats) = group.get_mut(TABLE_STATS) {
        check_row_ids(context, table_id, stats);
    }
}

/// Leaves out live nested columns whose parent does not live, and so on downwards.
fn retain_nested(context: &mut Context<'_>, rows: &mut Vec<Vec<Value>>) {
    loop {
        let lives = |row: &&Vec<Value>| number(row, COLUMN_END).is_none();
        let live: BTreeSet<u64> = rows
            .iter()
            .filter(lives)
            .filter_map(|row| number(row, 0))
            .collect();
        let before = rows.len();
        rows.retain(|row| {
            let orphaned = number(row, PARENT).filter(|parent| lives(&row) && !live.contains(parent));
            if let Some(parent) = orphaned {
                let detail = format!("its parent, column {parent}, does not live");
                let row = shown(Relation::Column, row);
                context.checks.leave_out(Relation::Column, row, detail);
            }
            orphaned.is_none()
        });
        if rows.len() == before {
            return;
        }
    }
}

/// Ends live partitionings by columns that do not live: files are not partitioned by them any more.
fn end_partitionings(context: &mut Context<'_>, group: &mut [Vec<Vec<Value>>]) {
    let Ok([columns, partitionings, parts]) =
        group.get_disjoint_mut([COLUMNS, PARTITIONINGS, PARTITION_COLUMNS])
    else {
        return;
    };
    let newest = context.checks.newest;
    let is_live = |row: &[Value]| number(row, COLUMN_END).is_none();
    for row in partitionings
        .iter_mut()
        .filter(|row| number(row, PARTITIONING_END).is_none())
    {
        let by = parts.iter().filter(|part| number(part, 0) == number(row, 0));
        let mut by = by.filter_map(|part| number(part, PARTITION_COLUMN_ID));
        let gone = by.find(|id| {
            !columns
                .iter()
                .any(|row| number(row, 0) == Some(*id) && is_live(row))
        });
        if let Some(column_id) = gone {
            context.checks.problems.add(Problem {
                table: Relation::PartitionInfo.name(),
                row: shown(Relation::PartitionInfo, row),
                detail: format!("it partitions by column {column_id}, which does not live"),
                repair: format!("it ends at snapshot {newest}"),
            });
            if let Some(cell) = row.get_mut(PARTITIONING_END) {
                *cell = Value::Int64(i64::try_from(newest).unwrap_or(i64::MAX));
            }
        }
    }
}

/// The counter of row ids must be above all that are taken, or they would be given twice.
fn check_row_ids(context: &mut Context<'_>, table_id: u64, stats: &mut Vec<Vec<Value>>) {
    let counts = context.row_counts.get(&table_id).copied().unwrap_or_default();
    let Some(needed) = counts.row_id_max.map(|greatest| greatest.saturating_add(1)) else {
        return;
    };
    let id = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let mut problem = |detail: String, repair: String| {
        context.checks.problems.add(Problem {
            table: Relation::TableStats.name(),
            row: format!("table_id {table_id}"),
            detail,
            repair,
        });
    };
    match stats.first_mut() {
        None if !context.parents.tables.has(table_id) => {}
        None => {
            problem(
                "the table has rows and no row here, which counts its row ids".to_owned(),
                format!("one is made, with next_row_id {needed}"),
            );
            stats.push(vec![
                id(table_id),
                id(counts.records),
                id(needed),
                id(counts.bytes),
            ]);
        }
        Some(row) => {
            let found = number(row, 2).unwrap_or_default();
            if found < needed {
                problem(
                    format!("next_row_id is {found}, but row id {} is taken", needed - 1),
                    format!("it becomes {needed}"),
                );
                if let Some(cell) = row.get_mut(2) {
                    *cell = id(needed);
                }
            }
        }
    }
}

async fn stage(
    context: &mut Context<'_>,
    tx: &mut CatalogTransaction,
    group: &[Vec<Vec<Value>>],
) -> Result<(), ImportError> {
    let has_tags = group.get(COLUMN_TAGS).is_some_and(|tags| !tags.is_empty());
    for (position, (relation, rows)) in TABLES.into_iter().zip(group).enumerate() {
        match position {
            COLUMNS if has_tags => stage_tagged(context, tx, rows, group.get(COLUMN_TAGS)).await?,
            COLUMN_TAGS => {}
            _ => context.stage(tx, relation, rows).await?,
        }
    }
    Ok(())
}

/// Stages columns and their tags in the order in which they came to be: a version of a column takes over the tags that there
/// are when it begins.
async fn stage_tagged(
    context: &mut Context<'_>,
    tx: &mut CatalogTransaction,
    columns: &[Vec<Value>],
    tags: Option<&Vec<Vec<Value>>>,
) -> Result<(), ImportError> {
    let begun = |relation, rows: &[Vec<Value>], begin: usize| -> Vec<(u64, Relation, Vec<Value>)> {
        rows.iter()
            .map(|row| (number(row, begin).unwrap_or_default(), relation, row.clone()))
            .collect()
    };
    let mut events = begun(Relation::Column, columns, 1);
    events.extend(begun(
        Relation::ColumnTag,
        tags.map(Vec::as_slice).unwrap_or_default(),
        2,
    ));
    // Stable: of what begins together, columns come before tags, and each table's rows keep their order.
    events.sort_by_key(|(begin, ..)| *begin);
    for run in events.chunk_by(|(_, left, _), (_, right, _)| left == right) {
        let Some((_, relation, _)) = run.first() else {
            continue;
        };
        let rows: Vec<Vec<Value>> = run.iter().map(|(.., row)| row.clone()).collect();
        context.stage(tx, *relation, &rows).await?;
    }
    Ok(())
}

/// Notes which snapshots of the changelog have written the table's statistics.
fn note_statistics(context: &mut Context<'_>, table_id: u64, group: &[Vec<Vec<Value>>]) {
    let snapshots: Vec<u64> = context
        .touched
        .iter()
        .filter(|(_, touched)| *touched == table_id)
        .map(|(snapshot, _)| *snapshot)
        .collect();
    for snapshot in snapshots {
        if group.get(TABLE_STATS).is_some_and(|rows| !rows.is_empty()) {
            context
                .changelog
                .note(snapshot, TableStatsKey { table_id }.encode());
        }
        let columns = group.get(TABLE_COLUMN_STATS).into_iter().flatten();
        for column_id in columns.filter_map(|row| number(row, 1)) {
            let key = TableColumnStatsKey { table_id, column_id };
            context.changelog.note(snapshot, key.encode());
        }
    }
}
