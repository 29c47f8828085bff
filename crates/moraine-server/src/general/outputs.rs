//! A plan's columns and values as the wire knows them.

use moraine_sql::{Element, Plan, SessionFacts, SqlColumn, SqlType};
use moraine_tables::{ColumnType, Value};
use postgres_types::{Kind, Type};

use crate::bind::{Output, OutputKind};
use crate::execute::Cell;
use crate::values::parameters::Parameters;
use crate::values::types;

/// The result's columns.
pub(super) fn of(plan: &Plan) -> Vec<Output> {
    let output = |(index, column): (usize, &SqlColumn)| Output {
        name: column.name.clone(),
        kind: OutputKind::Column(index),
        wire_type: wire_type(column.sql_type),
        type_modifier: match column.sql_type {
            SqlType::Column(column_type) => types::type_modifier(column_type),
            _ => -1,
        },
    };
    plan.columns().iter().enumerate().map(output).collect()
}

/// The Postgres type of a result column or a parameter.
pub(crate) fn wire_type(sql_type: SqlType) -> Type {
    match sql_type {
        SqlType::Column(ColumnType::Text) => Type::TEXT,
        SqlType::Column(column_type) => types::wire_type(column_type),
        SqlType::Oid => Type::OID,
        SqlType::Name => Type::NAME,
        SqlType::Char => Type::CHAR,
        SqlType::Tid => Type::TID,
        // Their values leave as the names they stand for.
        SqlType::RegClass | SqlType::RegType => Type::TEXT,
        SqlType::RegProc => Type::OID,
        SqlType::Numeric => Type::NUMERIC,
        SqlType::Json => Type::JSON,
        SqlType::Jsonb => Type::JSONB,
        SqlType::Vector(Element::Oid) => Type::OID_VECTOR,
        SqlType::Vector(Element::Column(_)) => Type::INT2_VECTOR,
        SqlType::Array(element) => array_type(element),
    }
}

/// The type of an array over elements of a type.
fn array_type(element: Element) -> Type {
    match element {
        Element::Oid => Type::OID_ARRAY,
        Element::Column(column_type) => match column_type {
            ColumnType::Bool => Type::BOOL_ARRAY,
            ColumnType::Int16 => Type::INT2_ARRAY,
            ColumnType::Int32 => Type::INT4_ARRAY,
            ColumnType::Int64 => Type::INT8_ARRAY,
            ColumnType::Float32 => Type::FLOAT4_ARRAY,
            ColumnType::Float64 => Type::FLOAT8_ARRAY,
            ColumnType::Numeric { .. } => Type::NUMERIC_ARRAY,
            ColumnType::Text => Type::TEXT_ARRAY,
            ColumnType::Bytes => Type::BYTEA_ARRAY,
            ColumnType::Uuid => Type::UUID_ARRAY,
            ColumnType::Date => Type::DATE_ARRAY,
            ColumnType::Timestamp => Type::TIMESTAMP_ARRAY,
            ColumnType::TimestampTz => Type::TIMESTAMPTZ_ARRAY,
            ColumnType::Time => Type::TIME_ARRAY,
            ColumnType::TimeTz => Type::TIMETZ_ARRAY,
            ColumnType::Interval => Type::INTERVAL_ARRAY,
        },
    }
}

/// The elements of a Postgres array type; `None` for any other type.
fn element_of(wire_type: &Type) -> Option<Element> {
    let Kind::Array(element) = wire_type.kind() else {
        return None;
    };
    if *element == Type::OID {
        return Some(Element::Oid);
    }
    types::of_wire_type(element).map(Element::Column)
}

/// The types the client declared for its parameters.
pub(super) fn declared(parameters: &Parameters) -> Vec<Option<SqlType>> {
    let of = |declared: Option<Type>| match declared {
        Some(Type::OID | Type::REGCLASS) => Some(SqlType::Oid),
        Some(Type::NUMERIC | Type::UNKNOWN) | None => None,
        Some(Type::JSON) => Some(SqlType::Json),
        Some(Type::JSONB) => Some(SqlType::Jsonb),
        Some(declared) if element_of(&declared).is_some() => element_of(&declared).map(SqlType::Array),
        Some(declared) => types::of_wire_type(&declared).map(SqlType::Column),
    };
    parameters.declared().into_iter().map(of).collect()
}

/// A row as the wire sends it.
pub(super) fn cells(row: Vec<Value>, kinds: &[SqlType], facts: &SessionFacts) -> Vec<Cell> {
    row.into_iter()
        .zip(kinds)
        .map(|(value, kind)| match (value, kind) {
            (Value::Int64(number), SqlType::Tid) => Cell::Tid(u64::try_from(number).unwrap_or(u64::MAX)),
            (Value::Int64(number), SqlType::Oid | SqlType::RegProc) => match i32::try_from(number) {
                Ok(oid) => Cell::Value(Value::Int32(oid)),
                Err(_) => Cell::Value(Value::Int64(number)),
            },
            (Value::Int64(number), SqlType::RegClass) => {
                let mut known = facts.relations.iter();
                let found = known.find(|relation| i64::from(relation.oid) == number);
                Cell::Value(found.map_or_else(
                    || Value::text(number.to_string()),
                    |relation| Value::text(&relation.name),
                ))
            }
            (Value::Int64(number), SqlType::RegType) => {
                let named = u32::try_from(number).ok().and_then(Type::from_oid);
                Cell::Value(named.map_or_else(
                    || Value::text(number.to_string()),
                    |named| match types::of_wire_type(&named) {
                        Some(column_type) => Value::text(types::sql_name(column_type)),
                        None => Value::text(named.name()),
                    },
                ))
            }
            (Value::Text(array), SqlType::Vector(_)) => {
                let spaced = array
                    .trim_start_matches('{')
                    .trim_end_matches('}')
                    .replace(',', " ");
                Cell::Value(Value::text(spaced))
            }
            (value, _) => Cell::Value(value),
        })
        .collect()
}
