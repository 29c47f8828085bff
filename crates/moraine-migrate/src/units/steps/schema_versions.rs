//! What software of formats 1 to 9 left undone in `ducklake_schema_versions`: early versions kept these rows within the
//! snapshots only, and lost them when snapshots expired. A planner of compactions that finds no row for a file gives up, so
//! each table whose oldest file is older than all its rows gets one more. Part of the last unit.
//! Source: RFC 0007, and how crate `moraine` 0.7.0 serves the table.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::units::frozen::{Damage, Message, ids, integers_message, key};
use crate::units::step::{Action, Source, Walk};

/// `snapshot`: snapshot.
const SNAPSHOT: &[u8] = &[3];
/// `schema_version`: table, begin snapshot.
pub(crate) const SCHEMA_VERSION: &[u8] = &[8];
/// `current/data_file` and `history/data_file` (with its end).
pub(crate) const DATA_FILE: &[u8] = &[4, 2, 7];
pub(crate) const ENDED_DATA_FILE: &[u8] = &[5, 7];
/// Fields of a snapshot's value.
const SCHEMA_VERSION_OF_SNAPSHOT: u64 = 3;
const SCHEMA_CHANGED_TABLES: u64 = 11;

/// The rows that snapshots still hold.
pub(crate) const FROM_SNAPSHOTS: Walk = Walk {
    of: "snapshots",
    completes: true,
    prefix: SNAPSHOT,
    beside: rows_beside,
    act: add_rows,
};

fn rows_beside(source: Source<'_>) -> Result<Vec<Bytes>, Damage> {
    let [snapshot] = ids(source.key, SNAPSHOT)?;
    let tables = Message::read(source.value)?.integers(SCHEMA_CHANGED_TABLES)?;
    Ok(tables
        .into_iter()
        .map(|table| key(SCHEMA_VERSION, &[table, snapshot]))
        .collect())
}

fn add_rows(source: Source<'_>, beside: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let version = Message::read(source.value)?.integer(SCHEMA_VERSION_OF_SNAPSHOT)?;
    let missing = rows_beside(source)?.into_iter().zip(beside);
    let missing = missing.filter(|(_, found)| found.is_none());
    Ok(missing.map(|(key, _)| row(key, version)).collect())
}

fn row(key: Bytes, version: u64) -> Action {
    Action::Put {
        key,
        value: integers_message(&[(1, version)]),
    }
}

/// The oldest file of each table, and its rows, as they are come by in order.
#[derive(Debug, Default)]
pub(crate) struct Floors {
    oldest_file: BTreeMap<u64, u64>,
    /// Per table the first row: (begin snapshot, schema version).
    first_row: BTreeMap<u64, (u64, u64)>,
    /// The schema version of the newest snapshot.
    newest_version: u64,
}

impl Floors {
    /// Notes a data file, ended or not.
    pub(crate) fn file(&mut self, source: Source<'_>) -> Result<(), Damage> {
        let value = Message::read(source.value)?;
        let (table, begin) = (value.integer(2)?, value.integer(3)?);
        let oldest = self.oldest_file.entry(table).or_insert(begin);
        *oldest = begin.min(*oldest);
        Ok(())
    }

    /// Notes a row; those of a table come ascending by snapshot.
    pub(crate) fn row(&mut self, source: Source<'_>) -> Result<(), Damage> {
        let [table, begin] = ids(source.key, SCHEMA_VERSION)?;
        let version = Message::read(source.value)?.integer(1)?;
        self.first_row.entry(table).or_insert((begin, version));
        Ok(())
    }

    /// Notes a snapshot; they come in order.
    pub(crate) fn snapshot(&mut self, source: Source<'_>) -> Result<(), Damage> {
        self.newest_version = Message::read(source.value)?.integer(SCHEMA_VERSION_OF_SNAPSHOT)?;
        Ok(())
    }

    /// The rows that are missing.
    pub(crate) fn missing(&self) -> Vec<Action> {
        let mut rows = Vec::new();
        for (table, oldest) in &self.oldest_file {
            let first = self.first_row.get(table);
            if first.is_none_or(|(begin, _)| begin > oldest) {
                let version = first.map_or(self.newest_version, |(_, version)| *version);
                rows.push(row(key(SCHEMA_VERSION, &[*table, *oldest]), version));
            }
        }
        rows
    }
}
