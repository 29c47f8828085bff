//! A lake as DuckDB creates it: 28 `CREATE TABLE`, then its first rows.

use std::sync::Arc;

use moraine_store::MemoryStore;
use moraine_tables::{
    Column, ColumnType, Filter, Relation, TableError, create, describe, drop, fixed_schema, insert, list,
    scan,
};

use crate::support::{Lake, Null, row, rows, uuid};

async fn create_as_duckdb_does(lake: &Lake) -> moraine_commit::CatalogTransaction {
    let mut tx = lake.begin().await;
    for relation in Relation::FIXED {
        let columns = fixed_schema(relation).unwrap().columns;
        create(&mut tx, relation, Some(columns)).await.unwrap();
        assert_eq!(describe(&tx, relation).await.unwrap(), fixed_schema(relation));
    }
    let snapshot = row![0, moraine_tables::Value::TimestampTz(0), 0, 1, 0];
    insert(&mut tx, Relation::Snapshot, vec![snapshot]).await.unwrap();
    let changes = row![0, "created_schema:\"main\"", Null, Null, Null];
    insert(&mut tx, Relation::SnapshotChanges, vec![changes])
        .await
        .unwrap();
    let option = |key: &str, value: &str| row![key, value, Null, Null];
    let options = vec![
        option("version", "1.0"),
        option("created_by", "DuckDB 1"),
        option("data_path", "d/"),
        option("encrypted", "false"),
    ];
    insert(&mut tx, Relation::Metadata, options).await.unwrap();
    insert(
        &mut tx,
        Relation::Schema,
        vec![row![0, uuid(0), 0, Null, "main", "main/", true]],
    )
    .await
    .unwrap();
    tx
}

#[tokio::test]
async fn before_it_is_created_nothing_exists() {
    let lake = Lake::over(Arc::new(MemoryStore::new()));
    let mut tx = lake.begin().await;
    assert!(list(&tx).await.unwrap().is_empty());
    assert_eq!(describe(&tx, Relation::Metadata).await.unwrap(), None);
    let missing = scan(&tx, Relation::Metadata, &[], &Filter::all())
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(
        missing,
        TableError::Missing {
            relation: Relation::Metadata
        }
    ));
    assert!(matches!(
        insert(&mut tx, Relation::Tag, vec![]).await,
        Err(TableError::Missing { .. })
    ));
    assert!(!drop(&mut tx, Relation::Metadata).await.unwrap());
}

#[tokio::test]
async fn it_reads_back_as_it_was_created() {
    let lake = Lake::over(Arc::new(MemoryStore::new()));
    let tx = create_as_duckdb_does(&lake).await;
    assert_eq!(rows(&tx, Relation::Metadata).await.len(), 4);
    tx.commit().await.unwrap();
    let tx = lake.begin().await;
    let names: Vec<Relation> = list(&tx)
        .await
        .unwrap()
        .into_iter()
        .map(|(relation, _)| relation)
        .collect();
    assert_eq!(names, Relation::FIXED);
    assert_eq!(
        rows(&tx, Relation::Schema).await,
        vec![row![0, uuid(0), 0, Null, "main", "main/", true]]
    );
    assert_eq!(rows(&tx, Relation::Snapshot).await.len(), 1);
}

#[tokio::test]
async fn two_that_create_it_at_the_same_moment_both_succeed() {
    let lake = Lake::over(Arc::new(MemoryStore::new()));
    let mut late = lake.begin().await;
    create_as_duckdb_does(&lake).await.commit().await.unwrap();
    create(&mut late, Relation::Metadata, None).await.unwrap();
    std::mem::drop(late);
    let again = Lake::over(Arc::new(MemoryStore::new()));
    create_as_duckdb_does(&again).await.commit().await.unwrap();
}

#[tokio::test]
async fn fixed_relations_are_created_once_with_their_own_columns_and_never_dropped() {
    let lake = Lake::new().await;
    let mut tx = lake.begin().await;
    assert!(matches!(
        create(&mut tx, Relation::Tag, None).await,
        Err(TableError::AlreadyExists { .. })
    ));
    assert!(matches!(
        drop(&mut tx, Relation::Tag).await,
        Err(TableError::Unsupported { .. })
    ));
    let fresh = Lake::over(Arc::new(MemoryStore::new()));
    let mut tx = fresh.begin().await;
    let columns = vec![Column::new("object_id", ColumnType::Int32)];
    let refused = create(&mut tx, Relation::Tag, Some(columns)).await.unwrap_err();
    assert!(matches!(refused, TableError::Definition { .. }), "{refused}");
    assert!(
        refused.to_string().contains("object_id, begin_snapshot"),
        "{refused}"
    );
}
