//! `ducklake_metadata`: options of three scopes, one record each.

use moraine_tables::{Filter, Relation, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, and, equals, refusal, row, rows_where};

fn named(name: &str) -> Filter {
    equals(0, name)
}

#[tokio::test]
async fn an_option_is_set_changed_and_unset_in_its_scope_only() {
    let lake = Lake::new().await;
    let mut tx = lake.begin().await;
    let set = vec![
        row!["o", "1", Null, Null],
        row!["o", "2", "schema", 1],
        row!["o", "3", "table", 1],
    ];
    insert(&mut tx, Relation::Metadata, set.clone()).await.unwrap();
    assert_eq!(rows_where(&tx, Relation::Metadata, named("o")).await, set);
    tx.commit().await.unwrap();

    let mut tx = lake.begin().await;
    let table = and([named("o"), equals(2, "table"), equals(3, 1)]);
    let found = addresses(&tx, Relation::Metadata, table).await;
    let edit = vec![(found[0].clone(), vec![(1, Value::text("changed"))])];
    assert_eq!(update(&mut tx, Relation::Metadata, edit).await.unwrap(), 1);
    let schema = and([named("o"), equals(2, "schema")]);
    let found = addresses(&tx, Relation::Metadata, schema).await;
    assert_eq!(
        delete(&mut tx, Relation::Metadata, found.clone()).await.unwrap(),
        1
    );
    assert_eq!(delete(&mut tx, Relation::Metadata, found).await.unwrap(), 0);
    tx.commit().await.unwrap();
    let expected = vec![row!["o", "1", Null, Null], row!["o", "changed", "table", 1]];
    assert_eq!(
        rows_where(&lake.begin().await, Relation::Metadata, named("o")).await,
        expected
    );
}

#[tokio::test]
async fn an_option_is_set_once_per_scope_and_scopes_are_known() {
    let lake = Lake::new().await;
    let mut tx = lake.begin().await;
    let twice = vec![row!["o", "1", Null, Null], row!["o", "2", Null, Null]];
    let cases = [
        (twice, "Duplicate"),
        (vec![row!["encrypted", "true", Null, Null]], "Duplicate"),
        (vec![row!["o", Null, Null, Null]], "NotNull"),
        (vec![row![Null, "1", Null, Null]], "NotNull"),
        (vec![row!["o", "1", "column", 1]], "Constraint"),
        (vec![row!["o", "1", Null, 1]], "Constraint"),
        (vec![row!["o", "1", "table", Null]], "NotNull"),
        (vec![row!["o", "1", "table", -1]], "OutOfRange"),
        (vec![row!["o", "1", "table"]], "Width"),
    ];
    for (rows, expected) in cases {
        let (variant, text) = refusal(insert(&mut tx, Relation::Metadata, rows).await);
        assert_eq!(variant, expected, "{text}");
        assert!(rows_where(&tx, Relation::Metadata, named("o")).await.is_empty());
    }
}

#[tokio::test]
async fn the_version_ducklake_asks_for_is_served_for_a_catalog_that_does_not_state_it() {
    let lake = Lake::new().await;
    let mut tx = lake.begin().await;
    let stated = addresses(&tx, Relation::Metadata, named("version")).await;
    delete(&mut tx, Relation::Metadata, stated).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = lake.begin().await;
    assert_eq!(
        rows_where(&tx, Relation::Metadata, named("version")).await,
        vec![row!["version", "1.0", Null, Null]]
    );
    let served = addresses(&tx, Relation::Metadata, named("version")).await;
    let edit = vec![(served[0].clone(), vec![(1, Value::text("1.1"))])];
    assert_eq!(update(&mut tx, Relation::Metadata, edit).await.unwrap(), 1);
    assert_eq!(
        rows_where(&tx, Relation::Metadata, named("version")).await,
        vec![row!["version", "1.1", Null, Null]]
    );
}
