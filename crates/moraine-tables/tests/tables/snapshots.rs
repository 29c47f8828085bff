//! `ducklake_snapshot` and `ducklake_snapshot_changes` are two relations on one record.

use moraine_commit::StageError;
use moraine_tables::{Relation, TableError, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, equals, refusal, row, rows, rows_where};

/// 2100-01-01 in microseconds since 1970: later than the lake's first snapshot, so that times stay as they are given.
const LATER: i64 = 4_102_444_800_000_000;

fn snapshot(id: i64) -> Vec<Value> {
    row![id, Value::TimestampTz(LATER + id), 0, 1, 0]
}

#[tokio::test]
async fn the_two_rows_come_one_by_one() {
    let lake = Lake::new().await;
    let mut tx = lake.begin().await;
    insert(&mut tx, Relation::Snapshot, vec![snapshot(1)])
        .await
        .unwrap();
    assert_eq!(
        rows_where(&tx, Relation::Snapshot, equals(0, 1)).await,
        vec![snapshot(1)]
    );
    assert!(
        rows_where(&tx, Relation::SnapshotChanges, equals(0, 1))
            .await
            .is_empty()
    );
    let changes = row![1, "created_table:\"main\".\"t\"", "me", Null, "x"];
    insert(&mut tx, Relation::SnapshotChanges, vec![changes.clone()])
        .await
        .unwrap();
    assert_eq!(
        rows_where(&tx, Relation::SnapshotChanges, equals(0, 1)).await,
        vec![changes.clone()]
    );
    tx.commit().await.unwrap();
    assert_eq!(
        rows_where(&lake.begin().await, Relation::Snapshot, equals(0, 1)).await,
        vec![snapshot(1)]
    );
    assert_eq!(
        rows_where(&lake.begin().await, Relation::SnapshotChanges, equals(0, 1)).await,
        vec![changes]
    );
}

#[tokio::test]
async fn changes_may_come_first() {
    let lake = Lake::new().await;
    let mut tx = lake.begin().await;
    insert(
        &mut tx,
        Relation::SnapshotChanges,
        vec![row![1, Null, Null, "m", Null]],
    )
    .await
    .unwrap();
    assert_eq!(rows(&tx, Relation::SnapshotChanges).await.len(), 2);
    assert_eq!(rows(&tx, Relation::Snapshot).await.len(), 1);
    insert(&mut tx, Relation::Snapshot, vec![snapshot(1)])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let read = rows_where(&lake.begin().await, Relation::SnapshotChanges, equals(0, 1)).await;
    assert_eq!(read, vec![row![1, Null, Null, "m", Null]]);
}

#[tokio::test]
async fn a_snapshot_that_is_there_already_is_a_lost_race() {
    let lake = Lake::new().await;
    let mut late = lake.begin().await;
    lake.write([]).await;
    let outcome = insert(&mut late, Relation::Snapshot, vec![snapshot(1)])
        .await
        .unwrap_err();
    assert!(
        matches!(outcome, TableError::Stage(StageError::LostRace { .. })),
        "{outcome}"
    );
    assert!(outcome.to_string().contains("unique"), "{outcome}");
}

#[tokio::test]
async fn expiry_deletes_both_rows_in_either_order() {
    for order in [
        [Relation::Snapshot, Relation::SnapshotChanges],
        [Relation::SnapshotChanges, Relation::Snapshot],
    ] {
        let lake = Lake::new().await;
        lake.write([]).await;
        lake.write([]).await;
        let mut tx = lake.begin().await;
        for relation in order {
            let old = addresses(&tx, relation, equals(0, 1)).await;
            delete(&mut tx, relation, old).await.unwrap();
            assert!(rows_where(&tx, relation, equals(0, 1)).await.is_empty());
        }
        tx.commit().await.unwrap();
        for relation in order {
            assert_eq!(lake.rows(relation).await.len(), 2, "{relation}");
        }
    }
}

