//! An object store that takes a number of writes and then refuses all; reads always go through.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::watch;

/// How long an answer that was given may take to be acted on.
const ANSWERS_ARRIVE: Duration = Duration::from_millis(500);

/// What becomes of the write that comes after the last good one, and of those that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is refused like all that follow.
    Stops,
    /// It is carried out, but its sender is told that it failed; all that follow are refused.
    StopsUnheard,
    /// It is carried out, but its sender is told that it failed; all that follow are carried out.
    OneUnheard,
}

/// The wrapper.
#[derive(Debug)]
pub(crate) struct StoppingStore {
    inner: Arc<dyn ObjectStore>,
    writes: AtomicU64,
    writes_max: u64,
    fault: Fault,
    /// How long each write takes.
    pace: Duration,
    stopped: watch::Sender<bool>,
    resumed: AtomicBool,
}

enum Fate {
    Carried,
    CarriedUnheard,
    Refused,
}

impl StoppingStore {
    /// `inner`, taking `writes_max` writes.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, writes_max: u64, fault: Fault) -> Self {
        StoppingStore {
            inner,
            writes: AtomicU64::new(0),
            writes_max,
            fault,
            pace: Duration::ZERO,
            stopped: watch::Sender::new(false),
            resumed: AtomicBool::new(false),
        }
    }

    /// The same, each write taking some time, so that those who wait for one gather.
    pub(crate) fn paced(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Writes asked for so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// Returns once the store has stopped and answers that were on their way have arrived.
    pub(crate) async fn silence(&self) {
        let mut stopped = self.stopped.subscribe();
        // The sender lives in this store.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(ANSWERS_ARRIVE).await;
    }

    /// From now on every write is carried out again.
    pub(crate) fn resume(&self) {
        self.resumed.store(true, Ordering::SeqCst);
    }

    async fn fate(&self) -> Fate {
        let before = self.writes.fetch_add(1, Ordering::SeqCst);
        if !self.pace.is_zero() {
            tokio::time::sleep(self.pace).await;
        }
        self.decide(before)
    }

    fn decide(&self, before: u64) -> Fate {
        if before < self.writes_max || self.resumed.load(Ordering::SeqCst) {
            return Fate::Carried;
        }
        match (self.fault, before == self.writes_max) {
            (Fault::OneUnheard, true) => Fate::CarriedUnheard,
            (Fault::OneUnheard, false) => Fate::Carried,
            (fault, first) => {
                self.stopped.send_replace(true);
                if first && fault == Fault::StopsUnheard {
                    Fate::CarriedUnheard
                } else {
                    Fate::Refused
                }
            }
        }
    }
}

fn stopped() -> Error {
    Error::Generic {
        store: "stopping",
        source: "the store has stopped taking writes".into(),
    }
}

impl fmt::Display for StoppingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for StoppingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        match self.fate().await {
            Fate::Carried => self.inner.put_opts(location, payload, options).await,
            Fate::CarriedUnheard => {
                self.inner.put_opts(location, payload, options).await?;
                Err(stopped())
            }
            Fate::Refused => Err(stopped()),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.fate().await {
            Fate::Carried => self.inner.put_multipart_opts(location, options).await,
            Fate::CarriedUnheard | Fate::Refused => Err(stopped()),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.decide(self.writes.fetch_add(1, Ordering::SeqCst)) {
            Fate::Carried => self.inner.delete_stream(locations),
            Fate::CarriedUnheard => self
                .inner
                .delete_stream(locations)
                .map(|_| Err(stopped()))
                .boxed(),
            Fate::Refused => locations.map(|_| Err(stopped())).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        match self.fate().await {
            Fate::Carried => self.inner.copy_opts(from, to, options).await,
            Fate::CarriedUnheard => {
                self.inner.copy_opts(from, to, options).await?;
                Err(stopped())
            }
            Fate::Refused => Err(stopped()),
        }
    }
}
