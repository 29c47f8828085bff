//! An object store that remembers what went wrong last and counts its writes. SlateDB retries quietly and for long, so
//! without this a call that ran out of time could not name its reason.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// What an [`ObservedStore`] has seen; shared by its clones.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    last_failure: Mutex<Option<(Instant, String)>>,
    last_read: Mutex<Option<Path>>,
    puts: AtomicU64,
}

impl Observations {
    /// The newest failure since `start`, as operation, object and reason.
    pub(crate) fn failure_since(&self, start: Instant) -> Option<String> {
        let last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .filter(|(at, _)| *at >= start)
            .map(|(_, text)| text.clone())
    }

    /// The object that was read last.
    pub(crate) fn last_read(&self) -> Option<String> {
        let last = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(Path::to_string)
    }

    fn reading(&self, location: &Path) {
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner) = Some(location.clone());
    }

    /// PUT requests made so far, failed ones included; parts of multipart uploads are not counted.
    pub(crate) fn puts(&self) -> u64 {
        self.puts.load(Ordering::Relaxed)
    }

    fn note<T>(&self, operation: &str, location: Option<&Path>, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            // These three are answers to a question (is it there yet?), not failures.
            let answer = matches!(
                error,
                object_store::Error::NotFound { .. }
                    | object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. }
                    | object_store::Error::NotModified { .. }
            );
            if !answer {
                let at = location.map_or_else(String::new, |location| format!(" {location}"));
                let text = format!("{operation}{at}: {}", crate::error::with_sources(error));
                let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some((Instant::now(), text));
            }
        }
        result
    }
}

/// The wrapper; everything goes through unchanged.
#[derive(Debug, Clone)]
pub(crate) struct ObservedStore {
    inner: Arc<dyn ObjectStore>,
    seen: Arc<Observations>,
}

impl ObservedStore {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        ObservedStore {
            inner,
            seen: Arc::default(),
        }
    }

    pub(crate) fn observations(&self) -> Arc<Observations> {
        Arc::clone(&self.seen)
    }
}

impl std::fmt::Display for ObservedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for ObservedStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.seen.puts.fetch_add(1, Ordering::Relaxed);
        let result = self.inner.put_opts(location, payload, opts).await;
        // Attributes and conditional updates are not supported by every store; SlateDB asks and falls back.
        if matches!(result, Err(object_store::Error::NotImplemented { .. })) {
            return result;
        }
        self.seen.note("PUT", Some(location), result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let bare = PutMultipartOptions {
            attributes: Attributes::default(),
            ..opts.clone()
        };
        let mut begun = self.inner.put_multipart_opts(location, opts).await;
        // A file system keeps no attributes, and refuses large objects that have some rather than leave them out.
        if let Err(Error::NotImplemented { .. }) = begun {
            begun = self.inner.put_multipart_opts(location, bare).await;
        }
        self.seen.note("PUT", Some(location), begun)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.seen.reading(location);
        self.seen.note(
            "GET",
            Some(location),
            self.inner.get_opts(location, options).await,
        )
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.seen.reading(location);
        self.seen.note(
            "GET",
            Some(location),
            self.inner.get_ranges(location, ranges).await,
        )
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let seen = Arc::clone(&self.seen);
        self.inner
            .delete_stream(locations)
            .map(move |result| seen.note("DELETE", None, result))
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let seen = Arc::clone(&self.seen);
        self.inner
            .list(prefix)
            .map(move |result| seen.note("LIST", None, result))
            .boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let seen = Arc::clone(&self.seen);
        self.inner
            .list_with_offset(prefix, offset)
            .map(move |result| seen.note("LIST", None, result))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.seen
            .note("LIST", prefix, self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.seen
            .note("COPY", Some(from), self.inner.copy_opts(from, to, options).await)
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.seen.note(
            "RENAME",
            Some(from),
            self.inner.rename_opts(from, to, options).await,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::local::LocalFileSystem;
    use object_store::path::Path;
    use object_store::{Attribute, Attributes, ObjectStore, PutMultipartOptions};

    use super::ObservedStore;

    #[tokio::test]
    async fn a_large_object_with_attributes_goes_to_a_file_system_without_them() {
        let folder = tempfile::tempdir().unwrap();
        let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        let observed = ObservedStore::new(Arc::new(local));
        let options = PutMultipartOptions {
            attributes: Attributes::from_iter([(Attribute::ContentType, "application/octet-stream")]),
            ..PutMultipartOptions::default()
        };
        let mut upload = observed
            .put_multipart_opts(&Path::from("large"), options)
            .await
            .unwrap();
        upload.put_part(vec![7; 1024].into()).await.unwrap();
        upload.complete().await.unwrap();
        assert_eq!(std::fs::read(folder.path().join("large")).unwrap(), [7; 1024]);
    }
}
