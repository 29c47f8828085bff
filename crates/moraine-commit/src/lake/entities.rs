//! What a snapshot shows, as plain values: schemas, tables with their columns, views, macros, layouts, tags. Made from
//! records; how those are kept is not here.

use moraine_codec::proto::{
    ColumnTag, ColumnValue, MacroValue, NameMapping, PartitionValue, SchemaValue, SnapshotValue, SortValue,
    TableValue, TagEntry, ViewValue,
};
use moraine_codec::{Nullable, Version};

use crate::changes_made::ChangesMade;
use crate::lake::column_type::ColumnType;

/// Field numbers of values whose SQL NULL is kept in `null_fields`.
const COLUMN_TAG_VALUE_FIELD: u32 = 4;
const TAG_VALUE_FIELD: u32 = 4;

/// The text by which DuckLake writes that a column has no default.
pub(crate) const NO_DEFAULT: &str = "NULL";
pub(crate) const LITERAL: &str = "literal";
pub(crate) const EXPRESSION: &str = "expression";
/// The dialect of every SQL text that DuckDB writes.
pub(crate) const DUCKDB: &str = "duckdb";

/// A snapshot: a row of `ducklake_snapshot` with its row of `ducklake_snapshot_changes`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The snapshot.
    pub snapshot_id: u64,
    /// When it was committed, in microseconds since 1970-01-01 UTC. Strictly increases from snapshot to snapshot.
    pub time_micros: i64,
    /// The version of the lake's schema.
    pub schema_version: u64,
    /// The next id of a schema, table, view, macro, partitioning or sort order.
    pub next_catalog_id: u64,
    /// The next id of a data file, delete file or column mapping.
    pub next_file_id: u64,
    /// What it changed.
    pub changes: ChangesMade,
    /// Who committed it.
    pub author: Option<String>,
    /// The message given with the commit.
    pub message: Option<String>,
    /// Whatever else was given with the commit.
    pub extra_info: Option<String>,
}

/// A schema: a row of `ducklake_schema`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schema {
    /// The schema.
    pub schema_id: u64,
    /// Its UUID as text.
    pub uuid: String,
    /// Its name as written; names are looked up in any case of letters.
    pub name: String,
    /// Its folder, with a slash at the end.
    pub path: String,
    /// Whether the folder is below the lake's data path.
    pub path_is_relative: bool,
    /// The first snapshot that sees this version.
    pub begin_snapshot: u64,
    /// The first snapshot that no longer sees this version; `None` while it is live.
    pub end_snapshot: Option<u64>,
}

/// A table: a row of `ducklake_table`. Its columns are asked for separately.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// The table.
    pub table_id: u64,
    /// Its UUID as text.
    pub uuid: String,
    /// The schema it is in.
    pub schema_id: u64,
    /// Its name as written.
    pub name: String,
    /// Its folder, with a slash at the end.
    pub path: String,
    /// Whether the folder is below the schema's.
    pub path_is_relative: bool,
    /// The first snapshot that sees this version.
    pub begin_snapshot: u64,
    /// The first snapshot that no longer sees this version; `None` while it is live.
    pub end_snapshot: Option<u64>,
}

/// A view: a row of `ducklake_view`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// The view.
    pub view_id: u64,
    /// Its UUID as text.
    pub uuid: String,
    /// The schema it is in.
    pub schema_id: u64,
    /// Its name as written.
    pub name: String,
    /// The dialect of `sql`, such as `duckdb`.
    pub dialect: String,
    /// The query. Tables of the lake itself are named below `{DUCKLAKE_CATALOG}`, whatever the lake is attached as.
    pub sql: String,
    /// The names of its columns, where they are not those of the query.
    pub column_aliases: Vec<String>,
    /// The first snapshot that sees this version.
    pub begin_snapshot: u64,
    /// The first snapshot that no longer sees this version; `None` while it is live.
    pub end_snapshot: Option<u64>,
}

/// Whether a macro stands for a value or for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MacroKind {
    /// `CREATE MACRO m(a) AS a + 1`
    Scalar,
    /// `CREATE MACRO m(a) AS TABLE SELECT a`
    Table,
}

/// A macro with its overloads: a row of `ducklake_macro`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Macro {
    /// The macro.
    pub macro_id: u64,
    /// The schema it is in.
    pub schema_id: u64,
    /// Its name as written.
    pub name: String,
    /// What it stands for.
    pub kind: MacroKind,
    /// Its overloads, in order.
    pub implementations: Vec<MacroImplementation>,
    /// The first snapshot that sees this version.
    pub begin_snapshot: u64,
    /// The first snapshot that no longer sees this version; `None` while it is live.
    pub end_snapshot: Option<u64>,
}

