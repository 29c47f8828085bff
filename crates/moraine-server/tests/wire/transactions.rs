//! BEGIN to COMMIT: states, failures, and the transaction around a message.

use crate::client::{TestServer, create_table};

#[tokio::test]
async fn a_failure_right_after_begin_leaves_a_failed_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .query("BEGIN; SELECT no_such FROM ducklake_view; SELECT 1")
        .await;
    assert_eq!(answer.kinds(), "CEZ");
    assert_eq!(answer.status(), 'E');
    let refused = client.query("SELECT 1").await;
    assert_eq!((refused.state().as_str(), refused.status()), ("25P02", 'E'));
    let ended = client.run("COMMIT").await;
    assert_eq!((ended.tags(), ended.status()), (vec!["ROLLBACK".to_owned()], 'I'));
    assert_eq!(client.run("SELECT 1").await.status(), 'I');
}

#[tokio::test]
async fn a_syntax_error_runs_nothing_and_fails_the_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .query("INSERT INTO ducklake_metadata VALUES ('a', 'b', NULL, NULL); SELEC 1")
        .await;
    assert_eq!(
        (answer.kinds().as_str(), answer.state().as_str()),
        ("EZ", "42601")
    );
    assert!(
        client
            .run("SELECT key FROM ducklake_metadata WHERE key = 'a'")
            .await
            .rows()
            .is_empty()
    );
    client.run("BEGIN").await;
    assert_eq!(client.query("SELEC 1").await.status(), 'E');
}

#[tokio::test]
async fn the_statements_of_a_message_are_one_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let insert = |key: &str| format!("INSERT INTO ducklake_metadata VALUES ('{key}', 'v', NULL, NULL)");
    let failed = client
        .query(&format!(
            "{}; SELECT 1; SELECT no_such FROM ducklake_view",
            insert("a")
        ))
        .await;
    assert_eq!((failed.state().as_str(), failed.status()), ("42703", 'I'));
    assert!(
        client
            .run("SELECT key FROM ducklake_metadata WHERE key = 'a'")
            .await
            .rows()
            .is_empty()
    );
    let done = client
        .run(&format!(
            "{}; SELECT key FROM ducklake_metadata WHERE key = 'b'",
            insert("b")
        ))
        .await;
    assert_eq!(done.tags(), ["INSERT 0 1", "SELECT 1"]);
    let mut other = server.connect().await;
    assert_eq!(
        other
            .run("SELECT key FROM ducklake_metadata WHERE key = 'b'")
            .await
            .table(),
        [["b"]]
    );
}

#[tokio::test]
async fn a_transaction_reads_at_one_view_with_its_own_changes() {
    let server = TestServer::start().await;
    let mut reader = server.connect_to_lake().await;
    let mut writer = server.connect().await;
    let names = "SELECT table_name FROM ducklake_table";
    reader
        .run("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await;
    assert!(reader.run(names).await.rows().is_empty());
    writer.run("BEGIN").await;
    writer.run(&create_table(1, "t")).await;
    assert_eq!(writer.run(names).await.table(), [["t"]]);
    writer.run("COMMIT").await;
    assert!(reader.run(names).await.rows().is_empty());
    let refused = reader
        .query("DELETE FROM ducklake_table WHERE table_id = 1")
        .await;
    assert_eq!(refused.state(), "25006");
    reader.run("ROLLBACK").await;
    assert_eq!(reader.run(names).await.table(), [["t"]]);
}

#[tokio::test]
async fn a_session_can_be_read_only_unless_a_transaction_says_otherwise() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let insert = "INSERT INTO ducklake_metadata VALUES ('a', 'b', NULL, NULL)";
    for read_only in [
        "SET default_transaction_read_only TO 'on'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ] {
        client.run(read_only).await;
        assert_eq!(
            client.run("SHOW default_transaction_read_only").await.table(),
            [["on"]]
        );
        assert_eq!(client.query(insert).await.state(), "25006", "{read_only}");
        client.run("BEGIN").await;
        assert_eq!(client.query(insert).await.state(), "25006", "{read_only}");
        client.run("ROLLBACK").await;
        client.run("BEGIN READ WRITE").await;
        client.run(insert).await;
        client.run("ROLLBACK").await;
        client.run("RESET default_transaction_read_only").await;
    }
    client.run(insert).await;
    let no_word = client.query("SET default_transaction_read_only = perhaps").await;
    assert_eq!(no_word.state(), "22023");
}

#[tokio::test]
async fn rollback_leaves_nothing() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client.run(&create_table(1, "t")).await;
    client.run("ROLLBACK").await;
    assert!(
        client
            .run("SELECT table_id FROM ducklake_table")
            .await
            .rows()
            .is_empty()
    );
    client.create_table(1, "u").await;
    assert_eq!(
        client
            .run("SELECT max(snapshot_id) FROM ducklake_snapshot")
            .await
            .table(),
        [["1"]]
    );
}

#[tokio::test]
async fn beginning_twice_and_ending_nothing_are_warnings() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    assert_eq!(client.run("BEGIN; BEGIN").await.kinds(), "CNCZ");
    client.run("ROLLBACK").await;
    let ended = client.run("COMMIT").await;
    assert_eq!((ended.kinds().as_str(), ended.status()), ("NCZ", 'I'));
}

#[tokio::test]
async fn discard_all_answers_outside_of_a_transaction_and_is_refused_inside() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client.run("SET application_name = 'x'").await;
    assert_eq!(client.run("DISCARD ALL").await.tags(), ["DISCARD ALL"]);
    assert_eq!(client.run("SHOW application_name").await.table(), [[""]]);
    client.run("BEGIN").await;
    assert_eq!(client.query("DISCARD ALL").await.state(), "25001");
}

#[tokio::test]
async fn checkpoint_is_answered() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    assert_eq!(client.run("CHECKPOINT").await.tags(), ["CHECKPOINT"]);
    assert_eq!(client.run("checkpoint;").await.tags(), ["CHECKPOINT"]);
}

#[tokio::test]
async fn empty_queries_are_answered() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    for text in ["", ";", " -- nothing\n", "/* */ ;;"] {
        assert_eq!(client.query(text).await.kinds(), "IZ", "{text:?}");
    }
}
