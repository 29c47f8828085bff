//! Values onto the wire: how Postgres frames the text of a value, and its binary form.

use bytes::{BufMut, BytesMut};
pub(crate) use moraine_sql::text::format as text;
use moraine_tables::Value;

use super::{numeric, temporal};

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
