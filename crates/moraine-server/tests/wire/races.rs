//! Two clients at once: who wins a snapshot, and what the loser is told when.

use std::time::Duration;

use crate::client::{TestServer, create_table};

/// The words on which DuckLake tries again.
fn invites_retry(message: &str) -> bool {
    let message = message.to_lowercase();
    ["primary key", "unique", "conflict", "concurrent"]
        .iter()
        .any(|word| message.contains(word))
}

#[tokio::test]
async fn a_lost_race_fails_at_the_insert_of_the_snapshot() {
    let server = TestServer::start().await;
    let mut first = server.connect_to_lake().await;
    let mut second = server.connect().await;
    for client in [&mut first, &mut second] {
        client
            .run("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            .await;
        client.run("SELECT max(snapshot_id) FROM ducklake_snapshot").await;
    }
    first.run(&create_table(1, "a")).await;
    first.run("COMMIT").await;
    let lost = second
        .query("INSERT INTO ducklake_snapshot VALUES (1, NOW(), 1, 2, 0)")
        .await;
    assert_eq!((lost.state().as_str(), lost.status()), ("23505", 'E'));
    assert_eq!(
        lost.error().1,
        "duplicate key value violates unique constraint \"ducklake_snapshot_pkey\""
    );
    assert_eq!(second.run("ROLLBACK").await.tags(), ["ROLLBACK"]);
    second.run("BEGIN").await;
    second.run(&create_table(2, "b")).await;
    assert_eq!(second.run("COMMIT").await.tags(), ["COMMIT"]);
}

#[tokio::test]
async fn who_comes_while_another_commits_is_refused_at_once() {
    let server = TestServer::start().await;
    let mut first = server.connect_to_lake().await;
    let mut second = server.connect().await;
    for client in [&mut first, &mut second] {
        client.run("BEGIN").await;
        client.run("SELECT max(snapshot_id) FROM ducklake_snapshot").await;
    }
    first.run(&create_table(1, "a")).await;
    let refused = second.query(&create_table(1, "b")).await;
    assert_eq!((refused.state().as_str(), refused.status()), ("40001", 'E'));
    assert!(invites_retry(&refused.error().1));
    first.run("COMMIT").await;
}

#[tokio::test]
async fn who_has_lost_goes_first_at_its_next_begin() {
    let server = TestServer::start().await;
    let mut winner = server.connect_to_lake().await;
    let mut loser = server.connect().await;
    let mut third = server.connect().await;
    for client in [&mut winner, &mut loser, &mut third] {
        client.run("BEGIN").await;
        client.run("SELECT max(snapshot_id) FROM ducklake_snapshot").await;
    }
    winner.run(&create_table(1, "winner")).await;
    loser.query(&create_table(1, "loser")).await.state();
    loser.run("ROLLBACK").await;
    // What a pool does between two uses of a connection takes nothing from it.
    loser.run("DISCARD ALL").await;
    loser.run("SELECT 1").await;
    loser.run("BEGIN").await;
    // The turn comes when the winner is done, and what is read then is what the winner left.
    loser
        .start_query("SELECT max(snapshot_id) FROM ducklake_snapshot")
        .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    winner.run("COMMIT").await;
    assert_eq!(loser.until("Z").await.ok().table(), [["1"]]);
    third.run("ROLLBACK").await;
    third.run("BEGIN").await;
    assert_eq!(third.query(&create_table(2, "third")).await.state(), "40001");
    loser.run(&create_table(2, "loser")).await;
    loser.run("COMMIT").await;
    assert_eq!(
        loser.run("SELECT table_name FROM ducklake_table").await.table(),
        [["winner"], ["loser"]]
    );
}

#[tokio::test]
async fn the_second_wins_when_the_first_gives_up() {
    for gives_up_by in ["ROLLBACK", "an error", "closing"] {
        let server = TestServer::start().await;
        let mut first = server.connect_to_lake().await;
        let mut second = server.connect().await;
        first.run("BEGIN").await;
        first.run(&create_table(1, "a")).await;
        second.run("BEGIN").await;
        match gives_up_by {
            "ROLLBACK" => drop(first.run("ROLLBACK").await),
            "an error" => drop(first.query("SELECT no_such FROM ducklake_view").await),
            _ => {
                drop(first);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        let won = second.query(&create_table(1, "b")).await;
        assert!(
            won.of_kind('E').is_empty(),
            "the slot was not released by {gives_up_by}: {:?}",
            won.error()
        );
        second.run("COMMIT").await;
        assert_eq!(
            second.run("SELECT table_name FROM ducklake_table").await.table(),
            [["b"]]
        );
    }
}

#[tokio::test]
async fn no_other_error_invites_a_retry() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for sql in [
        "SELECT \"unique conflict\" FROM ducklake_view",
        "SELECT * FROM \"concurrent primary key\"",
        "SELECT begin_snapshot FROM ducklake_view WHERE view_id = 'primary key'",
        "INSERT INTO ducklake_table (table_id) VALUES ('a unique conflict')",
    ] {
        let (state, message) = client.query(sql).await.error();
        assert!(!invites_retry(&message), "{sql}: {state} {message}");
    }
}

#[tokio::test]
async fn two_first_attaches_at_the_same_moment_both_succeed() {
    let server = TestServer::start().await;
    let create = |mut client: crate::client::Client| async move {
        client.create_lake("public").await;
        client
    };
    let (first, second) = (server.connect().await, server.connect().await);
    let first = tokio::spawn(create(first));
    let second = tokio::spawn(create(second));
    let mut client = first.await.unwrap();
    drop(second.await.unwrap());
    assert_eq!(
        client
            .run("SELECT snapshot_id FROM ducklake_snapshot")
            .await
            .table(),
        [["0"]]
    );
    assert_eq!(
        client
            .run("SELECT schema_name FROM ducklake_schema")
            .await
            .table(),
        [["main"]]
    );
    client.create_table(1, "t").await;
}
