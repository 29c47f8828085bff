//! Selections: the rows of one inlined table that a predicate picks, found once and without their columns, then served a window at
//! a time so that only one window's chunk bodies are ever held.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::future::try_join_all;
use moraine_codec::proto::InlineChunkValue;
use moraine_keys::{InlineInsertKey, KeyRange, Kind};
use moraine_store::{Read, ReadExt, Staging};

use crate::directory::{Directory, Scope};
use crate::directory_memory::DirectoriesAt;
use crate::error::{InlineError, corruption};
use crate::frame::decode_body_columns;
use crate::row_ids::RowIds;
use crate::schema_record;
use crate::span::Span;
use crate::tombstone::Tombstones;

/// How many chunk bodies are fetched at once.
const BODIES_IN_FLIGHT_MAX: usize = 16;

/// Which versions of rows to select. All conditions hold together; the default selects every version, ended ones too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPredicate {
    /// Row ids.
    pub row_ids: RowIds,
    /// Begin snapshots.
    pub begin: RangeInclusive<u64>,
    /// End snapshots.
    pub end: EndPredicate,
    /// Exactly these versions, as (row id, begin snapshot), or any.
    pub identities: Option<BTreeSet<(u64, u64)>>,
}

/// A condition on `end_snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EndPredicate {
    /// Live or ended.
    #[default]
    Any,
    /// `end_snapshot IS NULL`.
    Live,
    /// Live, or ended after this snapshot: `end_snapshot IS NULL OR end_snapshot > S`.
    After(u64),
    /// Ended within this range; a live version is not.
    Within(RangeInclusive<u64>),
}

impl Default for RowPredicate {
    fn default() -> Self {
        Self {
            row_ids: RowIds::all(),
            begin: 0..=u64::MAX,
            end: EndPredicate::Any,
            identities: None,
        }
    }
}

impl RowPredicate {
    /// What a reader at `snapshot` sees: `begin <= S` and live at S (DuckLake's table scan).
    #[must_use]
    pub fn visible_at(snapshot: u64) -> Self {
        Self {
            begin: 0..=snapshot,
            end: EndPredicate::After(snapshot),
            ..Self::default()
        }
    }

    /// What a flush at `snapshot` takes: everything that began by then, ended or not.
    #[must_use]
    pub fn begun_by(snapshot: u64) -> Self {
        Self {
            begin: 0..=snapshot,
            ..Self::default()
        }
    }

    /// What snapshots in `snapshots` inserted.
    #[must_use]
    pub fn inserted_in(snapshots: RangeInclusive<u64>) -> Self {
        Self {
            begin: snapshots,
            ..Self::default()
        }
    }

    /// What snapshots in `snapshots` deleted.
    #[must_use]
    pub fn deleted_in(snapshots: RangeInclusive<u64>) -> Self {
        Self {
            end: EndPredicate::Within(snapshots),
            ..Self::default()
        }
    }

    /// Exactly the versions given as (row id, begin snapshot), as far as they exist.
    #[must_use]
    pub fn exactly(identities: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let identities: BTreeSet<(u64, u64)> = identities.into_iter().collect();
        Self {
            row_ids: identities.iter().map(|(row_id, _)| *row_id).collect(),
            identities: Some(identities),
            ..Self::default()
        }
    }
}

impl RowPredicate {
    fn names(&self, row_id: u64, begin_snapshot: u64) -> bool {
        let named = |identities: &BTreeSet<(u64, u64)>| identities.contains(&(row_id, begin_snapshot));
        self.identities.as_ref().is_none_or(named)
    }
}

impl EndPredicate {
    fn holds(&self, end: Option<u64>) -> bool {
        match self {
            EndPredicate::Any => true,
            EndPredicate::Live => end.is_none(),
            EndPredicate::After(snapshot) => end.is_none_or(|end| end > *snapshot),
            EndPredicate::Within(range) => end.is_some_and(|end| range.contains(&end)),
        }
    }
}

/// One version of an inlined row, without its user columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowVersion {
    /// The row.
    pub row_id: u64,
    /// The snapshot that inserted this version.
    pub begin_snapshot: u64,
    /// The snapshot that ended it; `None` while it is live.
    pub end_snapshot: Option<u64>,
    /// Position of its chunk in the selection.
    chunk: usize,
}

/// The selected rows, ordered by (row id, begin snapshot). Holds no user column.
#[derive(Debug, Clone)]
pub struct Selection {
    schema: SchemaRef,
    spans: Vec<Span>,
    rows: Vec<RowVersion>,
}

