//! Starting and stopping.

use std::time::Duration;

use moraine_server::{ServeError, Server, ServerOptions};

use crate::client::{TestServer, create_table};

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
async fn a_server_that_stops_lets_open_transactions_end() {
    let mut server = TestServer::start().await;
    let mut busy = server.connect_to_lake().await;
    let mut idle = server.connect().await;
    busy.run("BEGIN").await;
    busy.run(&create_table(1, "t")).await;
    server.ask_to_stop();
    assert!(
        tokio::time::timeout(Duration::from_secs(5), idle.is_closed())
            .await
            .expect("closed soon")
    );
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
    assert_eq!(busy.run("COMMIT").await.tags(), ["COMMIT"]);
    assert!(busy.is_closed().await);
    tokio::time::timeout(Duration::from_secs(5), server.wait())
        .await
        .expect("the server ends");
}
