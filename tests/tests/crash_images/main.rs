//! Crash images: an object store that stops taking writes after its k-th, for every k that a small life of a lake
//! makes. Whatever is left must open as a lake at a whole commit: all that was acknowledged is there, of the rest each
//! commit is there whole or not at all, and the next commit succeeds.
//!
//! A write that fails may have arrived all the same (the answer was lost), so every k is tried both ways.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

mod lake;
mod stopping_store;

use std::sync::Arc;
use std::time::Duration;

use moraine_commit::Catalog;
use moraine_store::{OpenOptions, SlateStore};
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::lake::COMMITS;
use crate::stopping_store::{LastWrite, StoppingStore};

/// A store that has stopped never answers well again, so waiting longer shows nothing more.
const PATIENCE: Duration = Duration::from_millis(700);

fn options() -> OpenOptions {
    OpenOptions {
        create: true,
        open_timeout: Duration::from_secs(10),
        request_timeout: PATIENCE,
    }
}

/// Lives through as much of the workload as the object store lets it, and returns the newest snapshot that was
/// acknowledged: `Some(0)` is the lake without a commit, `None` not even that.
async fn live(object_store: Arc<dyn ObjectStore>) -> Option<u64> {
    let opening = OpenOptions {
        open_timeout: PATIENCE,
        ..options()
    };
    let store = SlateStore::open_on(object_store, "lake", &opening).await.ok()?;
    let catalog = Catalog::with_store(store);
    let mut acknowledged = None;
    if catalog.create(Some("data/"), false).await.is_ok() {
        acknowledged = Some(0);
        for commit in 1..=COMMITS {
            if lake::commit(&catalog, commit).await.is_err() {
                break;
            }
            acknowledged = Some(commit);
        }
    }
    // Clean or not, the end of the process is the end of its writes.
    let _ = catalog.close().await;
    acknowledged
}

/// Opens what is left, checks it, and returns the newest snapshot.
async fn check(image: Arc<dyn ObjectStore>, acknowledged: Option<u64>) -> Result<Option<u64>, String> {
    let store = SlateStore::open_on(
        image,
        "lake",
        &OpenOptions {
            request_timeout: Duration::from_secs(20),
            ..options()
        },
    )
    .await
    .map_err(|error| format!("does not open: {error}"))?;
    let catalog = Catalog::with_store(store);
    let found = lake::newest_whole_commit(&catalog).await?;
    if found < acknowledged {
        return Err(format!(
            "{acknowledged:?} was acknowledged, and {found:?} is there"
        ));
    }
    // What was under way when the store stopped may have arrived; nothing else may.
    if found > acknowledged.map_or(Some(0), |commit| Some(commit + 1)) {
        return Err(format!(
            "only {acknowledged:?} was acknowledged, and {found:?} is there"
        ));
    }
    if found.is_none() {
        catalog
            .create(Some("data/"), false)
            .await
            .map_err(|error| format!("no lake can be made: {error}"))?;
    }
    let next = found.unwrap_or(0) + 1;
    lake::commit(&catalog, next)
        .await
        .map_err(|error| format!("the next commit fails: {error}"))?;
    let after = lake::newest_whole_commit(&catalog).await?;
    catalog
        .close()
        .await
        .map_err(|error| format!("does not close: {error}"))?;
    if after == Some(next) {
        Ok(found)
    } else {
        Err(format!("{after:?} after commit {next}"))
    }
}

async fn crash_after(writes: u64, last: LastWrite) -> Result<Option<u64>, String> {
    let image = Arc::new(InMemory::new());
    let stopping = Arc::new(StoppingStore::new(Arc::clone(&image) as _, writes, last));
    let acknowledged = live(stopping).await;
    let found = check(image, acknowledged).await;
    found.map_err(|problem| format!("stopped after {writes} writes ({last:?}): {problem}"))
}

/// How many writes a whole life makes.
async fn writes_of_a_life() -> u64 {
    let counting = Arc::new(StoppingStore::new(
        Arc::new(InMemory::new()),
        u64::MAX,
        LastWrite::Refused,
    ));
    let acknowledged = live(Arc::clone(&counting) as _).await;
    assert_eq!(
        acknowledged,
        Some(COMMITS),
        "the workload succeeds when nothing stops"
    );
    counting.writes()
}

async fn every_crash(last: LastWrite) {
    let writes = writes_of_a_life().await;
    assert!(
        writes > COMMITS,
        "{writes} writes for {COMMITS} commits: is each durable when it is acknowledged?"
    );
    let crashes = (0..=writes).map(|stop| tokio::spawn(crash_after(stop, last)));
    let mut problems = Vec::new();
    let mut newest = Vec::new();
    for crash in futures::future::join_all(crashes).await {
        match crash.expect("a crash that does not panic") {
            Ok(found) => newest.push(found),
            Err(problem) => problems.push(problem),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        newest.contains(&None) && newest.contains(&Some(COMMITS)),
        "the crashes span the life: {newest:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stops_leaves_a_lake_at_a_whole_commit() {
    every_crash(LastWrite::Refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stops_after_a_write_whose_answer_was_lost_leaves_a_lake_at_a_whole_commit() {
    every_crash(LastWrite::AppliedAnswerLost).await;
}
