//! Groups of commits, and commits that wait for one flush.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use moraine_commit::verbs::{CommitError, GroupMember, VerbError};
use moraine_commit::{Catalog, CatalogOptions, OpenOptions};
use moraine_store::{CommitError as StoreError, MemoryStore, SlateStore};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::throttle::{ThrottleConfig, ThrottledStore};

use super::lake_with_table;
use crate::support::head;

fn schema(name: &'static str) -> GroupMember<u64> {
    GroupMember::new(move |tx| async move { tx.create_schema(name).await })
}

#[tokio::test]
async fn a_member_that_fails_harms_no_other() {
    let (catalog, _store) = lake_with_table().await;
    let give_up = GroupMember::new(|tx| async move {
        tx.create_schema("never").await?;
        Err(VerbError::other("changed my mind"))
    });
    let members = vec![schema("a"), give_up, schema("A"), schema("b")];
    let outcomes = catalog.commit_group(members).await;
    assert_eq!(outcomes[0].as_ref().unwrap().snapshot_id, Some(2));
    assert!(matches!(
        &outcomes[1],
        Err(CommitError::Refused(VerbError::Other(_)))
    ));
    assert!(matches!(
        &outcomes[2],
        Err(CommitError::Refused(VerbError::AlreadyExists { .. }))
    ));
    assert_eq!(outcomes[3].as_ref().unwrap().snapshot_id, Some(3));
    let names: Vec<String> = catalog
        .snapshot()
        .await
        .unwrap()
        .schemas()
        .await
        .unwrap()
        .into_iter()
        .map(|schema| schema.name)
        .collect();
    assert_eq!(names, ["main", "a", "b"]);
}

#[tokio::test]
async fn members_are_written_one_on_the_other_before_any_is_durable() {
    let (catalog, store) = lake_with_table().await;
    store.hold();
    let committing = {
        let catalog = Arc::clone(&catalog);
        tokio::spawn(async move {
            catalog
                .commit_group(vec![schema("a"), schema("b"), schema("c")])
                .await
        })
    };
    while head(&catalog).await.snapshot_id < 4 {
        tokio::task::yield_now().await;
    }
    assert!(!committing.is_finished(), "nobody is told before it is durable");
    store.release();
    let outcomes = committing.await.unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
}

/// Lets everything that can go on without a flush do so.
async fn come_to_rest() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn members_that_are_too_large_together_go_in_parts_and_all_commit() {
    const MEMBERS: u64 = 8;
    /// A member of a thousand bytes and some, for its message.
    fn large(number: u64) -> GroupMember<u64> {
        GroupMember::new(move |tx| async move {
            tx.set_message("x".repeat(1_000)).await?;
            tx.create_schema(&format!("s{number}")).await
        })
    }
    let store = MemoryStore::new();
    let options = CatalogOptions {
        // Reached by the third member and not by the second.
        group_bytes_max: 3_000,
        ..CatalogOptions::default()
    };
    let catalog = Catalog::with_options(Arc::new(store.clone()), &options);
    catalog.create(Some("data/"), false).await.unwrap();
    store.hold();
    let committing = {
        let catalog = Arc::clone(&catalog);
        tokio::spawn(async move { catalog.commit_group((0..MEMBERS).map(large).collect()).await })
    };
    for written in [3, 6, MEMBERS] {
        come_to_rest().await;
        assert_eq!(head(&catalog).await.snapshot_id, written);
        assert!(!committing.is_finished(), "nobody is told before it is durable");
        store.release();
        store.hold();
    }
    let outcomes = committing.await.unwrap();
    let snapshots = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().unwrap().snapshot_id);
    assert!(snapshots.eq((1..=MEMBERS).map(Some)));
    let schemas = catalog.snapshot().await.unwrap().schemas().await.unwrap();
    assert_eq!(schemas.len() as u64, MEMBERS + 1, "and nothing is lost");
}

