//! Binary values from the wire: the fields of a binary COPY and binary parameters, as a column's type.

use bytes::{Buf, Bytes};
use moraine_tables::{ColumnType, Value};
use postgres_types::Type;

use super::{numeric, temporal, types};

/// Digits that a decimal has at most.
const NUMERIC_DIGITS_MAX: u16 = 38;

/// Reads one binary value of a Postgres type: nothing for a type that is not known here, and an inner nothing when the
/// bytes are not of the type's form. A numeric keeps the digits it has.
pub(crate) fn typed(bytes: &[u8], wire_type: &Type) -> Option<Option<Value>> {
    if types::is_object_id(wire_type) {
        let number = <[u8; 4]>::try_from(bytes).ok().map(u32::from_be_bytes);
        return Some(number.map(|number| Value::Int64(i64::from(number))));
    }
    if *wire_type == Type::JSONB {
        let text = bytes.strip_prefix(&[super::encode::JSONB_VERSION]);
        return Some(text.and_then(|text| binary(text, ColumnType::Text)));
    }
    Some(match types::of_wire_type(wire_type)? {
        ColumnType::Numeric { .. } => {
            let scale = bytes.get(6..8).map_or(0, |scale| match scale {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            });
            let scale = i8::try_from(scale.min(NUMERIC_DIGITS_MAX)).unwrap_or(i8::MAX);
            binary(bytes, ColumnType::Numeric { precision: 38, scale })
        }
        // A client may send any length of what is sized, and gets an error for it.
        sized => binary(bytes, sized),
    })
}

/// The type of a decimal with the digits that its text has, an exponent counted in.
pub(crate) fn natural_numeric(text: &str) -> ColumnType {
    let (digits, exponent) = text.trim().split_once(['e', 'E']).unwrap_or((text, "0"));
    let fraction = digits.split_once('.').map_or(0, |(_, fraction)| {
        fraction.chars().take_while(char::is_ascii_digit).count()
    });
    let fraction = i64::try_from(fraction).unwrap_or(i64::MAX);
    let scale = fraction.saturating_sub(exponent.parse().unwrap_or(0));
    let scale = scale.clamp(0, i64::from(NUMERIC_DIGITS_MAX));
    ColumnType::Numeric {
        precision: 38,
        scale: i8::try_from(scale).unwrap_or(i8::MAX),
    }
}

/// Reads one binary field as the given type; `None` when the bytes are not of that type's form.
pub(crate) fn binary(bytes: &[u8], column_type: ColumnType) -> Option<Value> {
    let mut rest = bytes;
    let length = bytes.len();
    let sized = |size: usize| (length == size).then_some(());
    Some(match column_type {
        ColumnType::Text => Value::Text(std::str::from_utf8(bytes).ok()?.into()),
        ColumnType::Bytes => Value::Bytes(Bytes::copy_from_slice(bytes)),
        ColumnType::Bool => {
            sized(1)?;
            Value::Bool(rest.get_u8() != 0)
        }
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => integer(bytes, column_type)?,
        ColumnType::Float32 => {
            sized(4)?;
            Value::Float32(rest.get_f32())
        }
        ColumnType::Float64 => match length {
            4 => Value::Float64(f64::from(rest.get_f32())),
            _ => {
                sized(8)?;
                Value::Float64(rest.get_f64())
            }
        },
        ColumnType::Numeric { precision, scale } => {
            Value::Numeric(numeric::from_binary(bytes, precision, scale).ok()?)
        }
        ColumnType::Uuid => Value::Uuid(bytes.try_into().ok()?),
        ColumnType::Date => {
            sized(4)?;
            Value::Date(match rest.get_i32() {
                infinite @ (i32::MAX | i32::MIN) => infinite,
                days => days.checked_add(temporal::POSTGRES_EPOCH_DAYS)?,
            })
        }
        ColumnType::Timestamp => Value::Timestamp(timestamp(bytes)?),
        ColumnType::TimestampTz => Value::TimestampTz(timestamp(bytes)?),
        ColumnType::Time => {
            sized(8)?;
            Value::Time(rest.get_i64())
        }
        ColumnType::TimeTz => {
            sized(12)?;
            let micros = rest.get_i64();
            Value::TimeTz {
                micros,
                offset_seconds: rest.get_i32().checked_neg()?,
            }
        }
        ColumnType::Interval => {
            sized(16)?;
            let (micros, days, months) = (rest.get_i64(), rest.get_i32(), rest.get_i32());
            Value::Interval { months, days, micros }
        }
    })
}

/// An integer of any width that fits the column: a client may send int4 for a bigint parameter.
fn integer(mut bytes: &[u8], column_type: ColumnType) -> Option<Value> {
    let value = match bytes.len() {
        2 => i64::from(bytes.get_i16()),
        4 => i64::from(bytes.get_i32()),
        8 => bytes.get_i64(),
        _ => return None,
    };
    Some(match column_type {
        ColumnType::Int16 => Value::Int16(i16::try_from(value).ok()?),
        ColumnType::Int32 => Value::Int32(i32::try_from(value).ok()?),
        _ => Value::Int64(value),
    })
}

fn timestamp(mut bytes: &[u8]) -> Option<i64> {
    if bytes.len() != 8 {
        return None;
    }
    match bytes.get_i64() {
        infinite @ (i64::MAX | i64::MIN) => Some(infinite),
        micros => micros.checked_add(temporal::POSTGRES_EPOCH_MICROS),
    }
}
