//! The extended query protocol, by hand and through a driver.

use tokio_postgres::NoTls;
use tokio_postgres::types::Type;

use crate::client::{Client, TestServer, create_table};

/// A driver's connection to database `lake`.
pub(crate) async fn driver(server: &TestServer) -> tokio_postgres::Client {
    let config = format!(
        "host=127.0.0.1 port={} user=tester dbname=lake",
        server.address.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn parse(client: &mut Client, name: &str, sql: &str) {
    let mut body = name.as_bytes().to_vec();
    body.push(0);
    body.extend(sql.as_bytes());
    body.extend([0, 0, 0]);
    client.send('P', &body).await;
}

/// What DuckDB's `postgres_query` does at bind: Parse and Describe, each with its own Sync, and never Execute.
#[tokio::test]
async fn a_statement_is_described_without_being_run() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client
        .run("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .await;
    let sql = "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM public.ducklake_snapshot \
               WHERE snapshot_id = (SELECT MAX(snapshot_id) FROM public.ducklake_snapshot)";
    parse(&mut client, "", sql).await;
    client.send('S', &[]).await;
    let parsed = client.until("Z").await;
    assert_eq!((parsed.kinds().as_str(), parsed.status()), ("1Z", 'T'));
    client.send('D', b"S\0").await;
    client.send('S', &[]).await;
    let described = client.until("Z").await;
    assert_eq!((described.kinds().as_str(), described.status()), ("tTZ", 'T'));
    let body = &described.of_kind('T')[0].body;
    let bigint = [0, 0, 0, 20, 0, 8];
    assert_eq!(body.windows(6).filter(|window| *window == bigint).count(), 4);
}

#[tokio::test]
async fn an_error_is_told_once_and_the_rest_up_to_sync_is_skipped() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    parse(&mut client, "", "SELECT no_such FROM ducklake_view").await;
    client.send('B', &[0, 0, 0, 0, 0, 0, 0, 0]).await;
    client.send('E', &[0, 0, 0, 0, 0]).await;
    parse(&mut client, "", "SELECT 1").await;
    client.send('S', &[]).await;
    let answer = client.until("Z").await;
    assert_eq!((answer.kinds().as_str(), answer.status()), ("EZ", 'E'));
    assert_eq!(answer.state(), "42703");
    parse(&mut client, "", "SELECT 1").await;
    client.send('D', b"S\0").await;
    client.send('S', &[]).await;
    assert_eq!(client.until("Z").await.state(), "25P02");
    assert_eq!(client.run("ROLLBACK").await.status(), 'I');
}

#[tokio::test]
async fn an_error_of_parse_and_bind_fails_an_open_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (sql, statement, state) in [("SELEC", "", "42601"), ("SELECT 1", "nobody", "26000")] {
        client.run("BEGIN").await;
        parse(&mut client, "", sql).await;
        let bind = [b"\0", statement.as_bytes(), &[0, 0, 0, 0, 0, 0, 0]].concat();
        client.send('B', &bind).await;
        client.send('S', &[]).await;
        let answer = client.until("Z").await;
        assert_eq!((answer.state().as_str(), answer.status()), (state, 'E'));
        assert_eq!(client.query("SELECT 1").await.state(), "25P02");
        client.run("ROLLBACK").await;
    }
}

