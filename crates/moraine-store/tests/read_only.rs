//! Stores that are open for reading only, beside a writer and without one, and checkpoints.

use std::sync::Arc;
use std::time::Duration;

use moraine_store::checkpoints::{self, CheckpointError, MadeBy, NewCheckpoint};
use moraine_store::{
    Bytes, OpenError, OpenOptions, ReadError, ReadOnlyStore, ReadPoint, SlateStore, Store, StoreUrl, View,
};

use crate::support::lake::{Records, all, genesis, key, newest, put};
use crate::support::mini_s3::{Fault, MiniS3};

const LAKE: &str = "lake";

fn options() -> OpenOptions {
    OpenOptions {
        open_timeout: Duration::from_secs(20),
        request_timeout: Duration::from_secs(20),
        ..OpenOptions::create()
    }
}

fn newest_point() -> ReadPoint {
    ReadPoint::Newest {
        poll_interval: Duration::from_millis(20),
    }
}

async fn lake(s3: &MiniS3) -> Arc<SlateStore> {
    let store = SlateStore::open_on(s3.client(), LAKE, &options()).await.unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    store
}

async fn read_only(s3: &MiniS3, point: &ReadPoint) -> Result<Arc<ReadOnlyStore>, OpenError> {
    ReadOnlyStore::open_on(s3.client(), LAKE, &options(), point).await
}

fn record(id: u64) -> Records {
    vec![(key(4, id), Bytes::from_static(b"value"))]
}

fn with_genesis(ids: std::ops::RangeInclusive<u64>) -> Records {
    let mut all = genesis(12);
    all.extend(ids.flat_map(record));
    all.sort();
    all
}

