//! The storage engine alone, opened on the objects of a lake: what of a cost is its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::TryStreamExt;
use moraine_codec::format::SEGMENT_EXTRACTOR;
use moraine_keys::{DataFileKey, FileColumnStatsKey, HeadKey, KeyRange, Kind, SnapshotKey};
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::config::{CompactorOptions, FlushOptions, FlushType, ScanOptions, Settings};
use slatedb::{Db, IsolationLevel, PrefixExtractor, PrefixTarget};

/// Records that a commit of a file writes, and bytes of each.
const RECORD_BYTES: usize = 100;
/// A store is at rest when its manifest has not changed for so long.
const REST: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(200);

/// The first byte of a key is its segment.
#[derive(Debug)]
struct FirstByte;

impl PrefixExtractor for FirstByte {
    fn name(&self) -> &str {
        SEGMENT_EXTRACTOR
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (!bytes.is_empty()).then_some(1)
    }
}

pub async fn open(objects: &Arc<dyn ObjectStore>) -> Db {
    let settings = Settings {
        flush_interval: None,
        compactor_options: Some(CompactorOptions {
            poll_interval: LOOK,
            commit_compacted_interval: LOOK,
            ..CompactorOptions::default()
        }),
        ..Settings::default()
    };
    Db::builder("lake", Arc::clone(objects))
        .with_settings(settings)
        .with_segment_extractor(Arc::new(FirstByte))
        .build()
        .await
        .unwrap()
}

/// Writes all that a closed store has in its log to SSTs, and lets it compact them as it sees fit.
pub async fn settle(objects: &Arc<dyn ObjectStore>) {
    let db = open(objects).await;
    let flush_type = FlushType::MemTable;
    db.flush_with_options(FlushOptions { flush_type }).await.unwrap();
    rest(objects).await;
    db.close().await.unwrap();
}

/// Waits until an open store writes no SSTs any more, neither of its memtables nor by compacting others.
pub async fn rest(objects: &Arc<dyn ObjectStore>) {
    let manifests = Path::from("lake/manifest");
    let newest_manifest = async || {
        objects
            .list(Some(&manifests))
            .map_ok(|object| object.location)
            .try_fold(Path::default(), async |newest, path| Ok(newest.max(path)))
            .await
            .unwrap()
    };
    let (mut known, mut since) = (newest_manifest().await, Instant::now());
    while since.elapsed() < REST {
        tokio::time::sleep(LOOK).await;
        let newest = newest_manifest().await;
        if newest != known {
            (known, since) = (newest, Instant::now());
        }
    }
}

/// What the engine is asked for by a commit of one file on top of so many: the reads that no memory of ours answers, and a
/// batch of as many records.
pub async fn commit(db: &Db, number: u64) {
    let (table_id, data_file_id) = (1, 1_000_000 + number);
    let head = HeadKey {}.encode();
    let file = DataFileKey {
        table_id,
        data_file_id,
    };
    let stats = [1, 2].map(|column_id| {
        let key = FileColumnStatsKey {
            table_id,
            data_file_id,
            column_id,
        };
        key.encode()
    });
    let snapshot = |snapshot_id| SnapshotKey { snapshot_id }.encode();
    let new = [
        file.encode(),
        snapshot(1_000_000 + number),
        stats[0].clone(),
        stats[1].clone(),
    ];
    let view = db.snapshot().unwrap();
    for key in new.iter().chain([&head, &head, &snapshot(number)]) {
        view.get(key).await.unwrap();
    }
    let transaction = db.begin(IsolationLevel::Snapshot).unwrap();
    transaction.get(&head).await.unwrap();
    for key in new.iter().chain([&head]) {
        transaction.put(key, vec![7; RECORD_BYTES]).unwrap();
    }
    for part in 0..4_u8 {
        let key = [head.as_ref(), &[part]].concat();
        transaction.put(key, vec![7; RECORD_BYTES]).unwrap();
    }
    let written = transaction.commit().await.unwrap().unwrap();
    db.flush().await.unwrap();
    written.await_durable().await.unwrap();
}

/// How many records the engine gives of some ranges, without a look at them.
pub async fn scan(db: &Db, ranges: &[KeyRange]) -> usize {
    let mut options = ScanOptions::default().with_read_ahead_bytes(1024 * 1024);
    options.max_fetch_tasks = 4;
    let mut records = 0;
    for range in ranges {
        let bounds = (
            range.start.clone(),
            range
                .end
                .clone()
                .unwrap_or_else(|| Bytes::from_static(&[0xff; 16])),
        );
        let view = db.snapshot().unwrap();
        let mut scan = view
            .scan_with_options(bounds.0..bounds.1, &options)
            .await
            .unwrap();
        while scan.next().await.unwrap().is_some() {
            records += 1;
        }
    }
    records
}
