//! Column types as Postgres names them: object ids, modifiers, the words of DDL and of error messages.

use moraine_tables::ColumnType;
use postgres_types::Type;
use sqlparser::ast::{DataType, ExactNumberInfo, TimezoneInfo};

use crate::errors::SqlError;

/// The digits of a numeric that was declared without any: as many as the tables hold.
const NUMERIC_PRECISION_DEFAULT: u8 = 38;
/// The most digits a numeric column can hold. Source: DuckDB's DECIMAL.
const NUMERIC_PRECISION_MAX: u64 = 38;

/// The Postgres type that carries a column on the wire.
pub(crate) fn wire_type(column_type: ColumnType) -> Type {
    match column_type {
        ColumnType::Bool => Type::BOOL,
        ColumnType::Int16 => Type::INT2,
        ColumnType::Int32 => Type::INT4,
        ColumnType::Int64 => Type::INT8,
        ColumnType::Float32 => Type::FLOAT4,
        ColumnType::Float64 => Type::FLOAT8,
        ColumnType::Numeric { .. } => Type::NUMERIC,
        ColumnType::Text => Type::VARCHAR,
        ColumnType::Bytes => Type::BYTEA,
        ColumnType::Uuid => Type::UUID,
        ColumnType::Date => Type::DATE,
        ColumnType::Timestamp => Type::TIMESTAMP,
        ColumnType::TimestampTz => Type::TIMESTAMPTZ,
        ColumnType::Time => Type::TIME,
        ColumnType::TimeTz => Type::TIMETZ,
        ColumnType::Interval => Type::INTERVAL,
    }
}

/// The column type a Postgres type is read as; `None` for types no column has.
pub(crate) fn of_wire_type(wire_type: &Type) -> Option<ColumnType> {
    Some(match *wire_type {
        Type::BOOL => ColumnType::Bool,
        Type::INT2 => ColumnType::Int16,
        Type::INT4 | Type::OID => ColumnType::Int32,
        Type::INT8 => ColumnType::Int64,
        Type::FLOAT4 => ColumnType::Float32,
        Type::FLOAT8 => ColumnType::Float64,
        Type::NUMERIC => ColumnType::Numeric {
            precision: NUMERIC_PRECISION_DEFAULT,
            scale: 0,
        },
        Type::VARCHAR
        | Type::TEXT
        | Type::NAME
        | Type::UNKNOWN
        | Type::BPCHAR
        | Type::CHAR
        | Type::JSON
        | Type::JSONB
        | Type::XML => ColumnType::Text,
        Type::BYTEA => ColumnType::Bytes,
        Type::UUID => ColumnType::Uuid,
        Type::DATE => ColumnType::Date,
        Type::TIMESTAMP => ColumnType::Timestamp,
        Type::TIMESTAMPTZ => ColumnType::TimestampTz,
        Type::TIME => ColumnType::Time,
        Type::TIMETZ => ColumnType::TimeTz,
        Type::INTERVAL => ColumnType::Interval,
        _ => return None,
    })
}

/// Whether the binary form of a type is its text.
pub(crate) fn is_text(wire_type: &Type) -> bool {
    of_wire_type(wire_type) == Some(ColumnType::Text) && *wire_type != Type::JSONB
}

/// Whether a type's values are the numbers of objects.
pub(crate) fn is_object_id(wire_type: &Type) -> bool {
    matches!(
        *wire_type,
        Type::OID | Type::REGCLASS | Type::REGTYPE | Type::REGPROC | Type::REGNAMESPACE | Type::XID
    )
}

/// `pg_attribute.atttypmod`: only a numeric has one. Without it a client has to guess the digits.
pub(crate) fn type_modifier(column_type: ColumnType) -> i32 {
    match column_type {
        ColumnType::Numeric { precision, scale } => {
            ((i32::from(precision) << 16) | (i32::from(scale) & 0x7ff)) + 4
        }
        _ => -1,
    }
}

