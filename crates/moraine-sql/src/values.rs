//! Values into Arrow arrays and back, exactly. A `timetz` is twelve bytes whose order is Postgres's order; an interval's
//! microseconds become nanoseconds, and one that does not fit is refused.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::types::{Decimal128Type, IntervalMonthDayNano};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, Time64MicrosecondArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::common::ScalarValue;
use moraine_tables::{ColumnType, Value};

use crate::error::{InputError, QueryError};
use crate::quotient;
use crate::relations::ScannedRow;
use crate::significance::{self, Origin};
use crate::types::{
    Element, NUMERIC_PRECISION, NUMERIC_SCALE, SqlType, TIME_TZ_BYTES, TRIMMED_SCALE, UTC, UUID_BYTES,
};

const NANOS_PER_MICRO: i64 = 1_000;

/// Rows as a batch of the schema; the last column is the row's number when there is one more type than values.
pub(crate) fn batch(
    schema: &SchemaRef,
    types: &[SqlType],
    rows: Vec<ScannedRow>,
) -> Result<RecordBatch, QueryError> {
    let count = rows.len();
    let mut columns: Vec<Vec<Value>> = types.iter().map(|_| Vec::with_capacity(count)).collect();
    for row in rows {
        let ctid = row
            .ctid
            .map(|number| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)));
        let mut values = row.values.into_iter().chain(ctid);
        for column in &mut columns {
            column.push(values.next().unwrap_or(Value::Null));
        }
    }
    let arrays = columns
        .into_iter()
        .zip(types)
        .map(|(values, sql_type)| array(&values, *sql_type))
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(|error| {
        QueryError::Internal {
            detail: error.to_string(),
        }
    })
}

fn misfit(value: &Value, sql_type: SqlType) -> QueryError {
    QueryError::Internal {
        detail: format!(
            "a value of type {} came for a column of type {}",
            value.type_name(),
            sql_type.sql_name()
        ),
    }
}

/// The values of one variant as an array; `NULL` becomes null, anything else is a misfit.
macro_rules! collect {
    ($values:expr, $sql_type:expr, $array:ty, $pattern:pat => $result:expr) => {{
        let items = $values.iter().map(|value| match value {
            Value::Null => Ok(None),
            $pattern => Ok(Some($result)),
            other => Err(misfit(other, $sql_type)),
        });
        let items = items.collect::<Result<Vec<_>, QueryError>>()?;
        <$array>::from(items)
    }};
}

/// Values of one type as an array.
///
/// # Errors
/// [`QueryError::Internal`] for a value of another type, [`InputError::Range`] for one that Arrow cannot hold.
pub(crate) fn array(values: &[Value], sql_type: SqlType) -> Result<ArrayRef, QueryError> {
    let column_type = match sql_type {
        SqlType::Column(column_type) => column_type,
        SqlType::Oid | SqlType::RegClass | SqlType::RegType | SqlType::RegProc => {
            return oids(values, sql_type);
        }
        SqlType::Tid => {
            let number = |value: i64| u64::try_from(value).unwrap_or(u64::MAX);
            return Ok(Arc::new(
                collect!(values, sql_type, UInt64Array, Value::Int64(value) => number(*value)),
            ));
        }
        SqlType::Name
        | SqlType::Char
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Character(_)
        | SqlType::Record => ColumnType::Text,
        SqlType::Array(element) | SqlType::Vector(element) => return lists(values, element),
        SqlType::Numeric => return wide_decimals(values),
    };
    Ok(match column_type {
        ColumnType::Bool => Arc::new(collect!(values, sql_type, BooleanArray, Value::Bool(value) => *value)),
        ColumnType::Int16 => Arc::new(collect!(values, sql_type, Int16Array, Value::Int16(value) => *value)),
        ColumnType::Int32 => Arc::new(collect!(values, sql_type, Int32Array, Value::Int32(value) => *value)),
        ColumnType::Int64 => Arc::new(collect!(values, sql_type, Int64Array, Value::Int64(value) => *value)),
        ColumnType::Float32 => {
            Arc::new(collect!(values, sql_type, Float32Array, Value::Float32(value) => *value))
        }
        ColumnType::Float64 => {
            Arc::new(collect!(values, sql_type, Float64Array, Value::Float64(value) => *value))
        }
        ColumnType::Date => Arc::new(collect!(values, sql_type, Date32Array, Value::Date(value) => *value)),
        ColumnType::Timestamp => {
            Arc::new(collect!(values, sql_type, TimestampMicrosecondArray, Value::Timestamp(value) => *value))
        }
        ColumnType::TimestampTz => Arc::new(
            collect!(values, sql_type, TimestampMicrosecondArray, Value::TimestampTz(value) => *value)
                .with_timezone(UTC),
        ),
        ColumnType::Time => {
            Arc::new(collect!(values, sql_type, Time64MicrosecondArray, Value::Time(value) => *value))
        }
        ColumnType::Numeric { precision, scale } => decimals(values, sql_type, precision, scale)?,
        ColumnType::Text => strings(values, sql_type)?,
        ColumnType::Bytes => binaries(values, sql_type)?,
        ColumnType::Uuid | ColumnType::TimeTz => fixed(values, sql_type)?,
        ColumnType::Interval => intervals(values, sql_type)?,
    })
}

