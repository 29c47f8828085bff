//! Which inlined tables a flush takes, where their files go and how they are to look; reads the catalog, changes nothing.

use std::collections::BTreeMap;
use std::fmt;

use moraine_codec::proto::{
    ColumnValue, PartitionValue, SchemaValue, SnapshotValue, SortExpression, SortValue, TableValue,
};
use moraine_inline::{
    FlushColumn, FlushLayout, InlineError, ParquetOptions, PartitionField, PartitionTransform, SortField,
};
use moraine_keys::{ColumnKey, SchemaVersionKey, TableScoped};
use moraine_store::{ReadError, ReadExt, Staging};

use crate::flush::options::TableOptions;
use crate::flush::{FlushError, FlushOptions};
use crate::transaction::CatalogTransaction;
use crate::views;

/// The schema that a table named alone is in.
const DEFAULT_SCHEMA: &str = "main";
/// The dialect of the sort expressions that DuckDB follows.
const DIALECT: &str = "duckdb";

/// What a flush does, as of the newest snapshot its transaction sees.
pub(super) struct Plan {
    /// The newest snapshot: what began by then is flushed.
    pub(super) until: u64,
    pub(super) snapshot: SnapshotValue,
    /// The lake's data path, with a slash at its end.
    pub(super) data_path: String,
    pub(super) encrypted: bool,
    pub(super) tables: Vec<TablePlan>,
}

/// One table.
#[derive(Debug)]
pub(super) struct TablePlan {
    pub(super) name: TableName,
    pub(super) table_id: u64,
    /// The folder of the table's files, with a slash at its end.
    pub(super) folder: String,
    /// Its inlined tables, oldest first.
    pub(super) sources: Vec<Source>,
    options: TableOptions,
    /// Its columns and its sort order as they are now.
    columns: Vec<FlushColumn>,
    sort: Vec<SortExpression>,
}

/// One inlined table.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) schema_version: u64,
    /// Whether a newer inlined table of the same table exists, so that this one goes once it is empty.
    pub(super) superseded: bool,
    /// Whether it is in `ducklake_inlined_data_tables`.
    pub(super) listed: bool,
    /// The partitioning of its schema version, under which its files are registered.
    pub(super) partition: Option<PartitionValue>,
    columns: Vec<FlushColumn>,
}

/// The name of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName {
    pub(super) schema: String,
    pub(super) name: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl TableName {
    /// Whether somebody who writes `text` means this table.
    fn is_called(&self, text: &str) -> bool {
        self.to_string() == text || (self.schema == DEFAULT_SCHEMA && self.name == text)
    }
}

impl Plan {
    pub(super) async fn read(
        transaction: &CatalogTransaction,
        options: &FlushOptions,
    ) -> Result<Self, FlushError> {
        let read = transaction.read();
        let until = transaction.head().ok_or(FlushError::NoLake)?.snapshot_id;
        let snapshot = views::snapshot(read, until).await?.ok_or(FlushError::NoLake)?;
        let lake = TableOptions::of_lake(read).await?;
        let data_path = options.data_path.as_deref().or_else(|| lake.get("data_path"));
        let data_path = data_path
            .filter(|path| !path.is_empty())
            .map(with_slash)
            .ok_or_else(|| FlushError::Unsupported {
                what: "the lake".to_owned(),
                reason: "it does not say where its data files are".to_owned(),
            })?;
        let schemas: BTreeMap<u64, SchemaValue> = views::schemas_at(read, until)
            .await?
            .into_iter()
            .map(|(key, value)| (key.schema_id, value))
            .collect();
        let mut unknown: Vec<&String> = options.tables.iter().collect();
        let mut tables = Vec::new();
        for (key, value) in views::tables_at(read, until).await? {
            let Some(schema) = schemas.get(&value.schema_id) else {
                continue;
            };
            let name = TableName {
                schema: schema.schema_name.clone(),
                name: value.table_name.clone(),
            };
            let named = options.tables.iter().any(|asked| name.is_called(asked));
            unknown.retain(|asked| !name.is_called(asked));
            let own = lake.of_table(read, value.schema_id, key.table_id).await?;
            if named || (options.tables.is_empty() && own.is_on("auto_compact", true)) {
                let folder = folder(&data_path, schema, &value);
                tables.push(TablePlan::read(read, until, key.table_id, name, folder, own).await?);
            }
        }
        if let Some(name) = unknown.first() {
            return Err(FlushError::NoSuchTable {
                name: (*name).clone(),
            });
        }
        Ok(Plan {
            until,
            snapshot,
            encrypted: lake.is_on("encrypted", false),
            data_path,
            tables,
        })
    }
}

