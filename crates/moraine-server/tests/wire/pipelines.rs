//! Several messages of the extended protocol before one Sync, and portals over several.

use crate::client::{TestServer, create_table};

const OPTION: &str = "INSERT INTO ducklake_metadata VALUES ('k', 'v', NULL, NULL)";
const COUNT: &str = "SELECT count(*) FROM ducklake_metadata WHERE key = 'k'";

#[tokio::test]
async fn everything_up_to_a_sync_is_one_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let mut other = server.connect().await;
    client.step(OPTION).await;
    client.step(COUNT).await;
    client.send('H', &[]).await;
    let told = client.until("C").await;
    assert_eq!(told.tags(), ["INSERT 0 1"]);
    assert_eq!(client.until("C").await.table(), [["1"]], "it sees its own change");
    assert_eq!(other.run(COUNT).await.table(), [["0"]], "and nobody else does");
    assert_eq!(client.sync().await.status(), 'I');
    assert_eq!(other.run(COUNT).await.table(), [["1"]]);
}

#[tokio::test]
async fn an_error_takes_back_everything_since_the_last_sync() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.step(OPTION).await;
    client.step("SELECT nothing FROM ducklake_metadata").await;
    client.step(OPTION).await;
    let answer = client.sync().await;
    assert_eq!((answer.kinds().as_str(), answer.status()), ("12CEZ", 'I'));
    client.step(OPTION).await;
    assert_eq!(client.sync().await.ok().tags(), ["INSERT 0 1"]);
    assert_eq!(client.run(COUNT).await.table(), [["1"]]);
}

#[tokio::test]
async fn begin_takes_in_what_the_pipeline_has_done_and_commit_ends_it() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let another = "INSERT INTO ducklake_metadata VALUES ('l', 'v', NULL, NULL)";
    for sql in [OPTION, "BEGIN", another] {
        client.step(sql).await;
    }
    assert_eq!(client.sync().await.ok().status(), 'T');
    client.step("ROLLBACK").await;
    assert_eq!(client.sync().await.ok().status(), 'I');
    assert_eq!(client.run(COUNT).await.table(), [["0"]]);
    for sql in ["BEGIN", OPTION, "COMMIT", COUNT] {
        client.step(sql).await;
    }
    let answer = client.sync().await.ok();
    assert_eq!(answer.tags(), ["BEGIN", "INSERT 0 1", "COMMIT", "SELECT 1"]);
    assert_eq!(
        (answer.table(), answer.status()),
        (vec![vec!["1".to_owned()]], 'I')
    );
}

#[tokio::test]
async fn a_commit_that_fails_at_sync_is_told_before_ready() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    // A row of ducklake_snapshot_changes without its snapshot is refused by the commit.
    client
        .step("INSERT INTO ducklake_snapshot_changes VALUES (0, 'x', NULL, NULL, NULL)")
        .await;
    let answer = client.sync().await;
    assert!(["12CEZ", "12EZ"].contains(&answer.kinds().as_str()), "{answer:?}");
    assert_eq!(answer.status(), 'I');
    assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
}

#[tokio::test]
async fn a_portal_waits_while_others_run_and_shows_what_was_there_when_it_started() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    for (name, sql) in [
        ("keys", "SELECT key FROM ducklake_metadata ORDER BY key"),
        (
            "pairs",
            "SELECT a.key FROM ducklake_metadata a JOIN ducklake_metadata b ON a.key = b.key ORDER BY a.key",
        ),
    ] {
        client.parse(name, sql, &[]).await;
        client.bind(name, name, &[], false).await;
        client.execute(name, 2).await;
    }
    let answer = client.sync().await.ok();
    assert_eq!(answer.kinds(), "12DDs12DDsZ");
    assert_eq!(answer.table()[..2], answer.table()[2..]);
    client.run("DELETE FROM ducklake_metadata WHERE key > 'd'").await;
    for name in ["keys", "pairs"] {
        client.execute(name, 2).await;
        client.execute(name, 2).await;
    }
    let answer = client.sync().await.ok();
    assert_eq!(answer.kinds(), "DDsCDDsCZ");
    assert_eq!(answer.tags(), ["SELECT 0", "SELECT 0"]);
    assert_eq!(
        answer.table(),
        [["encrypted"], ["version"], ["encrypted"], ["version"]]
    );
    client.send('C', b"Pkeys\0").await;
    client.execute("keys", 0).await;
    assert_eq!(client.sync().await.state(), "34000");
    client.run("ROLLBACK").await;
    client.execute("pairs", 0).await;
    assert_eq!(client.sync().await.state(), "34000");
}

