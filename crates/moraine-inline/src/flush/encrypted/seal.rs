//! A Parquet file on its way out: as arrow-rs writes it, or encrypted page by page as it comes, with the footer made anew.

use std::collections::BTreeMap;
use std::io::Write;

use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter, RowGroupMetaData,
};

use crate::error::InlineError;
use crate::flush::encrypted::thrift::{PLAIN_GCM, Unread, page_header};
use crate::flush::encrypted::{ENCRYPTED_MAGIC, FileKey, TRAILER_BYTES, external};
use crate::flush::parquet_error;
use crate::flush::tail::Tail;

/// Where one file goes.
pub(in crate::flush) struct ParquetOutput<W> {
    out: Tail<W>,
    seal: Option<Seal>,
}

/// A file that has been written.
pub(in crate::flush) struct WrittenParquet {
    /// With the places and sizes of what is in the file.
    pub(in crate::flush) metadata: ParquetMetaData,
    pub(in crate::flush) file_bytes: u64,
    pub(in crate::flush) footer_bytes: u64,
}

struct Seal {
    key: FileKey,
    /// What has come and is not yet a whole page.
    pending: Vec<u8>,
    /// Bytes that have come, and that have gone out.
    taken: u64,
    sealed: u64,
    /// Where parts lie in the file, by where they would lie in a plain one.
    places: BTreeMap<u64, u64>,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Magic,
    Pages,
    /// What comes now is the plain footer, which nobody is to see.
    Footer,
}

impl<W: Write + Send> ParquetOutput<W> {
    /// Encrypts with `key` if there is one.
    pub(in crate::flush) fn new(out: W, key: Option<&[u8]>) -> Result<Self, InlineError> {
        let seal = key.map(|key| {
            Ok::<_, InlineError>(Seal {
                key: FileKey::new(key)?,
                pending: Vec::new(),
                taken: 0,
                sealed: 0,
                places: BTreeMap::new(),
                at: At::Magic,
            })
        });
        Ok(Self {
            out: Tail::new(out),
            seal: seal.transpose()?,
        })
    }

    /// Ends the file that `writer` writes to an output.
    pub(in crate::flush) fn close(
        mut writer: ArrowWriter<&mut Self>,
    ) -> Result<ParquetMetaData, InlineError> {
        writer.flush().map_err(parquet_error)?;
        writer.sync().map_err(|source| InlineError::Spool { source })?;
        writer.inner_mut().end_pages()?;
        writer.close().map_err(parquet_error)
    }

    /// Writes out what is left, given what [`Self::close`] gave.
    pub(in crate::flush) fn finish(
        mut self,
        metadata: ParquetMetaData,
    ) -> Result<WrittenParquet, InlineError> {
        let metadata = match self.seal.take() {
            None => metadata,
            Some(seal) => {
                let metadata = seal.placed(&metadata).map_err(parquet_error)?;
                let footer = seal.footer(&metadata)?;
                self.out
                    .write_all(&footer)
                    .map_err(|source| InlineError::Spool { source })?;
                metadata
            }
        };
        let (file_bytes, footer_bytes) = self.out.finish()?;
        Ok(WrittenParquet {
            metadata,
            file_bytes,
            footer_bytes,
        })
    }

    fn end_pages(&mut self) -> Result<(), InlineError> {
        let Some(seal) = &mut self.seal else {
            return Ok(());
        };
        if !seal.pending.is_empty() {
            return Err(InlineError::Parquet {
                detail: "the last page is not whole".to_owned(),
            });
        }
        seal.places.insert(seal.taken, seal.sealed);
        seal.at = At::Footer;
        Ok(())
    }
}

