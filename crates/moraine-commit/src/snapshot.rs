//! The snapshot record: a row of `ducklake_snapshot` and its row of `ducklake_snapshot_changes` in one, and the facts
//! about the commit that only this store keeps.

use std::collections::BTreeSet;

use moraine_codec::Nullable;
use moraine_codec::proto::SnapshotValue;

use crate::change::SnapshotChanges;
use crate::changes_made::ChangesMade;

/// Field number of `SnapshotValue.changes_made`, whose SQL NULL is kept in `null_fields`.
const CHANGES_MADE_FIELD: u32 = 7;

/// The record of both rows.
pub(crate) fn merge(value: &SnapshotValue, changes: &SnapshotChanges) -> SnapshotValue {
    let mut merged = value.clone();
    merged.changes_made = changes.changes_made.clone().unwrap_or_default();
    merged.set_null(CHANGES_MADE_FIELD, changes.changes_made.is_none());
    merged.author.clone_from(&changes.author);
    merged.commit_message.clone_from(&changes.commit_message);
    merged.commit_extra_info.clone_from(&changes.commit_extra_info);
    merged
}

/// The record of a row of `ducklake_snapshot_changes` whose snapshot does not exist.
pub(crate) fn changes_only(changes: &SnapshotChanges) -> SnapshotValue {
    let snapshot = SnapshotValue {
        snapshot_id: changes.snapshot_id,
        changes_only: true,
        ..SnapshotValue::default()
    };
    merge(&snapshot, changes)
}

/// The row of `ducklake_snapshot_changes` that a record stands for.
pub(crate) fn changes_of(value: &SnapshotValue) -> SnapshotChanges {
    let is_null = value.is_null(CHANGES_MADE_FIELD);
    SnapshotChanges {
        snapshot_id: value.snapshot_id,
        changes_made: (!is_null).then(|| value.changes_made.clone()),
        author: value.author.clone(),
        commit_message: value.commit_message.clone(),
        commit_extra_info: value.commit_extra_info.clone(),
    }
}

/// What a batch deletes rows from: the facts that the deletions of a snapshot are recorded by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    /// (table, data file) that the batch wrote a delete file for, ended or removed.
    pub(crate) files: BTreeSet<(u64, u64)>,
    /// Whether the batch deletes inlined rows, or rows of files without a delete file.
    pub(crate) inlined: bool,
}

/// Adds what the store itself records about a commit: the tables whose schema it changed, and which data files it
/// deleted rows from.
///
/// `deleted_data_file_ids` names files only where the deletions are known to touch no others. Otherwise
/// `deletes_untargeted_files` is set and the list stays empty, which every reader takes as "from the whole table".
pub(crate) fn with_facts(
    mut value: SnapshotValue,
    schema_changed_table_ids: BTreeSet<u64>,
    deletions: &Deletions,
) -> SnapshotValue {
    let changes = ChangesMade::parse(&value.changes_made);
    let tables = changes.tables_deleted_from();
    let named = |table_id: &u64| {
        deletions
            .files
            .range((*table_id, 0)..=(*table_id, u64::MAX))
            .next()
            .is_some()
    };
    let untargeted = deletions.inlined
        || changes.has_unknown()
        || !changes.tables_inline_deleted_from().is_empty()
        || !tables.iter().all(named);
    value.schema_changed_table_ids = schema_changed_table_ids.into_iter().collect();
    value.deletes_untargeted_files = untargeted;
    value.deleted_data_file_ids = Vec::new();
    if !untargeted {
        let files = deletions
            .files
            .iter()
            .filter(|(table_id, _)| tables.contains(table_id));
        let files: BTreeSet<u64> = files.map(|(_, data_file_id)| *data_file_id).collect();
        value.deleted_data_file_ids = files.into_iter().collect();
    }
    value
}
