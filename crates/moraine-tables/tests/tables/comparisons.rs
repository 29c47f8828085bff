//! Values compare as Postgres compares them.

use std::cmp::Ordering::{Equal, Greater, Less};

use bytes::Bytes;
use moraine_tables::{ColumnType, Numeric, Value};
use proptest::prelude::*;

fn numeric(text: &str) -> Value {
    Value::Numeric(Numeric::parse(text).unwrap())
}

#[test]
fn null_compares_with_nothing() {
    assert_eq!(Value::Null.compare(&Value::Null), None);
    assert_eq!(Value::Null.compare(&Value::Int64(1)), None);
    assert_eq!(Value::Int64(1).compare(&Value::Null), None);
    assert_eq!(Value::Int64(1).compare(&Value::text("1")), None);
}

#[test]
fn nan_is_the_greatest_number_and_equals_itself() {
    let (nan, infinity) = (Value::Float64(f64::NAN), Value::Float64(f64::INFINITY));
    assert_eq!(nan.compare(&infinity), Some(Greater));
    assert_eq!(infinity.compare(&nan), Some(Less));
    assert_eq!(nan.compare(&Value::Float64(-f64::NAN)), Some(Equal));
    assert_eq!(Value::Float64(0.0).compare(&Value::Float64(-0.0)), Some(Equal));
    assert_eq!(
        Value::Float32(f32::NAN).compare(&Value::Float32(f32::MAX)),
        Some(Greater)
    );
}

#[test]
fn text_compares_bytewise() {
    let ascending = ["", "A", "B", "a", "aa", "b", "z", "ä", "日本", "😀"];
    for pair in ascending.windows(2) {
        assert_eq!(
            Value::text(pair[0]).compare(&Value::text(pair[1])),
            Some(Less),
            "{pair:?}"
        );
    }
    let (short, long) = (
        Value::Bytes(Bytes::from_static(&[0])),
        Value::Bytes(Bytes::from_static(&[0, 0])),
    );
    assert_eq!(short.compare(&long), Some(Less));
    assert_eq!(
        Value::Bytes(Bytes::from_static(&[0xff])).compare(&long),
        Some(Greater)
    );
}

#[test]
fn decimals_compare_exactly_at_any_scale() {
    let ascending = [
        "-99999999999999999999999999999999999999",
        "-1.1",
        "-1.09",
        "-0.000001",
        "0",
        "0.0000000000000000000000000001",
        "0.1",
        "0.10000000000000000000000000000000000001",
        "1",
        "1.00001",
        "10",
        "99999999999999999999999999999999999999",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(
                numeric(a).compare(&numeric(b)),
                Some(i.cmp(&j)),
                "{a} against {b}"
            );
        }
    }
    assert_eq!(numeric("1.50").compare(&numeric("1.5")), Some(Equal));
    assert_eq!(numeric("0.00").compare(&numeric("0")), Some(Equal));
    assert_eq!(numeric("-0").compare(&numeric("0")), Some(Equal));
}

#[test]
fn decimals_are_written_and_rescaled_exactly() {
    for text in [
        "0",
        "-0.5",
        "0.05",
        "123.4500",
        "99999999999999999999999999999999999999",
        "-1",
    ] {
        assert_eq!(Numeric::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(
        Numeric {
            unscaled: 12,
            scale: -3
        }
        .to_string(),
        "12000"
    );
    assert_eq!(
        Numeric {
            unscaled: 5,
            scale: 3
        }
        .to_string(),
        "0.005"
    );
    for text in [
        "",
        ".",
        "-",
        "1.2.3",
        "1e5",
        "0x1",
        " 1",
        "999999999999999999999999999999999999999999",
    ] {
        assert!(Numeric::parse(text).is_none(), "{text}");
    }
    let number = Numeric::parse("1.25").unwrap();
    assert_eq!(number.rescale(4).unwrap().unscaled, 12_500);
    assert!(number.rescale(1).is_none());
    assert_eq!(Numeric::parse("1.20").unwrap().rescale(1).unwrap().unscaled, 12);
    assert!(Numeric::parse("1").unwrap().rescale(39).is_none());
    assert_eq!(Numeric::parse("0").unwrap().rescale(100).unwrap().unscaled, 0);
}

#[test]
fn integers_of_different_widths_and_instants_compare_by_value() {
    assert_eq!(Value::Int16(5).compare(&Value::Int64(5)), Some(Equal));
    assert_eq!(Value::Int32(-1).compare(&Value::Int16(1)), Some(Less));
    assert_eq!(Value::TimestampTz(1).compare(&Value::TimestampTz(2)), Some(Less));
    assert_eq!(Value::Date(i32::MAX).compare(&Value::Date(0)), Some(Greater));
    let noon = |offset_seconds| Value::TimeTz {
        micros: 43_200_000_000,
        offset_seconds,
    };
    assert_eq!(noon(3600).compare(&noon(0)), Some(Less));
    let interval = |months, days, micros| Value::Interval { months, days, micros };
    assert_eq!(interval(1, 0, 0).compare(&interval(0, 30, 0)), Some(Equal));
    assert_eq!(
        interval(0, 1, 0).compare(&interval(0, 0, 86_400_000_001)),
        Some(Less)
    );
    assert_ne!(interval(1, 0, 0), interval(0, 30, 0));
}

#[test]
fn types_are_named_and_found_by_name() {
    let types = [
        ColumnType::Bool,
        ColumnType::Int16,
        ColumnType::Int32,
        ColumnType::Int64,
        ColumnType::Float32,
        ColumnType::Float64,
        ColumnType::Numeric {
            precision: 18,
            scale: 3,
        },
        ColumnType::Text,
        ColumnType::Bytes,
        ColumnType::Uuid,
        ColumnType::Date,
        ColumnType::Timestamp,
        ColumnType::TimestampTz,
        ColumnType::Time,
        ColumnType::TimeTz,
        ColumnType::Interval,
    ];
    for column_type in types {
        assert_eq!(
            ColumnType::from_sql_name(&column_type.sql_name()),
            Some(column_type)
        );
        assert!(Value::Null.has_type(column_type));
    }
    assert_eq!(ColumnType::from_sql_name("numeric"), None);
}

proptest! {
    #[test]
    fn decimals_compare_like_fractions(a in -1_000_000_i128..1_000_000, b in -1_000_000_i128..1_000_000, s in 0_i8..10, t in 0_i8..10) {
        let ours = Numeric { unscaled: a, scale: s }.cmp(&Numeric { unscaled: b, scale: t });
        let theirs = (a * 10_i128.pow(u32::from(t.unsigned_abs()))).cmp(&(b * 10_i128.pow(u32::from(s.unsigned_abs()))));
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn floats_are_totally_ordered(a: f64, b: f64, c: f64) {
        let order = |x: f64, y: f64| Value::Float64(x).compare(&Value::Float64(y)).unwrap();
        prop_assert_eq!(order(a, b), order(b, a).reverse());
        if order(a, b).is_le() && order(b, c).is_le() {
            prop_assert!(order(a, c).is_le());
        }
    }
}
