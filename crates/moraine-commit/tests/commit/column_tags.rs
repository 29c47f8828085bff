//! Tags are rows of their own: they may come before their column, and outlive every version of it.

use std::sync::Arc;

use moraine_codec::proto::{ColumnTag, ColumnValue, StrayColumnTag, TableValue};
use moraine_commit::Catalog;
use moraine_keys::{ColumnKey, History, TableKey};

use crate::support::{
    begin_snapshot, column, commit, ended, insert, lake, maintain, remove, replace, table, value,
};

fn tag(value: &str) -> ColumnTag {
    ColumnTag {
        begin_snapshot: 1,
        key: "comment".to_owned(),
        value: value.to_owned(),
        ..ColumnTag::default()
    }
}

fn stray(column_id: u64, value: &str) -> StrayColumnTag {
    StrayColumnTag {
        column_id,
        tag: Some(tag(value)),
    }
}

/// Table 1 with tags of columns it does not have.
fn table_with(begin_snapshot: u64, strays: &[StrayColumnTag]) -> (TableKey, TableValue) {
    let mut with = table(1, begin_snapshot, "t");
    with.1.stray_column_tags = strays.to_vec();
    with
}

fn tagged(column_id: u64, begin_snapshot: u64, tags: &[ColumnTag]) -> (ColumnKey, ColumnValue) {
    let mut tagged = column(1, column_id, begin_snapshot, "a");
    tagged.1.tags = tags.to_vec();
    tagged
}

async fn strays(catalog: &Arc<Catalog>) -> Vec<StrayColumnTag> {
    let key = TableKey { table_id: 1 };
    value(catalog, &key).await.unwrap().stray_column_tags
}

async fn tags(catalog: &Arc<Catalog>, column_id: u64) -> Vec<ColumnTag> {
    let key = ColumnKey {
        table_id: 1,
        column_id,
    };
    value(catalog, &key).await.unwrap().tags
}

#[tokio::test]
async fn tags_of_a_column_outlive_its_versions() {
    let (catalog, _) = lake().await;
    let first = tagged(1, 1, &[tag("x")]);
    commit(
        &catalog,
        "",
        vec![insert(table(1, 1, "t")), insert(first.clone())],
    )
    .await;
    let renamed = vec![
        replace(&first.0, ended(first.clone(), 2)),
        insert(column(1, 1, 2, "b")),
    ];
    commit(&catalog, "altered_table:1", renamed).await;
    let now = value(&catalog, &first.0).await.unwrap();
    assert_eq!((now.column_name.as_str(), now.tags), ("b", vec![tag("x")]));
    // Another column inherits nothing.
    commit(&catalog, "altered_table:1", vec![insert(column(1, 2, 3, "c"))]).await;
    assert_eq!(tags(&catalog, 2).await, []);
}

#[tokio::test]
async fn a_new_column_takes_the_tags_that_came_before_it() {
    let (catalog, _) = lake().await;
    let waiting = [stray(2, "x"), stray(3, "y"), stray(2, "z")];
    commit(&catalog, "", vec![insert(table_with(1, &waiting))]).await;
    commit(&catalog, "altered_table:1", vec![insert(column(1, 2, 2, "a"))]).await;
    assert_eq!(tags(&catalog, 2).await, [tag("x"), tag("z")]);
    assert_eq!(strays(&catalog).await, [stray(3, "y")]);
    commit(
        &catalog,
        "altered_table:1",
        vec![insert(tagged(3, 3, &[tag("own")]))],
    )
    .await;
    assert_eq!(tags(&catalog, 3).await, [tag("own"), tag("y")]);
    assert_eq!(strays(&catalog).await, []);
    let key = TableKey { table_id: 1 };
    assert_eq!(value(&catalog, &key).await.unwrap().next_column_id, 4);
}

#[tokio::test]
async fn a_column_takes_its_tags_in_the_transaction_that_creates_its_table_too() {
    let (catalog, _) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "").await;
    transaction
        .stage(vec![
            insert(table_with(1, &[stray(2, "x")])),
            insert(column(1, 1, 1, "a")),
        ])
        .await
        .unwrap();
    transaction
        .stage(vec![insert(column(1, 2, 1, "b"))])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(
        (tags(&catalog, 1).await, tags(&catalog, 2).await),
        (vec![], vec![tag("x")])
    );
    assert_eq!(strays(&catalog).await, []);
}

