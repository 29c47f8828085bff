//! The values that cross the door and how they compare: the column types of the `ducklake_*` tables as Postgres sees
//! them, one SQL value, and a total order equal to Postgres' own. Nothing here knows records, SQL text or the wire.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

pub use crate::numeric::Numeric;

/// The type of a column as the Postgres door declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// `BOOLEAN`.
    Bool,
    /// `SMALLINT`.
    Int16,
    /// `INTEGER`.
    Int32,
    /// `BIGINT`.
    Int64,
    /// `REAL`.
    Float32,
    /// `DOUBLE PRECISION`.
    Float64,
    /// `NUMERIC(precision, scale)`; both in decimal digits.
    Numeric {
        /// Decimal digits in all, 1 to 38.
        precision: u8,
        /// Decimal digits after the point, 0 to `precision`.
        scale: i8,
    },
    /// `VARCHAR`.
    Text,
    /// `BYTEA`.
    Bytes,
    /// `UUID`.
    Uuid,
    /// `DATE`.
    Date,
    /// `TIMESTAMP`.
    Timestamp,
    /// `TIMESTAMP WITH TIME ZONE`.
    TimestampTz,
    /// `TIME`.
    Time,
    /// `TIME WITH TIME ZONE`.
    TimeTz,
    /// `INTERVAL`.
    Interval,
}

impl ColumnType {
    /// The SQL name of the type, lower case, with its arguments.
    #[must_use]
    pub fn sql_name(self) -> String {
        match self {
            Self::Bool => "boolean".into(),
            Self::Int16 => "smallint".into(),
            Self::Int32 => "integer".into(),
            Self::Int64 => "bigint".into(),
            Self::Float32 => "real".into(),
            Self::Float64 => "double precision".into(),
            Self::Numeric { precision, scale } => format!("numeric({precision},{scale})"),
            Self::Text => "varchar".into(),
            Self::Bytes => "bytea".into(),
            Self::Uuid => "uuid".into(),
            Self::Date => "date".into(),
            Self::Timestamp => "timestamp".into(),
            Self::TimestampTz => "timestamp with time zone".into(),
            Self::Time => "time".into(),
            Self::TimeTz => "time with time zone".into(),
            Self::Interval => "interval".into(),
        }
    }

    /// The type whose [`ColumnType::sql_name`] is `name`; `None` when there is none.
    #[must_use]
    pub fn from_sql_name(name: &str) -> Option<Self> {
        const PLAIN: [ColumnType; 15] = [
            ColumnType::Bool,
            ColumnType::Int16,
            ColumnType::Int32,
            ColumnType::Int64,
            ColumnType::Float32,
            ColumnType::Float64,
            ColumnType::Text,
            ColumnType::Bytes,
            ColumnType::Uuid,
            ColumnType::Date,
            ColumnType::Timestamp,
            ColumnType::TimestampTz,
            ColumnType::Time,
            ColumnType::TimeTz,
            ColumnType::Interval,
        ];
        if let Some(found) = PLAIN.into_iter().find(|t| t.sql_name() == name) {
            return Some(found);
        }
        let (precision, scale) = name
            .strip_prefix("numeric(")?
            .strip_suffix(')')?
            .split_once(',')?;
        Some(Self::Numeric {
            precision: precision.parse().ok()?,
            scale: scale.parse().ok()?,
        })
    }
}

/// One SQL value. Ids and counts are `Int64`; a UUID is its sixteen bytes; instants are microseconds since 1970.
#[derive(Clone, Debug)]
pub enum Value {
    /// SQL `NULL`, of any type.
    Null,
    /// A truth value.
    Bool(bool),
    /// A `SMALLINT`.
    Int16(i16),
    /// An `INTEGER`.
    Int32(i32),
    /// A `BIGINT`.
    Int64(i64),
    /// A `REAL`.
    Float32(f32),
    /// A `DOUBLE PRECISION`.
    Float64(f64),
    /// An exact decimal.
    Numeric(Numeric),
    /// Text, UTF-8.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Bytes),
    /// The sixteen bytes of a UUID, in the order in which its text shows them.
    Uuid([u8; 16]),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00:00, no zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// Microseconds since midnight; 24:00:00 is allowed.
    Time(i64),
    /// A time of day at an offset from UTC.
    TimeTz {
        /// Microseconds since local midnight.
        micros: i64,
        /// Seconds east of UTC.
        offset_seconds: i32,
    },
    /// A span in its three independent parts.
    Interval {
        /// Whole months.
        months: i32,
        /// Whole days.
        days: i32,
        /// Microseconds.
        micros: i64,
    },
}

