//! Whether what a record belongs to is there: the table of a column, the schema of a table, the object of a tag.

use moraine_codec::Stored;
use moraine_codec::proto::{ColumnValue, PartitionValue};
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, History, IndexDefinitionKey, KeyRange, Kind, LeadingId, MacroKey,
    MappingKey, OptionKey, PartitionKey, SchemaVersionKey, SortKey, TableColumnStatsKey, TableKey,
    TableScoped, TableStatsKey, TagKey, Versioned, ViewKey,
};
use moraine_store::ReadError;

use super::tables::Tables;
use super::{Check, Invariant};

pub(super) async fn check(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    of_schemas(check, tables).await?;
    of_tables(check, tables).await?;
    columns(check).await?;
    partition_columns(check).await?;
    of_objects(check, tables).await
}

/// Live tables, views and macros lie in live schemas, ended ones in schemas that were.
async fn of_schemas(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    in_schema::<TableKey>(check, tables, |value| value.schema_id).await?;
    in_schema::<ViewKey>(check, tables, |value| value.schema_id).await?;
    in_schema::<MacroKey>(check, tables, |value| value.schema_id).await
}

async fn in_schema<K>(
    check: &mut Check<'_>,
    tables: &Tables,
    schema_id: fn(&K::Value) -> u64,
) -> Result<(), ReadError>
where
    K: Versioned + Stored,
    History<K>: Stored<Value = K::Value>,
{
    let mut live = check.scan::<K>(K::scan()).await?;
    while let Some((key, value)) = live.next().await? {
        let schema_id = schema_id(&value);
        if !tables.schemas.get(&schema_id).copied().unwrap_or_default() {
            let detail = format!("there is no live schema {schema_id}");
            check.found(Invariant::ParentExists, &key, detail);
        }
    }
    let mut ended = check.scan::<History<K>>(History::<K>::scan()).await?;
    while let Some((key, value)) = ended.next().await? {
        let schema_id = schema_id(&value);
        if !tables.schemas.contains_key(&schema_id) {
            let detail = format!("there is no schema {schema_id}, nor was there one");
            check.found(Invariant::ParentExists, &key, detail);
        }
    }
    Ok(())
}

async fn of_tables(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    versioned::<ColumnKey>(check, tables).await?;
    versioned::<PartitionKey>(check, tables).await?;
    versioned::<SortKey>(check, tables).await?;
    versioned::<DataFileKey>(check, tables).await?;
    versioned::<DeleteFileKey>(check, tables).await?;
    versioned::<IndexDefinitionKey>(check, tables).await?;
    in_table::<TableStatsKey>(check, tables).await?;
    in_table::<TableColumnStatsKey>(check, tables).await?;
    in_table::<MappingKey>(check, tables).await
}

