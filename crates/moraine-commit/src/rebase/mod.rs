//! Append rebase: a transaction that only adds rows, and lost the race for its snapshot, is shifted to where the lake is
//! now, as if its client had begun there. Snapshot id, file ids and row ids move, counters add up, statistics are merged.
//! Pure: a batch, what it was built on and what there is now give a batch, or the reason why not. Reading both is done by
//! [`State::load`], and what to do with a refusal is the transaction's affair.

mod state;
mod statistics;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use moraine_codec::proto::{DataFileValue, FileColumnStatsValue, InlineChunkValue, SnapshotValue};
use moraine_codec::{DecodeError, EncodeError, Record, decode_record, encode_record};
use moraine_keys::{
    ChunkLocatorKey, DataFileKey, FileColumnStatsKey, InlineInsertKey, SnapshotKey, TableColumnStatsKey,
    TableStatsKey,
};
use moraine_store::WriteSet;

use crate::change::SnapshotChanges;
use crate::changes_made::{ChangeEntry, ChangesMade};
use crate::conflicts::{self, ChangesSince, Conflict, OwnChange};
use crate::derive;
use crate::snapshot;

pub(crate) use state::State;

/// Ids of columns from here on are DuckLake's own: row ids and snapshots that a file carries.
const RESERVED_COLUMN_ID_MIN: u64 = 2_147_483_000;

/// Why a batch is not shifted. Its client begins again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It does more than add rows.
    #[error("it does more than add rows: {what}")]
    NotAnAppend {
        /// The record or entry that shows it.
        what: String,
    },
    /// What was committed since excludes it.
    #[error(transparent)]
    Conflict(#[from] Box<Conflict>),
    /// An id or a counter is not what a client takes from the lake it sees.
    #[error("{what} is not what follows from snapshot {premise}")]
    Unexpected {
        /// The id.
        what: String,
        /// The snapshot that the batch was built on.
        premise: u64,
    },
    /// Statistics cannot be merged for sure.
    #[error("the statistics of table {table_id}, column {column_id:?}: {reason}")]
    Statistics {
        /// The table.
        table_id: u64,
        /// The column; `None` for the table's counters.
        column_id: Option<u64>,
        /// What cannot be merged.
        reason: &'static str,
    },
    /// A table has other inlined tables now.
    #[error("the inlined tables of table {table_id} are others now")]
    InlinedTables {
        /// The table.
        table_id: u64,
    },
    /// A record cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A record cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A batch that adds rows and does nothing else.
#[derive(Debug)]
pub(crate) struct Append {
    snapshot: SnapshotValue,
    changes: SnapshotChanges,
    entries: Vec<OwnChange>,
    records: Vec<Record>,
    /// The tables it is about.
    pub(crate) tables: BTreeSet<u64>,
}

/// A batch where the lake is now.
#[derive(Debug)]
pub(crate) struct Rebased {
    /// Its row of `ducklake_snapshot`.
    pub(crate) snapshot: SnapshotValue,
    /// Its row of `ducklake_snapshot_changes`.
    pub(crate) changes: SnapshotChanges,
    /// What it puts.
    pub(crate) puts: Vec<(Bytes, Bytes)>,
}

impl Append {
    /// The batch as an append. `snapshot` and `changes` are its two rows of a snapshot as inserted.
    pub(crate) fn of(
        writes: &WriteSet,
        snapshot: &SnapshotValue,
        changes: &SnapshotChanges,
    ) -> Result<Append, Refusal> {
        let not = |what: String| Refusal::NotAnAppend { what };
        let text = changes.changes_made.as_deref().unwrap_or_default();
        let mut entries = Vec::new();
        let mut tables = BTreeSet::new();
        for entry in ChangesMade::parse(text).entries {
            let (own, table_id) = match entry {
                ChangeEntry::InsertedIntoTable(id) => (OwnChange::InsertedIntoTable(id), id),
                ChangeEntry::InlinedInsert(id) => (OwnChange::InlinedInsert(id), id),
                other => return Err(not(other.to_string())),
            };
            entries.push(own);
            tables.insert(table_id);
        }
        if entries.is_empty() {
            return Err(not("it adds none".to_owned()));
        }
        let mut records = Vec::new();
        for (key, change) in writes.iter() {
            let Some(value) = change else {
                return Err(not(derive::name_of(key)));
            };
            let record = decode_record(key, value)?;
            let table_id = match &record {
                Record::Snapshot(key, _) if key.snapshot_id == snapshot.snapshot_id => continue,
                Record::DataFile(key, _) => key.table_id,
                Record::FileColumnStats(key, _) => key.table_id,
                Record::TableStats(key, _) => key.table_id,
                Record::TableColumnStats(key, _) => key.table_id,
                Record::InlineInsert(key, _) => key.table_id,
                Record::ChunkLocator(key, _) => key.table_id,
                _ => return Err(not(derive::name_of(key))),
            };
            if !tables.contains(&table_id) {
                return Err(not(derive::name_of(key)));
            }
            records.push(record);
        }
        Ok(Append {
            snapshot: snapshot.clone(),
            changes: changes.clone(),
            entries,
            records,
            tables,
        })
    }
}

/// Shifts an append from what it was built on to what there is now.
pub(crate) fn rebase(
    append: &Append,
    premise: &State,
    newest: &State,
    since: &ChangesSince,
) -> Result<Rebased, Refusal> {
    conflicts::check(&append.entries, since)?;
    let shift = Shift::of(append, premise, newest)?;
    let snapshot = shift.snapshot(&append.snapshot)?;
    let changes = SnapshotChanges {
        snapshot_id: snapshot.snapshot_id,
        ..append.changes.clone()
    };
    let merged = snapshot::merge(&snapshot, &changes);
    let key = SnapshotKey {
        snapshot_id: snapshot.snapshot_id,
    };
    let mut puts = vec![encode_record(&Record::Snapshot(key, merged))?];
    for record in &append.records {
        puts.push(encode_record(&shift.record(record)?)?);
    }
    Ok(Rebased {
        snapshot,
        changes,
        puts,
    })
}

/// How far the ids of an append move.
struct Shift<'s> {
    premise: &'s State,
    newest: &'s State,
    snapshot_from: u64,
    snapshot_to: u64,
    files: u64,
    rows: BTreeMap<u64, u64>,
}

