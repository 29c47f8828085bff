//! Data files, delete files, mappings, statistics and compactions.

use moraine_commit::lake::Transform;
use moraine_commit::lake::{ColumnStats, DataFile, DeleteFile, MappedColumn, Snapshot};
use moraine_commit::verbs::{CommitError, NewDataFile, NewDeleteFile, PartitionField, VerbError};

use super::{file, lake_with_table};

async fn data_files(snapshot: &Snapshot) -> Vec<DataFile> {
    let mut scan = snapshot.data_files(1).await.unwrap();
    let mut files = Vec::new();
    while let Some(file) = scan.next().await.unwrap() {
        files.push(file);
    }
    files
}

async fn delete_files(snapshot: &Snapshot) -> Vec<DeleteFile> {
    let mut scan = snapshot.delete_files(1).await.unwrap();
    let mut files = Vec::new();
    while let Some(file) = scan.next().await.unwrap() {
        files.push(file);
    }
    files
}

#[tokio::test]
async fn files_get_ids_and_row_ids_in_order_and_statistics_grow() {
    let (catalog, _store) = lake_with_table().await;
    for (first, last) in [(10, 19), (5, 8)] {
        let files = vec![
            file("a.parquet", 2, (first, first)),
            file("b.parquet", 3, (last, last)),
        ];
        let files = &files;
        let added = catalog.commit(|tx| async move { tx.add_data_files(1, files.clone()).await });
        added.await.unwrap();
    }
    let newest = catalog.snapshot().await.unwrap();
    let files = data_files(&newest).await;
    let ids: Vec<u64> = files.iter().map(|file| file.data_file_id).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    let starts: Vec<Option<u64>> = files.iter().map(|file| file.row_id_start).collect();
    assert_eq!(starts, [Some(0), Some(2), Some(5), Some(7)]);
    let stats = newest.table_stats(1).await.unwrap().unwrap();
    assert_eq!(
        (stats.record_count, stats.next_row_id, stats.file_size_bytes),
        (10, 10, 1_000)
    );
    let columns = newest.table_column_stats(1).await.unwrap();
    let (column_id, ids) = &columns[0];
    assert_eq!((*column_id, ids.contains_null), (1, Some(false)));
    let bounds = (ids.min_value.as_deref(), ids.max_value.as_deref());
    assert_eq!(bounds, (Some("5"), Some("19")), "bounds compare as numbers");
    let of_file = newest.column_stats(1, 2).await.unwrap();
    assert_eq!(of_file[0].1.max_value.as_deref(), Some("5"));
    assert_eq!(newest.info().next_file_id, 4);
    assert_eq!(data_files(&catalog.snapshot_at(2).await.unwrap()).await.len(), 2);
}

#[tokio::test]
async fn bounds_that_are_not_known_are_lost_and_nulls_change_none() {
    let (catalog, _store) = lake_with_table().await;
    let add = async |stats: ColumnStats| {
        let file = &NewDataFile::new("f.parquet", 1, 1).with_stats(vec![(1, stats)]);
        let added = catalog.commit(|tx| async move { tx.add_data_files(1, vec![file.clone()]).await });
        added.await.unwrap();
        let newest = catalog.snapshot().await.unwrap();
        newest.table_column_stats(1).await.unwrap()[0].1.clone()
    };
    let known = ColumnStats {
        value_count: Some(1),
        null_count: Some(0),
        min_value: Some("1".into()),
        max_value: Some("1".into()),
        ..ColumnStats::default()
    };
    add(known.clone()).await;
    let nulls = ColumnStats {
        value_count: Some(0),
        null_count: Some(1),
        ..ColumnStats::default()
    };
    let after_nulls = add(nulls).await;
    assert_eq!(after_nulls.min_value.as_deref(), Some("1"));
    assert_eq!(after_nulls.contains_null, Some(true));
    let after_unknown = add(ColumnStats::default()).await;
    assert_eq!((after_unknown.min_value, after_unknown.max_value), (None, None));
}

