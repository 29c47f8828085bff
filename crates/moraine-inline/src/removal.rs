//! Taking rows out for good: what a flush has written to Parquet, what expiry makes unreachable, a dropped inlined table, a dead
//! table. Tombstones go only with the last version that needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arrow_schema::SchemaRef;
use moraine_keys::{
    ArchivedDeleteKey, ArchivedFileDeleteKey, ArchivedInsertKey, ChunkLocatorKey, ChunkRangeKey,
    FileDeleteTableKey, InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey,
    RowTombstoneKey, SchemaDroppedKey, TableScoped,
};
use moraine_store::{Read, ReadExt, Staging};

use crate::chunk::NewChunk;
use crate::directory::{Directory, Scope};
use crate::directory_memory::DirectoriesAt;
use crate::error::{InlineError, corruption};
use crate::flush::RowMultiset;
use crate::frame::decode_body;
use crate::row_ids::RowIds;
use crate::schema_record;
use crate::span::Span;
use crate::tombstone::Tombstones;

/// Removes versions of rows of `ducklake_inlined_data_<table_id>_<schema_version>`, given as (row id, begin snapshot), for good.
/// A chunk all of whose rows go is removed with its locator; a chunk that keeps some is rewritten into dense runs of the same
/// version. A tombstone goes when no version that is left, in any schema version of the table, ends by it. Also makes the table's
/// chunk directory complete.
///
/// # Errors
/// [`InlineError::RowNotFound`] for a version that is not there; [`moraine_store::ReadError::Corruption`] for damaged records.
/// Nothing is staged then.
pub async fn remove_rows(
    staging: &mut Staging,
    directories: &DirectoriesAt,
    table_id: u64,
    schema_version: u64,
    rows: &[(u64, u64)],
) -> Result<(), InlineError> {
    let mut doomed = Doomed::new(rows);
    let row_ids = doomed.row_ids();
    if row_ids.is_empty() {
        return Ok(());
    }
    let schema = schema_record::schema(staging, table_id, schema_version).await?;
    let schema = schema.ok_or(InlineError::NoSuchVersion {
        table_id,
        schema_version,
    })?;
    let directory = Directory::load(staging, directories, &Scope::table(table_id)).await?;
    let mut plan = Plan::default();
    for span in &directory.spans {
        let hit = if span.key.schema_version == schema_version {
            doomed.within(span)
        } else {
            0..0
        };
        plan.add(span, hit);
    }
    if let Some((begin_snapshot, row_id)) = doomed.not_found() {
        return Err(InlineError::RowNotFound {
            table_id,
            schema_version,
            row_id,
            begin_snapshot,
        });
    }
    plan.rewrite(staging, &doomed, &schema).await?;
    plan.obsolete = obsolete_tombstones(staging, table_id, row_ids, &plan.surviving).await?;
    plan.stage(staging, table_id, &directory).await
}

/// Removes every version of rows of `ducklake_inlined_data_<table_id>_<schema_version>` that began by snapshot `until`, for good:
/// what a flush does once `written` is in data files. Gives how many versions of each begin snapshot there were. Also makes the
/// table's chunk directory complete.
///
/// # Errors
/// [`InlineError::FlushMismatch`] when the row ids removed are not, each as often, those of `written`;
/// [`moraine_store::ReadError::Corruption`] for damaged records. Nothing is staged then.
pub async fn drain(
    staging: &mut Staging,
    directories: &DirectoriesAt,
    table_id: u64,
    schema_version: u64,
    until: u64,
    written: &RowMultiset,
) -> Result<BTreeMap<u64, u64>, InlineError> {
    let directory = Directory::load(staging, directories, &Scope::table(table_id)).await?;
    let doomed = |key: &InlineInsertKey| key.schema_version == schema_version && key.begin_snapshot <= until;
    let plan = Plan::dropping(staging, table_id, &directory, doomed).await?;
    let mut removed = RowMultiset::default();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for span in &plan.dropped {
        removed.add(&(span.start..=span.end));
        *counts.entry(span.key.begin_snapshot).or_default() += span.rows();
    }
    if let Some(row_id) = removed.first_difference(written) {
        return Err(InlineError::FlushMismatch {
            table_id,
            schema_version,
            row_id,
            written: written.len(),
            removed: removed.len(),
        });
    }
    plan.stage(staging, table_id, &directory).await?;
    Ok(counts)
}

