//! Who has lost goes first.

use std::sync::Arc;
use std::time::Duration;

use moraine_commit::{Catalog, CatalogOptions, CatalogTransaction, StageError, Turn};
use moraine_store::MemoryStore;
use tokio::time::Instant;

use crate::support::{begin_snapshot, commit, head, insert, insert_snapshot, lake, table};

/// A lake whose deadlines are those given.
async fn lake_with(options: CatalogOptions) -> Arc<Catalog> {
    let catalog = Catalog::with_options(Arc::new(MemoryStore::new()), &options);
    catalog.create(None, false).await.unwrap();
    catalog
}

/// The snapshot after the one the transaction reads, inserted and committed.
async fn finish(mut transaction: CatalogTransaction) -> Result<u64, StageError> {
    let id = transaction.head().unwrap().snapshot_id + 1;
    insert_snapshot(&mut transaction, id, "").await?;
    transaction.stage(vec![insert(table(id, id, "t"))]).await.unwrap();
    Ok(transaction.commit().await.unwrap().snapshot_id.unwrap())
}

#[tokio::test]
async fn who_finds_the_slot_taken_is_refused_at_once() {
    let (catalog, _) = lake().await;
    let holder = begin_snapshot(&catalog, "").await;
    let mut second = catalog.begin().await.unwrap();
    assert!(!second.has_lost());
    let error = insert_snapshot(&mut second, 1, "").await.unwrap_err();
    assert!(matches!(error, StageError::SlotTaken { asked: 1 }), "{error:?}");
    assert!(second.has_lost());
    drop(holder);
    // Nothing was taken from it but the turn.
    insert_snapshot(&mut second, 1, "").await.unwrap();
    assert_eq!(second.commit().await.unwrap().snapshot_id, Some(1));
}

#[tokio::test]
async fn a_turn_keeps_everybody_else_from_coming_first() {
    let (catalog, _) = lake().await;
    let mut early = catalog.begin().await.unwrap();
    let loser = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    let error = insert_snapshot(&mut early, 1, "").await.unwrap_err();
    assert!(matches!(error, StageError::SlotTaken { .. }), "{error:?}");
    assert_eq!(finish(loser).await.unwrap(), 1);
    let error = insert_snapshot(&mut early, 1, "").await.unwrap_err();
    assert!(matches!(error, StageError::LostRace { .. }), "{error:?}");
}

