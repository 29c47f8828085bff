//! Cancel requests.

use std::time::Duration;

use crate::client::{TestServer, create_table};

#[tokio::test]
async fn a_cancel_request_ends_the_running_statement() {
    let server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    let mut waiter = server.connect().await;
    holder.run("BEGIN").await;
    holder.run(&create_table(1, "a")).await;
    waiter.run("BEGIN").await;
    waiter.start_query(&create_table(1, "b")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    waiter.cancel(&waiter.secret.clone()).await;
    let answer = tokio::time::timeout(Duration::from_secs(5), waiter.until("Z"))
        .await
        .expect("an answer at once");
    assert_eq!((answer.state().as_str(), answer.status()), ("57014", 'E'));
    waiter.run("ROLLBACK").await;
    assert_eq!(waiter.run("SELECT 1").await.table(), [["1"]]);
    holder.run("COMMIT").await;
}

#[tokio::test]
async fn a_wrong_secret_and_an_idle_session_cancel_nothing() {
    let server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    let mut waiter = server.connect().await;
    waiter.cancel(&waiter.secret.clone()).await;
    assert_eq!(waiter.run("SELECT 1").await.table(), [["1"]]);
    holder.run("BEGIN").await;
    holder.run(&create_table(1, "a")).await;
    waiter.run("BEGIN").await;
    waiter
        .start_query("INSERT INTO ducklake_snapshot VALUES (1, NOW(), 1, 2, 0)")
        .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    waiter.cancel(&[1, 2, 3, 4]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    holder.run("COMMIT").await;
    assert_eq!(waiter.until("Z").await.state(), "23505");
}

#[tokio::test]
async fn a_statement_timeout_ends_the_running_statement() {
    let server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    let mut waiter = server.connect().await;
    holder.run("BEGIN").await;
    holder.run(&create_table(1, "a")).await;
    waiter.run("SET statement_timeout = 100").await;
    let answer = waiter
        .query("INSERT INTO ducklake_snapshot VALUES (1, NOW(), 1, 2, 0)")
        .await;
    assert_eq!(answer.state(), "57014");
    assert_eq!(waiter.run("SELECT 1").await.table(), [["1"]]);
}
