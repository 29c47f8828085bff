//! The SlateDB store. One process writes; a second opener takes over and this one is fenced. Durability is the
//! flusher's ([`flusher`]); every call into the engine goes through [`guard`].

pub(crate) mod attendant;
mod checkpoint;
mod flusher;
mod follow;
pub(crate) mod guard;
mod ownership;
pub(crate) mod read_only;
mod reader;
mod rewritten;
pub(crate) mod settings;
mod tail;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;
use slatedb::config::{CloseOptions, FlushType};
use slatedb::manifest::VersionedManifest;
use slatedb::{CloseReason, Db, DbIterator, DbSnapshot, IsolationLevel};

pub use read_only::ReadOnlyStore;
pub use reader::SlateReader;

use crate::location::Location;
use crate::observed::ObservedStore;
use crate::{CommitError, OpenOptions, Read, ReadError, Scan, Store, Transaction, View};
use attendant::Attendant;
use flusher::Flusher;
use guard::{Failure, Guard, KeyName, read_error};
use ownership::Ownership;
use rewritten::{Around, Rewritten};
use transaction::SlateTransaction;

/// A store in SlateDB, open for writing. Dropping it without [`Store::close`] loses nothing that was acknowledged.
pub struct SlateStore {
    inner: Arc<Inner>,
}

/// What the store, its views, its transactions and its pending batches share.
pub(crate) struct Inner {
    db: Db,
    flusher: Flusher,
    _attendant: Attendant,
    guard: Guard,
    ownership: Arc<Ownership>,
    rewritten: Rewritten,
    reads: Arc<AtomicU64>,
    closed: AtomicBool,
}

impl SlateStore {
    /// Opens the database at `location` for writing, creating it when it is not there, and fences whoever has it open.
    pub(crate) async fn start(location: &Location, options: &OpenOptions) -> Result<SlateStore, Failure> {
        let observed = ObservedStore::new(Arc::clone(&location.store));
        let seen = observed.observations();
        let opening = Guard {
            limit: options.open_timeout,
            seen: Arc::clone(&seen),
        };
        let (cache, handle) = settings::cache();
        let engine = settings::writer(location.local, options.bulk);
        let rewritten = Rewritten::new(engine.l0_sst_size_bytes);
        let mut builder = Db::builder(location.prefix.clone(), Arc::new(observed))
            .with_settings(engine)
            .with_segment_extractor(Arc::new(settings::SubspaceExtractor))
            .with_db_cache(cache, handle)
            .with_block_cache_policy(settings::cached_when_written(options.bulk));
        if let Some(epoch) = options.expected_writer_epoch {
            builder = builder.with_expected_epoch(epoch);
        }
        let opened = tokio::time::Instant::now();
        let db = opening.run(async { builder.build().await }).await?;
        let guard = Guard {
            limit: options.request_timeout,
            seen,
        };
        let inner = Inner {
            flusher: Flusher::start(db.clone()),
            _attendant: Attendant::start(db.clone(), location),
            ownership: Ownership::new(db.clone(), guard.clone(), options.ownership_age_max, opened),
            db,
            guard,
            rewritten,
            reads: Arc::default(),
            closed: AtomicBool::new(false),
        };
        Ok(SlateStore {
            inner: Arc::new(inner),
        })
    }

    /// The newest manifest this process knows.
    pub(crate) fn manifest(&self) -> VersionedManifest {
        self.inner.db.manifest()
    }

    /// How many writers have opened the store so far, this one included.
    #[must_use]
    pub fn writer_epoch(&self) -> u64 {
        self.manifest().writer_epoch()
    }

    /// The engine itself.
    #[cfg(test)]
    pub(crate) fn db(&self) -> &Db {
        &self.inner.db
    }

    /// PUT requests this store has made since it was opened, background work and failed ones included; for tests and
    /// benchmarks that count what a commit costs.
    pub fn puts(&self) -> u64 {
        self.inner.guard.seen.puts()
    }
}

impl Inner {
    fn snapshot(&self) -> Result<Arc<DbSnapshot>, ReadError> {
        self.db
            .snapshot()
            .map_err(|error| read_error(error.into(), &"the store"))
    }

    /// Waits until everything up to `sequence` is durable.
    async fn durable(&self, sequence: u64) -> Result<(), CommitError> {
        let start = Instant::now();
        let mut status = self.db.subscribe();
        let reached = tokio::time::timeout(
            self.guard.limit,
            status.wait_for(|status| status.durable_seq >= sequence || status.close_reason.is_some()),
        );
        let reason = match reached.await {
            Err(_) => {
                return Err(CommitError::Unknown {
                    detail: self.guard.timeout_text(start),
                });
            }
            Ok(Err(_)) => Some(CloseReason::Panic),
            Ok(Ok(status)) if status.durable_seq >= sequence => return Ok(()),
            Ok(Ok(status)) => status.close_reason,
        };
        // The engine keeps the error it died of and hands it to every later call.
        let detail = match self.db.snapshot() {
            Err(error) => crate::error::with_sources(&error),
            Ok(_) => "the storage engine stopped".to_owned(),
        };
        match reason {
            Some(CloseReason::Fenced) => Err(CommitError::Fenced { detail }),
            _ => Err(CommitError::Unknown { detail }),
        }
    }

