//! Parameters and results of every type in text and in binary form, arrays among them.

use tokio_postgres::types::Type;

use crate::client::{Client, TestServer, fields};
use crate::extended::driver;

/// A table of inlined rows with a column of each type that the tables have.
const COLUMNS: &str = "a BOOLEAN, b SMALLINT, c INTEGER, d BIGINT, e REAL, f DOUBLE PRECISION, g DECIMAL(10,2), h BYTEA, \
                       i UUID, j TIME, k TIME WITH TIME ZONE, l INTERVAL, m VARCHAR, n DATE, o TIMESTAMP, \
                       p TIMESTAMP WITH TIME ZONE";

/// Name, type, text, binary form.
fn values() -> Vec<(&'static str, Type, &'static str, Vec<u8>)> {
    let micros = 758_637_045_500_000i64.to_be_bytes().to_vec();
    let time = 45_045_500_000i64.to_be_bytes().to_vec();
    vec![
        ("a", Type::BOOL, "t", vec![1]),
        ("b", Type::INT2, "-7", (-7i16).to_be_bytes().to_vec()),
        ("c", Type::INT4, "70000", 70_000i32.to_be_bytes().to_vec()),
        (
            "d",
            Type::INT8,
            "-5000000000",
            (-5_000_000_000i64).to_be_bytes().to_vec(),
        ),
        ("e", Type::FLOAT4, "1.5", 1.5f32.to_be_bytes().to_vec()),
        ("f", Type::FLOAT8, "0.1", 0.1f64.to_be_bytes().to_vec()),
        (
            "g",
            Type::NUMERIC,
            "-12345.67",
            vec![0, 3, 0, 1, 64, 0, 0, 2, 0, 1, 9, 41, 26, 44],
        ),
        ("h", Type::BYTEA, "\\x00ff", vec![0, 255]),
        (
            "i",
            Type::UUID,
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
            (0..16).collect(),
        ),
        ("j", Type::TIME, "12:30:45.5", time.clone()),
        (
            "k",
            Type::TIMETZ,
            "12:30:45.5+02:30",
            [time, (-9000i32).to_be_bytes().to_vec()].concat(),
        ),
        (
            "l",
            Type::INTERVAL,
            "1 year 2 mons -2 days +00:00:03",
            [
                3_000_000i64.to_be_bytes().to_vec(),
                (-2i32).to_be_bytes().to_vec(),
                14i32.to_be_bytes().to_vec(),
            ]
            .concat(),
        ),
        ("m", Type::VARCHAR, "it's", b"it's".to_vec()),
        ("n", Type::DATE, "2024-01-15", 8780i32.to_be_bytes().to_vec()),
        ("o", Type::TIMESTAMP, "2024-01-15 12:30:45.5", micros.clone()),
        ("p", Type::TIMESTAMPTZ, "2024-01-15 12:30:45.5+00", micros),
    ]
}

/// A session with a temporary table of one row, which came through parameters.
async fn with_a_row(server: &TestServer, binary: bool) -> Client {
    let mut client = server.connect_to_lake().await;
    client.run(&format!("CREATE TEMP TABLE x ({COLUMNS})")).await;
    let places: Vec<String> = (1..=values().len()).map(|number| format!("${number}")).collect();
    let sql = format!("INSERT INTO x VALUES ({})", places.join(", "));
    client.parse("in", &sql, &[]).await;
    client.send('D', b"Sin\0").await;
    let described = client.sync().await.ok();
    let oids: Vec<u32> = values().iter().map(|(_, of_type, _, _)| of_type.oid()).collect();
    assert_eq!(parameter_types(&described.of_kind('t')[0].body), oids);
    let values = values();
    let parameters: Vec<Option<&[u8]>> = values
        .iter()
        .map(|(_, _, text, bytes)| Some(if binary { bytes.as_slice() } else { text.as_bytes() }))
        .collect();
    client.bind("", "in", &parameters, binary).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await.ok().tags(), ["INSERT 0 1"]);
    client
}

fn parameter_types(body: &[u8]) -> Vec<u32> {
    body[2..]
        .chunks(4)
        .map(|oid| u32::from_be_bytes(oid.try_into().unwrap()))
        .collect()
}

