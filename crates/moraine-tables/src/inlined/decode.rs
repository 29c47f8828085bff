//! From an Arrow array to the values of a column at the door.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use bytes::Bytes;

use crate::inlined::form::Form;
use crate::text;
use crate::text::TimeUnit;
use crate::value::{Numeric, Value};

/// The value of one row; `None` when the array is not of the form's type, or what it holds cannot be shown.
pub(crate) fn decode(form: Form, array: &dyn Array, row: usize) -> Option<Value> {
    if row >= array.len() {
        return None;
    }
    if array.is_null(row) {
        return Some(Value::Null);
    }
    Some(match form {
        Form::Bool => Value::Bool(array.as_boolean_opt()?.value(row)),
        Form::Int8 => Value::Int16(native::<Int8Type>(array, row)?.into()),
        Form::Int16 => Value::Int16(native::<Int16Type>(array, row)?),
        Form::Int32 => Value::Int32(native::<Int32Type>(array, row)?),
        Form::Int64 => Value::Int64(native::<Int64Type>(array, row)?),
        Form::UInt8 => Value::Int32(native::<UInt8Type>(array, row)?.into()),
        Form::UInt16 => Value::Int32(native::<UInt16Type>(array, row)?.into()),
        Form::UInt32 => Value::Int64(native::<UInt32Type>(array, row)?.into()),
        Form::UInt64AsText => Value::text(native::<UInt64Type>(array, row)?.to_string()),
        Form::Float32 => Value::Float32(native::<Float32Type>(array, row)?),
        Form::Float64 => Value::Float64(native::<Float64Type>(array, row)?),
        Form::Decimal { scale, .. } => Value::Numeric(Numeric {
            unscaled: native::<Decimal128Type>(array, row)?,
            scale,
        }),
        Form::WideAsText => Value::text(text::render_wide(native::<Decimal256Type>(array, row)?)),
        Form::TextAsBytes => Value::Bytes(Bytes::copy_from_slice(string(array, row)?.as_bytes())),
        Form::Text => Value::text(string(array, row)?),
        Form::Binary => Value::Bytes(Bytes::copy_from_slice(binary(array, row)?)),
        Form::Date => Value::Date(native::<Date32Type>(array, row)?),
        Form::DateAsText => Value::text(text::render_date(native::<Date32Type>(array, row)?)),
        Form::Timestamp => Value::Timestamp(native::<TimestampMicrosecondType>(array, row)?),
        Form::TimestampTz => Value::TimestampTz(native::<TimestampMicrosecondType>(array, row)?),
        Form::TimestampAsText(unit) => Value::text(text::render_timestamp(ticks(unit, array, row)?, unit)),
        Form::TimestampTzAsText => Value::text(text::render_timestamp_tz(
            native::<TimestampMicrosecondType>(array, row)?,
        )),
        Form::Uuid => Value::Uuid(array.as_fixed_size_binary_opt()?.value(row).try_into().ok()?),
        Form::Time => Value::Time(native::<Time64MicrosecondType>(array, row)?),
        Form::TimeTz => {
            let (micros, offset_seconds) = text::parse_time_tz(string(array, row)?)?;
            Value::TimeTz {
                micros,
                offset_seconds,
            }
        }
        Form::Interval => {
            let (months, days, micros) = text::parse_interval(string(array, row)?)?;
            Value::Interval { months, days, micros }
        }
        Form::ArrowInterval => {
            let span = native::<IntervalMonthDayNanoType>(array, row)?;
            let micros = (span.nanoseconds % 1000 == 0).then_some(span.nanoseconds / 1000)?;
            Value::Interval {
                months: span.months,
                days: span.days,
                micros,
            }
        }
    })
}

fn native<P: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Option<P::Native> {
    Some(array.as_primitive_opt::<P>()?.value(row))
}

fn ticks(unit: TimeUnit, array: &dyn Array, row: usize) -> Option<i64> {
    match unit {
        TimeUnit::Second => native::<TimestampSecondType>(array, row),
        TimeUnit::Millisecond => native::<TimestampMillisecondType>(array, row),
        TimeUnit::Microsecond => native::<TimestampMicrosecondType>(array, row),
        TimeUnit::Nanosecond => native::<TimestampNanosecondType>(array, row),
    }
}

fn string(array: &dyn Array, row: usize) -> Option<&str> {
    if let Some(strings) = array.as_string_opt::<i32>() {
        return Some(strings.value(row));
    }
    if let Some(strings) = array.as_string_opt::<i64>() {
        return Some(strings.value(row));
    }
    Some(array.as_string_view_opt()?.value(row))
}

fn binary(array: &dyn Array, row: usize) -> Option<&[u8]> {
    if let Some(bytes) = array.as_binary_opt::<i32>() {
        return Some(bytes.value(row));
    }
    if let Some(bytes) = array.as_binary_opt::<i64>() {
        return Some(bytes.value(row));
    }
    Some(array.as_binary_view_opt()?.value(row))
}