/// Drops `ducklake_inlined_data_<table_id>_<schema_version>`: its chunks, their locators and the tombstones that only they needed.
/// The schema record stays, deregistered, so that a reader that still knows the name binds it and sees no rows. Dropping a version
/// that was never created does nothing.
///
/// # Errors
/// [`moraine_store::ReadError::Corruption`] for damaged records. Nothing is staged then.
pub async fn drop_version(
    staging: &mut Staging,
    directories: &DirectoriesAt,
    table_id: u64,
    schema_version: u64,
) -> Result<(), InlineError> {
    let directory = Directory::load(staging, directories, &Scope::table(table_id)).await?;
    let doomed = |key: &InlineInsertKey| key.schema_version == schema_version;
    let plan = Plan::dropping(staging, table_id, &directory, doomed).await?;
    let record = InlineSchemaKey {
        table_id,
        schema_version,
    };
    let savepoint = staging.savepoint();
    if schema_record::exists(staging, &record).await? {
        schema_record::deregister(staging, table_id, schema_version).await?;
    }
    let staged = plan.stage(staging, table_id, &directory).await;
    if staged.is_err() {
        staging.rollback_to(savepoint);
    }
    staged
}

/// Removes every inlined record of a table that is gone from all snapshots: chunks, locators, tombstones, deletions from files,
/// schemas and markers, and what formats before 9 left.
///
/// # Errors
/// See [`InlineError::Read`]; values are not decoded, so damage to them does not stand in the way.
pub async fn drop_table(staging: &mut Staging, table_id: u64) -> Result<(), InlineError> {
    let ranges = [
        InlineSchemaKey::scan_table(table_id),
        InlineInsertKey::scan_table(table_id),
        InlineDeleteKey::scan_table(table_id),
        InlineFileDeleteKey::scan_table(table_id),
        ArchivedInsertKey::scan_table(table_id),
        ArchivedDeleteKey::scan_table(table_id),
        ArchivedFileDeleteKey::scan_table(table_id),
        FileDeleteTableKey::scan_table(table_id),
        ChunkRangeKey::scan_table(table_id),
        SchemaDroppedKey::scan_table(table_id),
        ChunkLocatorKey::scan_table(table_id),
        RowTombstoneKey::scan_table(table_id),
    ];
    let mut keys = Vec::new();
    for range in ranges {
        let mut scan = staging.scan(range).await?;
        while let Some((key, _)) = scan.next().await? {
            keys.push(key);
        }
    }
    keys.into_iter().for_each(|key| staging.delete_raw(key));
    Ok(())
}

/// Versions to remove, grouped so that a chunk finds its own at once.
struct Doomed {
    /// (begin snapshot, row id), ascending, once each.
    versions: Vec<(u64, u64)>,
    found: Vec<bool>,
}

impl Doomed {
    fn new(rows: &[(u64, u64)]) -> Self {
        let versions: BTreeSet<(u64, u64)> = rows.iter().map(|(row_id, begin)| (*begin, *row_id)).collect();
        let versions: Vec<(u64, u64)> = versions.into_iter().collect();
        Self {
            found: vec![false; versions.len()],
            versions,
        }
    }

    fn row_ids(&self) -> RowIds {
        self.versions.iter().map(|(_, row_id)| *row_id).collect()
    }

    /// Positions of the versions that lie in `span`, noted as found.
    fn within(&mut self, span: &Span) -> Range<usize> {
        let begin = span.key.begin_snapshot;
        let first = self
            .versions
            .partition_point(|version| *version < (begin, span.start));
        let last = self
            .versions
            .partition_point(|version| *version <= (begin, span.end));
        self.found
            .iter_mut()
            .take(last)
            .skip(first)
            .for_each(|found| *found = true);
        first..last
    }

    /// The first version that lies in no chunk, as (begin snapshot, row id).
    fn not_found(&self) -> Option<(u64, u64)> {
        self.versions
            .iter()
            .zip(&self.found)
            .find(|(_, found)| !**found)
            .map(|(version, _)| *version)
    }
}

/// What is to become of every chunk of the table.
#[derive(Default)]
struct Plan {
    /// Chunks that go with all their rows, or are replaced.
    dropped: Vec<Span>,
    /// Chunks that lose the versions at these positions of [`Doomed`].
    partial: Vec<(Span, Range<usize>)>,
    /// The runs that take the place of partial chunks.
    rewritten: Vec<NewChunk>,
    /// Every chunk there will be.
    surviving: Vec<Span>,
    /// Tombstones that end none of them.
    obsolete: Vec<RowTombstoneKey>,
    /// The next free `chunk_seq` of each (schema version, begin snapshot).
    next_seq: BTreeMap<(u64, u64), u64>,
}

impl Plan {
    /// Drops the chunks that `doomed` names whole, and the tombstones that only they needed.
    async fn dropping(
        read: &dyn Read,
        table_id: u64,
        directory: &Directory,
        doomed: impl Fn(&InlineInsertKey) -> bool,
    ) -> Result<Self, InlineError> {
        let mut plan = Self::default();
        for span in &directory.spans {
            plan.add(span, if doomed(&span.key) { 0..usize::MAX } else { 0..0 });
        }
        let row_ids = plan.dropped.iter().map(|span| span.start..=span.end).collect();
        plan.obsolete = obsolete_tombstones(read, table_id, row_ids, &plan.surviving).await?;
        Ok(plan)
    }

