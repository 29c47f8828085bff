//! Cancel requests.

use std::time::Duration;

use crate::client::{TestServer, waiting};

const READ: &str = "SELECT max(snapshot_id) FROM ducklake_snapshot";

#[tokio::test]
async fn a_cancel_request_ends_the_running_statement() {
    let server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    let mut waiter = waiting(&server, &mut holder).await;
    waiter.run("BEGIN").await;
    waiter.start_query(READ).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    waiter.cancel(&waiter.secret.clone()).await;
    let answer = tokio::time::timeout(Duration::from_secs(2), waiter.until("Z"))
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
    let mut waiter = waiting(&server, &mut holder).await;
    waiter.cancel(&waiter.secret.clone()).await;
    assert_eq!(waiter.run("SELECT 1").await.table(), [["1"]]);
    waiter.start_query(READ).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    waiter.cancel(&[1, 2, 3, 4]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    holder.run("COMMIT").await;
    assert_eq!(waiter.until("Z").await.ok().table(), [["1"]]);
}

#[tokio::test]
async fn a_statement_timeout_ends_the_running_statement() {
    let server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    let mut waiter = waiting(&server, &mut holder).await;
    waiter.run("SET statement_timeout = 100").await;
    assert_eq!(waiter.query(READ).await.state(), "57014");
    assert_eq!(waiter.run("SELECT 1").await.table(), [["1"]]);
}

#[tokio::test]
async fn a_subquery_that_is_run_for_each_row_can_be_stopped() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    // Everything it reads is in memory, so nothing in it ever waits.
    let endless = "SELECT count(*) FROM generate_series(1, 1000000) a(x) \
        WHERE (SELECT count(*) FROM generate_series(1, 1000) b(y) WHERE b.y > a.x) > 5";
    client.run("SET statement_timeout = 200").await;
    let answer = tokio::time::timeout(Duration::from_secs(60), client.query(endless))
        .await
        .expect("an answer long before the end");
    assert_eq!(answer.state(), "57014");
    assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
}
