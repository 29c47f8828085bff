//! One flipped bit in each object of a store: an error, or the right records, never a panic or a wrong record.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use moraine_store::{Bytes, OpenError, OpenOptions, ReadError, Store, StoreUrl, open};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::{Db, PrefixExtractor, PrefixTarget};

use crate::support::lake::{Records, genesis, key, newest, put};

/// Where in each object a bit is flipped, as a fraction of its length in thousandths.
const POSITIONS: [usize; 5] = [0, 130, 500, 870, 1000];

struct FirstByte;

impl PrefixExtractor for FirstByte {
    fn name(&self) -> &str {
        moraine_codec::format::SEGMENT_EXTRACTOR
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (!bytes.is_empty()).then_some(1)
    }
}

/// Moves what is in the write-ahead log of the closed store below `prefix` to SSTs.
pub(crate) async fn flush_memtable(objects: Arc<dyn ObjectStore>, prefix: &str) {
    let settings = Settings {
        compactor_options: None,
        garbage_collector_options: None,
        ..Settings::default()
    };
    let db = Db::builder(prefix, objects)
        .with_settings(settings)
        .with_segment_extractor(Arc::new(FirstByte))
        .build()
        .await
        .unwrap();
    db.flush_with_options(FlushOptions {
        flush_type: FlushType::MemTable,
    })
    .await
    .unwrap();
    db.close().await.unwrap();
}

fn url(folder: &Path) -> StoreUrl {
    folder.to_str().unwrap().parse().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).ok();
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&file, target).unwrap();
    }
}

/// A closed store with records in SSTs and in its log, and those records.
async fn make(folder: &Path) -> Records {
    let mut records = genesis(12);
    let store = open(&url(folder), &OpenOptions::create()).await.unwrap();
    put(store.as_ref(), &records).await.unwrap();
    let long: Records = (0..60)
        .map(|id| (key(6, id), Bytes::from(vec![id as u8; 300])))
        .collect();
    put(store.as_ref(), &long).await.unwrap();
    store.close().await.unwrap();
    let objects = Arc::new(LocalFileSystem::new_with_prefix(folder).unwrap());
    flush_memtable(objects, "").await;
    let store = open(&url(folder), &OpenOptions::default()).await.unwrap();
    let late: Records = (60..80)
        .map(|id| (key(9, id), Bytes::from(vec![id as u8; 50])))
        .collect();
    put(store.as_ref(), &late).await.unwrap();
    store.close().await.unwrap();
    records.extend(long);
    records.extend(late);
    records.sort();
    records
}

async fn read_back(folder: &Path) -> Result<Records, String> {
    let options = OpenOptions {
        create: false,
        open_timeout: Duration::from_secs(3),
        request_timeout: Duration::from_secs(3),
        ..OpenOptions::default()
    };
    let store = open(&url(folder), &options).await.map_err(|error| match error {
        OpenError::Damaged { .. }
        | OpenError::Read {
            source: ReadError::Corruption { .. },
        } => error.to_string(),
        other => format!("not called damage: {other:?}"),
    })?;
    let records = newest(&store).await.map_err(|error| match error {
        ReadError::Corruption { .. } => error.to_string(),
        other => format!("not called damage: {other:?}"),
    });
    store.close().await.ok();
    records
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_flipped_bit_is_an_error_or_changes_nothing() {
    let (good, bad) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = make(good.path()).await;
    let work = bad.path().join("lake");
    copy(good.path(), &work);
    assert_eq!(read_back(&work).await.as_ref(), Ok(&expected));

    let (mut errors, mut unharmed) = (0, 0);
    for file in files(good.path()) {
        let name = file.strip_prefix(good.path()).unwrap();
        let length = std::fs::metadata(&file).unwrap().len() as usize;
        for position in POSITIONS {
            copy(good.path(), &work);
            let mut bytes = std::fs::read(&file).unwrap();
            let at = (length * position / 1000).min(length.saturating_sub(1));
            let Some(byte) = bytes.get_mut(at) else { continue };
            *byte ^= 1 << (at % 8);
            std::fs::write(work.join(name), bytes).unwrap();
            match read_back(&work).await {
                Ok(records) => {
                    // SSTs, those of the log included, carry checksums. SlateDB's manifests carry none, and a bit in
                    // the number of the first log object to replay can hide the end of the log; what is found is
                    // then an earlier state, never a record that was not written.
                    if name.extension().is_some_and(|extension| extension == "sst") {
                        assert_eq!(records, expected, "byte {at} of {}", name.display());
                    } else {
                        assert!(
                            records.iter().all(|record| expected.contains(record)),
                            "{}",
                            name.display()
                        );
                    }
                    unharmed += 1;
                }
                Err(error) => {
                    println!("byte {at} of {}: {error}", name.display());
                    errors += 1;
                }
            }
        }
    }
    println!("{errors} errors, {unharmed} unharmed");
    assert!(errors > 0);
}
