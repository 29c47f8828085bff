//! Starting and stopping.

use std::time::Duration;

use moraine_server::{ServeError, Server, ServerOptions};

use crate::client::{TestServer, create_table, waiting};

#[tokio::test]
async fn anything_but_loopback_is_refused_by_name() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:5433"] {
        let options = ServerOptions::new(listen.parse().unwrap(), "memory://x".parse().unwrap());
        let error = Server::bind(options).await.expect_err("no server");
        assert!(matches!(error, ServeError::NotLoopback { .. }));
        assert!(error.to_string().contains("not a loopback address"), "{error}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_so() {
    let server = TestServer::start().await;
    let options = ServerOptions::new(server.address, "memory://x".parse().unwrap());
    let error = Server::bind(options).await.expect_err("no server");
    assert!(error.to_string().contains("cannot listen on"), "{error}");
}

#[tokio::test]
async fn a_server_that_stops_tells_whoever_is_idle_and_gives_up_what_is_open() {
    let mut server = TestServer::start().await;
    let mut open = server.connect_to_lake().await;
    let mut idle = server.connect().await;
    open.run("BEGIN").await;
    open.run(&create_table(1, "t")).await;
    server.ask_to_stop();
    for client in [&mut idle, &mut open] {
        let told = tokio::time::timeout(Duration::from_secs(5), client.until("E"));
        assert_eq!(told.await.expect("told soon").state(), "57P01");
        assert!(client.is_closed().await);
    }
    tokio::time::timeout(Duration::from_secs(5), server.wait())
        .await
        .expect("the server ends");
}

#[tokio::test]
async fn a_statement_that_runs_when_the_server_stops_comes_to_its_end() {
    let mut server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    let mut waiter = waiting(&server, &mut holder).await;
    // It waits for its turn, which comes when the holder's transaction is given up.
    waiter
        .start_query("SELECT max(snapshot_id) FROM ducklake_snapshot")
        .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.ask_to_stop();
    assert_eq!(holder.until("E").await.state(), "57P01");
    assert_eq!(waiter.until("Z").await.ok().table(), [["0"]]);
    assert_eq!(waiter.until("E").await.state(), "57P01");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
    tokio::time::timeout(Duration::from_secs(5), server.wait())
        .await
        .expect("the server ends");
}
