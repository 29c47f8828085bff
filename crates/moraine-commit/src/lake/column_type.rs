//! The types of DuckLake's columns: their text in `ducklake_column`, their parts, and which widenings DuckLake allows. How
//! values of a type are written is not here.

use std::fmt;

/// A type of a column. Nested types carry their fields; in the catalog each field is a row of `ducklake_column` of its own.
///
/// ```
/// use moraine_commit::lake::ColumnType;
/// assert_eq!(ColumnType::Decimal { precision: 18, scale: 3 }.to_string(), "decimal(18,3)");
/// assert!(ColumnType::Int32.widens_to(&ColumnType::Int64));
/// assert!(!ColumnType::Int64.widens_to(&ColumnType::Int32));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnType {
    /// `boolean`
    Boolean,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `int128`
    Int128,
    /// `uint8`
    Uint8,
    /// `uint16`
    Uint16,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
    /// `uint128`
    Uint128,
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `decimal(P,S)`
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// `time`, in microseconds
    Time,
    /// `time_ns`
    TimeNs,
    /// `timetz`
    TimeTz,
    /// `date`
    Date,
    /// `timestamp`, in microseconds
    Timestamp,
    /// `timestamp_s`
    TimestampS,
    /// `timestamp_ms`
    TimestampMs,
    /// `timestamp_ns`
    TimestampNs,
    /// `timestamptz`, in microseconds
    TimestampTz,
    /// `interval`
    Interval,
    /// `varchar`
    Varchar,
    /// `json`
    Json,
    /// `blob`
    Blob,
    /// `uuid`
    Uuid,
    /// `variant`
    Variant,
    /// `geometry`
    Geometry,
    /// `struct` with its fields, in order
    Struct(Vec<(String, ColumnType)>),
    /// `list` of elements
    List(Box<ColumnType>),
    /// `map` of keys to values
    Map(Box<ColumnType>, Box<ColumnType>),
    /// A type that this version does not know, verbatim. It can be read, and not be given to a new column.
    Unknown(String),
}

/// The types without parts, with their text.
const PLAIN: [(&str, ColumnType); 28] = [
    ("boolean", ColumnType::Boolean),
    ("int8", ColumnType::Int8),
    ("int16", ColumnType::Int16),
    ("int32", ColumnType::Int32),
    ("int64", ColumnType::Int64),
    ("int128", ColumnType::Int128),
    ("uint8", ColumnType::Uint8),
    ("uint16", ColumnType::Uint16),
    ("uint32", ColumnType::Uint32),
    ("uint64", ColumnType::Uint64),
    ("uint128", ColumnType::Uint128),
    ("float32", ColumnType::Float32),
    ("float64", ColumnType::Float64),
    ("time", ColumnType::Time),
    ("time_ns", ColumnType::TimeNs),
    ("timetz", ColumnType::TimeTz),
    ("date", ColumnType::Date),
    ("timestamp", ColumnType::Timestamp),
    ("timestamp_us", ColumnType::Timestamp),
    ("timestamp_s", ColumnType::TimestampS),
    ("timestamp_ms", ColumnType::TimestampMs),
    ("timestamp_ns", ColumnType::TimestampNs),
    ("timestamptz", ColumnType::TimestampTz),
    ("interval", ColumnType::Interval),
    ("varchar", ColumnType::Varchar),
    ("blob", ColumnType::Blob),
    ("uuid", ColumnType::Uuid),
    ("json", ColumnType::Json),
];

/// Digits that a decimal may have.
const DECIMAL_PRECISION_MAX: u8 = 38;

impl ColumnType {
    /// The type of `ducklake_column.column_type`, with the fields that the rows below it give.
    #[must_use]
    pub fn from_text(text: &str, fields: Vec<(String, ColumnType)>) -> Self {
        let folded = text.to_ascii_lowercase();
        if let Some((_, plain)) = PLAIN.iter().find(|(name, _)| *name == folded) {
            return plain.clone();
        }
        let unknown = || ColumnType::Unknown(text.to_owned());
        match folded.as_str() {
            "variant" => ColumnType::Variant,
            "geometry" => ColumnType::Geometry,
            "struct" => ColumnType::Struct(fields),
            "list" => match <[_; 1]>::try_from(fields) {
                Ok([(_, element)]) => ColumnType::List(Box::new(element)),
                Err(_) => unknown(),
            },
            "map" => match <[_; 2]>::try_from(fields) {
                Ok([(_, key), (_, value)]) => ColumnType::Map(Box::new(key), Box::new(value)),
                Err(_) => unknown(),
            },
            _ => decimal(&folded).unwrap_or_else(unknown),
        }
    }

