//! Subqueries as values, and arrays that stand for many comparisons.

use crate::support::Lake;

async fn rows(text: &str) -> Vec<String> {
    Lake::filled().await.text(text).await
}

#[tokio::test]
async fn whether_there_are_rows_may_be_asked_anywhere() {
    for (text, expected) in [
        (
            "SELECT EXISTS(SELECT 1 FROM ducklake_table WHERE table_id = 1)",
            vec!["t"],
        ),
        (
            "SELECT NOT EXISTS(SELECT * FROM ducklake_table WHERE table_id = 99)",
            vec!["t"],
        ),
        (
            "SELECT EXISTS(SELECT max(table_id) FROM ducklake_table WHERE table_id = 99)",
            vec!["t"],
        ),
        ("SELECT EXISTS(SELECT 1 FROM ducklake_table LIMIT 0)", vec!["f"]),
        (
            "SELECT table_id, EXISTS(SELECT 1 FROM ducklake_data_file f WHERE f.table_id = t.table_id) \
             FROM ducklake_table t ORDER BY 1",
            vec!["1|t", "2|f", "3|t"],
        ),
        (
            "SELECT CASE WHEN EXISTS(SELECT 1 FROM ducklake_table WHERE table_name = 'users') THEN 'yes' ELSE 'no' END",
            vec!["yes"],
        ),
        (
            "SELECT count(*) FROM ducklake_table t WHERE EXISTS(SELECT 1 FROM ducklake_data_file f \
             WHERE f.table_id = t.table_id) OR table_name = 'Old'",
            vec!["3"],
        ),
    ] {
        assert_eq!(rows(text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn membership_is_true_false_or_unknown() {
    for (text, expected) in [
        ("SELECT 1 IN (SELECT table_id FROM ducklake_table)", vec!["t"]),
        ("SELECT 9 IN (SELECT table_id FROM ducklake_table)", vec!["f"]),
        ("SELECT 9 IN (SELECT end_snapshot FROM ducklake_table)", vec!["~"]),
        (
            "SELECT 9 NOT IN (SELECT table_id FROM ducklake_table WHERE false)",
            vec!["t"],
        ),
        ("SELECT NULL IN (SELECT table_id FROM ducklake_table)", vec!["~"]),
        (
            "SELECT table_name, table_id IN (SELECT table_id FROM ducklake_data_file) FROM ducklake_table ORDER BY table_id",
            vec!["events|t", "Old|f", "users|t"],
        ),
        (
            "SELECT 'events' IN (SELECT table_name FROM ducklake_table)",
            vec!["t"],
        ),
        ("SELECT '3' IN (SELECT table_id FROM ducklake_table)", vec!["t"]),
        (
            "SELECT 2 > ALL (SELECT table_id FROM ducklake_table), 2 > ANY (SELECT table_id FROM ducklake_table)",
            vec!["f|t"],
        ),
    ] {
        assert_eq!(rows(text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn arrays_stand_for_their_elements() {
    let ids = |condition: &str| format!("SELECT table_id FROM ducklake_table WHERE {condition} ORDER BY 1");
    for (condition, expected) in [
        ("table_id = ANY('{1,3}')", vec!["1", "3"]),
        ("table_id = ANY('{1,3}'::bigint[])", vec!["1", "3"]),
        ("table_id = ANY(ARRAY[1, 3])", vec!["1", "3"]),
        ("table_id <> ALL('{1,3}')", vec!["2"]),
        ("table_id <> ALL('{}')", vec!["1", "2", "3"]),
        ("table_id = ANY('{}')", vec![]),
        ("table_id >= ANY('{2,9}')", vec!["2", "3"]),
        ("table_name = ANY('{events,\"Old\",NULL}')", vec!["1", "2"]),
        ("table_name LIKE ANY(ARRAY['ev%', '%rs'])", vec!["1", "3"]),
        (
            "table_id = ANY(ARRAY(SELECT table_id FROM ducklake_data_file))",
            vec!["1", "3"],
        ),
        (
            "table_id = ANY(string_to_array('1,2', ',')::bigint[])",
            vec!["1", "2"],
        ),
    ] {
        assert_eq!(rows(&ids(condition)).await, expected, "{condition}");
    }
}

#[tokio::test]
async fn rows_become_arrays_in_their_order() {
    for (text, expected) in [
        (
            "SELECT ARRAY(SELECT table_id FROM ducklake_table ORDER BY 1 DESC)",
            "{3,2,1}",
        ),
        (
            "SELECT ARRAY(SELECT table_id FROM ducklake_table WHERE false)",
            "{}",
        ),
        (
            "SELECT ARRAY(SELECT DISTINCT table_id FROM ducklake_data_file ORDER BY table_id)",
            "{1,3}",
        ),
        (
            "SELECT ARRAY(SELECT 'n' || x FROM unnest(ARRAY[1, 2]) x)",
            "{n1,n2}",
        ),
        (
            "SELECT array_agg(table_name ORDER BY table_id) FILTER (WHERE table_id < 3) FROM ducklake_table",
            "{events,Old}",
        ),
        (
            "SELECT string_agg(table_name, '-' ORDER BY table_name) FROM ducklake_table",
            "Old-events-users",
        ),
        ("SELECT array_length(ARRAY[1, 2], 1)", "2"),
        ("SELECT array_upper(ARRAY[]::integer[], 1)", "~"),
        ("SELECT (ARRAY['a', 'b'])[2]", "b"),
        ("SELECT cardinality('{1,2,3}'::int[])", "3"),
    ] {
        assert_eq!(rows(text).await, [expected], "{text}");
    }
}

#[tokio::test]
async fn a_subquery_that_refers_outside_has_one_value() {
    for (text, expected) in [
        (
            "SELECT table_id, (SELECT max(path) FROM ducklake_data_file f WHERE f.table_id = t.table_id) FROM ducklake_table t ORDER BY 1",
            vec!["1|f12.parquet", "2|~", "3|f14.parquet"],
        ),
        (
            "SELECT (SELECT table_name FROM ducklake_table t WHERE t.table_id = f.table_id) FROM ducklake_data_file f WHERE data_file_id = 13",
            vec!["users"],
        ),
        (
            "SELECT (SELECT path FROM ducklake_data_file f WHERE f.table_id = t.table_id ORDER BY record_count DESC LIMIT 1) FROM ducklake_table t ORDER BY table_id",
            vec!["f12.parquet", "~", "f14.parquet"],
        ),
        (
            "SELECT (SELECT table_name FROM ducklake_table WHERE table_id = 1)",
            vec!["events"],
        ),
        (
            "SELECT ARRAY(SELECT o || '!' FROM unnest(string_to_array(path, '.')) o WHERE o <> 'parquet') FROM ducklake_data_file WHERE data_file_id = 10",
            vec!["{f10!}"],
        ),
    ] {
        assert_eq!(rows(text).await, expected, "{text}");
    }
    let error = Lake::filled()
        .await
        .ask("SELECT (SELECT path FROM ducklake_data_file f WHERE f.table_id = t.table_id) FROM ducklake_table t")
        .await;
    assert!(
        matches!(&error, Err(moraine_sql::QueryError::Cardinality)),
        "{error:?}"
    );
}

#[tokio::test]
async fn series_are_rows() {
    assert_eq!(rows("SELECT * FROM generate_series(1, 3)").await, ["1", "2", "3"]);
    assert_eq!(
        rows("SELECT g FROM generate_series(5, 1, -2) g").await,
        ["5", "3", "1"]
    );
    assert_eq!(rows("SELECT generate_series(1, 2) AS n").await, ["1", "2"]);
    assert_eq!(
        rows("SELECT generate_subscripts(ARRAY['a', 'b'], 1) AS n, unnest(ARRAY['a', 'b']) AS v").await,
        ["1|a", "2|b"]
    );
    assert_eq!(
        rows("SELECT x FROM unnest('{a,b}'::text[]) AS u(x)").await,
        ["a", "b"]
    );
}
