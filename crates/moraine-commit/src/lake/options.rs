//! Where an option of a lake holds.

use crate::lake::reading::{GLOBAL_SCOPE, SCHEMA_SCOPE, TABLE_SCOPE};

/// Where an option holds: a row of `ducklake_metadata` has a scope. What is said of a table goes before what is said of
/// its schema, and that before what is said of the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionScope {
    /// In all of the lake.
    Global,
    /// In the schema of this id.
    Schema(u64),
    /// In the table of this id.
    Table(u64),
}

impl OptionScope {
    /// (scope kind, scope id) of the key.
    pub(crate) fn key(self) -> (u64, u64) {
        match self {
            OptionScope::Global => (GLOBAL_SCOPE, 0),
            OptionScope::Schema(schema_id) => (SCHEMA_SCOPE, schema_id),
            OptionScope::Table(table_id) => (TABLE_SCOPE, table_id),
        }
    }
}