#[tokio::test]
async fn a_column_that_has_ended_or_changes_its_id_takes_tags_as_well() {
    let (catalog, _) = lake().await;
    let waiting = [stray(2, "x"), stray(3, "y")];
    commit(&catalog, "", vec![insert(table_with(1, &waiting))]).await;
    let past = ended(column(1, 2, 1, "a"), 2);
    commit(&catalog, "altered_table:1", vec![insert(past.clone())]).await;
    let history = History {
        entity: past.0.clone(),
        end_snapshot: 2,
    };
    assert_eq!(value(&catalog, &history).await.unwrap().tags, [tag("x")]);
    let renumbered = vec![
        insert(column(1, 9, 3, "b")),
        replace(&column(1, 9, 3, "b").0, column(1, 3, 3, "b")),
    ];
    commit(&catalog, "altered_table:1", renumbered).await;
    assert_eq!(tags(&catalog, 3).await, [tag("y")]);
    assert_eq!(strays(&catalog).await, []);
}

#[tokio::test]
async fn a_column_of_a_dropped_table_takes_tags_from_its_last_version() {
    let (catalog, _) = lake().await;
    let gone = ended(table_with(1, &[stray(2, "x")]), 2);
    commit(&catalog, "", vec![insert(gone.clone())]).await;
    commit(&catalog, "", vec![insert(ended(column(1, 2, 1, "a"), 2))]).await;
    let history = History {
        entity: gone.0,
        end_snapshot: 2,
    };
    assert_eq!(value(&catalog, &history).await.unwrap().stray_column_tags, []);
}

#[tokio::test]
async fn a_version_of_a_table_inherits_the_tags_of_columns_it_does_not_have() {
    let (catalog, _) = lake().await;
    let first = table_with(1, &[stray(2, "x")]);
    commit(&catalog, "", vec![insert(first.clone())]).await;
    let renamed = vec![
        replace(&first.0, ended(first.clone(), 2)),
        insert(table(1, 2, "u")),
    ];
    commit(&catalog, "altered_table:1", renamed).await;
    assert_eq!(strays(&catalog).await, [stray(2, "x")]);

    // Ended in one commit and back in another.
    let second = table_with(2, &[stray(2, "x")]);
    commit(&catalog, "", vec![replace(&first.0, ended(second, 3))]).await;
    commit(&catalog, "", vec![insert(table(1, 4, "v"))]).await;
    assert_eq!(strays(&catalog).await, [stray(2, "x")]);

    // What a client takes away stays away, and a counter that moves takes nothing away.
    commit(&catalog, "", vec![insert(column(1, 6, 5, "c"))]).await;
    assert_eq!(strays(&catalog).await, [stray(2, "x")]);
    maintain(&catalog, vec![replace(&first.0, table(1, 4, "v"))]).await;
    assert_eq!(strays(&catalog).await, []);
}

#[tokio::test]
async fn versions_that_come_one_after_the_other_as_history_hand_on_their_tags() {
    let (catalog, _) = lake().await;
    let rows = vec![
        insert(ended(table_with(1, &[stray(2, "x")]), 2)),
        insert(ended(table(1, 2, "u"), 3)),
        insert(table(1, 3, "v")),
        insert(ended(column(1, 2, 1, "a"), 2)),
        insert(ended(column(1, 2, 2, "b"), 3)),
        insert(column(1, 2, 3, "c")),
        // An older one that comes late is not the one to show them.
        insert(ended(column(1, 2, 0, "z"), 1)),
    ];
    commit(&catalog, "", rows).await;
    assert_eq!(tags(&catalog, 2).await, [tag("x")]);
    assert_eq!(strays(&catalog).await, []);
    let late = History {
        entity: column(1, 2, 0, "z").0,
        end_snapshot: 1,
    };
    assert_eq!(value(&catalog, &late).await.unwrap().tags, []);
}

#[tokio::test]
async fn tags_go_with_a_table_that_is_deleted() {
    let (catalog, _) = lake().await;
    commit(&catalog, "", vec![insert(table_with(1, &[stray(2, "x")]))]).await;
    let again = vec![remove(&TableKey { table_id: 1 }), insert(table(1, 2, "t"))];
    commit(&catalog, "", again).await;
    assert_eq!(strays(&catalog).await, []);
}
