use moraine_keys::{DataFileKey, DeleteFileKey, DeleteTargetKey, History, NameKey, SchemaKey, TableKey};

use crate::support::{
    commit, data_file, delete_file, ended, insert, keys, lake, maintain, remove, replace, schema, table,
};

#[tokio::test]
async fn names_follow_creation_rename_move_and_drop() {
    let (catalog, _) = lake().await;
    let main = NameKey::schema("main", 0);
    commit(
        &catalog,
        "",
        vec![insert(schema(1, 1, "s")), insert(table(2, 1, "t"))],
    )
    .await;
    let other = NameKey::schema("s", 1);
    assert_eq!(
        keys::<NameKey>(&catalog).await,
        [main.clone(), other.clone(), NameKey::table(0, "t", 2)]
    );

    let mut moved = table(2, 2, "u");
    moved.1.schema_id = 1;
    let key = TableKey { table_id: 2 };
    commit(
        &catalog,
        "",
        vec![replace(&key, ended(table(2, 1, "t"), 2)), insert(moved.clone())],
    )
    .await;
    assert_eq!(
        keys::<NameKey>(&catalog).await,
        [main.clone(), other, NameKey::table(1, "u", 2)]
    );

    let drops = vec![
        replace(&key, ended(moved, 3)),
        replace(&SchemaKey { schema_id: 1 }, ended(schema(1, 1, "s"), 3)),
    ];
    commit(&catalog, "", drops).await;
    assert_eq!(keys::<NameKey>(&catalog).await, [main]);
}

#[tokio::test]
async fn two_tables_of_one_name_have_an_entry_each() {
    let (catalog, _) = lake().await;
    commit(
        &catalog,
        "",
        vec![insert(table(2, 1, "t")), insert(table(3, 1, "t"))],
    )
    .await;
    let names = keys::<NameKey>(&catalog).await;
    assert_eq!(names[1..], [NameKey::table(0, "t", 2), NameKey::table(0, "t", 3)]);
}

#[tokio::test]
async fn delete_targets_follow_delete_files_and_history_has_none() {
    let (catalog, _) = lake().await;
    let target = |data_file_id, delete_file_id| DeleteTargetKey {
        table_id: 2,
        data_file_id,
        delete_file_id,
    };
    let files = vec![
        insert(table(2, 1, "t")),
        insert(data_file(2, 10, 1)),
        insert(data_file(2, 11, 1)),
        insert(delete_file(2, 20, 10, 1)),
        insert(delete_file(2, 21, 11, 1)),
    ];
    commit(&catalog, "", files).await;
    assert_eq!(
        keys::<DeleteTargetKey>(&catalog).await,
        [target(10, 20), target(11, 21)]
    );

    // The delete file of 10 is superseded, the one of 11 removed for good.
    let key = DeleteFileKey {
        table_id: 2,
        delete_file_id: 20,
    };
    let changes = vec![
        replace(&key, ended(delete_file(2, 20, 10, 1), 2)),
        insert(delete_file(2, 22, 10, 2)),
        remove(&DeleteFileKey {
            table_id: 2,
            delete_file_id: 21,
        }),
    ];
    commit(&catalog, "deleted_from_table:2", changes).await;
    assert_eq!(keys::<DeleteTargetKey>(&catalog).await, [target(10, 22)]);

    // A delete file that is written ended never enters the directory; expiry of history leaves it alone.
    commit(&catalog, "", vec![insert(ended(delete_file(2, 23, 10, 1), 3))]).await;
    maintain(
        &catalog,
        vec![remove(&History {
            entity: key,
            end_snapshot: 2,
        })],
    )
    .await;
    assert_eq!(keys::<DeleteTargetKey>(&catalog).await, [target(10, 22)]);
    assert_eq!(keys::<DataFileKey>(&catalog).await.len(), 2);
}