    fn counted(self: &Arc<Self>, iterator: DbIterator, pin: Option<Arc<DbSnapshot>>) -> Box<dyn Scan> {
        Box::new(SlateScan {
            iterator: Some(iterator),
            at: None,
            guard: self.guard.clone(),
            reads: Arc::clone(&self.reads),
            _pin: pin,
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if *self.closed.get_mut() {
            return;
        }
        // The engine's background tasks hold it alive until it is closed. Nothing is flushed: whoever drops a store
        // without closing it has been told of everything that is durable.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let db = self.db.clone();
            runtime.spawn(async move {
                if let Err(error) = db.close_with_options(CloseOptions { flush_type: None }).await {
                    tracing::debug!(%error, "closing a dropped store");
                }
            });
        }
    }
}

#[async_trait]
impl Store for SlateStore {
    fn view(&self) -> Result<Arc<dyn View>, ReadError> {
        Ok(Arc::new(SlateView {
            snapshot: self.inner.snapshot()?,
            inner: Arc::clone(&self.inner),
        }))
    }

    fn begin(&self) -> Result<Box<dyn Transaction>, ReadError> {
        let transaction = self
            .inner
            .db
            .begin(IsolationLevel::Snapshot)
            .map_err(|error| read_error(error.into(), &"the store"))?;
        Ok(Box::new(SlateTransaction::new(
            Arc::clone(&self.inner),
            transaction,
        )))
    }

    async fn confirm(&self) -> Result<(), ReadError> {
        self.inner.ownership.confirm().await
    }

    fn reads(&self) -> u64 {
        self.inner.reads.load(Ordering::Relaxed)
    }

    async fn close(&self) -> Result<(), ReadError> {
        if self.inner.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        // Everybody who waits for a flush is told its outcome before the engine tells them that it is closed.
        let settled = match self.inner.snapshot() {
            Ok(snapshot) => self.inner.durable(snapshot.seq()).await,
            Err(error) => Err(error.into()),
        };
        // A memtable flush can wait for compactions for many seconds; the WAL holds all of it.
        let options = CloseOptions {
            flush_type: settled.is_ok().then_some(FlushType::Wal),
        };
        let closed = self
            .inner
            .guard
            .read("the store", self.inner.db.close_with_options(options))
            .await;
        match settled {
            Ok(()) => closed,
            Err(CommitError::Abandoned { source }) => Err(source),
            Err(CommitError::Fenced { detail }) => Err(ReadError::Fenced { detail }),
            Err(error) => Err(ReadError::Unavailable {
                doing: "closing the store".to_owned(),
                detail: error.to_string(),
            }),
        }
    }
}

#[derive(Clone)]
struct SlateView {
    snapshot: Arc<DbSnapshot>,
    inner: Arc<Inner>,
}

#[async_trait]
impl Read for SlateView {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.inner.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.guard.read(KeyName(key), self.snapshot.get(key)).await
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        match Around::new(self, &range) {
            Some(around) => Ok(Box::new(around)),
            None => self.scan_whole(&range).await,
        }
    }
}

impl SlateView {
    /// One scan of the engine's over all of `range`.
    async fn scan_whole(&self, range: &KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let Some(bounds) = bounds(range) else {
            return Ok(Box::new(EmptyScan));
        };
        let options = settings::scan();
        let call = self.snapshot.scan_with_options(bounds, &options);
        let iterator = self.inner.guard.read(RangeName(range), call).await?;
        Ok(self.inner.counted(iterator, Some(Arc::clone(&self.snapshot))))
    }
}

#[async_trait]
impl View for SlateView {
    async fn settled(&self) -> Result<(), CommitError> {
        self.inner.durable(self.snapshot.seq()).await
    }
}

/// Bounds as SlateDB takes them; `None` for an empty range, on which it panics.
pub(crate) type Bounds = (std::ops::Bound<Bytes>, std::ops::Bound<Bytes>);

pub(crate) fn bounds(range: &KeyRange) -> Option<Bounds> {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    match &range.end {
        Some(_) if range.is_empty() => None,
        Some(end) => Some((Included(range.start.clone()), Excluded(end.clone()))),
        None => Some((Included(range.start.clone()), Unbounded)),
    }
}

/// A range as people read it: by its first key where that is one.
pub(crate) struct RangeName<'a>(pub(crate) &'a KeyRange);

impl std::fmt::Display for RangeName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the range from {}", KeyName(&self.0.start))
    }
}

struct EmptyScan;

#[async_trait]
impl Scan for EmptyScan {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        Ok(None)
    }
}

/// A scan in progress; the pin keeps what it reads from being compacted away.
struct SlateScan {
    iterator: Option<DbIterator>,
    at: Option<Bytes>,
    guard: Guard,
    reads: Arc<AtomicU64>,
    _pin: Option<Arc<DbSnapshot>>,
}

#[async_trait]
impl Scan for SlateScan {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        let Some(iterator) = &mut self.iterator else {
            return Ok(None);
        };
        match self.guard.run(iterator.next()).await {
            Ok(Some(record)) => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.at = Some(record.key.clone());
                Ok(Some((record.key, record.value)))
            }
            Ok(None) => {
                self.iterator = None;
                Ok(None)
            }
            Err(failure) => {
                self.iterator = None;
                let at = self.at.take().unwrap_or_default();
                Err(read_error(
                    failure,
                    &format_args!("the records after {}", KeyName(&at)),
                ))
            }
        }
    }
}
