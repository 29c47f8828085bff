//! DECLARE, FETCH, MOVE, CLOSE.

use crate::client::TestServer;

const DECLARE: &str = "DECLARE c CURSOR FOR SELECT key FROM ducklake_metadata ORDER BY key";

#[tokio::test]
async fn a_cursor_gives_its_rows_bit_by_bit() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    assert_eq!(client.run(DECLARE).await.tags(), ["DECLARE CURSOR"]);
    // What is changed after it was opened, it does not see.
    client.run("DELETE FROM ducklake_metadata").await;
    let answer = client.run("FETCH 2 FROM c").await;
    assert_eq!(answer.table(), [["created_by"], ["data_path"]]);
    assert_eq!(answer.tags(), ["FETCH 2"]);
    assert_eq!(client.run("FETCH NEXT IN c").await.table(), [["encrypted"]]);
    assert_eq!(client.query("FETCH PRIOR FROM c").await.state(), "55000");
    client.run("ROLLBACK").await;
    client.run("BEGIN").await;
    client.run(DECLARE).await;
    assert_eq!(client.run("MOVE FORWARD 3 FROM c").await.tags(), ["MOVE 3"]);
    assert_eq!(
        client.run("FETCH FORWARD ALL FROM c").await.table(),
        [["version"]]
    );
    assert_eq!(client.run("FETCH c").await.tags(), ["FETCH 0"]);
    assert_eq!(client.run("CLOSE c").await.tags(), ["CLOSE CURSOR"]);
    assert_eq!(client.query("FETCH c").await.state(), "34000");
    client.run("ROLLBACK").await;
}

#[tokio::test]
async fn a_scroll_cursor_goes_back() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client
        .run("DECLARE c SCROLL CURSOR FOR SELECT key FROM ducklake_metadata ORDER BY key")
        .await;
    for (fetch, expected) in [
        ("LAST", vec!["version"]),
        ("BACKWARD 2", vec!["encrypted", "data_path"]),
        ("NEXT", vec!["encrypted"]),
        ("ABSOLUTE 1", vec!["created_by"]),
        ("RELATIVE 2", vec!["encrypted"]),
        ("FIRST", vec!["created_by"]),
        ("PRIOR", vec![]),
        ("ALL", vec!["created_by", "data_path", "encrypted", "version"]),
        (
            "BACKWARD ALL",
            vec!["version", "encrypted", "data_path", "created_by"],
        ),
        ("2", vec!["created_by", "data_path"]),
        ("-1", vec!["created_by"]),
        ("ABSOLUTE -2", vec!["encrypted"]),
    ] {
        let answer = client.run(&format!("FETCH {fetch} FROM c")).await;
        assert_eq!(answer.table().concat(), expected, "{fetch}");
    }
}

#[tokio::test]
async fn a_cursor_ends_with_its_transaction_unless_it_is_held() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    assert_eq!(client.query(DECLARE).await.state(), "25P01");
    client.run("BEGIN").await;
    client.run(DECLARE).await;
    assert_eq!(client.query(DECLARE).await.state(), "42P03");
    client.run("ROLLBACK; BEGIN").await;
    client.run(DECLARE).await;
    client
        .run("DECLARE h CURSOR WITH HOLD FOR SELECT key FROM ducklake_metadata ORDER BY key")
        .await;
    client.run("COMMIT").await;
    assert_eq!(client.query("FETCH c").await.state(), "34000");
    client.run("DELETE FROM ducklake_metadata").await;
    assert_eq!(client.run("FETCH h").await.table(), [["created_by"]]);
    client.run("CLOSE ALL").await;
    assert_eq!(client.query("FETCH h").await.state(), "34000");
}

/// psycopg declares with parameters, describes the cursor as a portal and fetches in binary form.
#[tokio::test]
async fn a_cursor_is_a_portal() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client
        .parse(
            "",
            "DECLARE c CURSOR FOR SELECT schema_id FROM ducklake_schema WHERE schema_id >= $1",
            &[],
        )
        .await;
    client.bind("", "", &[Some(b"0")], false).await;
    client.execute("", 0).await;
    client.send('D', b"Pc\0").await;
    client.parse("", "FETCH FORWARD 5 FROM c", &[]).await;
    client.bind("", "", &[], true).await;
    client.send('D', b"P\0").await;
    client.execute("", 0).await;
    let answer = client.sync().await.ok();
    assert_eq!(answer.kinds(), "12CT12TDCZ");
    assert_eq!(
        answer.of_kind('D')[0].body,
        [0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    client.execute("c", 0).await;
    assert_eq!(client.sync().await.ok().tags(), ["SELECT 0"]);
}

#[tokio::test]
async fn a_query_that_fails_while_rows_are_fetched_fails_the_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    let failing = "DECLARE c CURSOR FOR SELECT 1 / (schema_id - 0) FROM ducklake_schema";
    let declared = client.query(failing).await;
    let state = match declared.of_kind('E').is_empty() {
        true => client.query("FETCH c").await.state(),
        false => declared.state(),
    };
    assert_eq!(state, "22012");
    assert_eq!(client.run("ROLLBACK").await.status(), 'I');
}
