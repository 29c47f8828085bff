//! How SlateDB is opened. What is persisted (the segment extractor) must be the same for every writer and reader for
//! ever; the rest are choices of this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use moraine_codec::format::SEGMENT_EXTRACTOR;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, DbReaderOptions, GarbageCollectorOptions, ScanOptions,
    Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};
use slatedb::{BlockCachePolicy, PrefixExtractor, PrefixTarget};

/// Cached blocks of all stores of this process, in bytes.
const BLOCK_CACHE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Cached indexes and filters of all stores of this process, in bytes.
const META_CACHE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes a scan asks for in one request; the default of one block is a request per 4 KiB.
const SCAN_READ_AHEAD_BYTES: usize = 1024 * 1024;
/// Requests a scan keeps in the air.
const SCAN_FETCH_TASKS_MAX: usize = 4;
/// How often a writer that does not write looks whether it was fenced.
const MANIFEST_POLL_INTERVAL: Duration = Duration::from_secs(1);
const COMPACTOR_POLL_INTERVAL: Duration = Duration::from_millis(500);
const COMPACTIONS_POLL_INTERVAL: Duration = Duration::from_millis(100);
const COMPACTED_COMMIT_INTERVAL: Duration = Duration::from_millis(200);
/// One per segment and some; with fewer, ten touched segments stall a memtable flush for many seconds.
const COMPACTIONS_IN_PARALLEL_MAX: usize = 16;
/// What a writer keeps in memory that is not in SSTs yet, in bytes: one memtable being filled, one being written out, and one
/// that waits. Writes wait beyond that.
const UNFLUSHED_BYTES_MAX: usize = 192 * 1024 * 1024;
/// What is different for a writer that writes a whole store at once. Nobody reads meanwhile, so nothing is cached that is written,
/// and what compactions read ahead and write at a time is kept small: memory stays the same however much is written.
mod bulk {
    /// Bytes in memory that are not in SSTs yet.
    pub(super) const UNFLUSHED_BYTES_MAX: usize = 32 * 1024 * 1024;
    /// Bytes of a memtable that is written out.
    pub(super) const MEMTABLE_BYTES: usize = 16 * 1024 * 1024;
    /// SSTs of memtables that are being written at a time, each with its unsent parts.
    pub(super) const SSTS_FLUSHED_IN_PARALLEL_MAX: usize = 2;
    pub(super) const COMPACTIONS_IN_PARALLEL_MAX: usize = 2;
    /// Bytes that a compaction asks for in one request.
    pub(super) const COMPACTION_READ_AHEAD_BYTES: usize = 1024 * 1024;
    /// Requests that a compaction keeps in the air for each of the SSTs and runs it reads, eight at most.
    pub(super) const COMPACTION_FETCH_TASKS_MAX: usize = 2;
    /// Bytes of an SST that a compaction writes; its index and filter are in memory until it is written.
    pub(super) const COMPACTED_SST_BYTES_MAX: usize = 64 * 1024 * 1024;
}

/// A read-only handle gives up instead of retrying for ever: nothing depends on it.
const READER_RETRIES_MAX: u32 = 3;

/// Splits the keyspace by its first byte, the subspace, so that each has its own SSTs.
#[derive(Debug)]
pub(crate) struct SubspaceExtractor;

impl PrefixExtractor for SubspaceExtractor {
    fn name(&self) -> &str {
        SEGMENT_EXTRACTOR
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (!bytes.is_empty()).then_some(1)
    }
}

/// Settings of a writer; `local` for file systems, which take no conditional updates, `is_bulk` for one that writes much at once.
pub(crate) fn writer(local: bool, is_bulk: bool) -> Settings {
    let serving = serving(local);
    if !is_bulk {
        return serving;
    }
    Settings {
        max_unflushed_bytes: bulk::UNFLUSHED_BYTES_MAX,
        l0_sst_size_bytes: bulk::MEMTABLE_BYTES,
        l0_flush_parallelism: bulk::SSTS_FLUSHED_IN_PARALLEL_MAX,
        compactor_options: serving.compactor_options.map(|options| CompactorOptions {
            worker: options.worker.map(|worker| CompactionWorkerOptions {
                max_concurrent_compactions: bulk::COMPACTIONS_IN_PARALLEL_MAX,
                bytes_to_fetch: bulk::COMPACTION_READ_AHEAD_BYTES,
                max_fetch_tasks: bulk::COMPACTION_FETCH_TASKS_MAX,
                max_subcompactions: 1,
                max_sst_size: bulk::COMPACTED_SST_BYTES_MAX,
                ..worker
            }),
            ..options
        }),
        ..serving
    }
}

/// What of the SSTs that a writer writes is kept in the cache as they are written.
pub(crate) fn cached_when_written(is_bulk: bool) -> BlockCachePolicy {
    let policy = BlockCachePolicy::default();
    if is_bulk {
        return policy.with_flush_targets(&[]).with_compaction_output_targets(&[]);
    }
    policy
}

