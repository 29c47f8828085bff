//! Stops: at every batch, at every write of the object store, and at the death of the process; and who goes on after.

use std::ops::ControlFlow;
use std::sync::Arc;

use moraine_migrate::units::{
    MigrateError, MigrateOptions, Progress, Unobserved, migrate, migrate_on, migrate_store,
};
use moraine_store::{
    FormatState, OpenError, OpenOptions, SlateStore, Store, StoreUrl, check_format, open, open_reader,
};
use object_store::memory::InMemory;

use crate::lake::{self, LARGE, SMALL, Size, TINY};
use crate::stopping_store::{Fault, StoppingStore};
use crate::stores::{PREFIX, check_migrated, in_memory, in_object_store, load};
use crate::{FORMATS, NEWEST, whole};

/// Small batches, so that there are many places to stop at.
fn options(batch_records: usize) -> MigrateOptions {
    MigrateOptions {
        batch_records,
        ..MigrateOptions::default()
    }
}

/// Stops after so many batches; looking at the records counts as none.
fn stop_after(batches: u64) -> impl FnMut(&Progress) -> ControlFlow<()> + Send {
    let mut left = batches;
    move |progress| {
        if progress.total.is_none() {
            return ControlFlow::Continue(());
        }
        left = left.saturating_sub(1);
        if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Whether whoever opens a store that was left half way is refused, or gets a whole lake of some format.
async fn check_refused_or_whole(store: &dyn Store) {
    let view = store.view().unwrap();
    match check_format(view.as_ref()).await {
        Err(OpenError::MidMigration { .. } | OpenError::Older { .. }) | Ok(FormatState::Ready) => {}
        other => panic!("{other:?}"),
    }
}

/// Stops after every batch in turn, and goes on from what is in the store alone.
async fn stop_at_every_batch(format: u64, size: Size, batch_records: usize) -> u64 {
    let records = lake::records(format, format, size);
    for batches in 1.. {
        let store = in_memory(&records).await;
        let stopped = migrate_store(&store, &options(batch_records), &mut stop_after(batches)).await;
        check_refused_or_whole(&store).await;
        match stopped {
            Err(MigrateError::Stopped { .. }) => {}
            Ok(report) => {
                assert_eq!(report.to_format, NEWEST);
                return batches;
            }
            Err(error) => panic!("format {format}, stopped after {batches} batches: {error}"),
        }
        let resumed = migrate_store(&store, &options(batch_records), &mut Unobserved).await;
        resumed.unwrap_or_else(|error| panic!("format {format}, resumed after {batches} batches: {error}"));
        let whole = check_migrated(&store, format, size).await;
        whole.unwrap_or_else(|problem| panic!("stopped after {batches} batches: {problem}"));
    }
    unreachable!("every migration ends")
}

#[tokio::test]
async fn a_stop_at_any_batch_is_made_good_by_the_next_run() {
    let (size, batch_records) = if whole() { (LARGE, 64) } else { (TINY, 5) };
    for format in FORMATS {
        let batches = stop_at_every_batch(format, size, batch_records).await;
        assert!(batches > 5, "{batches} batches from format {format}");
        println!("format {format}: stopped at each of {batches} batches");
    }
}

#[tokio::test]
async fn a_migration_that_is_stopped_again_and_again_comes_to_its_end() {
    let store = in_memory(&lake::records(8, 8, SMALL)).await;
    for runs in 0.. {
        match migrate_store(&store, &options(7), &mut stop_after(1)).await {
            Ok(_) => break,
            Err(MigrateError::Stopped { .. }) => assert!(runs < 1000, "it makes no headway"),
            Err(error) => panic!("{error}"),
        }
    }
    check_migrated(&store, 8, SMALL).await.unwrap();
}

/// Short: a store that has stopped never answers well again, so waiting longer shows nothing more.
fn impatient(batch_records: usize) -> MigrateOptions {
    let patience = std::time::Duration::from_millis(700);
    MigrateOptions {
        store: OpenOptions {
            open_timeout: patience,
            request_timeout: patience,
            ..OpenOptions::default()
        },
        ..options(batch_records)
    }
}

/// Migrates over an object store that stops after `writes`, goes on with one that does not, and says how many it took.
async fn stop_at_write(
    format: u64,
    size: Size,
    batch_records: usize,
    writes: u64,
    fault: Fault,
) -> Result<u64, String> {
    let image = Arc::new(InMemory::new());
    in_object_store(Arc::clone(&image) as _, &lake::records(format, format, size)).await;
    let stopping = Arc::new(StoppingStore::new(Arc::clone(&image) as _, writes, fault));
    let outcome = migrate_on(
        Arc::clone(&stopping) as _,
        PREFIX,
        &impatient(batch_records),
        &mut Unobserved,
    )
    .await;
    let taken = stopping.writes();
    if writes == u64::MAX {
        outcome.map_err(|error| error.to_string())?;
    }
    let failed =
        |problem: String| format!("from {format}, stopped after {writes} writes ({fault:?}): {problem}");
    let resumed = migrate_on(
        Arc::clone(&image) as _,
        PREFIX,
        &options(batch_records),
        &mut Unobserved,
    )
    .await;
    resumed.map_err(|error| failed(error.to_string()))?;
    let store = SlateStore::open_on(image, PREFIX, &OpenOptions::default()).await;
    let store = store.map_err(|error| failed(error.to_string()))?;
    check_migrated(store.as_ref(), format, size)
        .await
        .map_err(failed)?;
    store.close().await.map_err(|error| failed(error.to_string()))?;
    Ok(taken)
}

async fn stop_at_every_write(format: u64, size: Size, batch_records: usize) {
    let all = stop_at_write(format, size, batch_records, u64::MAX, Fault::Stops)
        .await
        .unwrap();
    let mut problems = Vec::new();
    for fault in [Fault::Stops, Fault::StopsUnheard, Fault::OneUnheard] {
        let stops =
            (0..=all).map(|writes| tokio::spawn(stop_at_write(format, size, batch_records, writes, fault)));
        for stop in futures::future::join_all(stops).await {
            if let Err(problem) = stop.unwrap() {
                problems.push(problem);
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    println!("format {format}: stopped at each of {all} writes, in three ways");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_that_stops_at_any_write_is_made_good_by_the_next_run() {
    if !whole() {
        return stop_at_every_write(8, TINY, 20).await;
    }
    for format in FORMATS {
        stop_at_every_write(format, SMALL, 64).await;
    }
}

/// Which store a child process migrates, and after how many batches it dies.
const CHILD_STORE: &str = "MORAINE_CHILD_STORE";
const CHILD_BATCHES: &str = "MORAINE_CHILD_BATCHES";

fn in_folder(folder: &std::path::Path) -> StoreUrl {
    folder.to_str().unwrap().parse().unwrap()
}

/// Does nothing but when [`die_after`] runs it.
#[tokio::test]
async fn a_child_process_migrates_until_it_dies() {
    let (Ok(store), Ok(batches)) = (std::env::var(CHILD_STORE), std::env::var(CHILD_BATCHES)) else {
        return;
    };
    let mut stop = stop_after(batches.parse().unwrap());
    let mut die = |progress: &Progress| {
        if stop(progress).is_break() {
            std::process::abort();
        }
        ControlFlow::Continue(())
    };
    migrate(&store.parse().unwrap(), &options(16), &mut die)
        .await
        .unwrap();
}

/// Whether a process that migrates the store died after so many batches; else it was done before.
fn die_after(folder: &std::path::Path, batches: u64) -> bool {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stops::a_child_process_migrates_until_it_dies"])
        .env(CHILD_STORE, folder)
        .env(CHILD_BATCHES, batches.to_string())
        .output()
        .unwrap();
    !child.status.success()
}

#[tokio::test]
async fn a_process_that_dies_is_made_good_by_another_one() {
    let formats: Vec<u64> = if whole() { FORMATS.collect() } else { vec![8] };
    for format in formats {
        let folder = tempfile::tempdir().unwrap();
        let url = in_folder(folder.path());
        let store = open(&url, &OpenOptions::create()).await.unwrap();
        load(store.as_ref(), &lake::records(format, format, SMALL)).await;
        store.close().await.unwrap();
        // Each process comes a little further than the one before, and dies again.
        let mut deaths = 0;
        while die_after(folder.path(), 2 + deaths * 3) {
            deaths += 1;
            let refused = open_reader(&url, &OpenOptions::default()).await;
            if let Err(error) = refused {
                assert!(
                    matches!(error, OpenError::MidMigration { .. } | OpenError::Older { .. }),
                    "{error}"
                );
            }
        }
        assert!(deaths > 1, "{deaths} deaths");
        let store = open(&url, &OpenOptions::default()).await.unwrap();
        check_migrated(store.as_ref(), format, SMALL).await.unwrap();
        store.close().await.unwrap();
    }
}