/// Selects the rows of `ducklake_inlined_data_<table_id>_<schema_version>` that `predicate` picks, from the chunk directory: reads
/// locators and tombstones, and no chunk body once `directories` knows the directory to be complete. Row ids that are named are
/// sought; what lies far from them is not read.
///
/// # Errors
/// [`InlineError::NoSuchVersion`]; [`moraine_store::ReadError::Corruption`] for damaged records, a locator that contradicts its
/// chunk among them.
pub async fn select(
    staging: &Staging,
    directories: &DirectoriesAt,
    table_id: u64,
    schema_version: u64,
    predicate: &RowPredicate,
) -> Result<Selection, InlineError> {
    let schema = schema_record::schema(staging, table_id, schema_version).await?;
    let schema = schema.ok_or(InlineError::NoSuchVersion {
        table_id,
        schema_version,
    })?;
    let wanted = &predicate.row_ids;
    let scope = Scope::version(table_id, schema_version, predicate.begin.clone(), wanted.clone());
    let spans = Directory::load(staging, directories, &scope).await?.spans;
    let rows = expand(staging, table_id, &spans, predicate).await?;
    Ok(Selection { schema, spans, rows })
}

/// The rows of `spans` that `predicate` picks, in order.
pub(crate) async fn expand(
    read: &dyn Read,
    table_id: u64,
    spans: &[Span],
    predicate: &RowPredicate,
) -> Result<Vec<RowVersion>, InlineError> {
    let bounds = spans
        .iter()
        .map(|span| span.start)
        .min()
        .zip(spans.iter().map(|span| span.end).max());
    let Some((first, last)) = bounds else {
        return Ok(Vec::new());
    };
    let relevant = predicate.row_ids.within_bounds(first, last);
    let tombstones = Tombstones::load(read, table_id, relevant).await?;
    let mut rows = Vec::new();
    for (chunk, span) in spans.iter().enumerate() {
        let begin_snapshot = span.key.begin_snapshot;
        for row_id in predicate.row_ids.clipped(span.start, span.end).flatten() {
            let end_snapshot = tombstones.end_of(row_id, begin_snapshot);
            if predicate.end.holds(end_snapshot) && predicate.names(row_id, begin_snapshot) {
                rows.push(RowVersion {
                    row_id,
                    begin_snapshot,
                    end_snapshot,
                    chunk,
                });
            }
        }
    }
    rows.sort_unstable_by_key(|row| (row.row_id, row.begin_snapshot, row.chunk));
    Ok(rows)
}

impl Selection {
    /// Rows of `spans`, in order.
    pub(crate) fn of(schema: SchemaRef, spans: Vec<Span>, rows: Vec<RowVersion>) -> Self {
        Self { schema, spans, rows }
    }

    /// The selected rows, ordered by (row id, begin snapshot).
    #[must_use]
    pub fn rows(&self) -> &[RowVersion] {
        &self.rows
    }

    /// The user columns of the inlined table.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Drops the rows for which `keep` is false, for conditions that a [`RowPredicate`] cannot express.
    pub fn retain(&mut self, keep: impl FnMut(&RowVersion) -> bool) {
        self.rows.retain(keep);
    }

    /// User columns of the rows at the positions `range` of [`Selection::rows`]; `projection` are positions in
    /// [`Selection::schema`]. Fetches the chunk bodies that these rows need, and keeps none; an empty projection reads nothing.
    /// `read` must be the state that the selection was made on.
    ///
    /// # Errors
    /// [`InlineError::WindowOutOfBounds`], [`InlineError::Assemble`] for a column that does not exist, and
    /// [`moraine_store::ReadError::Corruption`] naming the chunk that is missing, damaged or not what its locator says.
    pub async fn window(
        &self,
        read: &dyn Read,
        range: Range<usize>,
        projection: &[usize],
    ) -> Result<RecordBatch, InlineError> {
        let rows = self.rows_at(range)?;
        let schema = self.schema.project(projection);
        let schema = schema.map_err(|source| InlineError::Assemble { source })?;
        let mut batches = BTreeMap::new();
        if !projection.is_empty() {
            self.fetch_all(read, &chunks_of(rows), projection, &mut batches)
                .await?;
        }
        self.assemble(rows, Arc::new(schema), &batches)
    }

    /// All user columns of the rows at the positions `range`, for somebody who reads the whole table once, window by window: chunks
    /// that follow one another in the store are scanned, by large requests and past the store's cache, and only single ones are
    /// fetched. `places` tells the place of each span among all chunks of the version, in the order of their keys; `kept` has the
    /// chunks that reach from one window into the next.
    pub(crate) async fn scanned_window(
        &self,
        read: &dyn Read,
        range: Range<usize>,
        places: &[usize],
        kept: &mut BTreeMap<InlineInsertKey, RecordBatch>,
    ) -> Result<RecordBatch, InlineError> {
        let projection: Vec<usize> = (0..self.schema.fields().len()).collect();
        let rows = self.rows_at(range)?;
        let place = |chunk: &usize| places.get(*chunk).copied().unwrap_or_default();
        let mut batches = BTreeMap::new();
        let mut missing = Vec::new();
        for chunk in chunks_of(rows) {
            match self.spans.get(chunk).and_then(|span| kept.remove(&span.key)) {
                Some(batch) => drop(batches.insert(chunk, batch)),
                None => missing.push(chunk),
            }
        }
        missing.sort_unstable_by_key(place);
        let mut single = Vec::new();
        for run in missing.chunk_by(|a, b| place(a) + 1 == place(b)) {
            match run {
                [chunk] => single.push(*chunk),
                run => self.scan(read, run, &projection, &mut batches).await?,
            }
        }
        self.fetch_all(read, &single, &projection, &mut batches).await?;
        let window = self.assemble(rows, Arc::clone(&self.schema), &batches)?;
        let last = rows.last().map_or(0, |row| row.row_id);
        kept.clear();
        for (chunk, batch) in batches {
            let span = self.spans.get(chunk).filter(|span| span.end > last);
            if let Some(span) = span {
                kept.insert(span.key.clone(), batch);
            }
        }
        Ok(window)
    }

