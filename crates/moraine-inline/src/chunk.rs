//! Chunks: the records that hold inlined rows, written once and never edited. A chunk's row ids are dense, so rows that are not
//! contiguous go into several; each chunk is written together with its locator.

use std::ops::Range;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;
use moraine_codec::proto::InlineChunkValue;
use moraine_keys::{InlineInsertKey, InlineSchemaKey};
use moraine_store::{ReadExt, Staging};

use crate::directory_memory::DirectoriesAt;
use crate::error::{InlineError, corruption};
use crate::frame::encode_body;
use crate::schema_record;
use crate::span::Span;

/// The most rows in one chunk we write; a longer run becomes several, so that a window of rows never needs a longer body.
pub const INLINE_CHUNK_ROWS_MAX: u64 = 65_536;
/// The greatest row id: DuckLake keeps them as BIGINT.
const ROW_ID_MAX: u64 = i64::MAX as u64;

/// A chunk that is encoded and not yet staged.
#[derive(Debug)]
pub(crate) struct NewChunk {
    /// Its identity and rows.
    pub(crate) span: Span,
    value: InlineChunkValue,
}

impl NewChunk {
    /// Encodes `rows`, whose row ids ascend by one from `row_id_start`.
    pub(crate) fn encode(
        key: InlineInsertKey,
        row_id_start: u64,
        rows: &RecordBatch,
    ) -> Result<Self, InlineError> {
        let row_count = rows.num_rows() as u64;
        let value = InlineChunkValue {
            body: encode_body(rows)?,
            row_id_start,
            row_count,
            data_file_id: None,
        };
        Ok(Self {
            span: Span::of_chunk(key, &value)?,
            value,
        })
    }

    /// Stages the chunk and its locator.
    pub(crate) fn stage(&self, staging: &mut Staging) -> Result<(), InlineError> {
        let (locator, range) = self.span.locator();
        staging.put(&self.span.key, &self.value)?;
        staging.put(&locator, &range)?;
        Ok(())
    }
}

/// Inserts rows into `ducklake_inlined_data_<table_id>_<schema_version>` at `begin_snapshot`: row `i` of `batch` is row
/// `row_ids[i]`. One chunk for each contiguous run of row ids (and for each [`INLINE_CHUNK_ROWS_MAX`] rows of a run). A version
/// that holds rows is registered, whatever it was before: rows of an unlisted version would be lost from sight.
///
/// # Errors
/// [`InlineError::EmptyInsert`], [`InlineError::RowIdCount`], [`InlineError::RowIdOverflow`], [`InlineError::NoSuchVersion`],
/// [`InlineError::BatchMismatch`] when `batch` has other column types than the table, and [`InlineError::DuplicateRow`] for a row
/// the same snapshot has inserted already. Nothing is staged then.
pub async fn insert(
    staging: &mut Staging,
    directories: &DirectoriesAt,
    table_id: u64,
    schema_version: u64,
    begin_snapshot: u64,
    row_ids: &[u64],
    batch: &RecordBatch,
) -> Result<(), InlineError> {
    let record = InlineSchemaKey {
        table_id,
        schema_version,
    };
    let schema = schema_record::schema(staging, table_id, schema_version).await?;
    let schema = schema.ok_or(InlineError::NoSuchVersion {
        table_id,
        schema_version,
    })?;
    let batch = conform(&record, schema, batch)?;
    let (row_ids, batch) = ascending(row_ids, batch)?;
    let mut chunk_seq = free_sequence(staging, &record, begin_snapshot, &row_ids).await?;
    let mut chunks = Vec::new();
    for run in contiguous_runs(&row_ids) {
        let key = InlineInsertKey {
            table_id,
            schema_version,
            begin_snapshot,
            chunk_seq,
        };
        let start = row_ids.get(run.start).copied().unwrap_or_default();
        chunks.push(NewChunk::encode(key, start, &batch.slice(run.start, run.len()))?);
        chunk_seq = chunk_seq.saturating_add(1);
    }
    schema_record::clear_marker(staging, &record).await?;
    let widest = chunks.iter().map(|chunk| chunk.span.width()).max();
    directories.raise_width(table_id, widest.unwrap_or_default());
    chunks.iter().try_for_each(|chunk| chunk.stage(staging))
}

