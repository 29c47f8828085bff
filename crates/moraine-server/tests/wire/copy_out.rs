//! COPY … TO STDOUT: how rows are cut into messages.

use crate::client::{Answer, TestServer, fields};

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The tuples of a binary COPY; every message must end where a tuple ends.
fn tuples(answer: &Answer) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut tuples = Vec::new();
    for (index, data) in answer.copy_data().iter().enumerate() {
        let mut rest: &[u8] = data;
        if index == 0 {
            rest = rest.strip_prefix(HEADER).expect("the header comes first");
            assert!(!rest.is_empty(), "the header must not travel alone");
        }
        while !rest.is_empty() {
            if rest == [255, 255] {
                assert_eq!(index + 1, answer.copy_data().len(), "the trailer comes last");
                return tuples;
            }
            let tuple = fields(rest);
            let length: usize = tuple
                .iter()
                .map(|field| 4 + field.as_ref().map_or(0, Vec::len))
                .sum();
            rest = &rest[2 + length..];
            tuples.push(tuple);
        }
    }
    panic!("no trailer");
}

#[tokio::test]
async fn the_header_travels_with_the_first_row() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .run("COPY (SELECT \"key\" FROM ducklake_metadata) TO STDOUT (FORMAT \"binary\");")
        .await;
    assert_eq!(answer.kinds(), "HdcCZ");
    assert_eq!(answer.tags(), ["COPY 4"]);
    let keys: Vec<Vec<u8>> = tuples(&answer)
        .into_iter()
        .map(|tuple| tuple[0].clone().unwrap())
        .collect();
    assert!(keys.contains(&b"data_path".to_vec()));
}

#[tokio::test]
async fn without_rows_the_header_travels_with_the_trailer() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .run("COPY (SELECT view_id FROM ducklake_view) TO STDOUT (FORMAT binary)")
        .await;
    assert_eq!(answer.kinds(), "HdcCZ");
    assert_eq!(answer.copy_data(), [[HEADER, &[255, 255]].concat()]);
    assert_eq!(answer.tags(), ["COPY 0"]);
}

#[tokio::test]
async fn long_results_are_cut_between_rows() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let rows: Vec<String> = (0..20_000)
        .map(|id| format!("({id}, 'file-{id:0>40}', true, NOW())"))
        .collect();
    client
        .run(&format!(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES {}",
            rows.join(", ")
        ))
        .await;
    let answer = client
        .run("COPY (SELECT data_file_id, path, NULL FROM ducklake_files_scheduled_for_deletion) TO STDOUT (FORMAT binary)")
        .await;
    assert!(
        answer.copy_data().len() > 10,
        "{} messages",
        answer.copy_data().len()
    );
    let tuples = tuples(&answer);
    assert_eq!(tuples.len(), 20_000);
    assert_eq!(answer.tags(), ["COPY 20000"]);
    for (id, tuple) in tuples.iter().enumerate() {
        assert_eq!(
            tuple[0].as_deref(),
            Some(i64::try_from(id).unwrap().to_be_bytes().as_slice())
        );
        assert_eq!(tuple[2], None);
    }
}

#[tokio::test]
async fn a_read_that_fails_is_an_error_and_no_copy() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let answer = client
        .query("COPY (SELECT no_such FROM ducklake_view) TO STDOUT (FORMAT binary)")
        .await;
    assert_eq!(answer.kinds(), "EZ");
    assert_eq!(answer.state(), "42703");
    assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
}

#[tokio::test]
async fn the_text_form_escapes_what_would_be_taken_for_structure() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client
        .run("INSERT INTO ducklake_metadata VALUES ('x', E'a\\tb\\\\c\\nd', NULL, NULL)")
        .await;
    let answer = client
        .run("COPY (SELECT value, scope FROM ducklake_metadata WHERE key = 'x') TO STDOUT")
        .await;
    assert_eq!(answer.copy_data().concat(), b"a\\tb\\\\c\\nd\t\\N\n");
    let whole = client
        .run("COPY ducklake_metadata (key, value) TO STDOUT (DELIMITER '|', HEADER true)")
        .await;
    let text = String::from_utf8(whole.copy_data().concat()).unwrap();
    assert!(text.starts_with("key|value\n"), "{text}");
    assert!(text.contains("encrypted|false\n"), "{text}");
}

#[tokio::test]
async fn the_subquery_the_scanner_wraps_around_a_query_is_read_through() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    let answer = client
        .run(
            "COPY (SELECT \"snapshot_id\", \"schema_version\", NULL FROM (SELECT snapshot_id, schema_version, \
             next_catalog_id FROM public.ducklake_snapshot WHERE snapshot_id = (SELECT MAX(snapshot_id) FROM \
             public.ducklake_snapshot)) AS __unnamed_subquery ) TO STDOUT (FORMAT \"binary\");",
        )
        .await;
    let one = Some(1i64.to_be_bytes().to_vec());
    assert_eq!(tuples(&answer), [[one.clone(), one, None]]);
}
