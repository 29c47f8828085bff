//! The columns of a flushed file: what DuckLake declares, and the Arrow and Parquet types in which DuckDB writes it. How stored
//! values become that is `convert`'s.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit as ArrowUnit};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit as ParquetUnit, Type as Physical};
use parquet::schema::types::{GroupTypeBuilder, Type};

use crate::error::InlineError;
use crate::flush::parquet_error;

/// A user column as `ducklake_column` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushColumn {
    /// Its name.
    pub name: String,
    /// Its column id, which is its field id in files.
    pub column_id: u64,
    /// Its type in DuckLake's words.
    pub ducklake_type: String,
    /// Its fields in order: `element` of a list, `key` and `value` of a map, those of a struct.
    pub children: Vec<FlushColumn>,
}

impl FlushColumn {
    /// Whether the rows of a flush can be sorted by it ([`crate::SortField`]).
    #[must_use]
    pub fn is_sortable(&self) -> bool {
        let kind = Node::of(self).and_then(|node| node.scalar());
        kind.is_some_and(Kind::is_sortable)
    }
}

/// What a scalar column holds, beyond its physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Signed(i8),
    Unsigned(i8),
    /// HUGEINT and UHUGEINT. Parquet has no such integer: DuckDB writes doubles, which lose digits; a decimal of 38 digits is read
    /// back as exactly.
    Wide,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Text,
    Json,
    Blob,
    Geometry,
    Date,
    Time,
    TimeNs,
    /// Written as the time in UTC, as DuckDB does: Parquet has no offset.
    TimeTz,
    Timestamp {
        unit: TimeUnit,
        utc: bool,
    },
    /// Parquet has no seconds; DuckDB writes microseconds too.
    TimestampSeconds,
    Interval,
    Uuid,
}

/// Units that Parquet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// A column or a field of one, as it is written.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) column_id: u64,
    pub(super) shape: Shape,
}

/// What a column is made of.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    Scalar(Kind),
    List(Box<Node>),
    Struct(Vec<Node>),
    Map(Box<Node>, Box<Node>),
    /// Metadata and value, not shredded.
    Variant,
}

/// A Parquet column below a node; a variant has two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf {
    pub(super) column_id: u64,
    /// `None` for a part of a variant, of which no bounds are kept.
    pub(super) kind: Option<Kind>,
}

impl Node {
    /// The column as it is written; `None` for a type that DuckLake does not have.
    pub(super) fn of(column: &FlushColumn) -> Option<Self> {
        let children = || {
            let children = column.children.iter().map(Self::of);
            children.collect::<Option<Vec<Self>>>()
        };
        let shape = match column.ducklake_type.to_ascii_lowercase().as_str() {
            "list" => {
                let [element] = <[Self; 1]>::try_from(children()?).ok()?;
                Shape::List(Box::new(element))
            }
            "struct" => Shape::Struct(children()?),
            "map" => {
                let [key, value] = <[Self; 2]>::try_from(children()?).ok()?;
                Shape::Map(Box::new(key), Box::new(value))
            }
            "variant" => Shape::Variant,
            scalar => Shape::Scalar(Kind::declared(scalar)?),
        };
        Some(Self {
            name: column.name.clone(),
            column_id: column.column_id,
            shape,
        })
    }

    /// The kind of a scalar column.
    pub(super) fn scalar(&self) -> Option<Kind> {
        match self.shape {
            Shape::Scalar(kind) => Some(kind),
            _ => None,
        }
    }

    /// The Arrow type of what is handed to the Parquet writer.
    pub(super) fn data_type(&self) -> DataType {
        match &self.shape {
            Shape::Scalar(kind) => kind.data_type(),
            Shape::List(element) => DataType::List(Arc::new(element.field("element", true))),
            Shape::Struct(children) => DataType::Struct(
                children
                    .iter()
                    .map(|child| child.field(&child.name, true))
                    .collect(),
            ),
            Shape::Map(key, value) => {
                let entry = vec![key.field("key", false), value.field("value", true)];
                let entries = Field::new("key_value", DataType::Struct(entry.into()), false);
                DataType::Map(Arc::new(entries), false)
            }
            Shape::Variant => {
                let parts = [("metadata", false), ("value", true)];
                let fields = parts.map(|(name, nullable)| Field::new(name, DataType::Binary, nullable));
                DataType::Struct(fields.to_vec().into())
            }
        }
    }

    pub(super) fn field(&self, name: &str, nullable: bool) -> Field {
        Field::new(name, self.data_type(), nullable)
    }

