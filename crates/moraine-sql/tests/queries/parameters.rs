//! Parameters take their type from what they stand beside, or from what the client declared.

use moraine_sql::{CatalogRelations, QueryError, SqlType};
use moraine_tables::{ColumnType, Value};

use crate::support::{Lake, answer, plan, shown};

async fn types(text: &str, declared: &[Option<SqlType>]) -> Vec<String> {
    let lake = Lake::filled().await;
    let tx = lake.begin().await;
    let mut relations = CatalogRelations::new(&tx, "main");
    let plan = plan(&mut relations, text, declared).await.unwrap();
    plan.parameters()
        .iter()
        .map(|sql_type| sql_type.sql_name())
        .collect()
}

#[tokio::test]
async fn types_come_from_the_other_side() {
    for (text, expected) in [
        (
            "SELECT 1 FROM ducklake_table WHERE table_id = $1 AND table_name = $2",
            vec!["bigint", "text"],
        ),
        ("SELECT 1 FROM ducklake_table WHERE $1 = table_uuid", vec!["uuid"]),
        (
            "SELECT 1 FROM ducklake_snapshot WHERE snapshot_time >= $1",
            vec!["timestamp with time zone"],
        ),
        (
            "SELECT 1 FROM ducklake_table WHERE table_id IN ($1, $2)",
            vec!["bigint", "bigint"],
        ),
        (
            "SELECT 1 FROM ducklake_table WHERE table_id BETWEEN $1 AND $2",
            vec!["bigint", "bigint"],
        ),
        (
            "SELECT 1 FROM ducklake_table WHERE table_name LIKE $1",
            vec!["text"],
        ),
        (
            "SELECT 1 FROM ducklake_table WHERE lower(table_name) = lower($2) AND table_id = $1",
            vec!["bigint", "text"],
        ),
        ("SELECT $1", vec!["text"]),
        ("SELECT $1::bigint, $2::uuid", vec!["bigint", "uuid"]),
        (
            "SELECT 1 FROM ducklake_table WHERE path_is_relative = $1 LIMIT $2",
            vec!["boolean", "bigint"],
        ),
    ] {
        assert_eq!(types(text, &[]).await, expected, "{text}");
    }
}

#[tokio::test]
async fn declared_types_win() {
    let declared = [Some(SqlType::Column(ColumnType::Int32)), None];
    let text = "SELECT 1 FROM ducklake_table WHERE table_id = $1 AND schema_id = $2";
    assert_eq!(types(text, &declared).await, ["integer", "bigint"]);
}

#[tokio::test]
async fn values_take_the_parameters_places() {
    let lake = Lake::filled().await;
    let tx = lake.begin().await;
    let text = "SELECT f.path FROM ducklake_table t JOIN ducklake_data_file f USING (table_id) \
                WHERE t.table_name = $2 AND f.record_count > $1 ORDER BY f.path";
    let values = [Value::Int64(6), Value::text("users")];
    let rows = answer(&tx, text, &[], &values).await.unwrap();
    assert_eq!(shown(&rows), ["f14.parquet"]);
    let none = [Value::Null, Value::text("users")];
    assert_eq!(answer(&tx, text, &[], &none).await.unwrap().len(), 0);
}

#[tokio::test]
async fn one_plan_runs_with_other_values() {
    let lake = Lake::filled().await;
    let tx = lake.begin().await;
    let mut relations = CatalogRelations::new(&tx, "main");
    let text = "SELECT table_name FROM ducklake_table WHERE table_id = $1";
    let plan = plan(&mut relations, text, &[]).await.unwrap();
    for (id, name) in [(1, "events"), (3, "users")] {
        let rows = plan.run(&[Value::Int64(id)], &relations).await.unwrap();
        assert_eq!(shown(&rows.collect().await.unwrap()), [name]);
    }
}

#[tokio::test]
async fn a_missing_value_is_refused() {
    let lake = Lake::filled().await;
    let tx = lake.begin().await;
    let error = answer(&tx, "SELECT $1::text", &[], &[]).await.unwrap_err();
    assert!(matches!(error, QueryError::Parameter { number: 1 }), "{error:?}");
}
