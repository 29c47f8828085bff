//! The store on an S3 that counts requests and fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moraine_store::{Bytes, CommitError, OpenError, OpenOptions, ReadError, SlateReader, SlateStore, Store};

use crate::support::lake::{Records, genesis, key, newest, put};
use crate::support::mini_s3::{Fault, MiniS3};

/// How often a writer may find out that it was fenced before the test is through.
const FENCES_MAX: usize = 20;

const LAKE: &str = "lake";

fn impatient() -> OpenOptions {
    OpenOptions {
        create: true,
        open_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(1),
        ..OpenOptions::default()
    }
}

async fn open(s3: &MiniS3, options: &OpenOptions) -> Result<Arc<SlateStore>, OpenError> {
    SlateStore::open_on(s3.client(), LAKE, options).await
}

async fn lake(s3: &MiniS3) -> Arc<SlateStore> {
    let store = open(s3, &impatient()).await.unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    store
}

fn record(id: u64) -> Records {
    vec![
        (key(4, id), Bytes::from_static(b"value")),
        (key(9, id), Bytes::from_static(b"other")),
    ]
}

fn with_genesis(records: Records) -> Records {
    let mut all = genesis(12);
    all.extend(records);
    all.sort();
    all
}

/// PUTs so far, other than the garbage collector's, which come when they come.
fn writes(s3: &MiniS3) -> u64 {
    s3.requests("PUT", "") - s3.requests("PUT", "/gc/")
}

#[tokio::test]
async fn a_commit_is_one_put() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    for id in 0..20 {
        let before = writes(&s3);
        put(store.as_ref(), &record(id)).await.unwrap();
        assert_eq!(writes(&s3) - before, 1, "commit {id}");
    }
    let before = writes(&s3);
    store.view().unwrap().settled().await.unwrap();
    store
        .begin()
        .unwrap()
        .commit()
        .await
        .unwrap()
        .durable()
        .await
        .unwrap();
    assert_eq!(writes(&s3) - before, 0, "reading and empty commits write nothing");
}

#[tokio::test]
async fn commits_at_the_same_time_share_puts() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    s3.fail(Fault::DelayPuts {
        by: Duration::from_millis(30),
    });
    let before = s3.requests("PUT", "/wal/");
    let commits = (0..64).map(|id| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { put(store.as_ref(), &record(id)).await })
    });
    for commit in commits.collect::<Vec<_>>() {
        commit.await.unwrap().unwrap();
    }
    let puts = s3.requests("PUT", "/wal/") - before;
    assert!(puts <= 8, "64 commits took {puts} PUTs");
}

#[tokio::test]
async fn commits_that_build_on_each_other_share_puts() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    s3.fail(Fault::DelayPuts {
        by: Duration::from_millis(50),
    });
    let before = s3.requests("PUT", "/wal/");
    let mut pending = Vec::new();
    for value in 0..30_u8 {
        let mut transaction = store.begin().unwrap();
        assert_eq!(
            transaction.get(&key(2, 9)).await.unwrap(),
            value.checked_sub(1).map(|v| Bytes::from(vec![v]))
        );
        transaction.put(key(2, 9), Bytes::from(vec![value])).unwrap();
        pending.push(transaction.commit().await.unwrap());
    }
    for pending in pending {
        pending.durable().await.unwrap();
    }
    let puts = s3.requests("PUT", "/wal/") - before;
    assert!(puts <= 4, "30 commits in a chain took {puts} PUTs");
}

#[tokio::test]
async fn a_view_settles_when_what_it_saw_is_durable() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    let before = store.view().unwrap();
    let delay = Duration::from_millis(300);
    s3.fail(Fault::DelayPuts { by: delay });
    let start = Instant::now();
    let mut transaction = store.begin().unwrap();
    transaction.put(key(4, 1), Bytes::new()).unwrap();
    let pending = transaction.commit().await.unwrap();
    let after = store.view().unwrap();
    assert_eq!(after.get(&key(4, 1)).await.unwrap(), Some(Bytes::new()));
    before.settled().await.unwrap();
    assert!(
        start.elapsed() < delay / 2,
        "a view of an earlier state has waited {:?}",
        start.elapsed()
    );
    after.settled().await.unwrap();
    assert!(
        start.elapsed() >= delay,
        "a view has settled on what was not durable, after {:?}",
        start.elapsed()
    );
    pending.durable().await.unwrap();
}

#[tokio::test]
async fn a_lost_acknowledgement_is_neither_an_error_nor_a_second_write() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    let objects = s3.keys("/wal/").len();
    s3.fail(Fault::LoseAcknowledgements { puts: 1 });
    put(store.as_ref(), &record(1)).await.unwrap();
    assert_eq!(s3.keys("/wal/").len(), objects + 1);
    s3.fail(Fault::LoseAcknowledgements { puts: 4 });
    put(store.as_ref(), &record(2)).await.unwrap();
    assert_eq!(s3.keys("/wal/").len(), objects + 2);
    s3.fail(Fault::None);
    drop(store);
    let again = open(&s3, &impatient()).await.unwrap();
    assert_eq!(
        newest(&again).await.unwrap(),
        with_genesis([record(1), record(2)].concat())
    );
}

