//! Inlined rows across chunks: none is seen twice at one snapshot, and each tombstone ends one. Both go along the
//! directory in the order of row ids, keeping only the chunks that can still meet what comes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use moraine_codec::proto::InlineChunkRangeValue;
use moraine_keys::{ChunkLocatorKey, Kind, RowTombstoneKey, TableChild};
use moraine_store::ReadError;

use super::{Check, Invariant, Records};

/// A chunk, as its locator tells of it.
#[derive(Debug, Clone)]
struct Chunk {
    table_id: u64,
    start: u64,
    end: u64,
    begin_snapshot: u64,
    locator: ChunkLocatorKey,
}

impl Chunk {
    fn new(locator: ChunkLocatorKey, value: &InlineChunkRangeValue) -> Self {
        Self {
            table_id: locator.table_id,
            start: value.row_id_start,
            end: locator.row_id_end,
            begin_snapshot: locator.begin_snapshot,
            locator,
        }
    }
}

pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    let widest = widest(check).await?;
    rows_seen_once(check, widest).await?;
    tombstones(check, widest).await
}

/// Rows from the first to the last of the widest chunk, less one.
async fn widest(check: &Check<'_>) -> Result<u64, ReadError> {
    let mut widest = 0;
    let mut scan = check.scan::<ChunkLocatorKey>(ChunkLocatorKey::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        widest = widest.max(key.row_id_end.saturating_sub(value.row_id_start));
    }
    Ok(widest)
}

/// Chunks that can still meet what comes, by the snapshot their rows begin at.
type ByBegin = BTreeMap<(u64, ChunkLocatorKey), Chunk>;

/// Where two chunks hold the same row, the older version has ended when the newer begins.
async fn rows_seen_once(check: &mut Check<'_>, widest: u64) -> Result<(), ReadError> {
    let mut near = ByBegin::new();
    let mut scan = check.scan::<ChunkLocatorKey>(ChunkLocatorKey::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        let chunk = Chunk::new(key, &value);
        // Chunks come by their ends: one that ends before the start of the widest possible chunk meets no later one.
        let reach = chunk.end.saturating_sub(widest);
        near.retain(|_, other| other.table_id == chunk.table_id && other.end >= reach);
        let place = (chunk.begin_snapshot, chunk.locator.clone());
        // Next to a version of a row, in the order of their begins, are the only ones it has to be told from.
        let older = meetings(near.range(..&place).rev(), &chunk);
        let newer = meetings(near.range(&place..), &chunk);
        for (other, rows) in older {
            meeting(check, &other, &chunk, rows).await?;
        }
        for (other, rows) in newer {
            meeting(check, &chunk, &other, rows).await?;
        }
        near.insert(place, chunk);
    }
    Ok(())
}

/// For the rows of `chunk`, the first of `others` that holds each.
fn meetings<'a>(
    others: impl Iterator<Item = (&'a (u64, ChunkLocatorKey), &'a Chunk)>,
    chunk: &Chunk,
) -> Vec<(Chunk, RangeInclusive<u64>)> {
    let mut met = Vec::new();
    let mut left = vec![chunk.start..=chunk.end];
    for (_, other) in others {
        if left.is_empty() {
            break;
        }
        let mut rest = Vec::new();
        for rows in left {
            let (start, end) = (other.start.max(*rows.start()), other.end.min(*rows.end()));
            if start > end {
                rest.push(rows);
                continue;
            }
            met.push((other.clone(), start..=end));
            if *rows.start() < start {
                rest.push(*rows.start()..=start - 1);
            }
            if end < *rows.end() {
                rest.push(end + 1..=*rows.end());
            }
        }
        left = rest;
    }
    met
}

/// Every one of `rows` has a tombstone that ends the older version by the time the newer begins.
async fn meeting(
    check: &mut Check<'_>,
    older: &Chunk,
    newer: &Chunk,
    rows: RangeInclusive<u64>,
) -> Result<(), ReadError> {
    let mut missing = *rows.start();
    let mut ends = check
        .scan::<RowTombstoneKey>(RowTombstoneKey::scan_table_ids(newer.table_id, rows.clone()))
        .await?;
    while let Some((key, _)) = ends.next().await? {
        let ends_older = older.begin_snapshot < key.end_snapshot && key.end_snapshot <= newer.begin_snapshot;
        if ends_older && key.row_id == missing {
            missing = missing.saturating_add(1);
        } else if key.row_id > missing {
            break;
        }
    }
    if missing <= *rows.end() {
        let detail = format!(
            "row {missing} is also in {}, and no tombstone ends the version of snapshot {} by snapshot {}",
            older.locator, older.begin_snapshot, newer.begin_snapshot
        );
        check.found(Invariant::RowsSeenOnce, &newer.locator, detail);
    }
    Ok(())
}

/// The chunks near a row, for rows that ascend.
struct Near {
    scan: Records<ChunkLocatorKey>,
    widest: u64,
    ahead: Option<Chunk>,
    chunks: VecDeque<Chunk>,
}

impl Near {
    async fn start(check: &Check<'_>, widest: u64) -> Result<Self, ReadError> {
        let mut near = Self {
            scan: check.scan::<ChunkLocatorKey>(ChunkLocatorKey::scan()).await?,
            widest,
            ahead: None,
            chunks: VecDeque::new(),
        };
        near.read_ahead().await?;
        Ok(near)
    }

    async fn read_ahead(&mut self) -> Result<(), ReadError> {
        let next = self.scan.next().await?;
        self.ahead = next.map(|(key, value)| Chunk::new(key, &value));
        Ok(())
    }

    /// Whether a chunk holds a version of the row that began before `end_snapshot`.
    async fn holds(&mut self, table_id: u64, row_id: u64, end_snapshot: u64) -> Result<bool, ReadError> {
        self.chunks
            .retain(|chunk| (chunk.table_id, chunk.end) >= (table_id, row_id));
        let reach = (table_id, row_id.saturating_add(self.widest));
        while let Some(chunk) = self.ahead.take_if(|chunk| (chunk.table_id, chunk.end) <= reach) {
            if (chunk.table_id, chunk.end) >= (table_id, row_id) {
                self.chunks.push_back(chunk);
            }
            self.read_ahead().await?;
        }
        Ok(self.chunks.iter().any(|chunk| {
            chunk.table_id == table_id
                && (chunk.start..=chunk.end).contains(&row_id)
                && chunk.begin_snapshot < end_snapshot
        }))
    }
}

async fn tombstones(check: &mut Check<'_>, widest: u64) -> Result<(), ReadError> {
    let newest = check.newest_id();
    let mut near = Near::start(check, widest).await?;
    let mut scan = check.scan::<RowTombstoneKey>(RowTombstoneKey::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        if key.end_snapshot > newest {
            let detail = format!(
                "it ends the row at snapshot {}, and the newest is {newest}",
                key.end_snapshot
            );
            check.found(Invariant::VersionsWithinHead, &key, detail);
        }
        if !near.holds(key.table_id, key.row_id, key.end_snapshot).await? {
            let detail = "no chunk holds a version of the row that begins before it";
            check.found(Invariant::TombstonesEndRows, &key, detail);
        }
    }
    Ok(())
}
