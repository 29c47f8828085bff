//! The rows of several tables that belong together, side by side: each table comes sorted by the ids that say which rows
//! belong to which, and a group of all of them is in memory at a time. Rows that break the rules of single rows are noted
//! and left out here.

use std::collections::VecDeque;

use moraine_tables::{Relation, Value};

use crate::import::error::{Problem, Problems};
use crate::import::rules::{number, required};
use crate::lake::{LakeError, Query, QueryColumn, Raw, Rows, Source, value_of};

/// Columns of a row that a message shows.
const COLUMNS_SHOWN_MAX: usize = 4;

/// The ids that the rows of a group share.
pub(crate) type GroupKey = [u64; 2];

/// What is noted while rows come.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// What was found to be wrong.
    pub(crate) problems: Problems,
    /// The newest snapshot; no row begins or ends after it.
    pub(crate) newest: u64,
    /// The first thing found that no repair can make good.
    pub(crate) beyond_repair: Option<String>,
}

impl Checks {
    /// Notes a row that is left out.
    pub(crate) fn leave_out(&mut self, relation: Relation, row: String, detail: String) {
        self.problems.add(Problem {
            table: relation.name(),
            row,
            detail,
            repair: "the row is left out".to_owned(),
        });
    }
}

/// The rows of one table, sorted, grouped by ids.
pub(crate) struct KeyedStream {
    relation: Relation,
    columns: Vec<QueryColumn>,
    required: Vec<usize>,
    key: Vec<usize>,
    versions: Vec<usize>,
    rows: Box<dyn Rows>,
    ahead: VecDeque<(GroupKey, Vec<Value>)>,
    is_done: bool,
    last: GroupKey,
}

impl KeyedStream {
    /// The rows of `query`, grouped by the columns it is sorted by, at most two.
    pub(crate) async fn open(
        source: &dyn Source,
        relation: Relation,
        query: &Query,
    ) -> Result<Self, LakeError> {
        let position = |name: &str| query.columns.iter().position(|column| column.name == name);
        let positions = |names: &[&str]| names.iter().filter_map(|name| position(name)).collect();
        let order: Vec<&str> = query.order.iter().map(String::as_str).take(2).collect();
        Ok(KeyedStream {
            relation,
            columns: query.columns.clone(),
            required: positions(required(relation)),
            key: positions(&order),
            versions: positions(&["begin_snapshot", "end_snapshot"]),
            rows: source.rows(query).await?,
            ahead: VecDeque::new(),
            is_done: false,
            last: GroupKey::default(),
        })
    }

    /// The ids of the next row; `None` at the end.
    pub(crate) async fn peek(&mut self, checks: &mut Checks) -> Result<Option<GroupKey>, LakeError> {
        while self.ahead.is_empty() && !self.is_done {
            match self.rows.next().await? {
                None => self.is_done = true,
                Some(batch) => {
                    for raw in batch {
                        self.admit(&raw, checks)?;
                    }
                }
            }
        }
        Ok(self.ahead.front().map(|(key, _)| *key))
    }

    /// The rows of the group `key`, which is the one that [`KeyedStream::peek`] shows, or another.
    pub(crate) async fn take(
        &mut self,
        key: GroupKey,
        checks: &mut Checks,
    ) -> Result<Vec<Vec<Value>>, LakeError> {
        let mut group = Vec::new();
        while self.peek(checks).await? == Some(key) {
            group.extend(self.ahead.pop_front().map(|(_, row)| row));
        }
        Ok(group)
    }

    /// The next rows, whatever their group; empty at the end.
    pub(crate) async fn next_rows(&mut self, checks: &mut Checks) -> Result<Vec<Vec<Value>>, LakeError> {
        self.peek(checks).await?;
        Ok(self.ahead.drain(..).map(|(_, row)| row).collect())
    }