#[tokio::test]
async fn a_driver_reads_typed_rows_and_binds_parameters() {
    let server = TestServer::start().await;
    server.connect_to_lake().await.create_table(1, "t").await;
    let mut client = driver(&server).await;
    let statement = client.prepare("SELECT table_id, table_name, end_snapshot, path_is_relative FROM ducklake_table WHERE table_id = $1 AND table_name = $2").await.unwrap();
    assert_eq!(statement.params(), [Type::INT8, Type::VARCHAR]);
    let rows = client.query(&statement, &[&1i64, &"t"]).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, i64>(0), 1);
    assert_eq!(rows[0].get::<_, &str>(1), "t");
    assert_eq!(rows[0].get::<_, Option<i64>>(2), None);
    assert!(rows[0].get::<_, bool>(3));
    assert!(client.query(&statement, &[&2i64, &"t"]).await.unwrap().is_empty());
    let one: i32 = client.query_one("SELECT 1", &[]).await.unwrap().get(0);
    assert_eq!(one, 1);

    let transaction = client.transaction().await.unwrap();
    let changed = transaction
        .execute(
            "UPDATE ducklake_table SET end_snapshot = $1 WHERE table_id = $2",
            &[&2i64, &1i64],
        )
        .await
        .unwrap();
    assert_eq!(changed, 1);
    transaction.rollback().await.unwrap();
    let ended: Option<i64> = client
        .query_one("SELECT end_snapshot FROM ducklake_table", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(ended, None);
    let inserted = client
        .execute(
            "INSERT INTO ducklake_metadata VALUES ($1, $2, NULL, NULL)",
            &[&"k", &"v"],
        )
        .await
        .unwrap();
    assert_eq!(inserted, 1);
}

#[tokio::test]
async fn a_portal_gives_its_rows_in_portions() {
    let server = TestServer::start().await;
    server.connect_to_lake().await;
    let mut client = driver(&server).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction
        .bind("SELECT key FROM ducklake_metadata ORDER BY key", &[])
        .await
        .unwrap();
    let mut keys = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 3).await.unwrap();
        if rows.is_empty() {
            break;
        }
        keys.push(rows.len());
    }
    assert_eq!(keys, [3, 1]);
}

#[tokio::test]
async fn a_driver_gets_sqlstates_and_goes_on() {
    let server = TestServer::start().await;
    server.connect_to_lake().await;
    let client = driver(&server).await;
    for (sql, state) in [
        ("SELECT * FROM orders", "42P01"),
        ("SELECT nope FROM ducklake_table", "42703"),
        (
            "SELECT key FROM ducklake_metadata TABLESAMPLE SYSTEM (1)",
            "0A000",
        ),
        ("SELEC", "42601"),
        ("SELECT 1; SELECT 2", "42601"),
    ] {
        let error = client.query(sql, &[]).await.unwrap_err();
        assert_eq!(
            error.code().map(tokio_postgres::error::SqlState::code),
            Some(state),
            "{sql}: {error}"
        );
    }
    assert_eq!(client.query("SELECT 1", &[]).await.unwrap().len(), 1);
    assert!(client.query("", &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_driver_copies_both_ways() {
    use futures::{SinkExt, StreamExt};
    let server = TestServer::start().await;
    server.connect_to_lake().await;
    let client = driver(&server).await;
    let sink = client
        .copy_in("COPY ducklake_metadata (key, value) FROM STDIN")
        .await
        .unwrap();
    futures::pin_mut!(sink);
    sink.send(bytes::Bytes::from_static(b"k\tv\n")).await.unwrap();
    assert_eq!(sink.finish().await.unwrap(), 1);
    let stream = client
        .copy_out("COPY (SELECT value FROM ducklake_metadata WHERE key = 'k') TO STDOUT")
        .await
        .unwrap();
    futures::pin_mut!(stream);
    let mut data = Vec::new();
    while let Some(piece) = stream.next().await {
        data.extend(piece.unwrap());
    }
    assert_eq!(data, b"v\n");
}

#[tokio::test]
async fn a_driver_cancels() {
    let server = TestServer::start().await;
    let mut holder = server.connect_to_lake().await;
    holder.run("BEGIN").await;
    holder.run(&create_table(1, "a")).await;
    let client = driver(&server).await;
    let token = client.cancel_token();
    let lost = client.batch_execute(&create_table(1, "b")).await.unwrap_err();
    assert_eq!(
        lost.code().map(tokio_postgres::error::SqlState::code),
        Some("40001")
    );
    let waiting = client.batch_execute("SELECT max(snapshot_id) FROM ducklake_snapshot");
    let cancel = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        token.cancel_query(NoTls).await.unwrap();
    };
    let (waited, ()) = futures::join!(waiting, cancel);
    assert_eq!(
        waited
            .unwrap_err()
            .code()
            .map(tokio_postgres::error::SqlState::code),
        Some("57014")
    );
}
