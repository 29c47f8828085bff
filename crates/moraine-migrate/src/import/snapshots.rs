//! The snapshots of a lake, each with what it changed and the facts that follow from the rows of other tables.

use std::collections::BTreeSet;

use moraine_codec::proto::SnapshotValue;
use moraine_commit::bulk::{snapshot_record, snapshot_write};
use moraine_commit::{ChangeEntry, ChangesMade, SnapshotChanges};
use moraine_store::WriteSet;
use moraine_tables::{Relation, Value};

use crate::import::context::Context;
use crate::import::error::{ImportError, Problem};
use crate::import::rules::{number, query, query_columns, text};
use crate::import::stream::{next_group, shown};
use crate::lake::Query;

/// Snapshots that are added together.
const SNAPSHOTS_ADDED: usize = 1024;

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
    let made = changes.and_then(|row| text(row, 1)).unwrap_or_default();
    let has_changed_schema = !schema_versions.is_empty() || says_schema_changed(made);
    let value = value(context, snapshot_id, row, has_changed_schema);
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

/// The row of `ducklake_snapshot`, its counters and its schema version put right.
fn value(
    context: &mut Context<'_>,
    snapshot_id: u64,
    row: &[Value],
    has_changed_schema: bool,
) -> SnapshotValue {
    let time = match row.get(1) {
        Some(Value::TimestampTz(micros)) => *micros,
        _ => 0,
    };
    let [next_catalog_id, next_file_id] = counters(context, snapshot_id, [number(row, 3), number(row, 4)]);
    let found = number(row, 2).unwrap_or_default();
    SnapshotValue {
        snapshot_id,
        snapshot_time_micros: time,
        schema_version: schema_version(context, snapshot_id, found, has_changed_schema),
        next_catalog_id,
        next_file_id,
        ..SnapshotValue::default()
    }
}

/// The counters of a snapshot: no less than an earlier one may have given, and those of the newest above every id there is.
fn counters(context: &mut Context<'_>, snapshot_id: u64, found: [Option<u64>; 2]) -> [u64; 2] {
    let taken = match snapshot_id == context.checks.newest {
        true => [Some(context.catalog_id_max), context.file_id_max],
        false => [None; 2],
    };
    let mut counters = context.counters_max;
    for (position, name) in ["next_catalog_id", "next_file_id"].into_iter().enumerate() {
        let (Some(counter), Some(found), Some(taken)) = (
            counters.get_mut(position),
            found.get(position),
            taken.get(position),
        ) else {
            continue;
        };
        let before = *counter;
        let above_taken = taken.map_or(0, |taken| taken.saturating_add(1));
        let needed = above_taken.max(before);
        *counter = found.unwrap_or_default().max(needed);
        let detail = match *found {
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
    }
    context.counters_max = counters;
    counters
}

/// The schema version of a snapshot, no less than that of an earlier one. A snapshot that has changed the schema needs one of
/// its own, and every later one with it: that is beyond repair.
fn schema_version(context: &mut Context<'_>, snapshot_id: u64, found: u64, has_changed_schema: bool) -> u64 {
    let before = context.schema_version_max;
    context.schema_version_max = before.max(found);
    if found >= before {
        return found;
    }
    let row = format!("snapshot_id {snapshot_id}");
    let detail = format!("schema_version is {found}, but an earlier snapshot has {before}");
    let repair = match has_changed_schema {
        false => format!("it becomes {before}"),
        true => {
            let table = Relation::Snapshot.name();
            let refusal = format!(
                "{table} ({row}): {detail}, and this one has changed the schema, so neither version can be its own; give \
                 it and those after it greater ones, in {} too",
                Relation::SchemaVersions
            );
            context.checks.beyond_repair.get_or_insert(refusal);
            "there is none".to_owned()
        }
    };
    context.checks.problems.add(Problem {
        table: Relation::Snapshot.name(),
        row,
        detail,
        repair,
    });
    before
}

/// Whether a snapshot says of itself that it has changed the schema; one that says what nobody knows may have.
fn says_schema_changed(changes_made: &str) -> bool {
    let is_data = |entry: &ChangeEntry| {
        matches!(
            entry,
            ChangeEntry::InsertedIntoTable(_)
                | ChangeEntry::DeletedFromTable(_)
                | ChangeEntry::InlinedInsert(_)
                | ChangeEntry::InlinedDelete(_)
                | ChangeEntry::InlineFlush(_)
                | ChangeEntry::MergeAdjacent(_)
                | ChangeEntry::RewriteDelete(_)
                | ChangeEntry::CompactedTable(_)
        )
    };
    !ChangesMade::parse(changes_made).entries.iter().all(is_data)
}
