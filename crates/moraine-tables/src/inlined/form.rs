//! How one user column of an inlined table is kept: the type at the door, the Arrow type in the chunk, and the rule between
//! them. A column whose declared type the door does not carry as expected keeps the door's own form.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit as ArrowUnit};

use crate::text::TimeUnit;
use crate::value::ColumnType;

pub use moraine_commit::verbs::DOOR_TYPE_METADATA_KEY;

const EXTENSION_METADATA_KEY: &str = "ARROW:extension:name";
const UUID_EXTENSION: &str = "arrow.uuid";
const UUID_BYTES: i32 = 16;
/// Decimal digits of the greatest 128-bit integer.
const WIDE_DIGITS: u8 = 39;

/// The rule between a column's values at the door and in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bool,
    /// `tinyint`, at the door a `SMALLINT`.
    Int8,
    Int16,
    Int32,
    Int64,
    /// `utinyint`, at the door an `INTEGER`.
    UInt8,
    /// `usmallint`, at the door an `INTEGER`.
    UInt16,
    /// `uinteger`, at the door a `BIGINT`.
    UInt32,
    Float32,
    Float64,
    Decimal {
        precision: u8,
        scale: i8,
    },
    /// Text that travels as bytes, because Postgres' text cannot hold NUL.
    TextAsBytes,
    Binary,
    /// Text that travels as text: nested values and types without a form of their own.
    Text,
    /// A date that travels as text; likewise the others: Postgres' own ranges are narrower than DuckDB's.
    DateAsText,
    TimestampAsText(TimeUnit),
    TimestampTzAsText,
    UInt64AsText,
    /// `hugeint` and `uhugeint`: a decimal of 39 digits holds every value of both.
    WideAsText,
    Uuid,
    Time,
    /// A time with zone: Arrow has none, so its text is kept.
    TimeTz,
    /// An interval: Arrow's counts nanoseconds and is too short for DuckDB's, so the text of its three parts is kept.
    Interval,
    /// Arrow's interval, as another writer may have stored it. Never written.
    ArrowInterval,
    Date,
    Timestamp,
    TimestampTz,
}

impl Form {
    /// The form of a column of this DuckLake type that the door carries as `door`.
    pub(crate) fn choose(ducklake_type: Option<&str>, door: ColumnType) -> Self {
        ducklake_type
            .and_then(Self::declared)
            .filter(|form| form.door() == door)
            .unwrap_or(Self::plain(door))
    }

    /// The form in which DuckLake's column type is kept, if it has one of its own.
    fn declared(ducklake_type: &str) -> Option<Self> {
        let lower = ducklake_type.to_ascii_lowercase();
        Some(match lower.as_str() {
            "boolean" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uint8" => Self::UInt8,
            "uint16" => Self::UInt16,
            "uint32" => Self::UInt32,
            "uint64" => Self::UInt64AsText,
            "int128" | "uint128" => Self::WideAsText,
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            "varchar" | "json" => Self::TextAsBytes,
            "blob" => Self::Binary,
            "uuid" => Self::Uuid,
            "date" => Self::DateAsText,
            "time" => Self::Time,
            "timetz" => Self::TimeTz,
            "interval" => Self::Interval,
            "timestamp" | "timestamp_us" => Self::TimestampAsText(TimeUnit::Microsecond),
            "timestamp_s" => Self::TimestampAsText(TimeUnit::Second),
            "timestamp_ms" => Self::TimestampAsText(TimeUnit::Millisecond),
            "timestamp_ns" => Self::TimestampAsText(TimeUnit::Nanosecond),
            "timestamptz" => Self::TimestampTzAsText,
            other => {
                let (precision, scale) = other
                    .strip_prefix("decimal(")?
                    .strip_suffix(')')?
                    .split_once(',')?;
                Self::Decimal {
                    precision: precision.trim().parse().ok()?,
                    scale: scale.trim().parse().ok()?,
                }
            }
        })
    }