#[tokio::test]
async fn every_type_goes_in_and_comes_out_in_both_forms() {
    for binary in [false, true] {
        let server = TestServer::start().await;
        let mut client = with_a_row(&server, binary).await;
        for shown_binary in [false, true] {
            client.parse("", "SELECT * FROM x", &[]).await;
            client.bind("", "", &[], shown_binary).await;
            client.execute("", 0).await;
            let answer = client.sync().await.ok();
            let shown = fields(&answer.of_kind('D')[0].body);
            for ((name, _, text, bytes), shown) in values().into_iter().zip(shown) {
                let wanted = if shown_binary {
                    bytes
                } else {
                    text.as_bytes().to_vec()
                };
                assert_eq!(
                    shown,
                    Some(wanted),
                    "column {name}, in {binary}, out {shown_binary}"
                );
            }
        }
    }
}

/// Both ways of answering know the type of a parameter from the column it meets, and find the row by it.
#[tokio::test]
async fn a_parameter_takes_the_type_of_what_it_meets() {
    let server = TestServer::start().await;
    let mut client = with_a_row(&server, true).await;
    for (name, of_type, text, bytes) in values() {
        for sql in [
            format!("SELECT count(*) FROM x WHERE {name} = $1"),
            format!("SELECT count(*) FROM x WHERE {name} IN ($1, $1)"),
            format!("SELECT count(*) FROM x JOIN ducklake_schema s ON s.schema_id = 0 WHERE $1 = {name}"),
        ] {
            for binary in [false, true] {
                client.parse("", &sql, &[]).await;
                client.send('D', b"S\0").await;
                let bound = if binary { bytes.as_slice() } else { text.as_bytes() };
                client.bind("", "", &[Some(bound)], binary).await;
                client.execute("", 0).await;
                let answer = client.sync().await.ok();
                let learned = parameter_types(&answer.of_kind('t')[0].body);
                let text_or_varchar = of_type == Type::VARCHAR && learned == [Type::TEXT.oid()];
                assert!(
                    learned == [of_type.oid()] || text_or_varchar,
                    "{sql}: {learned:?}"
                );
                let count = fields(&answer.of_kind('D')[0].body).remove(0).unwrap();
                let wanted = if binary {
                    1i64.to_be_bytes().to_vec()
                } else {
                    b"1".to_vec()
                };
                assert_eq!(count, wanted, "{sql} in {binary}");
            }
            client.parse("", &sql, &[]).await;
            client.bind("", "", &[None], true).await;
            client.execute("", 0).await;
            let answer = client.sync().await.ok();
            let count = fields(&answer.of_kind('D')[0].body).remove(0).unwrap();
            assert_eq!(count, 0i64.to_be_bytes(), "{sql} with NULL");
        }
    }
}

#[tokio::test]
async fn a_type_that_the_client_says_is_the_parameters() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let numeric = Type::NUMERIC.oid();
    for (sql, oid, text, count) in [
        (
            "SELECT schema_id FROM ducklake_schema WHERE schema_id = $1",
            Type::INT2.oid(),
            "0",
            1,
        ),
        (
            "SELECT schema_id FROM ducklake_schema WHERE schema_id < $1",
            numeric,
            "0.5",
            1,
        ),
        (
            "SELECT schema_id FROM ducklake_schema WHERE schema_id = $1",
            numeric,
            "0.5",
            0,
        ),
        (
            "SELECT schema_id FROM ducklake_schema WHERE schema_id = $1",
            numeric,
            "1E-1",
            0,
        ),
        (
            "SELECT schema_id FROM ducklake_schema WHERE schema_id < $1",
            Type::FLOAT8.oid(),
            "0.5",
            1,
        ),
        (
            "SELECT a.schema_id FROM ducklake_schema a, ducklake_schema b WHERE a.schema_id < $1",
            numeric,
            "0.5",
            1,
        ),
        (
            "SELECT key FROM ducklake_metadata WHERE key = $1",
            Type::TEXT.oid(),
            "version",
            1,
        ),
    ] {
        client.parse("", sql, &[oid]).await;
        client.send('D', b"S\0").await;
        client.bind("", "", &[Some(text.as_bytes())], false).await;
        client.execute("", 0).await;
        let answer = client.sync().await.ok();
        assert_eq!(parameter_types(&answer.of_kind('t')[0].body), [oid], "{sql}");
        assert_eq!(answer.rows().len(), count, "{sql}");
    }
    client
        .parse(
            "",
            "SELECT key FROM ducklake_metadata WHERE key = $1",
            &[Type::INT4.oid()],
        )
        .await;
    client.bind("", "", &[Some(b"1")], false).await;
    client.execute("", 0).await;
    assert_eq!(client.sync().await.state(), "42883");
    client.parse("", "SELECT $1", &[4_000_000]).await;
    assert_eq!(client.sync().await.state(), "42704");
}