/// The folder of a table's files, with a slash at its end.
pub(crate) fn folder(data_path: &str, schema: &SchemaValue, table: &TableValue) -> String {
    let below = |parent: &str, path: &str, is_relative: bool| {
        if is_relative {
            with_slash(&format!("{}{path}", with_slash(parent)))
        } else {
            with_slash(path)
        }
    };
    let schema = below(data_path, &schema.path, schema.path_is_relative);
    below(&schema, &table.path, table.path_is_relative)
}

fn with_slash(path: &str) -> String {
    format!("{}/", path.trim_end_matches('/'))
}

impl TablePlan {
    async fn read(
        read: &Staging,
        until: u64,
        table_id: u64,
        name: TableName,
        folder: String,
        options: TableOptions,
    ) -> Result<Self, FlushError> {
        let versions = moraine_inline::versions(read, Some(table_id)).await;
        let versions = versions.map_err(|source| FlushError::Table {
            table: name.to_string(),
            source,
        })?;
        let listed = versions.iter().filter(|(_, _, listed)| *listed);
        let newest = listed.map(|(_, version, _)| *version).max();
        let mut sources = Vec::new();
        for (_, schema_version, listed) in versions {
            let begin = begin_of(read, table_id, schema_version).await?;
            let partitions = views::partitions_at(read, begin, table_id).await?;
            sources.push(Source {
                schema_version,
                listed,
                superseded: newest.is_some_and(|newest| schema_version < newest),
                partition: partitions.into_iter().next_back().map(|(_, value)| value),
                columns: columns(read, table_id, begin).await?,
            });
        }
        let sorts = views::sorts_at(read, until, table_id).await?;
        let sort: Option<SortValue> = sorts.into_iter().next_back().map(|(_, value)| value);
        Ok(Self {
            name,
            table_id,
            folder,
            sources,
            options,
            columns: columns(read, table_id, until).await?,
            sort: sort.map(|sort| sort.expressions).unwrap_or_default(),
        })
    }

    /// An error of this table.
    pub(super) fn error(&self, source: InlineError) -> FlushError {
        match source {
            InlineError::Read(error) => FlushError::Read(error),
            source => FlushError::Table {
                table: self.name.to_string(),
                source,
            },
        }
    }

    pub(super) fn unsupported(&self, reason: String) -> FlushError {
        FlushError::Unsupported {
            what: format!("table {}", self.name),
            reason,
        }
    }

    /// How the files of one of its inlined tables are to look. Only a table with rows to flush is asked.
    pub(super) fn layout(&self, source: &Source, encrypted: bool) -> Result<FlushLayout, FlushError> {
        let option = |name: &str| self.options.get(name).map(str::to_owned);
        let parquet = ParquetOptions::read(option).map_err(|(option, value)| FlushError::Option {
            table: self.name.to_string(),
            option,
            value,
        })?;
        Ok(FlushLayout {
            columns: source.columns.clone(),
            partition: self.partition(source)?,
            sort: self.sort(source),
            // The folders of an encrypted lake would tell of its rows.
            hive_folders: self.options.is_on("hive_file_pattern", !encrypted),
            parquet,
            encryption_key: None,
        })
    }

    fn partition(&self, source: &Source) -> Result<Vec<PartitionField>, FlushError> {
        let keys = source.partition.iter().flat_map(|partition| &partition.columns);
        let fields = keys.map(|key| {
            let column = position(&source.columns, key.column_id);
            let transform = PartitionTransform::parse(&key.transform);
            let field = column.zip(transform);
            let field = field.map(|(column, transform)| PartitionField { column, transform });
            field.ok_or_else(|| {
                let (transform, column) = (&key.transform, key.column_id);
                self.unsupported(format!(
                    "it is partitioned by {transform} of column {column}, which is not known"
                ))
            })
        });
        fields.collect()
    }

