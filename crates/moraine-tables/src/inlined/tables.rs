//! Which inlined tables there are, their columns, and their coming and going.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use moraine_commit::{CatalogTransaction, InlineChange};
use moraine_keys::{ColumnKey, TableScoped};
use moraine_store::{ReadExt, Staging};

use crate::error::TableError;
use crate::inlined::Form;
use crate::relation::Relation;
use crate::schema::{Column, RelationSchema};
use crate::value::ColumnType;

/// The columns that every inlined data table starts with.
const SYSTEM_COLUMNS: [&str; 3] = ["row_id", "begin_snapshot", "end_snapshot"];
/// The columns of an inlined delete table.
const DELETE_COLUMNS: [&str; 3] = ["file_id", "row_id", "begin_snapshot"];

/// The schema at the door of an inlined data table; `None` if there is no such table.
pub(crate) async fn describe_data(
    read: &Staging,
    table_id: u64,
    schema_version: u64,
) -> Result<Option<RelationSchema>, TableError> {
    let Some(schema) = moraine_inline::schema(read, table_id, schema_version).await? else {
        return Ok(None);
    };
    let relation = Relation::InlinedData {
        table_id,
        schema_version,
    };
    let mut columns: Vec<Column> = bigints(SYSTEM_COLUMNS);
    for field in schema.fields() {
        columns.push(Column::new(field.name(), form_of(relation, field)?.door()));
    }
    Ok(Some(RelationSchema {
        columns,
        primary_key: None,
    }))
}

/// The schema at the door of an inlined delete table; `None` if there is no such table.
pub(crate) async fn describe_deletes(
    read: &Staging,
    table_id: u64,
) -> Result<Option<RelationSchema>, TableError> {
    let exists = moraine_inline::file_delete_table_exists(read, table_id).await?;
    Ok(exists.then(|| RelationSchema {
        columns: bigints(DELETE_COLUMNS),
        primary_key: None,
    }))
}

fn bigints<const N: usize>(names: [&str; N]) -> Vec<Column> {
    names
        .iter()
        .map(|name| Column::new(*name, ColumnType::Int64))
        .collect()
}

/// The form of a stored column; columns the door cannot show are refused by name.
pub(crate) fn form_of(relation: Relation, field: &Field) -> Result<Form, TableError> {
    Form::of_field(field).ok_or_else(|| {
        let detail = format!(
            "column \"{}\" is stored as {}, which has no form in Postgres; flush the table first",
            field.name(),
            field.data_type()
        );
        TableError::Unsupported { relation, detail }
    })
}

/// Creates an inlined data table with the columns of its `CREATE TABLE`, the three of the system among them or not.
pub(crate) async fn create_data(
    tx: &mut CatalogTransaction,
    table_id: u64,
    schema_version: u64,
    columns: &[Column],
) -> Result<(), TableError> {
    let relation = Relation::InlinedData {
        table_id,
        schema_version,
    };
    let user_columns = user_columns(relation, columns)?;
    let declared = declared_types(tx.read(), table_id).await?;
    let fields: Vec<Field> = user_columns
        .iter()
        .map(|column| {
            let ducklake_type = declared.get(&column.name).map(String::as_str);
            Form::choose(ducklake_type, column.column_type).field(&column.name)
        })
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    tx.inline(InlineChange::CreateTable {
        table_id,
        schema_version,
        schema,
    })
    .await?;
    Ok(())
}

fn user_columns(relation: Relation, columns: &[Column]) -> Result<&[Column], TableError> {
    let named = columns
        .iter()
        .zip(SYSTEM_COLUMNS)
        .filter(|(column, name)| column.name == *name)
        .count();
    let user = match named {
        3 => columns.get(3..).unwrap_or_default(),
        _ => columns,
    };
    let refuse = |detail: String| Err(TableError::Definition { relation, detail });
    if user.is_empty() {
        return refuse("it needs at least one column of the table it belongs to".to_owned());
    }
    if let Some(column) = user
        .iter()
        .find(|column| SYSTEM_COLUMNS.contains(&column.name.as_str()))
    {
        return refuse(format!(
            "\"{}\" is the name of one of its own columns",
            column.name
        ));
    }
    if columns
        .iter()
        .take(if named == 3 { 3 } else { 0 })
        .any(|c| c.column_type != ColumnType::Int64)
    {
        return refuse("row_id, begin_snapshot and end_snapshot are of type bigint".to_owned());
    }
    Ok(user)
}

/// The DuckLake types of the table's live top-level columns, by name.
async fn declared_types(read: &Staging, table_id: u64) -> Result<HashMap<String, String>, TableError> {
    let columns = read.records::<ColumnKey>(ColumnKey::scan_table(table_id)).await?;
    Ok(columns
        .into_iter()
        .filter(|(_, column)| column.parent_column.is_none())
        .map(|(_, column)| (column.column_name, column.column_type))
        .collect())
}

/// Creates an inlined delete table. The columns, where given, must be the ones it has.
pub(crate) async fn create_deletes(
    tx: &mut CatalogTransaction,
    table_id: u64,
    columns: Option<&[Column]>,
) -> Result<(), TableError> {
    let expected = bigints(DELETE_COLUMNS);
    let same = |columns: &[Column]| {
        columns.len() == expected.len()
            && columns
                .iter()
                .zip(&expected)
                .all(|(a, b)| a.name == b.name && a.column_type == b.column_type)
    };
    if columns.is_some_and(|columns| !same(columns)) {
        let relation = Relation::InlinedDelete { table_id };
        let detail = "it has the columns file_id, row_id and begin_snapshot of type bigint".to_owned();
        return Err(TableError::Definition { relation, detail });
    }
    tx.inline(InlineChange::CreateFileDeleteTable { table_id })
        .await?;
    Ok(())
}
