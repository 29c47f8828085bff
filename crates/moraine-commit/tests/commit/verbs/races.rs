//! Commits at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use moraine_commit::lake::ColumnType;
use moraine_commit::verbs::{ColumnDefinition, CommitError, CommitOptions, NewDeleteFile};

use super::{create_table, file, lake_with_table};

const COMMITTERS: u32 = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_at_the_same_time_all_succeed_at_their_first_try() {
    let (catalog, _store) = lake_with_table().await;
    let runs = Arc::new(AtomicU32::new(0));
    let tasks = (0..COMMITTERS).map(|number| {
        let (catalog, runs) = (Arc::clone(&catalog), Arc::clone(&runs));
        tokio::spawn(async move {
            let path = &format!("{number}.parquet");
            let runs = &runs;
            let commit = catalog.commit(|tx| async move {
                runs.fetch_add(1, Ordering::Relaxed);
                tx.add_data_files(1, vec![file(path, 1, (1, 1))]).await
            });
            commit.await.unwrap()
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut snapshots = Vec::new();
    for task in tasks {
        snapshots.push(task.await.unwrap().snapshot_id.unwrap());
    }
    snapshots.sort_unstable();
    let expected: Vec<u64> = (2..).take(COMMITTERS as usize).collect();
    assert_eq!(snapshots, expected);
    assert_eq!(runs.load(Ordering::Relaxed), COMMITTERS);
    let stats = catalog
        .snapshot()
        .await
        .unwrap()
        .table_stats(1)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stats.next_row_id, u64::from(COMMITTERS));
}

/// Runs a closure that dawdles past its turn at its first run, while `meanwhile` is committed; how often it ran, and how it
/// came out.
async fn overtaken<Fut>(
    meanwhile: impl FnMut(moraine_commit::verbs::LakeTransaction) -> Fut,
) -> (u32, Result<Option<u64>, CommitError>)
where
    Fut: Future<Output = Result<(), moraine_commit::verbs::VerbError>>,
{
    let (catalog, _store) = lake_with_table().await;
    create_table(&catalog, "u").await;
    let runs = Arc::new(AtomicU32::new(0));
    let (entered, is_in) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = tokio::sync::oneshot::channel::<()>();
    let slow = {
        let (catalog, runs) = (Arc::clone(&catalog), Arc::clone(&runs));
        let mut first = Some((entered, may_go_on));
        tokio::spawn(async move {
            let commit = catalog.commit(move |tx| {
                runs.fetch_add(1, Ordering::Relaxed);
                let first = first.take();
                async move {
                    if let Some((entered, may_go_on)) = first {
                        entered.send(()).unwrap();
                        may_go_on.await.unwrap();
                    }
                    tx.add_data_files(1, vec![file("slow.parquet", 1, (1, 1))]).await
                }
            });
            commit.await.map(|commit| commit.snapshot_id)
        })
    };
    is_in.await.unwrap();
    catalog.commit(meanwhile).await.unwrap();
    go_on.send(()).unwrap();
    let outcome = slow.await.unwrap();
    (runs.load(Ordering::Relaxed), outcome)
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_is_overtaken_by_something_harmless_is_run_again() {
    let (runs, outcome) = overtaken(|tx| async move {
        tx.add_data_files(1, vec![file("quick.parquet", 1, (1, 1))])
            .await
            .map(|_| ())
    })
    .await;
    assert_eq!((runs, outcome.unwrap()), (2, Some(4)));
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_is_overtaken_by_a_conflict_is_not() {
    let (runs, outcome) = overtaken(|tx| async move {
        tx.add_column(1, ColumnDefinition::new("x", ColumnType::Int32))
            .await
            .map(|_| ())
    })
    .await;
    assert_eq!(runs, 1);
    assert!(
        matches!(outcome, Err(CommitError::Conflicted { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn work_that_was_based_on_an_earlier_snapshot_is_refused_where_a_later_one_conflicts() {
    let (catalog, _store) = lake_with_table().await;
    let added = catalog.commit(|tx| async move {
        tx.add_data_files(
            1,
            vec![file("a.parquet", 2, (1, 2)), file("b.parquet", 2, (3, 4))],
        )
        .await
    });
    added.await.unwrap();
    let based_on = catalog.snapshot().await.unwrap().id();
    let delete = async |data_file_id, based_on| {
        let options = CommitOptions {
            based_on,
            ..CommitOptions::default()
        };
        let deleted = catalog.commit_with(&options, |tx| async move {
            let path = format!("{data_file_id}-delete.parquet");
            tx.add_delete_files(1, vec![NewDeleteFile::new(data_file_id, path, 1, 1)])
                .await
        });
        deleted.await
    };
    delete(0, Some(based_on)).await.unwrap();
    delete(1, Some(based_on)).await.unwrap();
    let inserted =
        catalog.commit(|tx| async move { tx.add_data_files(1, vec![file("c.parquet", 1, (5, 5))]).await });
    inserted.await.unwrap();
    let drop_file = async |based_on| {
        let options = CommitOptions {
            based_on: Some(based_on),
            ..CommitOptions::default()
        };
        catalog
            .commit_with(&options, |tx| async move { tx.drop_data_files(1, &[0]).await })
            .await
    };
    let refused = drop_file(based_on).await;
    assert!(
        matches!(refused, Err(CommitError::Conflicted { .. })),
        "an insert came in between"
    );
    let newest = catalog.snapshot().await.unwrap().id();
    drop_file(newest).await.unwrap();
    let ahead = delete(4, Some(newest + 10)).await;
    assert!(matches!(ahead, Err(CommitError::Refused(_))));
}
