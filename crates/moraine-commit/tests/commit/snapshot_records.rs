use std::sync::Arc;

use moraine_codec::Nullable;
use moraine_codec::proto::{SchemaVersionValue, SnapshotValue};
use moraine_commit::{Catalog, CommitFailure, SnapshotChanges, views};
use moraine_keys::{ChangelogKey, DataFileKey, Kind, SchemaVersionKey, SnapshotKey, TableKey};

use crate::support::{
    begin_snapshot, changes, column, commit, data_file, delete_file, ended, insert, keys, lake, remove,
    replace, snapshot, table, value,
};

async fn recorded(catalog: &Arc<Catalog>, snapshot_id: u64) -> SnapshotValue {
    value(catalog, &SnapshotKey { snapshot_id }).await.unwrap()
}

#[tokio::test]
async fn both_rows_are_kept_verbatim() {
    let (catalog, _) = lake().await;
    let mut transaction = catalog.begin().await.unwrap();
    transaction.insert_snapshot(snapshot(1)).await.unwrap();
    let changes = SnapshotChanges {
        snapshot_id: 1,
        changes_made: Some("Odd_Kind:7,altered_table:1".to_owned()),
        author: Some("a".to_owned()),
        commit_message: None,
        commit_extra_info: Some(String::new()),
    };
    transaction.set_snapshot_changes(changes).await.unwrap();
    transaction.commit().await.unwrap();
    let found = recorded(&catalog, 1).await;
    let expected = SnapshotValue {
        changes_made: "Odd_Kind:7,altered_table:1".to_owned(),
        author: Some("a".to_owned()),
        commit_extra_info: Some(String::new()),
        deletes_untargeted_files: true,
        ..snapshot(1)
    };
    assert_eq!(found, expected);

    let mut transaction = catalog.begin().await.unwrap();
    transaction.insert_snapshot(snapshot(2)).await.unwrap();
    transaction
        .set_snapshot_changes(SnapshotChanges {
            snapshot_id: 2,
            ..Default::default()
        })
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert!(
        recorded(&catalog, 2).await.is_null(7),
        "NULL is not the empty text"
    );
    assert!(!recorded(&catalog, 1).await.is_null(7));
}

#[tokio::test]
async fn changes_without_a_snapshot_are_a_record_that_says_so() {
    let (catalog, _) = lake().await;
    let alone = |snapshot_id| {
        let catalog = Arc::clone(&catalog);
        async move {
            let mut transaction = catalog.begin().await.unwrap();
            transaction
                .set_snapshot_changes(changes(snapshot_id, "orphan"))
                .await
                .unwrap();
            transaction.commit().await
        }
    };
    assert_eq!(alone(1).await.unwrap().snapshot_id, None);
    assert!(recorded(&catalog, 1).await.changes_only);
    for taken in [0, 1] {
        let outcome = alone(taken).await;
        assert!(
            matches!(outcome, Err(CommitFailure::Constraint { .. })),
            "{taken}: {outcome:?}"
        );
    }
    let reader = catalog.begin().await.unwrap();
    assert_eq!(views::snapshots(reader.read()).await.unwrap().len(), 1);
    assert_eq!(views::snapshot(reader.read(), 1).await.unwrap(), None);

    let mut transaction = catalog.begin().await.unwrap();
    transaction.insert_snapshot(snapshot(1)).await.unwrap();
    assert!(transaction.set_snapshot_changes(changes(1, "")).await.is_err());
    transaction.commit().await.unwrap();
    let found = recorded(&catalog, 1).await;
    assert!(!found.changes_only);
    assert_eq!(found.changes_made, "orphan");
}

#[tokio::test]
async fn deletions_are_recorded_by_file_where_they_touch_no_other() {
    let (catalog, _) = lake().await;
    let files = (10..15).map(|id| insert(data_file(1, id, 1)));
    let setup = files.chain([
        insert(table(1, 1, "t")),
        insert(table(2, 1, "u")),
        insert(data_file(2, 30, 1)),
    ]);
    commit(&catalog, "", setup.collect()).await;

    // A delete file for one, another deleted whole.
    let whole = replace(
        &DataFileKey {
            table_id: 1,
            data_file_id: 11,
        },
        ended(data_file(1, 11, 1), 2),
    );
    commit(
        &catalog,
        "deleted_from_table:1",
        vec![insert(delete_file(1, 20, 10, 2)), whole],
    )
    .await;
    let found = recorded(&catalog, 2).await;
    assert_eq!(
        (found.deleted_data_file_ids, found.deletes_untargeted_files),
        (vec![10, 11], false)
    );

    // Rows deleted without a file that names them: from the whole table.
    for (text, id) in [
        ("deleted_from_table:1,inlined_delete:1", 3),
        ("deleted_from_table:1,deleted_from_table:2", 4),
    ] {
        commit(&catalog, text, vec![insert(delete_file(1, 20 + id, 12, id))]).await;
        let found = recorded(&catalog, id).await;
        assert_eq!(
            (found.deleted_data_file_ids, found.deletes_untargeted_files),
            (vec![], true),
            "{text}"
        );
    }

    // Compaction replaces files; it deletes no rows.
    let merged = vec![
        remove(&DataFileKey {
            table_id: 1,
            data_file_id: 13,
        }),
        insert(data_file(1, 40, 1)),
    ];
    commit(&catalog, "merge_adjacent:1", merged).await;
    let found = recorded(&catalog, 5).await;
    assert_eq!(
        (found.deleted_data_file_ids, found.deletes_untargeted_files),
        (vec![], false)
    );
}

