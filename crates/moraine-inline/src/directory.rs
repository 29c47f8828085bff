//! The chunk directory: one locator for each chunk, so that rows can be selected without hauling bodies. It answers only when it
//! names exactly the chunks that exist; otherwise the chunks themselves are walked and their bodies dropped as they pass.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use moraine_codec::proto::InlineChunkRangeValue;
use moraine_keys::{ChunkLocatorKey, ChunkRangeKey, InlineInsertKey, KeyRange, TableScoped};
use moraine_store::{Read, ReadExt, Staging};

use crate::chunk::INLINE_CHUNK_ROWS_MAX;
use crate::error::{InlineError, corruption};
use crate::span::Span;

/// Which chunks to look at.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    table_id: u64,
    /// A schema version and a range of begin snapshots, or every chunk of the table.
    version: Option<(u64, RangeInclusive<u64>)>,
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
        }
    }

    /// The chunks of one schema version that snapshots in `begin` inserted.
    pub(crate) fn version(table_id: u64, schema_version: u64, begin: RangeInclusive<u64>) -> Self {
        Self {
            table_id,
            version: Some((schema_version, begin)),
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

    fn contains(&self, chunk: &InlineInsertKey) -> bool {
        match &self.version {
            None => true,
            Some((version, begin)) => {
                chunk.schema_version == *version && begin.contains(&chunk.begin_snapshot)
            }
        }
    }
}

impl Directory {
    /// Finds the chunks of `scope`: from the locators when their set of chunk identities equals that of the chunks (ends or counts
    /// would not do: two chunks may share an end, and a lost locator may hide behind a dangling one), else from the chunks.
    pub(crate) async fn load(read: &dyn Read, scope: &Scope) -> Result<Self, InlineError> {
        let range = scope.range();
        if range.is_empty() {
            return Ok(Self::default());
        }
        let chunks: Vec<InlineInsertKey> = read.keys(range.clone()).await?;
        let located = locators(read, scope).await?;
        let mut identities: Vec<&InlineInsertKey> = located.iter().map(|span| &span.key).collect();
        identities.sort_unstable();
        if identities.into_iter().eq(chunks.iter()) {
            for span in located.iter().filter(|span| span.rows() > INLINE_CHUNK_ROWS_MAX) {
                confirm_outlandish(read, span).await?;
            }
            return Ok(Self {
                spans: located,
                ..Self::default()
            });
        }
        Self::walk(read, range, &located).await
    }

    async fn walk(read: &dyn Read, range: KeyRange, located: &[Span]) -> Result<Self, InlineError> {
        let mut spans = Vec::new();
        let mut scan = read.record_scan::<InlineInsertKey>(range).await?;
        while let Some((key, value)) = scan.next().await? {
            spans.push(Span::of_chunk(key, &value)?);
        }
        let mut dangling: BTreeMap<ChunkLocatorKey, InlineChunkRangeValue> =
            located.iter().map(Span::locator).collect();
        let mut uncovered = Vec::new();
        for span in &spans {
            let (key, value) = span.locator();
            if dangling.get(&key) == Some(&value) {
                dangling.remove(&key);
            } else {
                uncovered.push(span.clone());
            }
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

async fn locators(read: &dyn Read, scope: &Scope) -> Result<Vec<Span>, InlineError> {
    let mut scan = read
        .record_scan::<ChunkLocatorKey>(ChunkLocatorKey::scan_table(scope.table_id))
        .await?;
    let mut spans = Vec::new();
    while let Some((key, value)) = scan.next().await? {
        let span = Span::of_locator(&key, &value);
        if scope.contains(&span.key) {
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
