//! From the values of a column at the door to an Arrow array, exactly or not at all.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, StringArray};

use crate::inlined::form::Form;
use crate::text;
use crate::text::TimeUnit;
use crate::value::{Numeric, Value};

/// Why a value cannot be kept.
pub(crate) enum Refused {
    /// The value is not of the door's type.
    Type,
    /// The value is too large for the column's declared type.
    Range(&'static str),
    /// The text is not the one its value is written as.
    Text,
}

/// The value that was refused, and why.
pub(crate) type EncodeFailure = (Value, Refused);

/// The array of a column.
pub(crate) fn encode<'v>(
    form: Form,
    values: impl Iterator<Item = &'v Value> + Clone,
) -> Result<ArrayRef, EncodeFailure> {
    Ok(match form {
        Form::Bool => Arc::new(collect::<_, BooleanArray>(values, |value| match value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(Refused::Type),
        })?),
        Form::Int8 => primitive::<Int8Type>(values, small)?,
        Form::Int16 => primitive::<Int16Type>(values, small)?,
        Form::Int32 => primitive::<Int32Type>(values, small)?,
        Form::Int64 => primitive::<Int64Type>(values, small)?,
        Form::UInt8 => primitive::<UInt8Type>(values, small)?,
        Form::UInt16 => primitive::<UInt16Type>(values, small)?,
        Form::UInt32 => primitive::<UInt32Type>(values, small)?,
        Form::Float32 => primitive::<Float32Type>(values, |value| match value {
            Value::Float32(number) => Ok(*number),
            _ => Err(Refused::Type),
        })?,
        Form::Float64 => primitive::<Float64Type>(values, |value| match value {
            Value::Float64(number) => Ok(*number),
            _ => Err(Refused::Type),
        })?,
        Form::Decimal { precision, scale } => {
            typed::<Decimal128Type>(form, values, |value| decimal(value, precision, scale))?
        }
        Form::UInt64AsText => parsed::<UInt64Type>(form, values, text::parse_u64)?,
        Form::WideAsText => parsed::<Decimal256Type>(form, values, text::parse_wide)?,
        Form::DateAsText => parsed::<Date32Type>(form, values, text::parse_date)?,
        Form::TimestampAsText(unit) => timestamps(form, unit, values)?,
        Form::TimestampTzAsText => {
            parsed::<TimestampMicrosecondType>(form, values, text::parse_timestamp_tz)?
        }
        Form::TextAsBytes | Form::Text | Form::TimeTz | Form::Interval => texts(form, values)?,
        Form::Binary => Arc::new(collect::<_, BinaryArray>(values, |value| match value {
            Value::Bytes(bytes) => Ok(bytes.as_ref()),
            _ => Err(Refused::Type),
        })?),
        Form::Uuid => uuids(values)?,
        Form::Time | Form::Date | Form::Timestamp | Form::TimestampTz => instants(form, values)?,
        Form::ArrowInterval => return Err(refuse_all(values)),
    })
}

fn refuse_all<'v>(mut values: impl Iterator<Item = &'v Value>) -> EncodeFailure {
    let reason = "another writer created this column, and its intervals are too short for DuckDB's";
    (
        values.next().cloned().unwrap_or(Value::Null),
        Refused::Range(reason),
    )
}

/// An array of what `convert` makes of each value that is not null.
fn collect<'v, T, A>(
    values: impl Iterator<Item = &'v Value>,
    convert: impl Fn(&'v Value) -> Result<T, Refused>,
) -> Result<A, EncodeFailure>
where
    A: FromIterator<Option<T>>,
{
    values
        .map(|value| match value {
            Value::Null => Ok(None),
            value => convert(value)
                .map(Some)
                .map_err(|refused| (value.clone(), refused)),
        })
        .collect()
}

fn primitive<'v, P: ArrowPrimitiveType>(
    values: impl Iterator<Item = &'v Value>,
    convert: impl Fn(&'v Value) -> Result<P::Native, Refused>,
) -> Result<ArrayRef, EncodeFailure> {
    let natives: Vec<Option<P::Native>> = collect(values, convert)?;
    Ok(Arc::new(PrimitiveArray::<P>::from_iter(natives)))
}

