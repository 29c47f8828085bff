//! The inlined tables of a catalog: which there are, and the columns of each with their types. Import, export and comparison
//! need the same.

use std::collections::BTreeMap;

use moraine_tables::{Column, ColumnType, Relation, door_type};

use crate::column_types::ColumnTypes;
use crate::lake::SourceColumn;

/// The columns that every inlined data table begins with.
pub(crate) const SYSTEM_COLUMNS: [&str; 3] = ["row_id", "begin_snapshot", "end_snapshot"];
/// The columns of an inlined delete table.
pub(crate) const DELETE_COLUMNS: [&str; 3] = ["file_id", "row_id", "begin_snapshot"];

/// The inlined tables among tables.
pub(crate) fn inlined(tables: &BTreeMap<String, Vec<SourceColumn>>) -> Vec<Relation> {
    let mut found: Vec<Relation> = tables
        .keys()
        .filter_map(|name| Relation::parse(name))
        .filter(|relation| !relation.is_fixed())
        .collect();
    found.sort();
    found
}

/// The user columns of an inlined data table, as its own catalog declares them; `None` where the columns that every such
/// table has are not there.
pub(crate) fn user_columns(declared: &[SourceColumn]) -> Option<&[SourceColumn]> {
    let (system, user) = declared.split_at_checked(SYSTEM_COLUMNS.len())?;
    let same = system
        .iter()
        .zip(SYSTEM_COLUMNS)
        .all(|(column, name)| column.name == name);
    same.then_some(user)
}

/// The columns by which an inlined table is read: those of the system, and the user's as DuckLake's Postgres catalog would
/// declare them.
pub(crate) fn door_columns(
    table_id: u64,
    schema_version: u64,
    user: &[SourceColumn],
    types: &ColumnTypes,
) -> Vec<Column> {
    let system = SYSTEM_COLUMNS
        .iter()
        .map(|name| Column::new(*name, ColumnType::Int64));
    let user = user.iter().map(|column| {
        let ducklake_type = types.ducklake_type(table_id, schema_version, &column.name);
        let door = ducklake_type.map_or_else(|| undeclared(&column.declared), door_type);
        Column::new(&column.name, door)
    });
    system.chain(user).collect()
}

/// The type of a column that no row of `ducklake_column` tells of, by what its catalog's database says.
fn undeclared(declared: &str) -> ColumnType {
    match declared.to_ascii_lowercase().as_str() {
        "bigint" | "integer" | "smallint" | "tinyint" => ColumnType::Int64,
        "boolean" => ColumnType::Bool,
        "blob" | "bytea" => ColumnType::Bytes,
        _ => ColumnType::Text,
    }
}

/// The columns by which an inlined delete table is read.
pub(crate) fn delete_columns() -> Vec<Column> {
    DELETE_COLUMNS
        .iter()
        .map(|name| Column::new(*name, ColumnType::Int64))
        .collect()
}
