//! A whole small life of a lake, cut off anywhere.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectStore;

use crate::lake::{self, COMMITS, Failure};
use crate::stopping_store::Fault;
use crate::sweep::{Progress, Story, open, sweep};

/// The lake is made, and then [`COMMITS`] commits: each is a step.
struct Life;

#[async_trait]
impl Story for Life {
    async fn before(&self, _store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        Ok(())
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.create(Some("data/"), false).await?;
        progress.reached(1);
        for n in 1..=COMMITS {
            lake::commit(&catalog, n).await?;
            progress.reached(n + 1);
        }
        Ok(catalog.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let catalog = open(left).await?;
        let found = lake::newest_whole_commit(&catalog).await?;
        if found.is_none() {
            catalog.create(Some("data/"), false).await?;
        }
        let next = found.unwrap_or(0) + 1;
        lake::commit(&catalog, next).await?;
        let after = lake::newest_whole_commit(&catalog).await?;
        catalog.close().await?;
        if after != Some(next) {
            return Err(format!("{after:?} after commit {next}").into());
        }
        Ok(found.map_or(0, |newest| newest + 1))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stops_leaves_a_lake_at_a_whole_commit() {
    sweep(Life, Fault::Stops).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stops_after_a_write_whose_answer_was_lost_leaves_a_lake_at_a_whole_commit() {
    sweep(Life, Fault::StopsUnheard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lost_answer_is_not_noticed_wherever_it_is() {
    for crash in sweep(Life, Fault::OneUnheard).await {
        assert_eq!(crash.acknowledged, COMMITS + 1);
        assert_eq!(crash.landed, COMMITS + 1);
    }
}
