use std::sync::Arc;
use std::time::Duration;

use moraine_codec::Record;
use moraine_codec::proto::OptionScopeValue;
use moraine_commit::{Catalog, CatalogTransaction, Change, CommitFailure, StageError, views};
use moraine_keys::{ChangelogKey, FormatKey, NameKey, OptionKey, SnapshotKey};
use moraine_store::MemoryStore;

use crate::support::{
    begin_snapshot, changes, commit, head, insert, keys, lake, schema, snapshot, table, value,
};

const GLOBAL: OptionKey = OptionKey {
    scope_kind: 0,
    scope_id: 0,
};

fn options(data_path: &str) -> Change {
    let options = [
        ("version", "1.0"),
        ("created_by", "DuckDB"),
        ("data_path", data_path),
        ("encrypted", "false"),
    ];
    let options = options
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    Change::Insert(Record::Option(GLOBAL, OptionScopeValue { options }))
}

/// What DuckDB does when it finds no lake: tables first, then the rows of snapshot 0.
async fn stage_client_lake(transaction: &mut CatalogTransaction, data_path: &str) {
    transaction.create_lake().await.unwrap();
    stage_client_rows(transaction, data_path).await;
}

async fn stage_client_rows(transaction: &mut CatalogTransaction, data_path: &str) {
    transaction.insert_snapshot(snapshot(0)).await.unwrap();
    transaction
        .set_snapshot_changes(changes(0, "created_schema:\"main\""))
        .await
        .unwrap();
    transaction.stage(vec![options(data_path)]).await.unwrap();
    transaction
        .stage(vec![insert(schema(0, 0, "main"))])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_client_creates_a_lake_with_its_own_rows() {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
    let mut transaction = catalog.begin().await.unwrap();
    assert!(!transaction.exists());
    assert!(matches!(transaction.stage(vec![]).await, Err(StageError::NoLake)));
    stage_client_lake(&mut transaction, "data/").await;
    assert!(transaction.exists());
    assert_eq!(transaction.commit().await.unwrap().snapshot_id, Some(0));

    let reader = catalog.begin().await.unwrap();
    assert!(reader.exists());
    assert_eq!(
        (
            reader.head().unwrap().snapshot_id,
            reader.head().unwrap().batch_seq
        ),
        (0, 0)
    );
    assert_eq!(value(&catalog, &FormatKey {}).await.unwrap().format_version, 12);
    assert_eq!(
        views::schemas_at(reader.read(), 0).await.unwrap()[0]
            .1
            .schema_name,
        "main"
    );
    assert_eq!(keys::<NameKey>(&catalog).await, [NameKey::schema("main", 0)]);
    assert_eq!(keys::<ChangelogKey>(&catalog).await, []);
    assert_eq!(
        value(&catalog, &SnapshotKey { snapshot_id: 0 })
            .await
            .unwrap()
            .next_catalog_id,
        1000
    );
}

#[tokio::test]
async fn a_lake_created_without_a_client_is_the_same_kind_of_lake() {
    let (catalog, _) = lake().await;
    let options = value(&catalog, &GLOBAL).await.unwrap().options;
    assert_eq!(options["version"], "1.0");
    assert_eq!(options["data_path"], "data/");
    assert_eq!(options["encrypted"], "false");
    assert!(options["created_by"].starts_with("moraine "));
    let first = value(&catalog, &SnapshotKey { snapshot_id: 0 }).await.unwrap();
    assert_eq!(
        (first.schema_version, first.next_catalog_id, first.next_file_id),
        (0, 1, 0)
    );
    assert_eq!(first.changes_made, "created_schema:\"main\"");
    assert_eq!(keys::<NameKey>(&catalog).await, [NameKey::schema("main", 0)]);
}

#[tokio::test]
async fn a_new_lake_says_nothing_of_how_many_rows_are_inlined_so_that_what_its_clients_say_holds() {
    let (catalog, _) = lake().await;
    for key in keys::<OptionKey>(&catalog).await {
        let options = value(&catalog, &key).await.unwrap().options;
        assert!(!options.contains_key("data_inlining_row_limit"), "{options:?}");
    }
}

#[tokio::test]
async fn two_first_attaches_at_the_same_moment_both_succeed() {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
    let mut first = catalog.begin().await.unwrap();
    let mut second = catalog.begin().await.unwrap();
    first.create_lake().await.unwrap();
    let second = tokio::spawn(async move {
        // Waits here until the first has created the lake.
        second.create_lake().await.unwrap();
        stage_client_rows(&mut second, "data/").await;
        second.commit().await
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!second.is_finished());
    stage_client_rows(&mut first, "data/").await;
    first.commit().await.unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(
        head(&catalog).await.batch_seq,
        0,
        "the second attach wrote nothing"
    );
}

#[tokio::test]
async fn a_lake_with_another_data_path_is_not_adopted() {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
    let mut late = catalog.begin().await.unwrap();
    catalog.create(Some("data/"), false).await.unwrap();
    stage_client_lake(&mut late, "elsewhere/").await;
    let error = late.commit().await.unwrap_err();
    assert!(matches!(error, CommitFailure::Constraint { .. }), "{error:?}");
    assert!(error.to_string().contains("elsewhere/"), "{error}");
    assert!(matches!(
        catalog.create(Some("data/"), true).await,
        Err(CommitFailure::Constraint { .. })
    ));
    catalog.create(Some("data/"), false).await.unwrap();
}

#[tokio::test]
async fn a_creator_that_gives_up_lets_the_next_one_create() {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
    let mut first = catalog.begin().await.unwrap();
    first.create_lake().await.unwrap();
    let waiting = tokio::spawn({
        let catalog = Arc::clone(&catalog);
        async move { catalog.create(Some("data/"), false).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    first.rollback();
    assert_eq!(waiting.await.unwrap().unwrap().snapshot_id, Some(0));
}

#[tokio::test]
async fn creating_a_lake_that_is_there_changes_nothing() {
    let (catalog, _) = lake().await;
    commit(
        &catalog,
        "created_table:\"main\".\"t\"",
        vec![insert(table(1, 1, "t"))],
    )
    .await;
    let mut transaction = catalog.begin().await.unwrap();
    transaction.create_lake().await.unwrap();
    assert!(!transaction.is_creating());
    transaction.commit().await.unwrap();
    begin_snapshot(&catalog, "").await.rollback();
    assert_eq!(
        (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
        (1, 1)
    );
}
