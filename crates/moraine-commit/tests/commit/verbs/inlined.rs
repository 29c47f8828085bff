//! Rows that are kept in the catalog.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use moraine_commit::Catalog;
use moraine_commit::lake::{ColumnType, OptionScope, Snapshot};
use moraine_commit::verbs::{ColumnDefinition, CommitError, FlushedDataFile, LakeTransaction, VerbError};

use super::{file, lake_with_table};

async fn rows(tx: &LakeTransaction, ids: &[i64]) -> Result<RecordBatch, VerbError> {
    let schema = tx.inlined_schema(1).await?;
    let names: StringArray = ids.iter().map(|id| Some(format!("n{id}"))).collect();
    let columns: Vec<arrow_array::ArrayRef> = vec![Arc::new(Int64Array::from(ids.to_vec())), Arc::new(names)];
    Ok(RecordBatch::try_new(schema, columns).unwrap())
}

async fn insert(catalog: &Arc<Catalog>, ids: &[i64]) -> std::ops::Range<u64> {
    let inserted = catalog.commit(|tx| async move {
        let rows = rows(&tx, ids).await?;
        tx.insert_inlined(1, rows).await
    });
    inserted.await.unwrap().value
}

/// (row id, id) of the inlined rows that a snapshot sees.
async fn seen(snapshot: &Snapshot) -> Vec<(u64, i64)> {
    let mut found = Vec::new();
    for table in snapshot.inlined_tables(1).await.unwrap() {
        let mut rows = snapshot.inlined_rows(table).await.unwrap();
        while let Some(batch) = rows.next().await.unwrap() {
            let ids = batch
                .columns
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec();
            found.extend(batch.row_ids.into_iter().zip(ids));
        }
    }
    found.sort_unstable();
    found
}

#[tokio::test]
async fn rows_are_inserted_updated_and_deleted_without_files() {
    let (catalog, _store) = lake_with_table().await;
    assert_eq!(insert(&catalog, &[10, 20, 30]).await, 0..3);
    assert_eq!(insert(&catalog, &[40]).await, 3..4);
    let changed = catalog.commit(|tx| async move {
        let twenty_one = rows(&tx, &[21]).await?;
        tx.update_inlined(1, &[1], twenty_one).await?;
        tx.delete_inlined(1, &[2]).await
    });
    changed.await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(seen(&newest).await, [(0, 10), (1, 21), (3, 40)]);
    assert_eq!(
        newest.info().changes.to_string(),
        "inlined_insert:1,inlined_delete:1"
    );
    let before = catalog.snapshot_at(3).await.unwrap();
    assert_eq!(seen(&before).await, [(0, 10), (1, 20), (2, 30), (3, 40)]);
    let stats = newest.table_stats(1).await.unwrap().unwrap();
    assert_eq!((stats.record_count, stats.next_row_id), (5, 4));
    let bounds = newest.table_column_stats(1).await.unwrap();
    assert_eq!(bounds[0].1.max_value.as_deref(), Some("40"));
    assert_eq!(bounds[1].1.min_value.as_deref(), Some("n10"));
    let again = catalog
        .commit(|tx| async move { tx.delete_inlined(1, &[2]).await })
        .await;
    assert!(matches!(
        again,
        Err(CommitError::Refused(VerbError::Refused { .. }))
    ));
}

#[tokio::test]
async fn rows_that_do_not_fit_are_refused() {
    let (catalog, _store) = lake_with_table().await;
    let checked = catalog.commit(|tx| async move {
        let fitting = rows(&tx, &[1]).await?;
        let narrow = fitting.project(&[0]).unwrap();
        assert!(matches!(
            tx.insert_inlined(1, narrow).await,
            Err(VerbError::Refused { .. })
        ));
        tx.add_column(1, ColumnDefinition::new("shape", ColumnType::Geometry))
            .await?;
        assert!(matches!(
            tx.inlined_schema(1).await,
            Err(VerbError::Refused { .. })
        ));
        tx.drop_column(1, "shape").await?;
        tx.set_not_null(1, "name").await?;
        let columns: Vec<arrow_array::ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![1])),
            Arc::new(StringArray::from(vec![None::<&str>])),
        ];
        let null = RecordBatch::try_new(tx.inlined_schema(1).await?, columns).unwrap();
        assert!(matches!(
            tx.insert_inlined(1, null).await,
            Err(VerbError::Refused { .. })
        ));
        Ok(())
    });
    checked.await.unwrap();
}

#[tokio::test]
async fn rows_of_a_table_that_is_not_inlined_by_itself_get_an_inlined_table() {
    let (catalog, _store) = super::super::support::lake().await;
    let limited = catalog.commit(|tx| async move {
        tx.set_option(OptionScope::Global, "data_inlining_row_limit", "0")
            .await
    });
    limited.await.unwrap();
    super::create_table(&catalog, "t").await;
    let before = catalog.snapshot().await.unwrap();
    assert!(before.inlined_tables(1).await.unwrap().is_empty());
    insert(&catalog, &[1]).await;
    let after = catalog.snapshot().await.unwrap();
    assert_eq!(seen(&after).await, [(0, 1)]);
    assert_eq!(after.info().schema_version, before.info().schema_version + 1);
}

#[tokio::test]
async fn deletions_from_files_are_inlined_too() {
    let (catalog, _store) = lake_with_table().await;
    let added =
        catalog.commit(|tx| async move { tx.add_data_files(1, vec![file("f.parquet", 3, (1, 3))]).await });
    added.await.unwrap();
    let deleted = catalog.commit(|tx| async move {
        let beyond = tx.delete_from_file_inlined(1, 0, &[3]).await;
        assert!(matches!(beyond, Err(VerbError::Refused { .. })));
        tx.delete_from_file_inlined(1, 0, &[0, 2]).await
    });
    deleted.await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(newest.inlined_file_deletes(1).await.unwrap(), [(0, 0), (0, 2)]);
    assert_eq!(newest.info().changes.to_string(), "inlined_delete:1");
    let before = catalog.snapshot_at(2).await.unwrap();
    assert!(before.inlined_file_deletes(1).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_flush_registers_exactly_the_rows_that_go() {
    let (catalog, _store) = lake_with_table().await;
    insert(&catalog, &[1, 2]).await;
    insert(&catalog, &[3]).await;
    let flush = async |row_ids: Vec<u64>| {
        let row_ids = &row_ids;
        let flushed = catalog.commit(|tx| async move {
            let inlined = tx.inlined_tables(1).await?.remove(0);
            let flushed = FlushedDataFile {
                file: file("flushed.parquet", row_ids.len() as u64, (1, 3)),
                row_id_start: 0,
                begin_snapshot: 2,
                partial_max: 3,
                row_ids: row_ids.clone(),
                delete_file: None,
            };
            tx.flush_inlined(inlined, 3, vec![flushed]).await
        });
        flushed.await
    };
    assert!(flush(vec![0, 1]).await.is_err(), "a row would be lost");
    assert_eq!(seen(&catalog.snapshot().await.unwrap()).await.len(), 3);
    flush(vec![2, 0, 1]).await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert!(seen(&newest).await.is_empty());
    let flushed = newest.data_files(1).await.unwrap().next().await.unwrap().unwrap();
    assert_eq!((flushed.begin_snapshot, flushed.partial_max), (2, Some(3)));
    assert_eq!(
        newest.table_stats(1).await.unwrap().unwrap().record_count,
        3,
        "nothing is counted twice"
    );
    assert_eq!(newest.info().changes.to_string(), "inline_flush:1");
}
