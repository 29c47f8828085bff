//! The relations of `information_schema` that say something of a lake.

use moraine_tables::{Column, ColumnType, Value};

use super::catalog::{Described, described, position, schemas};
use super::columns::VirtualTable;
use super::objects::OWNER;
use super::scan_names::Hint;
use crate::errors::SqlError;
use crate::transaction::Transaction;
use crate::values::types;

/// The most bytes of a text. Source: PostgreSQL, `information_schema.columns`.
const TEXT_OCTETS_MAX: i64 = 1 << 30;

fn int(value: i64) -> Value {
    Value::Int64(value)
}

fn text(value: impl AsRef<str>) -> Value {
    Value::text(value)
}

/// Fills a relation of the schema; one about things that no lake has stays empty.
pub(super) async fn fill(
    table: &mut VirtualTable,
    name: &str,
    transaction: &mut Transaction,
    hint: &Hint,
) -> Result<(), SqlError> {
    let database = transaction.database().to_owned();
    match name {
        "information_schema_catalog_name" => table.push(&[("catalog_name", text(&database))]),
        "schemata" => {
            let schemas = schemas(transaction).await?;
            let system = ["pg_catalog", "information_schema"];
            for name in system.into_iter().chain(schemas.iter().map(String::as_str)) {
                table.push(&[
                    ("catalog_name", text(&database)),
                    ("schema_name", text(name)),
                    ("schema_owner", text(OWNER)),
                ]);
            }
        }
        "tables" => tables(table, &database, &described(transaction, hint).await?),
        "columns" => columns(table, &database, &described(transaction, hint).await?),
        "table_constraints" => constraints(table, &database, &described(transaction, hint).await?),
        "key_column_usage" | "constraint_column_usage" => {
            let usage = name == "key_column_usage";
            keys(table, &database, &described(transaction, hint).await?, usage);
        }
        _ => {}
    }
    Ok(())
}

fn tables(table: &mut VirtualTable, database: &str, tables: &[Described]) {
    for described in tables {
        table.push(&[
            ("table_catalog", text(database)),
            ("table_schema", text(&described.schema)),
            ("table_name", text(described.relation.name())),
            ("table_type", text("BASE TABLE")),
            ("is_insertable_into", text("YES")),
            ("is_typed", text("NO")),
        ]);
    }
}

fn constraints(table: &mut VirtualTable, database: &str, tables: &[Described]) {
    for described in tables {
        let Some(key) = described.key() else { continue };
        table.push(&[
            ("constraint_catalog", text(database)),
            ("constraint_schema", text(&described.schema)),
            ("constraint_name", text(key.name)),
            ("table_catalog", text(database)),
            ("table_schema", text(&described.schema)),
            ("table_name", text(described.relation.name())),
            ("constraint_type", text("PRIMARY KEY")),
            ("is_deferrable", text("NO")),
            ("initially_deferred", text("NO")),
            ("enforced", text("YES")),
        ]);
    }
}

fn keys(table: &mut VirtualTable, database: &str, tables: &[Described], usage: bool) {
    for described in tables {
        let Some(key) = described.key() else { continue };
        let mut row = vec![
            ("constraint_catalog", text(database)),
            ("constraint_schema", text(&described.schema)),
            ("constraint_name", text(key.name)),
            ("table_catalog", text(database)),
            ("table_schema", text(&described.schema)),
            ("table_name", text(described.relation.name())),
            ("column_name", text(key.column_name)),
        ];
        if usage {
            row.push(("ordinal_position", int(1)));
        }
        table.push(&row);
    }
}

fn columns(table: &mut VirtualTable, database: &str, tables: &[Described]) {
    for described in tables {
        for (index, column) in described.shape.columns.iter().enumerate() {
            let mut row = vec![
                ("table_catalog", text(database)),
                ("table_schema", text(&described.schema)),
                ("table_name", text(described.relation.name())),
                ("column_name", text(&column.name)),
                ("ordinal_position", int(position(index))),
                ("is_nullable", text(if column.not_null { "NO" } else { "YES" })),
                ("data_type", text(types::sql_name(column.column_type))),
                ("udt_catalog", text(database)),
                ("udt_schema", text("pg_catalog")),
                ("udt_name", text(types::wire_type(column.column_type).name())),
                ("dtd_identifier", text(position(index).to_string())),
                ("is_self_referencing", text("NO")),
                ("is_identity", text("NO")),
                ("identity_cycle", text("NO")),
                ("is_generated", text("NEVER")),
                ("is_updatable", text("YES")),
            ];
            row.extend(measures(column));
            table.push(&row);
        }
    }
}

/// How large a column's values may be.
fn measures(column: &Column) -> Vec<(&'static str, Value)> {
    let number = |precision: i64, radix: i64, scale: Value| {
        vec![
            ("numeric_precision", int(precision)),
            ("numeric_precision_radix", int(radix)),
            ("numeric_scale", scale),
        ]
    };
    match column.column_type {
        ColumnType::Int16 => number(16, 2, int(0)),
        ColumnType::Int32 => number(32, 2, int(0)),
        ColumnType::Int64 => number(64, 2, int(0)),
        ColumnType::Float32 => number(24, 2, Value::Null),
        ColumnType::Float64 => number(53, 2, Value::Null),
        ColumnType::Numeric { precision, scale } => number(i64::from(precision), 10, int(i64::from(scale))),
        ColumnType::Text => vec![("character_octet_length", int(TEXT_OCTETS_MAX))],
        ColumnType::Date => vec![("datetime_precision", int(0))],
        ColumnType::Timestamp
        | ColumnType::TimestampTz
        | ColumnType::Time
        | ColumnType::TimeTz
        | ColumnType::Interval => vec![("datetime_precision", int(6))],
        ColumnType::Bool | ColumnType::Bytes | ColumnType::Uuid => Vec::new(),
    }
}
