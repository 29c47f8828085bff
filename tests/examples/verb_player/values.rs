//! Arguments of verbs, from JSON.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, SchemaRef};
use moraine_commit::lake::{
    ColumnDefault, ColumnStats, ColumnType, MappedColumn, SortExpression, Transform, VariantFieldStats,
};
use moraine_commit::verbs::{ColumnDefinition, NewDataFile, NewDeleteFile, PartitionField};
use serde_json::Value;

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

pub(crate) fn optional_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub(crate) fn numbers(value: &Value) -> Vec<u64> {
    list(value).iter().map(number).collect()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// `"int64"`, `{"struct": [["a", type], …]}`, `{"list": type}`, `{"map": [type, type]}`
pub(crate) fn column_type(value: &Value) -> ColumnType {
    if let Some(fields) = value.get("struct") {
        let field = |field: &Value| (text(&field[0]), column_type(&field[1]));
        return ColumnType::Struct(list(fields).iter().map(field).collect());
    }
    if let Some(element) = value.get("list") {
        return ColumnType::List(Box::new(column_type(element)));
    }
    if let Some(parts) = value.get("map") {
        return ColumnType::Map(Box::new(column_type(&parts[0])), Box::new(column_type(&parts[1])));
    }
    ColumnType::from_text(&text(value), Vec::new())
}

pub(crate) fn default(value: &Value) -> ColumnDefault {
    if let Some(literal) = value.get("literal") {
        return ColumnDefault::Literal(text(literal));
    }
    match value.get("expression") {
        Some(expression) => ColumnDefault::Expression(text(expression)),
        None => ColumnDefault::Null,
    }
}

pub(crate) fn column(value: &Value) -> ColumnDefinition {
    let mut column = ColumnDefinition::new(text(&value["name"]), column_type(&value["type"]));
    column.default = default(&value["default"]);
    column.nulls_allowed = !value["not_null"].as_bool().unwrap_or(false);
    column
}

pub(crate) fn partition_field(value: &Value) -> PartitionField {
    let transform = match value["transform"].as_str().unwrap_or("identity") {
        "year" => Transform::Year,
        "month" => Transform::Month,
        "day" => Transform::Day,
        "hour" => Transform::Hour,
        "bucket" => Transform::Bucket(u32::try_from(number(&value["count"])).unwrap()),
        _ => Transform::Identity,
    };
    PartitionField::new(text(&value["column"]), transform)
}

pub(crate) fn sort_expression(value: &Value) -> SortExpression {
    SortExpression {
        expression: text(&value["expression"]),
        descending: value["descending"].as_bool().unwrap_or(false),
        nulls_first: value["nulls_first"].as_bool().unwrap_or(false),
    }
}

pub(crate) fn mapped_column(value: &Value) -> MappedColumn {
    MappedColumn {
        source_name: text(&value["source_name"]),
        column_id: number(&value["column_id"]),
        is_partition: value["is_partition"].as_bool().unwrap_or(false),
        fields: list(&value["fields"]).iter().map(mapped_column).collect(),
    }
}

/// A row of `ducklake_file_column_stats`, or of `ducklake_file_variant_stats`.
fn column_stats(value: &Value) -> ColumnStats {
    ColumnStats {
        column_size_bytes: value["column_size_bytes"].as_u64().unwrap_or_default(),
        value_count: value["value_count"].as_u64(),
        null_count: value["null_count"].as_u64(),
        min_value: optional_text(&value["min_value"]),
        max_value: optional_text(&value["max_value"]),
        contains_nan: value["contains_nan"].as_bool(),
        extra_stats: optional_text(&value["extra_stats"]),
        variant_fields: list(&value["variant_fields"])
            .iter()
            .map(|field| VariantFieldStats {
                path: text(&field["variant_path"]),
                shredded_type: text(&field["shredded_type"]),
                stats: column_stats(field),
            })
            .collect(),
    }
}

/// A row of `ducklake_data_file`, with lists of the rows that belong to it.
pub(crate) fn data_file(value: &Value) -> NewDataFile {
    NewDataFile {
        path: text(&value["path"]),
        path_is_relative: value["path_is_relative"].as_bool().unwrap_or(true),
        record_count: number(&value["record_count"]),
        file_size_bytes: number(&value["file_size_bytes"]),
        footer_size: value["footer_size"].as_u64(),
        encryption_key: optional_text(&value["encryption_key"]),
        mapping_id: value["mapping_id"].as_u64(),
        partition_values: list(&value["partition_values"])
            .iter()
            .map(optional_text)
            .collect(),
        column_stats: list(&value["column_stats"])
            .iter()
            .map(|stats| (number(&stats["column_id"]), column_stats(stats)))
            .collect(),
    }
}

/// A row of `ducklake_delete_file`.
pub(crate) fn delete_file(value: &Value) -> NewDeleteFile {
    NewDeleteFile {
        data_file_id: number(&value["data_file_id"]),
        path: text(&value["path"]),
        path_is_relative: value["path_is_relative"].as_bool().unwrap_or(true),
        format: text(&value["format"]),
        replaces: value["replaces"].as_u64(),
        delete_count: number(&value["delete_count"]),
        file_size_bytes: number(&value["file_size_bytes"]),
        footer_size: number(&value["footer_size"]),
        encryption_key: optional_text(&value["encryption_key"]),
        begin_snapshot: value["begin_snapshot"].as_u64(),
        partial_max: value["partial_max"].as_u64(),
    }
}

/// Rows, each a list of cells, in the types that `schema` asks for.
pub(crate) fn rows(value: &Value, schema: &SchemaRef) -> RecordBatch {
    let rows = list(value);
    let columns = schema.fields().iter().enumerate().map(|(at, field)| {
        let cells: Vec<&Value> = rows.iter().map(|row| &row[at]).collect();
        array(field.data_type(), &cells)
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect()).unwrap()
}

fn array(data_type: &DataType, cells: &[&Value]) -> ArrayRef {
    let integers = || cells.iter().map(|cell| cell.as_i64());
    match data_type {
        DataType::Boolean => {
            let values: BooleanArray = cells.iter().map(|cell| cell.as_bool()).collect();
            Arc::new(values)
        }
        DataType::Int32 => {
            let narrow = |value: i64| i32::try_from(value).unwrap();
            let values: Int32Array = integers().map(|cell| cell.map(narrow)).collect();
            Arc::new(values)
        }
        DataType::Int64 => Arc::new(integers().collect::<Int64Array>()),
        DataType::Float64 => {
            let values: Float64Array = cells.iter().map(|cell| cell.as_f64()).collect();
            Arc::new(values)
        }
        DataType::Utf8 => {
            let values: StringArray = cells.iter().map(|cell| cell.as_str()).collect();
            Arc::new(values)
        }
        DataType::Date32 => {
            let narrow = |value: i64| i32::try_from(value).unwrap();
            let values: Date32Array = integers().map(|cell| cell.map(narrow)).collect();
            Arc::new(values)
        }
        DataType::Timestamp(_, None) => Arc::new(integers().collect::<TimestampMicrosecondArray>()),
        DataType::Decimal128(precision, scale) => {
            let values: Decimal128Array = integers().map(|cell| cell.map(i128::from)).collect();
            Arc::new(values.with_precision_and_scale(*precision, *scale).unwrap())
        }
        other => panic!("no script has rows of {other}"),
    }
}
