//! Flushing: inlined rows, window by window, into Parquet files that DuckLake reads, and their removal once they are there. Which
//! tables are flushed, where the files go and how they are registered is the committer's.

mod column;
mod convert;
mod data_file;
mod delete_file;
mod encrypted;
mod nested_text;
mod ordered_rows;
mod parquet_options;
mod partition;
mod row_id_column;
mod row_multiset;
mod row_windows;
mod scalars;
mod sorted_rows;
mod statistics;
mod tail;
mod value_text;

use arrow_array::{Array, RecordBatch};
use parquet::errors::ParquetError;

use crate::error::InlineError;

pub use column::FlushColumn;
pub use data_file::{DataFileStream, FlushLayout, FlushedFile};
pub use delete_file::{DeleteFileFormat, read_delete_file, write_delete_file};
pub use ordered_rows::SortField;
pub use parquet_options::ParquetOptions;
pub use partition::{PartitionField, PartitionTransform};
pub use row_id_column::read_row_ids;
pub use row_multiset::RowMultiset;
pub use row_windows::{FLUSH_WINDOW_ROWS, FlushWindow, InlinedRows, flushable_rows};
pub use statistics::ColumnStatistics;

/// Bytes of the rows of a batch, whatever else lies in the memory that its arrays are slices of.
fn batch_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| {
        let sliced = column.to_data().get_slice_memory_size();
        sliced.unwrap_or_else(|_| column.get_array_memory_size())
    });
    bytes.sum()
}

fn parquet_error(error: ParquetError) -> InlineError {
    let ParquetError::External(source) = error else {
        return InlineError::Parquet {
            detail: error.to_string(),
        };
    };
    InlineError::Parquet {
        detail: source.to_string(),
    }
}
