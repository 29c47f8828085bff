//! Values on their way between two catalogs: what every database can give and take, and what they are at the door. A
//! value that is not a number or bytes travels as the text that DuckDB and PostgreSQL share.

use bytes::Bytes;
use moraine_tables::text::{
    TimeUnit, parse_date, parse_interval, parse_time_tz, parse_timestamp, parse_timestamp_tz, render_date,
    render_interval, render_time, render_time_tz, render_timestamp, render_timestamp_tz,
};
use moraine_tables::{ColumnType, Numeric, Value};

/// A value as a database gives or takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raw {
    /// SQL NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Text; everything that is not a whole number or bytes.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
}

impl Raw {
    /// The value for a message.
    pub(crate) fn shown(&self) -> String {
        match self {
            Raw::Null => "NULL".to_owned(),
            Raw::Int(number) => number.to_string(),
            Raw::Text(text) => format!("'{text}'"),
            Raw::Bytes(bytes) => format!("{} bytes", bytes.len()),
        }
    }
}

/// The value of a column of this type; an error says what is wrong with it.
pub fn value_of(raw: &Raw, column_type: ColumnType) -> Result<Value, String> {
    let found = match (raw, column_type) {
        (Raw::Null, _) => Some(Value::Null),
        (Raw::Int(number), ColumnType::Bool) => match number {
            0 => Some(Value::Bool(false)),
            1 => Some(Value::Bool(true)),
            _ => None,
        },
        (Raw::Int(number), ColumnType::Int16) => i16::try_from(*number).ok().map(Value::Int16),
        (Raw::Int(number), ColumnType::Int32) => i32::try_from(*number).ok().map(Value::Int32),
        (Raw::Int(number), ColumnType::Int64) => Some(Value::Int64(*number)),
        (Raw::Int(number), column_type) => parsed(&number.to_string(), column_type),
        (Raw::Text(text), column_type) => parsed(text, column_type),
        (Raw::Bytes(bytes), ColumnType::Bytes) => Some(Value::Bytes(bytes.clone())),
        (Raw::Bytes(bytes), column_type) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| parsed(text, column_type)),
    };
    found.ok_or_else(|| format!("{} is not a {}", raw.shown(), column_type.sql_name()))
}

fn parsed(text: &str, column_type: ColumnType) -> Option<Value> {
    Some(match column_type {
        ColumnType::Bool => match text {
            "true" | "t" | "1" => Value::Bool(true),
            "false" | "f" | "0" => Value::Bool(false),
            _ => return None,
        },
        ColumnType::Int16 => Value::Int16(text.parse().ok()?),
        ColumnType::Int32 => Value::Int32(text.parse().ok()?),
        ColumnType::Int64 => Value::Int64(text.parse().ok()?),
        ColumnType::Float32 => Value::Float32(text.parse().ok()?),
        ColumnType::Float64 => Value::Float64(text.parse().ok()?),
        ColumnType::Numeric { scale, .. } => Value::Numeric(Numeric::parse(text)?.rescale(scale)?),
        ColumnType::Text => Value::text(text),
        ColumnType::Bytes => Value::Bytes(Bytes::copy_from_slice(text.as_bytes())),
        ColumnType::Uuid => Value::Uuid(*uuid::Uuid::parse_str(text).ok()?.as_bytes()),
        ColumnType::Date => Value::Date(parse_date(text)?),
        ColumnType::Timestamp => Value::Timestamp(parse_timestamp(text, TimeUnit::Microsecond)?),
        ColumnType::TimestampTz => Value::TimestampTz(instant(text)?),
        ColumnType::Time => Value::Time(parse_time_tz(&format!("{text}+00"))?.0),
        ColumnType::TimeTz => {
            let (micros, offset_seconds) = parse_time_tz(text)?;
            Value::TimeTz {
                micros,
                offset_seconds,
            }
        }
        ColumnType::Interval => {
            let (months, days, micros) = parse_interval(text).or_else(|| interval(text))?;
            Value::Interval { months, days, micros }
        }
    })
}

/// Microseconds since 1970 UTC of a time with an offset, as DuckDB writes it or as other clients do (`T`, `Z`, minutes).
fn instant(text: &str) -> Option<i64> {
    if let Some(micros) = parse_timestamp_tz(text) {
        return Some(micros);
    }
    let text = text.replacen('T', " ", 1);
    let (clock, offset) = match text.strip_suffix('Z') {
        Some(clock) => (clock.to_owned(), 0),
        None => {
            let at = text.get(10..)?.find(['+', '-']).map(|at| at + 10);
            match at {
                None => (text.clone(), 0),
                Some(at) => {
                    let (clock, zone) = text.split_at(at);
                    let (_, east) = parse_time_tz(&format!("00:00:00{}", zone.trim_end_matches(":00")))?;
                    (clock.to_owned(), i64::from(east))
                }
            }
        }
    };
    let trimmed = match clock.split_once('.') {
        Some((whole, fraction)) => {
            let fraction = fraction.get(..6).unwrap_or(fraction).trim_end_matches('0');
            if fraction.is_empty() {
                whole.to_owned()
            } else {
                format!("{whole}.{fraction}")
            }
        }
        None => clock,
    };
    parse_timestamp(&trimmed, TimeUnit::Microsecond)?.checked_sub(offset * 1_000_000)
}

