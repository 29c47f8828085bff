//! Tags belong to a column, not to one of its versions: whatever happens to the column, its tags are served once, and they
//! are rows even where the column is not there.

use moraine_tables::{Comparison, Filter, Relation, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, and, equals, put, refusal, row, rows, rows_where, uuid};

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

fn table(begin: i64, end: impl crate::support::Cell, name: &str) -> Vec<Value> {
    row![7, uuid(7), begin, end, 0, name, "t/", true]
}

fn tag(column: i64, begin: i64, value: &str) -> Vec<Value> {
    row![7, column, begin, Null, "comment", value]
}

/// Ends what is live of a relation whose `end_snapshot` is at `end`, in table 7.
async fn end_live(
    tx: &mut moraine_commit::CatalogTransaction,
    relation: Relation,
    end: usize,
    snapshot: i64,
) -> u64 {
    let live = and([equals(0, 7), Filter::only(Comparison::IsNull { column: end })]);
    let ends = addresses(tx, relation, live).await;
    let ends = ends
        .into_iter()
        .map(|address| (address, vec![(end, Value::Int64(snapshot))]))
        .collect();
    update(tx, relation, ends).await.unwrap()
}

#[tokio::test]
async fn the_comment_of_a_new_column_comes_before_the_column() {
    let lake = Lake::new().await;
    lake.write([(Relation::Table, vec![table(1, Null, "t")])]).await;
    // ALTER TABLE … ADD COLUMN and COMMENT ON COLUMN in one transaction, in DuckLake's order.
    lake.write([
        (Relation::ColumnTag, vec![tag(1, 2, "new"), tag(9, 2, "never")]),
        (Relation::Column, vec![version(2, "a")]),
    ])
    .await;
    let expected = vec![tag(1, 2, "new"), tag(9, 2, "never")];
    assert_eq!(lake.rows(Relation::ColumnTag).await, expected);

    // The column has them now: a new version shows them once, and they go with it.
    let mut tx = lake.begin_snapshot().await;
    end_column(&mut tx, 3).await;
    put(&mut tx, Relation::Column, vec![version(3, "b")]).await;
    tx.commit().await.unwrap();
    assert_eq!(lake.reopen().rows(Relation::ColumnTag).await, expected);
    let mut tx = lake.begin_snapshot().await;
    let columns = addresses(&tx, Relation::Column, Filter::all()).await;
    assert_eq!(delete(&mut tx, Relation::Column, columns).await.unwrap(), 2);
    assert_eq!(rows(&tx, Relation::ColumnTag).await, vec![tag(9, 2, "never")]);
}

#[tokio::test]
async fn a_table_and_its_columns_may_be_created_with_comments_in_any_order_of_columns_and_tags() {
    let lake = Lake::new().await;
    let column = |id: i64| {
        row![
            id, 1, Null, 7, id, "c", "int32", Null, Null, true, Null, Null, Null
        ]
    };
    lake.write([
        (Relation::Table, vec![table(1, Null, "t")]),
        (Relation::Column, vec![column(1)]),
        (
            Relation::ColumnTag,
            vec![tag(2, 1, "second"), tag(1, 1, "first"), tag(2, 1, "again")],
        ),
        (Relation::Column, vec![column(2), column(3)]),
    ])
    .await;
    assert_eq!(
        lake.rows(Relation::ColumnTag).await,
        vec![tag(1, 1, "first"), tag(2, 1, "second"), tag(2, 1, "again")]
    );
}

