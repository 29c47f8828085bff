//! The in-memory store: every key with its versions, views that read at a version number. It keeps nothing across
//! processes; what it promises while it lives is what the SlateDB store promises, plus a hand on durability for tests.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;
use tokio::sync::watch;

use crate::{CommitError, Pending, Read, ReadError, Scan, Store, Transaction, View, WriteSet};

/// Records a scan fetches under one lock.
const SCAN_PAGE_RECORDS: usize = 256;

/// A store in memory. Clones share the same records.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// What is durable so far, and why nothing more will be.
    progress: watch::Sender<Progress>,
    reads: AtomicU64,
}

#[derive(Default)]
struct State {
    sequence: u64,
    records: BTreeMap<Bytes, Vec<Version>>,
    /// Sequence numbers that views and transactions are pinned at, with how many of them.
    pinned: BTreeMap<u64, usize>,
    held: bool,
    closed: bool,
}

/// A state of one key: `None` is a deletion.
struct Version {
    sequence: u64,
    value: Option<Bytes>,
}

#[derive(Default)]
struct Progress {
    durable: u64,
    failure: Option<CommitError>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// An empty store in which a written batch is durable at once.
    pub fn new() -> Self {
        let shared = Shared {
            state: Mutex::new(State::default()),
            progress: watch::Sender::new(Progress::default()),
            reads: AtomicU64::new(0),
        };
        MemoryStore {
            shared: Arc::new(shared),
        }
    }

    /// From now on written batches stay pending until [`MemoryStore::release`] or [`MemoryStore::fail`]; for tests of
    /// what may be built on a batch and what may be acknowledged.
    pub fn hold(&self) {
        self.shared.state().held = true;
    }

    /// Everything written is durable, and what comes is durable at once.
    pub fn release(&self) {
        let mut state = self.shared.state();
        state.held = false;
        self.shared
            .progress
            .send_modify(|progress| progress.durable = state.sequence);
    }

    /// The flush in the air fails: whatever is pending, and all that depends on it, resolves to `error`, and the store
    /// serves nothing more, as a SlateDB handle after a failed flush.
    pub fn fail(&self, error: CommitError) {
        self.shared
            .progress
            .send_modify(|progress| progress.failure = Some(error));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, state: &State) -> Result<(), ReadError> {
        match &self.progress.borrow().failure {
            Some(CommitError::Fenced { detail }) => {
                return Err(ReadError::Fenced {
                    detail: detail.clone(),
                });
            }
            Some(error) => {
                return Err(ReadError::Stopped {
                    detail: error.to_string(),
                });
            }
            None => {}
        }
        if state.closed {
            Err(ReadError::Closed)
        } else {
            Ok(())
        }
    }

    fn pin(self: &Arc<Self>) -> Result<Pin, ReadError> {
        let mut state = self.state();
        self.check(&state)?;
        let sequence = state.sequence;
        *state.pinned.entry(sequence).or_default() += 1;
        Ok(Pin {
            shared: Arc::clone(self),
            sequence,
        })
    }

    fn write(&self, start: u64, writes: &WriteSet) -> Result<u64, CommitError> {
        let mut state = self.state();
        self.check(&state)?;
        for (key, _) in writes {
            if state
                .records
                .get(key)
                .and_then(|versions| versions.last())
                .is_some_and(|last| last.sequence > start)
            {
                return Err(CommitError::Conflicted);
            }
        }
        state.sequence += 1;
        let sequence = state.sequence;
        let oldest = state.pinned.keys().next().copied().unwrap_or(sequence);
        for (key, value) in writes {
            let versions = state.records.entry(key.clone()).or_default();
            versions.push(Version {
                sequence,
                value: value.clone(),
            });
            let needed = versions
                .iter()
                .rposition(|version| version.sequence <= oldest)
                .unwrap_or(0);
            versions.drain(..needed);
        }
        if !state.held {
            self.progress.send_modify(|progress| progress.durable = sequence);
        }
        Ok(sequence)
    }

