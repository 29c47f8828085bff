//! Numbers: types of literals, what does not fit, quotients, JSON.

use moraine_sql::QueryError;

use crate::support::Lake;

async fn failure(text: &str) -> QueryError {
    match Lake::filled().await.ask(text).await {
        Ok(rows) => panic!("{text} was answered: {rows:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn what_does_not_fit_is_an_error() {
    for text in [
        "SELECT 2147483647 + 1",
        "SELECT 9223372036854775807 + table_id FROM ducklake_table",
        "SELECT -2147483648 - 1",
        "SELECT table_id * 9223372036854775807 FROM ducklake_table WHERE table_id > 1",
        "SELECT 32767::smallint + 1::smallint",
        "SELECT 1e308::float8 * 10",
        "SELECT table_id FROM ducklake_table WHERE table_id + 9223372036854775807 > 0",
    ] {
        let error = failure(text).await;
        assert!(
            matches!(&error, QueryError::OutOfRange { .. }),
            "{text}: {error:?}"
        );
    }
}

#[tokio::test]
async fn division_by_zero_is_an_error_for_every_number() {
    for text in [
        "SELECT 1 / 0",
        "SELECT 1 % 0",
        "SELECT 1.5 / 0",
        "SELECT 1::float8 / 0",
        "SELECT table_id / (table_id - 1) FROM ducklake_table",
    ] {
        let error = failure(text).await;
        assert!(matches!(&error, QueryError::DivisionByZero), "{text}: {error:?}");
    }
}

#[tokio::test]
async fn quotients_and_averages_are_exact() {
    let lake = Lake::filled().await;
    for (text, expected) in [
        (
            "SELECT 7 / 2, 7.0 / 2, 1 / 3.0",
            "3|3.5000000000000000|0.33333333333333333333",
        ),
        (
            "SELECT avg(record_count) FROM ducklake_data_file",
            "122.4000000000000000",
        ),
        (
            "SELECT avg(record_count) FROM ducklake_data_file WHERE false",
            "~",
        ),
        ("SELECT avg(1.5), avg(2::float8)", "1.5000000000000000|2"),
        (
            "SELECT sum(record_count) / count(*) FROM ducklake_data_file",
            "122.4000000000000000",
        ),
        ("SELECT 10 - 2 * 3 % 4, -7 / 2, 2 ^ 3", "8|-3|8"),
        (
            "SELECT date '2024-03-01' - date '2024-02-01', date '2024-02-28' + 2",
            "29|2024-03-01",
        ),
    ] {
        assert_eq!(lake.text(text).await, [expected], "{text}");
    }
}

#[tokio::test]
async fn whole_numbers_have_the_type_they_fit() {
    let types: Vec<String> = Lake::filled()
        .await
        .columns("SELECT 1, 3000000000, 1 + 1, table_id + 1, 1::smallint + 1, sum(1), 1.5, avg(1) FROM ducklake_table GROUP BY table_id")
        .await
        .into_iter()
        .map(|(_, sql_type)| sql_type)
        .collect();
    assert_eq!(
        types,
        [
            "integer",
            "bigint",
            "integer",
            "bigint",
            "integer",
            "bigint",
            "numeric(2,1)",
            "numeric"
        ]
    );
}

#[tokio::test]
async fn json_is_written_as_postgres_writes_it() {
    let lake = Lake::filled().await;
    for (text, expected) in [
        (
            "SELECT json_build_object('a', 1, 'b', NULL, 'c', 'x\"y')",
            "{\"a\" : 1, \"b\" : null, \"c\" : \"x\\\"y\"}",
        ),
        (
            "SELECT jsonb_build_object('bb', 1.50, 'a', true)",
            "{\"a\": true, \"bb\": 1.50}",
        ),
        (
            "SELECT json_build_array(1, 'a', ARRAY[1, 2])",
            "[1, \"a\", [1,2]]",
        ),
        (
            "SELECT json_agg(table_id ORDER BY table_id DESC) FROM ducklake_table",
            "[3, 2, 1]",
        ),
        ("SELECT json_agg(table_id) FROM ducklake_table WHERE false", "~"),
        (
            "SELECT json_object_agg(table_name, table_id ORDER BY table_id) FROM ducklake_table",
            "{ \"events\" : 1, \"Old\" : 2, \"users\" : 3 }",
        ),
        ("SELECT '{\"a\": {\"b\": [1, 2]}}'::json -> 'a' -> 'b' ->> 1", "2"),
        (
            "SELECT to_json('x'::text), to_json(1.5), to_json(NULL::text)",
            "\"x\"|1.5|~",
        ),
    ] {
        assert_eq!(lake.text(text).await, [expected], "{text}");
    }
}
