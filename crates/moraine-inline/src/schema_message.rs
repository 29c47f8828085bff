//! The schema message of a schema record, checked before Arrow converts it: that conversion panics on a type whose parameters do
//! not exist. Which of the existing types may be inlined is decided afterwards, in `column_type`.

use arrow_ipc::{DateUnit, Endianness, Field, IntervalUnit, Precision, Schema, TimeUnit, Type};

/// Requires that every column of `schema`, at any depth, has a type that Arrow knows.
pub(crate) fn check(schema: Schema<'_>) -> Result<(), String> {
    if schema.endianness() != Endianness::Little {
        return Err("the schema is big-endian".to_owned());
    }
    let columns = schema
        .fields()
        .ok_or_else(|| "the schema lists no columns".to_owned())?;
    columns.iter().try_for_each(check_field)
}

fn check_field(field: Field<'_>) -> Result<(), String> {
    let name = field.name().unwrap_or_default();
    let refuse = |what: &str| Err(format!("column `{name}` {what}"));
    if field.dictionary().is_some() {
        return refuse("is dictionary-encoded");
    }
    let children = field.children();
    let count = children.map_or(0, |children| children.len());
    match child_count(field.type_type()) {
        Some(expected) if expected != count => return refuse("has another number of children than its type"),
        _ => {}
    }
    if has_known_parameters(field) != Some(true) {
        return refuse(&format!("has an impossible type {:?}", field.type_type()));
    }
    children
        .into_iter()
        .flat_map(|children| children.iter())
        .try_for_each(check_field)
}

/// How many children a nested type has, where its type alone says so.
fn child_count(kind: Type) -> Option<usize> {
    match kind {
        Type::List
        | Type::LargeList
        | Type::ListView
        | Type::LargeListView
        | Type::FixedSizeList
        | Type::Map => Some(1),
        _ => None,
    }
}

/// Whether Arrow knows the type with its parameters; `None` when the parameters are missing.
fn has_known_parameters(field: Field<'_>) -> Option<bool> {
    let known = match field.type_type() {
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8
        | Type::List
        | Type::LargeList
        | Type::ListView
        | Type::LargeListView
        | Type::Struct_ => true,
        Type::FixedSizeBinary => field.type_as_fixed_size_binary().is_some(),
        Type::FixedSizeList => field.type_as_fixed_size_list().is_some(),
        Type::Map => field.type_as_map().is_some(),
        Type::Int => matches!(field.type_as_int()?.bitWidth(), 8 | 16 | 32 | 64),
        Type::FloatingPoint => matches!(
            field.type_as_floating_point()?.precision(),
            Precision::HALF | Precision::SINGLE | Precision::DOUBLE
        ),
        Type::Decimal => {
            let decimal = field.type_as_decimal()?;
            let (precision, scale) = (u8::try_from(decimal.precision()), i8::try_from(decimal.scale()));
            matches!(decimal.bitWidth(), 32 | 64 | 128 | 256) && precision.is_ok() && scale.is_ok()
        }
        Type::Date => matches!(
            field.type_as_date()?.unit(),
            DateUnit::DAY | DateUnit::MILLISECOND
        ),
        Type::Time => {
            let time = field.type_as_time()?;
            matches!(
                (time.bitWidth(), time.unit()),
                (32, TimeUnit::SECOND | TimeUnit::MILLISECOND)
                    | (64, TimeUnit::MICROSECOND | TimeUnit::NANOSECOND)
            )
        }
        Type::Timestamp => is_time_unit(field.type_as_timestamp()?.unit()),
        Type::Duration => is_time_unit(field.type_as_duration()?.unit()),
        Type::Interval => matches!(
            field.type_as_interval()?.unit(),
            IntervalUnit::YEAR_MONTH | IntervalUnit::DAY_TIME | IntervalUnit::MONTH_DAY_NANO
        ),
        // Unions and run-end encoding among them: neither can be inlined.
        _ => false,
    };
    Some(known)
}

fn is_time_unit(unit: TimeUnit) -> bool {
    matches!(
        unit,
        TimeUnit::SECOND | TimeUnit::MILLISECOND | TimeUnit::MICROSECOND | TimeUnit::NANOSECOND
    )
}
