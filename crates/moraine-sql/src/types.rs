//! The types of columns and parameters: those of the tables, and the few that Postgres clients expect of its system
//! catalogs. How they are told in an Arrow schema; no values.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use moraine_tables::ColumnType;

use crate::error::QueryError;
use crate::significance::Origin;

/// The metadata key under which a field says which Postgres type it has beyond its Arrow type.
const TYPE_KEY: &str = "moraine.type";
/// The metadata key of the length of a `character`.
const LENGTH_KEY: &str = "moraine.length";
/// The time zone of all instants.
pub(crate) const UTC: &str = "+00:00";
/// Bytes of a `timetz` in an Arrow array.
pub(crate) const TIME_TZ_BYTES: i32 = 12;
/// A numeric in a plan that came from another type: a client sees no zeros at its end.
pub(crate) const TRIMMED_NUMERIC: DataType = DataType::Decimal256(NUMERIC_PRECISION, TRIMMED_SCALE);
/// Its digits after the point.
pub(crate) const TRIMMED_SCALE: i8 = 30;
/// Digits of a numeric of which nothing is said, in a plan.
pub(crate) const NUMERIC_PRECISION: u8 = 76;
/// Its digits after the point, in a plan. A client is given as many as Postgres would give it.
pub(crate) const NUMERIC_SCALE: i8 = 36;
/// Bytes of a UUID.
pub(crate) const UUID_BYTES: i32 = 16;

/// The type of a column of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// A type the tables have.
    Column(ColumnType),
    /// `oid`: an object's number. Its values are `Int64`.
    Oid,
    /// `regclass`: the number of a relation. Its values are `Int64`.
    RegClass,
    /// `regtype`: the number of a type. Its values are `Int64`.
    RegType,
    /// `regproc`: the number of a procedure. Its values are `Int64`.
    RegProc,
    /// `name`. Its values are `Text`.
    Name,
    /// `"char"`: one byte. Its values are `Text`.
    Char,
    /// `tid`: the row number that [`crate::ScanSink`] was given. Its values are `Int64`.
    Tid,
    /// `numeric` of which neither digits nor scale are said, as a quotient or an average is.
    Numeric,
    /// `json`, kept as it was written. Its values are `Text`.
    Json,
    /// `jsonb`. Its values are `Text`.
    Jsonb,
    /// `character` of a length: text whose blanks at the end do not count. Its values are `Text`, filled up with blanks
    /// where they leave a query.
    Character(u32),
    /// A row as a value. Its values are `Text` in Postgres's form of a row.
    Record,
    /// An array; its values are `Text` in Postgres's array form.
    Array(Element),
    /// `int2vector` or `oidvector`, the arrays of the system catalogs that are written with spaces. Values as of an array.
    Vector(Element),
}

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A type the tables have.
    Column(ColumnType),
    /// `oid`.
    Oid,
    /// `numeric` of which neither digits nor scale are said.
    Numeric,
}

impl Element {
    /// The elements of an array over values of a type; `None` for an array of arrays.
    pub(crate) fn of(sql_type: SqlType) -> Option<Self> {
        Some(match sql_type {
            SqlType::Array(_) | SqlType::Vector(_) => return None,
            SqlType::Oid | SqlType::RegClass | SqlType::RegType | SqlType::RegProc => Self::Oid,
            SqlType::Numeric => Self::Numeric,
            other => Self::Column(other.column_type()),
        })
    }

    /// The type of one element.
    #[must_use]
    pub fn sql_type(self) -> SqlType {
        match self {
            Self::Column(column_type) => SqlType::Column(column_type),
            Self::Oid => SqlType::Oid,
            Self::Numeric => SqlType::Numeric,
        }
    }

    /// The Arrow type of one element. Numerics in an array have the digits they came with.
    pub(crate) fn arrow(self) -> DataType {
        match self {
            Self::Numeric => TRIMMED_NUMERIC,
            other => other.sql_type().arrow(),
        }
    }
}

impl From<ColumnType> for SqlType {
    fn from(column_type: ColumnType) -> Self {
        Self::Column(column_type)
    }
}

impl SqlType {
    /// The type of the values.
    #[must_use]
    pub fn column_type(self) -> ColumnType {
        match self {
            Self::Column(column_type) => column_type,
            Self::Oid | Self::RegClass | Self::RegType | Self::RegProc | Self::Tid => ColumnType::Int64,
            Self::Numeric => ColumnType::Numeric {
                precision: 38,
                scale: NUMERIC_SCALE,
            },
            Self::Name
            | Self::Char
            | Self::Json
            | Self::Jsonb
            | Self::Character(_)
            | Self::Record
            | Self::Array(_)
            | Self::Vector(_) => ColumnType::Text,
        }
    }

    /// The SQL name of the type.
    #[must_use]
    pub fn sql_name(self) -> String {
        match self {
            Self::Column(ColumnType::Text) => "text".to_owned(),
            Self::Column(column_type) => column_type.sql_name(),
            Self::Array(element) => format!("{}[]", element.sql_type().sql_name()),
            Self::Numeric => "numeric".to_owned(),
            other => other.tag().unwrap_or("unknown").to_owned(),
        }
    }

