//! What a session keeps: settings, prepared statements, what DISCARD forgets; and where errors say they are.

use crate::client::TestServer;

#[tokio::test]
async fn settings_end_with_what_they_were_made_for() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let name = "SHOW application_name";
    client.run("SET application_name = 'a'").await;
    client.run("BEGIN; SET LOCAL application_name = 'b'").await;
    assert_eq!(client.run(name).await.table(), [["b"]]);
    client.run("COMMIT").await;
    assert_eq!(client.run(name).await.table(), [["a"]]);
    client.run("BEGIN; SET application_name = 'c'; ROLLBACK").await;
    assert_eq!(client.run(name).await.table(), [["a"]]);
    client.run("BEGIN; SET application_name = 'c'; COMMIT").await;
    assert_eq!(client.run(name).await.table(), [["c"]]);
    client.run("RESET application_name").await;
    assert_eq!(client.run(name).await.table(), [[""]]);
    let outside = client.run("SET LOCAL application_name = 'd'").await;
    assert_eq!(outside.kinds(), "NCZ");
    assert_eq!(client.run(name).await.table(), [[""]]);
    client.run("SET my.own = 'x'").await;
    assert_eq!(client.run("SHOW my.own").await.table(), [["x"]]);
    assert_eq!(
        client
            .query("SET lock_timeout = 0; SET idle_in_transaction_session_timeout = '5s'")
            .await
            .state(),
        "0A000"
    );
}

#[tokio::test]
async fn a_client_is_told_of_settings_it_follows() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client.run("SET application_name = 'a'").await;
    assert_eq!(answer.kinds(), "CSZ");
    assert_eq!(answer.of_kind('S')[0].body, b"application_name\0a\0");
    assert_eq!(client.run("SET application_name = 'a'").await.kinds(), "CZ");
    assert_eq!(client.run("DISCARD ALL").await.kinds(), "CSZ");
}

#[tokio::test]
async fn transactions_are_what_they_or_their_session_say() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let shown = ["SHOW TRANSACTION ISOLATION LEVEL", "SHOW transaction_read_only"];
    for (begin, isolation, read_only) in [
        ("BEGIN", "repeatable read", "off"),
        (
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
            "serializable",
            "on",
        ),
        (
            "BEGIN; SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "read committed",
            "off",
        ),
        ("BEGIN; SET TRANSACTION READ ONLY", "repeatable read", "on"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY; BEGIN",
            "read committed",
            "on",
        ),
    ] {
        client.run(begin).await;
        assert_eq!(client.run(shown[0]).await.table(), [[isolation]], "{begin}");
        assert_eq!(client.run(shown[1]).await.table(), [[read_only]], "{begin}");
        let write = client
            .query("DELETE FROM ducklake_metadata WHERE key = 'nothing'")
            .await;
        let refused = if read_only == "on" { "25006" } else { "" };
        assert_eq!(
            write.of_kind('E').len(),
            usize::from(read_only == "on"),
            "{begin}"
        );
        if !refused.is_empty() {
            assert_eq!(write.state(), refused, "{begin}");
        }
        client.run("ROLLBACK").await;
    }
}

#[tokio::test]
async fn statements_are_prepared_and_executed_by_name() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let prepare = "PREPARE by_key (text) AS SELECT value FROM ducklake_metadata WHERE key = $1";
    assert_eq!(client.run(prepare).await.tags(), ["PREPARE"]);
    assert_eq!(client.query(prepare).await.state(), "42P05");
    assert_eq!(client.run("EXECUTE by_key('version')").await.table(), [["1.0"]]);
    assert_eq!(client.query("EXECUTE by_key").await.state(), "42601");
    assert_eq!(client.query("EXECUTE nobody").await.state(), "26000");
    client
        .run("PREPARE change AS UPDATE ducklake_metadata SET value = $1 WHERE key = $2 RETURNING key")
        .await;
    assert_eq!(
        client.run("EXECUTE change('x', 'version')").await.table(),
        [["version"]]
    );
    assert_eq!(client.run("EXECUTE by_key('version')").await.table(), [["x"]]);
    // The protocol and SQL share their names.
    client.bind("", "by_key", &[Some(b"version")], false).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await.ok().table(), [["x"]]);
    assert_eq!(client.run("DEALLOCATE by_key").await.tags(), ["DEALLOCATE"]);
    assert_eq!(client.query("DEALLOCATE by_key").await.state(), "26000");
    client.run("DEALLOCATE ALL").await;
    assert_eq!(client.query("EXECUTE change('x', 'y')").await.state(), "26000");
}

#[tokio::test]
async fn discard_all_forgets_everything() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client
        .run("SET statement_timeout = '1min'; CREATE TEMP TABLE x (a INTEGER); PREPARE p AS SELECT 1")
        .await;
    client.run("DISCARD PLANS").await;
    client.run("EXECUTE p").await;
    client.run("DISCARD ALL").await;
    assert_eq!(client.query("EXECUTE p").await.state(), "26000");
    assert_eq!(client.query("SELECT * FROM x").await.state(), "42P01");
    assert_eq!(client.run("SHOW statement_timeout").await.table(), [["0"]]);
}

#[tokio::test]
async fn errors_say_where_they_are() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (sql, position) in [
        ("SELECT 1;\n SELEC 2", "12"),
        ("SELECT key, nope FROM ducklake_metadata", "13"),
        ("SELECT 'ä', nope FROM ducklake_metadata", "13"),
        ("SELECT * FROM nowhere", "15"),
        (
            "SELECT a.nope FROM ducklake_metadata a JOIN ducklake_schema b ON true",
            "10",
        ),
    ] {
        let answer = client.query(sql).await;
        let body = &answer.of_kind('E')[0].body;
        let told = body
            .split(|byte| *byte == 0)
            .find(|field| field.first() == Some(&b'P'));
        assert_eq!(
            told.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()),
            Some(position.to_owned()),
            "{sql}"
        );
    }
}
