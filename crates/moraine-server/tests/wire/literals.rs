//! Conditions and their literals: quoted ones take the column's type, and nothing is rounded.

use crate::client::{Client, TestServer};

async fn lake_with_tables(server: &TestServer) -> Client {
    let mut client = server.connect_to_lake().await;
    for id in 1..=9 {
        client.create_table(id, &format!("t{id}")).await;
    }
    client
}

async fn ids(client: &mut Client, condition: &str) -> Vec<u64> {
    let answer = client
        .run(&format!("SELECT table_id FROM ducklake_table WHERE {condition}"))
        .await;
    answer.table().iter().map(|row| row[0].parse().unwrap()).collect()
}

#[tokio::test]
async fn comparisons_are_exact() {
    let server = TestServer::start().await;
    let mut client = lake_with_tables(&server).await;
    for (condition, expected) in [
        ("\"table_id\" <= '3'", vec![1, 2, 3]),
        ("'3' >= \"table_id\"", vec![1, 2, 3]),
        ("table_id = 3", vec![3]),
        ("table_id < '10' AND table_id > '07'", vec![8, 9]),
        ("(table_id >= '2' AND table_id <= '4')", vec![2, 3, 4]),
        ("table_id BETWEEN 2 AND 4", vec![2, 3, 4]),
        ("table_id NOT BETWEEN 2 AND 8", vec![1, 9]),
        ("table_id IN ('1', 5, '77')", vec![1, 5]),
        ("table_id NOT IN (1, 2, 3, 4, 5, 6, 7)", vec![8, 9]),
        ("table_id <> 5 AND table_id > 4", vec![6, 7, 8, 9]),
        ("table_id = 1 OR table_name = 't9'", vec![1, 9]),
        ("NOT (table_id > 1)", vec![1]),
        ("table_name = 't4' COLLATE \"C\"", vec![4]),
        ("table_name >= 't8'", vec![8, 9]),
        ("end_snapshot IS NULL AND table_id < 2", vec![1]),
        ("end_snapshot IS NOT NULL", vec![]),
        ("end_snapshot = NULL", vec![]),
        ("NOT (end_snapshot > 5)", vec![]),
        ("path_is_relative AND table_id = 2", vec![2]),
        ("path_is_relative = 'false'", vec![]),
        ("table_id = begin_snapshot AND table_id < 3", vec![1, 2]),
        ("table_id > 7.5", vec![8, 9]),
        ("table_id = 7.5", vec![]),
        ("table_id = 7.0", vec![7]),
        ("table_id < 99999999999999999999999999 AND table_id > 8", vec![9]),
        ("table_id > -99999999999999999999999999 AND table_id < 2", vec![1]),
        ("table_id = 99999999999999999999999999", vec![]),
        ("table_id = CAST('3' AS BIGINT)", vec![3]),
        ("table_id = '3'::int8", vec![3]),
        ("table_uuid = 'B4B2F3C0-0000-4000-8000-000000000002'", vec![2]),
        ("table_id = (SELECT max(table_id) FROM ducklake_table)", vec![9]),
        ("table_id < (SELECT min(table_id) FROM ducklake_table)", vec![]),
        ("table_id > (SELECT max(view_id) FROM ducklake_view)", vec![]),
        ("true", vec![1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("1 = 2", vec![]),
    ] {
        assert_eq!(ids(&mut client, condition).await, expected, "{condition}");
    }
}

#[tokio::test]
async fn literals_of_the_wrong_form_name_column_and_literal() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (condition, state, named) in [
        ("table_id = 'abc'", "22P02", "\"abc\" (column \"table_id\")"),
        ("table_id = '1.5'", "22P02", "table_id"),
        ("table_id = '99999999999999999999'", "22003", "table_id"),
        ("table_uuid = 'x'", "22P02", "table_uuid"),
        ("path_is_relative = 'maybe'", "22P02", "path_is_relative"),
        ("table_name = 5", "42883", "integer"),
        ("path_is_relative = 1", "42804", "path_is_relative"),
        ("table_id", "42804", "boolean"),
    ] {
        let answer = client
            .query(&format!("SELECT table_id FROM ducklake_table WHERE {condition}"))
            .await;
        let (found, message) = answer.error();
        assert_eq!(found, state, "{condition}: {message}");
        assert!(message.contains(named), "{condition}: {message}");
    }
}

#[tokio::test]
async fn rows_are_counted_ordered_and_cut() {
    let server = TestServer::start().await;
    let mut client = lake_with_tables(&server).await;
    for (query, expected) in [
        (
            "SELECT count(*) FROM ducklake_table WHERE table_id > 3",
            vec!["6"],
        ),
        ("SELECT count(end_snapshot) FROM ducklake_table", vec!["0"]),
        ("SELECT min(table_name) FROM ducklake_table", vec!["t1"]),
        (
            "SELECT max(table_id) FROM ducklake_table WHERE table_id < 0",
            vec!["NULL"],
        ),
        (
            "SELECT table_name FROM ducklake_table ORDER BY table_id DESC LIMIT 2",
            vec!["t9", "t8"],
        ),
        (
            "SELECT table_name FROM ducklake_table LIMIT 1 OFFSET 4",
            vec!["t5"],
        ),
        ("SELECT table_name FROM ducklake_table LIMIT 0", vec![]),
        ("SELECT NULL FROM ducklake_table LIMIT 1", vec!["NULL"]),
        ("SELECT 7 FROM ducklake_schema", vec!["7"]),
        (
            "SELECT t.table_name AS n FROM ducklake_table AS t WHERE t.table_id = 3",
            vec!["t3"],
        ),
        (
            "SELECT table_id::VARCHAR FROM ducklake_table WHERE table_id = 3",
            vec!["3"],
        ),
        (
            "SELECT x FROM (SELECT table_id AS x FROM ducklake_table WHERE table_id > 2) AS s WHERE x < 4",
            vec!["3"],
        ),
        (
            "SELECT count(*) FROM (SELECT table_id FROM ducklake_table WHERE table_id > 2) AS s",
            vec!["7"],
        ),
    ] {
        let answer = client.run(query).await;
        let found: Vec<String> = answer.table().into_iter().map(|row| row[0].clone()).collect();
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test]
async fn now_is_the_start_of_the_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    let first = client.run("SELECT now()").await.table();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    client
        .run("INSERT INTO ducklake_files_scheduled_for_deletion VALUES (1, 'a', true, NOW())")
        .await;
    let stored = client
        .run("SELECT schedule_start FROM ducklake_files_scheduled_for_deletion")
        .await
        .table();
    assert_eq!(first, stored);
    let before = client.run("SELECT data_file_id FROM ducklake_files_scheduled_for_deletion WHERE schedule_start < '2000-01-01 00:00:00+00'");
    assert!(before.await.rows().is_empty());
}

#[tokio::test]
async fn a_truth_value_is_cast_to_a_word() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .run("SELECT path_is_relative::text, path_is_relative FROM ducklake_schema")
        .await;
    assert_eq!(answer.table(), [["true", "t"]]);
    let answer = client
        .run("SELECT path_is_relative::\"pg_catalog\".\"varchar\"::text FROM ducklake_schema WHERE $$a$$ < 'b'")
        .await;
    assert_eq!(answer.table(), [["true"]]);
}
