//! Followers beside a writer that commits batches of many records, flushes and compacts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moraine_keys::KeyRange;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use slatedb::config::{FlushOptions, FlushType};

use super::Point;
use crate::location::Location;
use crate::{OpenOptions, ReadOnlyStore, ReadPoint, SlateStore, Store, View, collect};

/// Records of one batch, over several subspaces.
const RECORDS: u64 = 24;
const BATCHES: u64 = 150;
const BATCHES_BETWEEN_FLUSHES: u64 = 15;
const FOLLOWERS: usize = 3;

fn key(record: u64) -> Bytes {
    let mut key = vec![u8::try_from(4 + record % 3).unwrap()];
    key.extend_from_slice(&record.to_be_bytes());
    key.into()
}

/// Whether a batch deletes the record instead of writing it.
fn is_deleted(record: u64, batch: u64) -> bool {
    (record + batch).is_multiple_of(5)
}

/// Batch `batch` writes or deletes every record.
async fn write(store: &SlateStore, batch: u64) {
    let mut transaction = store.begin().unwrap();
    transaction
        .put(Bytes::from_static(&[2, 9]), number(batch))
        .unwrap();
    for record in 0..RECORDS {
        match is_deleted(record, batch) {
            true => transaction.delete(key(record)).unwrap(),
            false => transaction.put(key(record), number(batch)).unwrap(),
        }
    }
    transaction.commit().await.unwrap().durable().await.unwrap();
}

fn number(batch: u64) -> Bytes {
    Bytes::copy_from_slice(&batch.to_be_bytes())
}

fn batch_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

/// The batch that a view shows, after checking that it shows all of it and nothing else, by gets and by a scan.
async fn batch_shown(view: &dyn View) -> u64 {
    let batch = view
        .get(&[2, 9])
        .await
        .unwrap()
        .map_or(0, |value| batch_of(&value));
    let mut expected = Vec::new();
    for record in 0..RECORDS {
        let value = view
            .get(&key(record))
            .await
            .unwrap()
            .map(|value| batch_of(&value));
        let there = batch > 0 && !is_deleted(record, batch);
        assert_eq!(value, there.then_some(batch), "record {record} in batch {batch}");
        if there {
            expected.push((key(record), number(batch)));
        }
    }
    expected.sort();
    let range = KeyRange {
        start: Bytes::from_static(&[4]),
        end: None,
    };
    let scanned = collect(view.scan(range).await.unwrap()).await.unwrap();
    assert_eq!(scanned, expected, "a scan in batch {batch}");
    batch
}

async fn follower(store: &Arc<dyn ObjectStore>) -> Arc<ReadOnlyStore> {
    let point = ReadPoint::Newest {
        poll_interval: Duration::from_millis(5),
    };
    ReadOnlyStore::open_on(Arc::clone(store), "lake", &OpenOptions::default(), &point)
        .await
        .unwrap()
}

/// Follows until the last batch is there; each batch it has seen, in order. Every tenth view is held for a while.
async fn follow_to_the_end(store: Arc<ReadOnlyStore>) -> Vec<u64> {
    let mut seen = vec![0];
    let mut held: Option<(Arc<dyn View>, u64)> = None;
    for look in 0_u64.. {
        let view = store.view().unwrap();
        let batch = batch_shown(view.as_ref()).await;
        assert!(batch >= seen[seen.len() - 1], "{batch} after {:?}", seen.last());
        seen.push(batch);
        if look % 10 == 0
            && let Some((view, batch)) = held.replace((view, batch))
        {
            assert_eq!(batch_shown(view.as_ref()).await, batch, "a view has moved");
        }
        if batch == BATCHES {
            break;
        }
        tokio::task::yield_now().await;
    }
    seen.dedup();
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_shows_one_batch_whatever_the_writer_does() {
    let image: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let writer = SlateStore::open_on(Arc::clone(&image), "lake", &OpenOptions::create())
        .await
        .unwrap();
    let mut followers = Vec::new();
    for _ in 0..FOLLOWERS {
        followers.push(tokio::spawn(follow_to_the_end(follower(&image).await)));
    }
    for batch in 1..=BATCHES {
        write(&writer, batch).await;
        if batch % BATCHES_BETWEEN_FLUSHES == 0 {
            let flush = FlushOptions {
                flush_type: FlushType::MemTable,
            };
            writer.db().flush_with_options(flush).await.unwrap();
        }
    }
    for follower in followers {
        let seen = follower.await.unwrap();
        assert!(seen.len() > 3, "it has seen the writer at work: {seen:?}");
    }
}

#[tokio::test]
async fn a_handle_on_ssts_stays_where_it_was_opened() {
    let image: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let writer = SlateStore::open_on(Arc::clone(&image), "lake", &OpenOptions::create())
        .await
        .unwrap();
    let flush = FlushOptions {
        flush_type: FlushType::MemTable,
    };
    write(&writer, 1).await;
    writer.db().flush_with_options(flush.clone()).await.unwrap();
    let slow = Point::Newest {
        poll_interval: Duration::from_secs(3600),
    };
    let location = Location {
        store: image,
        prefix: "lake".into(),
        local: false,
    };
    let store = ReadOnlyStore::start(&location, &OpenOptions::default(), slow).await;
    let store = store.unwrap_or_else(|_| panic!("it opens"));
    let manifest = store.shared.current().manifest.id();
    write(&writer, 2).await;
    writer.db().flush_with_options(flush).await.unwrap();
    // The engine's own poll, if there were one, would come at once.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(store.shared.current().base.0.manifest().id(), manifest);
    assert_eq!(batch_shown(store.view().unwrap().as_ref()).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_are_rewritten_while_a_view_is_held_read_as_both_states_had_them() {
    const REWRITES: u64 = 2_000;
    let image: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let writer = SlateStore::open_on(Arc::clone(&image), "lake", &OpenOptions::create())
        .await
        .unwrap();
    let follower = follower(&image).await;
    // The view that is first to show a batch.
    let showing = async |batch| loop {
        let view = follower.view().unwrap();
        if view.get(&[2, 9]).await.unwrap() == Some(number(batch)) {
            break view;
        }
        tokio::task::yield_now().await;
    };
    write(&writer, 1).await;
    let held = showing(1).await;
    for batch in 2..REWRITES {
        let mut transaction = writer.begin().unwrap();
        transaction
            .put(Bytes::from_static(&[2, 9]), number(batch))
            .unwrap();
        transaction.put(key(0), number(batch)).unwrap();
        transaction.commit().await.unwrap().durable().await.unwrap();
    }
    write(&writer, REWRITES).await;
    let newest = showing(REWRITES).await;
    assert_eq!(batch_shown(newest.as_ref()).await, REWRITES);
    assert_eq!(batch_shown(held.as_ref()).await, 1, "the held view has not moved");
}
