//! Keys that are written again and again, such as a table's statistics. The engine keeps every version of a key in memory
//! until its memtable is written out, and a scan walks over all of them, while a get finds the newest at once. So a scan
//! goes around these keys and gets them instead, and costs the same after ten commits and after a hundred thousand. This is
//! about cost alone: what is read is the same whichever keys are known here.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;

use super::SlateView;
use crate::{Read, ReadError, Scan};

/// From so many writes on, a get and another scan cost less than walking over the versions.
const WRITES_MIN: u32 = 32;
/// Keys that are counted at a time.
const COUNTED_MAX: usize = 4096;
/// Keys that scans go around at a time.
const REWRITTEN_MAX: usize = 1024;

/// The keys known to be rewritten, of one open store.
#[derive(Debug)]
pub(crate) struct Rewritten {
    known: Mutex<Known>,
    /// Bytes after which the memtable has been written out, and with it all versions but the newest.
    memtable_bytes: usize,
}

#[derive(Debug, Default)]
struct Known {
    writes: HashMap<Bytes, u32>,
    rewritten: BTreeSet<Bytes>,
    bytes: usize,
}

impl Rewritten {
    pub(crate) fn new(memtable_bytes: usize) -> Self {
        Rewritten {
            known: Mutex::default(),
            memtable_bytes,
        }
    }

    /// Counts the writes of a batch: its keys, and its bytes in all.
    pub(crate) fn written(&self, keys: Vec<Bytes>, bytes: usize) {
        let mut known = self.lock();
        known.bytes += bytes;
        if known.bytes > self.memtable_bytes {
            *known = Known::default();
        }
        for key in keys {
            known.count(key);
        }
    }

    /// The rewritten keys within `range`, ascending.
    fn within(&self, range: &KeyRange) -> Vec<Bytes> {
        let end = match &range.end {
            // `BTreeSet::range` panics on inverted bounds.
            Some(_) if range.is_empty() => return Vec::new(),
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        let known = self.lock();
        let within = known
            .rewritten
            .range::<Bytes, _>((Bound::Included(&range.start), end));
        within.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn count(&mut self, key: Bytes) {
        if self.rewritten.contains(&key) {
            return;
        }
        if self.writes.len() >= COUNTED_MAX && !self.writes.contains_key(&key) {
            // Most keys are written once in their lives: all of those go.
            self.writes.retain(|_, writes| {
                *writes /= 2;
                *writes > 0
            });
        }
        let writes = self.writes.entry(key.clone()).or_insert(0);
        *writes += 1;
        if *writes >= WRITES_MIN && self.rewritten.len() < REWRITTEN_MAX {
            self.writes.remove(&key);
            self.rewritten.insert(key);
        }
    }
}

/// A scan that goes around the rewritten keys of its range.
pub(super) struct Around {
    view: SlateView,
    pieces: std::vec::IntoIter<Piece>,
    scan: Option<Box<dyn Scan>>,
}

/// A part of a range: keys to scan, or a key to get.
enum Piece {
    Scan(KeyRange),
    Get(Bytes),
}

impl Around {
    /// A scan of `range` in `view`, if there is a rewritten key in it.
    pub(super) fn new(view: &SlateView, range: &KeyRange) -> Option<Self> {
        let rewritten = view.inner.rewritten.within(range);
        if rewritten.is_empty() {
            return None;
        }
        Some(Around {
            view: view.clone(),
            pieces: pieces(range, rewritten).into_iter(),
            scan: None,
        })
    }
}

fn pieces(range: &KeyRange, rewritten: Vec<Bytes>) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(2 * rewritten.len() + 1);
    let mut start = range.start.clone();
    for key in rewritten {
        let after = Bytes::from([key.as_ref(), &[0]].concat());
        let before = KeyRange {
            start: std::mem::replace(&mut start, after),
            end: Some(key.clone()),
        };
        pieces.push(Piece::Scan(before));
        pieces.push(Piece::Get(key));
    }
    let end = range.end.clone();
    pieces.push(Piece::Scan(KeyRange { start, end }));
    pieces.retain(|piece| !matches!(piece, Piece::Scan(range) if range.is_empty()));
    pieces
}

#[async_trait]
impl Scan for Around {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        loop {
            if let Some(scan) = &mut self.scan {
                if let Some(record) = scan.next().await? {
                    return Ok(Some(record));
                }
                self.scan = None;
            }
            match self.pieces.next() {
                Some(Piece::Scan(range)) => self.scan = Some(self.view.scan_whole(&range).await?),
                Some(Piece::Get(key)) => {
                    if let Some(value) = self.view.get(&key).await? {
                        return Ok(Some((key, value)));
                    }
                }
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: u32) -> Bytes {
        Bytes::copy_from_slice(&id.to_be_bytes())
    }

    fn whole() -> KeyRange {
        KeyRange::all()
    }

    #[test]
    fn keys_written_once_never_crowd_out_a_key_that_is_rewritten() {
        let rewritten = Rewritten::new(usize::MAX);
        for number in 0..200_000 {
            let mut keys = vec![key(1_000_000 + number)];
            if number % 100 == 0 {
                keys.push(key(7));
            }
            rewritten.written(keys, 0);
        }
        assert_eq!(rewritten.within(&whole()), [key(7)]);
        assert!(rewritten.lock().writes.len() <= COUNTED_MAX);
    }

    #[test]
    fn all_are_forgotten_when_the_memtable_has_been_written_out() {
        let rewritten = Rewritten::new(1000);
        for _ in 0..WRITES_MIN {
            rewritten.written(vec![key(7)], 10);
        }
        assert_eq!(rewritten.within(&whole()), [key(7)]);
        rewritten.written(vec![key(8)], 1000);
        assert_eq!(rewritten.within(&whole()), Vec::<Bytes>::new());
    }

    #[test]
    fn no_more_keys_are_gone_around_than_are_allowed() {
        let rewritten = Rewritten::new(usize::MAX);
        for _ in 0..WRITES_MIN {
            rewritten.written((0..2000).map(key).collect(), 0);
        }
        assert_eq!(rewritten.within(&whole()).len(), REWRITTEN_MAX);
    }
}