impl Value {
    /// A text value.
    #[must_use]
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Arc::from(text.as_ref()))
    }

    /// Whether this is SQL `NULL`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The name of the value's own type, for error texts.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int16(_) => "smallint",
            Self::Int32(_) => "integer",
            Self::Int64(_) => "bigint",
            Self::Float32(_) => "real",
            Self::Float64(_) => "double precision",
            Self::Numeric(_) => "numeric",
            Self::Text(_) => "varchar",
            Self::Bytes(_) => "bytea",
            Self::Uuid(_) => "uuid",
            Self::Date(_) => "date",
            Self::Timestamp(_) => "timestamp",
            Self::TimestampTz(_) => "timestamp with time zone",
            Self::Time(_) => "time",
            Self::TimeTz { .. } => "time with time zone",
            Self::Interval { .. } => "interval",
        }
    }

    /// Whether the value may stand in a column of this type. `NULL` always may; integers only in their own width.
    #[must_use]
    pub fn has_type(&self, column_type: ColumnType) -> bool {
        matches!(
            (self, column_type),
            (Self::Null, _)
                | (Self::Bool(_), ColumnType::Bool)
                | (Self::Int16(_), ColumnType::Int16)
                | (Self::Int32(_), ColumnType::Int32)
                | (Self::Int64(_), ColumnType::Int64)
                | (Self::Float32(_), ColumnType::Float32)
                | (Self::Float64(_), ColumnType::Float64)
                | (Self::Numeric(_), ColumnType::Numeric { .. })
                | (Self::Text(_), ColumnType::Text)
                | (Self::Bytes(_), ColumnType::Bytes)
                | (Self::Uuid(_), ColumnType::Uuid)
                | (Self::Date(_), ColumnType::Date)
                | (Self::Timestamp(_), ColumnType::Timestamp)
                | (Self::TimestampTz(_), ColumnType::TimestampTz)
                | (Self::Time(_), ColumnType::Time)
                | (Self::TimeTz { .. }, ColumnType::TimeTz)
                | (Self::Interval { .. }, ColumnType::Interval)
        )
    }

    /// Compares as Postgres does: `NaN` is equal to itself and greater than every number, zero equals minus zero,
    /// text and bytes go bytewise (C collation), decimals exactly, intervals by their normalised length. `None` when
    /// either side is `NULL` or the two are not of one type (integers of different widths are).
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if let (Some(a), Some(b)) = (self.integer(), other.integer()) {
            return Some(a.cmp(&b));
        }
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Float32(a), Self::Float32(b)) => Some(compare_float(f64::from(*a), f64::from(*b))),
            (Self::Float64(a), Self::Float64(b)) => Some(compare_float(*a, *b)),
            (Self::Numeric(a), Self::Numeric(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Uuid(a), Self::Uuid(b)) => Some(a.cmp(b)),
            (Self::Date(a), Self::Date(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b))
            | (Self::TimestampTz(a), Self::TimestampTz(b))
            | (Self::Time(a), Self::Time(b)) => Some(a.cmp(b)),
            (
                Self::TimeTz {
                    micros: a,
                    offset_seconds: x,
                },
                Self::TimeTz {
                    micros: b,
                    offset_seconds: y,
                },
            ) => Some(compare_time_tz((*a, *x), (*b, *y))),
            (
                Self::Interval {
                    months: am,
                    days: ad,
                    micros: au,
                },
                Self::Interval {
                    months: bm,
                    days: bd,
                    micros: bu,
                },
            ) => Some(interval_span(*am, *ad, *au).cmp(&interval_span(*bm, *bd, *bu))),
            _ => None,
        }
    }

    fn integer(&self) -> Option<i64> {
        match self {
            Self::Int16(v) => Some(i64::from(*v)),
            Self::Int32(v) => Some(i64::from(*v)),
            Self::Int64(v) => Some(*v),
            _ => None,
        }
    }
}

fn compare_float(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// Postgres orders times with zone by their UTC instant, then by the zone, further west first being greater.
fn compare_time_tz((a, x): (i64, i32), (b, y): (i64, i32)) -> Ordering {
    let utc = |micros: i64, offset: i32| i128::from(micros) - i128::from(offset) * 1_000_000;
    utc(a, x).cmp(&utc(b, y)).then(y.cmp(&x))
}

/// Postgres compares intervals with months of thirty days and days of twenty-four hours.
fn interval_span(months: i32, days: i32, micros: i64) -> i128 {
    const DAY_MICROS: i128 = 86_400_000_000;
    (i128::from(months) * 30 + i128::from(days)) * DAY_MICROS + i128::from(micros)
}

/// Identity of values as stored, not SQL equality: `NULL` equals `NULL`, a float equals its own bits, an interval only
/// the same three parts.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Float32(a), Self::Float32(b)) => a.to_bits() == b.to_bits(),
            (Self::Float64(a), Self::Float64(b)) => a.to_bits() == b.to_bits(),
            (Self::Numeric(a), Self::Numeric(b)) => a.unscaled == b.unscaled && a.scale == b.scale,
            (
                Self::TimeTz {
                    micros: a,
                    offset_seconds: x,
                },
                Self::TimeTz {
                    micros: b,
                    offset_seconds: y,
                },
            ) => a == b && x == y,
            (
                Self::Interval {
                    months: am,
                    days: ad,
                    micros: au,
                },
                Self::Interval {
                    months: bm,
                    days: bd,
                    micros: bu,
                },
            ) => (am, ad, au) == (bm, bd, bu),
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && self.compare(other) == Some(Ordering::Equal)
            }
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(v) => v.hash(state),
            Self::Int16(v) => v.hash(state),
            Self::Int32(v) | Self::Date(v) => v.hash(state),
            Self::Int64(v) | Self::Timestamp(v) | Self::TimestampTz(v) | Self::Time(v) => v.hash(state),
            Self::Float32(v) => v.to_bits().hash(state),
            Self::Float64(v) => v.to_bits().hash(state),
            Self::Numeric(v) => (v.unscaled, v.scale).hash(state),
            Self::Text(v) => v.hash(state),
            Self::Bytes(v) => v.hash(state),
            Self::Uuid(v) => v.hash(state),
            Self::TimeTz {
                micros,
                offset_seconds,
            } => (micros, offset_seconds).hash(state),
            Self::Interval { months, days, micros } => (months, days, micros).hash(state),
        }
    }
}
