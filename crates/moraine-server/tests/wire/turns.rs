//! Whose turn it is: second tries on other connections, silent clients, two servers on one lake.

use std::time::Duration;

use moraine_server::CatalogOptions;

use crate::client::{Answer, Client, TestServer, create_table, waiting};

/// How DuckLake opens a second try.
const CONFLICT_CHECK: &str =
    "COPY (SELECT \"table_id\" FROM \"public\".\"ducklake_table_stats\" ) TO STDOUT (FORMAT \"binary\");";

#[tokio::test]
async fn a_second_try_is_known_on_another_connection_of_its_process() {
    let server = TestServer::start().await;
    let mut winner = server.connect_to_lake().await;
    let mut other = server.connect().await;
    drop(waiting(&server, &mut winner).await);
    other.run("BEGIN").await;
    other.start_query(CONFLICT_CHECK).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    winner.run("COMMIT").await;
    other.until("Z").await.ok();
    // One of whom nothing is known: it does not wait, and finds the turn taken.
    let mut late = server.connect().await;
    late.run("BEGIN").await;
    assert_eq!(late.query(&create_table(2, "late")).await.state(), "40001");
    other.run(&create_table(2, "b")).await;
    other.run("COMMIT").await;
}

#[tokio::test]
async fn a_client_that_falls_silent_delays_others_by_a_deadline() {
    let catalog = CatalogOptions {
        slot_idle: Duration::from_millis(200),
        ..CatalogOptions::default()
    };
    let server = TestServer::start_with(catalog).await;
    let mut silent = server.connect_to_lake().await;
    let mut second = waiting(&server, &mut silent).await;
    tokio::time::timeout(Duration::from_secs(4), second.create_table(1, "b"))
        .await
        .expect("the deadline is 200 ms");
    let late = silent.query("COMMIT").await;
    assert_eq!((late.state().as_str(), late.status()), ("40001", 'I'));
    assert_eq!(
        second.run("SELECT table_name FROM ducklake_table").await.table(),
        [["b"]]
    );
}

#[tokio::test]
async fn times_of_snapshots_are_in_order_whatever_began_first() {
    let server = TestServer::start().await;
    let mut early = server.connect_to_lake().await;
    let mut late = server.connect().await;
    // NOW() is the time of BEGIN; what is read is pinned later.
    early.run("BEGIN").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    late.create_table(1, "a").await;
    early.run(&create_table(2, "b")).await;
    early.run("COMMIT").await;
    let ordered = late
        .run("SELECT snapshot_id, snapshot_time FROM ducklake_snapshot")
        .await
        .table();
    let times: Vec<&String> = ordered.iter().map(|row| &row[1]).collect();
    assert_eq!(times.len(), 3);
    assert!(times.is_sorted() && times[1] != times[2], "{times:?}");
}

/// The words on which DuckLake tries again.
fn invites_retry(message: &str) -> bool {
    let message = message.to_lowercase();
    ["primary key", "unique", "conflict", "concurrent"]
        .iter()
        .any(|word| message.contains(word))
}

#[tokio::test]
async fn a_second_server_takes_over_and_each_session_of_the_first_is_told_once() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    let first = TestServer::start_at(root).await;
    let mut committing = first.connect_to_lake().await;
    let mut reading = first.connect().await;
    let mut idle = first.connect().await;
    committing.create_table(1, "a").await;
    idle.run("SELECT table_name FROM ducklake_table").await;
    reading.run("BEGIN").await;
    reading.run("SELECT table_name FROM ducklake_table").await;
    committing.run("BEGIN").await;
    committing.run(&create_table(2, "lost")).await;

    let second = TestServer::start_at(root).await;
    let mut successor = second.connect().await;
    assert_eq!(
        successor
            .run("SELECT table_name FROM ducklake_table")
            .await
            .table(),
        [["a"]]
    );

    let told = |answer: Answer, who: &str| {
        let (state, message) = answer.error();
        assert_eq!(state, "57P03", "{who}: {message}");
        assert!(!invites_retry(&message), "{who}: {message}");
        assert!(message.contains("taken over"), "{who}: {message}");
    };
    const READ: &str = "SELECT table_name FROM ducklake_table";
    told(committing.query("COMMIT").await, "a session that commits");
    told(idle.query(READ).await, "a session that begins");
    // What it has read before was so, and is durable.
    reading.run("COMMIT").await;
    told(reading.query(READ).await, "a session that has read");
    // Nobody takes the lake back by asking.
    let mut again = first.connect().await;
    told(again.query(READ).await, "a new session");
    successor.create_table(2, "b").await;
    assert_eq!(
        successor
            .run("SELECT table_name FROM ducklake_table")
            .await
            .table(),
        [["a"], ["b"]]
    );
    let mut elsewhere = Client::connect(first.address, "another").await;
    elsewhere.create_lake("public").await;
}

#[tokio::test]
async fn a_server_that_was_idle_learns_of_its_successor_before_it_answers() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    let mut catalog = CatalogOptions::default();
    // It is always long ago that it was sure.
    catalog.store.ownership_age_max = Duration::ZERO;
    let first = TestServer::start_as(root, catalog).await;
    let mut reading = first.connect_to_lake().await;
    reading.create_table(1, "a").await;
    const READ: &str = "SELECT table_name FROM ducklake_table";
    assert_eq!(reading.run(READ).await.table(), [["a"]]);
    let second = TestServer::start_at(root).await;
    let mut successor = second.connect().await;
    assert_eq!(successor.run(READ).await.table(), [["a"]]);
    successor.create_table(2, "b").await;
    let (state, message) = reading.query(READ).await.error();
    assert_eq!(state, "57P03", "{message}");
    assert!(message.contains("taken over"), "{message}");
}

