//! A store that is open for reading only: it follows the writer, or stays at a checkpoint. Either way its views are pinned,
//! and nothing is ever written. How the writer is followed is in [`super::follow`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::db_cache::DbCache;
use slatedb::manifest::VersionedManifest;
use slatedb::{Checkpoint, DbReader, DbReaderMode};
use tokio::task::JoinHandle;

use super::follow::Follower;
use super::guard::{Failure, Guard, KeyName, read_error};
use super::tail::{Pin, Tail};
use super::{EmptyScan, RangeName, SlateScan, bounds, settings};
use crate::location::Location;
use crate::observed::ObservedStore;
use crate::write_set::lay_over;
use crate::{CommitError, OpenOptions, Read, ReadError, Scan, Store, Transaction, View};

/// A store in SlateDB, open for reading only: [`Store::begin`] is refused with [`ReadError::ReadOnly`].
///
/// A view shows what was durable when the follower last looked, which is a poll interval ago at most, and no part of a
/// later batch. Where the object store has not answered for longer than [`OpenOptions::request_timeout`], views are refused
/// rather than ever older. Views that are held for longer than the writer's garbage collector spares objects (5 minutes)
/// may fail with [`ReadError::Corruption`] that says so; beginning again helps. At a checkpoint nothing moves and all stays.
pub struct ReadOnlyStore {
    shared: Arc<Shared>,
    following: Option<JoinHandle<()>>,
}

struct Shared {
    current: RwLock<Arc<Generation>>,
    guard: Guard,
    reads: Arc<AtomicU64>,
    closed: AtomicBool,
    /// When the follower last heard from the object store, and what went wrong since. `None` at a checkpoint.
    heard: Option<Mutex<Heard>>,
}

struct Heard {
    at: Instant,
    failure: Option<String>,
}

/// SSTs that do not change, and the log on top of them.
pub(crate) struct Generation {
    pub(crate) base: Base,
    pub(crate) manifest: VersionedManifest,
    pub(crate) tail: Arc<Tail>,
}

/// A handle on the SSTs of one manifest, closed when nobody has it any more.
pub(crate) struct Base(Arc<DbReader>);

impl Drop for Base {
    fn drop(&mut self) {
        // The engine's background task holds it alive until it is closed.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reader = Arc::clone(&self.0);
            runtime.spawn(async move {
                if let Err(error) = reader.close().await {
                    tracing::debug!(%error, "closing a read-only handle");
                }
            });
        }
    }
}

/// Opens the SSTs of one store, again and again, all with the same cached blocks.
pub(crate) struct Opener {
    prefix: Path,
    store: Arc<dyn ObjectStore>,
    cache: Arc<dyn DbCache>,
    cache_id: u64,
}

impl Opener {
    pub(crate) fn place(&self) -> (Path, Arc<dyn ObjectStore>) {
        (self.prefix.clone(), Arc::clone(&self.store))
    }

    /// Opens without the log at the newest manifest, or with its part of the log at a checkpoint.
    pub(crate) async fn open(
        &self,
        mode: DbReaderMode,
        guard: &Guard,
    ) -> Result<(Base, VersionedManifest), Failure> {
        let builder = DbReader::builder(self.prefix.clone(), Arc::clone(&self.store))
            .with_segment_extractor(Arc::new(settings::SubspaceExtractor))
            .with_reader_mode(mode)
            .with_options(settings::pinned_reader(mode == DbReaderMode::FollowLatest))
            .with_db_cache(Arc::clone(&self.cache), self.cache_id);
        let reader = guard.run(async { builder.build().await }).await?;
        let manifest = reader.manifest();
        Ok((Base(Arc::new(reader)), manifest))
    }
}

/// Which state a store that is only read shows.
pub(crate) enum Point {
    Newest { poll_interval: Duration },
    Checkpoint(Checkpoint),
}

