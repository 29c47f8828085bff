//! In which Arrow types the columns of a table are inlined: those that the Postgres door makes of them, so that clients of
//! it read rows that were inlined here, and the other way round.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::lake::{Column, ColumnType};
use crate::verbs::names;

/// The key, in an Arrow field's metadata, of the type that the door has for the column.
pub const DOOR_TYPE_METADATA_KEY: &str = "moraine.door_type";

const EXTENSION_METADATA_KEY: &str = "ARROW:extension:name";
const UUID_EXTENSION: &str = "arrow.uuid";
const UUID_BYTES: i32 = 16;
/// Decimal digits of the greatest 128-bit integer.
const WIDE_DIGITS: u8 = 39;
/// Bytes of the longest name of a column in Postgres.
const NAME_BYTES_MAX: usize = 63;

/// The columns of the inlined table of a table with these columns, or why it has none.
pub(crate) fn schema(columns: &[Column]) -> Result<Schema, String> {
    let fields: Result<Vec<Field>, String> = columns.iter().map(field).collect();
    Ok(Schema::new(fields?))
}

fn field(column: &Column) -> Result<Field, String> {
    let name = &column.name;
    if names::is_inlined_column(name) || name.len() > NAME_BYTES_MAX {
        return Err(format!("rows cannot be inlined with a column named {name:?}"));
    }
    let (data_type, door) = stored(&column.column_type).ok_or_else(|| {
        format!(
            "rows cannot be inlined with column {name} of type {}",
            column.column_type
        )
    })?;
    let mut metadata = HashMap::from([(DOOR_TYPE_METADATA_KEY.to_owned(), door)]);
    if column.column_type == ColumnType::Uuid {
        metadata.insert(EXTENSION_METADATA_KEY.to_owned(), UUID_EXTENSION.to_owned());
    }
    Ok(Field::new(name, data_type, true).with_metadata(metadata))
}

/// The Arrow type of a column type, and the type at the door.
fn stored(column_type: &ColumnType) -> Option<(DataType, String)> {
    let (data_type, door) = match column_type {
        ColumnType::Boolean => (DataType::Boolean, "boolean"),
        ColumnType::Int8 => (DataType::Int8, "smallint"),
        ColumnType::Int16 => (DataType::Int16, "smallint"),
        ColumnType::Int32 => (DataType::Int32, "integer"),
        ColumnType::Int64 => (DataType::Int64, "bigint"),
        ColumnType::Uint8 => (DataType::UInt8, "integer"),
        ColumnType::Uint16 => (DataType::UInt16, "integer"),
        ColumnType::Uint32 => (DataType::UInt32, "bigint"),
        ColumnType::Uint64 => (DataType::UInt64, "varchar"),
        ColumnType::Int128 | ColumnType::Uint128 => (DataType::Decimal256(WIDE_DIGITS, 0), "varchar"),
        ColumnType::Float32 => (DataType::Float32, "real"),
        ColumnType::Float64 => (DataType::Float64, "double precision"),
        ColumnType::Decimal { precision, scale } => {
            let scale_signed = i8::try_from(*scale).ok()?;
            let door = format!("numeric({precision},{scale})");
            return Some((DataType::Decimal128(*precision, scale_signed), door));
        }
        ColumnType::Time => (DataType::Time64(TimeUnit::Microsecond), "time"),
        ColumnType::TimeTz => (DataType::Utf8, "time with time zone"),
        ColumnType::Interval => (DataType::Utf8, "interval"),
        ColumnType::Date => (DataType::Date32, "varchar"),
        ColumnType::Timestamp => (DataType::Timestamp(TimeUnit::Microsecond, None), "varchar"),
        ColumnType::TimestampS => (DataType::Timestamp(TimeUnit::Second, None), "varchar"),
        ColumnType::TimestampMs => (DataType::Timestamp(TimeUnit::Millisecond, None), "varchar"),
        ColumnType::TimestampNs => (DataType::Timestamp(TimeUnit::Nanosecond, None), "varchar"),
        ColumnType::TimestampTz => (
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            "varchar",
        ),
        ColumnType::Varchar | ColumnType::Json => (DataType::Utf8, "bytea"),
        ColumnType::Blob => (DataType::Binary, "bytea"),
        ColumnType::Uuid => (DataType::FixedSizeBinary(UUID_BYTES), "uuid"),
        nested if nested.is_nested() => {
            // A part of a type that is not inlined keeps the whole from being so.
            let inlinable = |field: &ColumnType| stored(field).is_some();
            if !nested.fields().into_iter().all(|(_, field)| inlinable(field)) {
                return None;
            }
            (DataType::Utf8, "varchar")
        }
        _ => return None,
    };
    Some((data_type, door.to_owned()))
}
