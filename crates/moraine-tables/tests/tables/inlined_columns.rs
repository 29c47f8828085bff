//! Columns of inlined tables: stored as the type DuckLake declared, given back as they came, whatever the type.

use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;
use moraine_commit::CatalogTransaction;
use moraine_tables::{
    Column, ColumnType, DOOR_TYPE_METADATA_KEY, Numeric, Relation, Value, create, describe, insert,
};

use crate::support::{Lake, Null, refusal, row, rows};

const DATA: Relation = Relation::InlinedData {
    table_id: 7,
    schema_version: 1,
};

/// A column of a DuckLake type as DuckLake creates it at the door, and values of it.
#[derive(Clone)]
struct Case {
    ducklake: &'static str,
    door: ColumnType,
    stored: DataType,
    values: Vec<Value>,
}

fn case(ducklake: &'static str, door: ColumnType, stored: DataType, values: Vec<Value>) -> Case {
    Case {
        ducklake,
        door,
        stored,
        values,
    }
}

/// The texts of a type that DuckDB wrote.
fn texts(data_type: &str) -> Vec<Value> {
    include_str!("duckdb_texts.tsv")
        .lines()
        .filter_map(|line| {
            let (found, rest) = line.split_once('\t').unwrap();
            (found == data_type).then(|| Value::text(rest.split_once('\t').unwrap().1))
        })
        .collect()
}

