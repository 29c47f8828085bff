//! The statistics that DuckLake keeps of a column of a data file, taken from what the Parquet writer has counted, in the text that
//! DuckLake casts back. A bound is left out where it is not known exactly.

use std::cmp::Ordering;

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use crate::flush::parquet_file::{Kind, TimeUnit};

/// A text bound longer than this is left out.
const BOUND_BYTES_MAX: usize = 1024;
/// Microseconds of a day.
const DAY_MICROS: i128 = 86_400_000_000;

/// Statistics of one column of a data file (`ducklake_file_column_stats`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnStatistics {
    /// Bytes of the column in the file.
    pub column_size_bytes: u64,
    /// Values that are not NULL.
    pub value_count: u64,
    /// NULLs.
    pub null_count: u64,
    /// The least value as text, if known.
    pub min_value: Option<String>,
    /// The greatest value as text, if known.
    pub max_value: Option<String>,
    /// Whether there is a NaN; `None` for types without.
    pub contains_nan: Option<bool>,
}

/// A bound in a form that compares as the column's values do.
#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Integer(i128),
    Float(f64),
    Bytes(Vec<u8>),
}

/// The statistics of a column over the row groups of a file.
pub(super) fn of_column(kind: Kind, chunks: &[&ColumnChunkMetaData], has_nan: bool) -> ColumnStatistics {
    let mut found = ColumnStatistics {
        column_size_bytes: 0,
        value_count: 0,
        null_count: 0,
        min_value: None,
        max_value: None,
        contains_nan: matches!(kind, Kind::Float | Kind::Double).then_some(has_nan),
    };
    let mut bounds: Option<(Bound, Bound)> = None;
    let mut known = true;
    for chunk in chunks {
        let statistics = chunk.statistics();
        let values = u64::try_from(chunk.num_values()).unwrap_or_default();
        let nulls = statistics
            .and_then(Statistics::null_count_opt)
            .unwrap_or_default();
        found.column_size_bytes += u64::try_from(chunk.compressed_size()).unwrap_or_default();
        found.null_count += nulls;
        found.value_count += values.saturating_sub(nulls);
        if nulls == values {
            continue;
        }
        let here = statistics.and_then(|statistics| bounds_of(kind, statistics));
        known &= here.is_some();
        bounds = match (bounds, here) {
            (Some((least, greatest)), Some((min, max))) => Some((lesser(least, min), greater(greatest, max))),
            (bounds, here) => bounds.or(here),
        };
    }
    // With a NaN in it, what lies between the other values says nothing.
    if let Some((min, max)) = bounds.filter(|_| known && !has_nan) {
        found.min_value = text(kind, &min);
        found.max_value = text(kind, &max);
    }
    found
}

fn lesser(a: Bound, b: Bound) -> Bound {
    if a.compare(&b) == Some(Ordering::Greater) {
        b
    } else {
        a
    }
}

fn greater(a: Bound, b: Bound) -> Bound {
    if a.compare(&b) == Some(Ordering::Less) {
        b
    } else {
        a
    }
}

impl Bound {
    fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

fn bounds_of(kind: Kind, statistics: &Statistics) -> Option<(Bound, Bound)> {
    let integer = |value: i128| Bound::Integer(value);
    Some(match statistics {
        Statistics::Boolean(typed) => (
            integer((*typed.min_opt()?).into()),
            integer((*typed.max_opt()?).into()),
        ),
        Statistics::Int32(typed) => {
            let widen = |value: i32| match kind {
                Kind::Unsigned(_) => value.cast_unsigned().into(),
                _ => value.into(),
            };
            (
                integer(widen(*typed.min_opt()?)),
                integer(widen(*typed.max_opt()?)),
            )
        }
        Statistics::Int64(typed) => {
            let widen = |value: i64| match kind {
                Kind::Unsigned(_) => value.cast_unsigned().into(),
                _ => value.into(),
            };
            (
                integer(widen(*typed.min_opt()?)),
                integer(widen(*typed.max_opt()?)),
            )
        }
        Statistics::Float(typed) => (
            Bound::Float((*typed.min_opt()?).into()),
            Bound::Float((*typed.max_opt()?).into()),
        ),
        Statistics::Double(typed) => (Bound::Float(*typed.min_opt()?), Bound::Float(*typed.max_opt()?)),
        Statistics::ByteArray(typed) => (
            Bound::Bytes(typed.min_opt()?.data().to_vec()),
            Bound::Bytes(typed.max_opt()?.data().to_vec()),
        ),
        Statistics::FixedLenByteArray(typed) => {
            let (min, max) = (typed.min_opt()?.data(), typed.max_opt()?.data());
            match kind {
                Kind::Decimal { .. } => (integer(signed(min)?), integer(signed(max)?)),
                _ => (Bound::Bytes(min.to_vec()), Bound::Bytes(max.to_vec())),
            }
        }
        Statistics::Int96(_) => return None,
    })
}

/// A big-endian two's complement number.
fn signed(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let seed: i128 = if negative { -1 } else { 0 };
    (bytes.len() <= 16).then(|| {
        bytes
            .iter()
            .fold(seed, |value, byte| (value << 8) | i128::from(*byte))
    })
}

fn text(kind: Kind, bound: &Bound) -> Option<String> {
    match (kind, bound) {
        (Kind::Boolean | Kind::Signed(_) | Kind::Unsigned(_), Bound::Integer(value)) => {
            Some(value.to_string())
        }
        (Kind::Float | Kind::Double, Bound::Float(value)) => value.is_finite().then(|| value.to_string()),
        (Kind::Decimal { scale, .. }, Bound::Integer(value)) => Some(decimal(*value, scale)),
        (Kind::Date, Bound::Integer(days)) => date(*days),
        (Kind::Time, Bound::Integer(micros)) => Some(time(*micros, 1_000_000)),
        (Kind::Timestamp { unit, utc }, Bound::Integer(ticks)) => {
            let per_second = unit.per_second();
            let day = i128::from(per_second) * DAY_MICROS / 1_000_000;
            let date = date(ticks.div_euclid(day))?;
            let zone = if utc { "+00" } else { "" };
            Some(format!(
                "{date} {}{zone}",
                time(ticks.rem_euclid(day), per_second)
            ))
        }
        (Kind::Text | Kind::Json, Bound::Bytes(bytes)) if bytes.len() <= BOUND_BYTES_MAX => {
            let text = String::from_utf8(bytes.clone()).ok()?;
            // Postgres' text holds no NUL.
            (!text.contains('\0')).then_some(text)
        }
        (Kind::Uuid, Bound::Bytes(bytes)) => uuid(bytes),
        _ => None,
    }
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

/// `None` outside of years 1 to 9999, where the text is not the same everywhere; DuckDB's infinities are among those.
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

fn time(ticks: i128, per_second: i64) -> String {
    let per_second = i128::from(per_second);
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
    let digits = per_second.ilog10() as usize;
    let fraction = format!("{fraction:0>digits$}");
    format!("{clock}.{}", fraction.trim_end_matches('0'))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex.get(range);
    (bytes.len() == 16).then_some(())?;
    let parts = [
        part(0..8)?,
        part(8..12)?,
        part(12..16)?,
        part(16..20)?,
        part(20..32)?,
    ];
    Some(parts.join("-"))
}

impl TimeUnit {
    fn per_second(self) -> i64 {
        match self {
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }
}
