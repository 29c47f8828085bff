//! Kinds of subspace `inline` (RFC 0005): rows kept in the catalog, their deletions, and the directory of both.

use crate::error::KeyError;
use crate::key::{InlineKey, InlineOperation, Key};
use crate::kind::{Live, TableChild, kind, prefix_with_ids, table_scoped, wrong_kind};
use crate::range::KeyRange;

/// Declares a kind of `inline/live`.
macro_rules! live {
    ($(#[$meta:meta])* $name:ident, $variant:ident, $text:literal, { $($fields:tt)* }) => {
        kind! {
            $(#[$meta])*
            $name, concat!("inline/live/", $text), { $($fields)* },
            key => Key::Inline(InlineKey::Live(InlineOperation::$variant(key)))
        }

        impl Live for $name {
            const ARCHIVED_NAME: &'static str = concat!("inline/archived/", $text);

            fn to_operation(&self) -> InlineOperation {
                InlineOperation::$variant(self.clone())
            }

            fn from_operation(operation: InlineOperation) -> Result<Self, KeyError> {
                match operation {
                    InlineOperation::$variant(key) => Ok(key),
                    other => Err(wrong_kind(
                        <Self as crate::kind::Kind>::NAME,
                        &Key::Inline(InlineKey::Live(other)),
                    )),
                }
            }
        }
    };
}

kind! {
    /// The Arrow schema of the rows inlined under one schema version of a table.
    InlineSchemaKey, "inline/schema", {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
    }, key => Key::Inline(InlineKey::Schema(key))
}

live! {
    /// A chunk of inlined rows with dense row ids.
    InlineInsertKey, Insert, "insert", {
        /// The table.
        table_id: u64,
        /// The schema version that the rows have.
        schema_version: u64,
        /// The snapshot that inserted the rows.
        begin_snapshot: u64,
        /// Position among the chunks of that snapshot, table and schema version.
        chunk_seq: u64,
    }
}

live! {
    /// Legacy: the end of an inlined row, one per row id. Replaced by [`RowTombstoneKey`] in format 9.
    InlineDeleteKey, Delete, "delete", {
        /// The table.
        table_id: u64,
        /// The row.
        row_id: u64,
    }
}

live! {
    /// The inlined deletion of one row of a data file (a row of `ducklake_inlined_delete_<t>`).
    InlineFileDeleteKey, FileDelete, "file_delete", {
        /// The table.
        table_id: u64,
        /// The data file.
        data_file_id: u64,
        /// The row, as its position in the file.
        row_id: u64,
    }
}

kind! {
    /// Marks that the table's `ducklake_inlined_delete_<t>` exists.
    FileDeleteTableKey, "inline/file_delete_table", {
        /// The table.
        table_id: u64,
    }, key => Key::Inline(InlineKey::FileDeleteTable(key))
}

kind! {
    /// Legacy: directory entry of a chunk by its last row alone. Replaced by [`ChunkLocatorKey`] in format 8.
    ChunkRangeKey, "inline/chunk_range", {
        /// The table.
        table_id: u64,
        /// The last row of the chunk, inclusive.
        row_id_end: u64,
    }, key => Key::Inline(InlineKey::ChunkRange(key))
}

kind! {
    /// Marks that `ducklake_inlined_data_<t>_<v>` no longer exists, although its schema record does.
    SchemaDroppedKey, "inline/schema_dropped", {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
    }, key => Key::Inline(InlineKey::SchemaDropped(key))
}

kind! {
    /// Directory entry of a chunk: its last row, then the chunk's identity.
    ChunkLocatorKey, "inline/chunk_locator", {
        /// The table.
        table_id: u64,
        /// The last row of the chunk, inclusive.
        row_id_end: u64,
        /// The chunk's schema version.
        schema_version: u64,
        /// The chunk's snapshot.
        begin_snapshot: u64,
        /// The chunk's position within that snapshot, table and schema version.
        chunk_seq: u64,
    }, key => Key::Inline(InlineKey::ChunkLocator(key))
}

kind! {
    /// The end of an inlined row: versions of the row that began before `end_snapshot` are not seen from it on.
    RowTombstoneKey, "inline/row_tombstone", {
        /// The table.
        table_id: u64,
        /// The row.
        row_id: u64,
        /// The snapshot that deleted the row.
        end_snapshot: u64,
    }, key => Key::Inline(InlineKey::RowTombstone(key))
}

table_scoped!(
    InlineSchemaKey.schema_version,
    InlineInsertKey.schema_version,
    InlineDeleteKey.row_id,
    InlineFileDeleteKey.data_file_id,
    FileDeleteTableKey,
    ChunkRangeKey.row_id_end,
    SchemaDroppedKey.schema_version,
    ChunkLocatorKey.row_id_end,
    RowTombstoneKey.row_id,
);

impl InlineInsertKey {
    /// All chunks of one schema version of a table, by snapshot.
    #[must_use]
    pub fn scan_version(table_id: u64, schema_version: u64) -> KeyRange {
        Self::scan_table_ids(table_id, schema_version..=schema_version)
    }

    /// The chunks of one schema version of a table that one snapshot inserted, in their order.
    #[must_use]
    pub fn scan_snapshot(table_id: u64, schema_version: u64, begin_snapshot: u64) -> KeyRange {
        let least = Self {
            table_id,
            schema_version,
            begin_snapshot,
            chunk_seq: 0,
        };
        KeyRange::prefix(&prefix_with_ids(&least, 3))
    }
}

impl InlineFileDeleteKey {
    /// All inlined deletions from one data file, by row.
    #[must_use]
    pub fn scan_file(table_id: u64, data_file_id: u64) -> KeyRange {
        Self::scan_table_ids(table_id, data_file_id..=data_file_id)
    }
}

impl ChunkLocatorKey {
    /// The directory of a table from the chunks that end at `row_id` on, up to the table's last.
    ///
    /// Every chunk that holds `row_id` is among them, and so are chunks that begin after it.
    #[must_use]
    pub fn scan_from_row(table_id: u64, row_id: u64) -> KeyRange {
        Self::scan_table_ids(table_id, row_id..=u64::MAX)
    }
}

impl RowTombstoneKey {
    /// All ends of one row, ascending.
    #[must_use]
    pub fn scan_row(table_id: u64, row_id: u64) -> KeyRange {
        Self::scan_table_ids(table_id, row_id..=row_id)
    }
}
