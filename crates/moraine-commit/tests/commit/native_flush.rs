//! A flush by the library: what it writes, registers and drains, alone and against writers that come in between.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use moraine_codec::proto::{DataFileValue, SchemaVersionValue, SortExpression, SortValue, TableStatsValue};
use moraine_commit::flush::{FlushError, FlushOptions};
use moraine_commit::{Catalog, CatalogTransaction, Change, CommitFailure, InlineChange};
use moraine_inline::{
    DeleteFileFormat, RowMultiset, RowPredicate, flushable_rows, read_delete_file, select, versions,
};
use moraine_keys::{
    ChunkLocatorKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, InlineFileDeleteKey,
    InlineInsertKey, OptionKey, RowTombstoneKey, SchemaVersionKey, SnapshotKey, SortKey, TableStatsKey,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{
    begin_snapshot, column, commit, head, insert, keys, lake, maintain, replace, table, value,
};

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
}

fn options(folder: &tempfile::TempDir, tables: &[&str]) -> FlushOptions {
    FlushOptions {
        tables: tables.iter().map(|name| (*name).to_owned()).collect(),
        data_path: Some(folder.path().display().to_string()),
    }
}

/// Table `t` of schema `main` with an inlined table at schema version 1.
async fn lake_with_table() -> Arc<Catalog> {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "created_table:\"main\".\"t\"").await;
    let mut created = table(1, 1, "t");
    created.1.path = "t/".to_owned();
    created.1.path_is_relative = true;
    let version = SchemaVersionKey {
        table_id: 1,
        begin_snapshot: 1,
    };
    let stats = TableStatsValue {
        table_id: 1,
        file_size_bytes: 7,
        ..TableStatsValue::default()
    };
    let changes = vec![
        insert(created),
        insert(column(1, 1, 1, "n")),
        insert((
            version,
            SchemaVersionValue {
                schema_version: 1,
                ..SchemaVersionValue::default()
            },
        )),
        insert((TableStatsKey { table_id: 1 }, stats)),
    ];
    transaction.stage(changes).await.unwrap();
    for change in [
        InlineChange::CreateTable {
            table_id: 1,
            schema_version: 1,
            schema: columns(),
        },
        InlineChange::Register {
            table_id: 1,
            schema_version: 1,
        },
    ] {
        transaction.inline(change).await.unwrap();
    }
    transaction.commit().await.unwrap();
    catalog
}

async fn put(transaction: &mut CatalogTransaction, row_ids: std::ops::Range<u64>) {
    let values = row_ids.clone().map(|row_id| i64::try_from(row_id).unwrap());
    let batch = RecordBatch::try_new(columns(), vec![Arc::new(Int64Array::from_iter_values(values))]);
    let change = InlineChange::Insert {
        table_id: 1,
        schema_version: 1,
        begin_snapshot: transaction.newest_snapshot_id().unwrap(),
        row_ids: row_ids.collect(),
        batch: batch.unwrap(),
    };
    transaction.inline(change).await.unwrap();
}

async fn put_alone(catalog: &Arc<Catalog>, row_ids: std::ops::Range<u64>) {
    let mut transaction = begin_snapshot(catalog, "inlined_insert:1").await;
    put(&mut transaction, row_ids).await;
    transaction.commit().await.unwrap();
}