#[tokio::test]
async fn a_turn_begins_at_the_newest_snapshot_when_it_comes() {
    let (catalog, _) = lake().await;
    let holder = begin_snapshot(&catalog, "").await;
    let waiting = tokio::spawn({
        let catalog = Arc::clone(&catalog);
        async move { finish(catalog.begin_in_turn(Turn::SecondTry).await.unwrap()).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    holder.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn a_turn_is_near_once_the_one_before_has_inserted_its_snapshot() {
    let (catalog, _) = lake().await;
    let mut before = catalog.begin_in_turn(Turn::Expected).await.unwrap();
    let place = catalog.line_up(Turn::Expected);
    let pause = Duration::from_millis(20);
    assert!(tokio::time::timeout(pause, place.near()).await.is_err());
    insert_snapshot(&mut before, 1, "").await.unwrap();
    place.near().await;
    let waiting = tokio::spawn({
        let catalog = Arc::clone(&catalog);
        async move { finish(catalog.begin_at(place).await.unwrap()).await }
    });
    tokio::time::sleep(pause).await;
    assert!(!waiting.is_finished());
    before.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    before.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), 2, "it begins on top of that one");
    let place = catalog.line_up(Turn::Expected);
    drop(place);
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(3));
}

#[tokio::test]
async fn a_turn_that_is_not_used_is_given_back() {
    let (catalog, _) = lake().await;
    let reader = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    reader.commit().await.unwrap();
    let given_up = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    given_up.rollback();
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_dies_with_its_turn_delays_the_next_by_the_reservation() {
    let catalog = lake_with(CatalogOptions {
        reservation: Duration::from_millis(300),
        ..CatalogOptions::default()
    })
    .await;
    let dead = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    let start = Instant::now();
    let next = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(300));
    assert_eq!(finish(next).await.unwrap(), 1);
    // Should it live after all, it has lost, and nothing is written twice.
    assert!(matches!(finish(dead).await, Err(StageError::LostRace { .. })));
    assert_eq!(head(&catalog).await.snapshot_id, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_dies_with_its_snapshot_inserted_delays_the_next_by_the_idle_time() {
    let catalog = lake_with(CatalogOptions {
        slot_idle: Duration::from_millis(700),
        ..CatalogOptions::default()
    })
    .await;
    let dead = begin_snapshot(&catalog, "").await;
    let start = Instant::now();
    let next = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(700));
    assert_eq!(finish(next).await.unwrap(), 1);
    assert!(dead.commit().await.is_err());
    assert_eq!(head(&catalog).await.snapshot_id, 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_batch_keeps_the_slot_while_its_statements_go_on() {
    let catalog = lake_with(CatalogOptions {
        slot_idle: Duration::from_millis(700),
        ..CatalogOptions::default()
    })
    .await;
    let mut long = begin_snapshot(&catalog, "").await;
    let next = tokio::spawn({
        let catalog = Arc::clone(&catalog);
        async move { finish(catalog.begin_in_turn(Turn::SecondTry).await.unwrap()).await }
    });
    for id in 1..10 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        long.stage(vec![insert(table(100 + id, 1, "t"))]).await.unwrap();
    }
    assert_eq!(long.commit().await.unwrap().snapshot_id, Some(1));
    assert_eq!(next.await.unwrap().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_come_is_not_waited_for_longer_than_allowed() {
    let catalog = lake_with(CatalogOptions {
        slot_wait: Duration::from_millis(50),
        ..CatalogOptions::default()
    })
    .await;
    let holder = begin_snapshot(&catalog, "").await;
    let start = Instant::now();
    let mut without = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(50));
    assert!(insert_snapshot(&mut without, 1, "").await.is_err());
    holder.commit().await.unwrap();
}

/// How long others wait for a transaction with such a turn that does nothing.
async fn patience_with(turn: Turn) -> Duration {
    let (catalog, _) = lake().await;
    let slow = catalog.begin_in_turn(turn).await.unwrap();
    let start = Instant::now();
    let next = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    let waited = start.elapsed();
    drop(next);
    // Nobody has come first, so nothing is lost.
    assert_eq!(finish(slow).await.unwrap(), 1);
    waited
}

#[tokio::test(start_paused = true)]
async fn the_less_is_known_of_a_client_the_less_it_is_waited_for() {
    assert_eq!(patience_with(Turn::SecondTry).await, Duration::from_secs(2));
    assert_eq!(patience_with(Turn::Expected).await, Duration::from_millis(500));
    assert_eq!(patience_with(Turn::Possible).await, Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn so_many_appends_are_at_work_at_once_and_no_more() {
    let catalog = lake_with(CatalogOptions {
        rebase_appends: true,
        appends_at_once: 2,
        ..CatalogOptions::default()
    })
    .await;
    let pause = Duration::from_millis(100);
    let first = catalog.begin_in_turn(Turn::Append).await.unwrap();
    let mut reading = catalog.begin_in_turn(Turn::Append).await.unwrap();
    let third = catalog.line_up(Turn::Append);
    assert!(tokio::time::timeout(pause, third.near()).await.is_err());
    reading.give_turn_up();
    tokio::time::timeout(pause, third.near()).await.unwrap();
    let third = catalog.begin_at(third).await.unwrap();
    // Whoever comes for something else is not kept.
    let start = Instant::now();
    drop(catalog.begin_in_turn(Turn::SecondTry).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO);
    // One that commits makes room, and so does one that does nothing for too long.
    let fourth = catalog.line_up(Turn::Append);
    assert_eq!(finish(third).await.unwrap(), 1);
    let fourth = catalog.begin_at(fourth).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    first.keep_turn();
    let fifth = catalog.begin_in_turn(Turn::Append).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(250));
    assert_eq!(finish(fourth).await.unwrap(), 2);
    drop((first, fifth));
}

#[tokio::test(start_paused = true)]
async fn who_may_be_about_to_commit_does_not_wait_for_ever() {
    let catalog = lake_with(CatalogOptions {
        slot_idle: Duration::from_secs(3600),
        ..CatalogOptions::default()
    })
    .await;
    let _holder = begin_snapshot(&catalog, "").await;
    let start = Instant::now();
    let without = catalog.begin_in_turn(Turn::Possible).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    drop(without);
}

#[tokio::test(start_paused = true)]
async fn who_is_sure_to_commit_is_waited_for_from_one_statement_to_the_next() {
    let (catalog, _) = lake().await;
    let mut update = catalog.begin_in_turn(Turn::Possible).await.unwrap();
    let next = tokio::spawn({
        let catalog = Arc::clone(&catalog);
        async move { finish(catalog.begin_in_turn(Turn::SecondTry).await.unwrap()).await }
    });
    update.take_turn();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(1900)).await;
        update.keep_turn();
    }
    assert_eq!(finish(update).await.unwrap(), 1);
    assert_eq!(next.await.unwrap().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_only_reads_gives_its_turn_up_and_can_still_commit() {
    let (catalog, _) = lake().await;
    let mut reading = catalog.begin_in_turn(Turn::Possible).await.unwrap();
    reading.give_turn_up();
    let start = Instant::now();
    let mut other = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    other.give_turn_up();
    assert_eq!(finish(reading).await.unwrap(), 1);
    // It cannot have the turn any more: somebody has committed since it began.
    other.take_turn();
    assert_eq!(finish(catalog.begin().await.unwrap()).await.unwrap(), 2);
    assert!(matches!(finish(other).await, Err(StageError::LostRace { .. })));
}

/// Writers that lose take their turn; none loses twice, whatever their number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_try_succeeds_whatever_the_number_of_writers() {
    let (catalog, _) = lake().await;
    let writers: Vec<_> = (0..64)
        .map(|_| {
            let catalog = Arc::clone(&catalog);
            tokio::spawn(async move {
                for _ in 0..10 {
                    let first = catalog.begin().await.unwrap();
                    tokio::task::yield_now().await;
                    if finish(first).await.is_err() {
                        let second = catalog.begin_in_turn(Turn::SecondTry).await.unwrap();
                        tokio::task::yield_now().await;
                        finish(second).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(head(&catalog).await.snapshot_id, 640);
}

/// Commits a snapshot that says it did this.
async fn commit_saying(catalog: &Arc<Catalog>, changes_made: &str) {
    let id = head(catalog).await.snapshot_id + 1;
    commit(catalog, changes_made, vec![insert(table(id, id, "t"))]).await;
}

#[tokio::test]
async fn a_lake_is_known_to_grow_only_after_some_appends_and_until_somebody_is_about_to_update() {
    let (catalog, _) = lake().await;
    let appends = [
        "inserted_into_table:1",
        "inlined_insert:1",
        "inlined_insert:1,inserted_into_table:2",
    ];
    for changes_made in appends.iter().cycle().take(7) {
        commit_saying(&catalog, changes_made).await;
        assert!(!catalog.only_grows(), "too few commits tell");
    }
    commit_saying(&catalog, r#"created_table:"main"."t",inlined_insert:1"#).await;
    assert!(!catalog.only_grows(), "that is no append");
    commit_saying(&catalog, "inlined_insert:1").await;
    assert!(catalog.only_grows());
    for changes_made in [
        r#"created_table:"main"."u""#,
        "altered_table:1",
        "inline_flush:1",
        "",
    ] {
        commit_saying(&catalog, changes_made).await;
        assert!(catalog.only_grows(), "{changes_made} takes no rows away");
    }
    catalog.begin().await.unwrap().take_turn();
    for _ in 0..20 {
        commit_saying(&catalog, "inlined_insert:1").await;
        assert!(!catalog.only_grows(), "who was about to update is not forgotten");
    }
}

#[tokio::test]
async fn a_lake_whose_rows_were_taken_away_is_not_one_that_only_grows() {
    for changes_made in [
        "deleted_from_table:1",
        "inlined_insert:1,inlined_delete:1",
        "something_new:1",
    ] {
        let (catalog, _) = lake().await;
        commit_saying(&catalog, changes_made).await;
        for _ in 0..20 {
            commit_saying(&catalog, "inlined_insert:1").await;
        }
        assert!(!catalog.only_grows(), "{changes_made}");
    }
}