/// One overload of a macro: a row of `ducklake_macro_impl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroImplementation {
    /// The dialect of `sql`, such as `duckdb`.
    pub dialect: String,
    /// The body.
    pub sql: String,
    /// The parameters, in order.
    pub parameters: Vec<MacroParameter>,
}

/// One parameter of a macro: a row of `ducklake_macro_parameters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroParameter {
    /// Its name.
    pub name: String,
    /// Its type; `None` where any will do.
    pub parameter_type: Option<ColumnType>,
    /// Its default, as text, with the type of the default.
    pub default: Option<(String, ColumnType)>,
}

/// What a column holds where an INSERT says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ColumnDefault {
    /// NULL.
    #[default]
    Null,
    /// A value, in the text that casts to the column's type.
    Literal(String),
    /// An expression of DuckDB's SQL, evaluated for each INSERT.
    Expression(String),
}

/// A tag: a row of `ducklake_tag` or `ducklake_column_tag`. DuckDB's `COMMENT ON` is the tag `comment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub key: String,
    /// Its text; `None` is SQL NULL.
    pub value: Option<String>,
}

/// A column, with the fields of nested types below it: rows of `ducklake_column`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// The field id, by which data files know the column. Never given twice within a table.
    pub column_id: u64,
    /// Its place among the columns of the table, or fields of its parent; gaps are left by dropped ones.
    pub order: u64,
    /// Its name as written.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// What rows have that were written before the column was there, as text.
    pub initial_default: Option<String>,
    /// What new rows have where nothing is given.
    pub default: ColumnDefault,
    /// Whether it may be NULL. Fields of nested columns always may.
    pub nulls_allowed: bool,
    /// Its live tags.
    pub tags: Vec<Tag>,
    /// The fields of a nested type, in order.
    pub fields: Vec<Column>,
    /// The first snapshot that sees this version.
    pub begin_snapshot: u64,
}

/// A partitioning: a row of `ducklake_partition_info`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// The partitioning.
    pub partition_id: u64,
    /// Columns and how they make the key, in order. Empty: the partitioning was reset.
    pub columns: Vec<PartitionColumn>,
    /// The first snapshot that sees it.
    pub begin_snapshot: u64,
}

/// One column of a partitioning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionColumn {
    /// The column.
    pub column_id: u64,
    /// How it makes the key, verbatim.
    pub transform: String,
}

/// A sort order: a row of `ducklake_sort_info`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sort {
    /// The sort order.
    pub sort_id: u64,
    /// Its expressions, most significant first.
    pub expressions: Vec<SortExpression>,
    /// The first snapshot that sees it.
    pub begin_snapshot: u64,
}

/// One expression of a sort order: a row of `ducklake_sort_expression`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortExpression {
    /// SQL in DuckDB's dialect, over the table's columns.
    pub expression: String,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether NULL comes first.
    pub nulls_first: bool,
}

/// How a file that DuckLake has not written is read: a row of `ducklake_column_mapping`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// The mapping.
    pub mapping_id: u64,
    /// The table.
    pub table_id: u64,
    /// How columns are found; DuckLake knows `map_by_name`.
    pub map_type: String,
    /// The columns of the file at the top level.
    pub columns: Vec<MappedColumn>,
}

/// One column of a mapped file: a row of `ducklake_name_mapping`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappedColumn {
    /// Its name in the file, or in the file's path.
    pub source_name: String,
    /// The column of the table that it holds.
    pub column_id: u64,
    /// Whether its value is in the file's path (Hive partitioning).
    pub is_partition: bool,
    /// The fields of a nested column.
    pub fields: Vec<MappedColumn>,
}

impl SnapshotInfo {
    pub(crate) fn of(value: SnapshotValue) -> Self {
        SnapshotInfo {
            snapshot_id: value.snapshot_id,
            time_micros: value.snapshot_time_micros,
            schema_version: value.schema_version,
            next_catalog_id: value.next_catalog_id,
            next_file_id: value.next_file_id,
            changes: ChangesMade::parse(&value.changes_made),
            author: value.author,
            message: value.commit_message,
            extra_info: value.commit_extra_info,
        }
    }
}

