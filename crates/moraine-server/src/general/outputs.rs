//! A plan's columns and values as the wire knows them.

use moraine_sql::{Element, Plan, SessionFacts, SqlColumn, SqlType, type_name};
use moraine_tables::{ColumnType, Value};
use postgres_types::Type;

use crate::bind::{Output, OutputKind};
use crate::execute::Cell;
use crate::values::parameters::Parameters;
use crate::values::{arrays, types};

/// A decimal of which no digits are known: as many on both sides of the point as clients send.
const NUMERIC_PARAMETER: ColumnType = ColumnType::Numeric {
    precision: 38,
    scale: 10,
};

/// The result's columns.
pub(super) fn of(plan: &Plan) -> Vec<Output> {
    let output = |(index, column): (usize, &SqlColumn)| Output {
        name: column.name.clone(),
        kind: OutputKind::Column(index),
        wire_type: wire_type(column.sql_type),
        type_modifier: match column.sql_type {
            SqlType::Column(column_type) => types::type_modifier(column_type),
            // The length, and the four bytes in front that say how long a value is.
            SqlType::Character(length) => i32::try_from(length).map_or(-1, |length| length.saturating_add(4)),
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
        SqlType::Character(_) => Type::BPCHAR,
        SqlType::Record => Type::RECORD,
        SqlType::Vector(Element::Oid) => Type::OID_VECTOR,
        SqlType::Vector(_) => Type::INT2_VECTOR,
        SqlType::Array(element) => arrays::of(&match element {
            Element::Oid => Type::OID,
            Element::Numeric => Type::NUMERIC,
            // Arrays of text come from names and other things that are written as text.
            Element::Column(ColumnType::Text) => Type::TEXT,
            Element::Column(column_type) => types::wire_type(column_type),
        }),
    }
}

/// The types of the parameters that are known before the query is planned.
pub(super) fn declared(parameters: &Parameters) -> Vec<Option<SqlType>> {
    parameters
        .declared()
        .iter()
        .map(|declared| sql_type(declared.as_ref()?))
        .collect()
}

fn sql_type(declared: &Type) -> Option<SqlType> {
    if let Some(element) = arrays::element(declared) {
        return Some(SqlType::Array(match sql_type(element)? {
            SqlType::Oid => Element::Oid,
            SqlType::Column(ColumnType::Numeric { .. }) => Element::Numeric,
            other => Element::Column(other.column_type()),
        }));
    }
    match *declared {
        Type::JSON => return Some(SqlType::Json),
        Type::JSONB => return Some(SqlType::Jsonb),
        _ => {}
    }
    match types::of_wire_type(declared) {
        _ if types::is_object_id(declared) => Some(SqlType::Oid),
        Some(ColumnType::Numeric { .. }) => Some(SqlType::Column(NUMERIC_PARAMETER)),
        Some(column_type) => Some(SqlType::Column(column_type)),
        None => None,
    }
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
            (Value::Int64(number), SqlType::RegType) => Cell::Value(Value::text(type_name(number))),
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