/// Waits until the store shows `expected`.
async fn until(store: &Arc<ReadOnlyStore>, expected: &Records) {
    let shown = tokio::time::timeout(Duration::from_secs(30), async {
        while newest(store).await.unwrap() != *expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    shown.await.expect("the follower comes to see it");
}

fn nightly(by: MadeBy) -> NewCheckpoint {
    NewCheckpoint {
        name: "nightly".to_owned(),
        lifetime: Some(Duration::from_secs(3600)),
        by,
    }
}

/// Requests that change something.
fn changes(s3: &MiniS3) -> u64 {
    s3.requests("PUT", "") + s3.requests("DELETE", "") + s3.requests("POST", "")
}

#[tokio::test]
async fn followers_see_what_each_writer_commits_and_fence_nobody() {
    let s3 = MiniS3::start().await;
    let first = lake(&s3).await;
    let followers = [
        read_only(&s3, &newest_point()).await.unwrap(),
        read_only(&s3, &newest_point()).await.unwrap(),
    ];
    put(first.as_ref(), &record(1)).await.unwrap();
    for follower in &followers {
        until(follower, &with_genesis(1..=1)).await;
    }
    put(first.as_ref(), &record(2)).await.unwrap();
    // Another writer takes over: the log goes on with an empty object.
    let second = SlateStore::open_on(s3.client(), LAKE, &options()).await.unwrap();
    put(second.as_ref(), &record(3)).await.unwrap();
    for follower in &followers {
        until(follower, &with_genesis(1..=3)).await;
    }
    put(second.as_ref(), &record(4)).await.unwrap();
}

#[tokio::test]
async fn nothing_can_be_changed_through_it() {
    let s3 = MiniS3::start().await;
    let _writer = lake(&s3).await;
    let store = read_only(&s3, &newest_point()).await.unwrap();
    assert_eq!(store.begin().err(), Some(ReadError::ReadOnly));
    store.close().await.unwrap();
    assert_eq!(store.view().err(), Some(ReadError::Closed));
}

#[tokio::test]
async fn credentials_that_cannot_write_are_enough() {
    let s3 = MiniS3::start().await;
    let writer = lake(&s3).await;
    put(writer.as_ref(), &record(1)).await.unwrap();
    let made = checkpoints::create_on(s3.client(), LAKE, &options(), &nightly(MadeBy::Writer)).await;
    let id = made.unwrap().id;
    put(writer.as_ref(), &record(2)).await.unwrap();
    writer.close().await.unwrap();
    s3.fail(Fault::ReadOnly);
    let before = changes(&s3);
    let following = read_only(&s3, &newest_point()).await.unwrap();
    assert_eq!(newest(&following).await.unwrap(), with_genesis(1..=2));
    for checkpoint in ["nightly", id.as_str()] {
        let point = ReadPoint::Checkpoint(checkpoint.to_owned());
        let pinned = read_only(&s3, &point).await.unwrap();
        assert_eq!(
            newest(&pinned).await.unwrap(),
            with_genesis(1..=1),
            "{checkpoint}"
        );
        pinned.close().await.unwrap();
    }
    following.close().await.unwrap();
    assert_eq!(changes(&s3), before, "nobody tried to write");
}

#[tokio::test]
async fn a_checkpoint_beside_a_writer_holds_all_that_was_acknowledged() {
    let s3 = MiniS3::start().await;
    let writer = lake(&s3).await;
    put(writer.as_ref(), &record(1)).await.unwrap();
    let made = checkpoints::create_on(s3.client(), LAKE, &options(), &nightly(MadeBy::Writer))
        .await
        .unwrap();
    assert_eq!(made.name.as_deref(), Some("nightly"));
    assert_eq!(made.expires_micros.unwrap() - made.created_micros, 3_600_000_000);
    assert!(!made.is_expired());
    put(writer.as_ref(), &record(2)).await.unwrap();
    let point = ReadPoint::Checkpoint("nightly".to_owned());
    let pinned = read_only(&s3, &point).await.unwrap();
    let view: Arc<dyn View> = pinned.view().unwrap();
    put(writer.as_ref(), &record(3)).await.unwrap();
    assert_eq!(all(view.as_ref()).await.unwrap(), with_genesis(1..=1));
    let again = checkpoints::create_on(s3.client(), LAKE, &options(), &nightly(MadeBy::Writer)).await;
    assert!(
        matches!(&again, Err(CheckpointError::NameTaken { id, .. }) if *id == made.id),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_checkpoint_without_a_writer_holds_what_is_only_in_the_log() {
    let url: StoreUrl = "memory://checkpoint-without-a-writer".parse().unwrap();
    let writer = moraine_store::open(&url, &options()).await.unwrap();
    put(writer.as_ref(), &genesis(12)).await.unwrap();
    put(writer.as_ref(), &record(1)).await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(checkpoints::list(&url, &options()).await.unwrap(), []);
    assert!(!checkpoints::is_served(&url, &options()).await.unwrap());
    let by_takeover = checkpoints::create(&url, &options(), &nightly(MadeBy::Takeover)).await;
    let made = by_takeover.unwrap();
    assert_eq!(
        checkpoints::list(&url, &options()).await.unwrap(),
        std::slice::from_ref(&made),
        "and no question is left behind"
    );
    let point = ReadPoint::Checkpoint(made.id.clone());
    let pinned = moraine_store::open_read_only(&url, &options(), &point)
        .await
        .unwrap();
    assert_eq!(newest(&pinned).await.unwrap(), with_genesis(1..=1));
    let writer = moraine_store::open(&url, &options()).await.unwrap();
    assert!(checkpoints::is_served(&url, &options()).await.unwrap());
    put(writer.as_ref(), &record(2)).await.unwrap();
    assert_eq!(
        checkpoints::delete(&url, &options(), "nightly").await.unwrap(),
        made
    );
    put(writer.as_ref(), &record(3)).await.unwrap();
    let gone = moraine_store::open_read_only(&url, &options(), &point)
        .await
        .map(|_| ());
    assert!(
        matches!(gone, Err(OpenError::NoSuchCheckpoint { .. })),
        "{gone:?}"
    );
}

#[tokio::test]
async fn what_is_not_there_is_said_by_name() {
    let s3 = MiniS3::start().await;
    let missing = read_only(&s3, &newest_point()).await.map(|_| ());
    assert!(matches!(missing, Err(OpenError::NotFound { .. })), "{missing:?}");
    let _writer = lake(&s3).await;
    let point = ReadPoint::Checkpoint("weekly".to_owned());
    let missing = read_only(&s3, &point).await.map(|_| ());
    assert!(
        matches!(&missing, Err(OpenError::NoSuchCheckpoint { checkpoint, .. }) if checkpoint == "weekly"),
        "{missing:?}"
    );
    for name in ["", "a\nb", "moraine-question:present"] {
        let new = NewCheckpoint {
            name: name.to_owned(),
            ..nightly(MadeBy::Writer)
        };
        let refused = checkpoints::create_on(s3.client(), LAKE, &options(), &new).await;
        assert!(
            matches!(refused, Err(CheckpointError::Invalid { .. })),
            "{name:?}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_follower_that_hears_nothing_says_so_and_goes_on_when_it_does() {
    let s3 = MiniS3::start().await;
    let writer = lake(&s3).await;
    let impatient = OpenOptions {
        request_timeout: Duration::from_millis(500),
        ..options()
    };
    let follower = ReadOnlyStore::open_on(s3.client(), LAKE, &impatient, &newest_point())
        .await
        .unwrap();
    s3.fail(Fault::Outage);
    let refused = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            match follower.view() {
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => return error,
            }
        }
    });
    let refused = refused.await.unwrap();
    assert!(matches!(&refused, ReadError::Unavailable { .. }), "{refused:?}");
    s3.fail(Fault::None);
    put(writer.as_ref(), &record(1)).await.unwrap();
    let healed = tokio::time::timeout(Duration::from_secs(30), async {
        while follower.view().is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    healed.await.unwrap();
    until(&follower, &with_genesis(1..=1)).await;
}
