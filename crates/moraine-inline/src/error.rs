//! What can go wrong with inlined rows. Reasons of the store and of the framing are carried, not repeated.

use arrow_schema::ArrowError;
use moraine_codec::EncodeError;
use moraine_store::ReadError;

use crate::frame::FrameError;

/// Why an operation on inlined rows was refused. Whatever is refused has staged nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InlineError {
    /// The store gave no answer, or what it holds is damaged ([`ReadError::Corruption`], naming the key).
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record does not belong under its key.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The schema or the rows cannot be written as an inlined chunk.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// No such inlined table.
    #[error(
        "ducklake_inlined_data_{table_id}_{schema_version} does not exist; create it before registering it or writing to it"
    )]
    NoSuchVersion {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
    },
    /// The inlined table exists with other columns, and something depends on them.
    #[error(
        "ducklake_inlined_data_{table_id}_{schema_version} exists with other columns and {held_by}; use another schema version"
    )]
    SchemaConflict {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// What keeps the stored columns from being replaced.
        held_by: &'static str,
    },
    /// An insert of no rows.
    #[error("an inlined insert needs at least one row; leave the statement out instead")]
    EmptyInsert,
    /// Row ids and rows differ in number.
    #[error("{row_ids} row ids were given for {rows} rows; give one for each row")]
    RowIdCount {
        /// Row ids given.
        row_ids: usize,
        /// Rows given.
        rows: usize,
    },
    /// A row id that DuckLake's BIGINT columns cannot hold.
    #[error("row id {row_id} is above the greatest BIGINT; row ids must stay below 2^63")]
    RowIdOverflow {
        /// The row id.
        row_id: u64,
    },
    /// The batch's columns are not those the inlined table was created with.
    #[error("the rows do not fit the columns of ducklake_inlined_data_{table_id}_{schema_version}: {source}")]
    BatchMismatch {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// Arrow's reason.
        source: ArrowError,
    },
    /// The same version of a row twice.
    #[error(
        "row {row_id} of snapshot {begin_snapshot} is already inlined in table {table_id}; insert it once"
    )]
    DuplicateRow {
        /// The table.
        table_id: u64,
        /// The row.
        row_id: u64,
        /// The snapshot that inserts it.
        begin_snapshot: u64,
    },
    /// A version of a row that is not there.
    #[error(
        "row {row_id} of snapshot {begin_snapshot} is not in ducklake_inlined_data_{table_id}_{schema_version}; select again"
    )]
    RowNotFound {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// The row.
        row_id: u64,
        /// The snapshot that is said to have inserted it.
        begin_snapshot: u64,
    },
    /// A row version cannot end at or before its own begin.
    #[error(
        "row {row_id} began at snapshot {begin_snapshot} and cannot end at {end_snapshot}; end it at a later snapshot"
    )]
    EndNotAfterBegin {
        /// The row.
        row_id: u64,
        /// Its begin.
        begin_snapshot: u64,
        /// The end that was asked for.
        end_snapshot: u64,
    },
    /// The row version ended earlier; a later end would cut short whatever came after it.
    #[error("row {row_id} of snapshot {begin_snapshot} already ended at {ended}; end only live rows")]
    AlreadyEnded {
        /// The row.
        row_id: u64,
        /// Its begin.
        begin_snapshot: u64,
        /// Its end.
        ended: u64,
    },
    /// The same inlined deletion twice.
    #[error(
        "row {row_id} of data file {data_file_id} of table {table_id} is already deleted; delete it once"
    )]
    DuplicateFileDelete {
        /// The table.
        table_id: u64,
        /// The data file.
        data_file_id: u64,
        /// The row, as its position in the file.
        row_id: u64,
    },
    /// An inlined deletion that is not there.
    #[error(
        "no inlined deletion of row {row_id} of data file {data_file_id} in table {table_id}; select again"
    )]
    FileDeleteNotFound {
        /// The table.
        table_id: u64,
        /// The data file.
        data_file_id: u64,
        /// The row, as its position in the file.
        row_id: u64,
    },
    /// A flush whose files hold other rows than it removes.
    #[error(
        "a flush of ducklake_inlined_data_{table_id}_{schema_version} wrote {written} rows and removes {removed}, which differ from \
         row id {row_id} on, so rows would be lost or doubled; nothing was changed: flush again"
    )]
    FlushMismatch {
        /// The table.
        table_id: u64,
        /// The schema version.
        schema_version: u64,
        /// The first row id that occurs more often in one than in the other.
        row_id: u64,
        /// Rows written.
        written: u64,
        /// Rows to be removed.
        removed: u64,
    },
    /// A column that a flush cannot write to Parquet as DuckLake would.
    #[error(
        "column \"{column}\" is a {ducklake_type} kept as {stored}, which cannot be written to Parquet here; flush the table from \
         DuckDB: CALL ducklake_flush_inlined_data('<catalog>', table_name => '<table>')"
    )]
    FlushColumn {
        /// The column.
        column: String,
        /// Its type in `ducklake_column`.
        ducklake_type: String,
        /// The Arrow type of its chunks.
        stored: String,
    },
    /// A value that Parquet does not hold as it is.
    #[error(
        "column \"{column}\": the value {value:?} {reason}; change the value, or flush the table from DuckDB: \
         CALL ducklake_flush_inlined_data('<catalog>', table_name => '<table>')"
    )]
    FlushValue {
        /// The column.
        column: String,
        /// The value as text, cut short.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A column that decides on the order of a table's files and cannot here.
    #[error(
        "the table is {what} by column \"{column}\", whose type is not one to do so by here; flush the table from DuckDB: \
         CALL ducklake_flush_inlined_data('<catalog>', table_name => '<table>')"
    )]
    FlushOrder {
        /// The column.
        column: String,
        /// `partitioned` or `sorted`.
        what: String,
    },
    /// A temporary file could not be used.
    #[error("a temporary file could not be used: {source}; make room, or set TMPDIR to another folder")]
    Spool {
        /// The reason.
        source: std::io::Error,
    },
    /// Parquet could not be written or read.
    #[error("Parquet: {detail}")]
    Parquet {
        /// What the writer said.
        detail: String,
    },
    /// A window that leaves the selection.
    #[error("rows {start}..{end} were asked of a selection of {rows}; stay inside it")]
    WindowOutOfBounds {
        /// First position.
        start: usize,
        /// Position after the last.
        end: usize,
        /// Rows selected.
        rows: usize,
    },
    /// Arrow could not put the rows of a window together.
    #[error("cannot assemble the selected rows: {source}; project existing columns only")]
    Assemble {
        /// Arrow's reason.
        source: ArrowError,
    },
}

/// Damage at `key`.
pub(crate) fn corruption(key: &(impl ToString + ?Sized), detail: impl Into<String>) -> InlineError {
    InlineError::Read(ReadError::corruption(key.to_string(), detail))
}
