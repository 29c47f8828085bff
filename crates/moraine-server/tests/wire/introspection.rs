//! What DuckDB's scanner asks before it reads anything.

use crate::client::{Client, TestServer};

/// The scanner's question about tables, whole; `condition` is what it adds for one table or schema.
fn tables_query(condition: &str) -> String {
    format!(
        "SELECT pg_namespace.oid AS namespace_id, relname, relpages, attname,
    pg_type.typname type_name, atttypmod type_modifier, pg_attribute.attndims ndim,
    attnum, pg_attribute.attnotnull AS notnull, NULL constraint_id,
    NULL constraint_type, NULL constraint_key, type_ns.nspname AS type_schema,
    col_desc.description AS column_comment,
    tbl_desc.description AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_attribute ON pg_class.oid=pg_attribute.attrelid
JOIN pg_type ON atttypid=pg_type.oid
JOIN pg_namespace type_ns ON pg_type.typnamespace = type_ns.oid
LEFT JOIN pg_description col_desc ON col_desc.objoid=pg_class.oid AND col_desc.objsubid=pg_attribute.attnum
LEFT JOIN pg_description tbl_desc ON tbl_desc.objoid=pg_class.oid AND tbl_desc.objsubid=0
WHERE attnum > 0 AND relkind IN ('r', 'v', 'm', 'f', 'p') {condition}
UNION ALL
SELECT pg_namespace.oid AS namespace_id, relname, NULL relpages, NULL attname, NULL type_name,
    NULL type_modifier, NULL ndim, NULL attnum, NULL AS notnull,
    pg_constraint.oid AS constraint_id, contype AS constraint_type,
    conkey AS constraint_key, NULL AS type_schema,
    NULL AS column_comment, NULL AS table_comment
FROM pg_class
JOIN pg_namespace ON relnamespace = pg_namespace.oid
JOIN pg_constraint ON (pg_class.oid=pg_constraint.conrelid)
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND contype IN ('p', 'u') {condition}
ORDER BY namespace_id, relname, attnum, constraint_id;"
    )
}

const SCHEMAS_QUERY: &str = "SELECT oid, nspname\nFROM pg_namespace\n\nORDER BY oid;\n";
const ENUMS_QUERY: &str =
    "SELECT n.oid, enumtypid, typname, enumlabel FROM pg_enum e JOIN pg_type t ON e.enumtypid = t.oid
JOIN pg_namespace AS n ON (typnamespace=n.oid) ORDER BY n.oid, enumtypid, enumsortorder;";
const COMPOSITES_QUERY: &str =
    "SELECT n.oid, t.typrelid AS id, t.typname as type, pg_attribute.attname, sub_type.typname,
       sub_type_ns.nspname AS sub_type_schema
FROM pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
JOIN pg_class ON pg_class.oid = t.typrelid JOIN pg_attribute ON attrelid=t.typrelid
JOIN pg_type sub_type ON (pg_attribute.atttypid=sub_type.oid)
JOIN pg_catalog.pg_namespace sub_type_ns ON sub_type_ns.oid = sub_type.typnamespace
WHERE pg_class.relkind IN ('c', 'r', 'v', 'm', 'f', 'p') AND t.typtype='c' AND pg_attribute.attnum > 0
AND NOT pg_attribute.attisdropped ORDER BY n.oid, t.oid, attrelid, attnum;";
const INDEXES_QUERY: &str = "SELECT pg_namespace.oid, tablename, indexname FROM pg_indexes
JOIN pg_namespace ON (schemaname=nspname) ORDER BY pg_namespace.oid;";

async fn one(client: &mut Client, sql: &str) -> Vec<String> {
    client.run(sql).await.table().remove(0)
}

#[tokio::test]
async fn an_attach_gets_a_row_set_for_each_of_its_questions() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let version = one(
        &mut client,
        "SELECT version(), (SELECT COUNT(*) FROM pg_settings WHERE name LIKE 'rds%')",
    )
    .await;
    assert!(version[0].starts_with("PostgreSQL 15.0 (moraine "), "{version:?}");
    assert_eq!(version[1], "0");
    assert_eq!(
        one(&mut client, "SELECT to_regclass('duckdb_secrets')").await,
        ["NULL"]
    );
    let message = format!(
        "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;\n{SCHEMAS_QUERY}{}{ENUMS_QUERY}{COMPOSITES_QUERY}{INDEXES_QUERY}",
        tables_query("")
    );
    let answer = client.run(&message).await;
    assert_eq!(answer.of_kind('T').len(), 5);
    assert_eq!(
        answer.tags(),
        [
            "BEGIN", "SELECT 3", "SELECT 0", "SELECT 0", "SELECT 0", "SELECT 0"
        ]
    );
    assert_eq!(answer.status(), 'T');
}

#[tokio::test]
async fn a_table_is_described_with_its_constraints_behind_its_columns() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .run(&tables_query(
            "AND pg_namespace.nspname IN ('public')AND relname='ducklake_snapshot'",
        ))
        .await;
    let columns: Vec<[String; 8]> = answer
        .table()
        .into_iter()
        .map(|row| [1, 2, 3, 4, 5, 7, 8, 12].map(|index: usize| row[index].clone()))
        .collect();
    let column = |name: &str, type_name: &str, number: &str, not_null: &str| {
        [
            "ducklake_snapshot",
            "0",
            name,
            type_name,
            "-1",
            number,
            not_null,
            "pg_catalog",
        ]
        .map(str::to_owned)
    };
    assert_eq!(
        columns[..5],
        [
            column("snapshot_id", "int8", "1", "t"),
            column("snapshot_time", "timestamptz", "2", "f"),
            column("schema_version", "int8", "3", "f"),
            column("next_catalog_id", "int8", "4", "f"),
            column("next_file_id", "int8", "5", "f"),
        ]
    );
    let constraint = &answer.table()[5];
    assert_eq!(constraint[3], "NULL");
    assert_eq!(constraint[10..12], ["p", "{1}"]);
    assert_eq!(answer.rows().len(), 6);
}