impl ReadOnlyStore {
    pub(crate) async fn start(
        location: &Location,
        options: &OpenOptions,
        point: Point,
    ) -> Result<ReadOnlyStore, Failure> {
        let observed = ObservedStore::new(Arc::clone(&location.store));
        let seen = observed.observations();
        let opening = Guard {
            limit: options.open_timeout,
            seen: Arc::clone(&seen),
        };
        let guard = Guard {
            limit: options.request_timeout,
            seen,
        };
        let (cache, cache_id) = settings::cache();
        let opener = Opener {
            prefix: location.prefix.clone(),
            store: Arc::new(observed),
            cache,
            cache_id,
        };
        let (follower, generation) = match &point {
            Point::Newest { poll_interval } => {
                let (follower, generation) = Follower::start(opener, opening, *poll_interval).await?;
                (Some(follower), generation)
            }
            Point::Checkpoint(checkpoint) => {
                let mode = DbReaderMode::Checkpoint(checkpoint.id);
                let (base, manifest) = opener.open(mode, &opening).await?;
                let tail = Arc::new(Tail::new(0));
                let generation = Generation { base, manifest, tail };
                (None, Arc::new(generation))
            }
        };
        let shared = Arc::new(Shared {
            current: RwLock::new(generation),
            guard,
            reads: Arc::default(),
            closed: AtomicBool::new(false),
            heard: follower.is_some().then(|| {
                Mutex::new(Heard {
                    at: Instant::now(),
                    failure: None,
                })
            }),
        });
        let following = match (follower, point) {
            (Some(follower), Point::Newest { poll_interval }) => {
                let following = follow(Arc::clone(&shared), follower, poll_interval);
                Some(tokio::spawn(following))
            }
            _ => None,
        };
        Ok(ReadOnlyStore { shared, following })
    }
}

async fn follow(shared: Arc<Shared>, mut follower: Follower, poll_interval: Duration) {
    loop {
        tokio::time::sleep(poll_interval).await;
        let asked = Instant::now();
        let polled = follower.poll(&shared.current()).await;
        let failure = match polled {
            Ok(renewed) => {
                if let Some(generation) = renewed {
                    tracing::debug!(manifest = generation.manifest.id(), "the SSTs were opened anew");
                    *shared.current.write().unwrap_or_else(PoisonError::into_inner) = generation;
                }
                None
            }
            Err(failure) => Some(read_error(failure, &"what is new in the store").to_string()),
        };
        if let Some(failure) = &failure {
            tracing::warn!(failure, "the writer could not be followed; trying again");
        }
        shared.heard(asked, failure);
    }
}

impl Shared {
    fn current(&self) -> Arc<Generation> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn heard(&self, at: Instant, failure: Option<String>) {
        if let Some(heard) = &self.heard {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            if failure.is_none() {
                heard.at = at;
            }
            heard.failure = failure;
        }
    }

    fn check(&self) -> Result<(), ReadError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(ReadError::Closed);
        }
        let Some(heard) = &self.heard else {
            return Ok(());
        };
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.at.elapsed() <= self.guard.limit {
            return Ok(());
        }
        let failure = heard.failure.clone();
        Err(ReadError::Unavailable {
            doing: "following the writer".to_owned(),
            detail: failure.unwrap_or_else(|| format!("no answer within {:?}", self.guard.limit)),
        })
    }
}

#[async_trait]
impl Store for ReadOnlyStore {
    fn view(&self) -> Result<Arc<dyn View>, ReadError> {
        self.shared.check()?;
        let generation = self.shared.current();
        let pin = generation.tail.pin();
        Ok(Arc::new(ReadOnlyView {
            shared: Arc::clone(&self.shared),
            generation,
            pin,
        }))
    }

    fn begin(&self) -> Result<Box<dyn Transaction>, ReadError> {
        Err(ReadError::ReadOnly)
    }

    fn reads(&self) -> u64 {
        self.shared.reads.load(Ordering::Relaxed)
    }

    async fn close(&self) -> Result<(), ReadError> {
        if self.shared.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        if let Some(following) = &self.following {
            following.abort();
        }
        let reader = Arc::clone(&self.shared.current().base.0);
        self.shared.guard.read("the store", reader.close()).await
    }
}

impl Drop for ReadOnlyStore {
    fn drop(&mut self) {
        if let Some(following) = &self.following {
            following.abort();
        }
    }
}

struct ReadOnlyView {
    shared: Arc<Shared>,
    generation: Arc<Generation>,
    pin: Pin,
}

#[async_trait]
impl Read for ReadOnlyView {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        match self.pin.get(key) {
            Some(value) => Ok(value),
            None => {
                let reader = &self.generation.base.0;
                self.shared.guard.read(KeyName(key), reader.get(key)).await
            }
        }
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let Some(bounds) = bounds(&range) else {
            return Ok(Box::new(EmptyScan));
        };
        let options = settings::scan();
        let call = self.generation.base.0.scan_with_options(bounds, &options);
        let iterator = self.shared.guard.read(RangeName(&range), call).await?;
        let below = Box::new(SlateScan {
            iterator: Some(iterator),
            at: None,
            guard: self.shared.guard.clone(),
            reads: Arc::clone(&self.shared.reads),
            _pin: None,
        });
        Ok(lay_over(below, self.pin.range(&range)))
    }
}

#[async_trait]
impl View for ReadOnlyView {
    /// At once: only what is durable is ever seen.
    async fn settled(&self) -> Result<(), CommitError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
