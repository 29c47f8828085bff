//! What this server does not do is said by name, and the session goes on.

use crate::client::TestServer;

/// Statements, and what the refusal must name.
const UNSUPPORTED: [(&str, &str); 30] = [
    (
        "SELECT * FROM ducklake_table t JOIN ducklake_schema s ON t.schema_id = s.schema_id",
        "JOIN",
    ),
    ("SELECT * FROM ducklake_table, ducklake_schema", "JOIN"),
    (
        "SELECT schema_id, count(*) FROM ducklake_table GROUP BY schema_id",
        "GROUP BY",
    ),
    ("SELECT DISTINCT schema_id FROM ducklake_table", "DISTINCT"),
    (
        "SELECT count(*) FROM ducklake_table HAVING count(*) > 1",
        "HAVING",
    ),
    (
        "SELECT row_number() OVER () FROM ducklake_table",
        "window function row_number",
    ),
    ("SELECT lower(table_name) FROM ducklake_table", "function lower"),
    ("SELECT sum(table_id) FROM ducklake_table", "function sum"),
    ("SELECT table_id + 1 FROM ducklake_table", "table_id + 1"),
    ("SELECT * FROM ducklake_table WHERE table_name LIKE 'x%'", "LIKE"),
    (
        "SELECT * FROM ducklake_table UNION ALL SELECT * FROM ducklake_table",
        "UNION",
    ),
    ("WITH x AS (SELECT 1) SELECT * FROM ducklake_table", "WITH"),
    ("SELECT * FROM ducklake_table FOR UPDATE", "FOR UPDATE"),
    (
        "SELECT * FROM ducklake_table WHERE table_id IN (SELECT table_id FROM ducklake_column)",
        "subquery",
    ),
    (
        "SELECT * FROM ducklake_table WHERE table_name = 'x' COLLATE \"de_DE\"",
        "COLLATE",
    ),
    (
        "INSERT INTO ducklake_metadata SELECT 'a', 'b', NULL, NULL",
        "INSERT",
    ),
    (
        "INSERT INTO ducklake_metadata VALUES ('a', lower('B'), NULL, NULL)",
        "function lower",
    ),
    (
        "INSERT INTO ducklake_metadata VALUES ('a', 'b', NULL, NULL) ON CONFLICT DO NOTHING",
        "ON clash",
    ),
    (
        "INSERT INTO ducklake_metadata VALUES ('a', 'b', NULL, NULL) RETURNING key",
        "RETURNING",
    ),
    (
        "UPDATE ducklake_metadata SET value = value || 'x'",
        "value || 'x'",
    ),
    (
        "DELETE FROM ducklake_table USING ducklake_schema WHERE true",
        "USING",
    ),
    ("ALTER TABLE ducklake_table ADD COLUMN x BIGINT", "ALTER TABLE"),
    ("CREATE TABLE orders (a BIGINT)", "orders"),
    ("CREATE INDEX i ON ducklake_table (table_id)", "CREATE INDEX"),
    ("DROP SCHEMA public", "DROP SCHEMA"),
    ("TRUNCATE ducklake_table", "TRUNCATE"),
    ("SAVEPOINT a", "SAVEPOINT"),
    ("LISTEN x", "LISTEN"),
    ("SET TRANSACTION SNAPSHOT '1'", "SNAPSHOT"),
    ("SELECT pg_export_snapshot()", "pg_export_snapshot"),
];

#[tokio::test]
async fn unsupported_statements_are_refused_by_name() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (sql, named) in UNSUPPORTED {
        let (state, message) = client.query(sql).await.error();
        assert_eq!(state, "0A000", "{sql}: {message}");
        assert!(message.contains(named), "{sql}: {message}");
        assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
    }
}

#[tokio::test]
async fn names_that_mean_nothing_have_their_own_errors() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (sql, state) in [
        ("SELECT * FROM orders", "42P01"),
        ("SELECT * FROM other.ducklake_table", "42P01"),
        ("SELECT * FROM ducklake_inlined_data_1_1", "42P01"),
        ("SELECT * FROM ducklake_inlined_data_01_1", "42P01"),
        ("SELECT * FROM elsewhere.public.ducklake_table", "0A000"),
        ("SELECT nope FROM ducklake_table", "42703"),
        ("SELECT ducklake_table.nope FROM ducklake_table", "42703"),
        ("SELECT x.table_id FROM ducklake_table", "42P01"),
        ("UPDATE ducklake_table SET nope = 1", "42703"),
        ("SELECT table_id, count(*) FROM ducklake_table", "42803"),
        ("SELECT table_id FROM ducklake_table ORDER BY 7", "42P10"),
        ("CREATE TABLE ducklake_table (table_id BIGINT)", "42P07"),
        ("CREATE SCHEMA public", "42P06"),
        ("DROP TABLE ducklake_inlined_data_7_7", "42P01"),
        ("SHOW no_such_setting", "42704"),
        ("SELECT $1", "42P02"),
        ("SELECT 'unterminated", "42601"),
        ("SELECT * FROM pg_no_such_catalog", "42P01"),
    ] {
        assert_eq!(client.query(sql).await.state(), state, "{sql}");
        assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
    }
    assert_eq!(
        client
            .run("DROP TABLE IF EXISTS \"public\".ducklake_inlined_data_7_7")
            .await
            .tags(),
        ["DROP TABLE"]
    );
    assert_eq!(
        client.run("CREATE SCHEMA IF NOT EXISTS public").await.tags(),
        ["CREATE SCHEMA"]
    );
}