/// Like [`primitive`], with the data type of the form instead of the primitive's default.
fn typed<'v, P: ArrowPrimitiveType>(
    form: Form,
    values: impl Iterator<Item = &'v Value>,
    convert: impl Fn(&'v Value) -> Result<P::Native, Refused>,
) -> Result<ArrayRef, EncodeFailure> {
    let natives: Vec<Option<P::Native>> = collect(values, convert)?;
    Ok(Arc::new(
        PrimitiveArray::<P>::from_iter(natives).with_data_type(form.stored()),
    ))
}

fn parsed<'v, P: ArrowPrimitiveType>(
    form: Form,
    values: impl Iterator<Item = &'v Value>,
    parse: impl Fn(&str) -> Option<P::Native>,
) -> Result<ArrayRef, EncodeFailure> {
    typed::<P>(form, values, |value| match value {
        Value::Text(text) => parse(text).ok_or(Refused::Text),
        _ => Err(Refused::Type),
    })
}

fn timestamps<'v>(
    form: Form,
    unit: TimeUnit,
    values: impl Iterator<Item = &'v Value>,
) -> Result<ArrayRef, EncodeFailure> {
    let parse = |text: &str| text::parse_timestamp(text, unit);
    match unit {
        TimeUnit::Second => parsed::<TimestampSecondType>(form, values, parse),
        TimeUnit::Millisecond => parsed::<TimestampMillisecondType>(form, values, parse),
        TimeUnit::Microsecond => parsed::<TimestampMicrosecondType>(form, values, parse),
        TimeUnit::Nanosecond => parsed::<TimestampNanosecondType>(form, values, parse),
    }
}

fn small<T: TryFrom<i64>>(value: &Value) -> Result<T, Refused> {
    let number = match value {
        Value::Int16(number) => i64::from(*number),
        Value::Int32(number) => i64::from(*number),
        Value::Int64(number) => *number,
        _ => return Err(Refused::Type),
    };
    T::try_from(number).map_err(|_| Refused::Range("the column's declared type is narrower"))
}

fn decimal(value: &Value, precision: u8, scale: i8) -> Result<i128, Refused> {
    let Value::Numeric(number) = value else {
        return Err(Refused::Type);
    };
    let Numeric { unscaled, .. } = number
        .rescale(scale)
        .ok_or(Refused::Range("it has more digits than the column's scale keeps"))?;
    match 10_u128.checked_pow(u32::from(precision)) {
        Some(limit) if unscaled.unsigned_abs() >= limit => Err(Refused::Range(
            "it has more digits than the column's precision allows",
        )),
        _ => Ok(unscaled),
    }
}

fn texts<'v>(form: Form, values: impl Iterator<Item = &'v Value>) -> Result<ArrayRef, EncodeFailure> {
    let strings: StringArray = collect(values, |value| match (form, value) {
        (Form::TextAsBytes, Value::Bytes(bytes)) => std::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|_| Refused::Text),
        (Form::Text, Value::Text(text)) => Ok(text.to_string()),
        (
            Form::TimeTz,
            Value::TimeTz {
                micros,
                offset_seconds,
            },
        ) => Ok(text::render_time_tz(*micros, *offset_seconds)),
        (Form::Interval, Value::Interval { months, days, micros }) => {
            Ok(text::render_interval(*months, *days, *micros))
        }
        _ => Err(Refused::Type),
    })?;
    Ok(Arc::new(strings))
}

fn uuids<'v>(values: impl Iterator<Item = &'v Value> + Clone) -> Result<ArrayRef, EncodeFailure> {
    let bytes: Vec<Option<[u8; 16]>> = collect(values.clone(), |value| match value {
        Value::Uuid(bytes) => Ok(*bytes),
        _ => Err(Refused::Type),
    })?;
    FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 16)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|_| refuse_all(values))
}

fn instants<'v>(form: Form, values: impl Iterator<Item = &'v Value>) -> Result<ArrayRef, EncodeFailure> {
    let ticks = |value: &Value| match (form, value) {
        (Form::Time, Value::Time(ticks))
        | (Form::Timestamp, Value::Timestamp(ticks))
        | (Form::TimestampTz, Value::TimestampTz(ticks)) => Ok(*ticks),
        _ => Err(Refused::Type),
    };
    match form {
        Form::Date => typed::<Date32Type>(form, values, |value| match value {
            Value::Date(days) => Ok(*days),
            _ => Err(Refused::Type),
        }),
        Form::Time => typed::<Time64MicrosecondType>(form, values, ticks),
        _ => typed::<TimestampMicrosecondType>(form, values, ticks),
    }
}
