use std::sync::Arc;

use moraine_codec::Record;
use moraine_codec::proto::{
    HeadValue, MacroImplementation, MacroParameter, MacroValue, MappingValue, NameMapping, TableStatsValue,
};
use moraine_commit::{Catalog, CatalogOptions, CommitFailure, StageError, views};
use moraine_keys::{
    DataFileKey, HeadKey, History, Kind, MacroKey, MappingKey, NameKey, TableColumnStatsKey, TableKey,
    TableStatsKey,
};
use moraine_store::{MemoryStore, OpenOptions, ReadExt};

use crate::support::{
    begin_snapshot, changes, column, commit, data_file, ended, file_stats, head, insert, insert_snapshot,
    lake, maintain, remove, replace, snapshot, table, value,
};

#[tokio::test]
async fn a_transaction_sees_its_own_changes_and_nobody_elses() {
    let (catalog, _) = lake().await;
    let reader = catalog.begin().await.unwrap();
    let mut writer = begin_snapshot(&catalog, "").await;
    writer
        .stage(vec![insert(table(1, 1, "t")), insert(column(1, 1, 1, "a"))])
        .await
        .unwrap();
    assert_eq!(views::tables_at(writer.read(), 1).await.unwrap().len(), 1);
    assert_eq!(views::columns_at(writer.read(), 1, 1).await.unwrap().len(), 1);
    assert_eq!(writer.newest_snapshot_id(), Some(1));
    writer.commit().await.unwrap();
    assert_eq!(views::tables_at(reader.read(), 1).await.unwrap().len(), 0);
    assert_eq!(reader.newest_snapshot_id(), Some(0));
}

#[tokio::test]
async fn an_id_is_taken_while_its_record_lives() {
    let (catalog, _) = lake().await;
    commit(
        &catalog,
        "",
        vec![insert(table(1, 1, "t")), insert(data_file(1, 10, 1))],
    )
    .await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let many: Vec<_> = (5..60).map(|id| insert(data_file(1, id, 2))).collect();
    for refused in [
        vec![insert(table(1, 2, "u"))],
        vec![insert(data_file(1, 10, 2))],
        many,
    ] {
        let error = transaction.stage(refused).await.unwrap_err();
        assert!(matches!(error, StageError::Duplicate { .. }), "{error:?}");
    }
    // Taken in this transaction as well; free once it has ended.
    transaction
        .stage(vec![insert(data_file(1, 11, 2))])
        .await
        .unwrap();
    assert!(
        transaction
            .stage(vec![insert(data_file(1, 11, 2))])
            .await
            .is_err()
    );
    let key = DataFileKey {
        table_id: 1,
        data_file_id: 10,
    };
    let again = vec![
        replace(&key, ended(data_file(1, 10, 1), 2)),
        insert(data_file(1, 10, 2)),
    ];
    transaction.stage(again).await.unwrap();
    transaction.commit().await.unwrap();
    let reader = catalog.begin().await.unwrap();
    let files = views::data_files_at(reader.read(), 2, 1).await.unwrap();
    assert_eq!(
        files.iter().map(|(key, _)| key.data_file_id).collect::<Vec<_>>(),
        [10, 11]
    );
}

#[tokio::test]
async fn new_ids_between_old_ones_are_found_free() {
    let (catalog, _) = lake().await;
    let even = (0..200)
        .map(|id| insert(data_file(1, id * 2, 1)))
        .chain([insert(table(1, 1, "t"))])
        .collect();
    commit(&catalog, "", even).await;
    let odd = [1, 3, 199, 397].map(|id| insert(data_file(1, id, 2))).to_vec();
    commit(&catalog, "", odd).await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let one_taken = [401, 403, 396, 405]
        .map(|id| insert(data_file(1, id, 3)))
        .to_vec();
    assert!(matches!(
        transaction.stage(one_taken).await,
        Err(StageError::Duplicate { .. })
    ));
}