    /// The Parquet type under `name`, with the column ids as field ids at every level.
    pub(super) fn parquet_type(&self, name: &str, repetition: Repetition) -> Result<Arc<Type>, InlineError> {
        let id = Some(field_id(self.column_id)?);
        let built = match &self.shape {
            Shape::Scalar(kind) => return kind.parquet_type(name, repetition, id),
            Shape::List(element) => {
                let element = element.parquet_type("element", Repetition::OPTIONAL)?;
                group(name, repetition, vec![repeated("list", vec![element])?])
                    .with_logical_type(Some(LogicalType::List))
            }
            Shape::Struct(children) => {
                let children = children
                    .iter()
                    .map(|child| child.parquet_type(&child.name, Repetition::OPTIONAL));
                group(name, repetition, children.collect::<Result<_, _>>()?)
            }
            Shape::Map(key, value) => {
                let key = key.parquet_type("key", Repetition::REQUIRED)?;
                let value = value.parquet_type("value", Repetition::OPTIONAL)?;
                group(name, repetition, vec![repeated("key_value", vec![key, value])?])
                    .with_logical_type(Some(LogicalType::Map))
            }
            Shape::Variant => {
                let metadata = Kind::Blob.parquet_type("metadata", Repetition::REQUIRED, None)?;
                let value = Kind::Blob.parquet_type("value", Repetition::OPTIONAL, None)?;
                group(name, repetition, vec![metadata, value])
            }
        };
        built.with_id(id).build().map(Arc::new).map_err(parquet_error)
    }

    /// The Parquet columns, in their order in the file.
    pub(super) fn leaves(&self, found: &mut Vec<Leaf>) {
        match &self.shape {
            Shape::Scalar(kind) => found.push(Leaf {
                column_id: self.column_id,
                kind: Some(*kind),
            }),
            Shape::List(element) => element.leaves(found),
            Shape::Struct(children) => children.iter().for_each(|child| child.leaves(found)),
            Shape::Map(key, value) => {
                key.leaves(found);
                value.leaves(found);
            }
            Shape::Variant => {
                let part = Leaf {
                    column_id: self.column_id,
                    kind: None,
                };
                found.extend([part, part]);
            }
        }
    }
}

impl Kind {
    /// Whether Arrow compares such values as DuckDB does.
    pub(super) fn is_sortable(self) -> bool {
        !matches!(self, Self::Interval | Self::Geometry)
    }

    fn declared(lower: &str) -> Option<Self> {
        let timestamp = |unit, utc| Self::Timestamp { unit, utc };
        Some(match lower {
            "boolean" => Self::Boolean,
            "int8" => Self::Signed(8),
            "int16" => Self::Signed(16),
            "int32" => Self::Signed(32),
            "int64" => Self::Signed(64),
            "uint8" => Self::Unsigned(8),
            "uint16" => Self::Unsigned(16),
            "uint32" => Self::Unsigned(32),
            "uint64" => Self::Unsigned(64),
            "int128" | "uint128" => Self::Wide,
            "float32" => Self::Float,
            "float64" => Self::Double,
            "varchar" => Self::Text,
            "json" => Self::Json,
            "blob" => Self::Blob,
            "geometry" => Self::Geometry,
            "uuid" => Self::Uuid,
            "date" => Self::Date,
            "time" => Self::Time,
            "time_ns" => Self::TimeNs,
            "timetz" => Self::TimeTz,
            "interval" => Self::Interval,
            "timestamp_s" => Self::TimestampSeconds,
            "timestamp_ms" => timestamp(TimeUnit::Millisecond, false),
            "timestamp" | "timestamp_us" => timestamp(TimeUnit::Microsecond, false),
            "timestamp_ns" => timestamp(TimeUnit::Nanosecond, false),
            "timestamptz" => timestamp(TimeUnit::Microsecond, true),
            other => {
                let digits = other.strip_prefix("decimal(")?.strip_suffix(')')?;
                let (precision, scale) = digits.split_once(',')?;
                Self::Decimal {
                    precision: precision
                        .trim()
                        .parse()
                        .ok()
                        .filter(|digits| (1..=38).contains(digits))?,
                    scale: scale.trim().parse().ok()?,
                }
            }
        })
    }