impl<'s> Shift<'s> {
    fn of(append: &Append, premise: &'s State, newest: &'s State) -> Result<Shift<'s>, Refusal> {
        let mut shift = Shift {
            premise,
            newest,
            snapshot_from: append.snapshot.snapshot_id,
            snapshot_to: 0,
            files: 0,
            rows: BTreeMap::new(),
        };
        if premise.snapshot.snapshot_id.checked_add(1) != Some(shift.snapshot_from) {
            return Err(shift.unexpected(format!("snapshot id {}", shift.snapshot_from)));
        }
        let next = newest.snapshot.snapshot_id.checked_add(1);
        shift.snapshot_to = next.ok_or_else(|| shift.unexpected("a snapshot id".to_owned()))?;
        let files = newest
            .snapshot
            .next_file_id
            .checked_sub(premise.snapshot.next_file_id);
        shift.files = files.ok_or_else(|| shift.unexpected("next_file_id".to_owned()))?;
        for table_id in append.tables.iter().copied() {
            let rows = next_row_id(newest, table_id).checked_sub(next_row_id(premise, table_id));
            let rows = rows.ok_or_else(|| shift.unexpected(format!("next_row_id of table {table_id}")))?;
            shift.rows.insert(table_id, rows);
        }
        Ok(shift)
    }

    fn unexpected(&self, what: String) -> Refusal {
        Refusal::Unexpected {
            what,
            premise: self.premise.snapshot.snapshot_id,
        }
    }

    fn snapshot(&self, own: &SnapshotValue) -> Result<SnapshotValue, Refusal> {
        let (premise, newest) = (&self.premise.snapshot, &self.newest.snapshot);
        let ids = |value: &SnapshotValue| (value.schema_version, value.next_catalog_id);
        if ids(own) != ids(premise) || own.next_file_id < premise.next_file_id {
            return Err(self.unexpected("a counter of its snapshot".to_owned()));
        }
        let mut moved = own.clone();
        moved.snapshot_id = self.snapshot_to;
        moved.schema_version = newest.schema_version;
        moved.next_catalog_id = newest.next_catalog_id;
        moved.next_file_id = self.moved(own.next_file_id, self.files)?;
        let earliest = newest.snapshot_time_micros.saturating_add(1);
        moved.snapshot_time_micros = own.snapshot_time_micros.max(earliest);
        Ok(moved)
    }

    fn record(&self, record: &Record) -> Result<Record, Refusal> {
        Ok(match record {
            Record::DataFile(key, value) => self.data_file(key, value)?.into(),
            Record::FileColumnStats(key, value) => self.file_column_stats(key, value)?.into(),
            Record::TableStats(key, value) => {
                let table_id = key.table_id;
                let seen = self.premise.table_stats.get(&table_id);
                let merged = statistics::table(seen, value, self.newest.table_stats.get(&table_id));
                let merged = merged.map_err(|reason| Refusal::Statistics {
                    table_id,
                    column_id: None,
                    reason,
                })?;
                Record::TableStats(TableStatsKey { table_id }, merged)
            }
            Record::TableColumnStats(key, value) => self.table_column_stats(key, value)?,
            Record::InlineInsert(key, value) => self.chunk(key, value)?,
            Record::ChunkLocator(key, value) => {
                let rows = self.rows(key.table_id);
                let mut moved = *value;
                moved.begin_snapshot = self.begin(value.begin_snapshot)?;
                moved.row_id_start = self.new_row(key.table_id, value.row_id_start)?;
                let key = ChunkLocatorKey {
                    row_id_end: self.moved(key.row_id_end, rows)?,
                    begin_snapshot: moved.begin_snapshot,
                    ..key.clone()
                };
                Record::ChunkLocator(key, moved)
            }
            other => {
                return Err(Refusal::NotAnAppend {
                    what: other.key().to_string(),
                });
            }
        })
    }

    fn data_file(
        &self,
        key: &DataFileKey,
        value: &DataFileValue,
    ) -> Result<(DataFileKey, DataFileValue), Refusal> {
        let not = |what: &str| Refusal::NotAnAppend {
            what: format!("{key} {what}"),
        };
        if value.end_snapshot.is_some() || value.partial_max.is_some() {
            return Err(not("is no new file of new rows"));
        }
        let Some(row_id_start) = value.row_id_start else {
            return Err(not("carries its row ids"));
        };
        let mut moved = value.clone();
        moved.begin_snapshot = self.begin(value.begin_snapshot)?;
        moved.data_file_id = self.new_file(value.data_file_id)?;
        moved.row_id_start = Some(self.new_row(key.table_id, row_id_start)?);
        let key = DataFileKey {
            table_id: key.table_id,
            data_file_id: moved.data_file_id,
        };
        Ok((key, moved))
    }

    fn file_column_stats(
        &self,
        key: &FileColumnStatsKey,
        value: &FileColumnStatsValue,
    ) -> Result<(FileColumnStatsKey, FileColumnStatsValue), Refusal> {
        if key.column_id >= RESERVED_COLUMN_ID_MIN {
            return Err(Refusal::NotAnAppend {
                what: key.to_string(),
            });
        }
        let mut moved = value.clone();
        moved.data_file_id = self.new_file(value.data_file_id)?;
        let key = FileColumnStatsKey {
            data_file_id: moved.data_file_id,
            ..key.clone()
        };
        Ok((key, moved))
    }

    fn table_column_stats(
        &self,
        key: &TableColumnStatsKey,
        value: &moraine_codec::proto::TableColumnStatsValue,
    ) -> Result<Record, Refusal> {
        let id = (key.table_id, key.column_id);
        let refused = |reason| Refusal::Statistics {
            table_id: id.0,
            column_id: Some(id.1),
            reason,
        };
        let merged = if self.newest.table_stats.contains_key(&id.0) {
            let column_type = self.newest.column_types.get(&id);
            let column_type = column_type.ok_or_else(|| refused("there is no such column any more"))?;
            let (seen, newest) = (
                self.premise.column_stats.get(&id),
                self.newest.column_stats.get(&id),
            );
            statistics::column(column_type, seen, value, newest).map_err(refused)?
        } else {
            value.clone()
        };
        Ok(Record::TableColumnStats(key.clone(), merged))
    }

    fn chunk(&self, key: &InlineInsertKey, value: &InlineChunkValue) -> Result<Record, Refusal> {
        let versions = |state: &State| {
            let range = (key.table_id, 0)..=(key.table_id, u64::MAX);
            state.inlined_versions.range(range).copied().collect::<Vec<_>>()
        };
        // A client inserts into the newest inlined table that is listed.
        let newest = versions(self.newest);
        if newest.last() != Some(&(key.table_id, key.schema_version)) || newest != versions(self.premise) {
            return Err(Refusal::InlinedTables {
                table_id: key.table_id,
            });
        }
        let key = InlineInsertKey {
            begin_snapshot: self.begin(key.begin_snapshot)?,
            ..key.clone()
        };
        let mut moved = value.clone();
        moved.row_id_start = self.new_row(key.table_id, value.row_id_start)?;
        Ok(Record::InlineInsert(key, moved))
    }

    fn begin(&self, begin_snapshot: u64) -> Result<u64, Refusal> {
        if begin_snapshot == self.snapshot_from {
            return Ok(self.snapshot_to);
        }
        Err(self.unexpected(format!("begin_snapshot {begin_snapshot}")))
    }

    /// A file that the append brings, which no earlier one can be.
    fn new_file(&self, data_file_id: u64) -> Result<u64, Refusal> {
        if data_file_id < self.premise.snapshot.next_file_id {
            return Err(self.unexpected(format!("data file id {data_file_id}")));
        }
        self.moved(data_file_id, self.files)
    }

    /// A row that the append brings; rows of before are updated, not added.
    fn new_row(&self, table_id: u64, row_id: u64) -> Result<u64, Refusal> {
        if row_id < next_row_id(self.premise, table_id) {
            return Err(self.unexpected(format!("row id {row_id}")));
        }
        self.moved(row_id, self.rows(table_id))
    }

    fn rows(&self, table_id: u64) -> u64 {
        self.rows.get(&table_id).copied().unwrap_or_default()
    }

    fn moved(&self, id: u64, by: u64) -> Result<u64, Refusal> {
        id.checked_add(by)
            .ok_or_else(|| self.unexpected(format!("id {id}")))
    }
}

fn next_row_id(state: &State, table_id: u64) -> u64 {
    state
        .table_stats
        .get(&table_id)
        .map_or(0, |stats| stats.next_row_id)
}
