//! The statistics that DuckLake keeps of a column of a data file, taken from what the Parquet writer has counted, in the text that
//! DuckDB gives for them. A bound is left out where DuckDB leaves it out.

use std::borrow::Cow;
use std::cmp::Ordering;

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use crate::flush::column::Kind;
use crate::flush::value_text::Scalar;

/// The most bytes of a text or blob in a bound; longer ones are cut, the upper one so that it stays above.
const BOUND_BYTES_MAX: usize = 256;

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

type Bound = Scalar<'static>;

/// The statistics of a Parquet column over the row groups of a file; without a kind, of a part of a variant.
pub(super) fn of_column(
    kind: Option<Kind>,
    chunks: &[&ColumnChunkMetaData],
    has_nan: bool,
) -> ColumnStatistics {
    let is_float = matches!(kind, Some(Kind::Float | Kind::Double));
    let mut found = ColumnStatistics {
        column_size_bytes: 0,
        value_count: 0,
        null_count: 0,
        min_value: None,
        max_value: None,
        contains_nan: is_float.then_some(has_nan),
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
        let here = kind
            .zip(statistics)
            .and_then(|(kind, statistics)| bounds_of(kind, statistics));
        known &= here.is_some();
        bounds = match (bounds, here) {
            (Some((least, greatest)), Some((min, max))) => Some((lesser(least, min), greater(greatest, max))),
            (bounds, here) => bounds.or(here),
        };
    }
    if let (Some((min, max)), Some(kind), true) = (bounds, kind, known)
        && let Some((min, max)) = lower_text(kind, &min).zip(upper_text(kind, &max))
    {
        (found.min_value, found.max_value) = (Some(min), Some(max));
    }
    found
}

fn lesser(a: Bound, b: Bound) -> Bound {
    if compare(&a, &b) == Some(Ordering::Greater) {
        b
    } else {
        a
    }
}

fn greater(a: Bound, b: Bound) -> Bound {
    if compare(&a, &b) == Some(Ordering::Less) {
        b
    } else {
        a
    }
}

fn compare(a: &Bound, b: &Bound) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Integer(a), Scalar::Integer(b)) => Some(a.cmp(b)),
        (Scalar::Boolean(a), Scalar::Boolean(b)) => Some(a.cmp(b)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        (Scalar::Double(a), Scalar::Double(b)) => a.partial_cmp(b),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn bounds_of(kind: Kind, statistics: &Statistics) -> Option<(Bound, Bound)> {
    let integer = |value: i128| Scalar::Integer(value);
    let bytes = |bytes: &[u8]| Scalar::Bytes(Cow::Owned(bytes.to_vec()));
    Some(match statistics {
        Statistics::Boolean(typed) => (
            Scalar::Boolean(*typed.min_opt()?),
            Scalar::Boolean(*typed.max_opt()?),
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
        // Parquet's bounds may be either zero for both; DuckDB shows the positive one.
        Statistics::Float(typed) => (
            Scalar::Float(*typed.min_opt()? + 0.0),
            Scalar::Float(*typed.max_opt()? + 0.0),
        ),
        Statistics::Double(typed) => (
            Scalar::Double(*typed.min_opt()? + 0.0),
            Scalar::Double(*typed.max_opt()? + 0.0),
        ),
        Statistics::ByteArray(typed) => (bytes(typed.min_opt()?.data()), bytes(typed.max_opt()?.data())),
        Statistics::FixedLenByteArray(typed) => {
            let (min, max) = (typed.min_opt()?.data(), typed.max_opt()?.data());
            match kind {
                Kind::Decimal { .. } => (integer(signed(min)?), integer(signed(max)?)),
                _ => (bytes(min), bytes(max)),
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

fn lower_text(kind: Kind, bound: &Bound) -> Option<String> {
    match (kind, bound) {
        (Kind::Text | Kind::Json, Scalar::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).ok()?;
            without_nul(cut(text).to_owned())
        }
        (Kind::Blob, Scalar::Bytes(bytes)) => {
            Some(hexadecimal(bytes.get(..BOUND_BYTES_MAX).unwrap_or(bytes)))
        }
        _ => exact_text(kind, bound),
    }
}

fn upper_text(kind: Kind, bound: &Bound) -> Option<String> {
    match (kind, bound) {
        (Kind::Text | Kind::Json, Scalar::Bytes(bytes)) => {
            let text = std::str::from_utf8(bytes).ok()?;
            if text.len() <= BOUND_BYTES_MAX {
                return without_nul(text.to_owned());
            }
            let mut text = cut(text).to_owned();
            while let Some(last) = text.pop() {
                if last < '\u{7f}' {
                    text.push(char::from_u32(u32::from(last) + 1)?);
                    return without_nul(text);
                }
            }
            None
        }
        (Kind::Blob, Scalar::Bytes(bytes)) => {
            let Some(cut) = bytes
                .get(..BOUND_BYTES_MAX)
                .filter(|_| bytes.len() > BOUND_BYTES_MAX)
            else {
                return Some(hexadecimal(bytes));
            };
            let mut cut = cut.to_vec();
            while let Some(last) = cut.pop() {
                if last < u8::MAX {
                    cut.push(last + 1);
                    return Some(hexadecimal(&cut));
                }
            }
            None
        }
        _ => exact_text(kind, bound),
    }
}

fn exact_text(kind: Kind, bound: &Bound) -> Option<String> {
    match (kind, bound) {
        (Kind::TimeTz | Kind::Wide | Kind::Interval | Kind::Geometry, _) => None,
        (_, Scalar::Boolean(value)) => Some(u8::from(*value).to_string()),
        _ => bound.text(kind),
    }
}

/// As many whole characters as a bound may have bytes.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(BOUND_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Postgres' text holds no NUL, and DuckLake leaves such bounds out.
fn without_nul(text: String) -> Option<String> {
    (!text.contains('\0')).then_some(text)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