#[tokio::test]
async fn a_call_stages_all_of_its_changes_or_none() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    let half = vec![
        insert(table(2, 1, "u")),
        remove(&TableKey { table_id: 1 }),
        remove(&TableKey { table_id: 9 }),
    ];
    let error = transaction.stage(half).await.unwrap_err();
    assert!(matches!(error, StageError::Missing { .. }), "{error:?}");
    let tables = views::tables_at(transaction.read(), 1).await.unwrap();
    assert_eq!(
        tables.iter().map(|(key, _)| key.table_id).collect::<Vec<_>>(),
        [1]
    );
}

#[tokio::test]
async fn what_is_changed_or_removed_must_be_there() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let absent = TableKey { table_id: 5 };
    for refused in [remove(&absent), replace(&absent, ended(table(5, 0, "t"), 1))] {
        assert!(matches!(
            transaction.stage(vec![refused]).await,
            Err(StageError::Missing { .. })
        ));
    }
    // Statistics are cleared by file and table, whether they were ever written or not.
    let stats = vec![
        remove(&file_stats(5, 6, 7).0),
        remove(&TableStatsKey { table_id: 5 }),
        remove(&TableColumnStatsKey {
            table_id: 5,
            column_id: 1,
        }),
    ];
    transaction.stage(stats).await.unwrap();
}

#[tokio::test]
async fn a_row_that_is_inserted_ended_goes_to_history() {
    let (catalog, _) = lake().await;
    commit(&catalog, "", vec![insert(table(1, 1, "t"))]).await;
    commit(&catalog, "", vec![]).await;
    commit(&catalog, "", vec![insert(ended(data_file(1, 10, 1), 3))]).await;
    let reader = catalog.begin().await.unwrap();
    assert_eq!(views::data_files_at(reader.read(), 3, 1).await.unwrap(), []);
    assert_eq!(views::data_files_at(reader.read(), 2, 1).await.unwrap().len(), 1);
    let key = History {
        entity: DataFileKey {
            table_id: 1,
            data_file_id: 10,
        },
        end_snapshot: 3,
    };
    assert!(value(&catalog, &key).await.is_some());
}

#[tokio::test]
async fn a_version_never_takes_the_place_of_another() {
    let (catalog, _) = lake().await;
    let key = DataFileKey {
        table_id: 1,
        data_file_id: 10,
    };
    commit(
        &catalog,
        "",
        vec![insert(table(1, 1, "t")), insert(data_file(1, 10, 1))],
    )
    .await;
    let again = vec![
        replace(&key, ended(data_file(1, 10, 1), 2)),
        insert(data_file(1, 10, 2)),
    ];
    commit(&catalog, "", again).await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let before = History {
        entity: key.clone(),
        end_snapshot: 2,
    };
    let clashes = [
        replace(&before, data_file(1, 10, 1)),
        replace(&key, ended(data_file(1, 10, 2), 2)),
    ];
    for clash in clashes {
        let outcome = transaction.stage(vec![clash.clone()]).await;
        assert!(
            matches!(outcome, Err(StageError::Duplicate { .. })),
            "{clash:?}: {outcome:?}"
        );
    }
    // Once the place is free an ended version may come back to life.
    let swap = vec![
        replace(&key, ended(data_file(1, 10, 2), 3)),
        replace(&before, data_file(1, 10, 1)),
    ];
    transaction.stage(swap).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(value(&catalog, &key).await.unwrap().begin_snapshot, 1);
}

