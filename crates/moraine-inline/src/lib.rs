//! Not a table format, not a query engine and not a transaction: this crate does not know SQL, does not number snapshots and does
//! not decide when to flush. It keeps the rows that DuckLake inlines into its catalog (RFC 0005) as records of a moraine store:
//!
//! - a **schema record** for each inlined table `ducklake_inlined_data_<t>_<v>` ([`create_table`], [`register`], [`versions`]),
//! - **chunks** of rows as Arrow IPC record batches with dense row ids ([`insert`]), each with a **locator** in a directory,
//! - **tombstones**, the events that end versions of rows ([`end_rows`]),
//! - **deletions from Parquet files** ([`insert_file_deletes`]) and the marker of their table.
//!
//! Everything is staged on a [`moraine_store::Staging`] and read from any [`moraine_store::Read`]; whoever owns the commit makes it
//! one batch. Nothing is edited in place: an UPDATE is a tombstone and a new chunk, and only a flush or expiry
//! ([`remove_rows`], [`drop_version`], [`drop_table`]) takes records away. A version of a row ends at the smallest tombstone
//! after its begin.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{Int64Array, RecordBatch, StringArray, cast::AsArray};
//! use arrow_schema::{DataType, Field, Schema};
//! use moraine_inline::{Directories, RowPredicate, create_table, end_rows, insert, select};
//! use moraine_store::{MemoryStore, Staging, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let store = MemoryStore::new();
//! let mut staging = Staging::new(store.view()?);
//! // Kept as long as the store is open: which chunk directories are complete.
//! let directories = Arc::new(Directories::default()).at(0);
//!
//! // Table 7 at schema version 1 has two columns; snapshot 5 inserts rows 0 to 2.
//! let columns = vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)];
//! let schema = Arc::new(Schema::new(columns));
//! create_table(&mut staging, 7, 1, &schema, true).await?;
//! let ids = Arc::new(Int64Array::from(vec![10, 20, 30]));
//! let names = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
//! let rows = RecordBatch::try_new(schema, vec![ids, names])?;
//! insert(&mut staging, &directories, 7, 1, 5, &[0, 1, 2], &rows).await?;
//!
//! // Snapshot 6 deletes row 1. A reader at 5 still sees it, one at 6 does not.
//! end_rows(&mut staging, 7, &[(1, 5)], 6).await?;
//! assert_eq!(select(&staging, &directories, 7, 1, &RowPredicate::visible_at(5)).await?.rows().len(), 3);
//! let seen = select(&staging, &directories, 7, 1, &RowPredicate::visible_at(6)).await?;
//! let batch = seen.window(&staging, 0..seen.rows().len(), &[0]).await?;
//! assert_eq!(batch.column(0).as_primitive::<arrow_array::types::Int64Type>().values(), &[10, 30]);
//! # Ok(())
//! # })
//! # }
//! ```

mod chunk;
mod column_type;
mod directory;
mod directory_memory;
mod error;
mod file_delete;
mod flush;
mod frame;
mod layout;
mod removal;
mod row_ids;
mod schema_message;
mod schema_record;
mod selection;
mod span;
pub mod text;
mod tombstone;

pub use chunk::{INLINE_CHUNK_ROWS_MAX, insert};
pub use directory_memory::{Directories, DirectoriesAt};
pub use error::InlineError;
pub use file_delete::{
    create_file_delete_table, drop_file_delete_table, file_delete_table_exists, file_delete_tables,
    file_deletes, insert_file_deletes, remove_deletes_of_file, remove_file_deletes,
};
pub use flush::{
    ColumnStatistics, DataFileStream, DeleteFileFormat, FLUSH_WINDOW_ROWS, FlushColumn, FlushLayout,
    FlushWindow, FlushedFile, InlinedRows, ParquetOptions, PartitionField, PartitionTransform, RowMultiset,
    SortField, flushable_rows, read_delete_file, read_row_ids, write_delete_file,
};
pub use frame::{FrameError, decode_body, decode_schema, encode_body, encode_schema};
pub use removal::{drain, drop_table, drop_version, remove_rows};
pub use row_ids::RowIds;
pub use schema_record::{create_table, deregister, register, schema, versions};
pub use selection::{EndPredicate, RowPredicate, RowVersion, Selection, select};
pub use tombstone::end_rows;
