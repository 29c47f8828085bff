//! Single values of written columns: their text as DuckDB casts them to VARCHAR, for partition values and statistics.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};

use crate::flush::column::{Kind, TimeUnit};
use crate::text;

/// A value of a column whose [`Kind`] says what it means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'v> {
    Boolean(bool),
    Integer(i128),
    Float(f32),
    Double(f64),
    Bytes(Cow<'v, [u8]>),
}

impl<'v> Scalar<'v> {
    /// The value in a row of a written column; `None` for NULL.
    pub(super) fn of(kind: Kind, array: &'v ArrayRef, row: usize) -> Option<Self> {
        if array.is_null(row) {
            return None;
        }
        macro_rules! integer {
            ($type:ty) => {
                Self::Integer(array.as_primitive_opt::<$type>()?.value(row).into())
            };
        }
        let bytes = |bytes: &'v [u8]| Self::Bytes(Cow::Borrowed(bytes));
        Some(match kind {
            Kind::Boolean => Self::Boolean(array.as_boolean_opt()?.value(row)),
            Kind::Signed(8) => integer!(Int8Type),
            Kind::Signed(16) => integer!(Int16Type),
            Kind::Signed(32) => integer!(Int32Type),
            Kind::Signed(_) => integer!(Int64Type),
            Kind::Unsigned(8) => integer!(UInt8Type),
            Kind::Unsigned(16) => integer!(UInt16Type),
            Kind::Unsigned(32) => integer!(UInt32Type),
            Kind::Unsigned(_) => integer!(UInt64Type),
            Kind::Wide | Kind::Decimal { .. } => integer!(Decimal128Type),
            Kind::Float => Self::Float(array.as_primitive_opt::<Float32Type>()?.value(row)),
            Kind::Double => Self::Double(array.as_primitive_opt::<Float64Type>()?.value(row)),
            Kind::Text | Kind::Json => bytes(array.as_string_opt::<i32>()?.value(row).as_bytes()),
            Kind::Blob | Kind::Geometry => bytes(array.as_binary_opt::<i32>()?.value(row)),
            Kind::Interval | Kind::Uuid => bytes(array.as_fixed_size_binary_opt()?.value(row)),
            Kind::Date => integer!(Date32Type),
            Kind::Time | Kind::TimeTz => integer!(Time64MicrosecondType),
            Kind::TimeNs => integer!(Time64NanosecondType),
            Kind::TimestampSeconds => integer!(TimestampMicrosecondType),
            Kind::Timestamp { unit, .. } => match unit {
                TimeUnit::Millisecond => integer!(TimestampMillisecondType),
                TimeUnit::Microsecond => integer!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => integer!(TimestampNanosecondType),
            },
        })
    }

    /// The value as DuckDB's VARCHAR; `None` for what has no single text (intervals and geometries) or is no value of the kind.
    pub(super) fn text(&self, kind: Kind) -> Option<String> {
        Some(match (kind, self) {
            (Kind::Boolean, Self::Boolean(value)) => value.to_string(),
            (Kind::Signed(_) | Kind::Unsigned(_) | Kind::Wide, Self::Integer(value)) => value.to_string(),
            (Kind::Decimal { scale, .. }, Self::Integer(value)) => text::render_decimal(*value, scale),
            (Kind::Float, Self::Float(value)) => text::render_float(*value),
            (Kind::Double, Self::Double(value)) => text::render_double(*value),
            (Kind::Text | Kind::Json, Self::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).ok()?,
            (Kind::Blob, Self::Bytes(bytes)) => text::render_blob(bytes),
            (Kind::Uuid, Self::Bytes(bytes)) => text::render_uuid(<[u8; 16]>::try_from(&**bytes).ok()?),
            (Kind::Date, Self::Integer(days)) => text::render_date(i32::try_from(*days).ok()?),
            (Kind::Time, Self::Integer(micros)) => text::render_time(i64::try_from(*micros).ok()?),
            (Kind::TimeTz, Self::Integer(micros)) => text::render_time_tz(i64::try_from(*micros).ok()?, 0),
            (Kind::Timestamp { unit, utc }, Self::Integer(ticks)) => {
                let ticks = i64::try_from(*ticks).ok()?;
                if utc {
                    text::render_timestamp_tz(ticks)
                } else {
                    text::render_timestamp(ticks, unit.text())
                }
            }
            (Kind::TimestampSeconds, Self::Integer(ticks)) => {
                text::render_timestamp(i64::try_from(*ticks).ok()?, text::TimeUnit::Microsecond)
            }
            _ => return None,
        })
    }
}
