//! What this server does not do is said by name, and the session goes on.

use crate::client::TestServer;

/// Statements, and what the refusal must name.
const UNSUPPORTED: [(&str, &str); 18] = [
    ("SELECT * INTO x FROM ducklake_table", "SELECT INTO"),
    (
        "SELECT * FROM ducklake_table TABLESAMPLE SYSTEM (1)",
        "TABLESAMPLE",
    ),
    (
        "SELECT * FROM ducklake_table WHERE table_name = 'x' COLLATE \"de_DE\"",
        "collation \"de_DE\"",
    ),
    (
        "SELECT a FROM ducklake_table a ORDER BY 1",
        "the order of rows that are not written out",
    ),
    (
        "SELECT table_name COLLATE \"de_DE\" FROM ducklake_table",
        "collation",
    ),
    (
        "SELECT * FROM elsewhere.public.ducklake_table a JOIN ducklake_schema b ON true",
        "elsewhere",
    ),
    ("INSERT INTO ducklake_metadata DEFAULT VALUES", "DEFAULT VALUES"),
    (
        "UPDATE ducklake_metadata SET (key, value) = (SELECT 'a', 'b')",
        "SET",
    ),
    ("CREATE TABLE orders AS SELECT 1", "CREATE TABLE"),
    ("ALTER TABLE ducklake_table ADD COLUMN x BIGINT", "ALTER TABLE"),
    ("CREATE TABLE orders (a BIGINT)", "orders"),
    ("CREATE INDEX i ON ducklake_table (table_id)", "CREATE INDEX"),
    ("DROP SCHEMA public", "DROP SCHEMA"),
    ("TRUNCATE ducklake_table", "TRUNCATE"),
    ("LISTEN x", "LISTEN"),
    ("NOTIFY x", "NOTIFY"),
    ("SET TRANSACTION SNAPSHOT '1'", "SNAPSHOT"),
    (
        "MERGE INTO ducklake_table USING ducklake_schema ON true WHEN MATCHED THEN DELETE",
        "MERGE",
    ),
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
        ("SELECT frobnicate()", "42883"),
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
