//! Values onto the wire: how Postgres frames the text of a value, and its binary form.

use bytes::{BufMut, BytesMut};
pub(crate) use moraine_sql::text::format as text;
use moraine_tables::{ColumnType, Value};
use postgres_types::Type;

use super::{arrays, decode, numeric, parse, temporal, types};

/// What the binary form of `jsonb` begins with.
pub(super) const JSONB_VERSION: u8 = 1;

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

/// Appends a field of a result column in the binary form of the column's type, whatever the value is carried as.
pub(crate) fn put_binary_as(out: &mut BytesMut, value: &Value, wire_type: &Type) {
    match value {
        Value::Null => out.put_i32(-1),
        Value::Text(text) => put_text_as(out, Some(text), wire_type),
        value => match whole(value).and_then(|number| sized(number, wire_type)) {
            Some(bytes) => {
                out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                out.put_slice(&bytes);
            }
            None if types::is_text(wire_type) => put_text_field(out, text(value).as_deref()),
            None => put_field(out, value, true),
        },
    }
}

/// Appends a text in the binary form of a type. What does not read as the type leaves as its text.
pub(crate) fn put_text_as(out: &mut BytesMut, text: Option<&str>, wire_type: &Type) {
    let Some(content) = text else {
        return out.put_i32(-1);
    };
    if let Some(element) = arrays::element(wire_type) {
        let at = out.len();
        out.put_i32(-1);
        arrays::put_binary(out, content, element);
        return patch_length(out, at);
    }
    if *wire_type == Type::JSONB {
        out.put_i32(i32::try_from(content.len() + 1).unwrap_or(i32::MAX));
        out.put_u8(JSONB_VERSION);
        return out.put_slice(content.as_bytes());
    }
    if types::is_text(wire_type) {
        return put_text_field(out, text);
    }
    let column_type = match types::of_wire_type(wire_type) {
        Some(ColumnType::Numeric { .. }) => Some(decode::natural_numeric(content)),
        // An object's number may be above the integers.
        Some(_) if types::is_object_id(wire_type) => Some(ColumnType::Int64),
        other => other,
    };
    match column_type.and_then(|column_type| parse::parse(content, column_type).ok()) {
        Some(Value::Text(_)) | None => put_text_field(out, text),
        Some(value) => put_binary_as(out, &value, wire_type),
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int16(number) => Some(i64::from(*number)),
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        _ => None,
    }
}

/// A whole number as wide as the type is; `None` for one that is no whole number's or too narrow.
fn sized(number: i64, wire_type: &Type) -> Option<Vec<u8>> {
    Some(match *wire_type {
        Type::INT2 => i16::try_from(number).ok()?.to_be_bytes().to_vec(),
        Type::INT4 => i32::try_from(number).ok()?.to_be_bytes().to_vec(),
        Type::INT8 => number.to_be_bytes().to_vec(),
        ref object if types::is_object_id(object) => u32::try_from(number).ok()?.to_be_bytes().to_vec(),
        _ => return None,
    })
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