/// The parts of DuckDB's text of an interval: `1 year 2 months 3 days 04:05:06.7`, any of them left out.
fn interval(text: &str) -> Option<(i32, i32, i64)> {
    let (mut months, mut days, mut micros) = (0_i64, 0_i64, 0_i64);
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if let Some((negative, clock)) = clock(word) {
            micros = if negative { -clock } else { clock };
            continue;
        }
        let number: i64 = word.parse().ok()?;
        match words.next()? {
            "year" | "years" => months = months.checked_add(number.checked_mul(12)?)?,
            "month" | "months" | "mon" | "mons" => months = months.checked_add(number)?,
            "day" | "days" => days = days.checked_add(number)?,
            _ => return None,
        }
    }
    Some((i32::try_from(months).ok()?, i32::try_from(days).ok()?, micros))
}

/// `[-]HH:MM:SS[.fraction]` with any number of hours.
fn clock(word: &str) -> Option<(bool, i64)> {
    let (negative, word) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let (hours, rest) = word.split_once(':')?;
    let hours: i64 = hours.parse().ok()?;
    let (rest_micros, _) = parse_time_tz(&format!("00:{rest}+00"))?;
    let micros = hours.checked_mul(3_600_000_000)?.checked_add(rest_micros)?;
    Some((negative, micros))
}

/// A value as a database takes it.
#[must_use]
pub fn raw_of(value: &Value) -> Raw {
    match value {
        Value::Null => Raw::Null,
        Value::Int16(number) => Raw::Int(i64::from(*number)),
        Value::Int32(number) => Raw::Int(i64::from(*number)),
        Value::Int64(number) => Raw::Int(*number),
        Value::Bytes(bytes) => Raw::Bytes(bytes.clone()),
        other => Raw::Text(text_of(other)),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Float32(number) => float(number.is_nan(), format!("{number:?}")),
        Value::Float64(number) => float(number.is_nan(), format!("{number:?}")),
        Value::Numeric(number) => number.to_string(),
        Value::Text(text) => text.to_string(),
        Value::Uuid(bytes) => uuid::Uuid::from_bytes(*bytes).hyphenated().to_string(),
        Value::Date(days) => render_date(*days),
        Value::Timestamp(micros) => render_timestamp(*micros, TimeUnit::Microsecond),
        Value::TimestampTz(micros) => render_timestamp_tz(*micros),
        Value::Time(micros) => render_time(*micros),
        Value::TimeTz {
            micros,
            offset_seconds,
        } => render_time_tz(*micros, *offset_seconds),
        Value::Interval { months, days, micros } => render_interval(*months, *days, *micros),
        Value::Null | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Bytes(_) => String::new(),
    }
}

/// A float as both DuckDB and PostgreSQL read it.
fn float(is_nan: bool, shown: String) -> String {
    match shown.as_str() {
        _ if is_nan => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::{Raw, raw_of, value_of};
    use moraine_tables::{ColumnType, Value};

    fn text(text: &str, column_type: ColumnType) -> Result<Value, String> {
        value_of(&Raw::Text(text.to_owned()), column_type)
    }

    #[test]
    fn instants_are_read_however_clients_write_them() {
        let expected = Ok(Value::TimestampTz(1_767_323_045_600_000));
        for written in [
            "2026-01-02 03:04:05.6+00",
            "2026-01-02T03:04:05.600000Z",
            "2026-01-02T03:04:05.600000+00:00",
            "2026-01-02 05:04:05.6+02",
            "2026-01-02 08:34:05.6+05:30",
        ] {
            assert_eq!(text(written, ColumnType::TimestampTz), expected, "{written}");
        }
        assert!(text("yesterday", ColumnType::TimestampTz).is_err());
    }

    #[test]
    fn intervals_are_read_as_duckdb_and_ducklake_write_them() {
        let read = |written| text(written, ColumnType::Interval);
        let span = |months, days, micros| Ok(Value::Interval { months, days, micros });
        assert_eq!(read("1 month 2 days 00:00:03"), span(1, 2, 3_000_000));
        assert_eq!(read("-05:00:00"), span(0, 0, -18_000_000_000));
        assert_eq!(read("2 years 100:00:00.5"), span(24, 0, 360_000_500_000));
        assert_eq!(read("1 months 2 days 3 microseconds"), span(1, 2, 3));
    }

    #[test]
    fn what_goes_out_comes_back() {
        for (value, column_type) in [
            (Value::Bool(true), ColumnType::Bool),
            (Value::Int16(-7), ColumnType::Int16),
            (Value::Float64(1e300), ColumnType::Float64),
            (Value::Float64(f64::NAN), ColumnType::Float64),
            (Value::Float32(f32::NEG_INFINITY), ColumnType::Float32),
            (Value::Float64(-0.0), ColumnType::Float64),
            (Value::text("ü\0'"), ColumnType::Text),
            (Value::Uuid([7; 16]), ColumnType::Uuid),
            (Value::Time(86_399_999_999), ColumnType::Time),
            (Value::TimestampTz(i64::MAX), ColumnType::TimestampTz),
        ] {
            assert_eq!(value_of(&raw_of(&value), column_type), Ok(value));
        }
        assert!(value_of(&Raw::Int(2), ColumnType::Bool).is_err());
        assert!(value_of(&Raw::Int(70_000), ColumnType::Int16).is_err());
    }
}
