//! A flush lands as many rows as it drains, table by table, or it is refused in words that nobody tries again on.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_codec::Nullable;
use moraine_commit::{Catalog, CatalogTransaction, Change, CommitFailure, InlineChange, StageError};
use moraine_keys::{DataFileKey, InlineInsertKey, SnapshotKey};

use crate::support::{
    begin_snapshot, data_file, ended, insert, keys, lake, maintain, remove, replace, table,
};

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
}

async fn put(transaction: &mut CatalogTransaction, begin_snapshot: u64, row_ids: &[u64]) {
    let values = Int64Array::from_iter_values(0..i64::try_from(row_ids.len()).unwrap());
    let change = InlineChange::Insert {
        table_id: 1,
        schema_version: 1,
        begin_snapshot,
        row_ids: row_ids.to_vec(),
        batch: RecordBatch::try_new(columns(), vec![Arc::new(values)]).unwrap(),
    };
    transaction.inline(change).await.unwrap();
}

/// Table 1 with three inlined rows of snapshot 1 and two of snapshot 2.
async fn lake_with_rows() -> Arc<Catalog> {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "inlined_insert:1").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    let create = InlineChange::CreateTable {
        table_id: 1,
        schema_version: 1,
        schema: columns(),
    };
    transaction.inline(create).await.unwrap();
    put(&mut transaction, 1, &[0, 1, 2]).await;
    transaction.commit().await.unwrap();
    let mut transaction = begin_snapshot(&catalog, "inlined_insert:1").await;
    put(&mut transaction, 2, &[3, 4]).await;
    transaction.commit().await.unwrap();
    catalog
}

fn drain(rows: &[(u64, u64)]) -> InlineChange {
    InlineChange::RemoveRows {
        table_id: 1,
        schema_version: 1,
        rows: rows.to_vec(),
    }
}

/// A new file of table 1 with this begin and row count.
fn file(data_file_id: u64, begin_snapshot: u64, record_count: u64) -> Change {
    let (key, mut value) = data_file(1, data_file_id, begin_snapshot);
    value.record_count = record_count;
    insert((key, value))
}

async fn flush(
    catalog: &Arc<Catalog>,
    drained: &[&[(u64, u64)]],
    files: Vec<Change>,
) -> Result<(), CommitFailure> {
    let mut transaction = begin_snapshot(catalog, "inline_flush:1").await;
    for rows in drained {
        transaction.inline(drain(rows)).await.unwrap();
    }
    transaction.stage(files).await.unwrap();
    transaction.commit().await.map(|_| ())
}

fn is_refused(outcome: Result<(), CommitFailure>) -> bool {
    let error = outcome.unwrap_err();
    let text = error.to_string().to_lowercase();
    let retried = ["primary key", "unique", "conflict", "concurrent"];
    matches!(error, CommitFailure::Constraint { .. }) && !retried.iter().any(|word| text.contains(word))
}

const ALL: [(u64, u64); 5] = [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)];

#[tokio::test]
async fn a_flush_that_loses_or_doubles_a_row_is_refused_and_changes_nothing() {
    let catalog = lake_with_rows().await;
    let short = flush(&catalog, &[&ALL], vec![file(10, 1, 4)]).await;
    assert!(is_refused(short), "a row is lost");
    let long = flush(&catalog, &[&ALL[..4]], vec![file(10, 1, 5)]).await;
    assert!(is_refused(long), "a row is doubled");
    assert!(
        is_refused(flush(&catalog, &[&ALL], vec![]).await),
        "no file at all"
    );
    assert!(
        is_refused(flush(&catalog, &[], vec![file(10, 1, 5)]).await),
        "nothing drained"
    );
    assert_eq!(keys::<InlineInsertKey>(&catalog).await.len(), 2);
    assert_eq!(keys::<DataFileKey>(&catalog).await.len(), 0);
}

#[tokio::test]
async fn rows_over_several_files_are_added_up() {
    let catalog = lake_with_rows().await;
    flush(&catalog, &[&ALL], vec![file(10, 1, 3), file(11, 2, 2)])
        .await
        .unwrap();
    assert_eq!(keys::<InlineInsertKey>(&catalog).await.len(), 0);
}

#[tokio::test]
async fn a_drain_named_in_several_calls_and_twice_in_one_counts_once() {
    let catalog = lake_with_rows().await;
    let doubled = [ALL[0], ALL[0], ALL[1]];
    flush(&catalog, &[&doubled, &ALL[2..]], vec![file(10, 1, 5)])
        .await
        .unwrap();
}

#[tokio::test]
async fn files_and_rows_of_the_commits_own_snapshot_are_left_out() {
    let catalog = lake_with_rows().await;
    let mut transaction = begin_snapshot(&catalog, "inline_flush:1,inserted_into_table:1").await;
    put(&mut transaction, 3, &[5]).await;
    transaction.inline(drain(&[(5, 3)])).await.unwrap();
    transaction.inline(drain(&ALL)).await.unwrap();
    transaction
        .stage(vec![file(10, 1, 5), file(11, 3, 100)])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_told_apart_is_not_judged() {
    let catalog = lake_with_rows().await;
    // A file of which the client does not say how many rows it has.
    let (key, mut value) = data_file(1, 9, 1);
    value.set_null(9, true);
    flush(&catalog, &[&ALL[..1]], vec![insert((key, value))])
        .await
        .unwrap();
    // A merge in the same commit: its file begins earlier too.
    let old = DataFileKey {
        table_id: 1,
        data_file_id: 9,
    };
    let merged = vec![remove(&old), file(10, 1, 7)];
    flush(&catalog, &[&ALL[1..2]], merged).await.unwrap();
    let rewritten = DataFileKey {
        table_id: 1,
        data_file_id: 10,
    };
    let rewrite = vec![replace(&rewritten, ended(data_file(1, 10, 1), 5)), file(11, 1, 7)];
    flush(&catalog, &[], rewrite).await.unwrap();
    // Expiry, alone and together with a commit.
    let mut transaction = catalog.begin().await.unwrap();
    transaction.inline(drain(&ALL[2..3])).await.unwrap();
    transaction.commit().await.unwrap();
    let expired = vec![remove(&SnapshotKey { snapshot_id: 1 })];
    flush(&catalog, &[&ALL[3..]], expired).await.unwrap();
    maintain(&catalog, vec![remove(&SnapshotKey { snapshot_id: 2 })]).await;
}

#[tokio::test]
async fn rows_that_an_open_transaction_removes_are_refused_to_others_until_it_ends() {
    let catalog = lake_with_rows().await;
    let mut first = catalog.begin().await.unwrap();
    first.inline(drain(&[(0, 1), (1, 1)])).await.unwrap();
    let mut second = catalog.begin().await.unwrap();
    let refused = second.inline(drain(&[(2, 1), (1, 1)])).await;
    assert!(
        matches!(refused, Err(StageError::Claimed { table_id: 1 })),
        "{refused:?}"
    );
    second.inline(drain(&[(2, 1)])).await.unwrap();
    first.inline(drain(&[(3, 2)])).await.unwrap();
    drop(first);
    second.inline(drain(&[(1, 1), (3, 2)])).await.unwrap();
    second.commit().await.unwrap();
    let mut third = catalog.begin().await.unwrap();
    third.inline(drain(&[(0, 1)])).await.unwrap();
}
