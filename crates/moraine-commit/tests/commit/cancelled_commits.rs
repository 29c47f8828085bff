use std::future::Future;
use std::task::Poll;

use moraine_commit::views;

use crate::support::{begin_snapshot, commit, head, insert, lake, table};

/// Polls a future once and drops it, as a client does that vanishes while its COMMIT is under way.
async fn poll_once_and_drop<F: Future>(future: F) {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_commit_whose_caller_is_gone_comes_to_its_end_and_gives_the_slot_back() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "created_table:\"main\".\"t\"").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    poll_once_and_drop(transaction.commit()).await;

    // Waits for the slot, if need be, and so for the end of the abandoned commit.
    while head(&catalog).await.snapshot_id == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(2));
    let reader = catalog.begin().await.unwrap();
    assert_eq!(views::tables_at(reader.read(), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_transaction_dropped_before_its_commit_leaves_nothing_and_gives_the_slot_back() {
    let (catalog, store) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "created_table:\"main\".\"t\"").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    drop(transaction);
    let unpolled = begin_snapshot(&catalog, "").await.commit();
    drop(unpolled);
    assert_eq!(
        (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
        (0, 0)
    );
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(1));
    drop(store);
}

#[tokio::test]
async fn waiting_for_the_slot_can_be_given_up() {
    let (catalog, _) = lake().await;
    let holder = begin_snapshot(&catalog, "").await;
    let mut waiting = catalog.begin().await.unwrap();
    poll_once_and_drop(waiting.insert_snapshot(crate::support::snapshot(1))).await;
    drop(waiting);
    holder.commit().await.unwrap();
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(2));
}
