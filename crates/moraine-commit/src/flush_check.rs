//! Whether a flush lands as many rows as it drains. Pure.
//!
//! A flush registers data files that begin before its own snapshot and removes the inlined rows they hold. Which row ids a file
//! holds is written in the file, and a client's file may lie where this process cannot read; so here only the numbers are held
//! together, table by table. Where files can be read, [`crate::flushed_rows`] compares the row ids; a flush by this crate's own
//! library always does.

use std::collections::{BTreeMap, BTreeSet};

use moraine_codec::Nullable;
use moraine_codec::proto::DataFileValue;

use crate::error::CommitFailure;

/// Field number of `DataFileValue.record_count`, whose SQL NULL is kept in `null_fields`.
const RECORD_COUNT_FIELD: u32 = 9;

/// What a batch does to data files, as far as a flush is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FileChanges {
    /// New files: (table, begin snapshot, rows; `None` when the client does not say).
    pub(crate) registered: Vec<(u64, u64, Option<u64>)>,
    /// Those files whole.
    pub(crate) files: Vec<DataFileValue>,
    /// Tables of which a file was removed or ended. A compaction also registers files that begin earlier.
    pub(crate) replaced: BTreeSet<u64>,
}

impl FileChanges {
    /// Notes a new file.
    pub(crate) fn register(&mut self, table_id: u64, file: &DataFileValue) {
        let rows = (!file.is_null(RECORD_COUNT_FIELD)).then_some(file.record_count);
        self.registered.push((table_id, file.begin_snapshot, rows));
        self.files.push(file.clone());
    }
}

/// Refuses a commit of `snapshot_id` that removes other than as many inlined rows of a table as the files hold that it registers
/// for earlier snapshots. `drained` counts row versions by (table, begin snapshot), each once however often it was named. Files and
/// rows of the snapshot itself are not a flush's. A table whose files the batch also compacts is not judged, nor one with a file
/// of which the client does not say how many rows it has.
pub(crate) fn check(
    snapshot_id: u64,
    drained: &BTreeMap<(u64, u64), u64>,
    files: &FileChanges,
) -> Result<(), CommitFailure> {
    let mut rows: BTreeMap<u64, (u64, Option<u64>)> = BTreeMap::new();
    for ((table_id, begin_snapshot), count) in drained {
        if *begin_snapshot < snapshot_id {
            let (drained, _) = rows.entry(*table_id).or_insert((0, Some(0)));
            *drained = drained.saturating_add(*count);
        }
    }
    for (table_id, begin_snapshot, count) in &files.registered {
        if *begin_snapshot < snapshot_id {
            let (_, landed) = rows.entry(*table_id).or_insert((0, Some(0)));
            *landed = landed
                .zip(*count)
                .map(|(landed, count)| landed.saturating_add(count));
        }
    }
    for (table_id, (drained, landed)) in rows {
        let Some(landed) = landed.filter(|landed| *landed != drained) else {
            continue;
        };
        if files.replaced.contains(&table_id) {
            continue;
        }
        let detail = format!(
            "this commit registers files with {landed} rows of earlier snapshots for table {table_id} and removes {drained} \
             inlined rows of it, so rows would be lost or doubled; nothing was written, and the inlined rows are all there: \
             flush the table again"
        );
        return Err(CommitFailure::Constraint { detail });
    }
    Ok(())
}
