//! What a client stages, as data: changes of records, of inlined rows, and the second half of a snapshot.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use moraine_codec::Record;
use moraine_inline::RowMultiset;
use moraine_keys::Key;

/// A staged change to one record, verbatim as the client wrote it.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A new record. A versioned record whose `end_snapshot` is set goes to history. Refused when its key is taken.
    /// Snapshots are not inserted this way; see [`crate::CatalogTransaction::insert_snapshot`].
    Insert(Record),
    /// A record with new content, under the same key or another. Ending a version is a replacement of its current key
    /// by a record with `end_snapshot` set. Refused when `old` does not exist or the new key is taken.
    Replace {
        /// The key the record has now.
        old: Key,
        /// The record as it is to be.
        new: Record,
    },
    /// A hard deletion. Refused when the record does not exist, statistics excepted.
    Remove {
        /// The record's key.
        key: Key,
    },
}

/// A staged change to inlined rows (RFC 0005).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InlineChange {
    /// `CREATE TABLE IF NOT EXISTS ducklake_inlined_data_<table_id>_<schema_version>` with these user columns.
    CreateTable {
        /// The table.
        table_id: u64,
        /// The schema version its rows are inlined under.
        schema_version: u64,
        /// The user columns, without row id and snapshots.
        schema: SchemaRef,
    },
    /// A row of `ducklake_inlined_data_tables`. It may come before the table; the table must exist at commit.
    Register {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
    },
    /// The deletion of a row of `ducklake_inlined_data_tables`.
    Deregister {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
    },
    /// `DROP TABLE ducklake_inlined_data_<table_id>_<schema_version>`.
    DropTable {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
    },
    /// New inlined rows.
    Insert {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// The snapshot at which the rows begin.
        begin_snapshot: u64,
        /// One row id per row of `batch`.
        row_ids: Vec<u64>,
        /// The user columns.
        batch: RecordBatch,
    },
    /// The end of inlined rows.
    EndRows {
        /// The table.
        table_id: u64,
        /// The versions that end: (row id, begin snapshot).
        rows: Vec<(u64, u64)>,
        /// The snapshot at which they end.
        end_snapshot: u64,
    },
    /// The hard deletion of inlined rows, by a flush or an expiry.
    RemoveRows {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// The versions to remove: (row id, begin snapshot).
        rows: Vec<(u64, u64)>,
    },
    /// The hard deletion of all inlined rows that began by a snapshot, by a flush that has written them to data files.
    Drain {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// The snapshot that was flushed.
        until_snapshot: u64,
        /// The row ids in the files. Others than are removed refuse the call.
        written: RowMultiset,
    },
    /// `CREATE TABLE IF NOT EXISTS ducklake_inlined_delete_<table_id>`.
    CreateFileDeleteTable {
        /// The table.
        table_id: u64,
    },
    /// `DROP TABLE ducklake_inlined_delete_<table_id>`.
    DropFileDeleteTable {
        /// The table.
        table_id: u64,
    },
    /// Rows deleted from data files without a delete file.
    InsertFileDeletes {
        /// The table.
        table_id: u64,
        /// (data file id, position in the file, begin snapshot)
        rows: Vec<(u64, u64, u64)>,
    },
    /// The removal of such rows. An absent one refuses the whole call.
    RemoveFileDeletes {
        /// The table.
        table_id: u64,
        /// (data file id, position in the file)
        rows: Vec<(u64, u64)>,
    },
}

/// A row of `ducklake_snapshot_changes`, verbatim. `None` is SQL NULL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotChanges {
    /// The snapshot the row belongs to.
    pub snapshot_id: u64,
    /// What the snapshot changed; see [`crate::ChangesMade`].
    pub changes_made: Option<String>,
    /// Who committed.
    pub author: Option<String>,
    /// The commit message.
    pub commit_message: Option<String>,
    /// Anything else the client attached.
    pub commit_extra_info: Option<String>,
}