    /// The sort order, by the columns of an inlined table: those it did not have yet are the same in all its rows. No row depends
    /// on the order, so rows are sorted as far as this crate can: up to the first expression that only DuckDB evaluates.
    fn sort(&self, source: &Source) -> Vec<SortField> {
        let mut fields = Vec::new();
        for key in self.sort_keys() {
            let Some(column) = self.sorted_column(key) else {
                break;
            };
            if let Some(column) = position(&source.columns, column.column_id) {
                fields.push(SortField {
                    column,
                    descending: key.sort_direction.eq_ignore_ascii_case("DESC"),
                    nulls_first: key.null_order.to_ascii_uppercase().ends_with("FIRST"),
                });
            }
        }
        fields
    }

    /// The first part of the sort order that rows are not sorted by here.
    pub(super) fn unsorted_by(&self) -> Option<&str> {
        let mut keys = self.sort_keys();
        let key = keys.find(|key| self.sorted_column(key).is_none())?;
        Some(&key.expression)
    }

    fn sort_keys(&self) -> impl Iterator<Item = &SortExpression> {
        let keys = self.sort.iter();
        keys.filter(|key| key.dialect.eq_ignore_ascii_case(DIALECT))
    }

    /// The column that a part of the sort order is, if it is one that rows can be sorted by here.
    fn sorted_column(&self, key: &SortExpression) -> Option<&FlushColumn> {
        let name = column_name(&key.expression)?;
        let mut columns = self.columns.iter();
        let column = columns.find(|column| column.name.eq_ignore_ascii_case(&name))?;
        column.is_sortable().then_some(column)
    }
}

fn position(columns: &[FlushColumn], column_id: u64) -> Option<usize> {
    columns.iter().position(|column| column.column_id == column_id)
}

/// The column that a sort expression is, if it is nothing but one: a plain or a quoted identifier.
fn column_name(expression: &str) -> Option<String> {
    let expression = expression.trim();
    if let Some(quoted) = expression
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        let name = quoted.replace("\"\"", "\u{0}");
        return (!name.contains('"')).then(|| name.replace('\u{0}', "\""));
    }
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    let begins = expression.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (begins && expression.chars().all(plain)).then(|| expression.to_owned())
}

/// The snapshot with which a table got a schema version.
async fn begin_of(read: &Staging, table_id: u64, schema_version: u64) -> Result<u64, ReadError> {
    let versions = read
        .records::<SchemaVersionKey>(SchemaVersionKey::scan_table(table_id))
        .await?;
    let begun = versions
        .iter()
        .filter(|(_, value)| value.schema_version <= schema_version);
    Ok(begun.map(|(key, _)| key.begin_snapshot).max().unwrap_or_default())
}

/// The top-level columns that a table has at a snapshot, in order, with their fields.
async fn columns(read: &Staging, table_id: u64, snapshot_id: u64) -> Result<Vec<FlushColumn>, ReadError> {
    let mut found = views::columns_at(read, snapshot_id, table_id).await?;
    found.sort_by_key(|(key, column)| (column.column_order, key.column_id));
    Ok(below(&found, None))
}

fn below(columns: &[(ColumnKey, ColumnValue)], parent: Option<u64>) -> Vec<FlushColumn> {
    let own = columns
        .iter()
        .filter(|(_, column)| column.parent_column == parent);
    let own = own.map(|(key, column)| FlushColumn {
        name: column.column_name.clone(),
        column_id: key.column_id,
        ducklake_type: column.column_type.clone(),
        children: below(columns, Some(key.column_id)),
    });
    own.collect()
}

#[cfg(test)]
mod tests {
    use super::column_name;

    #[test]
    fn only_columns_are_sort_expressions_here() {
        assert_eq!(column_name("a").as_deref(), Some("a"));
        assert_eq!(column_name("\"A \"\"b\"\"\"").as_deref(), Some("A \"b\""));
        for expression in ["(b + 1)", "lower(a)", "\"a\" || \"b\"", "1", "", "a.b"] {
            assert_eq!(column_name(expression), None, "{expression}");
        }
    }
}
