use std::sync::Arc;

use moraine_codec::Record;
use moraine_codec::proto::{GcFileValue, OptionScopeValue};
use moraine_commit::{Catalog, CatalogTransaction, Change, CommitFailure, StageError};
use moraine_keys::{ChangelogKey, DataFileKey, GcFileKey, History, OptionKey, SnapshotKey};

use crate::support::{
    begin_snapshot, commit, data_file, delete_file, ended, file_stats, head, insert, insert_snapshot, lake,
    maintain, remove, replace, table, value,
};

fn scheduled(data_file_id: u64) -> Change {
    let value = GcFileValue {
        data_file_id,
        path: format!("{data_file_id}.parquet"),
        ..GcFileValue::default()
    };
    Change::Insert(Record::GcFile(GcFileKey { data_file_id }, value))
}

/// A table with two data files, the first of which has ended: something to expire.
async fn lake_with_history() -> Arc<Catalog> {
    let (catalog, _) = lake().await;
    let files = vec![
        insert(table(1, 1, "t")),
        insert(data_file(1, 10, 1)),
        insert(data_file(1, 11, 1)),
        insert(file_stats(1, 10, 1)),
    ];
    commit(&catalog, "", files).await;
    let key = DataFileKey {
        table_id: 1,
        data_file_id: 10,
    };
    commit(&catalog, "", vec![replace(&key, ended(data_file(1, 10, 1), 2))]).await;
    catalog
}

fn ended_file() -> History<DataFileKey> {
    History {
        entity: DataFileKey {
            table_id: 1,
            data_file_id: 10,
        },
        end_snapshot: 2,
    }
}

async fn staged(catalog: &Arc<Catalog>, changes: Vec<Change>) -> CatalogTransaction {
    let mut transaction = catalog.begin().await.unwrap();
    transaction.stage(changes).await.unwrap();
    transaction
}

fn expire_first_snapshots() -> Vec<Change> {
    vec![
        remove(&SnapshotKey { snapshot_id: 0 }),
        remove(&SnapshotKey { snapshot_id: 1 }),
        remove(&ended_file()),
        remove(&file_stats(1, 10, 1).0),
        scheduled(10),
    ]
}

