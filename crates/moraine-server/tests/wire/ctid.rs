//! `ctid`: the address by which DuckDB finds a row again.

use crate::client::{TestServer, create_table, fields};

#[tokio::test]
async fn rows_are_found_again_by_ctid_within_their_transaction() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    client.run("BEGIN").await;
    let rows = client
        .run("SELECT ctid, column_name FROM ducklake_column")
        .await
        .table();
    assert_eq!(
        rows.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let again = client
        .run("SELECT ctid, column_name FROM ducklake_column")
        .await
        .table();
    assert_eq!(rows, again, "a row keeps its address");
    let deleted = client
        .run(&format!(
            "DELETE FROM ducklake_column WHERE ctid IN ('{}','(9,9)')",
            rows[0][0]
        ))
        .await;
    assert_eq!(deleted.tags(), ["DELETE 1"]);
    assert_eq!(
        client
            .run("SELECT column_name FROM ducklake_column")
            .await
            .table(),
        [["b"]]
    );
    let found = client
        .run(&format!(
            "SELECT column_name FROM ducklake_column WHERE ctid = '{}'",
            rows[1][0]
        ))
        .await;
    assert_eq!(found.table(), [["b"]]);
    client.run("ROLLBACK").await;
}

#[tokio::test]
async fn an_unknown_ctid_matches_nothing() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    let address = client.run("SELECT ctid FROM ducklake_schema").await.table()[0][0].clone();
    // Of another relation, of another transaction, never given out.
    let other = format!("DELETE FROM ducklake_snapshot WHERE ctid IN ('{address}')");
    assert_eq!(client.run(&other).await.tags(), ["DELETE 0"]);
    client.run("COMMIT").await;
    let later = format!("DELETE FROM ducklake_schema WHERE ctid IN ('{address}')");
    assert_eq!(client.run(&later).await.tags(), ["DELETE 0"]);
    assert_eq!(
        client
            .run("DELETE FROM ducklake_schema WHERE ctid = '(4294967295,32767)'")
            .await
            .tags(),
        ["DELETE 0"]
    );
    assert_eq!(
        client
            .query("DELETE FROM ducklake_schema WHERE ctid = 'nonsense'")
            .await
            .state(),
        "22P02"
    );
}

#[tokio::test]
async fn the_binary_form_is_a_page_and_an_item_below_2_to_the_15() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.run("BEGIN").await;
    client.run(&create_table(1, "t")).await;
    let rows: Vec<String> = (0..40_000)
        .map(|id| format!("({id}, 'f{id}', true, NOW())"))
        .collect();
    client
        .run(&format!(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES {}",
            rows.join(",")
        ))
        .await;
    let answer = client
        .run("COPY (SELECT ctid FROM ducklake_files_scheduled_for_deletion) TO STDOUT (FORMAT binary)")
        .await;
    let mut seen = std::collections::HashSet::new();
    let mut pages = std::collections::HashSet::new();
    let data = answer.copy_data().concat();
    let mut rest = &data[19..];
    while rest != [255, 255] {
        let tid = fields(rest)[0].clone().unwrap();
        assert_eq!(tid.len(), 6);
        let item = i16::from_be_bytes([tid[4], tid[5]]);
        assert!(item >= 0, "DuckDB reads the item with a sign");
        pages.insert(tid[..4].to_vec());
        assert!(seen.insert(tid));
        rest = &rest[12..];
    }
    assert_eq!((seen.len(), pages.len()), (40_000, 2));
    let last = client
        .run("SELECT ctid FROM ducklake_files_scheduled_for_deletion WHERE data_file_id = 39999")
        .await;
    assert_eq!(last.table(), [["(1,7231)"]]);
    let deleted = client
        .run("DELETE FROM ducklake_files_scheduled_for_deletion WHERE ctid IN ('(1,7231)')")
        .await;
    assert_eq!(deleted.tags(), ["DELETE 1"]);
    let left = client
        .run("SELECT data_file_id FROM ducklake_files_scheduled_for_deletion WHERE data_file_id >= 39998")
        .await;
    assert_eq!(left.table(), [["39998"]]);
}
