//! Which inlined tables a flush takes, where their files go and which columns they have; reads the catalog, changes nothing.

use std::collections::BTreeMap;
use std::fmt;

use moraine_codec::proto::{SchemaValue, SnapshotValue, TableValue};
use moraine_inline::FlushColumn;
use moraine_keys::{OptionKey, SchemaVersionKey, TableScoped};
use moraine_store::{ReadError, ReadExt, Staging};

use crate::flush::{FlushError, FlushOptions};
use crate::transaction::CatalogTransaction;
use crate::views;

/// The schema that a table named alone is in.
const DEFAULT_SCHEMA: &str = "main";

/// What a flush does, as of the newest snapshot its transaction sees.
pub(super) struct Plan {
    /// The newest snapshot: what began by then is flushed.
    pub(super) until: u64,
    pub(super) snapshot: SnapshotValue,
    /// Those of one table come together.
    pub(super) sources: Vec<Source>,
}

/// One inlined table.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) table: TableName,
    pub(super) table_id: u64,
    pub(super) schema_version: u64,
    /// Whether a newer inlined table of the same table exists, so that this one goes once it is empty.
    pub(super) superseded: bool,
    /// The folder of the table's files, with a slash at its end.
    pub(super) folder: String,
    pub(super) columns: Vec<FlushColumn>,
    /// Why the table cannot be flushed, if it cannot. Only a table with rows to flush is held to it.
    refused: Option<String>,
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

impl Source {
    /// Refuses a table that DuckLake would lay out otherwise.
    pub(super) fn check(&self) -> Result<(), FlushError> {
        match &self.refused {
            None => Ok(()),
            Some(reason) => Err(FlushError::Unsupported {
                what: format!("table {}", self.table),
                reason: reason.clone(),
            }),
        }
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
        let lake = LakeOptions::read(read, options).await?;
        let schemas: BTreeMap<u64, SchemaValue> = views::schemas_at(read, until)
            .await?
            .into_iter()
            .map(|(key, value)| (key.schema_id, value))
            .collect();
        let mut unknown: Vec<&String> = options.tables.iter().collect();
        let mut sources = Vec::new();
        for (key, value) in views::tables_at(read, until).await? {
            let Some(schema) = schemas.get(&value.schema_id) else {
                continue;
            };
            let table = TableName {
                schema: schema.schema_name.clone(),
                name: value.table_name.clone(),
            };
            unknown.retain(|name| !table.is_called(name));
            if options.tables.is_empty() || options.tables.iter().any(|name| table.is_called(name)) {
                let folder = lake.folder(schema, &value);
                sources.extend(of_table(read, until, &lake, key.table_id, &table, &folder).await?);
            }
        }
        match unknown.first() {
            Some(name) => Err(FlushError::NoSuchTable {
                name: (*name).clone(),
            }),
            None => Ok(Plan {
                until,
                snapshot,
                sources,
            }),
        }
    }
}

/// What the lake's options say about its files.
struct LakeOptions {
    data_path: String,
    encrypted: bool,
}

impl LakeOptions {
    async fn read(read: &Staging, options: &FlushOptions) -> Result<Self, FlushError> {
        let key = OptionKey {
            scope_kind: 0,
            scope_id: 0,
        };
        let mut stored = read.value(&key).await?.unwrap_or_default().options;
        let data_path = options.data_path.clone().or_else(|| stored.remove("data_path"));
        let data_path = data_path
            .filter(|path| !path.is_empty())
            .ok_or_else(|| FlushError::Unsupported {
                what: "the lake".to_owned(),
                reason: "it does not say where its data files are".to_owned(),
            })?;
        let encrypted = stored
            .get("encrypted")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(LakeOptions { data_path, encrypted })
    }

    fn folder(&self, schema: &SchemaValue, table: &TableValue) -> String {
        let below = |parent: &str, path: &str, is_relative: bool| {
            let path = if is_relative {
                format!("{}{path}", with_slash(parent))
            } else {
                path.to_owned()
            };
            with_slash(&path)
        };
        let schema = below(&self.data_path, &schema.path, schema.path_is_relative);
        below(&schema, &table.path, table.path_is_relative)
    }
}

fn with_slash(path: &str) -> String {
    format!("{}/", path.trim_end_matches('/'))
}

/// The inlined tables of one table, oldest first.
async fn of_table(
    read: &Staging,
    until: u64,
    lake: &LakeOptions,
    table_id: u64,
    table: &TableName,
    folder: &str,
) -> Result<Vec<Source>, FlushError> {
    let of_table = |source| FlushError::Table {
        table: table.to_string(),
        source,
    };
    let versions = moraine_inline::versions(read, Some(table_id))
        .await
        .map_err(of_table)?;
    let newest = versions
        .iter()
        .filter(|(_, _, listed)| *listed)
        .map(|(_, version, _)| *version)
        .max();
    let mut refused = None;
    if lake.encrypted {
        refused = Some("the lake is encrypted".to_owned());
    } else if !views::partitions_at(read, until, table_id).await?.is_empty() {
        refused = Some("it is partitioned".to_owned());
    } else if !views::sorts_at(read, until, table_id).await?.is_empty() {
        refused = Some("it has a sort order".to_owned());
    }
    let mut sources = Vec::new();
    for (_, schema_version, _) in versions {
        sources.push(Source {
            table: table.clone(),
            table_id,
            schema_version,
            superseded: newest.is_some_and(|newest| schema_version < newest),
            folder: folder.to_owned(),
            columns: columns(read, table_id, schema_version).await?,
            refused: refused.clone(),
        });
    }
    Ok(sources)
}

/// The top-level columns that the table had at a schema version, in order.
async fn columns(read: &Staging, table_id: u64, schema_version: u64) -> Result<Vec<FlushColumn>, ReadError> {
    let versions = read
        .records::<SchemaVersionKey>(SchemaVersionKey::scan_table(table_id))
        .await?;
    let begun = versions
        .iter()
        .filter(|(_, value)| value.schema_version <= schema_version);
    let Some(begin) = begun.map(|(key, _)| key.begin_snapshot).max() else {
        return Ok(Vec::new());
    };
    let mut found = views::columns_at(read, begin, table_id).await?;
    found.retain(|(_, column)| column.parent_column.is_none());
    found.sort_by_key(|(_, column)| column.column_order);
    Ok(found
        .into_iter()
        .map(|(key, column)| FlushColumn {
            name: column.column_name,
            column_id: key.column_id,
            ducklake_type: column.column_type,
        })
        .collect())
}
