//! What is known of the values of rows that are inlined, in DuckDB's text. Where a value has no text here that is surely
//! DuckDB's, its column has no bounds.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};

use moraine_inline::text::{
    TimeUnit, render_date, render_decimal, render_double, render_float, render_time, render_timestamp,
    render_timestamp_tz, render_uuid, render_wide,
};

use crate::lake::{Column, ColumnStats, ColumnType};

/// What is known of new rows, by column id. The columns are those of the rows, in order.
pub(crate) fn of(columns: &[Column], rows: &RecordBatch) -> Vec<(u64, ColumnStats)> {
    let mut found = Vec::new();
    for (column, values) in columns.iter().zip(rows.columns()) {
        if column.fields.is_empty() {
            found.push((column.column_id, of_column(&column.column_type, values)));
        } else {
            unknown(&column.fields, &mut found);
        }
    }
    found
}

/// Of the fields of nested values, which are text here, nothing is known.
fn unknown(fields: &[Column], found: &mut Vec<(u64, ColumnStats)>) {
    for field in fields {
        if field.fields.is_empty() {
            found.push((field.column_id, ColumnStats::default()));
        }
        unknown(&field.fields, found);
    }
}

fn of_column(column_type: &ColumnType, values: &ArrayRef) -> ColumnStats {
    let nulls = values.null_count() as u64;
    let bounds = bounds(column_type, values);
    ColumnStats {
        value_count: Some((values.len() as u64).saturating_sub(nulls)),
        null_count: Some(nulls),
        min_value: bounds.as_ref().map(|(least, _)| least.clone()),
        max_value: bounds.map(|(_, greatest)| greatest),
        ..ColumnStats::default()
    }
}

fn bounds(column_type: &ColumnType, values: &ArrayRef) -> Option<(String, String)> {
    use ColumnType as T;
    match column_type {
        T::Boolean => {
            let values = values.as_boolean_opt()?;
            extremes(values.iter().flatten(), Ord::cmp, |value| Some(value.to_string()))
        }
        T::Int8 => integers::<Int8Type>(values),
        T::Int16 => integers::<Int16Type>(values),
        T::Int32 => integers::<Int32Type>(values),
        T::Int64 => integers::<Int64Type>(values),
        T::Uint8 => integers::<UInt8Type>(values),
        T::Uint16 => integers::<UInt16Type>(values),
        T::Uint32 => integers::<UInt32Type>(values),
        T::Uint64 => integers::<UInt64Type>(values),
        T::Int128 | T::Uint128 => primitives::<Decimal256Type>(values, render_wide),
        T::Decimal { scale, .. } => {
            primitives::<Decimal128Type>(values, |value| render_decimal(value, *scale))
        }
        T::Float32 => {
            let values = values.as_primitive_opt::<Float32Type>()?;
            extremes(values.iter().flatten(), compare_f32, |value| {
                Some(render_float(*value))
            })
        }
        T::Float64 => {
            let values = values.as_primitive_opt::<Float64Type>()?;
            extremes(values.iter().flatten(), compare_f64, |value| {
                Some(render_double(*value))
            })
        }
        T::Varchar | T::Json => {
            let values = values.as_string_opt::<i32>()?;
            // Postgres' text holds no NUL.
            let text = |value: &&str| (!value.contains('\0')).then(|| (*value).to_owned());
            extremes(values.iter().flatten(), Ord::cmp, text)
        }
        T::Uuid => {
            let values = values.as_fixed_size_binary_opt()?;
            extremes(values.iter().flatten(), Ord::cmp, |value| {
                Some(render_uuid((*value).try_into().ok()?))
            })
        }
        T::Date => primitives::<Date32Type>(values, render_date),
        T::Time => primitives::<Time64MicrosecondType>(values, render_time),
        T::Timestamp => primitives::<TimestampMicrosecondType>(values, |ticks| {
            render_timestamp(ticks, TimeUnit::Microsecond)
        }),
        T::TimestampS => {
            primitives::<TimestampSecondType>(values, |ticks| render_timestamp(ticks, TimeUnit::Second))
        }
        T::TimestampMs => primitives::<TimestampMillisecondType>(values, |ticks| {
            render_timestamp(ticks, TimeUnit::Millisecond)
        }),
        T::TimestampNs => primitives::<TimestampNanosecondType>(values, |ticks| {
            render_timestamp(ticks, TimeUnit::Nanosecond)
        }),
        T::TimestampTz => primitives::<TimestampMicrosecondType>(values, render_timestamp_tz),
        _ => None,
    }
}

