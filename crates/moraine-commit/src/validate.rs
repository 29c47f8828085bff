//! Whether what was staged makes a whole commit: rows that must come together have come, children are where their
//! parents say. Pure.

use std::collections::BTreeSet;

use moraine_codec::proto::{MacroValue, MappingValue};
use moraine_keys::{CurrentKey, EntityKey, Key};
use moraine_store::WriteSet;

use crate::error::CommitFailure;
use crate::transaction::Staged;
use moraine_keys::{Kind, SnapshotKey};

/// Checks what needs no reading: the two rows of a snapshot, deletions of snapshots, registrations of inlined tables.
pub(crate) fn staged(staged: &Staged, writes: &WriteSet) -> Result<(), CommitFailure> {
    match (&staged.snapshot, &staged.changes) {
        (Some(snapshot), None) => Err(refuse(format!(
            "snapshot {} has no row in ducklake_snapshot_changes; insert both in one transaction",
            snapshot.snapshot_id
        ))),
        (None, _) if staged.creating => Err(refuse(
            "a lake is created with its first snapshot, but none was inserted".to_owned(),
        )),
        _ => Ok(()),
    }?;
    for snapshot_id in &staged.removed_changes {
        let key = SnapshotKey {
            snapshot_id: *snapshot_id,
        };
        if writes.get(&key.encode()) != Some(&None) {
            return Err(refuse(format!(
                "the row of ducklake_snapshot_changes of snapshot {snapshot_id} was deleted, but not the snapshot; \
                 delete both in one transaction"
            )));
        }
    }
    if let Some((table_id, schema_version)) = staged.pending_registrations.first() {
        return Err(refuse(format!(
            "ducklake_inlined_data_tables lists ducklake_inlined_data_{table_id}_{schema_version}, which was not \
             created; create it in the same transaction"
        )));
    }
    Ok(())
}

/// The refusal of a row of `ducklake_snapshot_changes` without a snapshot, where its id is taken.
pub(crate) fn changes_taken(snapshot_id: u64) -> CommitFailure {
    refuse(format!(
        "snapshot {snapshot_id} has its row in ducklake_snapshot_changes already"
    ))
}

/// Checks a macro that the transaction leaves behind.
pub(crate) fn macro_value(value: &MacroValue) -> Result<(), CommitFailure> {
    let name = format!("macro {} ('{}')", value.macro_id, value.macro_name);
    if value.implementations.is_empty() {
        return Err(refuse(format!(
            "{name} has no row in ducklake_macro_impl; insert both in one transaction"
        )));
    }
    if !counts_from_zero(
        value
            .implementations
            .iter()
            .map(|implementation| implementation.impl_id),
    ) {
        return Err(refuse(format!(
            "the impl_ids of {name} must be 0, 1, 2 and so on, each once"
        )));
    }
    let types: BTreeSet<&str> = value
        .implementations
        .iter()
        .map(|implementation| implementation.macro_type.as_str())
        .collect();
    if types.len() > 1 {
        return Err(refuse(format!(
            "the implementations of {name} are of more than one type: {types:?}"
        )));
    }
    for implementation in &value.implementations {
        if !counts_from_zero(
            implementation
                .parameters
                .iter()
                .map(|parameter| parameter.column_id),
        ) {
            return Err(refuse(format!(
                "the column_ids of the parameters of {name}, implementation {}, must be 0, 1, 2 and so on, each once",
                implementation.impl_id
            )));
        }
    }
    Ok(())
}

/// Checks a column mapping that the transaction leaves behind.
pub(crate) fn mapping_value(value: &MappingValue) -> Result<(), CommitFailure> {
    let name = format!("column mapping {}", value.mapping_id);
    if value.name_mappings.is_empty() {
        return Err(refuse(format!(
            "{name} has no row in ducklake_name_mapping; insert both in one transaction"
        )));
    }
    let mut seen = BTreeSet::new();
    for row in &value.name_mappings {
        if !seen.insert(row.column_id) {
            return Err(refuse(format!(
                "{name} has two rows for column_id {}",
                row.column_id
            )));
        }
        if row.parent_column.is_some_and(|parent| parent >= row.column_id) {
            return Err(refuse(format!(
                "{name}: the parent of column_id {} must come before it",
                row.column_id
            )));
        }
    }
    Ok(())
}

/// Whether a record of this key may appear only in a commit that mints a snapshot: rows that begin or end at snapshots,
/// and what belongs to them.
pub(crate) fn needs_snapshot(key: &Key) -> bool {
    match key {
        Key::History(_) => true,
        Key::Current(CurrentKey::Entity(entity)) => match entity {
            EntityKey::Schema(_)
            | EntityKey::Table(_)
            | EntityKey::View(_)
            | EntityKey::Column(_)
            | EntityKey::Partition(_)
            | EntityKey::DataFile(_)
            | EntityKey::DeleteFile(_)
            | EntityKey::Sort(_)
            | EntityKey::Macro(_)
            | EntityKey::Mapping(_)
            | EntityKey::Index(_) => true,
            EntityKey::FileColumnStats(_)
            | EntityKey::TableStats(_)
            | EntityKey::TableColumnStats(_)
            | EntityKey::Tag(_)
            | EntityKey::Option(_) => false,
        },
        _ => false,
    }
}

/// Refuses a new versioned record in a batch without a snapshot.
pub(crate) fn new_without_snapshot(key: &Key) -> CommitFailure {
    refuse(format!(
        "{key} is new, but the transaction inserts no snapshot; insert one in ducklake_snapshot"
    ))
}

fn counts_from_zero(ids: impl Iterator<Item = u64>) -> bool {
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids.into_iter()
        .zip(0..)
        .all(|(id, expected): (u64, u64)| id == expected)
}

fn refuse(detail: String) -> CommitFailure {
    CommitFailure::Constraint { detail }
}