#[tokio::test]
async fn tables_whose_schema_changed_come_from_the_rows_of_the_commit() {
    let (catalog, _) = lake().await;
    let version = |table_id, begin_snapshot| {
        let value = SchemaVersionValue {
            schema_version: 77,
            ..SchemaVersionValue::default()
        };
        insert((
            SchemaVersionKey {
                table_id,
                begin_snapshot,
            },
            value,
        ))
    };
    let rows = vec![
        insert(table(1, 1, "t")),
        version(1, 1),
        version(5, 1),
        version(3, 0),
    ];
    commit(&catalog, "", rows).await;
    assert_eq!(recorded(&catalog, 1).await.schema_changed_table_ids, [1, 5]);
    let key = SchemaVersionKey {
        table_id: 1,
        begin_snapshot: 1,
    };
    assert_eq!(value(&catalog, &key).await.unwrap().schema_version, 77);
    assert!(
        begin_snapshot(&catalog, "")
            .await
            .stage(vec![version(1, 1)])
            .await
            .is_err()
    );
}

#[tokio::test]
async fn the_changelog_names_the_current_keys_of_the_commit() {
    let (catalog, _) = lake().await;
    let rows = vec![insert(column(1, 1, 1, "a")), insert(table(1, 1, "t"))];
    commit(&catalog, "", rows).await;
    let (table_key, column_key) = (TableKey { table_id: 1 }, column(1, 1, 1, "a").0);
    let changelog = value(&catalog, &ChangelogKey { snapshot_id: 1 }).await.unwrap();
    assert_eq!(changelog.keys, [table_key.encode(), column_key.encode()]);

    // Ending a record touches its current key; adding a column to a table moves the table's counter.
    let changes = vec![
        replace(&column_key, ended(column(1, 1, 1, "a"), 2)),
        insert(column(1, 9, 2, "b")),
    ];
    commit(&catalog, "altered_table:1", changes).await;
    let changelog = value(&catalog, &ChangelogKey { snapshot_id: 2 }).await.unwrap();
    assert_eq!(
        changelog.keys,
        [
            table_key.encode(),
            column_key.encode(),
            column(1, 9, 2, "b").0.encode()
        ]
    );
}

#[tokio::test]
async fn the_changelog_goes_64_snapshots_back() {
    let (catalog, _) = lake().await;
    for _ in 0..70 {
        commit(&catalog, "", vec![]).await;
    }
    let ids = |keys: Vec<ChangelogKey>| keys.into_iter().map(|key| key.snapshot_id).collect::<Vec<_>>();
    assert_eq!(ids(keys(&catalog).await), (7..=70).collect::<Vec<_>>());

    // Ids may be skipped.
    let mut transaction = catalog.begin().await.unwrap();
    crate::support::insert_snapshot(&mut transaction, 100, "")
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(
        ids(keys(&catalog).await),
        (37..=70).chain([100]).collect::<Vec<_>>()
    );
    let reader = catalog.begin().await.unwrap();
    assert_eq!(views::snapshot(reader.read(), 99).await.unwrap(), None);
}

#[tokio::test]
async fn a_commit_of_too_many_keys_has_no_changelog_record() {
    let (catalog, _) = lake().await;
    let files = |count: u64| {
        (0..count)
            .map(|id| insert(data_file(1, id, 1)))
            .collect::<Vec<_>>()
    };
    commit(&catalog, "", files(4097)).await;
    assert_eq!(keys::<ChangelogKey>(&catalog).await, []);
    let (catalog, _) = lake().await;
    commit(&catalog, "", files(4096)).await;
    assert_eq!(
        value(&catalog, &ChangelogKey { snapshot_id: 1 })
            .await
            .unwrap()
            .keys
            .len(),
        4096
    );
}