/// How DuckLake opens any other transaction.
const NEWEST_SNAPSHOT: &str = "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id = (SELECT MAX(snapshot_id) FROM ducklake_snapshot)";
/// The files of a table, as DuckLake lists them to delete rows.
const FILES_TO_DELETE_FROM: &str = "COPY (SELECT \"delete_file_id\", \"path\" FROM \"ducklake_delete_file\" WHERE \"table_id\" = '1') TO STDOUT (FORMAT \"binary\");";
/// The same, to read them.
const FILES_TO_READ: &str = "COPY (SELECT \"data_file_id\", \"path\" FROM \"ducklake_data_file\" WHERE \"table_id\" = '1') TO STDOUT (FORMAT \"binary\");";

/// A client that has its turn and is about to update, and another one that has begun.
async fn one_updating_and_another(server: &TestServer) -> (Client, Client) {
    let mut first = server.connect_to_lake().await;
    let mut second = server.connect().await;
    first.create_table(1, "a").await;
    first.run("BEGIN").await;
    assert_eq!(first.run(NEWEST_SNAPSHOT).await.table(), [["1"]]);
    first.run(FILES_TO_DELETE_FROM).await;
    second.run("BEGIN").await;
    (first, second)
}

#[tokio::test]
async fn who_may_be_about_to_update_reads_when_its_turn_comes() {
    let server = TestServer::start().await;
    let (mut first, mut second) = one_updating_and_another(&server).await;
    second.start_query(NEWEST_SNAPSHOT).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    first.run(&create_table(2, "b")).await;
    first.run("COMMIT").await;
    let seen = second.until("Z").await.ok();
    assert_eq!(seen.table(), [["2"]], "it has not read before");
    second.run(&create_table(3, "c")).await;
    second.run("COMMIT").await;
}

#[tokio::test]
async fn a_query_is_prepared_when_its_turn_is_near_and_read_when_it_comes() {
    let server = TestServer::start().await;
    let (mut first, mut second) = one_updating_and_another(&server).await;
    // As DuckDB's postgres_query does, which sleeps here and would not in a COPY.
    second.parse("", NEWEST_SNAPSHOT, &[]).await;
    second.send('D', b"S\0").await;
    second.send('S', &[]).await;
    let pause = Duration::from_millis(50);
    assert!(tokio::time::timeout(pause, second.message()).await.is_err());
    first.run(&create_table(2, "b")).await;
    assert_eq!(second.until("Z").await.ok().kinds(), "1tTZ");
    second.start_query(NEWEST_SNAPSHOT).await;
    assert!(tokio::time::timeout(pause, second.message()).await.is_err());
    first.run("COMMIT").await;
    assert_eq!(second.until("Z").await.ok().table(), [["2"]]);
    second.run(&create_table(3, "c")).await;
    second.run("COMMIT").await;
}

#[tokio::test]
async fn a_wait_for_a_turn_where_a_query_is_prepared_can_be_ended() {
    let server = TestServer::start().await;
    let (mut first, mut second) = one_updating_and_another(&server).await;
    second.parse("", NEWEST_SNAPSHOT, &[]).await;
    second.send('S', &[]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    second.cancel(&second.secret.clone()).await;
    let soon = Duration::from_secs(2);
    let answer = tokio::time::timeout(soon, second.until("Z")).await.unwrap();
    assert_eq!((answer.state().as_str(), answer.status()), ("57014", 'E'));
    second.run("ROLLBACK").await;
    second.run("SET statement_timeout = 100").await;
    second.run("BEGIN").await;
    second.parse("", NEWEST_SNAPSHOT, &[]).await;
    let answer = tokio::time::timeout(soon, second.sync()).await.unwrap();
    assert_eq!((answer.state().as_str(), answer.status()), ("57014", 'E'));
    second.run("ROLLBACK").await;
    // One that was prepared before waits where it is described.
    second.parse("newest", NEWEST_SNAPSHOT, &[]).await;
    second.sync().await.ok();
    second.run("BEGIN").await;
    second.send('D', b"Snewest\0").await;
    let answer = tokio::time::timeout(soon, second.sync()).await.unwrap();
    assert_eq!((answer.state().as_str(), answer.status()), ("57014", 'E'));
    second.run("ROLLBACK").await;
    second.run("SET statement_timeout = 0").await;
    second.run("BEGIN").await;
    second.send('D', b"Snewest\0").await;
    second.send('S', &[]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    second.cancel(&second.secret.clone()).await;
    let answer = tokio::time::timeout(soon, second.until("Z")).await.unwrap();
    assert_eq!((answer.state().as_str(), answer.status()), ("57014", 'E'));
    second.run("ROLLBACK").await;
    first.run(&create_table(2, "b")).await;
    first.run("COMMIT").await;
    assert_eq!(second.run(NEWEST_SNAPSHOT).await.table(), [["2"]]);
}

#[tokio::test]
async fn nobody_waits_for_who_only_reads() {
    let catalog = CatalogOptions {
        reservation: Duration::from_secs(3600),
        ..CatalogOptions::default()
    };
    let server = TestServer::start_with(catalog).await;
    let mut writer = server.connect_to_lake().await;
    writer.create_table(1, "a").await;
    let mut readers = Vec::new();
    for _ in 0..4 {
        let mut reader = server.connect().await;
        reader.run("BEGIN").await;
        assert_eq!(reader.run(NEWEST_SNAPSHOT).await.table(), [["1"]]);
        reader.run(FILES_TO_READ).await;
        readers.push(reader);
    }
    writer.create_table(2, "b").await;
    for mut reader in readers {
        assert_eq!(reader.run(NEWEST_SNAPSHOT).await.table(), [["1"]]);
        reader.run("COMMIT").await;
    }
}