#[tokio::test]
async fn snapshots_are_not_changed_and_the_newest_is_not_deleted() {
    let lake = Lake::new().await;
    lake.write([]).await;
    let mut tx = lake.begin().await;
    let found = addresses(&tx, Relation::Snapshot, equals(0, 1)).await;
    let (variant, text) = refusal(delete(&mut tx, Relation::Snapshot, found.clone()).await);
    assert_eq!(variant, "Stage", "{text}");
    let edit = vec![(found[0].clone(), vec![(2, Value::Int64(9))])];
    assert_eq!(
        refusal(update(&mut tx, Relation::Snapshot, edit).await).0,
        "Stage"
    );
    let found = addresses(&tx, Relation::SnapshotChanges, equals(0, 1)).await;
    let edit = vec![(found[0].clone(), vec![(1, Value::text("x"))])];
    assert_eq!(
        refusal(update(&mut tx, Relation::SnapshotChanges, edit).await).0,
        "Unsupported"
    );
}

/// Inserts and commits a row of `ducklake_snapshot_changes` for a snapshot that does not exist.
async fn changes_alone(lake: &Lake, snapshot_id: i64) -> Vec<Value> {
    let changes = row![snapshot_id, "orphan", "me", Null, "x"];
    let mut tx = lake.begin().await;
    insert(&mut tx, Relation::SnapshotChanges, vec![changes.clone()])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    changes
}

#[tokio::test]
async fn changes_without_a_snapshot_are_a_row_and_no_snapshot() {
    let lake = Lake::new().await;
    let changes = changes_alone(&lake, 2).await;
    assert_eq!(lake.rows(Relation::SnapshotChanges).await.last(), Some(&changes));
    assert_eq!(lake.rows(Relation::Snapshot).await.len(), 1);
    lake.write([]).await;
    assert_eq!(lake.rows(Relation::Snapshot).await.len(), 2);

    let mut tx = lake.begin().await;
    let found = addresses(&tx, Relation::SnapshotChanges, equals(0, 2)).await;
    assert_eq!(
        delete(&mut tx, Relation::SnapshotChanges, found).await.unwrap(),
        1
    );
    tx.commit().await.unwrap();
    assert_eq!(lake.rows(Relation::SnapshotChanges).await.len(), 2);
    changes_alone(&lake, 3).await;
}

#[tokio::test]
async fn a_second_row_of_changes_for_a_snapshot_is_a_duplicate() {
    let lake = Lake::new().await;
    lake.write([]).await;
    changes_alone(&lake, 2).await;
    for taken in [0, 1, 2] {
        let mut tx = lake.begin().await;
        let rows = vec![row![taken, "", Null, Null, Null]];
        let outcome = refusal(insert(&mut tx, Relation::SnapshotChanges, rows).await);
        assert_eq!(outcome.0, "Duplicate", "{taken}: {}", outcome.1);
    }
    let mut tx = lake.begin().await;
    insert(&mut tx, Relation::Snapshot, vec![snapshot(2)])
        .await
        .unwrap();
    let rows = vec![row![2, "created_schema:\"s\"", Null, Null, Null]];
    let outcome = refusal(insert(&mut tx, Relation::SnapshotChanges, rows).await);
    assert_eq!(outcome.0, "Duplicate", "{}", outcome.1);
    drop(tx);
    assert_eq!(lake.rows(Relation::Snapshot).await.len(), 2);
}

#[tokio::test]
async fn a_snapshot_takes_the_changes_that_came_before_it() {
    let lake = Lake::new().await;
    let changes = changes_alone(&lake, 1).await;
    let mut tx = lake.begin().await;
    insert(&mut tx, Relation::Snapshot, vec![snapshot(1)])
        .await
        .unwrap();
    assert_eq!(
        rows_where(&tx, Relation::SnapshotChanges, equals(0, 1)).await,
        vec![changes.clone()]
    );
    tx.commit().await.unwrap();
    let ids = lake.rows(Relation::Snapshot).await;
    assert_eq!(ids.last().unwrap()[0], Value::Int64(1));
    assert_eq!(lake.rows(Relation::SnapshotChanges).await.last(), Some(&changes));
}