/// The least and the greatest of some values, as text; `None` where there is none, or one of the two has no text.
fn extremes<V: Copy>(
    values: impl Iterator<Item = V>,
    compare: impl Fn(&V, &V) -> Ordering,
    text: impl Fn(&V) -> Option<String>,
) -> Option<(String, String)> {
    let mut found: Option<(V, V)> = None;
    for value in values {
        found = Some(match found {
            None => (value, value),
            Some((least, greatest)) => (
                if compare(&value, &least).is_lt() {
                    value
                } else {
                    least
                },
                if compare(&value, &greatest).is_gt() {
                    value
                } else {
                    greatest
                },
            ),
        });
    }
    let (least, greatest) = found?;
    Some((text(&least)?, text(&greatest)?))
}

fn primitives<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    text: impl Fn(T::Native) -> String,
) -> Option<(String, String)>
where
    T::Native: Ord,
{
    let values = values.as_primitive_opt::<T>()?;
    extremes(values.iter().flatten(), Ord::cmp, |value| Some(text(*value)))
}

fn integers<T: ArrowPrimitiveType>(values: &ArrayRef) -> Option<(String, String)>
where
    T::Native: Ord + ToString,
{
    primitives::<T>(values, |value| value.to_string())
}

/// NaN is the greatest, as in DuckDB.
fn compare_f64(left: &f64, right: &f64) -> Ordering {
    left.partial_cmp(right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn compare_f32(left: &f32, right: &f32) -> Ordering {
    compare_f64(&f64::from(*left), &f64::from(*right))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, TimestampMicrosecondArray,
    };

    use super::bounds;
    use crate::lake::ColumnType as T;

    #[test]
    fn bounds_are_written_as_duckdb_writes_values() {
        let found = |column_type: T, values: ArrayRef| {
            let (least, greatest) = bounds(&column_type, &values).unwrap();
            format!("{least} to {greatest}")
        };
        let decimal = T::Decimal {
            precision: 18,
            scale: 3,
        };
        let decimals = Decimal128Array::from(vec![1500, -5]).with_precision_and_scale(18, 3);
        assert_eq!(found(decimal, Arc::new(decimals.unwrap())), "-0.005 to 1.500");
        let doubles = Float64Array::from(vec![1e16, -100_000.0, 0.0]);
        assert_eq!(found(T::Float64, Arc::new(doubles)), "-100000.0 to 1e+16");
        let days = Date32Array::from(vec![Some(0), None, Some(-719_528)]);
        assert_eq!(found(T::Date, Arc::new(days)), "0001-01-01 (BC) to 1970-01-01");
        let instants = || TimestampMicrosecondArray::from(vec![-1, 0]);
        assert_eq!(
            found(T::TimestampTz, Arc::new(instants())),
            "1969-12-31 23:59:59.999999+00 to 1970-01-01 00:00:00+00"
        );
        assert_eq!(
            found(T::Timestamp, Arc::new(instants())),
            "1969-12-31 23:59:59.999999 to 1970-01-01 00:00:00"
        );
    }

    #[test]
    fn rows_without_values_have_no_bounds() {
        let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, None]));
        assert_eq!(bounds(&T::Int64, &nulls), None);
    }
}
