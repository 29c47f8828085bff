//! A plan's columns and values as the wire knows them.

use moraine_sql::{Plan, SessionFacts, SqlColumn, SqlType};
use moraine_tables::{ColumnType, Value};
use postgres_types::Type;

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
        // Their values leave as the names they stand for, and an array as its text.
        SqlType::RegClass | SqlType::RegType | SqlType::Array => Type::TEXT,
    }
}

/// The types the client declared for its parameters.
pub(super) fn declared(parameters: &Parameters) -> Vec<Option<SqlType>> {
    let of = |declared: Option<Type>| match declared {
        Some(Type::OID | Type::REGCLASS) => Some(SqlType::Oid),
        Some(Type::NUMERIC | Type::UNKNOWN) | None => None,
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
            (Value::Int64(number), SqlType::Oid) => match i32::try_from(number) {
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
            (value, _) => Cell::Value(value),
        })
        .collect()
}
