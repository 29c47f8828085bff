//! Values of every type through the door: text in, text and binary out, and back.

use crate::client::{Client, TestServer, fields};

/// Column type, literal, text, binary.
type Case = (&'static str, &'static str, &'static str, Vec<u8>);

fn cases() -> Vec<Case> {
    [numbers(), others()].concat()
}

fn numbers() -> Vec<Case> {
    vec![
        ("BOOLEAN", "true", "t", vec![1]),
        ("SMALLINT", "-32768", "-32768", (-32768i16).to_be_bytes().to_vec()),
        (
            "INTEGER",
            "2147483647",
            "2147483647",
            i32::MAX.to_be_bytes().to_vec(),
        ),
        (
            "BIGINT",
            "-9223372036854775808",
            "-9223372036854775808",
            i64::MIN.to_be_bytes().to_vec(),
        ),
        ("REAL", "1.5", "1.5", 1.5f32.to_be_bytes().to_vec()),
        (
            "REAL",
            "CAST('inf' AS REAL)",
            "Infinity",
            f32::INFINITY.to_be_bytes().to_vec(),
        ),
        (
            "DOUBLE PRECISION",
            "CAST('nan' AS DOUBLE PRECISION)",
            "NaN",
            f64::NAN.to_be_bytes().to_vec(),
        ),
        (
            "DOUBLE PRECISION",
            "1e300",
            "1e+300",
            1e300f64.to_be_bytes().to_vec(),
        ),
        // Two groups before the point, one behind it.
        (
            "DECIMAL(10,2)",
            "-12345.67",
            "-12345.67",
            vec![0, 3, 0, 1, 64, 0, 0, 2, 0, 1, 9, 41, 26, 44],
        ),
        (
            "DECIMAL(38,10)",
            "1234567890123456789012345678.0123456789",
            "1234567890123456789012345678.0123456789",
            vec![
                0, 10, 0, 6, 0, 0, 0, 10, 4, 210, 22, 46, 35, 52, 13, 128, 30, 210, 4, 210, 22, 46, 0, 123,
                17, 215, 34, 196,
            ],
        ),
    ]
}

fn others() -> Vec<Case> {
    // 2024-01-15 12:30:45.5 in microseconds since 2000.
    let micros_2024: i64 = 758_637_045_500_000;
    vec![
        ("BYTEA", "'\\x00ff5c'", "\\x00ff5c", vec![0, 255, 92]),
        (
            "UUID",
            "'00010203-0405-0607-0809-0a0b0c0d0e0f'",
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
            (0..16).collect(),
        ),
        (
            "TIME",
            "'12:30:45.5'",
            "12:30:45.5",
            45_045_500_000i64.to_be_bytes().to_vec(),
        ),
        (
            "TIME WITH TIME ZONE",
            "'12:30:45+02:30'",
            "12:30:45+02:30",
            [
                45_045_000_000i64.to_be_bytes().to_vec(),
                (-9000i32).to_be_bytes().to_vec(),
            ]
            .concat(),
        ),
        (
            "INTERVAL",
            "'14 months -2 days 3000000 microseconds'",
            "1 year 2 mons -2 days +00:00:03",
            [
                3_000_000i64.to_be_bytes().to_vec(),
                (-2i32).to_be_bytes().to_vec(),
                14i32.to_be_bytes().to_vec(),
            ]
            .concat(),
        ),
        (
            "VARCHAR",
            "CAST('2024-01-15 12:30:45.5' AS VARCHAR)",
            "2024-01-15 12:30:45.5",
            b"2024-01-15 12:30:45.5".to_vec(),
        ),
        (
            "VARCHAR",
            "170141183460469231731687303715884105727",
            "170141183460469231731687303715884105727",
            b"170141183460469231731687303715884105727".to_vec(),
        ),
        (
            "TIMESTAMP",
            "'2024-01-15 12:30:45.5'",
            "2024-01-15 12:30:45.5",
            micros_2024.to_be_bytes().to_vec(),
        ),
        (
            "DATE",
            "'1999-12-31'",
            "1999-12-31",
            (-1i32).to_be_bytes().to_vec(),
        ),
    ]
}

/// The DuckLake type of a column that the door carries as this type.
fn ducklake_type(door: &str) -> &str {
    match door {
        "BOOLEAN" => "boolean",
        "SMALLINT" => "int16",
        "INTEGER" => "int32",
        "BIGINT" => "int64",
        "REAL" => "float32",
        "DOUBLE PRECISION" => "float64",
        "DECIMAL(10,2)" => "decimal(10,2)",
        "DECIMAL(38,10)" => "decimal(38,10)",
        "BYTEA" => "blob",
        "UUID" => "uuid",
        "TIME" => "time",
        "TIME WITH TIME ZONE" => "timetz",
        "INTERVAL" => "interval",
        _ => "varchar",
    }
}

/// A lake with one inlined table whose user columns are those of the cases.
async fn inlined_table(client: &mut Client, cases: &[Case]) {
    client.run("BEGIN").await;
    client
        .run(
            "INSERT INTO ducklake_snapshot VALUES (1, NOW(), 1, 2, 0);
             INSERT INTO ducklake_table VALUES
                (1, 'b4b2f3c0-0000-4000-8000-000000000001', 1, NULL, 0, 't', 't/', true);
             INSERT INTO ducklake_snapshot_changes VALUES (1, 'created_table:\"main\".\"t\"', NULL, NULL, NULL);
             INSERT INTO ducklake_schema_versions VALUES (1, 1, 1)",
        )
        .await;
    for (index, (door, ..)) in cases.iter().enumerate() {
        let number = index + 1;
        let data_type = ducklake_type(door);
        client
            .run(&format!(
                "INSERT INTO ducklake_column VALUES ({number}, 1, NULL, 1, {number}, 'c{index}', '{data_type}', NULL, \
                 'NULL', true, NULL, 'literal', NULL)"
            ))
            .await;
    }
    let columns: Vec<String> = cases
        .iter()
        .enumerate()
        .map(|(index, (door, ..))| format!("\"c{index}\" {door}"))
        .collect();
    client
        .run(&format!(
            "CREATE TABLE IF NOT EXISTS \"public\".ducklake_inlined_data_1_1(row_id BIGINT, begin_snapshot BIGINT, \
             end_snapshot BIGINT, {})",
            columns.join(", ")
        ))
        .await;
    client
        .run("INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 1)")
        .await;
    client.run("COMMIT").await;
}

/// A binary COPY of row 3 of the inlined table, with these user columns.
fn one_row_copy(header: &[u8], row: Vec<Option<Vec<u8>>>) -> Vec<u8> {
    let mut copy = header.to_vec();
    copy.extend(i16::try_from(row.len() + 3).unwrap().to_be_bytes());
    for value in [3i64.to_be_bytes(), 3i64.to_be_bytes()] {
        copy.extend(8i32.to_be_bytes());
        copy.extend(value);
    }
    copy.extend((-1i32).to_be_bytes());
    for field in row.into_iter().flatten() {
        copy.extend(i32::try_from(field.len()).unwrap().to_be_bytes());
        copy.extend(field);
    }
    copy.extend([255, 255]);
    copy
}

#[tokio::test]
async fn every_type_goes_in_as_a_literal_and_comes_out_as_text_and_binary() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let cases = cases();
    inlined_table(&mut client, &cases).await;
    let literals: Vec<&str> = cases.iter().map(|(_, literal, ..)| *literal).collect();
    let nulls = vec!["NULL"; cases.len()];
    client.run("BEGIN").await;
    client
        .run(&format!(
            "INSERT INTO ducklake_snapshot VALUES (2, NOW(), 1, 2, 0); \
             INSERT INTO ducklake_inlined_data_1_1 VALUES (0, 2, NULL, {}), (1, 2, NULL, {}); \
             INSERT INTO ducklake_snapshot_changes VALUES (2, 'inlined_insert:1', NULL, NULL, NULL)",
            literals.join(", "),
            nulls.join(", ")
        ))
        .await;
    client.run("COMMIT").await;
    let columns: Vec<String> = (0..cases.len()).map(|index| format!("c{index}")).collect();
    let columns = columns.join(", ");
    let texts = client
        .run(&format!(
            "SELECT {columns} FROM ducklake_inlined_data_1_1 WHERE begin_snapshot <= '2'"
        ))
        .await;
    let expected: Vec<String> = cases.iter().map(|(_, _, text, _)| (*text).to_owned()).collect();
    assert_eq!(texts.table()[0], expected);
    assert_eq!(texts.table()[1], vec!["NULL".to_owned(); cases.len()]);
    let copied = client
        .run(&format!(
            "COPY (SELECT {columns} FROM ducklake_inlined_data_1_1) TO STDOUT (FORMAT binary)"
        ))
        .await;
    let data = copied.copy_data().concat();
    let row = fields(&data[19..]);
    for ((door, _, _, binary), found) in cases.iter().zip(&row) {
        assert_eq!(found.as_ref(), Some(binary), "{door}");
    }
    // The same bytes are taken back.
    let again = one_row_copy(&data[..19], row);
    client
        .run("BEGIN; INSERT INTO ducklake_snapshot VALUES (3, NOW(), 1, 2, 0)")
        .await;
    client
        .copy_in(
            "COPY ducklake_inlined_data_1_1 FROM STDIN (FORMAT BINARY)",
            &[&again],
        )
        .await
        .ok();
    let back = client
        .run(&format!(
            "SELECT {columns} FROM ducklake_inlined_data_1_1 WHERE row_id = 3"
        ))
        .await;
    assert_eq!(back.table(), [expected]);
    client.run("ROLLBACK").await;
}

