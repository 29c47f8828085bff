use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_commit::{CatalogTransaction, CommitFailure, InlineChange, StageError};
use moraine_inline::{RowPredicate, file_deletes, select, versions};
use moraine_keys::{DataFileKey, History, Kind, Subspace, TableKey};
use moraine_store::ReadExt;

use crate::support::{
    begin_snapshot, commit, data_file, ended, insert, lake, maintain, remove, replace, snapshot, table, value,
};

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]))
}

fn rows(values: &[i64]) -> RecordBatch {
    RecordBatch::try_new(columns(), vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
}

const TABLE: InlineChange = InlineChange::Register {
    table_id: 1,
    schema_version: 1,
};

fn create() -> InlineChange {
    InlineChange::CreateTable {
        table_id: 1,
        schema_version: 1,
        schema: columns(),
    }
}

fn insert_rows(begin_snapshot: u64, row_ids: &[u64]) -> InlineChange {
    let values: Vec<i64> = row_ids.iter().map(|id| i64::try_from(*id).unwrap()).collect();
    InlineChange::Insert {
        table_id: 1,
        schema_version: 1,
        begin_snapshot,
        row_ids: row_ids.to_vec(),
        batch: rows(&values),
    }
}

async fn visible(transaction: &CatalogTransaction, snapshot_id: u64) -> Vec<u64> {
    let selection = select(
        transaction.read(),
        &transaction.directories(),
        1,
        1,
        &RowPredicate::visible_at(snapshot_id),
    )
    .await
    .unwrap();
    selection.rows().iter().map(|row| row.row_id).collect()
}

async fn lake_with_rows() -> Arc<moraine_commit::Catalog> {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "created_table:\"main\".\"t\",inlined_insert:1").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    // DuckLake registers before it creates.
    transaction.inline(TABLE).await.unwrap();
    assert_eq!(transaction.pending_registrations().len(), 1);
    transaction.inline(create()).await.unwrap();
    assert_eq!(transaction.pending_registrations().len(), 0);
    transaction.inline(insert_rows(1, &[0, 1, 2])).await.unwrap();
    assert_eq!(
        visible(&transaction, 1).await,
        [0, 1, 2],
        "own rows are seen before the commit"
    );
    transaction.commit().await.unwrap();
    catalog
}

#[tokio::test]
async fn rows_inserted_and_ended_are_seen_at_their_snapshots() {
    let catalog = lake_with_rows().await;
    let mut transaction = begin_snapshot(&catalog, "inlined_delete:1").await;
    let end = InlineChange::EndRows {
        table_id: 1,
        rows: vec![(1, 1)],
        end_snapshot: 2,
    };
    transaction.inline(end).await.unwrap();
    transaction.commit().await.unwrap();
    let reader = catalog.begin().await.unwrap();
    assert_eq!(visible(&reader, 1).await, [0, 1, 2]);
    assert_eq!(visible(&reader, 2).await, [0, 2]);
    assert_eq!(versions(reader.read(), None).await.unwrap(), [(1, 1, true)]);
    let recorded = value(&catalog, &moraine_keys::SnapshotKey { snapshot_id: 2 })
        .await
        .unwrap();
    assert!(recorded.deletes_untargeted_files);
}

#[tokio::test]
async fn a_registration_without_its_table_is_refused_at_commit() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    transaction.inline(TABLE).await.unwrap();
    assert!(matches!(
        transaction.inline(TABLE).await,
        Err(StageError::Duplicate { .. })
    ));
    let error = transaction.commit().await.unwrap_err();
    assert!(matches!(error, CommitFailure::Constraint { .. }), "{error:?}");

    // Taken back in time.
    let mut transaction = begin_snapshot(&catalog, "").await;
    transaction.inline(TABLE).await.unwrap();
    transaction
        .inline(InlineChange::Deregister {
            table_id: 1,
            schema_version: 1,
        })
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn a_refused_inline_change_leaves_nothing() {
    let catalog = lake_with_rows().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let before = transaction.read().writes().len();
    let again = transaction.inline(insert_rows(1, &[7, 0])).await;
    assert!(matches!(again, Err(StageError::Inline(_))), "{again:?}");
    assert_eq!(transaction.read().writes().len(), before);
    assert_eq!(visible(&transaction, 2).await, [0, 1, 2]);
}

