//! TakeoverMidCommit, FencedWriterResumes: the old writer is in the middle of a commit when its store stops answering, and
//! another process opens the lake.

use std::sync::Arc;
use std::time::Duration;

use moraine_commit::{Catalog, CatalogError, CommitFailure, OpenError, ReadError, StageError};
use object_store::memory::InMemory;

use crate::lake::{self, Failure};
use crate::stopping_store::{Fault, StoppingStore};
use crate::sweep::open;

/// The newest commit before the act.
const N: u64 = 2;
/// Writes after which the old writer is through, and some.
const WRITES_MAX: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(60);

async fn lake_at_n() -> Result<InMemory, Failure> {
    let image = Arc::new(InMemory::new());
    let catalog = open(Arc::clone(&image) as _).await?;
    catalog.create(Some("data/"), false).await?;
    for n in 1..=N {
        lake::commit(&catalog, n).await?;
    }
    catalog.close().await?;
    Ok(image.fork())
}

/// The old writer's life: it opens the lake and commits N + 1.
async fn old_writer(store: Arc<StoppingStore>) -> (Option<Arc<Catalog>>, Result<(), Failure>) {
    match open(store).await {
        Ok(catalog) => {
            let committed = lake::commit(&catalog, N + 1).await;
            (Some(catalog), committed)
        }
        Err(error) => (None, Err(error)),
    }
}

/// What the successor found first.
async fn take_over(
    image: InMemory,
    writes: u64,
    fault: Fault,
    old_writer_resumes: bool,
) -> Result<u64, Failure> {
    let image = Arc::new(image);
    let stopping = Arc::new(StoppingStore::new(Arc::clone(&image) as _, writes, fault));
    let mut old = tokio::spawn(old_writer(Arc::clone(&stopping)));
    let early = tokio::select! {
        ended = &mut old => Some(ended?),
        () = stopping.silence() => None,
    };
    let successor = open(Arc::clone(&image) as _).await?;
    let found = lake::newest_whole_commit(&successor).await?.ok_or("no lake")?;
    if !(N..=N + 1).contains(&found) {
        return Err(format!("the successor found snapshot {found}").into());
    }
    if let Some((_, Ok(()))) = &early
        && found != N + 1
    {
        return Err("the successor does not see what was acknowledged".into());
    }
    lake::commit(&successor, found + 1).await?;
    if !old_writer_resumes {
        old.abort();
        return Ok(found);
    }
    stopping.resume();
    let (catalog, committed) = match early {
        Some(ended) => ended,
        None => tokio::time::timeout(PATIENCE, old).await??,
    };
    check_told(&committed, found)?;
    if let (Some(catalog), Err(_)) = (catalog, &committed) {
        check_refused(&catalog).await?;
    }
    // One that had been stopped while it opened has taken the lake over in its turn, and may.
    let newest = open(image).await?;
    match lake::newest_whole_commit(&newest).await? {
        Some(newest) if newest == found + 1 => Ok(found),
        newest => Err(format!("the old writer left {newest:?}, not {}", found + 1).into()),
    }
}

/// An acknowledged commit is one the successor found; any other is refused by type.
fn check_told(committed: &Result<(), Failure>, found: u64) -> Result<(), Failure> {
    let Err(failure) = committed else {
        return match found {
            found if found == N + 1 => Ok(()),
            _ => Err("a commit that the successor does not have was acknowledged".into()),
        };
    };
    let committing = failure.downcast_ref::<CommitFailure>();
    let staging = failure.downcast_ref::<StageError>();
    let beginning = failure.downcast_ref::<CatalogError>();
    let opening = failure.downcast_ref::<OpenError>();
    let typed = matches!(
        committing,
        Some(CommitFailure::Fenced { .. } | CommitFailure::Unknown { .. })
    ) || matches!(
        staging,
        Some(StageError::LostRace { .. } | StageError::Read(ReadError::Fenced { .. }))
    ) || matches!(beginning, Some(CatalogError::Read(ReadError::Fenced { .. })))
        || matches!(
            opening,
            Some(OpenError::Fenced { .. } | OpenError::Unreachable { .. })
        );
    match typed {
        true => Ok(()),
        false => Err(format!("the old writer is told {failure:?}").into()),
    }
}

/// A writer that was fenced serves nothing; one that has taken the lake in its turn does.
async fn check_refused(catalog: &Arc<Catalog>) -> Result<(), Failure> {
    match catalog.begin().await {
        Err(CatalogError::Read(ReadError::Fenced { .. })) | Ok(_) => Ok(()),
        Err(error) => Err(format!("the old writer begins with {error:?}").into()),
    }
}

async fn every_takeover(old_writer_resumes: bool) {
    let image = lake_at_n().await.expect("a lake");
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for fault in [Fault::Stops, Fault::StopsUnheard] {
        let crashes = (0..=WRITES_MAX)
            .map(|writes| tokio::spawn(take_over(image.fork(), writes, fault, old_writer_resumes)));
        let crashes: Vec<_> = crashes.collect();
        for (writes, crash) in crashes.into_iter().enumerate() {
            match crash.await.expect("no panic") {
                Ok(first) => found.push(first),
                Err(problem) => problems.push(format!("after {writes} writes ({fault:?}): {problem}")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(found.contains(&N) && found.contains(&(N + 1)), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn takeover_mid_commit_finds_the_commit_whole_or_not_at_all() {
    every_takeover(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fenced_writer_resumes_and_writes_nothing() {
    every_takeover(true).await;
}