#[tokio::test]
async fn records_the_catalog_keeps_for_itself_are_not_staged() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let own = [
        insert((HeadKey {}, HeadValue::default())),
        insert(Record::Name(NameKey::table(0, "t", 1), Default::default())),
        insert(Record::Snapshot(
            moraine_keys::SnapshotKey { snapshot_id: 9 },
            snapshot(9),
        )),
        remove(&HeadKey {}),
        replace(
            &moraine_keys::SnapshotKey { snapshot_id: 0 },
            Record::Snapshot(moraine_keys::SnapshotKey { snapshot_id: 0 }, snapshot(0)),
        ),
    ];
    for refused in own {
        let outcome = transaction.stage(vec![refused.clone()]).await;
        assert!(
            matches!(outcome, Err(StageError::Constraint { .. })),
            "{refused:?}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_record_that_contradicts_its_key_is_not_staged() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    let (_, misplaced) = table(2, 1, "t");
    let outcome = transaction
        .stage(vec![insert((TableKey { table_id: 1 }, misplaced))])
        .await;
    assert!(matches!(outcome, Err(StageError::Encode(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_column_mapping_never_changes_once_it_is_committed() {
    let (catalog, _) = lake().await;
    let key = MappingKey {
        table_id: 1,
        mapping_id: 4,
    };
    let row = |column_id, parent_column| NameMapping {
        column_id,
        parent_column,
        ..NameMapping::default()
    };
    let mapping = |rows: Vec<NameMapping>| MappingValue {
        table_id: 1,
        mapping_id: 4,
        map_type: "map_by_name".to_owned(),
        name_mappings: rows,
        ..MappingValue::default()
    };
    for refused in [
        vec![],
        vec![row(1, None), row(1, None)],
        vec![row(0, Some(0))],
        vec![row(0, Some(1)), row(1, None)],
    ] {
        let mut transaction = begin_snapshot(&catalog, "").await;
        transaction
            .stage(vec![insert((key.clone(), mapping(refused)))])
            .await
            .unwrap();
        assert!(matches!(
            transaction.commit().await,
            Err(CommitFailure::Constraint { .. })
        ));
    }
    let mut transaction = begin_snapshot(&catalog, "").await;
    transaction
        .stage(vec![insert((key.clone(), mapping(vec![])))])
        .await
        .unwrap();
    // Its rows come after it, in the same transaction.
    let complete = mapping(vec![row(0, None), row(1, Some(0))]);
    transaction
        .stage(vec![replace(&key, (key.clone(), complete.clone()))])
        .await
        .unwrap();
    transaction.commit().await.unwrap();

    let mut transaction = begin_snapshot(&catalog, "").await;
    let outcome = transaction
        .stage(vec![replace(&key, (key.clone(), complete))])
        .await;
    assert!(
        matches!(outcome, Err(StageError::Constraint { .. })),
        "{outcome:?}"
    );
    transaction.rollback();
    maintain(&catalog, vec![remove(&key)]).await;
}

#[tokio::test]
async fn a_macro_comes_whole() {
    let (catalog, _) = lake().await;
    let parameter = |column_id| MacroParameter {
        column_id,
        ..MacroParameter::default()
    };
    let implementation = |impl_id, macro_type: &str, parameters: &[u64]| MacroImplementation {
        impl_id,
        macro_type: macro_type.to_owned(),
        parameters: parameters.iter().map(|id| parameter(*id)).collect(),
        ..MacroImplementation::default()
    };
    let cases = [
        (vec![], false),
        (vec![implementation(1, "scalar", &[])], false),
        (
            vec![implementation(0, "scalar", &[]), implementation(0, "scalar", &[])],
            false,
        ),
        (vec![implementation(0, "scalar", &[0, 2])], false),
        (
            vec![implementation(0, "scalar", &[]), implementation(1, "table", &[])],
            false,
        ),
        (
            vec![
                implementation(0, "scalar", &[0, 1]),
                implementation(1, "scalar", &[]),
            ],
            true,
        ),
    ];
    for (implementations, whole) in cases {
        let mut transaction = begin_snapshot(&catalog, "").await;
        let value = MacroValue {
            macro_id: 3,
            begin_snapshot: 1,
            implementations,
            ..MacroValue::default()
        };
        transaction
            .stage(vec![insert((MacroKey { macro_id: 3 }, value.clone()))])
            .await
            .unwrap();
        let outcome = transaction.commit().await;
        assert_eq!(outcome.is_ok(), whole, "{value:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn one_commit_writes_no_more_than_allowed() {
    let options = CatalogOptions {
        batch_bytes_max: 4000,
        ..CatalogOptions::default()
    };
    let catalog = Catalog::with_options(Arc::new(MemoryStore::new()), &options);
    catalog.create(None, false).await.unwrap();
    let mut transaction = begin_snapshot(&catalog, "").await;
    let mut staged = 0;
    let error = loop {
        match transaction
            .stage(vec![insert(table(staged, 1, "some table"))])
            .await
        {
            Ok(()) => staged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StageError::Limit { max: 4000, .. }), "{error:?}");
    assert_eq!(
        views::tables_at(transaction.read(), 1).await.unwrap().len() as u64,
        staged
    );
    // What follows from the records counts too.
    assert!(matches!(
        transaction.commit().await,
        Err(CommitFailure::Abandoned(StageError::Limit { .. }))
    ));
    assert_eq!(
        commit(&catalog, "", vec![insert(table(1, 1, "t"))])
            .await
            .snapshot_id,
        Some(1)
    );
}

#[tokio::test]
async fn both_rows_of_a_snapshot_come_in_either_order_and_belong_together() {
    let (catalog, _) = lake().await;
    let mut only_snapshot = catalog.begin().await.unwrap();
    only_snapshot.insert_snapshot(snapshot(1)).await.unwrap();
    assert!(only_snapshot.inserted_snapshot_changes().is_none());
    assert!(matches!(
        only_snapshot.commit().await,
        Err(CommitFailure::Constraint { .. })
    ));

    let mut apart = catalog.begin().await.unwrap();
    apart.insert_snapshot(snapshot(1)).await.unwrap();
    assert!(matches!(
        apart.set_snapshot_changes(changes(2, "")).await,
        Err(StageError::Constraint { .. })
    ));
    apart
        .set_snapshot_changes(changes(1, "altered_table:4"))
        .await
        .unwrap();
    assert!(apart.set_snapshot_changes(changes(1, "")).await.is_err());
    assert!(matches!(
        insert_snapshot(&mut apart, 2, "").await,
        Err(StageError::Constraint { .. })
    ));
    apart.commit().await.unwrap();

    let mut changes_first = catalog.begin().await.unwrap();
    changes_first
        .set_snapshot_changes(changes(2, "altered_table:5"))
        .await
        .unwrap();
    changes_first.insert_snapshot(snapshot(2)).await.unwrap();
    changes_first.commit().await.unwrap();
    let reader = catalog.begin().await.unwrap();
    let made: Vec<String> = views::snapshots(reader.read())
        .await
        .unwrap()
        .into_iter()
        .map(|snapshot| snapshot.changes_made)
        .collect();
    assert_eq!(made[1..], ["altered_table:4", "altered_table:5"]);
}

#[tokio::test]
async fn a_transaction_that_stages_nothing_writes_nothing() {
    let (catalog, _) = lake().await;
    let before = head(&catalog).await;
    let reader = catalog.begin().await.unwrap();
    let stats = TableStatsValue {
        table_id: 1,
        ..TableStatsValue::default()
    };
    assert_eq!(reader.commit().await.unwrap().snapshot_id, None);
    assert_eq!(head(&catalog).await, before);
    maintain(&catalog, vec![insert((TableStatsKey { table_id: 1 }, stats))]).await;
    assert_eq!(head(&catalog).await.batch_seq, before.batch_seq + 1);
}

#[tokio::test]
async fn commits_on_slatedb_survive_a_reopen() {
    let directory = tempfile::tempdir().unwrap();
    let url: moraine_store::StoreUrl = directory.path().to_str().unwrap().parse().unwrap();
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let catalog = Catalog::open(&url, &options).await.unwrap();
    catalog.create(Some("data/"), false).await.unwrap();
    for id in 1..=5 {
        commit(
            &catalog,
            "",
            vec![insert(table(id, id, "t")), insert(data_file(id, id, id))],
        )
        .await;
    }
    maintain(
        &catalog,
        vec![remove(&moraine_keys::SnapshotKey { snapshot_id: 2 })],
    )
    .await;
    catalog.close().await.unwrap();

    let catalog = Catalog::open(&url, &options).await.unwrap();
    let reader = catalog.begin().await.unwrap();
    assert_eq!(
        (
            reader.head().unwrap().snapshot_id,
            reader.head().unwrap().batch_seq
        ),
        (5, 6)
    );
    assert_eq!(views::tables_at(reader.read(), 3).await.unwrap().len(), 3);
    assert_eq!(views::snapshots(reader.read()).await.unwrap().len(), 5);
    assert_eq!(
        reader
            .read()
            .keys::<NameKey>(NameKey::scan())
            .await
            .unwrap()
            .len(),
        6
    );
    drop(reader);
    catalog.close().await.unwrap();
}