    fn tag(self) -> Option<&'static str> {
        Some(match self {
            Self::Oid => "oid",
            Self::RegClass => "regclass",
            Self::RegType => "regtype",
            Self::RegProc => "regproc",
            Self::Name => "name",
            Self::Char => "char",
            Self::Tid => "tid",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Character(_) => "character",
            Self::Record => "record",
            Self::Vector(Element::Oid) => "oidvector",
            Self::Vector(_) => "int2vector",
            Self::Column(_) | Self::Numeric | Self::Array(_) => return None,
        })
    }

    /// The Arrow type of the type.
    pub(crate) fn arrow(self) -> DataType {
        match self {
            Self::Column(column_type) => of_column(column_type),
            Self::Oid | Self::RegClass | Self::RegType | Self::RegProc => DataType::UInt32,
            Self::Name | Self::Char | Self::Json | Self::Jsonb | Self::Character(_) | Self::Record => {
                DataType::Utf8
            }
            Self::Tid => DataType::UInt64,
            Self::Numeric => DataType::Decimal256(NUMERIC_PRECISION, NUMERIC_SCALE),
            Self::Array(element) | Self::Vector(element) => DataType::new_list(element.arrow(), true),
        }
    }

    /// The field of a column of this type.
    pub(crate) fn field(self, name: &str, nullable: bool) -> Field {
        let field = Field::new(name, self.arrow(), nullable);
        let Some(tag) = self.tag() else {
            return field;
        };
        let mut metadata = HashMap::from([(TYPE_KEY.to_owned(), tag.to_owned())]);
        if let Self::Character(length) = self {
            metadata.insert(LENGTH_KEY.to_owned(), length.to_string());
        }
        field.with_metadata(metadata)
    }

    /// The type of a field.
    ///
    /// # Errors
    /// [`QueryError::Unsupported`] for a type no client can be given.
    pub(crate) fn of_field(field: &Field) -> Result<Self, QueryError> {
        let tag = field.metadata().get(TYPE_KEY).map(String::as_str);
        Ok(match (tag, field.data_type()) {
            (Some("oid"), DataType::UInt32) => Self::Oid,
            (Some("regclass"), DataType::UInt32) => Self::RegClass,
            (Some("regtype"), DataType::UInt32) => Self::RegType,
            (Some("regproc"), DataType::UInt32) => Self::RegProc,
            (Some("name"), DataType::Utf8) => Self::Name,
            (Some("char"), DataType::Utf8) => Self::Char,
            (Some("tid"), DataType::UInt64) => Self::Tid,
            (Some("json"), DataType::Utf8) => Self::Json,
            (Some("jsonb"), DataType::Utf8) => Self::Jsonb,
            (Some("character"), DataType::Utf8) => {
                let length = field.metadata().get(LENGTH_KEY);
                Self::Character(length.and_then(|length| length.parse().ok()).unwrap_or(1))
            }
            (Some("record"), DataType::Utf8) => Self::Record,
            (Some("int2vector"), DataType::List(_)) => Self::Vector(Element::Column(ColumnType::Int16)),
            (Some("oidvector"), DataType::List(_)) => Self::Vector(Element::Oid),
            (_, data_type) => Self::of_arrow(data_type)?,
        })
    }

    /// The type that values of an Arrow type are given out as.
    ///
    /// # Errors
    /// As [`SqlType::of_field`].
    pub(crate) fn of_arrow(data_type: &DataType) -> Result<Self, QueryError> {
        Ok(Self::Column(match data_type {
            DataType::Boolean => ColumnType::Bool,
            DataType::Int8 | DataType::Int16 | DataType::UInt8 => ColumnType::Int16,
            DataType::Int32 | DataType::UInt16 => ColumnType::Int32,
            DataType::UInt32 => return Ok(Self::Oid),
            DataType::Int64 | DataType::UInt64 => ColumnType::Int64,
            DataType::Float16 | DataType::Float32 => ColumnType::Float32,
            DataType::Float64 => ColumnType::Float64,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale) => ColumnType::Numeric {
                precision: *precision,
                scale: *scale,
            },
            DataType::Decimal256(_, NUMERIC_SCALE | TRIMMED_SCALE) => return Ok(Self::Numeric),
            DataType::Decimal256(_, scale) if Origin::of_scale(*scale).is_some() => {
                return Ok(Self::Numeric);
            }
            DataType::Decimal256(_, scale) => ColumnType::Numeric {
                precision: 38,
                scale: *scale,
            },
            DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ColumnType::Bytes,
            DataType::FixedSizeBinary(UUID_BYTES) => ColumnType::Uuid,
            DataType::FixedSizeBinary(TIME_TZ_BYTES) => ColumnType::TimeTz,
            DataType::Date32 => ColumnType::Date,
            DataType::Date64 | DataType::Timestamp(_, None) => ColumnType::Timestamp,
            DataType::Timestamp(_, Some(_)) => ColumnType::TimestampTz,
            DataType::Time32(_) | DataType::Time64(_) => ColumnType::Time,
            DataType::Interval(_) | DataType::Duration(_) => ColumnType::Interval,
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                let element = Element::of(Self::of_arrow(item.data_type())?);
                let element = element.ok_or_else(|| QueryError::unsupported("an array of arrays"))?;
                return Ok(Self::Array(element));
            }
            DataType::Struct(_) => return Err(QueryError::unsupported("a row as a value")),
            other => return Err(QueryError::unsupported(format!("a result of type {other}"))),
        }))
    }
}

fn of_column(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Int16 => DataType::Int16,
        ColumnType::Int32 => DataType::Int32,
        ColumnType::Int64 => DataType::Int64,
        ColumnType::Float32 => DataType::Float32,
        ColumnType::Float64 => DataType::Float64,
        ColumnType::Numeric { precision, scale } => DataType::Decimal128(precision, scale),
        ColumnType::Text => DataType::Utf8,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Uuid => DataType::FixedSizeBinary(UUID_BYTES),
        ColumnType::Date => DataType::Date32,
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        ColumnType::Time => DataType::Time64(TimeUnit::Microsecond),
        ColumnType::TimeTz => DataType::FixedSizeBinary(TIME_TZ_BYTES),
        ColumnType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
    }
}
