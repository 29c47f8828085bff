//! The snapshots of a lake, each with what it changed and the facts that follow from the rows of other tables.

use std::collections::BTreeSet;

use moraine_codec::Nullable;
use moraine_codec::proto::SnapshotValue;
use moraine_commit::SnapshotChanges;
use moraine_commit::bulk::{snapshot_record, snapshot_write};
use moraine_store::WriteSet;
use moraine_tables::{Relation, Value};

use crate::import::context::Context;
use crate::import::error::{ImportError, Problem};
use crate::import::rules::{number, query, query_columns, text};
use crate::import::stream::{next_group, shown};
use crate::lake::Query;

/// Snapshots that are added together.
const SNAPSHOTS_ADDED: usize = 1024;
/// Field numbers of `SnapshotValue.next_catalog_id` and `next_file_id`, whose SQL NULL is kept in `null_fields`.
const NEXT_CATALOG_ID_FIELD: u32 = 4;
const NEXT_FILE_ID_FIELD: u32 = 5;

/// The queries of this part.
pub(crate) fn queries() -> Vec<(Relation, Query)> {
    let deletes = query_columns(
        Relation::DeleteFile,
        &["table_id", "data_file_id", "begin_snapshot"],
        &["begin_snapshot"],
    );
    let mut ended = query_columns(
        Relation::DataFile,
        &["table_id", "data_file_id", "end_snapshot"],
        &["end_snapshot"],
    );
    ended.not_null = Some("end_snapshot".to_owned());
    vec![
        (Relation::Snapshot, query(Relation::Snapshot, &["snapshot_id"])),
        (
            Relation::SnapshotChanges,
            query(Relation::SnapshotChanges, &["snapshot_id"]),
        ),
        (
            Relation::SchemaVersions,
            query(Relation::SchemaVersions, &["begin_snapshot"]),
        ),
        (Relation::DeleteFile, deletes),
        (Relation::DataFile, ended),
    ]
}

/// Imports this part, the last one: the counters of the newest snapshot are above every id that was imported.
pub(crate) async fn import(context: &mut Context<'_>) -> Result<(), ImportError> {
    let mut streams = Vec::new();
    for (relation, query) in queries() {
        streams.push(context.stream(relation, &query).await?);
    }
    let count = context.source.count(&Relation::Snapshot.name()).await?;
    context.progress.table("snapshots", Some(count));
    let mut writes = WriteSet::new();
    while let Some(([snapshot_id, _], group)) = next_group(&mut streams, &mut context.checks).await? {
        if let Some(record) = record(context, snapshot_id, &group) {
            let (key, value) = snapshot_write(&record).map_err(moraine_commit::bulk::BulkError::from)?;
            writes.put(key, value);
            context.progress.rows(1);
        }
        if writes.len() >= SNAPSHOTS_ADDED {
            context.load.add(std::mem::take(&mut writes)).await?;
        }
    }
    context.load.add(writes).await?;
    let changelog = std::mem::take(&mut context.changelog).writes(&context.snapshots);
    let changelog = changelog.map_err(moraine_commit::bulk::BulkError::from)?;
    Ok(context.load.add(changelog).await?)
}