#[tokio::test]
async fn a_batch_without_a_snapshot_keeps_the_snapshot_id_and_moves_the_batch_count() {
    let catalog = lake_with_history().await;
    let committed = maintain(&catalog, expire_first_snapshots()).await;
    assert_eq!(committed.snapshot_id, None);
    assert_eq!(
        (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
        (2, 3)
    );
    assert_eq!(value(&catalog, &SnapshotKey { snapshot_id: 1 }).await, None);
    assert_eq!(value(&catalog, &ended_file()).await, None);
    assert_eq!(crate::support::keys::<ChangelogKey>(&catalog).await.len(), 2);
}

#[tokio::test]
async fn a_snapshot_and_maintenance_that_write_other_records_both_land_in_either_order() {
    for maintenance_first in [true, false] {
        let catalog = lake_with_history().await;
        let expiry = staged(&catalog, expire_first_snapshots()).await;
        let mut snapshot = begin_snapshot(&catalog, "inserted_into_table:1").await;
        snapshot.stage(vec![insert(data_file(1, 12, 3))]).await.unwrap();
        if maintenance_first {
            expiry.commit().await.unwrap();
            snapshot.commit().await.unwrap();
        } else {
            snapshot.commit().await.unwrap();
            expiry.commit().await.unwrap();
        }
        assert_eq!(
            (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
            (3, 4)
        );
        assert_eq!(value(&catalog, &ended_file()).await, None);
        assert!(
            value(
                &catalog,
                &DataFileKey {
                    table_id: 1,
                    data_file_id: 12
                }
            )
            .await
            .is_some()
        );
    }
}

#[tokio::test]
async fn a_snapshot_that_writes_what_maintenance_wrote_is_refused_at_commit() {
    let catalog = lake_with_history().await;
    let mut merge = begin_snapshot(&catalog, "merge_adjacent:1").await;
    merge
        .stage(vec![remove(&ended_file()), scheduled(10)])
        .await
        .unwrap();
    maintain(&catalog, expire_first_snapshots()).await;
    let error = merge.commit().await.unwrap_err();
    assert!(matches!(error, CommitFailure::Conflict { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("could not serialize access due to concurrent update"),
        "{error}"
    );
    assert_eq!(
        (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
        (2, 3)
    );
}

#[tokio::test]
async fn two_maintenance_batches_meet_only_in_the_records_both_write() {
    let catalog = lake_with_history().await;
    let option = |value: &str| {
        let options = [("target_file_size".to_owned(), value.to_owned())].into();
        let key = OptionKey {
            scope_kind: 2,
            scope_id: 1,
        };
        insert((key, OptionScopeValue { options }))
    };
    let first = staged(&catalog, vec![option("1")]).await;
    let second = staged(&catalog, vec![option("2")]).await;
    let apart = staged(&catalog, expire_first_snapshots()).await;
    first.commit().await.unwrap();
    apart.commit().await.unwrap();
    assert!(matches!(
        second.commit().await,
        Err(CommitFailure::Conflict { .. })
    ));
    let options = value(
        &catalog,
        &OptionKey {
            scope_kind: 2,
            scope_id: 1,
        },
    )
    .await
    .unwrap()
    .options;
    assert_eq!(options["target_file_size"], "1");
    assert_eq!(head(&catalog).await.batch_seq, 4);
}

#[tokio::test]
async fn maintenance_is_compared_with_later_snapshots_too() {
    let catalog = lake_with_history().await;
    let removed = remove(&DataFileKey {
        table_id: 1,
        data_file_id: 11,
    });
    let cleanup = staged(&catalog, vec![removed]).await;
    let key = DataFileKey {
        table_id: 1,
        data_file_id: 11,
    };
    commit(&catalog, "", vec![replace(&key, ended(data_file(1, 11, 1), 3))]).await;
    assert!(matches!(
        cleanup.commit().await,
        Err(CommitFailure::Conflict { .. })
    ));
}

#[tokio::test]
async fn a_snapshot_built_before_maintenance_still_loses_to_a_snapshot() {
    let catalog = lake_with_history().await;
    let mut slow = catalog.begin().await.unwrap();
    maintain(&catalog, expire_first_snapshots()).await;
    // Only the batch count has moved, so the race is still open.
    insert_snapshot(&mut slow, 3, "").await.unwrap();
    slow.commit().await.unwrap();
}

#[tokio::test]
async fn the_newest_snapshot_stays() {
    let catalog = lake_with_history().await;
    let mut transaction = catalog.begin().await.unwrap();
    let refused = transaction
        .stage(vec![remove(&SnapshotKey { snapshot_id: 2 })])
        .await;
    assert!(
        matches!(refused, Err(StageError::Constraint { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_changes_of_a_snapshot_go_only_with_the_snapshot() {
    let catalog = lake_with_history().await;
    let mut alone = catalog.begin().await.unwrap();
    alone.remove_snapshot_changes(1);
    assert!(matches!(
        alone.commit().await,
        Err(CommitFailure::Constraint { .. })
    ));

    // In either order.
    let mut together = catalog.begin().await.unwrap();
    together.remove_snapshot_changes(1);
    together
        .stage(vec![remove(&SnapshotKey { snapshot_id: 1 })])
        .await
        .unwrap();
    together
        .stage(vec![remove(&SnapshotKey { snapshot_id: 0 })])
        .await
        .unwrap();
    together.remove_snapshot_changes(0);
    assert_eq!(together.removed_snapshot_changes().len(), 2);
    together.commit().await.unwrap();
}

#[tokio::test]
async fn versioned_rows_need_a_snapshot() {
    let catalog = lake_with_history().await;
    for refused in [
        insert(data_file(1, 12, 3)),
        insert(delete_file(1, 13, 11, 3)),
        insert(table(9, 3, "x")),
        replace(
            &DataFileKey {
                table_id: 1,
                data_file_id: 11,
            },
            ended(data_file(1, 11, 1), 3),
        ),
    ] {
        let transaction = staged(&catalog, vec![refused.clone()]).await;
        let outcome = transaction.commit().await;
        assert!(
            matches!(outcome, Err(CommitFailure::Constraint { .. })),
            "{refused:?}: {outcome:?}"
        );
    }
    // A correction in place is no new version.
    let mut corrected = data_file(1, 11, 1);
    corrected.1.path = "moved.parquet".to_owned();
    maintain(
        &catalog,
        vec![replace(
            &DataFileKey {
                table_id: 1,
                data_file_id: 11,
            },
            corrected,
        )],
    )
    .await;
}