impl Schema {
    pub(crate) fn of(value: SchemaValue) -> Self {
        Schema {
            schema_id: value.schema_id,
            uuid: value.schema_uuid,
            name: value.schema_name,
            path: value.path,
            path_is_relative: value.path_is_relative,
            begin_snapshot: value.begin_snapshot,
            end_snapshot: value.end_snapshot,
        }
    }
}

impl Table {
    pub(crate) fn of(value: TableValue) -> Self {
        Table {
            table_id: value.table_id,
            uuid: value.table_uuid,
            schema_id: value.schema_id,
            name: value.table_name,
            path: value.path,
            path_is_relative: value.path_is_relative,
            begin_snapshot: value.begin_snapshot,
            end_snapshot: value.end_snapshot,
        }
    }
}

impl View {
    pub(crate) fn of(value: ViewValue) -> Self {
        View {
            view_id: value.view_id,
            uuid: value.view_uuid,
            schema_id: value.schema_id,
            name: value.view_name,
            dialect: value.dialect,
            sql: value.sql,
            column_aliases: unquoted_list(&value.column_aliases.unwrap_or_default()),
            begin_snapshot: value.begin_snapshot,
            end_snapshot: value.end_snapshot,
        }
    }
}

impl Macro {
    pub(crate) fn of(value: MacroValue) -> Self {
        let is_table = |name: &str| name.eq_ignore_ascii_case("table");
        let first = value.implementations.first();
        let kind = if first.is_some_and(|first| is_table(&first.macro_type)) {
            MacroKind::Table
        } else {
            MacroKind::Scalar
        };
        Macro {
            macro_id: value.macro_id,
            schema_id: value.schema_id,
            name: value.macro_name,
            kind,
            implementations: value
                .implementations
                .into_iter()
                .map(MacroImplementation::of)
                .collect(),
            begin_snapshot: value.begin_snapshot,
            end_snapshot: value.end_snapshot,
        }
    }
}

impl MacroImplementation {
    pub(crate) fn of(value: moraine_codec::proto::MacroImplementation) -> Self {
        let known = |text: &str| match ColumnType::from_text(text, Vec::new()) {
            ColumnType::Unknown(_) => None,
            known => Some(known),
        };
        let parameter = |parameter: moraine_codec::proto::MacroParameter| MacroParameter {
            parameter_type: known(&parameter.parameter_type),
            default: known(&parameter.default_value_type)
                .and_then(|kind| Some((parameter.default_value?, kind))),
            name: parameter.parameter_name,
        };
        MacroImplementation {
            dialect: value.dialect,
            sql: value.sql,
            parameters: value.parameters.into_iter().map(parameter).collect(),
        }
    }
}

impl Partition {
    pub(crate) fn of(value: PartitionValue) -> Self {
        let column = |column: moraine_codec::proto::PartitionColumn| PartitionColumn {
            column_id: column.column_id,
            transform: column.transform,
        };
        Partition {
            partition_id: value.partition_id,
            columns: value.columns.into_iter().map(column).collect(),
            begin_snapshot: value.begin_snapshot,
        }
    }
}

impl Sort {
    pub(crate) fn of(value: SortValue) -> Self {
        let expression = |expression: moraine_codec::proto::SortExpression| SortExpression {
            descending: expression.sort_direction.eq_ignore_ascii_case("desc"),
            nulls_first: expression.null_order.to_ascii_lowercase().contains("first"),
            expression: expression.expression,
        };
        Sort {
            sort_id: value.sort_id,
            expressions: value.expressions.into_iter().map(expression).collect(),
            begin_snapshot: value.begin_snapshot,
        }
    }
}

impl Mapping {
    /// The tree that the stored rows make; rows whose parent is missing stand at the top.
    pub(crate) fn of(value: moraine_codec::proto::MappingValue) -> Self {
        fn below(rows: &[NameMapping], parent: Option<u64>) -> Vec<MappedColumn> {
            let children = rows.iter().filter(|row| row.parent_column == parent);
            children
                .map(|row| MappedColumn {
                    source_name: row.source_name.clone(),
                    column_id: row.target_field_id,
                    is_partition: row.is_partition,
                    fields: below(rows, Some(row.column_id)),
                })
                .collect()
        }
        Mapping {
            mapping_id: value.mapping_id,
            table_id: value.table_id,
            map_type: value.map_type,
            columns: below(&value.name_mappings, None),
        }
    }
}

impl Column {
    /// The columns of a table, from the records of all its columns and fields.
    pub(crate) fn trees(records: &[ColumnValue], snapshot_id: u64) -> Vec<Column> {
        Self::below(records, None, snapshot_id)
    }