#[tokio::test]
async fn results_are_described_with_the_types_of_their_columns() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    let cases = cases();
    inlined_table(&mut client, &cases).await;
    let answer = client.run("SELECT *, ctid FROM ducklake_inlined_data_1_1").await;
    let described = &answer.of_kind('T')[0].body;
    let mut rest = &described[2..];
    let mut types = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).unwrap();
        let fixed = &rest[end + 7..end + 19];
        let oid = u32::from_be_bytes(fixed[..4].try_into().unwrap());
        let modifier = i32::from_be_bytes(fixed[6..10].try_into().unwrap());
        types.push((oid, modifier));
        rest = &rest[end + 19..];
    }
    let decimal = |precision: i32, scale: i32| (1700, ((precision << 16) | scale) + 4);
    let expected = [
        (20, -1),
        (20, -1),
        (20, -1),
        (16, -1),
        (21, -1),
        (23, -1),
        (20, -1),
        (700, -1),
        (700, -1),
        (701, -1),
        (701, -1),
        decimal(10, 2),
        decimal(38, 10),
        (17, -1),
        (2950, -1),
        (1083, -1),
        (1266, -1),
        (1186, -1),
        (1043, -1),
        (1043, -1),
        (1114, -1),
        (1082, -1),
        (27, -1),
    ];
    assert_eq!(types, expected);
}

