//! The chunk directory: one locator for each chunk, so that rows are selected without hauling bodies. It answers only once it is
//! known to name exactly the chunks that exist; otherwise the chunks themselves are walked and their bodies dropped as they pass.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use moraine_codec::proto::InlineChunkRangeValue;
use moraine_keys::{ChunkLocatorKey, ChunkRangeKey, InlineInsertKey, KeyRange, TableChild, TableScoped};
use moraine_store::{Read, ReadExt, Staging};

use crate::chunk::INLINE_CHUNK_ROWS_MAX;
use crate::directory_memory::DirectoriesAt;
use crate::error::{InlineError, corruption};
use crate::row_ids::RowIds;
use crate::span::Span;

/// Which chunks to look at.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    table_id: u64,
    /// A schema version and a range of begin snapshots, or every chunk of the table.
    version: Option<(u64, RangeInclusive<u64>)>,
    /// Chunks that hold any of these.
    row_ids: RowIds,
}

/// The chunks in a scope, and what keeps the directory from naming exactly them.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Every chunk, once.
    pub(crate) spans: Vec<Span>,
    /// Chunks that no locator names rightly.
    uncovered: Vec<Span>,
    /// Locators that name no chunk rightly.
    dangling: Vec<ChunkLocatorKey>,
}

impl Scope {
    /// Every chunk of a table.
    pub(crate) fn table(table_id: u64) -> Self {
        Self {
            table_id,
            version: None,
            row_ids: RowIds::all(),
        }
    }

    /// The chunks of one schema version that snapshots in `begin` inserted and that hold any of `row_ids`.
    pub(crate) fn version(
        table_id: u64,
        schema_version: u64,
        begin: RangeInclusive<u64>,
        row_ids: RowIds,
    ) -> Self {
        Self {
            table_id,
            version: Some((schema_version, begin)),
            row_ids,
        }
    }

    fn range(&self) -> KeyRange {
        match &self.version {
            None => InlineInsertKey::scan_table(self.table_id),
            Some((version, begin)) => {
                let first = InlineInsertKey::scan_snapshot(self.table_id, *version, *begin.start());
                let last = InlineInsertKey::scan_snapshot(self.table_id, *version, *begin.end());
                KeyRange {
                    start: first.start,
                    end: last.end,
                }
            }
        }
    }

    fn contains(&self, span: &Span) -> bool {
        let of_version = match &self.version {
            None => true,
            Some((version, begin)) => {
                span.key.schema_version == *version && begin.contains(&span.key.begin_snapshot)
            }
        };
        of_version && self.row_ids.meets(span.start, span.end)
    }
}

impl Directory {
    /// Finds the chunks of `scope`: from the locators alone when the directory of the table is known to be complete, as it is
    /// judged to be once ([`judge`]), else from the chunks.
    ///
    /// Only committed state is judged, never what is staged on top: a repair that is staged may not land. What is staged keeps a
    /// complete directory complete, so the locators answer for it too.
    pub(crate) async fn load(
        staging: &Staging,
        directories: &DirectoriesAt,
        scope: &Scope,
    ) -> Result<Self, InlineError> {
        let range = scope.range();
        if range.is_empty() || scope.row_ids.is_empty() {
            return Ok(Self::default());
        }
        let mut width = directories.complete_width(scope.table_id);
        if width.is_none() {
            width = judge(staging.base().as_ref(), scope.table_id)
                .await?
                .map(|width| directories.remember_complete(scope.table_id, width));
        }
        match width {
            Some(width) => Self::locate(staging, scope, width).await,
            None => Self::walk(staging, scope, range).await,
        }
    }

    /// The chunks of a complete directory. A chunk that holds row id `r` ends at or before `r + width`, so no locator beyond that
    /// is read. Every chunk whose range holds a row counts, not only the first: ranges may overlap.
    async fn locate(read: &dyn Read, scope: &Scope, width: u64) -> Result<Self, InlineError> {
        let mut spans = Vec::new();
        for ends in scope.row_ids.chunk_ends(width).ranges() {
            let range = ChunkLocatorKey::scan_table_ids(scope.table_id, ends.clone());
            spans.extend(locators(read, range, |span| scope.contains(span)).await?);
        }
        for span in spans.iter().filter(|span| span.rows() > INLINE_CHUNK_ROWS_MAX) {
            confirm_outlandish(read, span).await?;
        }
        Ok(Self {
            spans,
            ..Self::default()
        })
    }

