//! The model: tables with the lifetimes of their columns and of each version of their rows. It knows nothing of chunks,
//! files or records.

use std::collections::{BTreeMap, BTreeSet};

/// The rows of each table by its name: row id and the values of its columns in order, sorted.
pub type Shown = BTreeMap<String, Vec<(u64, Vec<Option<i64>>)>>;

/// Whether something with this lifetime is seen at a snapshot.
pub fn is_seen(begin: u64, end: Option<u64>, snapshot: u64) -> bool {
    begin <= snapshot && end.is_none_or(|end| snapshot < end)
}

#[derive(Debug)]
pub struct Row {
    pub row_id: u64,
    pub begin: u64,
    pub end: Option<u64>,
    /// By column id.
    pub values: BTreeMap<u64, Option<i64>>,
}

#[derive(Debug)]
pub struct Column {
    pub column_id: u64,
    pub name: String,
    pub begin: u64,
    pub end: Option<u64>,
    /// What rows have that were written before the column was there.
    pub default: Option<i64>,
}

#[derive(Debug)]
pub struct Table {
    pub table_id: u64,
    pub name: String,
    pub begin: u64,
    pub end: Option<u64>,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

impl Table {
    pub fn live_columns(&self) -> Vec<&Column> {
        self.columns
            .iter()
            .filter(|column| column.end.is_none())
            .collect()
    }

    fn shown_at(&self, snapshot: u64) -> Vec<(u64, Vec<Option<i64>>)> {
        let columns = self.columns.iter();
        let columns: Vec<&Column> = columns
            .filter(|column| is_seen(column.begin, column.end, snapshot))
            .collect();
        let value = |row: &Row, column: &Column| match row.values.get(&column.column_id) {
            Some(value) => *value,
            None => column.default,
        };
        let rows = self
            .rows
            .iter()
            .filter(|row| is_seen(row.begin, row.end, snapshot));
        let mut shown: Vec<_> = rows
            .map(|row| {
                (
                    row.row_id,
                    columns.iter().map(|column| value(row, column)).collect(),
                )
            })
            .collect();
        shown.sort();
        shown
    }
}

#[derive(Debug, Default)]
pub struct Model {
    pub tables: Vec<Table>,
    /// Those that have not expired.
    pub snapshots: BTreeSet<u64>,
}

impl Model {
    pub fn live_tables(&self) -> Vec<usize> {
        let tables = self.tables.iter().enumerate();
        tables
            .filter(|(_, table)| table.end.is_none())
            .map(|(at, _)| at)
            .collect()
    }

    pub fn newest(&self) -> u64 {
        self.snapshots.last().copied().unwrap()
    }

    pub fn shown_at(&self, snapshot: u64) -> Shown {
        let tables = self.tables.iter();
        tables
            .filter(|table| is_seen(table.begin, table.end, snapshot))
            .map(|table| (table.name.clone(), table.shown_at(snapshot)))
            .collect()
    }
}
