//! An object store that takes a number of writes and then refuses all; reads always go through.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What happens to the write that comes after the last good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastWrite {
    /// It is refused like all that follow.
    Refused,
    /// It is carried out, but its sender is told that it failed.
    AppliedAnswerLost,
}

/// The wrapper.
#[derive(Debug)]
pub(crate) struct StoppingStore {
    inner: Arc<dyn ObjectStore>,
    writes: AtomicU64,
    writes_max: u64,
    last: LastWrite,
}

enum Fate {
    Carried,
    CarriedAnswerLost,
    Refused,
}

impl StoppingStore {
    /// `inner`, taking `writes_max` writes.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, writes_max: u64, last: LastWrite) -> Self {
        StoppingStore {
            inner,
            writes: AtomicU64::new(0),
            writes_max,
            last,
        }
    }

    /// Writes asked for so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    fn fate(&self) -> Fate {
        let before = self.writes.fetch_add(1, Ordering::SeqCst);
        match (before < self.writes_max, before == self.writes_max, self.last) {
            (true, ..) => Fate::Carried,
            (false, true, LastWrite::AppliedAnswerLost) => Fate::CarriedAnswerLost,
            _ => Fate::Refused,
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
        match self.fate() {
            Fate::Carried => self.inner.put_opts(location, payload, options).await,
            Fate::CarriedAnswerLost => {
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
        match self.fate() {
            Fate::Carried => self.inner.put_multipart_opts(location, options).await,
            Fate::CarriedAnswerLost | Fate::Refused => Err(stopped()),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.fate() {
            Fate::Carried => self.inner.delete_stream(locations),
            Fate::CarriedAnswerLost | Fate::Refused => locations.map(|_| Err(stopped())).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        match self.fate() {
            Fate::Carried => self.inner.copy_opts(from, to, options).await,
            Fate::CarriedAnswerLost => {
                self.inner.copy_opts(from, to, options).await?;
                Err(stopped())
            }
            Fate::Refused => Err(stopped()),
        }
    }
}