    /// Decides for `span`, which loses the versions at positions `hit`; at least as many as it has rows means all.
    fn add(&mut self, span: &Span, hit: Range<usize>) {
        let InlineInsertKey {
            schema_version,
            begin_snapshot,
            chunk_seq,
            ..
        } = span.key;
        let next = self.next_seq.entry((schema_version, begin_snapshot)).or_default();
        *next = (*next).max(chunk_seq.saturating_add(1));
        if hit.is_empty() {
            self.surviving.push(span.clone());
        } else if hit.len() as u64 >= span.rows() {
            self.dropped.push(span.clone());
        } else {
            self.partial.push((span.clone(), hit));
        }
    }

    /// Splits the partial chunks into runs of the rows they keep.
    async fn rewrite(
        &mut self,
        read: &dyn Read,
        doomed: &Doomed,
        schema: &SchemaRef,
    ) -> Result<(), InlineError> {
        for (span, hit) in std::mem::take(&mut self.partial) {
            let value = read.value(&span.key).await?;
            let value = value
                .ok_or_else(|| corruption(&span.key, "a locator names this chunk, which does not exist"))?;
            span.confirm(&value)?;
            let rows = decode_body(&value.body, schema.clone(), value.row_count)
                .map_err(|error| corruption(&span.key, error.to_string()))?;
            let gone = doomed
                .versions
                .get(hit)
                .unwrap_or_default()
                .iter()
                .map(|(_, row_id)| row_id - span.start);
            for kept in gaps(gone, rows.num_rows() as u64) {
                let seq = self
                    .next_seq
                    .entry((span.key.schema_version, span.key.begin_snapshot))
                    .or_default();
                let key = InlineInsertKey {
                    chunk_seq: *seq,
                    ..span.key.clone()
                };
                *seq = seq.saturating_add(1);
                let (offset, length) = (to_usize(kept.start), to_usize(kept.end - kept.start));
                let chunk = NewChunk::encode(key, span.start + kept.start, &rows.slice(offset, length))?;
                self.surviving.push(chunk.span.clone());
                self.rewritten.push(chunk);
            }
            self.dropped.push(span);
        }
        Ok(())
    }

    async fn stage(
        &self,
        staging: &mut Staging,
        table_id: u64,
        directory: &Directory,
    ) -> Result<(), InlineError> {
        let dropped: BTreeSet<&InlineInsertKey> = self.dropped.iter().map(|span| &span.key).collect();
        directory
            .heal(staging, table_id, |span| !dropped.contains(&span.key))
            .await?;
        for span in &self.dropped {
            staging.delete(&span.key);
            staging.delete(&span.locator().0);
        }
        self.obsolete.iter().for_each(|key| staging.delete(key));
        self.rewritten.iter().try_for_each(|chunk| chunk.stage(staging))
    }
}

/// The tombstones of the rows in `row_ids` that end no version in `surviving`.
async fn obsolete_tombstones(
    read: &dyn Read,
    table_id: u64,
    row_ids: RowIds,
    surviving: &[Span],
) -> Result<Vec<RowTombstoneKey>, InlineError> {
    let tombstones = Tombstones::load(read, table_id, row_ids).await?;
    let events = tombstones.events();
    let mut needed: BTreeSet<(u64, u64)> = BTreeSet::new();
    for span in surviving {
        let first = events.partition_point(|(row_id, _)| *row_id < span.start);
        let held = events
            .iter()
            .skip(first)
            .take_while(|(row_id, _)| *row_id <= span.end);
        for (row_id, _) in held {
            let end = tombstones.end_of(*row_id, span.key.begin_snapshot);
            needed.extend(end.map(|end| (*row_id, end)));
        }
    }
    let obsolete = events.iter().filter(|event| !needed.contains(event));
    let key = |(row_id, end_snapshot): &(u64, u64)| RowTombstoneKey {
        table_id,
        row_id: *row_id,
        end_snapshot: *end_snapshot,
    };
    Ok(obsolete.map(key).collect())
}

/// The stretches of `0..length` between the ascending positions `gone`.
fn gaps(gone: impl Iterator<Item = u64>, length: u64) -> Vec<Range<u64>> {
    let mut kept = Vec::new();
    let mut next = 0;
    for position in gone.chain([length]) {
        if next < position {
            kept.push(next..position);
        }
        next = position.saturating_add(1);
    }
    kept
}

/// Positions within a decoded batch always fit.
fn to_usize(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