    /// Whether the type has fields of its own.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        matches!(
            self,
            ColumnType::Struct(_) | ColumnType::List(_) | ColumnType::Map(..)
        )
    }

    /// The fields of a nested type, as DuckLake names them: those of a struct, `element`, or `key` and `value`.
    #[must_use]
    pub fn fields(&self) -> Vec<(&str, &ColumnType)> {
        match self {
            ColumnType::Struct(fields) => fields
                .iter()
                .map(|(name, field)| (name.as_str(), field))
                .collect(),
            ColumnType::List(element) => vec![("element", element)],
            ColumnType::Map(key, value) => vec![("key", key), ("value", value)],
            _ => Vec::new(),
        }
    }

    /// Whether DuckLake lets a column of this type become one of `target`: whether DuckDB, given a value of each, would make
    /// both of the other type. Of nested types the fields are asked one by one.
    #[must_use]
    pub fn widens_to(&self, target: &ColumnType) -> bool {
        use ColumnType::{Boolean, Date, Decimal, Float32, Float64, Json, Timestamp, Variant};
        if self == target || self.is_nested() || matches!(self, ColumnType::Unknown(_)) {
            return false;
        }
        match (self, target) {
            (_, Json) => true,
            (_, Variant) => *self != Json,
            (Boolean, target) => target.integer().is_some(),
            (Float32, Float64) => true,
            (Decimal { .. }, Float32 | Float64) => true,
            (Decimal { precision, scale }, Decimal { .. }) => {
                wider_decimal(precision.saturating_sub(*scale), *scale, target) == Some(target.clone())
            }
            (Date, target) => target.is_timestamp(),
            (Timestamp, target) => matches!(target, ColumnType::TimestampNs | ColumnType::TimestampTz),
            (ColumnType::TimestampS, target) => matches!(
                target,
                Timestamp | ColumnType::TimestampMs | ColumnType::TimestampNs
            ),
            (ColumnType::TimestampMs, target) => matches!(target, Timestamp | ColumnType::TimestampNs),
            (source, target) => source.integer_widens_to(target),
        }
    }

    fn integer_widens_to(&self, target: &ColumnType) -> bool {
        let Some((bits, signed)) = self.integer() else {
            return false;
        };
        match target {
            ColumnType::Float32 | ColumnType::Float64 => true,
            ColumnType::Decimal { .. } => {
                wider_decimal(digits(bits, signed), 0, target) == Some(target.clone())
            }
            target => target
                .integer()
                .is_some_and(|(more, target_signed)| more > bits && (target_signed || !signed)),
        }
    }

    fn is_timestamp(&self) -> bool {
        matches!(
            self,
            ColumnType::Timestamp
                | ColumnType::TimestampS
                | ColumnType::TimestampMs
                | ColumnType::TimestampNs
                | ColumnType::TimestampTz
        )
    }

    /// The first part of the type that no column may have, in words.
    pub(crate) fn unusable(&self) -> Option<String> {
        match self {
            ColumnType::Unknown(text) => Some(format!("DuckLake has no type {text:?}")),
            ColumnType::Decimal { precision, scale }
                if *precision == 0 || *precision > DECIMAL_PRECISION_MAX || scale > precision =>
            {
                Some(format!(
                    "decimal({precision},{scale}) must have 1 to {DECIMAL_PRECISION_MAX} digits, and no more after the point"
                ))
            }
            ColumnType::Struct(fields) if fields.is_empty() => Some("a struct must have a field".to_owned()),
            nested => nested
                .fields()
                .into_iter()
                .find_map(|(_, field)| field.unusable()),
        }
    }

    /// Bits of an integer, and whether it has a sign.
    fn integer(&self) -> Option<(u8, bool)> {
        Some(match self {
            ColumnType::Int8 => (8, true),
            ColumnType::Int16 => (16, true),
            ColumnType::Int32 => (32, true),
            ColumnType::Int64 => (64, true),
            ColumnType::Int128 => (128, true),
            ColumnType::Uint8 => (8, false),
            ColumnType::Uint16 => (16, false),
            ColumnType::Uint32 => (32, false),
            ColumnType::Uint64 => (64, false),
            ColumnType::Uint128 => (128, false),
            _ => return None,
        })
    }
}

/// Decimal digits that hold every value of an integer type.
fn digits(bits: u8, signed: bool) -> u8 {
    match (bits, signed) {
        (8, _) => 3,
        (16, _) => 5,
        (32, _) => 10,
        (64, true) => 19,
        (64, false) => 20,
        _ => DECIMAL_PRECISION_MAX,
    }
}

/// The decimal type that holds so many whole digits and digits after the point, and every value of `other`, as far as
/// decimals go; `None` where `other` is no decimal.
fn wider_decimal(whole: u8, scale: u8, other: &ColumnType) -> Option<ColumnType> {
    let ColumnType::Decimal {
        precision,
        scale: other_scale,
    } = other
    else {
        return None;
    };
    let whole = whole.max(precision.saturating_sub(*other_scale));
    let scale = scale.max(*other_scale);
    Some(ColumnType::Decimal {
        precision: whole.saturating_add(scale).min(DECIMAL_PRECISION_MAX),
        scale,
    })
}

fn decimal(folded: &str) -> Option<ColumnType> {
    if folded == "decimal" {
        return Some(ColumnType::Decimal {
            precision: 18,
            scale: 3,
        });
    }
    let (precision, scale) = folded
        .strip_prefix("decimal(")?
        .strip_suffix(')')?
        .split_once(',')?;
    Some(ColumnType::Decimal {
        precision: precision.trim().parse().ok()?,
        scale: scale.trim().parse().ok()?,
    })
}

/// The text of `ducklake_column.column_type`; the fields of a nested type are not part of it.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            ColumnType::Variant => f.write_str("variant"),
            ColumnType::Geometry => f.write_str("geometry"),
            ColumnType::Struct(_) => f.write_str("struct"),
            ColumnType::List(_) => f.write_str("list"),
            ColumnType::Map(..) => f.write_str("map"),
            ColumnType::Unknown(text) => f.write_str(text),
            plain => {
                let name = PLAIN.iter().find(|(_, column_type)| column_type == plain);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}