    /// The form that keeps a column as the door carries it.
    fn plain(door: ColumnType) -> Self {
        match door {
            ColumnType::Bool => Self::Bool,
            ColumnType::Int16 => Self::Int16,
            ColumnType::Int32 => Self::Int32,
            ColumnType::Int64 => Self::Int64,
            ColumnType::Float32 => Self::Float32,
            ColumnType::Float64 => Self::Float64,
            ColumnType::Numeric { precision, scale } => Self::Decimal { precision, scale },
            ColumnType::Text => Self::Text,
            ColumnType::Bytes => Self::Binary,
            ColumnType::Uuid => Self::Uuid,
            ColumnType::Date => Self::Date,
            ColumnType::Timestamp => Self::Timestamp,
            ColumnType::TimestampTz => Self::TimestampTz,
            ColumnType::Time => Self::Time,
            ColumnType::TimeTz => Self::TimeTz,
            ColumnType::Interval => Self::Interval,
        }
    }

    /// The type at the door.
    pub(crate) fn door(self) -> ColumnType {
        match self {
            Self::Bool => ColumnType::Bool,
            Self::Int8 | Self::Int16 => ColumnType::Int16,
            Self::Int32 | Self::UInt8 | Self::UInt16 => ColumnType::Int32,
            Self::Int64 | Self::UInt32 => ColumnType::Int64,
            Self::Float32 => ColumnType::Float32,
            Self::Float64 => ColumnType::Float64,
            Self::Decimal { precision, scale } => ColumnType::Numeric { precision, scale },
            Self::TextAsBytes | Self::Binary => ColumnType::Bytes,
            Self::Text
            | Self::DateAsText
            | Self::TimestampAsText(_)
            | Self::TimestampTzAsText
            | Self::UInt64AsText
            | Self::WideAsText => ColumnType::Text,
            Self::Uuid => ColumnType::Uuid,
            Self::Time => ColumnType::Time,
            Self::TimeTz => ColumnType::TimeTz,
            Self::Interval | Self::ArrowInterval => ColumnType::Interval,
            Self::Date => ColumnType::Date,
            Self::Timestamp => ColumnType::Timestamp,
            Self::TimestampTz => ColumnType::TimestampTz,
        }
    }