#[tokio::test]
async fn inlined_deletions_of_a_file_go_with_the_last_version_of_the_file() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "inlined_delete:1").await;
    let files = vec![
        insert(table(1, 1, "t")),
        insert(data_file(1, 10, 1)),
        insert(data_file(1, 11, 1)),
    ];
    transaction.stage(files).await.unwrap();
    transaction
        .inline(InlineChange::CreateFileDeleteTable { table_id: 1 })
        .await
        .unwrap();
    let deletes = vec![(10, 0, 1), (10, 4, 1), (11, 2, 1)];
    transaction
        .inline(InlineChange::InsertFileDeletes {
            table_id: 1,
            rows: deletes,
        })
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    let count = async || {
        let reader = catalog.begin().await.unwrap();
        file_deletes(reader.read(), 1, 0..=u64::MAX).await.unwrap().len()
    };
    assert_eq!(count().await, 3);

    let key = DataFileKey {
        table_id: 1,
        data_file_id: 10,
    };
    commit(&catalog, "", vec![replace(&key, ended(data_file(1, 10, 1), 2))]).await;
    assert_eq!(count().await, 3, "ending a file keeps them");
    maintain(
        &catalog,
        vec![remove(&History {
            entity: key,
            end_snapshot: 2,
        })],
    )
    .await;
    assert_eq!(count().await, 1, "removing its last version does not");
}

#[tokio::test]
async fn inlined_deletions_of_a_file_stay_while_another_version_of_it_is_left() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "inlined_delete:1").await;
    transaction
        .stage(vec![insert(table(1, 1, "t")), insert(data_file(1, 10, 1))])
        .await
        .unwrap();
    let rows = vec![(10, 0, 1)];
    transaction
        .inline(InlineChange::InsertFileDeletes { table_id: 1, rows })
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    let key = DataFileKey {
        table_id: 1,
        data_file_id: 10,
    };
    let again = vec![
        replace(&key, ended(data_file(1, 10, 1), 2)),
        insert(data_file(1, 10, 2)),
    ];
    commit(&catalog, "", again).await;
    let ended_version = History {
        entity: key.clone(),
        end_snapshot: 2,
    };
    for (removed, left) in [(remove(&ended_version), 1), (remove(&key), 0)] {
        maintain(&catalog, vec![removed]).await;
        let reader = catalog.begin().await.unwrap();
        assert_eq!(file_deletes(reader.read(), 1, 10..=10).await.unwrap().len(), left);
    }
}

#[tokio::test]
async fn a_commit_that_ends_inlined_rows_is_untargeted_whatever_it_says() {
    let catalog = lake_with_rows().await;
    let mut transaction = begin_snapshot(&catalog, "deleted_from_table:1").await;
    let files = vec![
        insert(data_file(1, 10, 2)),
        insert(crate::support::delete_file(1, 11, 10, 2)),
    ];
    transaction.stage(files).await.unwrap();
    let end = InlineChange::EndRows {
        table_id: 1,
        rows: vec![(1, 1)],
        end_snapshot: 2,
    };
    transaction.inline(end).await.unwrap();
    transaction.commit().await.unwrap();
    let recorded = value(&catalog, &moraine_keys::SnapshotKey { snapshot_id: 2 })
        .await
        .unwrap();
    assert_eq!(
        (recorded.deleted_data_file_ids, recorded.deletes_untargeted_files),
        (vec![], true)
    );
}

#[tokio::test]
async fn nothing_inlined_is_left_of_a_table_that_is_gone() {
    let catalog = lake_with_rows().await;
    let inlined = async || {
        let view = catalog.store().view().unwrap();
        let mut scan = view.scan(Subspace::Inline.scan()).await.unwrap();
        let mut count = 0;
        while scan.next().await.unwrap().is_some() {
            count += 1;
        }
        count
    };
    let key = TableKey { table_id: 1 };
    let renamed = vec![
        replace(&key, ended(table(1, 1, "t"), 2)),
        insert(table(1, 2, "u")),
    ];
    commit(&catalog, "altered_table:1", renamed).await;
    commit(
        &catalog,
        "dropped_table:1",
        vec![replace(&key, ended(table(1, 2, "u"), 3))],
    )
    .await;
    maintain(
        &catalog,
        vec![remove(&History {
            entity: key.clone(),
            end_snapshot: 2,
        })],
    )
    .await;
    assert!(inlined().await > 0, "an ended version is left");
    maintain(
        &catalog,
        vec![remove(&History {
            entity: key,
            end_snapshot: 3,
        })],
    )
    .await;
    assert_eq!(inlined().await, 0);
    let reader = catalog.begin().await.unwrap();
    let ended = reader
        .read()
        .keys::<History<TableKey>>(History::<TableKey>::scan())
        .await
        .unwrap();
    assert_eq!(ended, []);
}

#[tokio::test]
async fn a_statement_that_fails_half_way_can_be_taken_back() {
    let catalog = lake_with_rows().await;
    let mut transaction = catalog.begin().await.unwrap();
    transaction.inline(insert_rows(2, &[3])).await.unwrap();
    let savepoint = transaction.savepoint();
    transaction.inline(insert_rows(2, &[4])).await.unwrap();
    transaction.insert_snapshot(snapshot(2)).await.unwrap();
    transaction.rollback_to(savepoint);
    assert!(transaction.inserted_snapshot().is_none());
    assert_eq!(visible(&transaction, 2).await, [0, 1, 2, 3]);
}
