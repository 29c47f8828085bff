//! COPY in its CSV form, both ways, and where its errors say they are.

use crate::client::{Answer, Client, TestServer};

async fn client(server: &TestServer) -> Client {
    let mut client = server.connect_to_lake().await;
    client
        .run("CREATE TEMP TABLE x (a INTEGER, b VARCHAR, c VARCHAR)")
        .await;
    client
}

fn data(answer: &Answer) -> String {
    String::from_utf8(answer.copy_data().concat()).unwrap()
}

fn context(answer: &Answer) -> String {
    let body = &answer.of_kind('E')[0].body;
    let found = body
        .split(|byte| *byte == 0)
        .find(|field| field.first() == Some(&b'W'));
    found
        .map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
        .unwrap_or_default()
}

const ROWS: &str = "SELECT a, b, c FROM x";

#[tokio::test]
async fn csv_is_read_as_postgres_reads_it() {
    let server = TestServer::start().await;
    let mut client = client(&server).await;
    for (options, text, expected) in [
        ("FORMAT csv", "1,one,two\n", vec![["1", "one", "two"]]),
        ("FORMAT csv", "1,,\"\"\n", vec![["1", "NULL", ""]]),
        (
            "FORMAT csv",
            "1,\"a,b\",\"say \"\"hi\"\"\"\r\n2,x\"y\"z,\n",
            vec![["1", "a,b", "say \"hi\""], ["2", "xyz", "NULL"]],
        ),
        ("FORMAT csv", "1,\"two\nlines\",c", vec![["1", "two\nlines", "c"]]),
        ("FORMAT csv, HEADER", "a,b,c\n1,b,c\n", vec![["1", "b", "c"]]),
        (
            "FORMAT csv, DELIMITER ';', NULL 'nil'",
            "nil;a,b;\"nil\"\n",
            vec![["NULL", "a,b", "nil"]],
        ),
        (
            "FORMAT csv, QUOTE '''', ESCAPE '\\'",
            "1,'it\\'s','\\\\'\n",
            vec![["1", "it's", "\\"]],
        ),
        (
            "FORMAT csv, FORCE_NULL (b), FORCE_NOT_NULL (c)",
            "1,\"\",\n",
            vec![["1", "NULL", ""]],
        ),
        ("FORMAT csv", "1,a,b\n\\.\n", vec![["1", "a", "b"]]),
    ] {
        let bytes = text.as_bytes();
        for size in [1, 3, bytes.len()] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            client.run("BEGIN").await;
            client
                .copy_in(&format!("COPY x FROM STDIN ({options})"), &pieces)
                .await
                .ok();
            assert_eq!(client.run(ROWS).await.table(), expected, "{options}: {text}");
            client.run("ROLLBACK").await;
        }
    }
}

#[tokio::test]
async fn csv_is_written_as_postgres_writes_it() {
    let server = TestServer::start().await;
    let mut client = client(&server).await;
    client
        .run("INSERT INTO x VALUES (1, 'plain', 'a,b'), (2, 'say \"hi\"', ''), (NULL, NULL, 'x;y')")
        .await;
    for (options, expected) in [
        (
            "(FORMAT csv)",
            "1,plain,\"a,b\"\n2,\"say \"\"hi\"\"\",\"\"\n,,x;y\n",
        ),
        (
            "CSV HEADER",
            "a,b,c\n1,plain,\"a,b\"\n2,\"say \"\"hi\"\"\",\"\"\n,,x;y\n",
        ),
        (
            "(FORMAT csv, DELIMITER ';', NULL 'nil', ESCAPE '\\')",
            "1;plain;a,b\n2;\"say \\\"hi\\\"\";\nnil;nil;\"x;y\"\n",
        ),
        (
            "(FORMAT csv, FORCE_QUOTE *)",
            "\"1\",\"plain\",\"a,b\"\n\"2\",\"say \"\"hi\"\"\",\"\"\n,,\"x;y\"\n",
        ),
        (
            "(FORMAT csv, FORCE_QUOTE (a))",
            "\"1\",plain,\"a,b\"\n\"2\",\"say \"\"hi\"\"\",\"\"\n,,x;y\n",
        ),
    ] {
        let answer = client.run(&format!("COPY x TO STDOUT {options}")).await;
        assert_eq!(data(&answer), expected, "{options}");
        assert_eq!(answer.tags(), ["COPY 3"]);
    }
    let answer = client
        .run("COPY (SELECT a.b FROM x a JOIN x b USING (a) ORDER BY 1) TO STDOUT (FORMAT csv, HEADER)")
        .await;
    assert_eq!(data(&answer), "b\nplain\n\"say \"\"hi\"\"\"\n");
    let answer = client.run("COPY (SELECT '\\.' AS d) TO STDOUT CSV").await;
    assert_eq!(data(&answer), "\"\\.\"\n");
}

#[tokio::test]
async fn errors_name_the_line_and_the_column() {
    let server = TestServer::start().await;
    let mut client = client(&server).await;
    for (options, text, state, place) in [
        (
            "FORMAT csv",
            "1,a,b\nx,c,d\n",
            "22P02",
            "COPY x, line 2, column a: \"x\"",
        ),
        (
            "FORMAT csv, HEADER",
            "h\n1,\"two\nlines\",b\n2,c\n",
            "22P04",
            "COPY x, line 4: \"2,c\"",
        ),
        ("FORMAT csv", "1,a,b,c\n", "22P04", "COPY x, line 1: \"1,a,b,c\""),
        ("FORMAT csv", "1,\"a\n", "22P04", "COPY x, line 1: \"1,\"a\n\""),
        (
            "FORMAT text",
            "1\ta\tb\n2\ta\n",
            "22P04",
            "COPY x, line 2: \"2\ta\"",
        ),
        (
            "FORMAT text",
            "1\ta\tb\n99999999999\ta\tb\n",
            "22003",
            "COPY x, line 2, column a: \"99999999999\"",
        ),
    ] {
        let answer = client
            .copy_in(&format!("COPY x FROM STDIN ({options})"), &[text.as_bytes()])
            .await;
        assert_eq!(answer.state(), state, "{options}: {text}");
        assert_eq!(context(&answer), place, "{options}: {text}");
    }
    assert!(client.run(ROWS).await.rows().is_empty());
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    let server = TestServer::start().await;
    let mut client = client(&server).await;
    for (options, state) in [
        ("FORMAT csv, QUOTE ','", "22023"),
        ("FORMAT csv, DELIMITER '\"'", "22023"),
        ("FORMAT csv, NULL ','", "22023"),
        ("FORMAT text, QUOTE '\"'", "0A000"),
        ("FORMAT text, DELIMITER 'a'", "22023"),
        ("FORMAT binary, NULL ''", "42601"),
        ("FORMAT csv, FORCE_NULL (z)", "42P10"),
        ("FORMAT parquet", "0A000"),
    ] {
        assert_eq!(
            client
                .query(&format!("COPY x TO STDOUT ({options})"))
                .await
                .state(),
            state,
            "{options}"
        );
    }
}
