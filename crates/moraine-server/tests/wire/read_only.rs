//! Servers that only read, beside one that writes and at a checkpoint; lakes that nobody uses.

use std::time::Duration;

use moraine_server::{Access, CatalogOptions, ReadPoint};
use moraine_store::checkpoints::{self, MadeBy, NewCheckpoint};
use moraine_store::{OpenOptions, StoreUrl};

use crate::client::{Client, TestServer, create_table};

const TABLES: &str = "SELECT table_name FROM ducklake_table";

fn reading(point: ReadPoint) -> CatalogOptions {
    CatalogOptions {
        access: Access::Read(point),
        ..CatalogOptions::default()
    }
}

fn following() -> CatalogOptions {
    reading(ReadPoint::Newest {
        poll_interval: Duration::from_millis(20),
    })
}

/// Waits until a client sees these tables.
async fn until_tables(client: &mut Client, expected: &[[&str; 1]]) {
    let seen = tokio::time::timeout(Duration::from_secs(30), async {
        while client.run(TABLES).await.table() != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    seen.await.expect("the reader comes to see it");
}

#[tokio::test]
async fn any_number_of_readers_follow_a_writer_that_goes_on() {
    let root = "memory://wire-readers-follow";
    let server = TestServer::start_at(root).await;
    let mut writer = server.connect_to_lake().await;
    writer.create_table(1, "a").await;
    let readers = [
        TestServer::start_as(root, following()).await,
        TestServer::start_as(root, following()).await,
    ];
    let mut clients = [readers[0].connect().await, readers[1].connect().await];
    for client in &mut clients {
        assert_eq!(client.run(TABLES).await.table(), [["a"]]);
    }
    let [pinned, other] = &mut clients;
    pinned.run("BEGIN").await;
    assert_eq!(pinned.run(TABLES).await.table(), [["a"]]);
    writer.create_table(2, "b").await;
    until_tables(other, &[["a"], ["b"]]).await;
    assert_eq!(pinned.run(TABLES).await.table(), [["a"]]);
    pinned.run("COMMIT").await;
    until_tables(pinned, &[["a"], ["b"]]).await;
    writer.create_table(3, "c").await;
}

#[tokio::test]
async fn every_change_is_refused_by_a_server_that_only_reads() {
    let root = "memory://wire-readers-refuse";
    let server = TestServer::start_at(root).await;
    let mut writer = server.connect_to_lake().await;
    writer.create_table(1, "a").await;
    let reader = TestServer::start_as(root, following()).await;
    let mut client = reader.connect().await;
    for change in [
        create_table(2, "b").as_str(),
        "INSERT INTO ducklake_metadata VALUES ('a', 'b', NULL, NULL)",
        "UPDATE ducklake_metadata SET value = 'x' WHERE key = 'version'",
        "DELETE FROM ducklake_table",
        "DELETE FROM ducklake_table USING ducklake_schema WHERE ducklake_table.schema_id = ducklake_schema.schema_id",
        "CREATE SCHEMA annex",
        "CREATE TABLE public.ducklake_inlined_data_1_1 (row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, a BIGINT)",
        "BEGIN READ WRITE; DELETE FROM ducklake_table",
    ] {
        let (state, message) = client.query(change).await.error();
        assert_eq!(state, "25006", "{change}: {message}");
        let message = message.to_lowercase();
        for word in ["primary key", "unique", "conflict", "concurrent"] {
            assert!(!message.contains(word), "{change}: {message}");
        }
        client.query("ROLLBACK").await;
    }
    for (setting, value) in [("in_hot_standby", "on"), ("transaction_read_only", "on")] {
        assert_eq!(client.run(&format!("SHOW {setting}")).await.table(), [[value]]);
    }
    assert_eq!(client.run(TABLES).await.table(), [["a"]]);
    let mut nowhere = Client::connect(reader.address, "nowhere").await;
    assert_eq!(nowhere.query(TABLES).await.state(), "42P01");
    writer.create_table(2, "b").await;
}

#[tokio::test]
async fn a_server_at_a_checkpoint_stays_there() {
    let root = "memory://wire-readers-checkpoint";
    let server = TestServer::start_at(root).await;
    let mut writer = server.connect_to_lake().await;
    writer.create_table(1, "a").await;
    let url: StoreUrl = format!("{root}/catalog/lake/public").parse().unwrap();
    let new = NewCheckpoint {
        name: "before".to_owned(),
        lifetime: None,
        by: MadeBy::Writer,
    };
    checkpoints::create(&url, &OpenOptions::default(), &new)
        .await
        .unwrap();
    writer.create_table(2, "b").await;
    let point = ReadPoint::Checkpoint("before".to_owned());
    let reader = TestServer::start_as(root, reading(point)).await;
    let mut client = reader.connect().await;
    assert_eq!(client.run(TABLES).await.table(), [["a"]]);
    writer.create_table(3, "c").await;
    assert_eq!(client.run(TABLES).await.table(), [["a"]]);
    let point = ReadPoint::Checkpoint("after".to_owned());
    let reader = TestServer::start_as(root, reading(point)).await;
    let (_, message) = reader.connect().await.query(TABLES).await.error();
    assert!(
        message.contains("\"after\"") && message.contains("before"),
        "{message}"
    );
}

#[tokio::test]
async fn a_lake_that_nobody_uses_is_closed_and_its_clients_do_not_notice() {
    let root = "memory://wire-readers-idle";
    let server = TestServer::start_idle(root, Duration::from_millis(100)).await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "a").await;
    client.run("BEGIN").await;
    assert_eq!(client.run(TABLES).await.table(), [["a"]]);
    let url: StoreUrl = format!("{root}/catalog/lake/public").parse().unwrap();
    let options = OpenOptions::default();
    assert!(
        checkpoints::is_served(&url, &options).await.unwrap(),
        "a transaction uses it"
    );
    client.run("COMMIT").await;
    assert!(
        !checkpoints::is_served(&url, &options).await.unwrap(),
        "nobody has it open"
    );
    client.create_table(2, "b").await;
    assert_eq!(client.run(TABLES).await.table(), [["a"], ["b"]]);
}

#[tokio::test]
async fn a_lake_that_another_has_opened_meanwhile_is_not_taken_back_while_it_is_used() {
    let root = "memory://wire-readers-idle-taken";
    let first = TestServer::start_idle(root, Duration::from_millis(100)).await;
    let mut client = first.connect_to_lake().await;
    client.create_table(1, "a").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = TestServer::start_at(root).await;
    let mut successor = second.connect().await;
    assert_eq!(successor.run(TABLES).await.table(), [["a"]]);
    let (state, message) = client.query(TABLES).await.error();
    assert_eq!(state, "57P03", "{message}");
    successor.create_table(2, "b").await;
}

#[tokio::test]
async fn a_lake_that_a_command_has_had_open_meanwhile_is_opened_again() {
    let root = "memory://wire-readers-idle-command";
    let server = TestServer::start_idle(root, Duration::from_millis(100)).await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "a").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let url: StoreUrl = format!("{root}/catalog/lake/public").parse().unwrap();
    let command = moraine_store::open(&url, &OpenOptions::default()).await.unwrap();
    moraine_store::Store::close(command.as_ref()).await.unwrap();
    drop(command);
    client.create_table(2, "b").await;
    assert_eq!(client.run(TABLES).await.table(), [["a"], ["b"]]);
}