    /// The Arrow type of what is handed to the Parquet writer.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Signed(8) => DataType::Int8,
            Self::Signed(16) => DataType::Int16,
            Self::Signed(32) => DataType::Int32,
            Self::Signed(_) => DataType::Int64,
            Self::Unsigned(8) => DataType::UInt8,
            Self::Unsigned(16) => DataType::UInt16,
            Self::Unsigned(32) => DataType::UInt32,
            Self::Unsigned(_) => DataType::UInt64,
            Self::Wide => DataType::Decimal128(38, 0),
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal { precision, scale } => {
                DataType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
            }
            Self::Text | Self::Json => DataType::Utf8,
            Self::Blob | Self::Geometry => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time | Self::TimeTz => DataType::Time64(ArrowUnit::Microsecond),
            Self::TimeNs => DataType::Time64(ArrowUnit::Nanosecond),
            Self::Timestamp { unit, utc } => DataType::Timestamp(unit.arrow(), utc.then(|| Arc::from("UTC"))),
            Self::TimestampSeconds => DataType::Timestamp(ArrowUnit::Microsecond, None),
            Self::Interval => DataType::FixedSizeBinary(12),
            Self::Uuid => DataType::FixedSizeBinary(16),
        }
    }

    fn physical(self) -> (Physical, Option<LogicalType>) {
        let integer = |bits, signed| Some(LogicalType::integer(bits, signed));
        match self {
            Self::Boolean => (Physical::BOOLEAN, None),
            Self::Signed(64) => (Physical::INT64, integer(64, true)),
            Self::Signed(bits) => (Physical::INT32, integer(bits, true)),
            Self::Unsigned(64) => (Physical::INT64, integer(64, false)),
            Self::Unsigned(bits) => (Physical::INT32, integer(bits, false)),
            Self::Float => (Physical::FLOAT, None),
            Self::Double => (Physical::DOUBLE, None),
            Self::Wide => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::decimal(0, 38))),
            Self::Decimal { precision, scale } => {
                let physical = match precision {
                    ..=9 => Physical::INT32,
                    10..=18 => Physical::INT64,
                    _ => Physical::FIXED_LEN_BYTE_ARRAY,
                };
                (
                    physical,
                    Some(LogicalType::decimal(scale.into(), precision.into())),
                )
            }
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            Self::Blob => (Physical::BYTE_ARRAY, None),
            Self::Geometry => (Physical::BYTE_ARRAY, Some(LogicalType::geometry(None))),
            Self::Date => (Physical::INT32, Some(LogicalType::Date)),
            Self::Time | Self::TimeNs | Self::TimeTz => {
                let unit = if self == Self::TimeNs {
                    ParquetUnit::NANOS
                } else {
                    ParquetUnit::MICROS
                };
                (
                    Physical::INT64,
                    Some(LogicalType::time(self == Self::TimeTz, unit)),
                )
            }
            Self::Timestamp { unit, utc } => {
                (Physical::INT64, Some(LogicalType::timestamp(utc, unit.parquet())))
            }
            Self::TimestampSeconds => (
                Physical::INT64,
                Some(LogicalType::timestamp(false, ParquetUnit::MICROS)),
            ),
            Self::Interval => (Physical::FIXED_LEN_BYTE_ARRAY, None),
            Self::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
        }
    }

    /// The Parquet type of a column of this kind.
    pub(super) fn parquet_type(
        self,
        name: &str,
        repetition: Repetition,
        field_id: Option<i32>,
    ) -> Result<Arc<Type>, InlineError> {
        let (physical, logical) = self.physical();
        let mut builder = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .with_id(field_id);
        builder = match self {
            Self::Uuid => builder.with_length(16),
            Self::Interval => builder
                .with_length(12)
                .with_converted_type(ConvertedType::INTERVAL),
            Self::Wide => builder
                .with_length(decimal_bytes(38))
                .with_precision(38)
                .with_scale(0),
            Self::Decimal { precision, scale } => {
                let builder = builder.with_precision(precision.into()).with_scale(scale.into());
                if precision > 18 {
                    builder.with_length(decimal_bytes(precision))
                } else {
                    builder
                }
            }
            _ => builder,
        };
        builder.build().map(Arc::new).map_err(parquet_error)
    }
}

impl TimeUnit {
    pub(super) fn arrow(self) -> ArrowUnit {
        match self {
            Self::Millisecond => ArrowUnit::Millisecond,
            Self::Microsecond => ArrowUnit::Microsecond,
            Self::Nanosecond => ArrowUnit::Nanosecond,
        }
    }

    fn parquet(self) -> ParquetUnit {
        match self {
            Self::Millisecond => ParquetUnit::MILLIS,
            Self::Microsecond => ParquetUnit::MICROS,
            Self::Nanosecond => ParquetUnit::NANOS,
        }
    }

    pub(super) fn text(self) -> crate::text::TimeUnit {
        match self {
            Self::Millisecond => crate::text::TimeUnit::Millisecond,
            Self::Microsecond => crate::text::TimeUnit::Microsecond,
            Self::Nanosecond => crate::text::TimeUnit::Nanosecond,
        }
    }
}

/// Bytes that hold every decimal of so many digits; Arrow's writer gives wide decimals exactly as many.
fn decimal_bytes(precision: u8) -> i32 {
    let greatest = 10_u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    let bits = u128::BITS - greatest.leading_zeros() + 1;
    i32::try_from(bits.div_ceil(8)).unwrap_or(16)
}

fn group(name: &str, repetition: Repetition, fields: Vec<Arc<Type>>) -> GroupTypeBuilder<'_> {
    Type::group_type_builder(name)
        .with_repetition(repetition)
        .with_fields(fields)
}

fn repeated(name: &str, fields: Vec<Arc<Type>>) -> Result<Arc<Type>, InlineError> {
    let built = group(name, Repetition::REPEATED, fields).build();
    built.map(Arc::new).map_err(parquet_error)
}

/// A column id as a field id.
pub(super) fn field_id(column_id: u64) -> Result<i32, InlineError> {
    i32::try_from(column_id).map_err(|_| InlineError::Parquet {
        detail: format!("column id {column_id} is above the greatest field id"),
    })
}