#[tokio::test]
async fn no_table_has_pages() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client.run(&tables_query("")).await;
    let tables: std::collections::BTreeSet<String> =
        answer.table().into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(tables.len(), 28);
    assert!(answer.table().iter().all(|row| row[2] == "0" || row[3] == "NULL"));
    let pages = client
        .run("SELECT relname FROM pg_class WHERE relpages > 0")
        .await;
    assert!(pages.rows().is_empty());
}

#[tokio::test]
async fn a_table_that_is_not_there_has_no_rows() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for name in ["ducklake_inlined_data_1_1", "orders", "x''y"] {
        let answer = client.run(&tables_query(&format!("AND relname='{name}'"))).await;
        assert!(answer.rows().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn the_types_of_an_inlined_table_are_told_with_their_digits() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    client
        .run("CREATE TABLE IF NOT EXISTS ducklake_inlined_data_1_1(row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, \"A b\" DECIMAL(18,3), t BYTEA)")
        .await;
    let answer = client
        .run(&tables_query("AND relname='ducklake_inlined_data_1_1'"))
        .await;
    let rows: Vec<Vec<String>> = answer.table();
    let shown: Vec<[&str; 3]> = rows
        .iter()
        .map(|row| [row[3].as_str(), row[4].as_str(), row[5].as_str()])
        .collect();
    let modifier = ((18 << 16) | 3) + 4;
    assert_eq!(
        shown[3..],
        [["A b", "numeric", &modifier.to_string()], ["t", "bytea", "-1"]]
    );
}

#[tokio::test]
async fn the_information_schema_tells_the_same() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let schemas = client
        .run("SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast') ORDER BY schema_name;")
        .await;
    assert_eq!(schemas.table(), [["public"]]);
    let columns = client
        .run(
            "SELECT table_schema AS namespace_id, table_name AS relname, 0 AS relpages, column_name AS attname,
    data_type AS type_name, -1 AS type_modifier, 0 AS ndim, ordinal_position AS attnum,
    CASE WHEN is_nullable = 'NO' THEN 't' ELSE 'f' END AS notnull,
    NULL AS constraint_id, NULL AS constraint_type, NULL AS constraint_key,
    NULL AS type_schema, NULL AS column_comment, NULL AS table_comment
FROM information_schema.columns
WHERE table_schema NOT IN ('information_schema', 'pg_catalog', 'pg_toast') AND table_schema IN ('public') AND table_name='ducklake_schema'
ORDER BY table_schema, table_name, ordinal_position;",
        )
        .await;
    let rows = columns.table();
    assert_eq!(rows.len(), 7);
    assert_eq!(
        rows[0][..9],
        [
            "public",
            "ducklake_schema",
            "0",
            "schema_id",
            "bigint",
            "-1",
            "0",
            "1",
            "t"
        ]
    );
    assert_eq!(rows[4][4], "character varying");
    let empty = client.run("SELECT NULL, NULL, NULL LIMIT 0;").await;
    assert_eq!(
        (empty.kinds().as_str(), empty.tags()),
        ("TCZ", vec!["SELECT 0".to_owned()])
    );
}

#[tokio::test]
async fn the_staleness_question_changes_with_the_set_of_tables() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    let question = "SELECT pg_class.oid, relname, pg_class.xmin FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND pg_namespace.nspname = 'public' ORDER BY pg_class.oid;";
    let before = client.run(question).await.table();
    assert_eq!(before, client.run(question).await.table());
    client
        .run("CREATE TABLE ducklake_inlined_delete_1(file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)")
        .await;
    assert_ne!(before, client.run(question).await.table());
}

#[tokio::test]
async fn functions_and_constants_need_no_table() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    for (query, expected) in [
        ("SELECT 1", "1"),
        ("SELECT current_database()", "lake"),
        ("SELECT current_schema()", "public"),
        ("SELECT current_user", "tester"),
        ("SELECT pg_is_in_recovery()", "f"),
        ("SELECT pg_database_size(current_database())", "0"),
        ("SELECT nspname FROM pg_namespace WHERE oid = 2200", "public"),
        ("SELECT count(*) FROM pg_stat_wal_receiver", "0"),
        ("SELECT datname FROM pg_database", "lake"),
        ("SELECT coalesce(NULL, 'x') || 'y'", "xy"),
        ("SELECT CASE WHEN 1 = 2 THEN 'a' ELSE 'b' END", "b"),
        ("SHOW server_version", "15.0"),
        ("SHOW TRANSACTION ISOLATION LEVEL", "repeatable read"),
        ("SELECT current_setting('server_version')", "15.0"),
        ("SELECT format_type(20, -1)", "bigint"),
    ] {
        assert_eq!(one(&mut client, query).await, [expected], "{query}");
    }
    assert!(
        client
            .run("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema();")
            .await
            .rows()
            .is_empty()
    );
}