fn oids(values: &[Value], sql_type: SqlType) -> Result<ArrayRef, QueryError> {
    let number = |value: i64| u32::try_from(value).unwrap_or_default();
    Ok(Arc::new(
        collect!(values, sql_type, UInt32Array, Value::Int64(value) => number(*value)),
    ))
}

fn strings(values: &[Value], sql_type: SqlType) -> Result<ArrayRef, QueryError> {
    let mut builder = StringBuilder::with_capacity(values.len(), values.len() * 16);
    for value in values {
        match value {
            Value::Null => builder.append_null(),
            Value::Text(text) => builder.append_value(text),
            other => return Err(misfit(other, sql_type)),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Arrays: the values hold Postgres's text of them.
fn lists(values: &[Value], element: Element) -> Result<ArrayRef, QueryError> {
    let of = element.sql_type();
    let mut items = Vec::new();
    let mut lengths = Vec::with_capacity(values.len());
    let mut present = Vec::with_capacity(values.len());
    for value in values {
        let before = items.len();
        present.push(!value.is_null());
        match value {
            Value::Null => {}
            Value::Text(text) => {
                let elements = crate::text::array::elements(text)
                    .ok_or_else(|| malformed(text, SqlType::Array(element)))?;
                for item in elements {
                    items.push(match item {
                        None => Value::Null,
                        Some(item) => crate::functions::parsed(&item, of)?,
                    });
                }
            }
            other => return Err(misfit(other, SqlType::Array(element))),
        }
        lengths.push(items.len() - before);
    }
    let internal = |error: arrow_schema::ArrowError| QueryError::Internal {
        detail: error.to_string(),
    };
    let field = Field::new_list_field(element.arrow(), true);
    let items = cast(&array(&items, of)?, field.data_type()).map_err(internal)?;
    let list = ListArray::try_new(
        Arc::new(field),
        OffsetBuffer::from_lengths(lengths),
        items,
        Some(NullBuffer::from(present)),
    );
    let list = list.map_err(internal)?;
    Ok(Arc::new(list))
}

fn malformed(text: &str, sql_type: SqlType) -> InputError {
    InputError::Syntax {
        type_name: sql_type.sql_name(),
        text: text.to_owned(),
    }
}

/// Numerics in a plan's widest form.
fn wide_decimals(values: &[Value]) -> Result<ArrayRef, QueryError> {
    let mut items = Vec::with_capacity(values.len());
    for value in values {
        items.push(match value {
            Value::Null => None,
            Value::Numeric(decimal) => Some(quotient::widened(*decimal)?),
            other => return Err(misfit(other, SqlType::Numeric)),
        });
    }
    let array = Decimal256Array::from(items).with_precision_and_scale(NUMERIC_PRECISION, NUMERIC_SCALE);
    let array = array.map_err(|error| QueryError::Internal {
        detail: error.to_string(),
    })?;
    Ok(Arc::new(array))
}

fn binaries(values: &[Value], sql_type: SqlType) -> Result<ArrayRef, QueryError> {
    let mut builder = BinaryBuilder::new();
    for value in values {
        match value {
            Value::Null => builder.append_null(),
            Value::Bytes(bytes) => builder.append_value(bytes),
            other => return Err(misfit(other, sql_type)),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn decimals(values: &[Value], sql_type: SqlType, precision: u8, scale: i8) -> Result<ArrayRef, QueryError> {
    let mut items = Vec::with_capacity(values.len());
    for value in values {
        items.push(match value {
            Value::Null => None,
            Value::Numeric(decimal) => {
                let rescaled = decimal.rescale(scale).ok_or_else(|| InputError::Range {
                    type_name: sql_type.sql_name(),
                    text: decimal.to_string(),
                })?;
                Some(rescaled.unscaled)
            }
            other => return Err(misfit(other, sql_type)),
        });
    }
    let array: PrimitiveArray<Decimal128Type> = Decimal128Array::from(items);
    let array = array
        .with_precision_and_scale(precision, scale)
        .map_err(|error| QueryError::Internal {
            detail: error.to_string(),
        })?;
    Ok(Arc::new(array))
}

fn fixed(values: &[Value], sql_type: SqlType) -> Result<ArrayRef, QueryError> {
    let width = match sql_type.column_type() {
        ColumnType::Uuid => UUID_BYTES,
        _ => TIME_TZ_BYTES,
    };
    let mut builder = FixedSizeBinaryBuilder::with_capacity(values.len(), width);
    for value in values {
        let appended = match value {
            Value::Null => {
                builder.append_null();
                Ok(())
            }
            Value::Uuid(bytes) if width == UUID_BYTES => builder.append_value(bytes),
            Value::TimeTz {
                micros,
                offset_seconds,
            } if width == TIME_TZ_BYTES => builder.append_value(time_tz_bytes(*micros, *offset_seconds)),
            other => return Err(misfit(other, sql_type)),
        };
        appended.map_err(|error| QueryError::Internal {
            detail: error.to_string(),
        })?;
    }
    Ok(Arc::new(builder.finish()))
}

fn intervals(values: &[Value], sql_type: SqlType) -> Result<ArrayRef, QueryError> {
    let mut items = Vec::with_capacity(values.len());
    for value in values {
        items.push(match value {
            Value::Null => None,
            Value::Interval { months, days, micros } => {
                let nanos = micros
                    .checked_mul(NANOS_PER_MICRO)
                    .ok_or_else(|| InputError::Range {
                        type_name: "interval".to_owned(),
                        text: crate::text::format(value).unwrap_or_default(),
                    })?;
                Some(IntervalMonthDayNano::new(*months, *days, nanos))
            }
            other => return Err(misfit(other, sql_type)),
        });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(items)))
}

/// Twelve bytes in the order of Postgres: the instant in UTC first, then the zone, further west being greater.
fn time_tz_bytes(micros: i64, offset_seconds: i32) -> [u8; 12] {
    let instant = micros.saturating_sub(i64::from(offset_seconds).saturating_mul(1_000_000));
    let mut bytes = [0u8; 12];
    let (head, tail) = bytes.split_at_mut(8);
    head.copy_from_slice(&(instant ^ i64::MIN).to_be_bytes());
    tail.copy_from_slice(&(offset_seconds.saturating_neg() ^ i32::MIN).to_be_bytes());
    bytes
}

fn time_tz_of(bytes: &[u8]) -> Option<Value> {
    let instant = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?) ^ i64::MIN;
    let offset = (i32::from_be_bytes(bytes.get(8..)?.try_into().ok()?) ^ i32::MIN).checked_neg()?;
    Some(Value::TimeTz {
        micros: instant.checked_add(i64::from(offset).checked_mul(1_000_000)?)?,
        offset_seconds: offset,
    })
}

/// One value as DataFusion's scalar.
pub(crate) fn scalar(value: &Value, sql_type: SqlType) -> Result<ScalarValue, QueryError> {
    let array = array(std::slice::from_ref(value), sql_type)?;
    Ok(ScalarValue::try_from_array(array.as_ref(), 0)?)
}

/// The rows of a batch as values, each as its column's type is shown.
///
/// # Errors
/// [`QueryError::OutOfRange`] for a value no column type holds.
pub(crate) fn rows(batch: &RecordBatch, types: &[SqlType]) -> Result<Vec<Vec<Value>>, QueryError> {
    let mut rows: Vec<Vec<Value>> = (0..batch.num_rows())
        .map(|_| Vec::with_capacity(batch.num_columns()))
        .collect();
    for (position, column) in batch.columns().iter().enumerate() {
        for (index, row) in rows.iter_mut().enumerate() {
            let value = at(column, index)?;
            row.push(match (&value, types.get(position)) {
                (Value::Text(text), Some(SqlType::Character(length))) => {
                    let width = usize::try_from(*length).unwrap_or(usize::MAX);
                    Value::text(format!("{text:<width$}"))
                }
                _ => value,
            });
        }
    }
    Ok(rows)
}

/// The value at a position of an array.
pub(crate) fn at(array: &ArrayRef, index: usize) -> Result<Value, QueryError> {
    if array.is_null(index) {
        return Ok(Value::Null);
    }
    of_scalar(&ScalarValue::try_from_array(array.as_ref(), index)?)
}

fn unsigned(value: u64) -> Result<Value, QueryError> {
    i64::try_from(value)
        .map(Value::Int64)
        .map_err(|_| QueryError::OutOfRange {
            detail: format!("{value} is out of range for bigint"),
        })
}

/// A scalar as a value.
///
/// # Errors
/// [`QueryError::OutOfRange`], [`QueryError::Unsupported`].
pub(crate) fn of_scalar(scalar: &ScalarValue) -> Result<Value, QueryError> {
    use ScalarValue as S;
    if scalar.is_null() {
        return Ok(Value::Null);
    }
    Ok(match scalar {
        S::Boolean(Some(value)) => Value::Bool(*value),
        S::Int8(Some(value)) => Value::Int16(i16::from(*value)),
        S::UInt8(Some(value)) => Value::Int16(i16::from(*value)),
        S::Int16(Some(value)) => Value::Int16(*value),
        S::UInt16(Some(value)) => Value::Int32(i32::from(*value)),
        S::Int32(Some(value)) => Value::Int32(*value),
        S::UInt32(Some(value)) => Value::Int64(i64::from(*value)),
        S::Int64(Some(value)) => Value::Int64(*value),
        S::UInt64(Some(value)) => unsigned(*value)?,
        S::Float16(Some(value)) => Value::Float32(value.to_f32()),
        S::Float32(Some(value)) => Value::Float32(*value),
        S::Float64(Some(value)) => Value::Float64(*value),
        S::Decimal32(Some(unscaled), _, scale) => decimal(i128::from(*unscaled), *scale),
        S::Decimal64(Some(unscaled), _, scale) => decimal(i128::from(*unscaled), *scale),
        S::Decimal128(Some(unscaled), _, scale) => decimal(*unscaled, *scale),
        S::Decimal256(Some(unscaled), _, TRIMMED_SCALE) => {
            Value::Numeric(quotient::trimmed(*unscaled, TRIMMED_SCALE)?)
        }
        S::Decimal256(Some(unscaled), _, NUMERIC_SCALE) => Value::Numeric(quotient::shown(*unscaled)?),
        S::Decimal256(Some(unscaled), _, scale) if let Some(origin) = Origin::of_scale(*scale) => {
            Value::Numeric(significance::shown(*unscaled, origin)?)
        }
        S::Decimal256(Some(unscaled), _, scale) => {
            let narrow = unscaled.to_i128().ok_or_else(|| QueryError::OutOfRange {
                detail: format!("{unscaled} has more than 38 digits"),
            })?;
            decimal(narrow, *scale)
        }
        S::Utf8(Some(text)) | S::LargeUtf8(Some(text)) | S::Utf8View(Some(text)) => Value::text(text),
        S::Binary(Some(bytes)) | S::LargeBinary(Some(bytes)) | S::BinaryView(Some(bytes)) => {
            Value::Bytes(bytes.clone().into())
        }
        S::FixedSizeBinary(_, Some(bytes)) => of_fixed(bytes)?,
        S::Dictionary(_, inner) => of_scalar(inner)?,
        S::List(_) | S::LargeList(_) | S::FixedSizeList(_) => Value::text(list_text(scalar)?),
        temporal => of_temporal(temporal)?,
    })
}

fn decimal(unscaled: i128, scale: i8) -> Value {
    Value::Numeric(moraine_tables::Numeric { unscaled, scale })
}

fn of_fixed(bytes: &[u8]) -> Result<Value, QueryError> {
    if let Ok(uuid) = <[u8; 16]>::try_from(bytes) {
        return Ok(Value::Uuid(uuid));
    }
    time_tz_of(bytes).ok_or_else(|| QueryError::Internal {
        detail: format!("{} bytes are no value", bytes.len()),
    })
}

fn of_temporal(scalar: &ScalarValue) -> Result<Value, QueryError> {
    use ScalarValue as S;
    let instant = |micros: i64, zoned: bool| {
        if zoned {
            Value::TimestampTz(micros)
        } else {
            Value::Timestamp(micros)
        }
    };
    let scaled = |value: i64, factor: i64| {
        value.checked_mul(factor).ok_or_else(|| QueryError::OutOfRange {
            detail: "timestamp out of range".to_owned(),
        })
    };
    let span = |micros: i64| {
        const DAY_MICROS: i64 = crate::text::temporal::MICROS_PER_DAY;
        Value::Interval {
            months: 0,
            days: i32::try_from(micros / DAY_MICROS).unwrap_or(i32::MAX),
            micros: micros % DAY_MICROS,
        }
    };
    Ok(match scalar {
        S::Date32(Some(days)) => Value::Date(*days),
        S::Date64(Some(millis)) => Value::Timestamp(scaled(*millis, 1_000)?),
        S::TimestampSecond(Some(value), zone) => instant(scaled(*value, 1_000_000)?, zone.is_some()),
        S::TimestampMillisecond(Some(value), zone) => instant(scaled(*value, 1_000)?, zone.is_some()),
        S::TimestampMicrosecond(Some(value), zone) => instant(*value, zone.is_some()),
        S::TimestampNanosecond(Some(value), zone) => {
            instant(value.div_euclid(NANOS_PER_MICRO), zone.is_some())
        }
        S::Time32Second(Some(value)) => Value::Time(i64::from(*value) * 1_000_000),
        S::Time32Millisecond(Some(value)) => Value::Time(i64::from(*value) * 1_000),
        S::Time64Microsecond(Some(value)) => Value::Time(*value),
        S::Time64Nanosecond(Some(value)) => Value::Time(value.div_euclid(NANOS_PER_MICRO)),
        S::IntervalYearMonth(Some(months)) => Value::Interval {
            months: *months,
            days: 0,
            micros: 0,
        },
        S::IntervalDayTime(Some(value)) => Value::Interval {
            months: 0,
            days: value.days,
            micros: i64::from(value.milliseconds) * 1_000,
        },
        S::IntervalMonthDayNano(Some(value)) => Value::Interval {
            months: value.months,
            days: value.days,
            micros: value.nanoseconds.div_euclid(NANOS_PER_MICRO),
        },
        S::DurationSecond(Some(value)) => span(scaled(*value, 1_000_000)?),
        S::DurationMillisecond(Some(value)) => span(scaled(*value, 1_000)?),
        S::DurationMicrosecond(Some(value)) => span(*value),
        S::DurationNanosecond(Some(value)) => span(value.div_euclid(NANOS_PER_MICRO)),
        other => {
            return Err(QueryError::unsupported(format!(
                "a result of type {}",
                other.data_type()
            )));
        }
    })
}

/// Postgres's text of an array.
fn list_text(scalar: &ScalarValue) -> Result<String, QueryError> {
    let items = match scalar {
        ScalarValue::List(list) => list.value(0),
        ScalarValue::LargeList(list) => list.value(0),
        ScalarValue::FixedSizeList(list) => list.value(0),
        _ => return Err(QueryError::unsupported("this array")),
    };
    let mut texts = Vec::with_capacity(items.len());
    for index in 0..items.len() {
        texts.push(crate::text::format(&at(&items, index)?));
    }
    Ok(crate::text::array::text(texts.iter().map(Option::as_deref)))
}