    fn below(records: &[ColumnValue], parent: Option<u64>, snapshot_id: u64) -> Vec<Column> {
        let mut children: Vec<&ColumnValue> = records
            .iter()
            .filter(|record| record.parent_column == parent)
            .collect();
        children.sort_by_key(|record| (record.column_order, record.column_id));
        children
            .into_iter()
            .map(|record| {
                let fields = if Some(record.column_id) == parent {
                    Vec::new()
                } else {
                    Self::below(records, Some(record.column_id), snapshot_id)
                };
                Self::of(record, fields, snapshot_id)
            })
            .collect()
    }

    fn of(record: &ColumnValue, fields: Vec<Column>, snapshot_id: u64) -> Column {
        let parts = fields
            .iter()
            .map(|field| (field.name.clone(), field.column_type.clone()))
            .collect();
        Column {
            column_id: record.column_id,
            order: record.column_order,
            name: record.column_name.clone(),
            column_type: ColumnType::from_text(&record.column_type, parts),
            initial_default: record.initial_default.clone(),
            default: default_of(record),
            nulls_allowed: record.nulls_allowed || record.parent_column.is_some(),
            tags: column_tags(&record.tags, snapshot_id),
            fields,
            begin_snapshot: record.begin_snapshot,
        }
    }

    /// The field at `path` below this column; `None` where there is none.
    #[must_use]
    pub fn field(&self, path: &[&str]) -> Option<&Column> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let found = self.fields.iter().find(|field| same_name(&field.name, first));
        found.and_then(|field| field.field(rest))
    }
}

/// Whether two names are the same to DuckDB, which compares them in any case of ASCII letters.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

fn default_of(record: &ColumnValue) -> ColumnDefault {
    let is_expression = record.default_value_type.as_deref() == Some(EXPRESSION);
    match record.default_value.as_deref() {
        None => ColumnDefault::Null,
        Some(text) if is_expression => ColumnDefault::Expression(text.to_owned()),
        Some(NO_DEFAULT) => ColumnDefault::Null,
        Some(text) => ColumnDefault::Literal(text.to_owned()),
    }
}

fn column_tags(tags: &[ColumnTag], snapshot_id: u64) -> Vec<Tag> {
    let visible = tags.iter().filter(|tag| tag.is_visible_at(snapshot_id));
    visible
        .map(|tag| Tag {
            key: tag.key.clone(),
            value: (!tag.is_null(COLUMN_TAG_VALUE_FIELD)).then(|| tag.value.clone()),
        })
        .collect()
}

/// The tags of an object that a snapshot sees.
pub(crate) fn tags(entries: &[TagEntry], snapshot_id: u64) -> Vec<Tag> {
    let visible = entries.iter().filter(|tag| tag.is_visible_at(snapshot_id));
    visible
        .map(|tag| Tag {
            key: tag.key.clone(),
            value: (!tag.is_null(TAG_VALUE_FIELD)).then(|| tag.value.clone()),
        })
        .collect()
}

/// A tag entry that begins at a snapshot.
pub(crate) fn tag_entry(begin_snapshot: u64, key: &str, value: Option<&str>) -> TagEntry {
    let mut entry = TagEntry {
        begin_snapshot,
        key: key.to_owned(),
        value: value.unwrap_or_default().to_owned(),
        ..TagEntry::default()
    };
    entry.set_null(TAG_VALUE_FIELD, value.is_none());
    entry
}

/// A tag of a column that begins at a snapshot.
pub(crate) fn column_tag(begin_snapshot: u64, key: &str, value: Option<&str>) -> ColumnTag {
    let mut entry = ColumnTag {
        begin_snapshot,
        key: key.to_owned(),
        value: value.unwrap_or_default().to_owned(),
        ..ColumnTag::default()
    };
    entry.set_null(COLUMN_TAG_VALUE_FIELD, value.is_none());
    entry
}

/// Names in double quotes, inner ones doubled, with commas between.
pub(crate) fn quoted_list(names: &[String]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")))
        .collect();
    quoted.join(",")
}

fn unquoted_list(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let mut name = String::new();
        let mut inner = rest.get(start + 1..).unwrap_or_default();
        loop {
            let Some((part, after)) = inner.split_once('"') else {
                return names;
            };
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(doubled) => {
                    name.push('"');
                    inner = doubled;
                }
                None => {
                    rest = after;
                    break;
                }
            }
        }
        names.push(name);
    }
    names
}