    fn rows_at(&self, range: Range<usize>) -> Result<&[RowVersion], InlineError> {
        let (start, end) = (range.start, range.end);
        self.rows.get(range).ok_or(InlineError::WindowOutOfBounds {
            start,
            end,
            rows: self.rows.len(),
        })
    }

    /// `rows` from the chunks that hold them.
    fn assemble(
        &self,
        rows: &[RowVersion],
        schema: SchemaRef,
        batches: &BTreeMap<usize, RecordBatch>,
    ) -> Result<RecordBatch, InlineError> {
        let assembled = if schema.fields().is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            RecordBatch::try_new_with_options(schema, Vec::new(), &options)
        } else {
            concat_batches(&schema, &self.runs(rows, batches))
        };
        assembled.map_err(|source| InlineError::Assemble { source })
    }

    async fn fetch_all(
        &self,
        read: &dyn Read,
        chunks: &[usize],
        projection: &[usize],
        batches: &mut BTreeMap<usize, RecordBatch>,
    ) -> Result<(), InlineError> {
        for group in chunks.chunks(BODIES_IN_FLIGHT_MAX) {
            let fetched =
                try_join_all(group.iter().map(|chunk| self.fetch(read, *chunk, projection))).await?;
            batches.extend(group.iter().copied().zip(fetched));
        }
        Ok(())
    }

    /// Reads chunks between whose keys there is no other.
    async fn scan(
        &self,
        read: &dyn Read,
        chunks: &[usize],
        projection: &[usize],
        batches: &mut BTreeMap<usize, RecordBatch>,
    ) -> Result<(), InlineError> {
        let key = |chunk: Option<&usize>| {
            chunk
                .and_then(|chunk| self.spans.get(*chunk))
                .map(|span| &span.key)
        };
        let (Some(first), Some(last)) = (key(chunks.first()), key(chunks.last())) else {
            return Err(corruption("a selection", "a row names no chunk of it"));
        };
        let behind_last = [last.encode().as_ref(), &[0]].concat();
        let range = KeyRange {
            start: first.encode(),
            end: Some(behind_last.into()),
        };
        let mut found = read.record_scan::<InlineInsertKey>(range).await?;
        for chunk in chunks {
            let record = found.next().await?;
            let record = record.filter(|(found, _)| key(Some(chunk)) == Some(found));
            let body = self.decode(*chunk, record.map(|(_, value)| value), projection)?;
            batches.insert(*chunk, body);
        }
        Ok(())
    }

    async fn fetch(
        &self,
        read: &dyn Read,
        chunk: usize,
        projection: &[usize],
    ) -> Result<RecordBatch, InlineError> {
        let span = self
            .spans
            .get(chunk)
            .ok_or_else(|| corruption("a selection", "a row names no chunk of it"))?;
        let value = read.value(&span.key).await?;
        self.decode(chunk, value, projection)
    }

    fn decode(
        &self,
        chunk: usize,
        value: Option<InlineChunkValue>,
        projection: &[usize],
    ) -> Result<RecordBatch, InlineError> {
        let span = self
            .spans
            .get(chunk)
            .ok_or_else(|| corruption("a selection", "a row names no chunk of it"))?;
        let value =
            value.ok_or_else(|| corruption(&span.key, "a locator names this chunk, which does not exist"))?;
        span.confirm(&value)?;
        decode_body_columns(
            &value.body,
            Arc::clone(&self.schema),
            value.row_count,
            Some(projection),
        )
        .map_err(|error| corruption(&span.key, error.to_string()))
    }

    /// `rows` as slices of their chunks, as long as consecutive rows follow one another there.
    fn runs(&self, rows: &[RowVersion], batches: &BTreeMap<usize, RecordBatch>) -> Vec<RecordBatch> {
        let follows = |last: &RowVersion, next: &RowVersion| {
            last.chunk == next.chunk && last.row_id.checked_add(1) == Some(next.row_id)
        };
        let run = |run: &[RowVersion]| {
            let first = run.first()?;
            let offset = first.row_id.checked_sub(self.spans.get(first.chunk)?.start)?;
            Some(
                batches
                    .get(&first.chunk)?
                    .slice(usize::try_from(offset).ok()?, run.len()),
            )
        };
        rows.chunk_by(follows).filter_map(run).collect()
    }
}

/// The chunks that hold `rows`, each once.
fn chunks_of(rows: &[RowVersion]) -> Vec<usize> {
    let chunks: BTreeSet<usize> = rows.iter().map(|row| row.chunk).collect();
    chunks.into_iter().collect()
}