impl<W: Write> Write for ParquetOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Some(seal) = &mut self.seal else {
            return self.out.write(bytes);
        };
        if seal.at == At::Footer {
            return Ok(bytes.len());
        }
        seal.pending.extend_from_slice(bytes);
        while let Some(part) = seal.next_part().map_err(std::io::Error::other)? {
            self.out.write_all(&part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Seal {
    /// What goes out for the next whole part; `None` while it is not whole.
    fn next_part(&mut self) -> Result<Option<Vec<u8>>, InlineError> {
        let (plain_bytes, part) = if self.at == At::Magic {
            if self.pending.len() < ENCRYPTED_MAGIC.len() {
                return Ok(None);
            }
            self.at = At::Pages;
            (ENCRYPTED_MAGIC.len(), ENCRYPTED_MAGIC.to_vec())
        } else {
            match self.page()? {
                Some(page) => page,
                None => return Ok(None),
            }
        };
        self.places.insert(self.taken, self.sealed);
        self.pending.drain(..plain_bytes);
        self.taken += plain_bytes as u64;
        self.sealed += part.len() as u64;
        Ok(Some(part))
    }

    /// The next page, if it is whole: how long it is, and what it becomes.
    fn page(&self) -> Result<Option<(usize, Vec<u8>)>, InlineError> {
        let header = match page_header(&self.pending) {
            Ok(header) => header,
            Err(Unread::Short) => return Ok(None),
            Err(Unread::Malformed) => {
                return Err(InlineError::Parquet {
                    detail: "a page header of arrow-rs is not understood".to_owned(),
                });
            }
        };
        let page = self.pending.get(header.header_bytes..);
        let page = page.and_then(|page| page.get(..header.page_bytes));
        let Some(page) = page else {
            return Ok(None);
        };
        let mut sealed = self
            .key
            .seal(self.pending.get(..header.header_bytes).unwrap_or_default())?;
        let (levels, values) = page.split_at(header.level_bytes.unwrap_or_default());
        if header.level_bytes.is_some() {
            sealed.extend(self.key.seal(levels)?);
        }
        // DuckDB looks for no part where there are no values behind the levels.
        if header.level_bytes.is_none() || !values.is_empty() {
            sealed.extend(self.key.seal(values)?);
        }
        Ok(Some((header.header_bytes + header.page_bytes, sealed)))
    }

    /// The footer and the end of the file.
    fn footer(&self, metadata: &ParquetMetaData) -> Result<Vec<u8>, InlineError> {
        let mut plain = Vec::new();
        ParquetMetaDataWriter::new(&mut plain, metadata)
            .finish()
            .map_err(parquet_error)?;
        plain.truncate(plain.len().saturating_sub(TRAILER_BYTES));
        let mut footer = PLAIN_GCM.to_vec();
        footer.extend(self.key.seal(&plain)?);
        let length = u32::try_from(footer.len()).map_err(|_| InlineError::Parquet {
            detail: format!("the footer has {} bytes", footer.len()),
        })?;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(ENCRYPTED_MAGIC);
        Ok(footer)
    }

    /// The metadata of the plain file with the places and sizes of what has been written.
    fn placed(&self, metadata: &ParquetMetaData) -> Result<ParquetMetaData, ParquetError> {
        let groups = metadata.row_groups().iter().map(|group| self.placed_group(group));
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        Ok(ParquetMetaDataBuilder::new(metadata.file_metadata().clone())
            .set_row_groups(groups)
            .build())
    }

    fn placed_group(&self, group: &RowGroupMetaData) -> Result<RowGroupMetaData, ParquetError> {
        let columns = group.columns().iter().map(|column| self.placed_column(column));
        let mut placed = group
            .clone()
            .into_builder()
            .set_column_metadata(columns.collect::<Result<_, _>>()?);
        if let Some(offset) = group.file_offset() {
            placed = placed.set_file_offset(self.place(offset)?);
        }
        placed.build()
    }

    fn placed_column(&self, column: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData, ParquetError> {
        let first = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        let end = self.place(first.saturating_add(column.compressed_size()))?;
        let dictionary = column.dictionary_page_offset();
        column
            .clone()
            .into_builder()
            .set_data_page_offset(self.place(column.data_page_offset())?)
            .set_dictionary_page_offset(dictionary.map(|offset| self.place(offset)).transpose()?)
            .set_total_compressed_size(end - self.place(first)?)
            .build()
    }

    /// Where the part lies that would lie at `offset` of a plain file.
    fn place(&self, offset: i64) -> Result<i64, ParquetError> {
        let place = u64::try_from(offset)
            .ok()
            .and_then(|offset| self.places.get(&offset));
        let place = place.and_then(|place| i64::try_from(*place).ok());
        place.ok_or_else(|| {
            external(InlineError::Parquet {
                detail: format!("no page begins at {offset}"),
            })
        })
    }
}
