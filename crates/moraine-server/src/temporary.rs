//! Temporary tables of a session: a few rows in memory that `UPDATE … FROM` joins with.

use moraine_tables::{Column, Value};

/// A table that lives in one session, and with `ON COMMIT DROP` only until its transaction ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemporaryTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) drop_on_commit: bool,
}
