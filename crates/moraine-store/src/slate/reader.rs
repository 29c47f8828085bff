//! A read-only handle that writes nothing at all, so that looking into a store disturbs no server that runs on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;
use slatedb::manifest::VersionedManifest;
use slatedb::{DbReader, DbReaderMode};

use super::guard::{Failure, Guard, KeyName};
use super::{EmptyScan, RangeName, SlateScan, bounds, settings};
use crate::location::Location;
use crate::observed::ObservedStore;
use crate::{OpenOptions, Read, ReadError, Scan};

/// A store in SlateDB, open for reading only. It follows the writer within about a second, so two reads may see two
/// states; a single scan sees one. What must fit together is read in one scan, or read again when the head record has
/// moved meanwhile.
pub struct SlateReader {
    reader: DbReader,
    guard: Guard,
    reads: Arc<AtomicU64>,
}

impl SlateReader {
    pub(crate) async fn start(location: &Location, options: &OpenOptions) -> Result<SlateReader, Failure> {
        SlateReader::start_with(location, options, true).await
    }

    /// Opens a database that another program wrote, which has no segments.
    pub(crate) async fn start_foreign(
        location: &Location,
        options: &OpenOptions,
    ) -> Result<SlateReader, Failure> {
        SlateReader::start_with(location, options, false).await
    }

    async fn start_with(
        location: &Location,
        options: &OpenOptions,
        segmented: bool,
    ) -> Result<SlateReader, Failure> {
        let observed = ObservedStore::new(Arc::clone(&location.store));
        let seen = observed.observations();
        let opening = Guard {
            limit: options.open_timeout,
            seen: Arc::clone(&seen),
        };
        let (cache, handle) = settings::cache();
        let mut builder = DbReader::builder(location.prefix.clone(), Arc::new(observed));
        if segmented {
            builder = builder.with_segment_extractor(Arc::new(settings::SubspaceExtractor));
        }
        let builder = builder
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(settings::reader())
            .with_db_cache(cache, handle);
        let reader = opening.run(async { builder.build().await }).await?;
        let guard = Guard {
            limit: options.request_timeout,
            seen,
        };
        Ok(SlateReader {
            reader,
            guard,
            reads: Arc::default(),
        })
    }

    /// The newest manifest this handle knows.
    pub(crate) fn manifest(&self) -> VersionedManifest {
        self.reader.manifest()
    }

    /// Gets, plus records returned by scans, since the store was opened.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Stops following the writer.
    ///
    /// # Errors
    /// What kept the handle from stopping.
    pub async fn close(&self) -> Result<(), ReadError> {
        self.guard.read("the store", self.reader.close()).await
    }
}

#[async_trait]
impl Read for SlateReader {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.guard.read(KeyName(key), self.reader.get(key)).await
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let Some(bounds) = bounds(&range) else {
            return Ok(Box::new(EmptyScan));
        };
        let options = settings::scan();
        let call = self.reader.scan_with_options(bounds, &options);
        let iterator = self.guard.read(RangeName(&range), call).await?;
        Ok(Box::new(SlateScan {
            iterator: Some(iterator),
            at: None,
            guard: self.guard.clone(),
            reads: Arc::clone(&self.reads),
            _pin: None,
        }))
    }
}