    /// The type in a chunk.
    pub(crate) fn stored(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 => DataType::UInt32,
            Self::UInt64AsText => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(precision, scale),
            Self::WideAsText => DataType::Decimal256(WIDE_DIGITS, 0),
            Self::TextAsBytes | Self::Text | Self::TimeTz | Self::Interval => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::DateAsText | Self::Date => DataType::Date32,
            Self::TimestampAsText(unit) => DataType::Timestamp(arrow_unit(unit), None),
            Self::Timestamp => DataType::Timestamp(ArrowUnit::Microsecond, None),
            Self::TimestampTzAsText | Self::TimestampTz => {
                DataType::Timestamp(ArrowUnit::Microsecond, Some("UTC".into()))
            }
            Self::Uuid => DataType::FixedSizeBinary(UUID_BYTES),
            Self::Time => DataType::Time64(ArrowUnit::Microsecond),
            Self::ArrowInterval => DataType::Interval(IntervalUnit::MonthDayNano),
        }
    }

    /// The Arrow field of a column, which tells its form to whoever reads the schema alone.
    pub(crate) fn field(self, name: &str) -> Field {
        let mut metadata = HashMap::from([(DOOR_TYPE_METADATA_KEY.to_owned(), self.door().sql_name())]);
        if self == Self::Uuid {
            metadata.insert(EXTENSION_METADATA_KEY.to_owned(), UUID_EXTENSION.to_owned());
        }
        Field::new(name, self.stored(), true).with_metadata(metadata)
    }

    /// The form of a stored column: what its metadata says, else the form in which DuckLake's Postgres catalog keeps that
    /// type. `None` for types the door cannot show.
    pub(crate) fn of_field(field: &Field) -> Option<Self> {
        let door = field
            .metadata()
            .get(DOOR_TYPE_METADATA_KEY)
            .and_then(|name| ColumnType::from_sql_name(name));
        let text = door.is_none_or(|door| door == ColumnType::Text);
        let form = match field.data_type() {
            DataType::Boolean => Self::Bool,
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::UInt8 => Self::UInt8,
            DataType::UInt16 => Self::UInt16,
            DataType::UInt32 => Self::UInt32,
            DataType::UInt64 => Self::UInt64AsText,
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            DataType::Decimal128(precision, scale) => Self::Decimal {
                precision: *precision,
                scale: *scale,
            },
            DataType::Decimal256(_, 0) => Self::WideAsText,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match door {
                Some(ColumnType::Text) => Self::Text,
                Some(ColumnType::TimeTz) => Self::TimeTz,
                Some(ColumnType::Interval) => Self::Interval,
                _ => Self::TextAsBytes,
            },
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Binary,
            DataType::Date32 if text => Self::DateAsText,
            DataType::Date32 => Self::Date,
            DataType::Timestamp(unit, None) if text => Self::TimestampAsText(own_unit(*unit)),
            DataType::Timestamp(ArrowUnit::Microsecond, None) => Self::Timestamp,
            DataType::Timestamp(ArrowUnit::Microsecond, Some(_)) if text => Self::TimestampTzAsText,
            DataType::Timestamp(ArrowUnit::Microsecond, Some(_)) => Self::TimestampTz,
            DataType::FixedSizeBinary(UUID_BYTES) if is_uuid(field, door) => Self::Uuid,
            DataType::Time64(ArrowUnit::Microsecond) => Self::Time,
            DataType::Interval(IntervalUnit::MonthDayNano) => Self::ArrowInterval,
            _ => return None,
        };
        Some(form)
    }

    /// The name of the type in errors about its text.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::DateAsText => "date",
            Self::TimestampAsText(TimeUnit::Second) => "timestamp_s",
            Self::TimestampAsText(TimeUnit::Millisecond) => "timestamp_ms",
            Self::TimestampAsText(TimeUnit::Microsecond) => "timestamp",
            Self::TimestampAsText(TimeUnit::Nanosecond) => "timestamp_ns",
            Self::TimestampTzAsText => "timestamptz (in UTC)",
            Self::UInt64AsText => "uint64",
            Self::WideAsText => "128-bit integer",
            Self::TimeTz => "timetz",
            Self::Interval => "interval",
            Self::TextAsBytes => "varchar in UTF-8",
            _ => "value",
        }
    }
}

fn is_uuid(field: &Field, door: Option<ColumnType>) -> bool {
    door == Some(ColumnType::Uuid)
        || field
            .metadata()
            .get(EXTENSION_METADATA_KEY)
            .is_some_and(|name| name == UUID_EXTENSION)
}

fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Second => ArrowUnit::Second,
        TimeUnit::Millisecond => ArrowUnit::Millisecond,
        TimeUnit::Microsecond => ArrowUnit::Microsecond,
        TimeUnit::Nanosecond => ArrowUnit::Nanosecond,
    }
}

fn own_unit(unit: ArrowUnit) -> TimeUnit {
    match unit {
        ArrowUnit::Second => TimeUnit::Second,
        ArrowUnit::Millisecond => TimeUnit::Millisecond,
        ArrowUnit::Microsecond => TimeUnit::Microsecond,
        ArrowUnit::Nanosecond => TimeUnit::Nanosecond,
    }
}

/// The type that DuckLake's Postgres catalog declares for an inlined column of this DuckLake type.
#[must_use]
pub fn door_type(ducklake_type: &str) -> ColumnType {
    // Nested values travel as their text, and so does what has no form of its own.
    Form::declared(ducklake_type).map_or(ColumnType::Text, Form::door)
}

/// The columns under which an inlined table keeps its rows, each given by its name, its DuckLake type where that is known,
/// and its type at the door.
#[must_use]
pub fn inlined_schema<'a>(
    columns: impl IntoIterator<Item = (&'a str, Option<&'a str>, ColumnType)>,
) -> arrow_schema::SchemaRef {
    let fields: Vec<Field> = columns
        .into_iter()
        .map(|(name, ducklake_type, door)| Form::choose(ducklake_type, door).field(name))
        .collect();
    std::sync::Arc::new(arrow_schema::Schema::new(fields))
}