    async fn durable(self: Arc<Self>, sequence: u64) -> Result<(), CommitError> {
        let mut progress = self.progress.subscribe();
        let reached = progress
            .wait_for(|progress| progress.durable >= sequence || progress.failure.is_some())
            .await
            .map_err(|_| CommitError::Unknown {
                detail: "the store was dropped".to_owned(),
            })?;
        match &reached.failure {
            Some(error) if reached.durable < sequence => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// Some records of a range, and the rest of the range if there may be more.
#[derive(Default)]
struct Page {
    records: Vec<(Bytes, Bytes)>,
    rest: Option<KeyRange>,
}

/// A sequence number to read at; while it lives, what it sees is kept.
struct Pin {
    shared: Arc<Shared>,
    sequence: u64,
}

impl Pin {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        let state = self.shared.state();
        self.shared.check(&state)?;
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        Ok(state
            .records
            .get(key)
            .and_then(|versions| visible(versions, self.sequence)))
    }

    /// Up to [`SCAN_PAGE_RECORDS`] records from the start of `range` on.
    fn page(&self, range: &KeyRange) -> Result<Page, ReadError> {
        let state = self.shared.state();
        self.shared.check(&state)?;
        if range.is_empty() {
            return Ok(Page::default());
        }
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut page = Vec::new();
        for (key, versions) in state
            .records
            .range::<Bytes, _>((Bound::Included(&range.start), end))
        {
            if page.len() == SCAN_PAGE_RECORDS {
                let rest = KeyRange {
                    start: key.clone(),
                    end: range.end.clone(),
                };
                return Ok(Page {
                    records: page,
                    rest: Some(rest),
                });
            }
            if let Some(value) = visible(versions, self.sequence) {
                page.push((key.clone(), value));
            }
        }
        Ok(Page {
            records: page,
            rest: None,
        })
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        *self.shared.state().pinned.entry(self.sequence).or_default() += 1;
        Pin {
            shared: Arc::clone(&self.shared),
            sequence: self.sequence,
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(count) = state.pinned.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                state.pinned.remove(&self.sequence);
            }
        }
    }
}

fn visible(versions: &[Version], sequence: u64) -> Option<Bytes> {
    versions
        .iter()
        .rev()
        .find(|version| version.sequence <= sequence)
        .and_then(|version| version.value.clone())
}

struct MemoryScan {
    pin: Pin,
    page: std::vec::IntoIter<(Bytes, Bytes)>,
    rest: Option<KeyRange>,
}

impl MemoryScan {
    fn start(pin: Pin, range: KeyRange) -> Box<dyn Scan> {
        Box::new(MemoryScan {
            pin,
            page: Vec::new().into_iter(),
            rest: Some(range),
        })
    }
}

#[async_trait]
impl Scan for MemoryScan {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        loop {
            if let Some(record) = self.page.next() {
                self.pin.shared.reads.fetch_add(1, Ordering::Relaxed);
                return Ok(Some(record));
            }
            let Some(range) = self.rest.take() else {
                return Ok(None);
            };
            let page = self.pin.page(&range)?;
            self.page = page.records.into_iter();
            self.rest = page.rest;
        }
    }
}

struct MemoryView {
    pin: Pin,
}

#[async_trait]
impl Read for MemoryView {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.pin.get(key)
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        Ok(MemoryScan::start(self.pin.clone(), range))
    }
}

#[async_trait]
impl View for MemoryView {
    async fn settled(&self) -> Result<(), CommitError> {
        Arc::clone(&self.pin.shared).durable(self.pin.sequence).await
    }
}

struct MemoryTransaction {
    pin: Pin,
    writes: WriteSet,
}

#[async_trait]
impl Read for MemoryTransaction {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        match self.writes.get(key) {
            Some(change) => Ok(change.clone()),
            None => self.pin.get(key),
        }
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let below = MemoryScan::start(self.pin.clone(), range.clone());
        Ok(self.writes.overlay(below, &range))
    }
}

#[async_trait]
impl Transaction for MemoryTransaction {
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), ReadError> {
        check_key(&key)?;
        self.writes.put(key, value);
        Ok(())
    }

    fn delete(&mut self, key: Bytes) -> Result<(), ReadError> {
        check_key(&key)?;
        self.writes.delete(key);
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<Pending, CommitError> {
        if self.writes.is_empty() {
            return Ok(Pending::new(std::future::ready(Ok(()))));
        }
        let sequence = self.pin.shared.write(self.pin.sequence, &self.writes)?;
        Ok(Pending::new(Arc::clone(&self.pin.shared).durable(sequence)))
    }
}

fn check_key(key: &[u8]) -> Result<(), ReadError> {
    if key.is_empty() {
        return Err(ReadError::Invalid {
            detail: "a key is never empty".to_owned(),
        });
    }
    Ok(())
}

#[async_trait]
impl Store for MemoryStore {
    fn view(&self) -> Result<Arc<dyn View>, ReadError> {
        Ok(Arc::new(MemoryView {
            pin: self.shared.pin()?,
        }))
    }

    fn begin(&self) -> Result<Box<dyn Transaction>, ReadError> {
        Ok(Box::new(MemoryTransaction {
            pin: self.shared.pin()?,
            writes: WriteSet::new(),
        }))
    }

    fn reads(&self) -> u64 {
        self.shared.reads.load(Ordering::Relaxed)
    }

    async fn close(&self) -> Result<(), ReadError> {
        self.shared.state().closed = true;
        Ok(())
    }
}
