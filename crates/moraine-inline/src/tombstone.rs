//! Tombstones: the ends of inlined rows, as events. A version of a row ends at the smallest event after its begin, whatever schema
//! version it lives in; nothing else ends it.

use moraine_codec::proto::InlineInlineDeleteValue;
use moraine_keys::{RowTombstoneKey, TableChild};
use moraine_store::{Read, ReadExt, Staging};

use crate::error::InlineError;
use crate::row_ids::RowIds;

/// The events of some rows of a table, held in memory.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    /// (row id, end snapshot), ascending.
    events: Vec<(u64, u64)>,
}

impl Tombstones {
    /// Reads the events of the rows in `row_ids`.
    pub(crate) async fn load(read: &dyn Read, table_id: u64, row_ids: RowIds) -> Result<Self, InlineError> {
        let mut events = Vec::new();
        for range in row_ids.coarse().ranges() {
            let range = RowTombstoneKey::scan_table_ids(table_id, range.clone());
            let mut scan = read.record_scan::<RowTombstoneKey>(range).await?;
            while let Some((key, _)) = scan.next().await? {
                events.push((key.row_id, key.end_snapshot));
            }
        }
        Ok(Self { events })
    }

    /// The end of the version of `row_id` that began at `begin_snapshot`; `None` when it is live.
    pub(crate) fn end_of(&self, row_id: u64, begin_snapshot: u64) -> Option<u64> {
        let next = self
            .events
            .partition_point(|event| *event <= (row_id, begin_snapshot));
        self.events
            .get(next)
            .filter(|(row, _)| *row == row_id)
            .map(|(_, end)| *end)
    }

    /// All events, as (row id, end snapshot), ascending.
    pub(crate) fn events(&self) -> &[(u64, u64)] {
        &self.events
    }
}

/// Ends versions of rows, given as (row id, begin snapshot), at `end_snapshot`. Ending one that ended there already changes
/// nothing. The event ends every live version of the row in the table that began before `end_snapshot`, as DuckLake's own UPDATE
/// does for all its inlined tables.
///
/// # Errors
/// [`InlineError::EndNotAfterBegin`]; [`InlineError::AlreadyEnded`] for a version that ended earlier. Nothing is staged then.
pub async fn end_rows(
    staging: &mut Staging,
    table_id: u64,
    rows: &[(u64, u64)],
    end_snapshot: u64,
) -> Result<(), InlineError> {
    let row_ids = rows.iter().map(|(row_id, _)| *row_id).collect();
    let tombstones = Tombstones::load(staging, table_id, row_ids).await?;
    let mut events = Vec::new();
    for &(row_id, begin_snapshot) in rows {
        if end_snapshot <= begin_snapshot {
            return Err(InlineError::EndNotAfterBegin {
                row_id,
                begin_snapshot,
                end_snapshot,
            });
        }
        match tombstones.end_of(row_id, begin_snapshot) {
            Some(ended) if ended < end_snapshot => {
                return Err(InlineError::AlreadyEnded {
                    row_id,
                    begin_snapshot,
                    ended,
                });
            }
            Some(ended) if ended == end_snapshot => {}
            _ => events.push(RowTombstoneKey {
                table_id,
                row_id,
                end_snapshot,
            }),
        }
    }
    for key in &events {
        staging.put(key, &InlineInlineDeleteValue { end_snapshot })?;
    }
    Ok(())
}
