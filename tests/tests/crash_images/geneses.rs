//! GenesisInterrupted, ConcurrentGenesis.

use std::sync::Arc;

use async_trait::async_trait;
use moraine_commit::{Catalog, CatalogError, CommitFailure, OpenError};
use object_store::ObjectStore;

use crate::lake::{self, Failure};
use crate::stopping_store::Fault;
use crate::sweep::{Progress, Story, open, sweep};

async fn nothing_or_a_lake(left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
    let catalog = open(left).await?;
    let found = lake::newest_whole_commit(&catalog).await?;
    // Made, or adopted as it is.
    catalog.create(Some("data/"), false).await?;
    if lake::newest_whole_commit(&catalog).await? != Some(0) {
        return Err("a second creation is not the first".into());
    }
    lake::commit(&catalog, 1).await?;
    catalog.close().await?;
    match found {
        None => Ok(0),
        Some(0) => Ok(1),
        Some(newest) => Err(format!("a fresh lake at snapshot {newest}").into()),
    }
}

/// A lake is made.
struct Genesis;

#[async_trait]
impl Story for Genesis {
    async fn before(&self, _store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        Ok(())
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.create(Some("data/"), false).await?;
        progress.reached(1);
        Ok(catalog.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        nothing_or_a_lake(left).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn genesis_interrupted_leaves_nothing_or_a_whole_lake() {
    for crash in sweep(Genesis, Fault::Stops).await {
        assert_eq!(crash.landed, crash.acknowledged);
    }
    let unheard = sweep(Genesis, Fault::StopsUnheard).await;
    assert!(
        unheard.iter().any(|crash| crash.landed > crash.acknowledged),
        "{unheard:?}"
    );
}

/// Two processes make the same lake at the same moment.
struct TwoGeneses;

async fn make(store: Arc<dyn ObjectStore>) -> Result<Arc<Catalog>, Failure> {
    let catalog = open(store).await?;
    catalog.create(Some("data/"), false).await?;
    Ok(catalog)
}

/// Whether who did not make the lake was told so by type.
fn is_typed(failure: &Failure) -> bool {
    let opening = failure.downcast_ref::<OpenError>();
    let committing = failure.downcast_ref::<CommitFailure>();
    let beginning = failure.downcast_ref::<CatalogError>();
    matches!(
        opening,
        Some(OpenError::Fenced { .. } | OpenError::Unreachable { .. } | OpenError::Read { .. })
    ) || matches!(
        committing,
        Some(CommitFailure::Fenced { .. } | CommitFailure::Unknown { .. })
    ) || beginning.is_some()
}

#[async_trait]
impl Story for TwoGeneses {
    async fn before(&self, _store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        Ok(())
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let both = (
            tokio::spawn(make(Arc::clone(&store))),
            tokio::spawn(make(Arc::clone(&store))),
        );
        let both = [both.0.await?, both.1.await?];
        let mut made = false;
        for outcome in both {
            match outcome {
                Ok(_) => made = true,
                Err(failure) if is_typed(&failure) => {}
                Err(failure) => return Err(format!("not told by type: {failure:?}").into()),
            }
        }
        if !made {
            // Each took the store from the other; somebody comes again.
            make(store).await?;
        }
        progress.reached(1);
        Ok(())
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        nothing_or_a_lake(left).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_genesis_makes_one_lake() {
    sweep(TwoGeneses, Fault::Stops).await;
    sweep(TwoGeneses, Fault::StopsUnheard).await;
}
