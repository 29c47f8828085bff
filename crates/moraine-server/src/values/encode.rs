//! Values onto the wire: Postgres's text and binary output of every type the tables have.

use bytes::{BufMut, BytesMut};
use moraine_tables::Value;
use moraine_tables::text::{render_time, render_time_tz};

use super::{numeric, temporal};

/// The text of a value; `None` for NULL.
pub(crate) fn text(value: &Value) -> Option<String> {
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

/// Appends a field as `DataRow` and binary COPY frame it: an i32 length (-1 for NULL) and the bytes.
pub(crate) fn put_field(out: &mut BytesMut, value: &Value, binary: bool) {
    if !binary {
        return put_text_field(out, text(value).as_deref());
    }
    let at = out.len();
    out.put_i32(-1);
    if matches!(value, Value::Null) {
        return;
    }
    put_binary(out, value);
    patch_length(out, at);
}

/// Appends a text field, or NULL.
pub(crate) fn put_text_field(out: &mut BytesMut, text: Option<&str>) {
    match text {
        Some(text) => {
            out.put_i32(i32::try_from(text.len()).unwrap_or(i32::MAX));
            out.put_slice(text.as_bytes());
        }
        None => out.put_i32(-1),
    }
}

fn patch_length(out: &mut BytesMut, at: usize) {
    let length = i32::try_from(out.len().saturating_sub(at + 4)).unwrap_or(i32::MAX);
    if let Some(slot) = out.get_mut(at..at + 4) {
        slot.copy_from_slice(&length.to_be_bytes());
    }
}

fn put_binary(out: &mut BytesMut, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(value) => out.put_u8(u8::from(*value)),
        Value::Int16(value) => out.put_i16(*value),
        Value::Int32(value) => out.put_i32(*value),
        Value::Int64(value) => out.put_i64(*value),
        Value::Float32(value) => out.put_f32(*value),
        Value::Float64(value) => out.put_f64(*value),
        Value::Numeric(value) => numeric::put_binary(*value, out),
        Value::Text(value) => out.put_slice(value.as_bytes()),
        Value::Bytes(value) => out.put_slice(value),
        Value::Uuid(value) => out.put_slice(value),
        Value::Date(days) => out.put_i32(match *days {
            infinite @ (i32::MAX | i32::MIN) => infinite,
            days => days.saturating_sub(temporal::POSTGRES_EPOCH_DAYS),
        }),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => out.put_i64(match *micros {
            infinite @ (i64::MAX | i64::MIN) => infinite,
            micros => micros.saturating_sub(temporal::POSTGRES_EPOCH_MICROS),
        }),
        Value::Time(micros) => out.put_i64(*micros),
        Value::TimeTz {
            micros,
            offset_seconds,
        } => {
            out.put_i64(*micros);
            // The wire counts seconds west of Greenwich.
            out.put_i32(offset_seconds.saturating_neg());
        }
        Value::Interval { months, days, micros } => {
            out.put_i64(*micros);
            out.put_i32(*days);
            out.put_i32(*months);
        }
    }
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
            assert_eq!(text(&Value::Float64(value)).unwrap(), expected);
        }
    }

    #[test]
    fn a_uuid_has_its_dashes_where_they_belong() {
        let bytes: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        assert_eq!(
            text(&Value::Uuid(bytes)).unwrap(),
            "00010203-0405-0607-0809-0a0b0c0d0e0f"
        );
    }

    #[test]
    fn an_instant_counts_from_2000_on_the_wire() {
        let mut out = BytesMut::new();
        put_field(
            &mut out,
            &Value::TimestampTz(temporal::POSTGRES_EPOCH_MICROS + 1),
            true,
        );
        assert_eq!(out.as_ref(), [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
