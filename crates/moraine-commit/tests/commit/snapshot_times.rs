//! The time of a snapshot is after that of every snapshot before it.

use moraine_commit::{Catalog, views};
use moraine_keys::SnapshotKey;
use std::sync::Arc;

use crate::support::{changes, lake, snapshot, value};

async fn commit_at(catalog: &Arc<Catalog>, snapshot_id: u64, micros: i64) -> i64 {
    let mut transaction = catalog.begin().await.unwrap();
    let mut row = snapshot(snapshot_id);
    row.snapshot_time_micros = micros;
    transaction.insert_snapshot(row).await.unwrap();
    transaction
        .set_snapshot_changes(changes(snapshot_id, ""))
        .await
        .unwrap();
    let own = transaction.inserted_snapshot().unwrap().snapshot_time_micros;
    transaction.commit().await.unwrap();
    let stored = value(catalog, &SnapshotKey { snapshot_id }).await.unwrap();
    assert_eq!(
        stored.snapshot_time_micros, own,
        "the transaction reads what it stores"
    );
    own
}

#[tokio::test]
async fn a_time_that_is_not_later_is_raised_by_a_microsecond() {
    let (catalog, _) = lake().await;
    let born = views::snapshots(&*catalog.store().view().unwrap()).await.unwrap();
    let later = born.last().unwrap().snapshot_time_micros + 1_000_000;
    assert_eq!(
        commit_at(&catalog, 1, later).await,
        later,
        "a later time stays as it is"
    );
    assert_eq!(commit_at(&catalog, 2, later).await, later + 1, "the same time");
    assert_eq!(
        commit_at(&catalog, 3, later - 500).await,
        later + 2,
        "an earlier one"
    );
    assert_eq!(commit_at(&catalog, 4, i64::MIN).await, later + 3);
    assert_eq!(commit_at(&catalog, 5, later + 9).await, later + 9);
}