/// `pg_type.typlen`: bytes of a fixed-size type, -1 for the others.
pub(crate) fn type_size(wire_type: &Type) -> i16 {
    match *wire_type {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID | Type::XID => 4,
        Type::TID => 6,
        Type::INT8 | Type::FLOAT8 | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => 8,
        Type::TIMETZ => 12,
        Type::UUID | Type::INTERVAL => 16,
        Type::NAME => 64,
        _ => -1,
    }
}

/// The name as `format_type` and error messages write it.
pub(crate) fn sql_name(column_type: ColumnType) -> String {
    match column_type {
        ColumnType::Bool => "boolean".to_owned(),
        ColumnType::Int16 => "smallint".to_owned(),
        ColumnType::Int32 => "integer".to_owned(),
        ColumnType::Int64 => "bigint".to_owned(),
        ColumnType::Float32 => "real".to_owned(),
        ColumnType::Float64 => "double precision".to_owned(),
        ColumnType::Numeric { .. } => "numeric".to_owned(),
        ColumnType::Text => "character varying".to_owned(),
        ColumnType::Bytes => "bytea".to_owned(),
        ColumnType::Uuid => "uuid".to_owned(),
        ColumnType::Date => "date".to_owned(),
        ColumnType::Timestamp => "timestamp without time zone".to_owned(),
        ColumnType::TimestampTz => "timestamp with time zone".to_owned(),
        ColumnType::Time => "time without time zone".to_owned(),
        ColumnType::TimeTz => "time with time zone".to_owned(),
        ColumnType::Interval => "interval".to_owned(),
    }
}

/// The column type a type of DDL or of a cast stands for.
pub(crate) fn from_sql(data_type: &DataType) -> Result<ColumnType, SqlError> {
    let with_zone = |zone: &TimezoneInfo| matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
    Ok(match data_type {
        DataType::Bool | DataType::Boolean => ColumnType::Bool,
        DataType::SmallInt(_) | DataType::Int2(_) => ColumnType::Int16,
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => ColumnType::Int32,
        DataType::BigInt(_) | DataType::Int8(_) => ColumnType::Int64,
        DataType::Real | DataType::Float4 => ColumnType::Float32,
        DataType::DoublePrecision | DataType::Double(_) | DataType::Float8 => ColumnType::Float64,
        DataType::Float(info) => float_of_digits(info),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => numeric(info)?,
        DataType::Varchar(_)
        | DataType::CharVarying(_)
        | DataType::CharacterVarying(_)
        | DataType::Text
        | DataType::JSON
        | DataType::String(_) => ColumnType::Text,
        DataType::Bytea => ColumnType::Bytes,
        DataType::Uuid => ColumnType::Uuid,
        DataType::Date => ColumnType::Date,
        DataType::Timestamp(_, zone) if with_zone(zone) => ColumnType::TimestampTz,
        DataType::Timestamp(..) => ColumnType::Timestamp,
        DataType::Time(_, zone) if with_zone(zone) => ColumnType::TimeTz,
        DataType::Time(..) => ColumnType::Time,
        DataType::Interval { .. } => ColumnType::Interval,
        other => return Err(SqlError::unsupported(format!("type {other}"))),
    })
}

fn float_of_digits(info: &ExactNumberInfo) -> ColumnType {
    match info {
        ExactNumberInfo::Precision(bits) if *bits <= 24 => ColumnType::Float32,
        _ => ColumnType::Float64,
    }
}

fn numeric(info: &ExactNumberInfo) -> Result<ColumnType, SqlError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => {
            return Ok(ColumnType::Numeric {
                precision: NUMERIC_PRECISION_DEFAULT,
                scale: 0,
            });
        }
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let unsupported = || SqlError::unsupported(format!("type numeric({precision},{scale})"));
    if precision == 0 || precision > NUMERIC_PRECISION_MAX || scale < 0 {
        return Err(unsupported());
    }
    let narrow = u8::try_from(precision).ok().zip(i8::try_from(scale).ok());
    let (precision, scale) = narrow.ok_or_else(unsupported)?;
    Ok(ColumnType::Numeric { precision, scale })
}