#[tokio::test]
async fn a_change_gives_its_rows_in_portions_and_is_made_once() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    let sql = "UPDATE ducklake_metadata SET value = 'x' RETURNING key";
    client.parse("", sql, &[]).await;
    client.bind("p", "", &[], false).await;
    for _ in 0..3 {
        client.execute("p", 3).await;
    }
    let answer = client.sync().await;
    assert_eq!(answer.kinds(), "12DDDsDCCZ");
    assert_eq!(answer.tags(), ["UPDATE 4", "UPDATE 4"]);
}

#[tokio::test]
async fn names_of_statements_and_portals_are_kept_and_checked() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.parse("one", "SELECT $1::int + 1", &[]).await;
    client.sync().await.ok();
    for _ in 0..2 {
        client.bind("", "one", &[Some(b"1")], false).await;
        client.execute("", 0).await;
    }
    assert_eq!(client.sync().await.ok().table(), [["2"], ["2"]]);
    client.parse("one", "SELECT 1", &[]).await;
    assert_eq!(client.sync().await.state(), "42P05");
    client.bind("p", "one", &[Some(b"1")], false).await;
    client.bind("p", "one", &[Some(b"1")], false).await;
    assert_eq!(client.sync().await.state(), "42P03");
    client.bind("", "one", &[], false).await;
    assert_eq!(client.sync().await.state(), "08P01");
    client.bind("", "one", &[Some(b"x")], false).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await.state(), "22P02");
    client.send('C', b"Sone\0").await;
    client.bind("", "one", &[Some(b"1")], false).await;
    assert_eq!(client.sync().await.state(), "26000");
}

#[tokio::test]
async fn a_conflict_at_sync_invites_a_second_try() {
    let server = TestServer::start().await;
    let mut first = server.connect_to_lake().await;
    let mut second = server.connect().await;
    second.run("BEGIN").await;
    second.run("SELECT max(snapshot_id) FROM ducklake_snapshot").await;
    first.run(&create_table(1, "a")).await;
    for statement in create_table(1, "b").split(';') {
        second.step(statement).await;
    }
    let answer = second.sync().await;
    assert_eq!((answer.state().as_str(), answer.status()), ("23505", 'E'));
    second.run("ROLLBACK").await;
}

#[tokio::test]
async fn a_bound_portal_is_a_cursor_as_well() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client
        .parse("", "SELECT g FROM generate_series(1, $1) g ORDER BY g", &[23])
        .await;
    client.bind("p", "", &[Some(b"5".as_slice())], false).await;
    assert_eq!(client.sync().await.ok().status(), 'T');
    assert_eq!(client.run("MOVE FORWARD 1 p").await.tags(), ["MOVE 1"]);
    assert_eq!(client.run("FETCH 2 FROM p").await.table(), [["2"], ["3"]]);
    client.execute("p", 1).await;
    assert_eq!(client.sync().await.ok().table(), [["4"]]);
    assert_eq!(client.run("FETCH ALL FROM p").await.table(), [["5"]]);
    assert_eq!(client.run("CLOSE p").await.tags(), ["CLOSE CURSOR"]);
    client.run("COMMIT").await;
}