    async fn walk(read: &dyn Read, scope: &Scope, range: KeyRange) -> Result<Self, InlineError> {
        let located = locators(read, ChunkLocatorKey::scan_table(scope.table_id), |span| {
            scope.contains(span)
        })
        .await?;
        let mut dangling: BTreeMap<ChunkLocatorKey, InlineChunkRangeValue> =
            located.iter().map(Span::locator).collect();
        let mut spans = Vec::new();
        let mut uncovered = Vec::new();
        let mut scan = read.record_scan::<InlineInsertKey>(range).await?;
        while let Some((key, value)) = scan.next().await? {
            let span = Span::of_chunk(key, &value)?;
            if !scope.contains(&span) {
                continue;
            }
            let (key, value) = span.locator();
            if dangling.get(&key) == Some(&value) {
                dangling.remove(&key);
            } else {
                uncovered.push(span.clone());
            }
            spans.push(span);
        }
        Ok(Self {
            spans,
            uncovered,
            dangling: dangling.into_keys().collect(),
        })
    }

    /// Stages what makes the directory complete again for the chunks that `survives` says will stay, and sweeps the table's
    /// directory of formats before 8.
    pub(crate) async fn heal(
        &self,
        staging: &mut Staging,
        table_id: u64,
        survives: impl Fn(&Span) -> bool,
    ) -> Result<(), InlineError> {
        let legacy: Vec<ChunkRangeKey> = staging.keys(ChunkRangeKey::scan_table(table_id)).await?;
        legacy.iter().for_each(|key| staging.delete(key));
        self.dangling.iter().for_each(|key| staging.delete(key));
        // After the deletions: a locator that is right but for its start is written anew under its own key.
        for span in self.uncovered.iter().filter(|span| survives(span)) {
            let (key, value) = span.locator();
            staging.put(&key, &value)?;
        }
        Ok(())
    }
}

/// Compares the directory of a table with all its chunks, by identity and rows (ends or counts would not do: two chunks may share
/// an end, and a lost locator may hide behind a dangling one). Gives the width of the widest chunk when they are the same, and
/// nothing when they are not. `read` must not move: a pass over two states could miss what went from one to the other.
async fn judge(read: &dyn Read, table_id: u64) -> Result<Option<u64>, InlineError> {
    let mut located = locators(read, ChunkLocatorKey::scan_table(table_id), |_| true).await?;
    located.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let mut located = located.into_iter();
    let mut width = 0;
    let mut scan = read
        .record_scan::<InlineInsertKey>(InlineInsertKey::scan_table(table_id))
        .await?;
    while let Some((key, value)) = scan.next().await? {
        let span = Span::of_chunk(key, &value)?;
        width = width.max(span.width());
        if located.next() != Some(span) {
            return Ok(None);
        }
    }
    Ok(located.next().is_none().then_some(width))
}

async fn locators(
    read: &dyn Read,
    range: KeyRange,
    keep: impl Fn(&Span) -> bool,
) -> Result<Vec<Span>, InlineError> {
    let mut scan = read.record_scan::<ChunkLocatorKey>(range).await?;
    let mut spans = Vec::new();
    while let Some((key, value)) = scan.next().await? {
        let span = Span::of_locator(&key, &value);
        if keep(&span) {
            spans.push(span);
        }
    }
    Ok(spans)
}

/// Rows are expanded in memory before any body is read, so a locator of more rows than we write has to be vouched for.
async fn confirm_outlandish(read: &dyn Read, span: &Span) -> Result<(), InlineError> {
    let value = read.value(&span.key).await?;
    span.confirm(
        &value.ok_or_else(|| corruption(&span.key, "a locator names this chunk, which does not exist"))?,
    )
}
