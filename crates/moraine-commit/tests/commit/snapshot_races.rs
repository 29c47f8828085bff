use std::sync::Arc;
use std::time::Duration;

use moraine_commit::{CommitFailure, StageError, views};
use moraine_store::CommitError;

use crate::support::{begin_snapshot, commit, head, insert, insert_snapshot, lake, table};

#[tokio::test]
async fn of_two_transactions_on_one_snapshot_the_second_is_refused_where_it_inserts_its_own() {
    let (catalog, _) = lake().await;
    let mut slow = catalog.begin().await.unwrap();
    commit(
        &catalog,
        "created_table:\"main\".\"a\"",
        vec![insert(table(1, 1, "a"))],
    )
    .await;
    let error = insert_snapshot(&mut slow, 1, "").await.unwrap_err();
    assert!(
        matches!(error, StageError::LostRace { asked: 1, newest: 1 }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "duplicate key value violates unique constraint \"ducklake_snapshot_pkey\""
    );
    slow.rollback();

    // Reading again is all it takes.
    let mut again = begin_snapshot(&catalog, "created_table:\"main\".\"b\"").await;
    again.stage(vec![insert(table(2, 2, "b"))]).await.unwrap();
    assert_eq!(again.commit().await.unwrap().snapshot_id, Some(2));
}

#[tokio::test]
async fn a_free_id_does_not_help_who_read_an_older_snapshot() {
    let (catalog, _) = lake().await;
    let mut slow = catalog.begin().await.unwrap();
    commit(&catalog, "", vec![]).await;
    let error = insert_snapshot(&mut slow, 2, "").await.unwrap_err();
    assert!(
        matches!(error, StageError::LostRace { asked: 2, newest: 1 }),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_id_that_is_taken_is_a_lost_race_whatever_was_read() {
    let (catalog, _) = lake().await;
    let mut transaction = catalog.begin().await.unwrap();
    assert!(matches!(
        insert_snapshot(&mut transaction, 0, "").await,
        Err(StageError::LostRace { .. })
    ));
    // The slot was given back at once.
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_committers_lose_no_commit_and_write_no_snapshot_twice() {
    let (catalog, _) = lake().await;
    let committers: Vec<_> = (0..8)
        .map(|_| {
            let catalog = Arc::clone(&catalog);
            tokio::spawn(async move {
                for _ in 0..10 {
                    loop {
                        let mut transaction = catalog.begin().await.unwrap();
                        let id = transaction.head().unwrap().snapshot_id + 1;
                        match insert_snapshot(&mut transaction, id, "").await {
                            Ok(()) => {}
                            Err(StageError::LostRace { .. } | StageError::SlotTaken { .. }) => continue,
                            Err(error) => panic!("{error}"),
                        }
                        transaction.stage(vec![insert(table(id, id, "t"))]).await.unwrap();
                        transaction.commit().await.unwrap();
                        break;
                    }
                }
            })
        })
        .collect();
    for committer in committers {
        committer.await.unwrap();
    }
    assert_eq!(
        (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
        (80, 80)
    );
    let reader = catalog.begin().await.unwrap();
    assert_eq!(views::snapshots(reader.read()).await.unwrap().len(), 81);
    assert_eq!(views::tables_at(reader.read(), 80).await.unwrap().len(), 80);
}

#[tokio::test]
async fn the_next_commit_builds_on_a_batch_that_is_written_but_not_durable() {
    let (catalog, store) = lake().await;
    store.hold();
    let first = tokio::spawn(begin_snapshot(&catalog, "").await.commit());
    while head(&catalog).await.snapshot_id == 0 {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn(begin_snapshot(&catalog, "").await.commit());
    let reader = catalog.begin().await.unwrap();
    let reader = tokio::spawn(reader.commit());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!first.is_finished() && !second.is_finished() && !reader.is_finished());
    store.release();
    assert_eq!(first.await.unwrap().unwrap().snapshot_id, Some(1));
    assert_eq!(second.await.unwrap().unwrap().snapshot_id, Some(2));
    assert_eq!(reader.await.unwrap().unwrap().snapshot_id, None);
}

#[tokio::test]
async fn a_failed_flush_is_told_to_all_who_built_on_it() {
    let (catalog, store) = lake().await;
    store.hold();
    let first = tokio::spawn(begin_snapshot(&catalog, "").await.commit());
    while head(&catalog).await.snapshot_id == 0 {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn(begin_snapshot(&catalog, "").await.commit());
    let reader = tokio::spawn(catalog.begin().await.unwrap().commit());
    tokio::time::sleep(Duration::from_millis(20)).await;
    store.fail(CommitError::Unknown {
        detail: "PUT timed out".to_owned(),
    });
    for outcome in [first, second, reader] {
        let error = outcome.await.unwrap().unwrap_err();
        assert!(matches!(error, CommitFailure::Unknown { .. }), "{error:?}");
    }
}
