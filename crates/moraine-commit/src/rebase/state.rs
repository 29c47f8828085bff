//! What of a lake an append depends on: read once where the client saw it, and once where it is now.

use std::collections::{BTreeMap, BTreeSet};

use moraine_codec::proto::{SnapshotValue, TableColumnStatsValue, TableStatsValue};
use moraine_keys::{ColumnKey, SnapshotKey, TableColumnStatsKey, TableScoped, TableStatsKey};
use moraine_store::{ReadExt, View};

use crate::error::StageError;

/// The tables of an append at one state of the lake.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    /// The newest snapshot.
    pub(super) snapshot: SnapshotValue,
    /// Counters, by table.
    pub(super) table_stats: BTreeMap<u64, TableStatsValue>,
    /// Statistics, by table and column.
    pub(super) column_stats: BTreeMap<(u64, u64), TableColumnStatsValue>,
    /// DuckLake types, by table and column.
    pub(super) column_types: BTreeMap<(u64, u64), String>,
    /// (table, schema version) of the inlined tables that are listed.
    pub(super) inlined_versions: BTreeSet<(u64, u64)>,
}

impl State {
    /// Reads what belongs to `tables` at a state whose newest snapshot is `snapshot_id`. `None` without that snapshot.
    pub(crate) async fn load(
        read: &dyn View,
        snapshot_id: u64,
        tables: &BTreeSet<u64>,
    ) -> Result<Option<State>, StageError> {
        let Some(snapshot) = read.value(&SnapshotKey { snapshot_id }).await? else {
            return Ok(None);
        };
        let mut state = State {
            snapshot,
            ..State::default()
        };
        for table_id in tables.iter().copied() {
            if let Some(stats) = read.value(&TableStatsKey { table_id }).await? {
                state.table_stats.insert(table_id, stats);
            }
            for (key, stats) in read
                .records::<TableColumnStatsKey>(TableColumnStatsKey::scan_table(table_id))
                .await?
            {
                state.column_stats.insert((table_id, key.column_id), stats);
            }
            for (key, column) in read.records::<ColumnKey>(ColumnKey::scan_table(table_id)).await? {
                state
                    .column_types
                    .insert((table_id, key.column_id), column.column_type);
            }
            let versions = moraine_inline::versions(read, Some(table_id)).await?;
            let listed = versions.into_iter().filter(|(_, _, registered)| *registered);
            state
                .inlined_versions
                .extend(listed.map(|(table_id, version, _)| (table_id, version)));
        }
        Ok(Some(state))
    }
}
