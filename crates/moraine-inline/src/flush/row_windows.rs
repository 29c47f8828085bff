//! The rows a flush takes, a window at a time.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use moraine_keys::InlineInsertKey;
use moraine_store::{Read, Staging};

use crate::directory::{Directory, Scope};
use crate::directory_memory::DirectoriesAt;
use crate::error::InlineError;
use crate::flush::batch_bytes;
use crate::row_ids::RowIds;
use crate::schema_record;
use crate::selection::{RowPredicate, RowVersion, Selection, expand};
use crate::span::Span;

/// The most rows in one window, and the row ids whose lifetimes are found at once.
pub const FLUSH_WINDOW_ROWS: u64 = 16_384;
/// Rows of the first window: how long they are is not known before.
const FIRST_WINDOW_ROWS: usize = 512;
/// Bytes of columns that a window is to have; a single row may have more.
const WINDOW_BYTES: usize = 4 * 1024 * 1024;

/// The inlined rows of one schema version that began by a snapshot, ended ones too, in the order of (row id, begin snapshot).
/// Holds where their chunks are, and no body.
#[derive(Debug)]
pub struct InlinedRows {
    table_id: u64,
    schema: SchemaRef,
    predicate: RowPredicate,
    /// By first row id, each with its place among them in the order of keys.
    spans: Vec<(Span, usize)>,
    /// The first row id of the next selection.
    next_row: u64,
    /// How many of `spans` have been opened.
    opened: usize,
    /// Opened ones that are not behind the next selection.
    active: Vec<(Span, usize)>,
    /// Rows whose lifetimes are known, the places of their chunks, and how many of the rows have been given out.
    selection: Option<(Selection, Vec<usize>)>,
    given: usize,
    /// Chunks that reach from the last window into the next.
    kept: BTreeMap<InlineInsertKey, RecordBatch>,
    /// Rows of the next window.
    window_rows: usize,
}

/// Rows that follow one another in a flush.
#[derive(Debug)]
pub struct FlushWindow {
    /// Their lifetimes.
    pub rows: Vec<RowVersion>,
    /// All their user columns, row by row as in `rows`.
    pub columns: RecordBatch,
}

/// Finds the rows of `ducklake_inlined_data_<table_id>_<schema_version>` that a flush at snapshot `until` takes.
///
/// # Errors
/// [`InlineError::NoSuchVersion`]; [`moraine_store::ReadError::Corruption`] for damaged records.
pub async fn flushable_rows(
    staging: &Staging,
    directories: &DirectoriesAt,
    table_id: u64,
    schema_version: u64,
    until: u64,
) -> Result<InlinedRows, InlineError> {
    let schema = schema_record::schema(staging, table_id, schema_version).await?;
    let schema = schema.ok_or(InlineError::NoSuchVersion {
        table_id,
        schema_version,
    })?;
    let scope = Scope::version(table_id, schema_version, 0..=until, RowIds::all());
    let mut spans = Directory::load(staging, directories, &scope).await?.spans;
    spans.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let mut spans: Vec<(Span, usize)> = spans.into_iter().zip(0..).collect();
    spans.sort_by_key(|(span, _)| span.start);
    Ok(InlinedRows {
        table_id,
        schema,
        predicate: RowPredicate::begun_by(until),
        spans,
        next_row: 0,
        opened: 0,
        active: Vec::new(),
        selection: None,
        given: 0,
        kept: BTreeMap::new(),
        window_rows: FIRST_WINDOW_ROWS,
    })
}

impl InlinedRows {
    /// How many versions of rows there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        let rows = self.spans.iter().map(|(span, _)| span.rows());
        rows.fold(0, u64::saturating_add)
    }

    /// The user columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next window, or `None` behind the last. `read` must be the state that the rows were found on.
    ///
    /// # Errors
    /// [`moraine_store::ReadError::Corruption`] for damaged records.
    pub async fn next_window(&mut self, read: &dyn Read) -> Result<Option<FlushWindow>, InlineError> {
        let left = |selection: &Selection, given| selection.rows().len() > given;
        while !self
            .selection
            .as_ref()
            .is_some_and(|(selection, _)| left(selection, self.given))
        {
            self.selection = self.select(read).await?;
            self.given = 0;
            if self.selection.is_none() {
                return Ok(None);
            }
        }
        let Some((selection, places)) = &self.selection else {
            return Ok(None);
        };
        let first = self.given;
        let last = selection.rows().len().min(first.saturating_add(self.window_rows));
        let columns = selection
            .scanned_window(read, first..last, places, &mut self.kept)
            .await?;
        self.given = last;
        let row_bytes = batch_bytes(&columns) / (last - first).max(1);
        let most = usize::try_from(FLUSH_WINDOW_ROWS).unwrap_or(usize::MAX);
        let fitting = (WINDOW_BYTES / row_bytes.max(1)).clamp(1, most);
        self.window_rows = fitting.min(self.window_rows.saturating_mul(8));
        Ok(Some(FlushWindow {
            rows: selection.rows().get(first..last).unwrap_or_default().to_vec(),
            columns,
        }))
    }

    /// The lifetimes of the next row ids, or `None` behind the last.
    async fn select(&mut self, read: &dyn Read) -> Result<Option<(Selection, Vec<usize>)>, InlineError> {
        let first_row = self.next_row;
        self.active.retain(|(span, _)| span.end >= first_row);
        if self.active.is_empty() {
            match self.spans.get(self.opened) {
                Some((next, _)) => self.next_row = self.next_row.max(next.start),
                None => return Ok(None),
            }
        }
        let last = self.next_row.saturating_add(FLUSH_WINDOW_ROWS - 1);
        while let Some(span) = self.spans.get(self.opened).filter(|(span, _)| span.start <= last) {
            self.active.push(span.clone());
            self.opened += 1;
        }
        let predicate = RowPredicate {
            row_ids: RowIds::within(self.next_row..=last),
            ..self.predicate.clone()
        };
        // Row ids are below 2^63.
        self.next_row = last.saturating_add(1);
        let (spans, places): (Vec<Span>, Vec<usize>) = self.active.iter().cloned().unzip();
        let rows = expand(read, self.table_id, &spans, &predicate).await?;
        Ok(Some((Selection::of(self.schema.clone(), spans, rows), places)))
    }
}
