//! Partitions of a flushed table: the values that DuckLake's transforms give a row, and the folder they name.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringArray};

use crate::flush::column::{Kind, TimeUnit};
use crate::flush::value_text::Scalar;
use crate::text::civil_from_days;

/// The folder of rows whose partition value is NULL.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";
const DAY_SECONDS: i128 = 86_400;

/// One key of a partitioning (`ducklake_partition_column`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// Position of the column among the flushed ones.
    pub column: usize,
    /// What is done to its values.
    pub transform: PartitionTransform,
}

/// A transform of DuckLake 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartitionTransform {
    /// The value itself.
    Identity,
    /// The year of a date or timestamp; those of a TIMESTAMPTZ are taken in UTC.
    Year,
    /// The month, 1 to 12.
    Month,
    /// The day of the month.
    Day,
    /// The hour of the day.
    Hour,
    /// Iceberg's hash, modulo this many buckets.
    Bucket(u32),
}

/// The text that `ducklake_partition_column` has.
impl std::fmt::Display for PartitionTransform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bucket(count) => write!(f, "bucket({count})"),
            plain => f.write_str(plain.prefix().unwrap_or("identity")),
        }
    }
}

impl PartitionTransform {
    /// Reads a transform as `ducklake_partition_column` has it, such as `bucket(4)`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "identity" => Self::Identity,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            other => {
                let buckets = other.strip_prefix("bucket(")?.strip_suffix(')')?;
                Self::Bucket(buckets.trim().parse().ok().filter(|buckets| *buckets > 0)?)
            }
        })
    }

    fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Year => Some("year"),
            Self::Month => Some("month"),
            Self::Day => Some("day"),
            Self::Hour => Some("hour"),
            Self::Bucket(_) => Some("bucket"),
        }
    }

    /// Whether columns of this kind can be partitioned so.
    pub(super) fn applies_to(self, kind: Kind) -> bool {
        match self {
            Self::Identity => !matches!(kind, Kind::Interval | Kind::Geometry),
            Self::Year | Self::Month | Self::Day => clock(kind, 0).is_some() && !is_time(kind),
            Self::Hour => clock(kind, 0).is_some(),
            Self::Bucket(_) => !matches!(
                kind,
                Kind::Interval | Kind::Geometry | Kind::TimeTz | Kind::TimeNs
            ),
        }
    }

    /// The partition value of each row, as text.
    pub(super) fn values(self, kind: Kind, array: &ArrayRef) -> StringArray {
        let rows = 0..array.len();
        if let (Self::Identity, Some(texts)) = (self, array.as_string_opt::<i32>()) {
            return texts.clone();
        }
        rows.map(|row| self.value(kind, &Scalar::of(kind, array, row)?))
            .collect()
    }

    fn value(self, kind: Kind, value: &Scalar<'_>) -> Option<String> {
        let of_day = |pick: fn((i64, i64, i64)) -> i64| {
            let (days, _) = clock(kind, integer(value)?)?;
            Some(pick(civil_from_days(i64::try_from(days).ok()?)).to_string())
        };
        match self {
            Self::Identity => value.text(kind),
            Self::Year => of_day(|(year, _, _)| year),
            Self::Month => of_day(|(_, month, _)| month),
            Self::Day => of_day(|(_, _, day)| day),
            Self::Hour => clock(kind, integer(value)?).map(|(_, seconds)| (seconds / 3600).to_string()),
            Self::Bucket(buckets) => {
                let hash = hash(kind, value)? & 0x7fff_ffff;
                Some((hash % buckets).to_string())
            }
        }
    }
}

fn integer(value: &Scalar<'_>) -> Option<i128> {
    match value {
        Scalar::Integer(value) => Some(*value),
        _ => None,
    }
}

fn is_time(kind: Kind) -> bool {
    matches!(kind, Kind::Time | Kind::TimeTz | Kind::TimeNs)
}

/// Days since 1970 and seconds of the day; `None` for infinities and for kinds without.
fn clock(kind: Kind, value: i128) -> Option<(i128, i128)> {
    let (per_second, greatest) = match kind {
        Kind::Date => {
            let finite = value != i128::from(i32::MAX) && value != i128::from(-i32::MAX);
            return finite.then_some((value, 0));
        }
        Kind::Timestamp { unit, .. } => {
            let per_second = match unit {
                TimeUnit::Millisecond => 1_000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => 1_000_000_000,
            };
            (per_second, i128::from(i64::MAX))
        }
        Kind::TimestampSeconds => (1_000_000, i128::from(i64::MAX)),
        Kind::Time => (1_000_000, i128::MAX),
        _ => return None,
    };
    let seconds = value.div_euclid(per_second);
    let finite = value.abs() != greatest;
    finite.then(|| (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS)))
}