    /// Takes a row in, or notes why not.
    fn admit(&mut self, raw: &[Raw], checks: &mut Checks) -> Result<(), LakeError> {
        let mut row = Vec::with_capacity(raw.len());
        for (value, column) in raw.iter().zip(&self.columns) {
            match value_of(value, column.column_type) {
                Ok(value) => row.push(value),
                Err(detail) => {
                    let detail = format!("{}: {detail}", column.name);
                    checks.leave_out(self.relation, self.shown(raw), detail);
                    return Ok(());
                }
            }
        }
        if let Some(detail) = self.fault(&row, checks.newest) {
            checks.leave_out(self.relation, self.shown(raw), detail);
            return Ok(());
        }
        let mut key = GroupKey::default();
        for (part, column) in key.iter_mut().zip(&self.key) {
            match number(&row, *column) {
                Some(id) => *part = id,
                None => {
                    let detail = format!("{} is no id", self.name(*column));
                    checks.leave_out(self.relation, self.shown(raw), detail);
                    return Ok(());
                }
            }
        }
        if key < self.last {
            return Err(LakeError::Database {
                catalog: self.relation.name(),
                detail: format!("its rows did not come sorted: {key:?} after {:?}", self.last),
            });
        }
        self.last = key;
        self.ahead.push_back((key, row));
        Ok(())
    }

    fn fault(&self, row: &[Value], newest: u64) -> Option<String> {
        let null = |column: &&usize| row.get(**column).is_none_or(Value::is_null);
        if let Some(column) = self.required.iter().find(null) {
            return Some(format!("{} is NULL", self.name(*column)));
        }
        let negative = |column: &&usize| matches!(row.get(**column), Some(Value::Int64(..0)));
        if let Some(column) = self.versions.iter().find(negative) {
            return Some(format!("{} is negative", self.name(*column)));
        }
        let late = |column: &&usize| number(row, **column).is_some_and(|snapshot| snapshot > newest);
        self.versions.iter().find(late).map(|column| {
            let snapshot = number(row, *column).unwrap_or_default();
            format!(
                "{} is {snapshot}, after the newest snapshot {newest}",
                self.name(*column)
            )
        })
    }

    fn name(&self, column: usize) -> &str {
        self.columns
            .get(column)
            .map_or("?", |column| column.name.as_str())
    }

    fn shown(&self, raw: &[Raw]) -> String {
        let parts = raw
            .iter()
            .zip(&self.columns)
            .take(COLUMNS_SHOWN_MAX)
            .map(|(value, column)| format!("{} {}", column.name, value.shown()));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// A row for a message.
pub(crate) fn shown(relation: Relation, row: &[Value]) -> String {
    let names = moraine_tables::fixed_schema(relation)
        .map(|schema| schema.columns)
        .unwrap_or_default();
    let name = |position: usize| names.get(position).map_or("", |column| column.name.as_str());
    let parts = row
        .iter()
        .take(COLUMNS_SHOWN_MAX)
        .enumerate()
        .map(|(position, value)| format!("{} {}", name(position), crate::lake::raw_of(value).shown()));
    parts.collect::<Vec<_>>().join(", ").trim().to_owned()
}

/// The next group of all streams: its ids, and the rows of each stream that have them. `None` at the end of all.
pub(crate) async fn next_group(
    streams: &mut [KeyedStream],
    checks: &mut Checks,
) -> Result<Option<(GroupKey, Vec<Vec<Vec<Value>>>)>, LakeError> {
    let mut least = None;
    for stream in streams.iter_mut() {
        if let Some(key) = stream.peek(checks).await? {
            least = Some(least.map_or(key, |least: GroupKey| least.min(key)));
        }
    }
    let Some(key) = least else {
        return Ok(None);
    };
    let mut group = Vec::with_capacity(streams.len());
    for stream in streams.iter_mut() {
        group.push(stream.take(key, checks).await?);
    }
    Ok(Some((key, group)))
}
