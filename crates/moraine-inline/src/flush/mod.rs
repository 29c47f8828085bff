//! Flushing: inlined rows, window by window, into Parquet files that DuckLake reads, and their removal once they are there. Which
//! tables are flushed, where the files go and how they are registered is the committer's.

mod parquet_file;
mod row_multiset;
mod row_windows;
mod statistics;

pub use parquet_file::{FlushColumn, FlushedFile, write_data_file, write_delete_file};
pub use row_multiset::RowMultiset;
pub use row_windows::{FLUSH_WINDOW_ROWS, FlushWindow, InlinedRows, flushable_rows};
pub use statistics::ColumnStatistics;