/// Iceberg's hash as DuckLake computes it: of the value's bytes where DuckDB keeps it in at most 64 signed bits, of its text
/// otherwise.
fn hash(kind: Kind, value: &Scalar<'_>) -> Option<u32> {
    let long = |value: i64| murmur3(&value.to_le_bytes());
    let double = |value: f64| {
        let value = if value == 0.0 { 0.0 } else { value };
        murmur3(&value.to_bits().to_le_bytes())
    };
    Some(match (kind, value) {
        (_, Scalar::Boolean(value)) => long(i64::from(*value)),
        (_, Scalar::Float(value)) => double(f64::from(*value)),
        (_, Scalar::Double(value)) => double(*value),
        (Kind::Unsigned(_) | Kind::Wide, Scalar::Integer(_)) => murmur3(value.text(kind)?.as_bytes()),
        (Kind::Decimal { precision, .. }, Scalar::Integer(_)) if precision > 18 => {
            murmur3(value.text(kind)?.as_bytes())
        }
        (Kind::TimestampSeconds, Scalar::Integer(micros)) => long(i64::try_from(micros / 1_000_000).ok()?),
        (_, Scalar::Integer(value)) => long(i64::try_from(*value).ok()?),
        (Kind::Uuid, Scalar::Bytes(_)) => murmur3(value.text(kind)?.as_bytes()),
        (_, Scalar::Bytes(bytes)) => murmur3(bytes),
    })
}

/// MurmurHash3, x86, 32 bits, seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let mix = |block: u32| {
        block
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let mut hash = 0_u32;
    let mut blocks = bytes.chunks_exact(4);
    for block in &mut blocks {
        let block = block.try_into().map_or(0, u32::from_le_bytes);
        hash = (hash ^ mix(block))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    let rest = blocks.remainder();
    if !rest.is_empty() {
        let mut tail = [0; 4];
        for (place, byte) in tail.iter_mut().zip(rest) {
            *place = *byte;
        }
        hash ^= mix(u32::from_le_bytes(tail));
    }
    hash ^= u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or(u32::MAX);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The folder names of a partitioning's keys, as DuckLake gives them: a transform's or the column's name, and where that is taken
/// both.
pub(super) fn key_names(fields: &[(PartitionTransform, &str)]) -> Vec<String> {
    let mut taken = HashSet::new();
    let names = fields.iter().map(|(transform, column)| {
        let prefix = transform.prefix().unwrap_or(column);
        let name = if taken.contains(&prefix.to_ascii_lowercase()) {
            format!("{prefix}_{column}")
        } else {
            prefix.to_owned()
        };
        taken.insert(name.to_ascii_lowercase());
        name
    });
    names.collect()
}

/// The folder of a partition below the table's, with a slash at its end.
pub(super) fn folder(names: &[String], values: &[Option<String>]) -> String {
    let mut folder = String::new();
    for (name, value) in names.iter().zip(values) {
        folder.push_str(&escaped(name));
        folder.push('=');
        match value {
            Some(value) => folder.push_str(&escaped(value)),
            None => folder.push_str(NULL_FOLDER),
        }
        folder.push('/');
    }
    folder
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{PartitionTransform, escaped, key_names, murmur3};

    #[test]
    fn hashes_are_those_of_icebergs_specification() {
        assert_eq!(murmur3(&34_i64.to_le_bytes()), 2_017_239_379);
        assert_eq!(murmur3("iceberg".as_bytes()), 1_210_000_089);
        assert_eq!(murmur3(&[0, 1, 2, 3]), (-188_683_207_i32).cast_unsigned());
    }

    #[test]
    fn folders_are_named_as_ducklake_names_them() {
        let fields = [
            (PartitionTransform::Year, "a"),
            (PartitionTransform::Year, "b"),
            (PartitionTransform::Identity, "Year"),
        ];
        assert_eq!(key_names(&fields), ["year", "year_b", "Year_Year"]);
        assert_eq!(escaped("a/b c'=ü%"), "a%2Fb%20c%27%3D%C3%BC%25");
    }
}