async fn end_alone(catalog: &Arc<Catalog>, rows: &[(u64, u64)]) {
    let mut transaction = begin_snapshot(catalog, "inlined_delete:1").await;
    let end_snapshot = transaction.newest_snapshot_id().unwrap();
    let change = InlineChange::EndRows {
        table_id: 1,
        rows: rows.to_vec(),
        end_snapshot,
    };
    transaction.inline(change).await.unwrap();
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn a_flush_moves_every_row_in_one_commit_and_leaves_the_table_bindable() {
    let catalog = lake_with_table().await;
    put_alone(&catalog, 0..20_000).await;
    put_alone(&catalog, 20_000..20_003).await;
    end_alone(&catalog, &[(5, 2), (20_001, 3)]).await;
    let folder = tempfile::tempdir().unwrap();
    let report = catalog.flush(&options(&folder, &["t"])).await.unwrap();
    assert_eq!(report.snapshot_id, Some(5));
    assert_eq!((report.tables[0].rows, report.tables[0].files), (20_003, 1));

    let file_key = keys::<DataFileKey>(&catalog).await.remove(0);
    let file = value(&catalog, &file_key).await.unwrap();
    assert_eq!(
        (
            file.begin_snapshot,
            file.partial_max,
            file.row_id_start,
            file.record_count
        ),
        (2, Some(3), Some(0), 20_003)
    );
    let on_disk = folder.path().join("main/t").join(&file.path);
    assert_eq!(std::fs::metadata(&on_disk).unwrap().len(), file.file_size_bytes);
    let delete_key = keys::<DeleteFileKey>(&catalog).await.remove(0);
    let delete_file = value(&catalog, &delete_key).await.unwrap();
    assert_eq!(
        (
            delete_file.begin_snapshot,
            delete_file.delete_count,
            delete_file.data_file_id
        ),
        (4, 2, file_key.data_file_id)
    );
    let column = FileColumnStatsKey {
        table_id: 1,
        data_file_id: file_key.data_file_id,
        column_id: 1,
    };
    let statistics = value(&catalog, &column).await.unwrap();
    assert_eq!(
        (statistics.min_value.as_deref(), statistics.max_value.as_deref()),
        (Some("0"), Some("20002"))
    );
    assert_eq!((statistics.value_count, statistics.null_count), (20_003, 0));
    let size = value(&catalog, &TableStatsKey { table_id: 1 }).await.unwrap();
    assert_eq!(size.file_size_bytes, 7 + file.file_size_bytes);
    let snapshot = value(&catalog, &SnapshotKey { snapshot_id: 5 }).await.unwrap();
    assert_eq!(
        (snapshot.changes_made.as_str(), snapshot.next_file_id),
        ("inline_flush:1", 1002)
    );

    assert!(keys::<InlineInsertKey>(&catalog).await.is_empty());
    assert!(keys::<ChunkLocatorKey>(&catalog).await.is_empty());
    assert!(keys::<RowTombstoneKey>(&catalog).await.is_empty());
    let reader = catalog.begin().await.unwrap();
    assert_eq!(
        versions(reader.read(), Some(1)).await.unwrap(),
        vec![(1, 1, true)]
    );
    let again = catalog.flush(&options(&folder, &[])).await.unwrap();
    assert_eq!((again.snapshot_id, again.tables.len()), (None, 0));
}

#[tokio::test]
async fn a_table_that_does_not_exist_is_refused_by_name_and_leaves_no_file() {
    let catalog = lake_with_table().await;
    put_alone(&catalog, 0..3).await;
    let folder = tempfile::tempdir().unwrap();
    let error = catalog.flush(&options(&folder, &["t", "u"])).await.unwrap_err();
    assert!(
        matches!(&error, FlushError::NoSuchTable { name } if name == "u"),
        "{error}"
    );
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    assert_eq!(keys::<InlineInsertKey>(&catalog).await.len(), 1);
    assert_eq!(head(&catalog).await.snapshot_id, 2);
}

/// Gives the table this sort order, as snapshot `begin_snapshot`.
async fn sort_by(catalog: &Arc<Catalog>, begin_snapshot: u64, expressions: &[&str]) {
    let expressions = expressions.iter().map(|expression| SortExpression {
        expression: (*expression).to_owned(),
        dialect: "duckdb".to_owned(),
        sort_direction: "DESC".to_owned(),
        null_order: "NULLS_LAST".to_owned(),
        ..SortExpression::default()
    });
    let sort = SortValue {
        sort_id: 9,
        table_id: 1,
        begin_snapshot,
        expressions: expressions.collect(),
        ..SortValue::default()
    };
    let key = SortKey {
        table_id: 1,
        sort_id: 9,
    };
    let sorted: Vec<Change> = vec![insert((key, sort))];
    commit(catalog, "altered_table:1", sorted).await;
}

/// The column `n` of the only data file.
async fn flushed_values(catalog: &Arc<Catalog>, folder: &tempfile::TempDir) -> Vec<i64> {
    let file = keys::<DataFileKey>(catalog).await.remove(0);
    let file = value(catalog, &file).await.unwrap();
    let content = std::fs::read(folder.path().join("main/t").join(&file.path)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(content)).unwrap();
    let batches = reader.build().unwrap().map(Result::unwrap);
    let values = batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
    values.collect()
}

#[tokio::test]
async fn rows_are_sorted_up_to_the_first_expression_and_the_report_names_it() {
    for (order, sorted, unsorted_by) in [
        (&["n", "(n + 1)", "n"][..], true, Some("(n + 1)")),
        (&["lower(n)", "n"][..], false, Some("lower(n)")),
        (&["gone"][..], false, Some("gone")),
        (&["n"][..], true, None),
    ] {
        let catalog = lake_with_table().await;
        put_alone(&catalog, 0..5).await;
        sort_by(&catalog, 3, order).await;
        let folder = tempfile::tempdir().unwrap();
        let report = catalog.flush(&options(&folder, &[])).await.unwrap();
        assert_eq!(report.tables[0].unsorted_by.as_deref(), unsorted_by);
        let expected = if sorted { [4, 3, 2, 1, 0] } else { [0, 1, 2, 3, 4] };
        assert_eq!(flushed_values(&catalog, &folder).await, expected, "{order:?}");
    }
}

#[tokio::test]
async fn deletions_from_files_become_a_delete_file_that_replaces_the_older_one() {
    let catalog = lake_with_table().await;
    let folder = tempfile::tempdir().unwrap();
    put_alone(&catalog, 0..10).await;
    end_alone(&catalog, &[(4, 2)]).await;
    catalog.flush(&options(&folder, &[])).await.unwrap();
    let data_file = keys::<DataFileKey>(&catalog).await.remove(0);
    let first = keys::<DeleteFileKey>(&catalog).await.remove(0);
    for (snapshot_id, position) in [(5, 7), (6, 1)] {
        let mut transaction = begin_snapshot(&catalog, "inlined_delete:1").await;
        let change = InlineChange::InsertFileDeletes {
            table_id: 1,
            rows: vec![(data_file.data_file_id, position, snapshot_id)],
        };
        transaction.inline(change).await.unwrap();
        transaction.commit().await.unwrap();
    }
    let report = catalog.flush(&options(&folder, &["t"])).await.unwrap();
    assert_eq!(
        (
            report.tables[0].rows,
            report.tables[0].files,
            report.tables[0].deletions
        ),
        (0, 0, 2)
    );
    assert!(keys::<InlineFileDeleteKey>(&catalog).await.is_empty());
    let key = keys::<DeleteFileKey>(&catalog).await.remove(0);
    let found = value(&catalog, &key).await.unwrap();
    assert_eq!(
        (
            found.begin_snapshot,
            found.partial_max,
            found.delete_count,
            found.data_file_id
        ),
        (3, Some(6), 3, data_file.data_file_id)
    );
    let content = std::fs::read(folder.path().join("main/t").join(&found.path)).unwrap();
    let positions = read_delete_file(content.into(), DeleteFileFormat::Parquet, None).unwrap();
    assert_eq!(positions, [(1, Some(6)), (4, Some(3)), (7, Some(5))]);
    let scheduled = GcFileKey {
        data_file_id: first.delete_file_id,
    };
    let scheduled = value(&catalog, &scheduled).await.unwrap();
    assert!(scheduled.path_is_relative && scheduled.path.starts_with("main/t/ducklake-"));
    let snapshot = value(&catalog, &SnapshotKey { snapshot_id: 7 }).await.unwrap();
    assert_eq!(snapshot.changes_made, "deleted_from_table:1");
}

#[tokio::test]
async fn a_row_that_was_deleted_twice_went_with_the_first_deletion() {
    let catalog = lake_with_table().await;
    let folder = tempfile::tempdir().unwrap();
    put_alone(&catalog, 0..10).await;
    end_alone(&catalog, &[(4, 2)]).await;
    catalog.flush(&options(&folder, &[])).await.unwrap();
    let data_file = keys::<DataFileKey>(&catalog).await.remove(0);
    let mut transaction = begin_snapshot(&catalog, "inlined_delete:1").await;
    let again = InlineChange::InsertFileDeletes {
        table_id: 1,
        rows: vec![(data_file.data_file_id, 4, 5)],
    };
    transaction.inline(again).await.unwrap();
    transaction.commit().await.unwrap();
    catalog.flush(&options(&folder, &[])).await.unwrap();
    assert!(keys::<InlineFileDeleteKey>(&catalog).await.is_empty());
    let key = keys::<DeleteFileKey>(&catalog).await.remove(0);
    let found = value(&catalog, &key).await.unwrap();
    assert_eq!((found.begin_snapshot, found.delete_count), (3, 1));
    let content = std::fs::read(folder.path().join("main/t").join(&found.path)).unwrap();
    let positions = read_delete_file(content.into(), DeleteFileFormat::Parquet, None).unwrap();
    assert_eq!(positions, [(4, Some(3))]);
}

#[tokio::test]
async fn rows_that_do_not_fit_into_memory_are_sorted_in_runs() {
    let catalog = lake_with_table().await;
    let folder = tempfile::tempdir().unwrap();
    let rows = 400_000;
    for first in (0..rows).step_by(50_000) {
        put_alone(&catalog, first..first + 50_000).await;
    }
    end_alone(&catalog, &[(7, 2), (rows - 1, 9)]).await;
    sort_by(&catalog, 11, &["n"]).await;
    let report = catalog.flush(&options(&folder, &[])).await.unwrap();
    assert_eq!((report.tables[0].rows, report.tables[0].files), (rows, 1));
    let expected = (0..i64::try_from(rows).unwrap()).rev();
    assert!(flushed_values(&catalog, &folder).await.into_iter().eq(expected));
    let key = keys::<DeleteFileKey>(&catalog).await.remove(0);
    let deleted = value(&catalog, &key).await.unwrap();
    let content = std::fs::read(folder.path().join("main/t").join(&deleted.path)).unwrap();
    let positions = read_delete_file(content.into(), DeleteFileFormat::Parquet, None).unwrap();
    assert_eq!(positions, [(0, Some(10)), (rows - 8, Some(10))]);
}

#[tokio::test]
async fn a_flush_that_cannot_write_a_file_takes_the_others_away() {
    let catalog = lake_with_table().await;
    put_alone(&catalog, 0..3).await;
    end_alone(&catalog, &[(1, 2)]).await;
    let mut transaction = begin_snapshot(&catalog, "inlined_delete:1").await;
    let deletion = InlineChange::InsertFileDeletes {
        table_id: 1,
        rows: vec![(999, 0, 4)],
    };
    transaction.inline(deletion).await.unwrap();
    transaction.commit().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The rows are written before it is found that the deletion has no data file.
    let error = catalog.flush(&options(&folder, &[])).await.unwrap_err();
    assert!(error.to_string().contains("999"), "{error}");
    assert_eq!(
        std::fs::read_dir(folder.path().join("main/t")).unwrap().count(),
        0
    );
    assert_eq!(keys::<InlineInsertKey>(&catalog).await.len(), 1);
    assert_eq!(keys::<InlineFileDeleteKey>(&catalog).await.len(), 1);
}

/// A client's flush: it registers a file that holds rows 0 to 2, and removes `removed`.
async fn clients_flush(
    folder: &tempfile::TempDir,
    file: &DataFileValue,
    removed: &[u64],
) -> Result<(), CommitFailure> {
    let catalog = lake_with_table().await;
    let lake = OptionKey {
        scope_kind: 0,
        scope_id: 0,
    };
    let mut options = value(&catalog, &lake).await.unwrap();
    options
        .options
        .insert("data_path".to_owned(), folder.path().display().to_string());
    let changed = replace(&lake, (lake.clone(), options));
    maintain(&catalog, vec![changed]).await;
    for row_id in removed {
        put_alone(&catalog, *row_id..row_id + 1).await;
    }
    let mut transaction = begin_snapshot(&catalog, "inline_flush:1").await;
    let rows = removed.iter().zip(2..).map(|(row_id, begin)| (*row_id, begin));
    let remove = InlineChange::RemoveRows {
        table_id: 1,
        schema_version: 1,
        rows: rows.collect(),
    };
    transaction.inline(remove).await.unwrap();
    let key = DataFileKey {
        table_id: 1,
        data_file_id: file.data_file_id,
    };
    transaction
        .stage(vec![insert((key, file.clone()))])
        .await
        .unwrap();
    transaction.commit().await.map(|_| ())
}

#[tokio::test]
async fn a_clients_flush_whose_file_holds_other_rows_than_it_removes_is_refused() {
    for encrypted in [false, true] {
        clients_flushes(encrypted).await;
    }
}

async fn clients_flushes(encrypted: bool) {
    let catalog = lake_with_table().await;
    let lake = OptionKey {
        scope_kind: 0,
        scope_id: 0,
    };
    let mut of_lake = value(&catalog, &lake).await.unwrap();
    of_lake
        .options
        .insert("encrypted".to_owned(), encrypted.to_string());
    let changed = replace(&lake, (lake.clone(), of_lake));
    maintain(&catalog, vec![changed]).await;
    put_alone(&catalog, 0..3).await;
    let folder = tempfile::tempdir().unwrap();
    catalog.flush(&options(&folder, &[])).await.unwrap();
    let key = keys::<DataFileKey>(&catalog).await.remove(0);
    let file = value(&catalog, &key).await.unwrap();
    assert_eq!(file.encryption_key.is_some(), encrypted);
    let refused = clients_flush(&folder, &file, &[0, 1, 3]).await.unwrap_err();
    assert!(
        matches!(&refused, CommitFailure::Constraint { detail } if detail.contains("row id 2")),
        "{refused}"
    );
    clients_flush(&folder, &file, &[0, 1, 2]).await.unwrap();
    // Out of reach, the number of rows is all that is known.
    let elsewhere = tempfile::tempdir().unwrap();
    clients_flush(&elsewhere, &file, &[0, 1, 3]).await.unwrap();
}

#[tokio::test]
async fn a_drain_of_other_rows_than_were_written_is_refused_and_stages_nothing() {
    let catalog = lake_with_table().await;
    put_alone(&catalog, 0..5).await;
    let mut transaction = begin_snapshot(&catalog, "inline_flush:1").await;
    let before = transaction.read().writes().len();
    for written in [vec![0..=3], vec![0..=4, 2..=2], vec![1..=5]] {
        let mut rows = RowMultiset::default();
        written.iter().for_each(|range| rows.add(range));
        let drain = InlineChange::Drain {
            table_id: 1,
            schema_version: 1,
            until_snapshot: 2,
            written: rows,
        };
        transaction.inline(drain).await.unwrap_err();
        assert_eq!(transaction.read().writes().len(), before);
    }
}

#[tokio::test]
async fn windows_give_every_version_once_in_order() {
    let catalog = lake_with_table().await;
    put_alone(&catalog, 0..40_000).await;
    end_alone(&catalog, &[(17_000, 2)]).await;
    let mut again = begin_snapshot(&catalog, "inlined_insert:1").await;
    put(&mut again, 16_000..18_000).await;
    again.commit().await.unwrap();
    let reader = catalog.begin().await.unwrap();
    let (read, directories) = (reader.read(), reader.directories());
    let mut rows = flushable_rows(read, &directories, 1, 1, 4).await.unwrap();
    let mut found = Vec::new();
    while let Some(window) = rows.next_window(read).await.unwrap() {
        assert!(window.rows.len() <= 20_000, "a window is bounded");
        found.extend(
            window
                .rows
                .iter()
                .map(|row| (row.row_id, row.begin_snapshot, row.end_snapshot)),
        );
    }
    let all = select(read, &directories, 1, 1, &RowPredicate::default())
        .await
        .unwrap();
    let expected: Vec<_> = all
        .rows()
        .iter()
        .map(|row| (row.row_id, row.begin_snapshot, row.end_snapshot))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 42_000);
}