#[tokio::test]
async fn a_delete_file_takes_the_place_of_the_one_it_names() {
    let (catalog, _store) = lake_with_table().await;
    let added =
        catalog.commit(|tx| async move { tx.add_data_files(1, vec![file("f.parquet", 10, (1, 10))]).await });
    let data_file = added.await.unwrap().value[0];
    let delete = async |path: &str, count, replaces, begin_snapshot| {
        let file = &NewDeleteFile {
            replaces,
            begin_snapshot,
            ..NewDeleteFile::new(data_file, path, count, 10)
        };
        let added = catalog.commit(|tx| async move { tx.add_delete_files(1, vec![file.clone()]).await });
        added.await.map(|commit| commit.value[0])
    };
    let first = delete("d1.parquet", 1, None, None).await.unwrap();
    let unseen = delete("d2.parquet", 2, None, None).await;
    assert!(
        matches!(unseen, Err(CommitError::Conflicted { .. })),
        "{unseen:?}"
    );
    let second = delete("d2.parquet", 2, Some(first), None).await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(delete_files(&newest).await[0].delete_file_id, second);
    assert!(
        newest.scheduled_files().await.unwrap().is_empty(),
        "earlier snapshots need the first"
    );
    let earlier = catalog.snapshot_at(3).await.unwrap();
    assert_eq!(delete_files(&earlier).await[0].delete_file_id, first);
    let third = delete("d3.parquet", 3, Some(second), Some(3)).await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(delete_files(&newest).await[0].delete_file_id, third);
    let scheduled = newest.scheduled_files().await.unwrap();
    assert_eq!(
        (scheduled[0].file_id, scheduled[0].path.as_str()),
        (second, "main/t/d2.parquet")
    );
    let too_many = delete("d4.parquet", 11, Some(third), None).await;
    assert!(matches!(
        too_many,
        Err(CommitError::Refused(VerbError::Refused { .. }))
    ));
    let forgotten = catalog.commit(|tx| async move { tx.forget_scheduled_files(&[second]).await });
    assert_eq!(forgotten.await.unwrap().snapshot_id, None);
    assert!(
        catalog
            .snapshot()
            .await
            .unwrap()
            .scheduled_files()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn files_say_their_place_in_a_partitioning() {
    let (catalog, _store) = lake_with_table().await;
    let added = catalog.commit(|tx| async move {
        tx.set_partition(
            1,
            vec![
                PartitionField::new("name", Transform::Identity),
                PartitionField::new("id", Transform::Bucket(4)),
            ],
        )
        .await?;
        let placed = NewDataFile {
            partition_values: vec![None, Some("3".into())],
            ..file("f.parquet", 1, (1, 1))
        };
        tx.add_data_files(1, vec![placed]).await
    });
    added.await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    let partition = newest.partition(1).await.unwrap().unwrap();
    let file = data_files(&newest).await.remove(0);
    assert_eq!(file.partition_id, Some(partition.partition_id));
    assert_eq!(file.partition_values, [None, Some("3".to_owned())]);
}

#[tokio::test]
async fn mapped_files_name_their_mapping() {
    let (catalog, _store) = lake_with_table().await;
    let column = |source_name: &str, column_id| MappedColumn {
        source_name: source_name.into(),
        column_id,
        ..MappedColumn::default()
    };
    let columns = vec![column("ID", 1), column("title", 2)];
    let given = &columns;
    let added = catalog.commit(|tx| async move {
        let mapping = tx.add_mapping(1, given.clone()).await?;
        let mapped = NewDataFile {
            mapping_id: Some(mapping),
            path_is_relative: false,
            ..file("s3://elsewhere/f.parquet", 1, (1, 1))
        };
        tx.add_data_files(1, vec![mapped]).await?;
        Ok(mapping)
    });
    let mapping = added.await.unwrap().value;
    let newest = catalog.snapshot().await.unwrap();
    let found = newest.mappings(1).await.unwrap().remove(0);
    assert_eq!((found.mapping_id, found.columns), (mapping, columns));
    assert_eq!(data_files(&newest).await[0].mapping_id, Some(mapping));
}

#[tokio::test]
async fn merged_files_are_seen_by_all_who_saw_one_of_them() {
    let (catalog, _store) = lake_with_table().await;
    for path in ["a.parquet", "b.parquet"] {
        let added =
            catalog.commit(|tx| async move { tx.add_data_files(1, vec![file(path, 2, (1, 2))]).await });
        added.await.unwrap();
    }
    let lost = catalog.commit(|tx| async move {
        tx.merge_adjacent_files(1, &[0, 1], file("ab.parquet", 3, (1, 2)))
            .await
    });
    assert!(lost.await.is_err(), "a row would be lost");
    let merged = catalog.commit(|tx| async move {
        tx.merge_adjacent_files(1, &[0, 1], file("ab.parquet", 4, (1, 2)))
            .await
    });
    let merged = merged.await.unwrap().value;
    for snapshot_id in [2, 3, 4] {
        let files = data_files(&catalog.snapshot_at(snapshot_id).await.unwrap()).await;
        assert_eq!((files.len(), files[0].data_file_id), (1, merged));
        assert_eq!((files[0].begin_snapshot, files[0].partial_max), (2, Some(3)));
    }
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(newest.scheduled_files().await.unwrap().len(), 2);
    assert_eq!(newest.table_stats(1).await.unwrap().unwrap().record_count, 4);
    assert_eq!(newest.info().changes.to_string(), "merge_adjacent:1");
}

#[tokio::test]
async fn rewritten_files_stay_for_earlier_snapshots() {
    let (catalog, _store) = lake_with_table().await;
    let added =
        catalog.commit(|tx| async move { tx.add_data_files(1, vec![file("a.parquet", 4, (1, 9))]).await });
    added.await.unwrap();
    let deleted = catalog.commit(|tx| async move {
        tx.add_delete_files(1, vec![NewDeleteFile::new(0, "d.parquet", 3, 1)])
            .await
    });
    deleted.await.unwrap();
    let rewritten = catalog.commit(|tx| async move {
        tx.rewrite_data_files(1, &[0], Some(file("b.parquet", 1, (4, 4))), Some(2))
            .await
    });
    let rewritten = rewritten.await.unwrap().value;
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(Some(data_files(&newest).await[0].data_file_id), rewritten);
    assert!(delete_files(&newest).await.is_empty());
    assert_eq!(newest.table_stats(1).await.unwrap().unwrap().record_count, 1);
    let bounds = newest.table_column_stats(1).await.unwrap().remove(0).1;
    assert_eq!(
        (bounds.min_value.as_deref(), bounds.max_value.as_deref()),
        (Some("4"), Some("4"))
    );
    let before = catalog.snapshot_at(3).await.unwrap();
    assert_eq!(data_files(&before).await[0].data_file_id, 0);
    assert_eq!(delete_files(&before).await.len(), 1);
}

#[tokio::test]
async fn dropped_files_stay_for_earlier_snapshots() {
    let (catalog, _store) = lake_with_table().await;
    let added = catalog.commit(|tx| async move {
        let ids = tx.add_data_files(1, vec![file("a.parquet", 4, (1, 9))]).await?;
        let own = tx.drop_data_files(1, &ids).await;
        assert!(
            matches!(own, Err(VerbError::Refused { .. })),
            "it need not be added"
        );
        Ok(())
    });
    added.await.unwrap();
    let dropped = catalog.commit(|tx| async move { tx.drop_data_files(1, &[0]).await });
    dropped.await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert!(data_files(&newest).await.is_empty());
    assert_eq!(newest.info().changes.to_string(), "deleted_from_table:1");
    assert_eq!(data_files(&catalog.snapshot_at(2).await.unwrap()).await.len(), 1);
}
