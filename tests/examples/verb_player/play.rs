//! One verb of a script.

use moraine_commit::lake::{InlinedTable, MacroImplementation, MacroKind, MacroParameter, OptionScope};
use moraine_commit::verbs::{
    ColumnPath, FlushedDataFile, FlushedDeleteFile, LakeTransaction, MacroDefinition, TableDefinition,
    TableRef, TagTarget, VerbError, ViewDefinition,
};
use serde_json::Value;

use crate::values::{
    column, column_type, data_file, default, delete_file, list, mapped_column, number, numbers,
    optional_text, partition_field, rows, sort_expression, text,
};

/// Plays a verb: an object whose `verb` is its name.
pub(crate) async fn verb(tx: &LakeTransaction, verb: &Value) -> Result<(), VerbError> {
    let name = text(&verb["verb"]);
    let known = schema_verb(tx, &name, verb).await?
        || column_verb(tx, &name, verb).await?
        || file_verb(tx, &name, verb).await?
        || row_verb(tx, &name, verb).await?
        || other_verb(tx, &name, verb).await?;
    assert!(known, "there is no verb {name}");
    Ok(())
}

fn table(verb: &Value) -> TableRef {
    match verb["table"].as_u64() {
        Some(table_id) => TableRef::Id(table_id),
        None => {
            let schema = verb["schema"].as_str().unwrap_or("main").to_owned();
            TableRef::Name {
                schema,
                table: text(&verb["table"]),
            }
        }
    }
}

fn path(value: &Value) -> ColumnPath {
    match value.as_array() {
        Some(names) => ColumnPath::from(names.iter().map(text).collect::<Vec<_>>()),
        None => ColumnPath::from(text(value).as_str()),
    }
}

