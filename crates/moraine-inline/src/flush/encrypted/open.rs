//! A Parquet file on its way in: what DuckDB has encrypted, made plain for arrow-rs.

use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};

use crate::error::InlineError;
use crate::flush::encrypted::thrift::{file_crypto, page_header};
use crate::flush::encrypted::{ENCRYPTED_MAGIC, FileKey, TRAILER_BYTES, invalid};
use crate::flush::parquet_error;

/// The footer of a file that is encrypted as DuckDB does.
pub(in crate::flush) struct SealedFooter {
    key: FileKey,
    metadata: ParquetMetaData,
}

/// The pages of one column in one row group, made plain: they begin where the encrypted ones do, and take less room.
struct OpenedChunk {
    metadata: ColumnChunkMetaData,
    start: usize,
    pages: Vec<u8>,
}

impl SealedFooter {
    /// Opens the footer of the file that `end` is the end of; `None` when it is not encrypted, or with additional authenticated
    /// data, which arrow-rs reads itself.
    pub(in crate::flush) fn open(end: &[u8], key: &[u8]) -> Result<Option<Self>, InlineError> {
        let Some((before, trailer)) = end.split_last_chunk::<TRAILER_BYTES>() else {
            return Ok(None);
        };
        let Some(length) = trailer.strip_suffix(ENCRYPTED_MAGIC) else {
            return Ok(None);
        };
        let short = || invalid("the footer is longer than what was read");
        let length = length
            .first_chunk::<4>()
            .map(|length| u32::from_le_bytes(*length));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let start = length.and_then(|length| before.len().checked_sub(length));
        let footer = before.get(start.ok_or_else(short)?..).unwrap_or_default();
        let crypto = file_crypto(footer);
        let crypto = crypto.map_err(|_| invalid("how the file is encrypted is not understood"))?;
        if !crypto.is_gcm || crypto.has_aad {
            return Ok(None);
        }
        let key = FileKey::new(key)?;
        let (plain, _) = key.open(footer.get(crypto.bytes..).unwrap_or_default())?;
        let metadata = ParquetMetaDataReader::decode_metadata(&plain).map_err(parquet_error)?;
        Ok(Some(Self { key, metadata }))
    }

    /// What the footer says: places and sizes of the encrypted parts.
    pub(in crate::flush) fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    /// Makes the pages of column `position` of row group `group` plain: what arrow-rs reads the file by, and what then lies where
    /// the column chunk begins. `sealed` is all of the chunk.
    pub(in crate::flush) fn column(
        &self,
        group: usize,
        position: usize,
        sealed: &[u8],
    ) -> Result<(ArrowReaderMetadata, Bytes), InlineError> {
        let column = self.metadata.row_group(group).column(position);
        let chunk = self.chunk(column, sealed)?;
        let reading = self.reading(
            |g, c| (g, c) == (group, position),
            &mut [chunk.metadata].into_iter(),
        )?;
        Ok((reading, chunk.pages.into()))
    }

    /// Makes a whole file plain: what arrow-rs reads it by, and what it then reads.
    pub(in crate::flush) fn file(&self, content: &[u8]) -> Result<(ArrowReaderMetadata, Bytes), InlineError> {
        let mut plain = vec![0; content.len()];
        let mut columns = Vec::new();
        for column in self
            .metadata
            .row_groups()
            .iter()
            .flat_map(|group| group.columns())
        {
            let (start, length) = range_of(column)?;
            let sealed = content.get(start..).and_then(|rest| rest.get(..length));
            let sealed = sealed.ok_or_else(|| invalid("a column lies behind the end of its file"))?;
            let chunk = self.chunk(column, sealed)?;
            let place = plain
                .get_mut(chunk.start..)
                .and_then(|rest| rest.get_mut(..chunk.pages.len()));
            if let Some(place) = place {
                place.copy_from_slice(&chunk.pages);
            }
            columns.push(chunk.metadata);
        }
        let reading = self.reading(|_, _| true, &mut columns.into_iter())?;
        Ok((reading, plain.into()))
    }

    fn chunk(&self, column: &ColumnChunkMetaData, sealed: &[u8]) -> Result<OpenedChunk, InlineError> {
        let (start, _) = range_of(column)?;
        let data_page = usize::try_from(column.data_page_offset()).ok();
        let mut rest = sealed;
        let mut pages: Vec<u8> = Vec::new();
        let mut first_data_page = 0;
        while !rest.is_empty() {
            if data_page == Some(start.saturating_add(sealed.len() - rest.len())) {
                first_data_page = pages.len();
            }
            let (header, behind) = self.key.open(rest)?;
            let read = page_header(&header);
            let read = read.map_err(|_| invalid("a page header is not understood"))?;
            pages.extend(header);
            let (part, mut behind) = self.key.open(behind)?;
            let has_values = read.level_bytes.is_some_and(|levels| levels < read.page_bytes);
            let mut length = part.len();
            pages.extend(part);
            if has_values {
                let (values, last) = self.key.open(behind)?;
                length += values.len();
                pages.extend(values);
                behind = last;
            }
            if length != read.page_bytes {
                return Err(invalid(format!(
                    "a page of {} bytes has {length}",
                    read.page_bytes
                )));
            }
            rest = behind;
        }
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let metadata = column
            .clone()
            .into_builder()
            .set_data_page_offset(number(start.saturating_add(first_data_page)))
            .set_total_compressed_size(number(pages.len()))
            .build();
        Ok(OpenedChunk {
            metadata: metadata.map_err(parquet_error)?,
            start,
            pages,
        })
    }

    /// The file's metadata with other columns in the places that `is_opened` names.
    fn reading(
        &self,
        is_opened: impl Fn(usize, usize) -> bool,
        opened: &mut dyn Iterator<Item = ColumnChunkMetaData>,
    ) -> Result<ArrowReaderMetadata, InlineError> {
        let mut groups = Vec::new();
        for (group, found) in self.metadata.row_groups().iter().enumerate() {
            let mut columns = Vec::new();
            for (position, column) in found.columns().iter().enumerate() {
                let column = column.clone();
                columns.push(if is_opened(group, position) {
                    opened.next().unwrap_or(column)
                } else {
                    column
                });
            }
            let built: Result<_, ParquetError> =
                found.clone().into_builder().set_column_metadata(columns).build();
            groups.push(built.map_err(parquet_error)?);
        }
        let metadata = ParquetMetaDataBuilder::new(self.metadata.file_metadata().clone())
            .set_row_groups(groups)
            .build();
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        ArrowReaderMetadata::try_new(Arc::new(metadata), options).map_err(parquet_error)
    }
}

/// Where a column chunk begins, and its bytes.
fn range_of(column: &ColumnChunkMetaData) -> Result<(usize, usize), InlineError> {
    let start = column
        .dictionary_page_offset()
        .unwrap_or(column.data_page_offset());
    let numbers = usize::try_from(start)
        .ok()
        .zip(usize::try_from(column.compressed_size()).ok());
    numbers.ok_or_else(|| invalid("a column has no place in its file"))
}
