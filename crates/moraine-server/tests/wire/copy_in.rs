//! COPY … FROM STDIN in its binary and text forms.

use crate::client::TestServer;

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: &[u8] = &[255, 255];

/// A tuple of a binary COPY.
fn tuple(fields: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = i16::try_from(fields.len()).unwrap().to_be_bytes().to_vec();
    for field in fields {
        match field {
            Some(field) => {
                bytes.extend(i32::try_from(field.len()).unwrap().to_be_bytes());
                bytes.extend(*field);
            }
            None => bytes.extend((-1i32).to_be_bytes()),
        }
    }
    bytes
}

#[tokio::test]
async fn binary_rows_arrive_in_whatever_pieces() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let mut data = HEADER.to_vec();
    data.extend(tuple(&[
        Some(b"one"),
        Some(b"1"),
        Some(b"table"),
        Some(&7i64.to_be_bytes()),
    ]));
    data.extend(tuple(&[Some(b"two"), Some("zwölf".as_bytes()), None, None]));
    data.extend(TRAILER);
    let pieces: Vec<&[u8]> = data.chunks(3).collect();
    let answer = client
        .copy_in(
            "COPY \"public\".\"ducklake_metadata\" FROM STDIN (FORMAT BINARY)",
            &pieces,
        )
        .await
        .ok();
    assert_eq!(
        (answer.kinds().as_str(), answer.tags()),
        ("CZ", vec!["COPY 2".to_owned()])
    );
    let rows = client
        .run("SELECT * FROM ducklake_metadata WHERE key IN ('one', 'two') ORDER BY key")
        .await;
    assert_eq!(
        rows.table(),
        [["one", "1", "table", "7"], ["two", "zwölf", "NULL", "NULL"]]
    );
}

#[tokio::test]
async fn columns_may_be_named_and_the_others_are_null() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let data = [HEADER, &tuple(&[Some(b"k"), Some(b"v")]), TRAILER].concat();
    client
        .copy_in(
            "COPY \"public\".\"ducklake_metadata\" (\"key\", \"value\") FROM STDIN (FORMAT BINARY)",
            &[&data],
        )
        .await
        .ok();
    let rows = client
        .run("SELECT * FROM ducklake_metadata WHERE key = 'k'")
        .await;
    assert_eq!(rows.table(), [["k", "v", "NULL", "NULL"]]);
}

#[tokio::test]
async fn a_bad_row_is_an_error_at_the_end_and_leaves_nothing() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let copy = "COPY ducklake_metadata (key, value, scope_id) FROM STDIN (FORMAT BINARY)";
    let good = tuple(&[Some(b"k"), Some(b"v"), Some(&1i64.to_be_bytes())]);
    let cases: [(Vec<u8>, &str); 6] = [
        (
            [
                HEADER,
                &good,
                &tuple(&[Some(b"l"), Some(b"v"), Some(b"x")]),
                TRAILER,
            ]
            .concat(),
            "22P03",
        ),
        ([HEADER, &good, &tuple(&[Some(b"l")]), TRAILER].concat(), "22P04"),
        ([HEADER, &good].concat(), "22P04"),
        ([b"not a header at all", &good[..], TRAILER].concat(), "22P04"),
        (
            [HEADER, &good, &tuple(&[Some(&[255]), Some(b"v"), None]), TRAILER].concat(),
            "22P03",
        ),
        (
            [HEADER, &good, &tuple(&[None, Some(b"v"), None]), TRAILER].concat(),
            "23502",
        ),
    ];
    for (data, state) in cases {
        let answer = client.copy_in(copy, &[&data]).await;
        assert_eq!((answer.state().as_str(), answer.kinds().as_str()), (state, "EZ"));
    }
    assert!(
        client
            .run("SELECT key FROM ducklake_metadata WHERE key = 'k'")
            .await
            .rows()
            .is_empty()
    );
}

#[tokio::test]
async fn text_rows_have_a_delimiter_and_a_mark_for_null() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client
        .copy_in(
            "COPY ducklake_metadata FROM STDIN",
            &[b"a\tx\\ty\ttable\t5\n", b"b\tz\t\\N\t\\N\n\\.\n"],
        )
        .await
        .ok();
    client
        .copy_in(
            "COPY ducklake_metadata (key, value) FROM STDIN WITH (DELIMITER ',', NULL 'nix')",
            &[b"c,nix and more\n"],
        )
        .await
        .ok();
    let rows = client
        .run("SELECT * FROM ducklake_metadata WHERE key IN ('a', 'b', 'c') ORDER BY key")
        .await;
    assert_eq!(
        rows.table(),
        [
            ["a", "x\ty", "table", "5"],
            ["b", "z", "NULL", "NULL"],
            ["c", "nix and more", "NULL", "NULL"]
        ]
    );
}

#[tokio::test]
async fn a_client_may_give_up() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client.start_query("COPY ducklake_metadata FROM STDIN").await;
    client.until("G").await;
    client.send('d', b"k\tv\t\\N\t\\N\n").await;
    client.send('f', b"changed my mind\0").await;
    let answer = client.until("Z").await;
    assert_eq!((answer.state().as_str(), answer.status()), ("57014", 'E'));
    client.run("ROLLBACK").await;
    assert!(
        client
            .run("SELECT key FROM ducklake_metadata WHERE key = 'k'")
            .await
            .rows()
            .is_empty()
    );
}

#[tokio::test]
async fn a_copy_may_stand_in_the_middle_of_a_message() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let message =
        "BEGIN; COPY ducklake_metadata FROM STDIN; SELECT value FROM ducklake_metadata WHERE key = 'k'";
    let answer = client.copy_in(message, &[b"k\tv\t\\N\t\\N\n"]).await.ok();
    assert_eq!(answer.tags(), ["COPY 1", "SELECT 1"]);
    assert_eq!(
        (answer.table(), answer.status()),
        (vec![vec!["v".to_owned()]], 'T')
    );
    assert_eq!(client.run("COMMIT").await.status(), 'I');
    assert_eq!(
        client
            .run("SELECT value FROM ducklake_metadata WHERE key = 'k'")
            .await
            .table(),
        [["v"]]
    );
}

#[tokio::test]
async fn a_copy_into_what_is_not_there_is_an_error_before_any_row() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (sql, state) in [
        ("COPY no_such FROM STDIN", "42P01"),
        ("COPY ducklake_metadata (nope) FROM STDIN", "42703"),
        ("COPY ducklake_metadata FROM STDIN (FORMAT parquet)", "0A000"),
        ("COPY ducklake_metadata FROM '/etc/passwd'", "0A000"),
    ] {
        let answer = client.query(sql).await;
        assert_eq!(
            (answer.kinds().as_str(), answer.state().as_str()),
            ("EZ", state),
            "{sql}"
        );
    }
}
