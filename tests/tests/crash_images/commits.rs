//! CommitNotDurable, CommitDurableNotAcknowledged, GroupCommit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use moraine_codec::proto::SnapshotValue;
use moraine_commit::{Catalog, CatalogTransaction, StageError};
use object_store::ObjectStore;

use crate::lake::{self, Failure};
use crate::stopping_store::{Fault, StoppingStore};
use crate::sweep::{Progress, Story, open, sweep};

/// Commits before the act.
const BEFORE: u64 = 2;
/// Commits that wait for each other's flush.
const MEMBERS: u64 = 6;

async fn lake_with_commits(store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
    let catalog = open(store).await?;
    catalog.create(Some("data/"), false).await?;
    for n in 1..=BEFORE {
        lake::commit(&catalog, n).await?;
    }
    Ok(catalog.close().await?)
}

/// The commits after [`BEFORE`] that are there, each whole.
async fn landed(catalog: &Arc<Catalog>) -> Result<u64, Failure> {
    let newest = lake::newest_whole_commit(catalog).await?;
    let newest = newest.ok_or("the lake is gone")?;
    newest
        .checked_sub(BEFORE)
        .ok_or_else(|| "commits of before are gone".into())
}

/// One commit on a lake that has some.
struct OneCommit;

#[async_trait]
impl Story for OneCommit {
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        lake_with_commits(store).await
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let catalog = open(store).await?;
        lake::commit(&catalog, BEFORE + 1).await?;
        progress.reached(1);
        Ok(catalog.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let catalog = open(left).await?;
        let landed = landed(&catalog).await?;
        if landed == 1 {
            check_second_try(&catalog).await?;
        } else {
            lake::commit(&catalog, BEFORE + 1).await?;
        }
        catalog.close().await?;
        Ok(landed)
    }
}

/// A client that makes the same commit again finds that it is there.
async fn check_second_try(catalog: &Arc<Catalog>) -> Result<(), Failure> {
    let mut again = catalog.begin().await?;
    let snapshot = SnapshotValue {
        snapshot_id: BEFORE + 1,
        ..SnapshotValue::default()
    };
    match again.insert_snapshot(snapshot).await {
        Err(StageError::LostRace { newest, .. }) if newest == BEFORE + 1 => Ok(()),
        other => Err(format!("a second try is told {other:?}").into()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_not_durable_leaves_the_head_where_it_was() {
    let crashes = sweep(OneCommit, Fault::Stops).await;
    for crash in crashes {
        assert_eq!(
            crash.landed, crash.acknowledged,
            "nothing is there that was not told"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_durable_not_acknowledged_is_there_whole_and_is_found_by_who_tries_again() {
    let crashes = sweep(OneCommit, Fault::StopsUnheard).await;
    assert!(
        crashes.iter().any(|crash| crash.landed > crash.acknowledged),
        "{crashes:?}"
    );
}

/// Commits that build on each other and wait for the same flush.
struct Group;

/// A commit is seen a moment before its transaction has given the slot back; until then the next is asked to try again.
async fn staged_next(catalog: &Arc<Catalog>, n: u64) -> Result<CatalogTransaction, Failure> {
    loop {
        match lake::staged(catalog, n).await {
            Err(failure) if matches!(failure.downcast_ref(), Some(StageError::SlotTaken { .. })) => {
                tokio::task::yield_now().await;
            }
            staged => return staged,
        }
    }
}

#[async_trait]
impl Story for Group {
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        lake_with_commits(store).await
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        // Each write takes a moment, so that commits gather behind it.
        let paced = StoppingStore::new(store, u64::MAX, Fault::Stops).paced(Duration::from_millis(10));
        let catalog = open(Arc::new(paced)).await?;
        let mut members = Vec::new();
        for n in BEFORE + 1..=BEFORE + MEMBERS {
            let transaction = staged_next(&catalog, n).await?;
            members.push(tokio::spawn(transaction.commit()));
            while catalog.begin().await?.newest_snapshot_id() != Some(n) {
                tokio::task::yield_now().await;
            }
        }
        let mut failure = None;
        for (steps, member) in (1..).zip(members) {
            match member.await? {
                Ok(_) if failure.is_none() => progress.reached(steps),
                // What it was built on is not acknowledged, so it must not be either.
                Ok(_) => return Err(format!("member {steps} of the group outlived one before it").into()),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(failure) => Err(failure.into()),
            None => Ok(catalog.close().await?),
        }
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let catalog = open(left).await?;
        let landed = landed(&catalog).await?;
        lake::commit(&catalog, BEFORE + landed + 1).await?;
        catalog.close().await?;
        Ok(landed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn group_commit_lands_flush_by_flush_and_never_a_member_by_halves() {
    for fault in [Fault::Stops, Fault::StopsUnheard] {
        let crashes = sweep(Group, fault).await;
        let landings: std::collections::BTreeSet<u64> = crashes.iter().map(|crash| crash.landed).collect();
        assert!(
            landings.len() as u64 <= MEMBERS,
            "members shared flushes, so some states are never seen: {landings:?}"
        );
    }
}
