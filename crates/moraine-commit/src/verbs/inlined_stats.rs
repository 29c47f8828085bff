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

use crate::lake::{Column, ColumnStats, ColumnType};

/// Seconds of a day.
const DAY_SECONDS: i128 = 86_400;

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
        T::Int128 | T::Uint128 => {
            let values = values.as_primitive_opt::<Decimal256Type>()?;
            extremes(values.iter().flatten(), Ord::cmp, |value| Some(value.to_string()))
        }
        T::Decimal { scale, .. } => {
            let values = values.as_primitive_opt::<Decimal128Type>()?;
            extremes(values.iter().flatten(), Ord::cmp, |value| {
                Some(decimal(*value, *scale))
            })
        }
        T::Float32 => {
            let values = values.as_primitive_opt::<Float32Type>()?;
            // The shortest text of a REAL is that of the value at its own width.
            extremes(values.iter().flatten(), compare_f32, |value| {
                Some(float(f64::from(*value), &format!("{value:e}")))
            })
        }
        T::Float64 => {
            let values = values.as_primitive_opt::<Float64Type>()?;
            extremes(values.iter().flatten(), compare_f64, |value| {
                Some(float(*value, &format!("{value:e}")))
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
            extremes(values.iter().flatten(), Ord::cmp, |value| uuid(value))
        }
        T::Date => ticks::<Date32Type>(values, date),
        T::Time => ticks::<Time64MicrosecondType>(values, |micros| Some(clock(micros, 6))),
        T::Timestamp => ticks::<TimestampMicrosecondType>(values, |ticks| instant(ticks, 6, "")),
        T::TimestampS => ticks::<TimestampSecondType>(values, |ticks| instant(ticks, 0, "")),
        T::TimestampMs => ticks::<TimestampMillisecondType>(values, |ticks| instant(ticks, 3, "")),
        T::TimestampNs => ticks::<TimestampNanosecondType>(values, |ticks| instant(ticks, 9, "")),
        T::TimestampTz => ticks::<TimestampMicrosecondType>(values, |ticks| instant(ticks, 6, "+00")),
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

fn integers<T: ArrowPrimitiveType>(values: &ArrayRef) -> Option<(String, String)>
where
    T::Native: Ord + std::fmt::Display,
{
    let values = values.as_primitive_opt::<T>()?;
    extremes(values.iter().flatten(), Ord::cmp, |value| Some(value.to_string()))
}

fn ticks<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    text: impl Fn(i128) -> Option<String>,
) -> Option<(String, String)>
where
    T::Native: Ord + Into<i128>,
{
    let values = values.as_primitive_opt::<T>()?;
    extremes(values.iter().flatten(), Ord::cmp, |value| text((*value).into()))
}

/// NaN is the greatest, as in DuckDB.
fn compare_f64(left: &f64, right: &f64) -> Ordering {
    left.partial_cmp(right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn compare_f32(left: &f32, right: &f32) -> Ordering {
    compare_f64(&f64::from(*left), &f64::from(*right))
}

fn decimal(value: i128, scale: u8) -> String {
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs().to_string());
    let scale = usize::from(scale);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// A float as DuckDB writes it. `scientific` has its shortest digits, such as `1.5e300`.
fn float(value: f64, scientific: &str) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let places = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(places - 1));
    }
    let padded = format!("{digits:0<width$}", width = places + 2);
    let (whole, fraction) = padded.split_at(places + 1);
    format!("{sign}{whole}.{fraction}")
}

fn uuid(bytes: &[u8]) -> Option<String> {
    uuid::Uuid::from_slice(bytes).ok().map(|uuid| uuid.to_string())
}

/// `None` outside of years 1 to 9999, where DuckDB writes dates otherwise.
fn date(days: i128) -> Option<String> {
    let days = i64::try_from(days).ok()?;
    if !(-719_162..=2_932_896).contains(&days) {
        return None;
    }
    // Howard Hinnant's algorithm: eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// A time of day in units of a second's `digits`-th part.
fn clock(ticks: i128, digits: u32) -> String {
    let per_second = 10_i128.pow(digits);
    let (seconds, fraction) = (ticks / per_second, ticks % per_second);
    let clock = format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    if fraction == 0 {
        return clock;
    }
    let width = digits as usize;
    let fraction = format!("{fraction:0>width$}");
    format!("{clock}.{}", fraction.trim_end_matches('0'))
}

fn instant(ticks: i128, digits: u32, zone: &str) -> Option<String> {
    let day = DAY_SECONDS * 10_i128.pow(digits);
    let date = date(ticks.div_euclid(day))?;
    Some(format!("{date} {}{zone}", clock(ticks.rem_euclid(day), digits)))
}

#[cfg(test)]
mod tests {
    use super::{date, decimal, float, instant};

    #[test]
    fn values_are_written_as_duckdb_writes_them() {
        let double = |value: f64| float(value, &format!("{value:e}"));
        assert_eq!(double(1.5), "1.5");
        assert_eq!(double(-100_000.0), "-100000.0");
        assert_eq!(double(1e300), "1e+300");
        assert_eq!(double(1e16), "1e+16");
        assert_eq!(double(1e15), "1000000000000000.0");
        assert_eq!(double(0.0001), "0.0001");
        assert_eq!(double(0.000_012_34), "1.234e-05");
        assert_eq!(double(0.0), "0.0");
        assert_eq!(decimal(-5, 3), "-0.005");
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
        assert_eq!(
            instant(-1, 6, "+00").as_deref(),
            Some("1969-12-31 23:59:59.999999+00")
        );
    }
}
