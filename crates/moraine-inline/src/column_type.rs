//! Which Arrow types an inlined column may have. A chunk body is one record batch message, so a type that needs a message of its
//! own (dictionaries) cannot be inlined. How a type is laid out in a body is not here: see `layout`.

use arrow_schema::{DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION};
use arrow_schema::{DECIMAL256_MAX_PRECISION, DataType, Field, Fields, Schema, TimeUnit};

use crate::frame::FrameError;

/// Refuses the first column of `schema`, at any depth, whose type a chunk body cannot carry.
pub(crate) fn check_schema(schema: &Schema) -> Result<(), FrameError> {
    check_fields(schema.fields(), "")
}

fn check_fields(fields: &Fields, parent: &str) -> Result<(), FrameError> {
    fields.iter().try_for_each(|field| check_field(field, parent))
}

fn check_field(field: &Field, parent: &str) -> Result<(), FrameError> {
    let path = if parent.is_empty() {
        field.name().clone()
    } else {
        format!("{parent}.{}", field.name())
    };
    match field.data_type() {
        DataType::Dictionary(_, _) => Err(FrameError::Dictionary { column: path }),
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child) => check_field(child, &path),
        DataType::FixedSizeList(child, size) if *size >= 0 => check_field(child, &path),
        DataType::Struct(children) => check_fields(children, &path),
        DataType::Map(entries, _) if is_map_entry(entries) => check_field(entries, &path),
        other if is_flat(other) => Ok(()),
        other => Err(FrameError::Unsupported {
            column: path,
            data_type: other.to_string(),
        }),
    }
}

/// Arrow's map arrays are built over a struct of exactly a key and a value; anything else makes their constructor fail late.
fn is_map_entry(entries: &Field) -> bool {
    matches!(entries.data_type(), DataType::Struct(children) if children.len() == 2)
}

fn is_flat(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal32(precision, scale) => is_decimal(*precision, *scale, DECIMAL32_MAX_PRECISION),
        DataType::Decimal64(precision, scale) => is_decimal(*precision, *scale, DECIMAL64_MAX_PRECISION),
        DataType::Decimal128(precision, scale) => is_decimal(*precision, *scale, DECIMAL128_MAX_PRECISION),
        DataType::Decimal256(precision, scale) => is_decimal(*precision, *scale, DECIMAL256_MAX_PRECISION),
        DataType::Time32(unit) => matches!(unit, TimeUnit::Second | TimeUnit::Millisecond),
        DataType::Time64(unit) => matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond),
        DataType::FixedSizeBinary(width) => *width >= 0,
        DataType::Null
        | DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => true,
        other => other.is_primitive(),
    }
}

fn is_decimal(precision: u8, scale: i8, most: u8) -> bool {
    (1..=most).contains(&precision) && i16::from(scale) <= i16::from(precision)
}