#[tokio::test]
async fn a_second_opener_fences_the_first_which_writes_nothing() {
    let s3 = MiniS3::start().await;
    let first = lake(&s3).await;
    let mut begun = first.begin().unwrap();
    begun.put(key(4, 1), Bytes::from_static(b"stale")).unwrap();
    let second = open(&s3, &impatient()).await.unwrap();
    put(second.as_ref(), &record(2)).await.unwrap();

    let outcome = match begun.commit().await {
        Ok(pending) => pending.durable().await,
        Err(error) => Err(error),
    };
    assert!(matches!(outcome, Err(CommitError::Fenced { .. })), "{outcome:?}");
    let view = first.view().map(|_| ());
    assert!(matches!(view, Err(ReadError::Fenced { .. })), "{view:?}");
    assert_eq!(newest(&second).await.unwrap(), with_genesis(record(2)));
    drop((first, second));
    let third = open(&s3, &impatient()).await.unwrap();
    assert_eq!(newest(&third).await.unwrap(), with_genesis(record(2)));
}

#[tokio::test]
async fn what_a_fenced_view_saw_unsettled_is_not_acknowledged() {
    for _ in 0..FENCES_MAX {
        let s3 = MiniS3::start().await;
        let first = lake(&s3).await;
        let second = open(&s3, &impatient()).await.unwrap();
        put(second.as_ref(), &record(2)).await.unwrap();
        let mut stale = match first.begin() {
            Ok(stale) => stale,
            Err(ReadError::Fenced { .. }) => continue,
            Err(error) => panic!("{error:?}"),
        };
        stale.put(key(4, 1), Bytes::from_static(b"stale")).unwrap();
        let (pending, view) = match (stale.commit().await, first.view()) {
            (Ok(pending), Ok(view)) => (pending, view),
            // It looked, and saw that it was fenced before it had written anything.
            (Err(CommitError::Fenced { .. }), _) | (_, Err(ReadError::Fenced { .. })) => continue,
            (Err(error), _) => panic!("{error:?}"),
            (_, Err(error)) => panic!("{error:?}"),
        };
        let settled = view.settled().await;
        assert!(matches!(settled, Err(CommitError::Fenced { .. })), "{settled:?}");
        let durable = pending.durable().await;
        assert!(matches!(durable, Err(CommitError::Fenced { .. })), "{durable:?}");
        return;
    }
    panic!("the first writer knew that it was fenced each time");
}

#[tokio::test]
async fn a_short_outage_is_waited_out() {
    let s3 = MiniS3::start().await;
    let store = open(&s3, &OpenOptions::create()).await.unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    s3.fail(Fault::Outage);
    let commit = tokio::spawn({
        let store = Arc::clone(&store);
        async move { put(store.as_ref(), &record(1)).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!commit.is_finished(), "acknowledged during an outage");
    s3.fail(Fault::None);
    commit.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_long_outage_ends_in_bounded_time_with_its_reason_and_heals() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    s3.fail(Fault::Outage);
    let start = Instant::now();
    let outcome = put(store.as_ref(), &record(1)).await;
    assert!(
        matches!(&outcome, Err(CommitError::Unknown { detail }) if detail.contains("503")),
        "{outcome:?}"
    );
    let settled = store.view().unwrap().settled().await;
    assert!(
        matches!(&settled, Err(CommitError::Unknown { .. })),
        "{settled:?}"
    );
    let opened = open(&s3, &impatient()).await.map(|_| ());
    assert!(
        matches!(&opened, Err(OpenError::Unreachable { detail, .. }) if detail.contains("503")),
        "{opened:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());

    s3.fail(Fault::None);
    let again = open(&s3, &OpenOptions::create()).await.unwrap();
    let found = newest(&again).await.unwrap();
    assert!(
        found == with_genesis(record(1)) || found == genesis_sorted(),
        "{found:?}"
    );
    put(again.as_ref(), &record(2)).await.unwrap();
}

fn genesis_sorted() -> Records {
    with_genesis(Records::new())
}

#[tokio::test]
async fn closing_during_an_outage_takes_bounded_time() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    let mut transaction = store.begin().unwrap();
    s3.fail(Fault::Outage);
    transaction.put(key(4, 1), Bytes::new()).unwrap();
    let pending = transaction.commit().await.unwrap();
    let start = Instant::now();
    let closed = store.close().await;
    assert!(matches!(closed, Err(ReadError::Unavailable { .. })), "{closed:?}");
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    let outcome = pending.durable().await;
    assert!(matches!(outcome, Err(CommitError::Unknown { .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_read_only_bucket_is_read_and_not_opened_for_writing() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    store.close().await.unwrap();
    s3.fail(Fault::ReadOnly);
    let reader = SlateReader::open_on(s3.client(), LAKE, &impatient())
        .await
        .unwrap();
    assert_eq!(
        crate::support::lake::all(reader.as_ref()).await.unwrap(),
        genesis_sorted()
    );
    let start = Instant::now();
    let refused = open(&s3, &impatient()).await.map(|_| ());
    let Err(OpenError::Unreachable { detail, .. }) = &refused else {
        panic!("{refused:?}")
    };
    assert!(
        detail.contains("AccessDenied") || detail.contains("403"),
        "{detail}"
    );
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    reader.close().await.unwrap();
}

#[tokio::test]
async fn refusals_while_opening_are_retried() {
    let s3 = MiniS3::start().await;
    lake(&s3).await.close().await.unwrap();
    s3.fail(Fault::Refuse { requests: 2 });
    let store = open(&s3, &OpenOptions::default()).await.unwrap();
    assert_eq!(newest(&store).await.unwrap(), genesis_sorted());
}

#[tokio::test]
async fn a_reader_writes_nothing_and_disturbs_nobody() {
    let s3 = MiniS3::start().await;
    let store = lake(&s3).await;
    let before = writes(&s3);
    let reader = SlateReader::open_on(s3.client(), LAKE, &impatient())
        .await
        .unwrap();
    crate::support::lake::all(reader.as_ref()).await.unwrap();
    reader.close().await.unwrap();
    assert_eq!(writes(&s3), before);
    put(store.as_ref(), &record(1)).await.unwrap();
}