fn serving(local: bool) -> Settings {
    Settings {
        // The flusher of this crate decides when; a ticker would make each commit wait for it.
        flush_interval: None,
        max_unflushed_bytes: UNFLUSHED_BYTES_MAX,
        manifest_poll_interval: MANIFEST_POLL_INTERVAL,
        // An outage must not end the handle: writes wait, and callers have their own deadline.
        object_store_max_retries: None,
        garbage_collector_options: Some(GarbageCollectorOptions {
            boundary_files_enabled: !local,
            ..GarbageCollectorOptions::default()
        }),
        compactor_options: Some(CompactorOptions {
            poll_interval: COMPACTOR_POLL_INTERVAL,
            commit_compacted_interval: COMPACTED_COMMIT_INTERVAL,
            max_concurrent_compactions: COMPACTIONS_IN_PARALLEL_MAX,
            worker: Some(CompactionWorkerOptions {
                compactions_poll_interval: COMPACTIONS_POLL_INTERVAL,
                ..CompactionWorkerOptions::default()
            }),
            ..CompactorOptions::default()
        }),
        ..Settings::default()
    }
}

/// Options of a read-only handle.
pub(crate) fn reader() -> DbReaderOptions {
    DbReaderOptions {
        manifest_poll_interval: MANIFEST_POLL_INTERVAL,
        object_store_max_retries: Some(READER_RETRIES_MAX),
        ..DbReaderOptions::default()
    }
}

/// Options of a read-only handle that stays where it is, `without_log` or with its part of the log. It is opened anew to
/// see more.
pub(crate) fn pinned_reader(without_log: bool) -> DbReaderOptions {
    DbReaderOptions {
        // The first poll of a shorter interval comes at once, and would move the handle.
        manifest_poll_interval: Duration::MAX,
        skip_wal_replay: without_log,
        ..reader()
    }
}

/// Options of every scan.
pub(crate) fn scan() -> ScanOptions {
    let mut options = ScanOptions::default().with_read_ahead_bytes(SCAN_READ_AHEAD_BYTES);
    options.max_fetch_tasks = SCAN_FETCH_TASKS_MAX;
    options
}

/// The process-wide block cache, and an identity within it for one more handle. Shared, so that a server's memory is
/// bounded whatever the number of its lakes.
pub(crate) fn cache() -> (Arc<dyn DbCache>, u64) {
    static CACHE: OnceLock<Arc<dyn DbCache>> = OnceLock::new();
    static HANDLES: AtomicU64 = AtomicU64::new(1);
    let cache = CACHE.get_or_init(|| {
        let part = |max_capacity| -> Arc<dyn DbCache> {
            Arc::new(MokaCache::new_with_opts(MokaCacheOptions {
                max_capacity,
                ..MokaCacheOptions::default()
            }))
        };
        let split = SplitCache::new()
            .with_block_cache(Some(part(BLOCK_CACHE_BYTES_MAX)))
            .with_meta_cache(Some(part(META_CACHE_BYTES_MAX)));
        Arc::new(split.build())
    });
    (Arc::clone(cache), HANDLES.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use object_store::memory::InMemory;
    use slatedb::config::{FlushOptions, FlushType};

    use crate::{OpenOptions, SlateStore, Store};

    const RECORDS: u64 = 1000;

    fn key(record: u64) -> Bytes {
        [&[4], record.to_be_bytes().as_slice()].concat().into()
    }

    /// Whether records that were written out as an SST are read from it, rather than from the cache.
    async fn is_read_from_ssts(options: &OpenOptions) -> bool {
        let store = SlateStore::open_on(Arc::new(InMemory::new()), "catalog", options)
            .await
            .unwrap();
        let mut transaction = store.begin().unwrap();
        for record in 0..RECORDS {
            transaction.put(key(record), Bytes::from(vec![7; 100])).unwrap();
        }
        transaction.commit().await.unwrap().durable().await.unwrap();
        let flush = FlushOptions {
            flush_type: FlushType::MemTable,
        };
        store.db().flush_with_options(flush).await.unwrap();
        let view = store.view().unwrap();
        let mut is_read = false;
        for record in 0..RECORDS {
            assert!(view.get(&key(record)).await.unwrap().is_some());
            // Manifests are read now and then, too.
            let last = store.inner.guard.seen.last_read().unwrap_or_default();
            is_read |= last.contains("compacted");
        }
        store.close().await.unwrap();
        is_read
    }

    #[tokio::test]
    async fn what_is_written_is_cached_but_not_in_bulk() {
        assert!(!is_read_from_ssts(&OpenOptions::create()).await);
        let bulk = OpenOptions {
            bulk: true,
            ..OpenOptions::create()
        };
        assert!(is_read_from_ssts(&bulk).await);
    }
}
