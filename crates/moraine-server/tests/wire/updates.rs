//! The forms in which DuckLake and DuckDB change rows.

use crate::client::TestServer;

#[tokio::test]
async fn an_update_sets_literals_where_ids_are_listed() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    client.create_table(2, "u").await;
    client.run("BEGIN").await;
    let updated = client
        .run("UPDATE \"public\".ducklake_table SET end_snapshot = 3 WHERE end_snapshot IS NULL AND table_id IN (1, 7)")
        .await;
    assert_eq!(updated.tags(), ["UPDATE 1"]);
    let rows = client
        .run("SELECT table_name, end_snapshot FROM ducklake_table ORDER BY table_name")
        .await;
    assert_eq!(rows.table(), [["t", "3"], ["u", "NULL"]]);
    client.run("ROLLBACK").await;
}

#[tokio::test]
async fn values_of_a_common_table_expression_take_the_types_of_what_they_meet() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    client
        .run(
            "INSERT INTO ducklake_table_column_stats VALUES (1, 1, false, NULL, '1', '2', NULL), \
             (1, 2, false, NULL, 'a', 'b', NULL)",
        )
        .await;
    let updated = client
        .run(
            "WITH new_values(tid, cid, new_contains_null, new_contains_nan, new_min, new_max, new_extra_stats) AS \
             (VALUES (1, 1, true, NULL, '0', '9', NULL), (1, 2, NULL, false, NULL, 'z', '{}'), (8, 1, true, NULL, '', '', NULL)) \
             UPDATE public.ducklake_table_column_stats SET contains_null = CAST(new_contains_null AS BOOLEAN), \
             contains_nan = CAST(new_contains_nan AS BOOLEAN), min_value = new_min, max_value = new_max, \
             extra_stats = new_extra_stats FROM new_values WHERE table_id = tid AND column_id = cid",
        )
        .await;
    assert_eq!(updated.tags(), ["UPDATE 2"]);
    let rows = client
        .run("SELECT column_id, contains_null, contains_nan, min_value, max_value, extra_stats FROM ducklake_table_column_stats")
        .await;
    assert_eq!(
        rows.table(),
        [
            ["1", "t", "NULL", "0", "9", "NULL"],
            ["2", "NULL", "f", "NULL", "z", "{}"]
        ]
    );
}

#[tokio::test]
async fn a_join_may_name_both_sides_columns_alike() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    client
        .run("INSERT INTO ducklake_tag VALUES (1, 1, NULL, 'comment', 'one'), (1, 1, NULL, 'other', 'two')")
        .await;
    let updated = client
        .run(
            "WITH overwritten_tags(tid, key) AS (VALUES (1, 'comment')) UPDATE ducklake_tag SET end_snapshot = 2 \
             FROM overwritten_tags WHERE object_id = tid AND ducklake_tag.key = overwritten_tags.key \
             AND end_snapshot IS NULL",
        )
        .await;
    assert_eq!(updated.tags(), ["UPDATE 1"]);
    let ambiguous = client
        .query(
            "WITH o(tid, key) AS (VALUES (1, 'comment')) UPDATE ducklake_tag SET end_snapshot = 2 \
             FROM o WHERE object_id = tid AND key = 'x'",
        )
        .await;
    assert_eq!(ambiguous.state(), "42702");
}

/// The whole of what DuckDB's scanner does for an UPDATE of its own.
#[tokio::test]
async fn an_update_joins_a_temporary_table_by_ctid() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    let address = client
        .run("SELECT ctid FROM ducklake_metadata WHERE key = 'encrypted' COLLATE \"C\"")
        .await;
    let address = address.table()[0][0].clone();
    client
        .run("CREATE LOCAL TEMPORARY TABLE \"update_data_x\"(\"value\" VARCHAR, __page_id_string VARCHAR) ON COMMIT DROP;")
        .await;
    let line = format!("tr\\tue\t'{address}'\n");
    let copied = client
        .copy_in(
            "COPY \"update_data_x\" FROM STDIN (FORMAT TEXT, NULL '\u{8}')",
            &[line.as_bytes(), b"\\.\n"],
        )
        .await
        .ok();
    assert_eq!((copied.tags(), copied.status()), (vec!["COPY 1".to_owned()], 'T'));
    let updated = client
        .run(
            "UPDATE \"public\".\"ducklake_metadata\" SET \"value\" = \"update_data_x\".\"value\" FROM \"update_data_x\" \
             WHERE \"ducklake_metadata\".ctid=__page_id_string::TID",
        )
        .await;
    assert_eq!(updated.tags(), ["UPDATE 1"]);
    client.run("COMMIT").await;
    let value = client
        .run("SELECT value FROM ducklake_metadata WHERE key = 'encrypted'")
        .await;
    assert_eq!(value.table(), [["tr\tue"]]);
    let gone = client.query("SELECT * FROM update_data_x").await;
    assert_eq!(gone.state(), "42P01");
}

