//! Which rows a chunk holds, without the rows: the identity of the chunk and its dense range of row ids, as its record and its
//! locator both tell it.

use moraine_codec::proto::{InlineChunkRangeValue, InlineChunkValue};
use moraine_keys::{ChunkLocatorKey, InlineInsertKey};

use crate::chunk::INLINE_CHUNK_ROWS_MAX;
use crate::error::{InlineError, corruption};
use crate::frame::body_rows;

/// A chunk's identity and the row ids it holds, both ends inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// The chunk.
    pub(crate) key: InlineInsertKey,
    /// Its first row id.
    pub(crate) start: u64,
    /// Its last row id, not before `start`.
    pub(crate) end: u64,
}

impl Span {
    /// What a chunk's record says about its rows.
    pub(crate) fn of_chunk(key: InlineInsertKey, value: &InlineChunkValue) -> Result<Self, InlineError> {
        let (start, rows) = (value.row_id_start, value.row_count);
        let end = rows.checked_sub(1).and_then(|last| start.checked_add(last));
        let end = end
            .ok_or_else(|| corruption(&key, format!("{rows} rows from row id {start} on are impossible")))?;
        if rows > INLINE_CHUNK_ROWS_MAX {
            // Rows are expanded in memory before any body is read, so an outlandish count has to be vouched for.
            let found = body_rows(&value.body).map_err(|error| corruption(&key, error.to_string()))?;
            if u64::try_from(found) != Ok(rows) {
                return Err(corruption(
                    &key,
                    format!("the record says {rows} rows, its body {found}"),
                ));
            }
        }
        Ok(Self { key, start, end })
    }

    /// What a locator says about its chunk. Decoding has verified that the value names the key's chunk and starts before its end.
    pub(crate) fn of_locator(key: &ChunkLocatorKey, value: &InlineChunkRangeValue) -> Self {
        let chunk = InlineInsertKey {
            table_id: key.table_id,
            schema_version: key.schema_version,
            begin_snapshot: key.begin_snapshot,
            chunk_seq: key.chunk_seq,
        };
        Self {
            key: chunk,
            start: value.row_id_start,
            end: key.row_id_end,
        }
    }

    /// How many rows the chunk holds.
    pub(crate) fn rows(&self) -> u64 {
        self.width().saturating_add(1)
    }

    /// How many row ids lie beyond the first.
    pub(crate) fn width(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Requires that the chunk's record tells the same rows.
    pub(crate) fn confirm(&self, value: &InlineChunkValue) -> Result<(), InlineError> {
        let record = Self::of_chunk(self.key.clone(), value)?;
        if record == *self {
            return Ok(());
        }
        let (start, end) = (record.start, record.end);
        let detail = format!(
            "the chunk holds rows {start} to {end}, its locator says {} to {}",
            self.start, self.end
        );
        Err(corruption(&self.key, detail))
    }

    /// The locator of this chunk.
    pub(crate) fn locator(&self) -> (ChunkLocatorKey, InlineChunkRangeValue) {
        let InlineInsertKey {
            table_id,
            schema_version,
            begin_snapshot,
            chunk_seq,
        } = self.key;
        (
            ChunkLocatorKey {
                table_id,
                row_id_end: self.end,
                schema_version,
                begin_snapshot,
                chunk_seq,
            },
            InlineChunkRangeValue {
                row_id_start: self.start,
                schema_version,
                begin_snapshot,
                chunk_seq,
            },
        )
    }
}