/// The first `chunk_seq` that no chunk of the snapshot has, once it is certain that the snapshot holds none of `row_ids`.
async fn free_sequence(
    staging: &Staging,
    record: &InlineSchemaKey,
    begin_snapshot: u64,
    row_ids: &[u64],
) -> Result<u64, InlineError> {
    let InlineSchemaKey {
        table_id,
        schema_version,
    } = *record;
    let twice = row_ids.windows(2).find(|pair| pair.first() == pair.last());
    let mut duplicate = twice.and_then(|pair| pair.first()).copied();
    let mut free = 0;
    let mut chunks = staging
        .record_scan::<InlineInsertKey>(InlineInsertKey::scan_snapshot(
            table_id,
            schema_version,
            begin_snapshot,
        ))
        .await?;
    while let Some((key, value)) = chunks.next().await? {
        free = key
            .chunk_seq
            .checked_add(1)
            .ok_or_else(|| corruption(&key, "no chunk can follow this one"))?;
        let span = Span::of_chunk(key, &value)?;
        let next = row_ids.get(row_ids.partition_point(|row_id| *row_id < span.start));
        duplicate = duplicate.or(next.copied().filter(|row_id| *row_id <= span.end));
    }
    match duplicate {
        Some(row_id) => Err(InlineError::DuplicateRow {
            table_id,
            row_id,
            begin_snapshot,
        }),
        None => Ok(free),
    }
}

/// `batch` with the columns of the stored schema, which decoding will use.
fn conform(
    record: &InlineSchemaKey,
    schema: SchemaRef,
    batch: &RecordBatch,
) -> Result<RecordBatch, InlineError> {
    let InlineSchemaKey {
        table_id,
        schema_version,
    } = *record;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options).map_err(|source| {
        InlineError::BatchMismatch {
            table_id,
            schema_version,
            source,
        }
    })
}

/// The rows in ascending order of row id, which gives the fewest chunks.
fn ascending(row_ids: &[u64], batch: RecordBatch) -> Result<(Vec<u64>, RecordBatch), InlineError> {
    if row_ids.len() != batch.num_rows() {
        return Err(InlineError::RowIdCount {
            row_ids: row_ids.len(),
            rows: batch.num_rows(),
        });
    }
    let greatest = row_ids.iter().max().ok_or(InlineError::EmptyInsert)?;
    if *greatest > ROW_ID_MAX {
        return Err(InlineError::RowIdOverflow { row_id: *greatest });
    }
    if row_ids.is_sorted() {
        return Ok((row_ids.to_vec(), batch));
    }
    let mut order: Vec<(u64, u64)> = row_ids.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let (row_ids, positions): (Vec<u64>, Vec<u64>) = order.into_iter().unzip();
    let batch = take_record_batch(&batch, &UInt64Array::from(positions))
        .map_err(|source| InlineError::Assemble { source })?;
    Ok((row_ids, batch))
}

/// Positions of the runs in ascending row ids within which each is one more than the last, none longer than a chunk may be.
fn contiguous_runs(row_ids: &[u64]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut last = None;
    for (position, row_id) in row_ids.iter().enumerate() {
        let follows = last.is_some_and(|last: u64| last.checked_add(1) == Some(*row_id));
        match runs.last_mut() {
            Some(run) if follows && (run.len() as u64) < INLINE_CHUNK_ROWS_MAX => run.end = position + 1,
            _ => runs.push(position..position + 1),
        }
        last = Some(*row_id);
    }
    runs
}