#[tokio::test]
async fn temporary_tables_end_with_a_failed_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client.run("BEGIN; CREATE TEMPORARY TABLE x (a INTEGER)").await;
    client.query("SELECT no_such FROM x").await;
    client.run("ROLLBACK").await;
    assert_eq!(client.query("SELECT a FROM x").await.state(), "42P01");
    client.run("CREATE TEMP TABLE x (a INTEGER)").await;
    client.run("INSERT INTO x VALUES (3), (1), (NULL)").await;
    let rows = client.run("SELECT a FROM x WHERE a > 0 ORDER BY a").await;
    assert_eq!(rows.table(), [["1"], ["3"]]);
    client.run("DISCARD ALL").await;
    assert_eq!(client.query("SELECT a FROM x").await.state(), "42P01");
}

#[tokio::test]
async fn inserts_name_their_columns_or_take_all() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client
        .run("INSERT INTO ducklake_metadata (value, key) VALUES ('v', 'k')")
        .await;
    let row = client
        .run("SELECT * FROM ducklake_metadata WHERE key = 'k'")
        .await;
    assert_eq!(row.table(), [["k", "v", "NULL", "NULL"]]);
    for (sql, state) in [
        ("INSERT INTO ducklake_metadata (key) VALUES ('k', 'v')", "42601"),
        (
            "INSERT INTO ducklake_metadata (key, nope) VALUES ('k', 'v')",
            "42703",
        ),
        (
            "INSERT INTO ducklake_metadata (key, key) VALUES ('k', 'v')",
            "42701",
        ),
        (
            "INSERT INTO ducklake_metadata VALUES ('k', 'v', 's', 1, 2)",
            "42601",
        ),
        ("INSERT INTO ducklake_metadata (key) VALUES ('k')", "23502"),
        (
            "INSERT INTO ducklake_metadata VALUES ('k', 'v', NULL, 'x')",
            "22P02",
        ),
        (
            "INSERT INTO ducklake_metadata VALUES ('k', 'v', NULL, true)",
            "42804",
        ),
        (
            "INSERT INTO ducklake_schema VALUES (0, NULL, 1, NULL, 'main', '', true)",
            "23505",
        ),
    ] {
        assert_eq!(client.query(sql).await.state(), state, "{sql}");
    }
}

/// A commit of DuckLake may bring statistics for a hundred thousand columns of files.
#[tokio::test]
async fn a_hundred_thousand_rows_fit_in_one_insert() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let rows: Vec<String> = (0..100_000)
        .map(|id| {
            format!(
                "({id}, 'ducklake-{id}''s.parquet', {}, '2024-01-15 12:30:45+02')",
                id % 2 == 0
            )
        })
        .collect();
    let inserted = client
        .run(&format!(
            "INSERT INTO \"public\".ducklake_files_scheduled_for_deletion VALUES {}",
            rows.join(", ")
        ))
        .await;
    assert_eq!(inserted.tags(), ["INSERT 0 100000"]);
    let count = client
        .run("SELECT count(*), max(data_file_id), min(path) FROM ducklake_files_scheduled_for_deletion")
        .await;
    assert_eq!(count.table(), [["100000", "99999", "ducklake-0's.parquet"]]);
    let time = client
        .run("SELECT schedule_start FROM ducklake_files_scheduled_for_deletion WHERE data_file_id = 77777")
        .await;
    assert_eq!(time.table(), [["2024-01-15 10:30:45+00"]]);
}
