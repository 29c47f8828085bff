//! Clients that go away without a word.

use std::time::Duration;

use crate::client::{TestServer, create_table};

#[tokio::test]
async fn a_client_that_vanishes_in_a_transaction_leaves_nothing() {
    let server = TestServer::start().await;
    let mut gone = server.connect_to_lake().await;
    let mut other = server.connect().await;
    gone.run("BEGIN").await;
    gone.run(&create_table(1, "a")).await;
    drop(gone);
    let commit = async {
        other.run("BEGIN").await;
        other.run(&create_table(1, "b")).await;
        other.run("COMMIT").await;
    };
    tokio::time::timeout(Duration::from_secs(5), commit)
        .await
        .expect("the commit slot is free at once");
    assert_eq!(
        other.run("SELECT table_name FROM ducklake_table").await.table(),
        [["b"]]
    );
}

#[tokio::test]
async fn a_client_that_vanishes_in_a_copy_leaves_nothing() {
    let server = TestServer::start().await;
    let mut gone = server.connect_to_lake().await;
    let mut other = server.connect().await;
    gone.start_query("COPY ducklake_metadata FROM STDIN").await;
    gone.until("G").await;
    gone.send('d', b"k\tv\t\\N\t\\N\n").await;
    drop(gone);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(
        other
            .run("SELECT key FROM ducklake_metadata WHERE key = 'k'")
            .await
            .rows()
            .is_empty()
    );
}

#[tokio::test]
async fn a_client_that_vanishes_while_it_creates_a_lake_lets_the_next_one_do_it() {
    let server = TestServer::start().await;
    let mut gone = server.connect().await;
    gone.begin_lake("public").await;
    drop(gone);
    let mut other = server.connect().await;
    let created = tokio::time::timeout(Duration::from_secs(5), other.create_lake("public")).await;
    created.expect("the creation is free at once");
    assert_eq!(
        other
            .run("SELECT snapshot_id FROM ducklake_snapshot")
            .await
            .table(),
        [["0"]]
    );
}

#[tokio::test]
async fn a_terminated_session_is_closed() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client.send('X', &[]).await;
    assert!(client.is_closed().await);
}