async fn versioned<K>(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError>
where
    K: Versioned + Stored + TableScoped,
    History<K>: Stored,
{
    let mut live = check.scan::<K>(K::scan()).await?;
    while let Some((key, _)) = live.next().await? {
        if !tables.is_live_table(key.leading_id()) {
            let detail = format!("there is no live table {}", key.leading_id());
            check.found(Invariant::ParentExists, &key, detail);
        }
    }
    in_table::<History<K>>(check, tables).await
}

/// The table of a record is there, live or ended.
pub(super) async fn in_table<K: Stored + LeadingId>(
    check: &mut Check<'_>,
    tables: &Tables,
) -> Result<(), ReadError> {
    let mut scan = check.scan::<K>(K::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        if !tables.has_table(key.leading_id()) {
            let detail = format!("there is no table {}, nor was there one", key.leading_id());
            check.found(Invariant::ParentExists, &key, detail);
        }
    }
    Ok(())
}

/// The columns of a table, without the rest of what they are.
#[derive(Debug, Default)]
struct LiveColumns {
    table_id: Option<u64>,
    columns: Vec<(ColumnKey, Option<u64>)>,
}

/// A live nested column lies in a live one of its table.
async fn columns(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut of_table = LiveColumns::default();
    let mut scan = check.scan::<ColumnKey>(ColumnKey::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        if of_table.table_id != Some(key.table_id) {
            nested(check, &of_table);
            of_table = LiveColumns {
                table_id: Some(key.table_id),
                columns: Vec::new(),
            };
        }
        let ColumnValue { parent_column, .. } = value;
        of_table.columns.push((key, parent_column));
    }
    nested(check, &of_table);
    Ok(())
}

fn nested(check: &mut Check<'_>, of_table: &LiveColumns) {
    for (key, parent) in &of_table.columns {
        let Some(parent) = parent else { continue };
        let is_there = of_table
            .columns
            .iter()
            .any(|(column, _)| column.column_id == *parent);
        if !is_there {
            let detail = format!("its parent, column {parent}, is not live");
            check.found(Invariant::ParentExists, key, detail);
        }
    }
}

/// The columns that a live partitioning is by are live columns of the table.
async fn partition_columns(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut scan = check.scan::<PartitionKey>(PartitionKey::scan()).await?;
    while let Some((key, PartitionValue { columns, .. })) = scan.next().await? {
        for column in columns {
            let column = ColumnKey {
                table_id: key.table_id,
                column_id: column.column_id,
            };
            if !check.exists(&column).await? {
                let detail = format!("it partitions by column {}, which is not live", column.column_id);
                check.found(Invariant::ParentExists, &key, detail);
            }
        }
    }
    Ok(())
}

async fn of_objects(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    let mut tags = check.scan::<TagKey>(TagKey::scan()).await?;
    while let Some((key, _)) = tags.next().await? {
        let id = key.object_id;
        let known = tables.schemas.contains_key(&id) || tables.has_table(id);
        if !known && !was::<ViewKey>(check, id).await? && !was::<MacroKey>(check, id).await? {
            let detail = format!("there is no schema, table, view or macro {id}");
            check.found(Invariant::ObjectExists, &key, detail);
        }
    }
    let mut options = check.scan::<OptionKey>(OptionKey::scan()).await?;
    while let Some((key, _)) = options.next().await? {
        let (what, known) = match key.scope_kind {
            OptionKey::GLOBAL => ("global scope", key.scope_id == 0),
            OptionKey::SCHEMA => ("schema", tables.schemas.contains_key(&key.scope_id)),
            OptionKey::TABLE => ("table", tables.has_table(key.scope_id)),
            _ => ("scope", false),
        };
        if !known {
            let detail = format!("there is no {what} {}", key.scope_id);
            check.found(Invariant::ObjectExists, &key, detail);
        }
    }
    in_table_or_view(check, tables).await
}

/// Whether there is a version of the object.
async fn was<K>(check: &Check<'_>, id: u64) -> Result<bool, ReadError>
where
    K: Versioned + LeadingId,
{
    if check.exists(&K::least_with_id(id)).await? {
        return Ok(true);
    }
    is_any(check, History::<K>::scan_ids(id..=id)).await
}

async fn is_any(check: &Check<'_>, range: KeyRange) -> Result<bool, ReadError> {
    Ok(check.read.scan(range).await?.next().await?.is_some())
}

async fn in_table_or_view(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    let newest = check.newest.clone();
    let mut versions = check.scan::<SchemaVersionKey>(SchemaVersionKey::scan()).await?;
    while let Some((key, value)) = versions.next().await? {
        if !tables.has_table(key.table_id) && !was::<ViewKey>(check, key.table_id).await? {
            let detail = format!("there is no table or view {}", key.table_id);
            check.found(Invariant::ObjectExists, &key, detail);
        }
        if let Some(newest) = &newest
            && value.schema_version > newest.schema_version
        {
            let detail = format!(
                "its schema_version is {}, and that of the newest snapshot is {}",
                value.schema_version, newest.schema_version
            );
            check.found(Invariant::IdsBelowCounters, &key, detail);
        }
    }
    Ok(())
}
