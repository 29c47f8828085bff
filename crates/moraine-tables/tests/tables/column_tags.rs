//! Tags belong to a column, not to one of its versions: whatever happens to the column, its tags are served once.

use moraine_tables::{Comparison, Filter, Relation, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, and, equals, row, rows};

fn version(begin: i64, name: &str) -> Vec<Value> {
    row![
        1, begin, Null, 7, 1, name, "int32", Null, Null, true, Null, Null, Null
    ]
}

async fn end_column(tx: &mut moraine_commit::CatalogTransaction, snapshot: i64) {
    let live = and([equals(0, 1), Filter::only(Comparison::IsNull { column: 2 })]);
    let ends = addresses(tx, Relation::Column, live).await;
    let ends = ends
        .into_iter()
        .map(|address| (address, vec![(2, Value::Int64(snapshot))]))
        .collect();
    assert_eq!(update(tx, Relation::Column, ends).await.unwrap(), 1);
}

#[tokio::test]
async fn a_renamed_column_keeps_its_tags_and_serves_them_once() {
    let lake = Lake::new().await;
    lake.write([
        (Relation::Column, vec![version(1, "a")]),
        (Relation::ColumnTag, vec![row![7, 1, 1, Null, "comment", "first"]]),
    ])
    .await;
    let mut tx = lake.begin_snapshot().await;
    end_column(&mut tx, 2).await;
    assert_eq!(
        rows(&tx, Relation::ColumnTag).await,
        vec![row![7, 1, 1, Null, "comment", "first"]]
    );
    insert(&mut tx, Relation::Column, vec![version(2, "b")])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        lake.rows(Relation::ColumnTag).await,
        vec![row![7, 1, 1, Null, "comment", "first"]]
    );

    // The comment changes at snapshot 3: the old tag ends, a new one comes.
    let mut tx = lake.begin_snapshot().await;
    let live = and([
        equals(0, 7),
        equals(4, "comment"),
        Filter::only(Comparison::IsNull { column: 3 }),
    ]);
    let ends = addresses(&tx, Relation::ColumnTag, live).await;
    let ends: Vec<_> = ends
        .into_iter()
        .map(|address| (address, vec![(3, Value::Int64(3))]))
        .collect();
    assert_eq!(update(&mut tx, Relation::ColumnTag, ends).await.unwrap(), 1);
    insert(
        &mut tx,
        Relation::ColumnTag,
        vec![row![7, 1, 3, Null, "comment", "second"]],
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let expected = vec![
        row![7, 1, 1, 3, "comment", "first"],
        row![7, 1, 3, Null, "comment", "second"],
    ];
    assert_eq!(lake.rows(Relation::ColumnTag).await, expected);

    // The column is dropped: its last version shows the tags.
    let mut tx = lake.begin_snapshot().await;
    end_column(&mut tx, 4).await;
    tx.commit().await.unwrap();
    assert_eq!(lake.reopen().rows(Relation::ColumnTag).await, expected);
}

#[tokio::test]
async fn tags_of_a_dropped_column_can_be_ended_and_deleted() {
    let lake = Lake::new().await;
    lake.write([
        (Relation::Column, vec![version(1, "a")]),
        (
            Relation::ColumnTag,
            vec![row![7, 1, 1, Null, "a", "x"], row![7, 1, 1, Null, "b", "y"]],
        ),
    ])
    .await;
    let mut tx = lake.begin_snapshot().await;
    end_column(&mut tx, 2).await;
    let all = addresses(&tx, Relation::ColumnTag, equals(4, "a")).await;
    let ends = all
        .into_iter()
        .map(|address| (address, vec![(3, Value::Int64(2))]))
        .collect();
    update(&mut tx, Relation::ColumnTag, ends).await.unwrap();
    let all = addresses(&tx, Relation::ColumnTag, equals(4, "b")).await;
    delete(&mut tx, Relation::ColumnTag, all).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        lake.rows(Relation::ColumnTag).await,
        vec![row![7, 1, 1, 2, "a", "x"]]
    );
}
