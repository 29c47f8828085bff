//! Conditions that are not on ids are evaluated on each row, `NULL` never passing a comparison.

use moraine_tables::{CompareOp, Comparison, Filter, Relation, TableError, Value, scan};

use crate::support::{Lake, Null, and, compare, equals, row, rows_where, uuid};

fn column(id: i64, name: &str, order: Option<i64>, nullable: Option<bool>) -> Vec<Value> {
    let order = order.map_or(Value::Null, Value::Int64);
    let nullable = nullable.map_or(Value::Null, Value::Bool);
    row![
        id, 1, Null, 1, order, name, "int32", Null, Null, nullable, Null, Null, Null
    ]
}

async fn lake() -> Lake {
    let lake = Lake::new().await;
    let columns = vec![
        column(1, "a", Some(1), Some(true)),
        column(2, "A", None, Some(false)),
        column(3, "ä", Some(3), None),
        column(4, "", Some(-0), Some(true)),
    ];
    lake.write([(Relation::Column, columns)]).await;
    lake
}

async fn passing(lake: &Lake, filter: Filter) -> Vec<i64> {
    let rows = rows_where(&lake.begin().await, Relation::Column, filter).await;
    rows.iter()
        .map(|row| {
            if let Value::Int64(id) = row[0] {
                id
            } else {
                panic!("{row:?}")
            }
        })
        .collect()
}

#[tokio::test]
async fn each_operator_holds_for_the_rows_it_should() {
    let lake = lake().await;
    let cases = [
        (CompareOp::Eq, vec![1]),
        (CompareOp::Ne, vec![3, 4]),
        (CompareOp::Lt, vec![4]),
        (CompareOp::Le, vec![1, 4]),
        (CompareOp::Gt, vec![3]),
        (CompareOp::Ge, vec![1, 3]),
    ];
    for (op, expected) in cases {
        assert_eq!(passing(&lake, compare(4, op, 1)).await, expected, "{op:?}");
    }
    for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Ge] {
        assert!(
            passing(&lake, compare(4, op, Null)).await.is_empty(),
            "{op:?} NULL"
        );
    }
}

#[tokio::test]
async fn text_booleans_and_lists_pass_as_in_postgres() {
    let lake = lake().await;
    assert_eq!(passing(&lake, equals(5, "a")).await, [1]);
    assert_eq!(passing(&lake, equals(5, "")).await, [4]);
    assert_eq!(passing(&lake, compare(5, CompareOp::Ge, "a")).await, [1, 3]);
    assert_eq!(passing(&lake, equals(9, true)).await, [1, 4]);
    assert_eq!(passing(&lake, compare(9, CompareOp::Ne, true)).await, [2]);
    assert_eq!(
        passing(&lake, Filter::only(Comparison::IsNull { column: 9 })).await,
        [3]
    );
    assert_eq!(
        passing(&lake, Filter::only(Comparison::IsNotNull { column: 4 })).await,
        [1, 3, 4]
    );
    let values = vec![Value::text("ä"), Value::Null, Value::text("A"), Value::text("zz")];
    assert_eq!(
        passing(&lake, Filter::only(Comparison::In { column: 5, values })).await,
        [2, 3]
    );
    let none = Filter::only(Comparison::In {
        column: 4,
        values: vec![Value::Null],
    });
    assert!(passing(&lake, none).await.is_empty());
    assert_eq!(
        passing(&lake, and([equals(9, true), compare(4, CompareOp::Gt, 0)])).await,
        [1]
    );
}

#[tokio::test]
async fn the_projection_chooses_and_repeats_columns() {
    let lake = lake().await;
    let tx = lake.begin().await;
    let rows = scan(&tx, Relation::Column, &[5, 0, 5], &equals(0, 1))
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(rows[0].values, row!["a", 1, "a"]);
    let rows = scan(&tx, Relation::Column, &[], &Filter::all())
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.values.is_empty()));
}

#[tokio::test]
async fn literals_and_columns_that_do_not_fit_are_refused() {
    let lake = lake().await;
    let tx = lake.begin().await;
    let refused = async |projection: &[usize], filter: Filter| {
        scan(&tx, Relation::Column, projection, &filter)
            .await
            .map(|_| ())
            .unwrap_err()
    };
    assert!(
        matches!(refused(&[], equals(5, 1)).await, TableError::Type { column, .. } if column == "column_name")
    );
    assert!(matches!(
        refused(&[13], Filter::all()).await,
        TableError::Width {
            expected: 13,
            found: 14,
            ..
        }
    ));
    assert!(matches!(
        refused(&[], equals(13, 1)).await,
        TableError::Width { .. }
    ));
}

#[tokio::test]
async fn long_lists_of_ids_find_exactly_their_rows() {
    let lake = Lake::new().await;
    let table = |id: i64| row![id, uuid(1), 1, Null, 0, "t", "t/", true];
    lake.write([(Relation::Table, (1..=3000).map(table).collect())])
        .await;
    let values: Vec<Value> = (1..=3000)
        .filter(|id| id % 2 == 0)
        .rev()
        .map(Value::Int64)
        .collect();
    let filter = Filter::only(Comparison::In { column: 0, values });
    assert_eq!(
        rows_where(&lake.begin().await, Relation::Table, filter)
            .await
            .len(),
        1500
    );
}