/// The record of a snapshot; `None` where there is no row of it.
fn record(context: &mut Context<'_>, snapshot_id: u64, group: &[Vec<Vec<Value>>]) -> Option<SnapshotValue> {
    let [snapshots, changes, schema_versions, delete_files, data_files] = group else {
        return None;
    };
    for (relation, rows) in [
        (Relation::Snapshot, snapshots),
        (Relation::SnapshotChanges, changes),
    ] {
        for row in rows.iter().skip(1) {
            let detail = "there is another row of this snapshot".to_owned();
            context.checks.leave_out(relation, shown(relation, row), detail);
        }
        let taken = rows.len().min(1) as u64;
        *context.rows.entry(relation.name()).or_default() += taken;
    }
    let changes = changes.first();
    let Some(row) = snapshots.first() else {
        if let Some(row) = changes {
            let detail = "ducklake_snapshot has no row of this snapshot".to_owned();
            let row = shown(Relation::SnapshotChanges, row);
            context.checks.leave_out(Relation::SnapshotChanges, row, detail);
        }
        return None;
    };
    if changes.is_none() {
        context.checks.problems.add(Problem {
            table: Relation::SnapshotChanges.name(),
            row: format!("snapshot_id {snapshot_id}"),
            detail: "the snapshot has no row here".to_owned(),
            repair: "one is made that says nothing of what changed".to_owned(),
        });
    }
    let value = value(context, snapshot_id, row);
    let changes = SnapshotChanges {
        snapshot_id,
        changes_made: changes.and_then(|row| text(row, 1)).map(str::to_owned),
        author: changes.and_then(|row| text(row, 2)).map(str::to_owned),
        commit_message: changes.and_then(|row| text(row, 3)).map(str::to_owned),
        commit_extra_info: changes.and_then(|row| text(row, 4)).map(str::to_owned),
    };
    let tables: BTreeSet<u64> = schema_versions.iter().filter_map(|row| number(row, 2)).collect();
    let files: BTreeSet<(u64, u64)> = delete_files
        .iter()
        .chain(data_files)
        .filter_map(|row| Some((number(row, 0)?, number(row, 1)?)))
        .collect();
    Some(snapshot_record(&value, Some(&changes), tables, files))
}

/// The row of `ducklake_snapshot`, its counters put right where it is the newest.
fn value(context: &mut Context<'_>, snapshot_id: u64, row: &[Value]) -> SnapshotValue {
    let time = match row.get(1) {
        Some(Value::TimestampTz(micros)) => *micros,
        _ => 0,
    };
    let mut counters = [number(row, 3), number(row, 4)];
    if snapshot_id == context.checks.newest {
        put_right(context, snapshot_id, &mut counters);
    }
    for (greatest, counter) in context.counters_max.iter_mut().zip(counters) {
        *greatest = counter.unwrap_or_default().max(*greatest);
    }
    let [next_catalog_id, next_file_id] = counters;
    let mut value = SnapshotValue {
        snapshot_id,
        snapshot_time_micros: time,
        schema_version: number(row, 2).unwrap_or_default(),
        next_catalog_id: next_catalog_id.unwrap_or_default(),
        next_file_id: next_file_id.unwrap_or_default(),
        ..SnapshotValue::default()
    };
    value.set_null(NEXT_CATALOG_ID_FIELD, next_catalog_id.is_none());
    value.set_null(NEXT_FILE_ID_FIELD, next_file_id.is_none());
    value
}

/// Raises the counters of the newest snapshot above every id there is, and every one that a snapshot before it may have given.
fn put_right(context: &mut Context<'_>, snapshot_id: u64, counters: &mut [Option<u64>; 2]) {
    let taken = [Some(context.catalog_id_max), context.file_id_max];
    for (position, name) in ["next_catalog_id", "next_file_id"].into_iter().enumerate() {
        let (Some(counter), Some(taken)) = (counters.get_mut(position), taken.get(position)) else {
            continue;
        };
        let above_taken = taken.map_or(0, |taken| taken.saturating_add(1));
        let before = context.counters_max.get(position).copied().unwrap_or_default();
        let needed = above_taken.max(before);
        let detail = match *counter {
            None => format!("{name} is NULL"),
            Some(found) if found < above_taken => {
                format!("{name} is {found}, but id {} is taken", above_taken - 1)
            }
            Some(found) if found < before => {
                format!("{name} is {found}, but an earlier snapshot has {before}")
            }
            Some(_) => continue,
        };
        context.checks.problems.add(Problem {
            table: Relation::Snapshot.name(),
            row: format!("snapshot_id {snapshot_id}"),
            detail,
            repair: format!("it becomes {needed}"),
        });
        *counter = Some(needed);
    }
}