#[tokio::test]
async fn arrays_are_parameters_and_results() {
    let server = TestServer::start().await;
    server.connect_to_lake().await;
    let client = driver(&server).await;
    let keys: Vec<String> = vec!["version".into(), "nothing".into(), "encrypted".into()];
    for sql in [
        "SELECT key FROM ducklake_metadata WHERE key = ANY($1) ORDER BY key",
        "SELECT a.key FROM ducklake_metadata a JOIN ducklake_metadata b USING (key) WHERE a.key = ANY($1) ORDER BY 1",
        "SELECT key FROM ducklake_metadata WHERE key IN (SELECT unnest($1::text[])) ORDER BY key",
    ] {
        let rows = client
            .query(sql, &[&keys])
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let found: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, ["encrypted", "version"], "{sql}");
    }
    for sql in [
        "SELECT schema_id FROM ducklake_schema WHERE schema_id = ANY($1)",
        "SELECT a.schema_id FROM ducklake_schema a, ducklake_schema b WHERE a.schema_id = ANY($1)",
    ] {
        let statement = client.prepare(sql).await.unwrap();
        assert_eq!(statement.params(), [Type::INT8_ARRAY], "{sql}");
        assert_eq!(
            client.query(&statement, &[&vec![0i64, 7]]).await.unwrap().len(),
            1
        );
        assert_eq!(client.query(&statement, &[&vec![7i64]]).await.unwrap().len(), 0);
        assert_eq!(
            client
                .query(&statement, &[&Vec::<i64>::new()])
                .await
                .unwrap()
                .len(),
            0
        );
        assert_eq!(
            client
                .query(&statement, &[&None::<Vec<i64>>])
                .await
                .unwrap()
                .len(),
            0
        );
    }
    let row = client
        .query_one(
            "SELECT array_agg(key ORDER BY key), ARRAY[1, NULL, 3], ARRAY['a b', NULL], $1::bigint[] FROM ducklake_metadata",
            &[&vec![Some(5i64), None]],
        )
        .await
        .unwrap();
    assert_eq!(row.columns()[0].type_(), &Type::TEXT_ARRAY);
    let keys: Vec<&str> = row.get(0);
    assert_eq!(keys, ["created_by", "data_path", "encrypted", "version"]);
    let found = row.columns()[1].type_();
    if *found == Type::INT8_ARRAY {
        assert_eq!(row.get::<_, Vec<Option<i64>>>(1), [Some(1), None, Some(3)]);
    } else {
        assert_eq!(row.get::<_, Vec<Option<i32>>>(1), [Some(1), None, Some(3)]);
    }
    assert_eq!(row.get::<_, Vec<Option<&str>>>(2), [Some("a b"), None]);
    assert_eq!(row.get::<_, Vec<Option<i64>>>(3), [Some(5), None]);
}

#[tokio::test]
async fn damaged_binary_parameters_are_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let array = |count: i32| {
        [
            &1i32.to_be_bytes()[..],
            &[0; 4],
            &20u32.to_be_bytes(),
            &count.to_be_bytes(),
            &[0, 0, 0, 1],
        ]
        .concat()
    };
    for (sql, bytes) in [
        (
            "SELECT key FROM ducklake_metadata WHERE scope_id = $1",
            vec![1, 2, 3],
        ),
        (
            "SELECT key FROM ducklake_metadata WHERE scope_id = ANY($1)",
            vec![0; 11],
        ),
        (
            "SELECT key FROM ducklake_metadata WHERE scope_id = ANY($1)",
            array(i32::MAX),
        ),
        (
            "SELECT key FROM ducklake_metadata WHERE scope_id = ANY($1)",
            array(-1),
        ),
        (
            "SELECT key FROM ducklake_metadata WHERE scope_id = ANY($1)",
            [array(1), vec![0, 0, 0, 9, 1]].concat(),
        ),
    ] {
        client.parse("", sql, &[]).await;
        client.bind("", "", &[Some(&bytes)], true).await;
        client.execute("", 0).await;
        assert_eq!(client.sync().await.state(), "22P03", "{sql} {bytes:?}");
    }
}
