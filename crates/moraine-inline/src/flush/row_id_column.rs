//! Which rows a data file holds, from its column of row ids alone, by ranges of the file.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::InlineError;
use crate::flush::data_file::ROW_ID_COLUMN;
use crate::flush::delete_file::reader_options;
use crate::flush::encrypted::SealedFooter;
use crate::flush::parquet_error;
use crate::flush::row_multiset::RowMultiset;

/// Bytes before the end of the file that are read first; the footer is longer only in files of very many row groups or columns.
const TAIL_BYTES: u64 = 64 * 1024;

/// Adds the row ids of a data file of `file_bytes` bytes, whose footer takes the last `footer_bytes` of them, to `rows`; `false` when
/// the file has no column of row ids. `fetch` gives ranges of the file.
///
/// # Errors
/// [`InlineError::Parquet`] for what is no such file; what `fetch` says.
pub async fn read_row_ids<F, Fut>(
    file_bytes: u64,
    footer_bytes: u64,
    key: Option<&[u8]>,
    fetch: F,
    rows: &mut RowMultiset,
) -> Result<bool, InlineError>
where
    F: Fn(Range<u64>) -> Fut,
    Fut: Future<Output = Result<Bytes, InlineError>>,
{
    let tail = TAIL_BYTES.max(footer_bytes.saturating_add(8)).min(file_bytes);
    let part = |range: Range<u64>| {
        let fetched = fetch(range.clone());
        async move {
            Ok::<_, InlineError>(Part {
                file_bytes,
                start: range.start,
                bytes: fetched.await?,
            })
        }
    };
    let footer = part(file_bytes - tail..file_bytes).await?;
    let sealed = key
        .map(|key| SealedFooter::open(&footer.bytes, key))
        .transpose()?
        .flatten();
    let metadata = match &sealed {
        Some(sealed) => {
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::try_new(Arc::new(sealed.metadata().clone()), options)
        }
        None => ArrowReaderMetadata::load(&footer, reader_options(key)?),
    };
    let metadata = metadata.map_err(parquet_error)?;
    let columns = metadata.parquet_schema().columns();
    let Some(position) = columns
        .iter()
        .position(|column| column.path().string() == ROW_ID_COLUMN)
    else {
        return Ok(false);
    };
    for group in 0..metadata.metadata().num_row_groups() {
        let column = metadata.metadata().row_group(group).column(position);
        let (start, length) = column.byte_range();
        let mut chunk = part(start..start.saturating_add(length).min(file_bytes)).await?;
        let mut reading = metadata.clone();
        if let Some(sealed) = &sealed {
            (reading, chunk.bytes) = sealed.column(group, position, &chunk.bytes)?;
        }
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(chunk, reading);
        let only = ProjectionMask::leaves(metadata.parquet_schema(), [position]);
        let reader = reader.with_row_groups(vec![group]).with_projection(only).build();
        for batch in reader.map_err(parquet_error)? {
            let batch = batch.map_err(|source| InlineError::Assemble { source })?;
            let ids = batch
                .columns()
                .first()
                .and_then(|ids| ids.as_primitive_opt::<Int64Type>());
            for row in ids.into_iter().flatten() {
                let row_id = row.and_then(|row_id| u64::try_from(row_id).ok());
                let row_id = row_id.ok_or_else(|| InlineError::Parquet {
                    detail: "a data file has a row without a row id".to_owned(),
                })?;
                rows.add_row(row_id);
            }
        }
    }
    Ok(true)
}

/// A part of a file that has been fetched.
struct Part {
    file_bytes: u64,
    start: u64,
    bytes: Bytes,
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.file_bytes
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let from = self.within(start)?;
        Ok(self.bytes.slice(from..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let from = self.within(start)?;
        let to = from.saturating_add(length);
        if to > self.bytes.len() {
            return Err(ParquetError::EOF(
                "the part of the file that was fetched is too short".to_owned(),
            ));
        }
        Ok(self.bytes.slice(from..to))
    }
}

impl Part {
    fn within(&self, start: u64) -> Result<usize, ParquetError> {
        let from = start
            .checked_sub(self.start)
            .and_then(|from| usize::try_from(from).ok());
        let from = from.filter(|from| *from <= self.bytes.len());
        from.ok_or_else(|| ParquetError::EOF("outside the part of the file that was fetched".to_owned()))
    }
}