#[tokio::test]
async fn a_tag_of_a_column_that_never_comes_is_a_row_like_any_other() {
    let lake = Lake::new().await;
    lake.write([
        (Relation::Table, vec![table(1, Null, "t")]),
        (Relation::Column, vec![version(1, "a")]),
    ])
    .await;
    // Written by hand, without a snapshot.
    let mut tx = lake.begin().await;
    let by_hand = vec![
        row![7, 0, 1, Null, "pii", "true"],
        row![7, 5, 1, Null, Null, Null],
        tag(1, 1, "of the column"),
        row![7, 5, Null, 3, "", "x"],
    ];
    put(&mut tx, Relation::ColumnTag, by_hand.clone()).await;
    tx.commit().await.unwrap();
    let expected = [3, 0, 2, 1].map(|row| by_hand[row].clone());
    assert_eq!(lake.rows(Relation::ColumnTag).await, expected);
    let tx = lake.begin().await;
    assert_eq!(
        rows_where(&tx, Relation::ColumnTag, equals(1, 5)).await,
        [by_hand[3].clone(), by_hand[1].clone()]
    );
    assert_eq!(
        rows_where(&tx, Relation::ColumnTag, and([equals(0, 7), equals(4, "pii")])).await,
        [by_hand[0].clone()]
    );
    assert!(
        rows_where(&tx, Relation::ColumnTag, equals(0, 8))
            .await
            .is_empty()
    );

    let mut tx = lake.begin().await;
    let found = addresses(&tx, Relation::ColumnTag, Filter::all()).await;
    let edits = vec![
        (found[1].clone(), vec![(5, Value::text("false"))]),
        (found[2].clone(), vec![(3, Value::Int64(4))]),
        (found[3].clone(), vec![(2, Value::Null), (4, Value::text("k"))]),
    ];
    assert_eq!(update(&mut tx, Relation::ColumnTag, edits).await.unwrap(), 3);
    assert_eq!(
        delete(
            &mut tx,
            Relation::ColumnTag,
            vec![found[0].clone(), found[1].clone()]
        )
        .await
        .unwrap(),
        1,
        "a changed row is not where it was"
    );
    tx.commit().await.unwrap();
    let expected = vec![
        row![7, 5, Null, Null, "k", Null],
        row![7, 0, 1, Null, "pii", "false"],
        row![7, 1, 1, 4, "comment", "of the column"],
    ];
    assert_eq!(lake.reopen().rows(Relation::ColumnTag).await, expected);
}

#[tokio::test]
async fn a_stray_tag_stays_with_its_column() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    put(&mut tx, Relation::Table, vec![table(1, Null, "t")]).await;
    put(&mut tx, Relation::ColumnTag, vec![tag(9, 1, "x")]).await;
    let found = addresses(&tx, Relation::ColumnTag, Filter::all()).await;
    for (column, name) in [(0, "table_id"), (1, "column_id")] {
        let edit = vec![(found[0].clone(), vec![(column, Value::Int64(2))])];
        let (variant, text) = refusal(update(&mut tx, Relation::ColumnTag, edit).await);
        assert_eq!(variant, "Unsupported");
        assert!(text.contains(name), "{text}");
    }
    assert_eq!(rows(&tx, Relation::ColumnTag).await, vec![tag(9, 1, "x")]);
}

#[tokio::test]
async fn a_renamed_table_serves_its_stray_tags_once_and_a_dropped_one_lets_them_end() {
    let lake = Lake::new().await;
    lake.write([
        (Relation::Table, vec![table(1, Null, "t")]),
        (Relation::ColumnTag, vec![tag(9, 1, "x")]),
    ])
    .await;
    let mut tx = lake.begin_snapshot().await;
    assert_eq!(end_live(&mut tx, Relation::Table, 3, 2).await, 1);
    put(&mut tx, Relation::ColumnTag, vec![tag(8, 2, "between")]).await;
    put(&mut tx, Relation::Table, vec![table(2, Null, "u")]).await;
    tx.commit().await.unwrap();
    let both = vec![tag(9, 1, "x"), tag(8, 2, "between")];
    assert_eq!(lake.rows(Relation::ColumnTag).await, both);

    // DROP TABLE: DuckLake ends the table, then its tags.
    let mut tx = lake.begin_snapshot().await;
    assert_eq!(end_live(&mut tx, Relation::Table, 3, 3).await, 1);
    assert_eq!(rows(&tx, Relation::ColumnTag).await, both);
    assert_eq!(end_live(&mut tx, Relation::ColumnTag, 3, 3).await, 2);
    tx.commit().await.unwrap();
    let ended = vec![
        row![7, 9, 1, 3, "comment", "x"],
        row![7, 8, 2, 3, "comment", "between"],
    ];
    assert_eq!(lake.reopen().rows(Relation::ColumnTag).await, ended);

    // Expiry deletes the table's versions; nothing of it is left.
    let mut tx = lake.begin_snapshot().await;
    let versions = addresses(&tx, Relation::Table, Filter::all()).await;
    assert_eq!(delete(&mut tx, Relation::Table, versions).await.unwrap(), 2);
    assert!(rows(&tx, Relation::ColumnTag).await.is_empty());
}