#[tokio::test]
async fn reals_meet_other_numbers_as_doubles() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    inlined_table(&mut client, &[("REAL", "", "", Vec::new())]).await;
    let insert = "INSERT INTO ducklake_snapshot VALUES (2, NOW(), 1, 2, 0); \
                  INSERT INTO ducklake_inlined_data_1_1 VALUES (0, 2, NULL, '0.1'), (1, 2, NULL, '0.5'), \
                  (2, 2, NULL, 'NaN'), (3, 2, NULL, NULL)";
    client.run("BEGIN").await;
    client.run(insert).await;
    // As PostgreSQL 15 answers: the REAL 0.1 is greater than 0.1.
    for (condition, expected) in [
        ("= 0.5", "1"),
        ("= 0.1", "~"),
        ("<> 0.1", "0,1,2"),
        ("< 0.1", "~"),
        ("<= 0.1", "~"),
        ("> 0.1", "0,1,2"),
        (">= 0.1", "0,1,2"),
        ("= '0.1'", "0"),
        ("< '0.2'", "0"),
        ("> 1e39", "2"),
        ("< 1e39", "0,1"),
    ] {
        for from in [
            "ducklake_inlined_data_1_1",
            "ducklake_inlined_data_1_1 x CROSS JOIN (SELECT 1) y",
        ] {
            let query = format!("SELECT row_id FROM {from} WHERE c0 {condition} ORDER BY row_id");
            let rows = client.run(&query).await.table();
            let found: Vec<String> = rows.into_iter().flatten().collect();
            let found = if found.is_empty() {
                "~".to_owned()
            } else {
                found.join(",")
            };
            assert_eq!(found, expected, "{query}");
        }
    }
}
