use moraine_keys::{ColumnKey, History, TableKey};
use std::sync::Arc;

use moraine_commit::Catalog;

use crate::support::{column, commit, ended, insert, lake, remove, replace, table, value};

async fn next_column_id(catalog: &Arc<Catalog>) -> u64 {
    value(catalog, &TableKey { table_id: 1 })
        .await
        .unwrap()
        .next_column_id
}

#[tokio::test]
async fn a_column_id_is_never_given_twice_whatever_happens_to_the_table() {
    let (catalog, _) = lake().await;
    let columns = [column(1, 1, 1, "a"), column(1, 2, 1, "b"), column(1, 3, 1, "c")];
    let mut changes = vec![insert(table(1, 1, "t"))];
    changes.extend(columns.map(insert));
    commit(&catalog, "created_table:\"main\".\"t\"", changes).await;
    assert_eq!(next_column_id(&catalog).await, 4);

    // Drop the newest column; its id is not free again, not even once its history has expired.
    let dropped = replace(
        &ColumnKey {
            table_id: 1,
            column_id: 3,
        },
        ended(column(1, 3, 1, "c"), 2),
    );
    commit(&catalog, "altered_table:1", vec![dropped]).await;
    let expired = History {
        entity: ColumnKey {
            table_id: 1,
            column_id: 3,
        },
        end_snapshot: 2,
    };
    crate::support::maintain(&catalog, vec![remove(&expired)]).await;
    assert_eq!(next_column_id(&catalog).await, 4);

    // Rename: the client ends the row and inserts another, and knows nothing of the counter.
    let key = TableKey { table_id: 1 };
    let renamed = vec![
        replace(&key, ended(table(1, 1, "t"), 3)),
        insert(table(1, 3, "u")),
    ];
    commit(&catalog, "altered_table:1", renamed).await;
    assert_eq!(next_column_id(&catalog).await, 4);
    let before = History {
        entity: key.clone(),
        end_snapshot: 3,
    };
    assert_eq!(value(&catalog, &before).await.unwrap().next_column_id, 4);

    // Ended in one commit and back in another.
    commit(
        &catalog,
        "dropped_table:1",
        vec![replace(&key, ended(table(1, 3, "u"), 4))],
    )
    .await;
    commit(
        &catalog,
        "created_table:\"main\".\"u\"",
        vec![insert(table(1, 5, "u"))],
    )
    .await;
    assert_eq!(next_column_id(&catalog).await, 4);

    // Added.
    commit(&catalog, "altered_table:1", vec![insert(column(1, 7, 6, "d"))]).await;
    assert_eq!(next_column_id(&catalog).await, 8);
    let tables = catalog.begin().await.unwrap();
    let versions = moraine_store::ReadExt::records::<History<TableKey>>(
        tables.read(),
        <History<TableKey> as moraine_keys::LeadingId>::scan_ids(1..=1),
    );
    assert_eq!(
        versions.await.unwrap().len(),
        2,
        "a counter moves without a version of its own"
    );
}

#[tokio::test]
async fn a_table_that_is_replaced_by_deletion_and_insertion_keeps_its_counter() {
    let (catalog, _) = lake().await;
    commit(
        &catalog,
        "",
        vec![insert(table(1, 1, "t")), insert(column(1, 6, 1, "a"))],
    )
    .await;
    let gone = vec![remove(&column(1, 6, 1, "a").0)];
    commit(&catalog, "", gone).await;
    assert_eq!(next_column_id(&catalog).await, 7);
    let again = vec![remove(&TableKey { table_id: 1 }), insert(table(1, 3, "t"))];
    commit(&catalog, "", again).await;
    assert_eq!(next_column_id(&catalog).await, 7);
}
