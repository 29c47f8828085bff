//! Values as text: Postgres's output functions for every type the tables have.

use moraine_tables::Value;
use moraine_tables::text::{render_time, render_time_tz};

use super::temporal;

/// The text of a value; `None` for NULL.
pub fn format(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
        Value::Int16(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Float32(value) => single_text(*value),
        Value::Float64(value) => float_text(*value, &format!("{value:e}"), FLOAT8_DIGITS),
        Value::Numeric(value) => value.to_string(),
        Value::Text(value) => value.to_string(),
        Value::Bytes(value) => hex(value),
        Value::Uuid(value) => uuid_text(value),
        Value::Date(days) => temporal::format_date(*days),
        Value::Timestamp(micros) => temporal::format_timestamp(*micros, ""),
        Value::TimestampTz(micros) => temporal::format_timestamp(*micros, "+00"),
        Value::Time(micros) => render_time(*micros),
        Value::TimeTz {
            micros,
            offset_seconds,
        } => render_time_tz(*micros, *offset_seconds),
        Value::Interval { months, days, micros } => temporal::format_interval(*months, *days, *micros),
    })
}

/// Places before the point that a `double precision` is written with. Source: PostgreSQL, `DBL_DIG`.
const FLOAT8_DIGITS: i32 = 15;
/// Places before the point that a `real` is written with. Source: PostgreSQL, `FLT_DIG`.
const FLOAT4_DIGITS: i32 = 6;

fn single_text(value: f32) -> String {
    let scientific = float_text(f64::from(value), &format!("{value:e}"), FLOAT4_DIGITS);
    // Spelled out, the digits are those of the narrower type.
    if value.is_finite() && !scientific.contains('e') {
        return format!("{value}");
    }
    scientific
}

/// Rust finds the shortest digits that read back the same, as Postgres does; only the spellings differ. `digits` is how
/// many places before the point are spelled out.
fn float_text(value: f64, shortest: &str, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= digits {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("\\x");
    for byte in bytes {
        out.extend(DIGITS.get(usize::from(byte >> 4)));
        out.extend(DIGITS.get(usize::from(byte & 15)));
    }
    out
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_postgres_prints_them() {
        for (value, expected) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (1e300, "1e+300"),
            (1e-10, "1e-10"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-0.0, "-0"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(format(&Value::Float64(value)).unwrap(), expected);
        }
        for (value, expected) in [
            (0.1, "0.1"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.234567e+06"),
            (3.4e38, "3.4e+38"),
        ] {
            assert_eq!(format(&Value::Float32(value)).unwrap(), expected);
        }
    }

    #[test]
    fn a_uuid_has_its_dashes_where_they_belong() {
        let bytes: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        assert_eq!(
            format(&Value::Uuid(bytes)).unwrap(),
            "00010203-0405-0607-0809-0a0b0c0d0e0f"
        );
    }
}