#[tokio::test]
async fn a_member_that_is_too_large_alone_commits_alone() {
    let store = MemoryStore::new();
    let options = CatalogOptions {
        group_bytes_max: 0,
        ..CatalogOptions::default()
    };
    let catalog = Catalog::with_options(Arc::new(store), &options);
    catalog.create(Some("data/"), false).await.unwrap();
    let outcomes = catalog
        .commit_group(vec![schema("a"), schema("a"), schema("b")])
        .await;
    let committed: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(committed, [true, false, true]);
}

/// Objects in the write-ahead log: the flushes there have been.
async fn flushes(objects: &Arc<dyn ObjectStore>) -> usize {
    let log = Path::from("lake/wal");
    let found: Vec<_> = objects.list(Some(&log)).try_collect().await.unwrap();
    found.len()
}

#[tokio::test]
async fn commits_that_wait_share_a_flush() {
    const COMMITTERS: usize = 32;
    let config = ThrottleConfig {
        wait_put_per_call: Duration::from_millis(50),
        ..ThrottleConfig::default()
    };
    let objects: Arc<dyn ObjectStore> = Arc::new(ThrottledStore::new(InMemory::new(), config));
    let store = SlateStore::open_on(Arc::clone(&objects), "lake", &OpenOptions::create())
        .await
        .unwrap();
    let catalog = Catalog::with_store(store);
    catalog.create(Some("data/"), false).await.unwrap();
    let before = flushes(&objects).await;
    let members = (0..COMMITTERS).map(|number| {
        GroupMember::new(move |tx| async move { tx.create_schema(&format!("s{number}")).await })
    });
    let outcomes = catalog.commit_group(members.collect()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let of_the_group = flushes(&objects).await - before;
    assert!(
        of_the_group < COMMITTERS / 2,
        "{of_the_group} flushes for {COMMITTERS} commits"
    );
    catalog.close().await.unwrap();
}

#[tokio::test]
async fn a_caller_who_stops_waiting_strands_nobody() {
    let (catalog, store) = lake_with_table().await;
    store.hold();
    let abandoned = {
        let catalog = Arc::clone(&catalog);
        tokio::spawn(async move {
            catalog
                .commit(|tx| async move { tx.create_schema("a").await })
                .await
        })
    };
    while head(&catalog).await.snapshot_id < 2 {
        tokio::task::yield_now().await;
    }
    abandoned.abort();
    let in_a_closure = {
        let catalog = Arc::clone(&catalog);
        let (entered, is_in) = tokio::sync::oneshot::channel();
        let mut entered = Some(entered);
        let stuck = tokio::spawn(async move {
            let committing = catalog.commit(|tx| {
                let entered = entered.take();
                async move {
                    tx.create_schema("never").await?;
                    entered.map(|entered| entered.send(()));
                    std::future::pending::<Result<(), VerbError>>().await
                }
            });
            committing.await
        });
        is_in.await.unwrap();
        stuck
    };
    in_a_closure.abort();
    store.release();
    let next = catalog
        .commit(|tx| async move { tx.create_schema("b").await })
        .await;
    assert_eq!(next.unwrap().snapshot_id, Some(3));
    let names: Vec<String> = catalog
        .snapshot()
        .await
        .unwrap()
        .schemas()
        .await
        .unwrap()
        .into_iter()
        .map(|schema| schema.name)
        .collect();
    assert_eq!(names, ["main", "a", "b"], "what was written went on to its end");
}

#[tokio::test]
async fn outcomes_are_types() {
    let unknown = StoreError::Unknown {
        detail: "the PUT timed out".into(),
    };
    let fenced = StoreError::Fenced {
        detail: "another owner".into(),
    };
    for (failure, is_unknown) in [(unknown, true), (fenced, false)] {
        let (catalog, store) = lake_with_table().await;
        store.hold();
        let committing = {
            let catalog = Arc::clone(&catalog);
            tokio::spawn(async move {
                catalog
                    .commit(|tx| async move { tx.create_schema("a").await })
                    .await
            })
        };
        while head(&catalog).await.snapshot_id < 2 {
            tokio::task::yield_now().await;
        }
        store.fail(failure);
        match committing.await.unwrap() {
            Err(CommitError::Unknown { .. }) => assert!(is_unknown),
            Err(CommitError::Fenced { .. }) => assert!(!is_unknown),
            other => panic!("{other:?}"),
        }
    }
}
