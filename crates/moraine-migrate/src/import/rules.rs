//! What the specification asks of single rows, and how the tables of a catalog are read: which columns, in which order.

use moraine_tables::{Column, Relation, Value, fixed_schema};

use crate::lake::{Query, QueryColumn};

/// The columns in which the specification forbids NULL, besides primary keys.
pub(crate) fn required(relation: Relation) -> &'static [&'static str] {
    match relation {
        Relation::Metadata => &["key", "value"],
        Relation::Snapshot => &["snapshot_id", "snapshot_time", "schema_version"],
        Relation::SnapshotChanges => &["snapshot_id"],
        Relation::Schema => &["schema_id", "begin_snapshot", "schema_name"],
        Relation::Table => &["table_id", "begin_snapshot", "schema_id", "table_name"],
        Relation::View => &["view_id", "begin_snapshot", "schema_id", "view_name", "sql"],
        Relation::Tag => &["object_id", "begin_snapshot", "key"],
        Relation::ColumnTag => &["table_id", "column_id", "begin_snapshot", "key"],
        Relation::DataFile => &[
            "data_file_id",
            "table_id",
            "begin_snapshot",
            "path",
            "path_is_relative",
            "record_count",
            "file_size_bytes",
        ],
        Relation::FileColumnStats => &["data_file_id", "table_id", "column_id"],
        Relation::FileVariantStats => &["data_file_id", "table_id", "column_id", "variant_path"],
        Relation::DeleteFile => &[
            "delete_file_id",
            "table_id",
            "begin_snapshot",
            "data_file_id",
            "path",
            "path_is_relative",
        ],
        Relation::Column => &[
            "column_id",
            "begin_snapshot",
            "table_id",
            "column_order",
            "column_name",
            "column_type",
        ],
        Relation::TableStats => &["table_id", "next_row_id"],
        Relation::TableColumnStats => &["table_id", "column_id"],
        Relation::PartitionInfo => &["partition_id", "table_id", "begin_snapshot"],
        Relation::PartitionColumn => &["partition_id", "table_id", "partition_key_index", "column_id"],
        Relation::FilePartitionValue => &["data_file_id", "table_id", "partition_key_index"],
        Relation::FilesScheduledForDeletion => &["data_file_id", "path", "path_is_relative"],
        Relation::InlinedDataTables => &["table_id", "table_name", "schema_version"],
        Relation::ColumnMapping => &["mapping_id", "table_id", "type"],
        Relation::NameMapping => &["mapping_id", "column_id", "source_name"],
        Relation::SchemaVersions => &["begin_snapshot", "schema_version", "table_id"],
        Relation::Macro => &["schema_id", "macro_id", "macro_name", "begin_snapshot"],
        Relation::MacroImpl => &["macro_id", "impl_id", "sql", "type"],
        Relation::MacroParameters => &["macro_id", "impl_id", "column_id", "parameter_name"],
        Relation::SortInfo => &["sort_id", "table_id", "begin_snapshot"],
        Relation::SortExpression => &["sort_id", "table_id", "sort_key_index", "expression"],
        Relation::InlinedData { .. } => &["row_id", "begin_snapshot"],
        Relation::InlinedDelete { .. } => &["file_id", "row_id", "begin_snapshot"],
    }
}

/// All rows of a fixed table, sorted by these columns.
pub(crate) fn query(relation: Relation, order: &[&str]) -> Query {
    let columns = fixed_schema(relation)
        .map(|schema| schema.columns)
        .unwrap_or_default();
    query_of(&relation.name(), &columns, order)
}

/// Some columns of a fixed table, sorted by the first ones.
pub(crate) fn query_columns(relation: Relation, names: &[&str], order: &[&str]) -> Query {
    let schema = fixed_schema(relation);
    let columns = schema.map(|schema| schema.columns).unwrap_or_default();
    let chosen: Vec<Column> = names
        .iter()
        .filter_map(|name| columns.iter().find(|column| column.name == *name).cloned())
        .collect();
    query_of(&relation.name(), &chosen, order)
}

/// All rows of a table with these columns.
pub(crate) fn query_of(table: &str, columns: &[Column], order: &[&str]) -> Query {
    Query {
        table: table.to_owned(),
        columns: columns
            .iter()
            .map(|column| QueryColumn {
                name: column.name.clone(),
                column_type: column.column_type,
            })
            .collect(),
        order: order.iter().map(|column| (*column).to_owned()).collect(),
        not_null: None,
    }
}

/// The number in a column; `None` for NULL and for what is no id.
pub(crate) fn number(row: &[Value], column: usize) -> Option<u64> {
    match row.get(column) {
        Some(Value::Int64(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The text in a column; `None` for NULL.
pub(crate) fn text(row: &[Value], column: usize) -> Option<&str> {
    match row.get(column) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}