fn bytes(values: &[&'static [u8]]) -> Vec<Value> {
    values
        .iter()
        .map(|value| Value::Bytes(Bytes::from_static(value)))
        .collect()
}

fn integers() -> Vec<Case> {
    use ColumnType::{Bool, Int16, Int32, Int64, Text};
    let int16 = |values: &[i16]| values.iter().map(|v| Value::Int16(*v)).collect();
    let int32 = |values: &[i32]| values.iter().map(|v| Value::Int32(*v)).collect();
    let int64 = |values: &[i64]| values.iter().map(|v| Value::Int64(*v)).collect();
    let both = vec![Value::Bool(true), Value::Bool(false)];
    vec![
        case("boolean", Bool, DataType::Boolean, both),
        case("int8", Int16, DataType::Int8, int16(&[-128, 0, 127])),
        case("int16", Int16, DataType::Int16, int16(&[i16::MIN, i16::MAX])),
        case("int32", Int32, DataType::Int32, int32(&[i32::MIN, i32::MAX])),
        case("int64", Int64, DataType::Int64, int64(&[i64::MIN, i64::MAX])),
        case("uint8", Int32, DataType::UInt8, int32(&[0, 255])),
        case("uint16", Int32, DataType::UInt16, int32(&[0, 65535])),
        case("uint32", Int64, DataType::UInt32, int64(&[0, 4_294_967_295])),
        case("uint64", Text, DataType::UInt64, texts("uint64")),
        case("int128", Text, DataType::Decimal256(39, 0), texts("int128")),
        case("uint128", Text, DataType::Decimal256(39, 0), texts("uint128")),
    ]
}

fn fractions() -> Vec<Case> {
    let numeric = |precision, scale, texts: &[&str]| {
        let number = |text: &&str| Value::Numeric(Numeric::parse(text).unwrap().rescale(scale).unwrap());
        let name = if scale == 0 {
            "decimal(38,0)"
        } else {
            "decimal(18,3)"
        };
        let door = ColumnType::Numeric { precision, scale };
        case(
            name,
            door,
            DataType::Decimal128(precision, scale),
            texts.iter().map(number).collect(),
        )
    };
    let singles = [
        0.0,
        -0.0,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let doubles = [
        0.1,
        -0.0,
        f64::MIN_POSITIVE,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let singles = singles.map(Value::Float32).to_vec();
    let doubles = doubles.map(Value::Float64).to_vec();
    vec![
        case("float32", ColumnType::Float32, DataType::Float32, singles),
        case("float64", ColumnType::Float64, DataType::Float64, doubles),
        numeric(18, 3, &["0", "-0.001", "999999999999999.999"]),
        numeric(38, 0, &["99999999999999999999999999999999999999", "-1"]),
    ]
}

fn instants() -> Vec<Case> {
    use ColumnType::{Interval, Text, Time, TimeTz};
    let text = |name, unit| case(name, Text, DataType::Timestamp(unit, None), texts(name));
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let time_tz = |micros, offset_seconds| Value::TimeTz {
        micros,
        offset_seconds,
    };
    let interval = |months, days, micros| Value::Interval { months, days, micros };
    let times = [0, 86_400_000_000].map(Value::Time).to_vec();
    let times_tz = vec![
        time_tz(0, 57_599),
        time_tz(86_400_000_000, -57_599),
        time_tz(1, 5400),
    ];
    let spans = vec![
        interval(0, 0, i64::MAX),
        interval(i32::MIN, i32::MAX, i64::MIN),
        interval(1, -30, 0),
    ];
    vec![
        case("date", Text, DataType::Date32, texts("date")),
        text("timestamp", TimeUnit::Microsecond),
        case(
            "timestamp_us",
            Text,
            DataType::Timestamp(TimeUnit::Microsecond, None),
            texts("timestamp"),
        ),
        text("timestamp_s", TimeUnit::Second),
        text("timestamp_ms", TimeUnit::Millisecond),
        text("timestamp_ns", TimeUnit::Nanosecond),
        case("timestamptz", Text, utc, texts("timestamptz")),
        case("time", Time, DataType::Time64(TimeUnit::Microsecond), times),
        case("timetz", TimeTz, DataType::Utf8, times_tz),
        case("interval", Interval, DataType::Utf8, spans),
    ]
}

fn others() -> Vec<Case> {
    use ColumnType::{Bytes, Text, Uuid};
    let nested = || {
        ["[1, 2, NULL]", "{'a': 1, 'b': 'x\\'y'}", "{a=1}", ""]
            .map(Value::text)
            .to_vec()
    };
    let strings = bytes(&[b"", b"a\0b", "\u{1F600} ü ' \" \\".as_bytes()]);
    let uuids = vec![Value::Uuid([0; 16]), Value::Uuid([255; 16])];
    vec![
        case("varchar", Bytes, DataType::Utf8, strings),
        case("json", Bytes, DataType::Utf8, bytes(&[b"{\"a\": [1, null]}"])),
        case(
            "blob",
            Bytes,
            DataType::Binary,
            bytes(&[b"", b"\x00\xff\xfe", b"\\x00"]),
        ),
        case("uuid", Uuid, DataType::FixedSizeBinary(16), uuids),
        case("list", Text, DataType::Utf8, nested()),
        case("struct", Text, DataType::Utf8, nested()),
        // Where the door does not carry what the type asks for, the door's own form is kept.
        case("date", Bytes, DataType::Binary, bytes(&[b"2024-01-01", b"\xff"])),
        case("unknown", Text, DataType::Utf8, vec![Value::text("anything")]),
        case("decimal(18,3)", Text, DataType::Utf8, vec![Value::text("1.0")]),
    ]
}

async fn create_column(tx: &mut CatalogTransaction, case: &Case) {
    let declared = row![
        1,
        1,
        Null,
        7,
        1,
        "c",
        case.ducklake,
        Null,
        Null,
        true,
        Null,
        Null,
        Null
    ];
    insert(tx, Relation::Column, vec![declared]).await.unwrap();
    create(tx, DATA, Some(vec![Column::new("c", case.door)]))
        .await
        .unwrap();
    insert(
        tx,
        Relation::InlinedDataTables,
        vec![row![7, DATA.name().as_str(), 1]],
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn every_value_of_every_type_comes_back_as_it_came() {
    for mut case in [integers(), fractions(), instants(), others()].concat() {
        case.values.push(Value::Null);
        let lake = Lake::new().await;
        let mut tx = lake.begin_snapshot().await;
        create_column(&mut tx, &case).await;
        let inserted: Vec<Vec<Value>> = case
            .values
            .iter()
            .enumerate()
            .map(|(row_id, value)| row![i64::try_from(row_id).unwrap(), 1, Null, value.clone()])
            .collect();
        insert(&mut tx, DATA, inserted.clone())
            .await
            .unwrap_or_else(|e| panic!("{}: {e}", case.ducklake));
        tx.commit().await.unwrap();

        let tx = lake.reopen().begin().await;
        let schema = describe(&tx, DATA).await.unwrap().unwrap();
        assert_eq!(
            schema.columns[3],
            Column::new("c", case.door),
            "{}",
            case.ducklake
        );
        let stored = moraine_inline::schema(tx.read(), 7, 1).await.unwrap().unwrap();
        assert_eq!(stored.field(0).data_type(), &case.stored, "{}", case.ducklake);
        assert_eq!(
            stored.field(0).metadata()[DOOR_TYPE_METADATA_KEY],
            case.door.sql_name()
        );
        assert_eq!(rows(&tx, DATA).await, inserted, "{}", case.ducklake);
    }
}

#[tokio::test]
async fn a_value_that_would_not_come_back_as_it_came_is_refused_by_column_and_value() {
    let text = |ducklake, value: &str| (ducklake, ColumnType::Text, Value::text(value), "InvalidText");
    let cases = [
        text("date", "2024-1-1"),
        text("timestamp", "2024-01-01 00:00:00.10"),
        text("timestamp_s", "2024-01-01 00:00:00.5"),
        text("timestamptz", "2024-01-01 00:00:00-05"),
        text("uint64", "-1"),
        text("int128", "1.5"),
        (
            "varchar",
            ColumnType::Bytes,
            Value::Bytes(Bytes::from_static(b"\xff")),
            "InvalidText",
        ),
        ("int8", ColumnType::Int16, Value::Int16(128), "OutOfRange"),
        ("uint32", ColumnType::Int64, Value::Int64(-1), "OutOfRange"),
        (
            "decimal(4,2)",
            ColumnType::Numeric {
                precision: 4,
                scale: 2,
            },
            Value::Numeric(Numeric {
                unscaled: 10_000,
                scale: 2,
            }),
            "OutOfRange",
        ),
        (
            "decimal(4,2)",
            ColumnType::Numeric {
                precision: 4,
                scale: 2,
            },
            Value::Numeric(Numeric {
                unscaled: 1,
                scale: 3,
            }),
            "OutOfRange",
        ),
        ("int32", ColumnType::Int32, Value::text("1"), "Type"),
    ];
    for (ducklake, door, value, expected) in cases {
        let lake = Lake::new().await;
        let mut tx = lake.begin_snapshot().await;
        create_column(&mut tx, &case(ducklake, door, DataType::Null, vec![])).await;
        let good = row![0, 1, Null, Null];
        let (variant, error) = refusal(insert(&mut tx, DATA, vec![good, row![1, 1, Null, value]]).await);
        assert_eq!(variant, expected, "{ducklake}: {error}");
        assert!(
            error.contains("\"c\"") && error.contains("ducklake_inlined_data_7_1"),
            "{error}"
        );
        assert!(rows(&tx, DATA).await.is_empty());
    }
}

#[tokio::test]
async fn columns_another_writer_stored_are_served_as_ducklakes_postgres_catalog_would() {
    use arrow_schema::{Field, Schema};
    use moraine_commit::InlineChange;

    let expected = [
        (DataType::Utf8, ColumnType::Bytes),
        (DataType::Binary, ColumnType::Bytes),
        (DataType::Date32, ColumnType::Text),
        (DataType::Timestamp(TimeUnit::Nanosecond, None), ColumnType::Text),
        (
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            ColumnType::Text,
        ),
        (DataType::Int8, ColumnType::Int16),
        (DataType::UInt16, ColumnType::Int32),
        (DataType::UInt32, ColumnType::Int64),
        (DataType::UInt64, ColumnType::Text),
        (
            DataType::Decimal128(9, 2),
            ColumnType::Numeric {
                precision: 9,
                scale: 2,
            },
        ),
        (
            DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano),
            ColumnType::Interval,
        ),
    ];
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let fields: Vec<Field> = expected
        .iter()
        .enumerate()
        .map(|(n, (t, _))| Field::new(format!("c{n}"), t.clone(), true))
        .collect();
    let schema = std::sync::Arc::new(Schema::new(fields));
    tx.inline(InlineChange::CreateTable {
        table_id: 7,
        schema_version: 1,
        schema,
    })
    .await
    .unwrap();
    let described = describe(&tx, DATA).await.unwrap().unwrap();
    for (column, (stored, door)) in described.columns[3..].iter().zip(&expected) {
        assert_eq!(column.column_type, *door, "{stored}");
    }
}

#[tokio::test]
async fn a_stored_column_that_postgres_cannot_show_is_named_and_hides_no_other_table() {
    use arrow_schema::{Field, Schema};
    use moraine_commit::InlineChange;

    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    create(&mut tx, DATA, Some(vec![Column::new("c", ColumnType::Int32)]))
        .await
        .unwrap();
    let list = DataType::List(std::sync::Arc::new(Field::new("item", DataType::Int32, true)));
    let schema = std::sync::Arc::new(Schema::new(vec![Field::new("odd", list, true)]));
    tx.inline(InlineChange::CreateTable {
        table_id: 8,
        schema_version: 1,
        schema,
    })
    .await
    .unwrap();
    let refused = describe(
        &tx,
        Relation::InlinedData {
            table_id: 8,
            schema_version: 1,
        },
    )
    .await
    .unwrap_err();
    assert!(refused.to_string().contains("\"odd\""), "{refused}");
    assert!(
        moraine_tables::list(&tx)
            .await
            .unwrap()
            .iter()
            .any(|(relation, _)| *relation == DATA)
    );
}
