//! SAVEPOINT, ROLLBACK TO, RELEASE.

use crate::client::{TestServer, create_table};

fn insert(key: &str) -> String {
    format!("INSERT INTO ducklake_metadata VALUES ('{key}', 'v', NULL, NULL)")
}

const KEYS: &str = "SELECT key FROM ducklake_metadata WHERE value = 'v' ORDER BY key";

#[tokio::test]
async fn what_came_after_a_savepoint_is_taken_back_and_what_came_before_stays() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client.run(&insert("a")).await;
    assert_eq!(client.run("SAVEPOINT s").await.tags(), ["SAVEPOINT"]);
    client.run(&insert("b")).await;
    client.run("SAVEPOINT t").await;
    client.run(&insert("c")).await;
    assert_eq!(client.run("ROLLBACK TO SAVEPOINT t").await.tags(), ["ROLLBACK"]);
    assert_eq!(client.run(KEYS).await.table(), [["a"], ["b"]]);
    client.run("ROLLBACK TO s").await;
    assert_eq!(client.run(KEYS).await.table(), [["a"]]);
    assert_eq!(client.query("ROLLBACK TO t").await.state(), "3B001");
    client.run("ROLLBACK TO s").await;
    client.run(&insert("d")).await;
    assert_eq!(client.run("RELEASE s").await.tags(), ["RELEASE"]);
    client.run("COMMIT").await;
    assert_eq!(client.run(KEYS).await.table(), [["a"], ["d"]]);
}

#[tokio::test]
async fn an_error_after_a_savepoint_costs_only_what_came_after_it() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client.run(&create_table(1, "t")).await;
    client.run("SAVEPOINT s").await;
    client.run(&insert("b")).await;
    assert_eq!(client.query("SELECT nothing").await.status(), 'E');
    assert_eq!(client.query(KEYS).await.state(), "25P02");
    assert_eq!(client.query("SAVEPOINT x").await.state(), "25P02");
    assert_eq!(client.run("ROLLBACK TO s").await.status(), 'T');
    assert!(client.run(KEYS).await.rows().is_empty());
    client.run(&insert("c")).await;
    client.run("COMMIT").await;
    assert_eq!(client.run(KEYS).await.table(), [["c"]]);
    assert_eq!(
        client.run("SELECT table_name FROM ducklake_table").await.table(),
        [["t"]]
    );
}

#[tokio::test]
async fn a_snapshot_that_was_inserted_after_a_savepoint_is_taken_back_whole() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN; SAVEPOINT s").await;
    client.run(&create_table(1, "t")).await;
    client.run("ROLLBACK TO s").await;
    assert_eq!(
        client
            .run("SELECT max(snapshot_id) FROM ducklake_snapshot")
            .await
            .table(),
        [["0"]]
    );
    client.run(&create_table(1, "u")).await;
    client.run("COMMIT").await;
    assert_eq!(
        client.run("SELECT table_name FROM ducklake_table").await.table(),
        [["u"]]
    );
}

#[tokio::test]
async fn savepoints_need_a_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for sql in ["SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"] {
        assert_eq!(client.query(sql).await.state(), "25P01", "{sql}");
    }
    client.run("BEGIN; SAVEPOINT s; COMMIT").await;
    client.run("BEGIN").await;
    assert_eq!(client.query("ROLLBACK TO s").await.state(), "3B001");
    client.run("ROLLBACK").await;
}

#[tokio::test]
async fn temporary_tables_settings_and_cursors_go_back_with_a_savepoint() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN; SAVEPOINT s").await;
    client
        .run("CREATE TEMP TABLE x (a INTEGER); SET application_name = 'b'")
        .await;
    client.run("DECLARE c CURSOR FOR SELECT 1").await;
    client.run("ROLLBACK TO s").await;
    assert_eq!(client.run("SHOW application_name").await.table(), [[""]]);
    client.run("SAVEPOINT t").await;
    assert_eq!(client.query("FETCH c").await.state(), "34000");
    client.run("ROLLBACK TO t").await;
    assert_eq!(client.query("SELECT * FROM x").await.state(), "42P01");
}
