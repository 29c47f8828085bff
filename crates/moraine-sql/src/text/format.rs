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
        Value::Float32(value) => float_text(f64::from(*value), format!("{value:?}")),
        Value::Float64(value) => float_text(*value, format!("{value:?}")),
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

/// Rust prints the shortest digits that read back the same, as Postgres does; only the spellings differ.
fn float_text(value: f64, shortest: String) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else if let Some((mantissa, exponent)) = shortest.split_once('e') {
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        format!(
            "{}e{sign}{digits:0>2}",
            mantissa.strip_suffix(".0").unwrap_or(mantissa)
        )
    } else {
        shortest.strip_suffix(".0").map(str::to_owned).unwrap_or(shortest)
    }
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
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(format(&Value::Float64(value)).unwrap(), expected);
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