async fn schema_verb(tx: &LakeTransaction, name: &str, verb: &Value) -> Result<bool, VerbError> {
    let schema = verb["schema"].as_str().unwrap_or("main");
    match name {
        "create_schema" => drop(tx.create_schema(&text(&verb["name"])).await?),
        "drop_schema" => tx.drop_schema(&text(&verb["name"])).await?,
        "drop_schema_cascade" => tx.drop_schema_cascade(&text(&verb["name"])).await?,
        "create_table" => {
            let columns = list(&verb["columns"]).iter().map(column).collect();
            let definition = TableDefinition::new(text(&verb["name"]), columns);
            tx.create_table(schema, definition).await?;
        }
        "drop_table" => tx.drop_table(table(verb)).await?,
        "rename_table" => tx.rename_table(table(verb), &text(&verb["to"])).await?,
        "create_view" => {
            let mut definition = ViewDefinition::new(text(&verb["name"]), text(&verb["sql"]));
            definition.column_aliases = list(&verb["aliases"]).iter().map(text).collect();
            tx.create_view(schema, definition).await?;
        }
        "drop_view" => tx.drop_view(schema, &text(&verb["name"])).await?,
        "rename_view" => {
            tx.rename_view(schema, &text(&verb["name"]), &text(&verb["to"]))
                .await?
        }
        "create_macro" => drop(tx.create_macro(schema, macro_definition(verb)).await?),
        "drop_macro" => tx.drop_macro(schema, &text(&verb["name"]), kind(verb)).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn kind(verb: &Value) -> MacroKind {
    if verb["kind"] == "table" {
        MacroKind::Table
    } else {
        MacroKind::Scalar
    }
}

fn macro_definition(verb: &Value) -> MacroDefinition {
    let parameter = |parameter: &Value| MacroParameter {
        name: text(&parameter["name"]),
        parameter_type: parameter.get("type").map(column_type),
        default: parameter
            .get("default")
            .map(|default| (text(default), column_type(&parameter["default_type"]))),
    };
    let implementation = |implementation: &Value| MacroImplementation {
        dialect: "duckdb".to_owned(),
        sql: text(&implementation["sql"]),
        parameters: list(&implementation["parameters"])
            .iter()
            .map(parameter)
            .collect(),
    };
    MacroDefinition {
        name: text(&verb["name"]),
        kind: kind(verb),
        implementations: list(&verb["implementations"])
            .iter()
            .map(implementation)
            .collect(),
    }
}

async fn column_verb(tx: &LakeTransaction, name: &str, verb: &Value) -> Result<bool, VerbError> {
    match name {
        "add_column" => drop(tx.add_column(table(verb), column(&verb["column"])).await?),
        "add_field" => {
            let parent = path(&verb["parent"]);
            tx.add_field(table(verb), parent, column(&verb["column"])).await?;
        }
        "drop_column" => tx.drop_column(table(verb), path(&verb["column"])).await?,
        "rename_column" => {
            tx.rename_column(table(verb), path(&verb["column"]), &text(&verb["to"]))
                .await?;
        }
        "set_column_type" => {
            let to = column_type(&verb["type"]);
            tx.set_column_type(table(verb), path(&verb["column"]), to).await?;
        }
        "set_column_default" => {
            let to = default(&verb["default"]);
            tx.set_column_default(table(verb), &text(&verb["column"]), to)
                .await?;
        }
        "set_not_null" => tx.set_not_null(table(verb), &text(&verb["column"])).await?,
        "drop_not_null" => tx.drop_not_null(table(verb), &text(&verb["column"])).await?,
        "set_partition" => {
            let fields = list(&verb["fields"]).iter().map(partition_field).collect();
            tx.set_partition(table(verb), fields).await?;
        }
        "reset_partition" => tx.reset_partition(table(verb)).await?,
        "set_sort" => {
            let expressions = list(&verb["expressions"]).iter().map(sort_expression).collect();
            tx.set_sort(table(verb), expressions).await?;
        }
        "reset_sort" => tx.reset_sort(table(verb)).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

async fn file_verb(tx: &LakeTransaction, name: &str, verb: &Value) -> Result<bool, VerbError> {
    let sources = || numbers(&verb["sources"]);
    match name {
        "add_data_files" => {
            let files = list(&verb["files"]).iter().map(data_file).collect();
            tx.add_data_files(table(verb), files).await?;
        }
        "drop_data_files" => tx.drop_data_files(table(verb), &numbers(&verb["ids"])).await?,
        "add_delete_files" => {
            let files = list(&verb["files"]).iter().map(delete_file).collect();
            tx.add_delete_files(table(verb), files).await?;
        }
        "add_mapping" => {
            let columns: Vec<_> = list(&verb["columns"]).iter().map(mapped_column).collect();
            tx.add_mapping(table(verb), columns).await?;
        }
        "merge_adjacent_files" => {
            let merged = data_file(&verb["file"]);
            tx.merge_adjacent_files(table(verb), &sources(), merged).await?;
        }
        "rewrite_data_files" => {
            let rewritten = verb.get("file").filter(|file| file.is_object()).map(data_file);
            let start = verb["row_id_start"].as_u64();
            tx.rewrite_data_files(table(verb), &sources(), rewritten, start)
                .await?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

async fn row_verb(tx: &LakeTransaction, name: &str, verb: &Value) -> Result<bool, VerbError> {
    match name {
        "insert_inlined" => {
            let schema = tx.inlined_schema(table(verb)).await?;
            tx.insert_inlined(table(verb), rows(&verb["rows"], &schema))
                .await?;
        }
        "delete_inlined" => tx.delete_inlined(table(verb), &numbers(&verb["row_ids"])).await?,
        "update_inlined" => {
            let schema = tx.inlined_schema(table(verb)).await?;
            let rows = rows(&verb["rows"], &schema);
            tx.update_inlined(table(verb), &numbers(&verb["row_ids"]), rows)
                .await?;
        }
        "delete_from_file_inlined" => {
            let positions = numbers(&verb["positions"]);
            let data_file_id = number(&verb["data_file_id"]);
            tx.delete_from_file_inlined(table(verb), data_file_id, &positions)
                .await?;
        }
        "flush_inlined" => {
            let tables = tx_inlined_table(tx, verb).await?;
            let files = list(&verb["files"]).iter().map(flushed_file).collect();
            tx.flush_inlined(tables, number(&verb["until"]), files).await?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

async fn tx_inlined_table(tx: &LakeTransaction, verb: &Value) -> Result<InlinedTable, VerbError> {
    let tables = tx.inlined_tables(table(verb)).await?;
    let version = number(&verb["schema_version"]);
    let found = tables.into_iter().find(|table| table.schema_version == version);
    Ok(found.expect("the inlined table is there"))
}

fn flushed_file(value: &Value) -> FlushedDataFile {
    let deletes = value.get("delete_file").filter(|file| file.is_object());
    FlushedDataFile {
        file: data_file(value),
        row_id_start: number(&value["row_id_start"]),
        begin_snapshot: number(&value["begin_snapshot"]),
        partial_max: number(&value["partial_max"]),
        row_ids: numbers(&value["row_ids"]),
        delete_file: deletes.map(|file| FlushedDeleteFile {
            path: text(&file["path"]),
            path_is_relative: file["path_is_relative"].as_bool().unwrap_or(true),
            format: text(&file["format"]),
            delete_count: number(&file["delete_count"]),
            file_size_bytes: number(&file["file_size_bytes"]),
            footer_size: number(&file["footer_size"]),
            encryption_key: optional_text(&file["encryption_key"]),
            begin_snapshot: number(&file["begin_snapshot"]),
            partial_max: file["partial_max"].as_u64(),
        }),
    }
}

async fn other_verb(tx: &LakeTransaction, name: &str, verb: &Value) -> Result<bool, VerbError> {
    match name {
        "set_comment" => {
            let comment = optional_text(&verb["comment"]);
            tx.set_comment(target(verb), comment.as_deref()).await?;
        }
        "set_option" => {
            let scope = match (verb["table_id"].as_u64(), verb["schema_id"].as_u64()) {
                (Some(table_id), _) => OptionScope::Table(table_id),
                (None, Some(schema_id)) => OptionScope::Schema(schema_id),
                (None, None) => OptionScope::Global,
            };
            tx.set_option(scope, &text(&verb["name"]), &text(&verb["value"]))
                .await?;
        }
        "set_commit_info" => {
            tx.set_author(text(&verb["author"])).await?;
            tx.set_message(text(&verb["message"])).await?;
            if let Some(extra) = optional_text(&verb["extra_info"]) {
                tx.set_extra_info(extra).await?;
            }
        }
        "expire_snapshots" => tx.expire_snapshots(&numbers(&verb["ids"])).await?,
        "forget_scheduled_files" => tx.forget_scheduled_files(&numbers(&verb["ids"])).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn target(verb: &Value) -> TagTarget {
    if let Some(view) = verb.get("view") {
        let schema = verb["schema"].as_str().unwrap_or("main").to_owned();
        return TagTarget::View(schema, text(view));
    }
    match verb.get("column") {
        Some(column) => TagTarget::Column(table(verb), path(column)),
        None => TagTarget::Table(table(verb)),
    }
}
