//! Ids against the counters that the next ones are taken from.

use std::collections::BTreeMap;

use moraine_codec::Stored;
use moraine_codec::proto::SnapshotValue;
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, History, IndexDefinitionKey, Kind, MacroKey, MappingKey,
    PartitionKey, SchemaKey, SortKey, TableKey, Versioned, ViewKey,
};
use moraine_store::ReadError;

use super::{Check, Invariant};

pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    if let Some(newest) = check.newest.clone() {
        catalog_ids(check, &newest).await?;
        file_ids(check, &newest).await?;
    }
    column_ids(check).await
}

async fn catalog_ids(check: &mut Check<'_>, newest: &SnapshotValue) -> Result<(), ReadError> {
    let counter = ("next_catalog_id", newest.next_catalog_id);
    versioned::<SchemaKey>(check, counter, |key| key.schema_id).await?;
    versioned::<TableKey>(check, counter, |key| key.table_id).await?;
    versioned::<ViewKey>(check, counter, |key| key.view_id).await?;
    versioned::<MacroKey>(check, counter, |key| key.macro_id).await?;
    versioned::<PartitionKey>(check, counter, |key| key.partition_id).await?;
    versioned::<SortKey>(check, counter, |key| key.sort_id).await?;
    versioned::<IndexDefinitionKey>(check, counter, |key| key.index_id).await
}

async fn file_ids(check: &mut Check<'_>, newest: &SnapshotValue) -> Result<(), ReadError> {
    let counter = ("next_file_id", newest.next_file_id);
    versioned::<DataFileKey>(check, counter, |key| key.data_file_id).await?;
    versioned::<DeleteFileKey>(check, counter, |key| key.delete_file_id).await?;
    below::<MappingKey>(check, counter, |key| key.mapping_id).await
}

async fn versioned<K>(check: &mut Check<'_>, counter: (&str, u64), id: fn(&K) -> u64) -> Result<(), ReadError>
where
    K: Versioned + Stored,
    History<K>: Stored,
{
    below::<K>(check, counter, id).await?;
    below::<History<K>>(check, counter, |key| id(&key.entity)).await
}

async fn below<K: Stored>(
    check: &mut Check<'_>,
    (name, counter): (&str, u64),
    id: impl Fn(&K) -> u64,
) -> Result<(), ReadError> {
    let mut scan = check.scan::<K>(K::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        let id = id(&key);
        if id >= counter {
            let detail = format!("its id is {id}, and {name} of the newest snapshot is {counter}");
            check.found(Invariant::IdsBelowCounters, &key, detail);
        }
    }
    Ok(())
}

/// The next column id of each live table, where the table has a counter.
async fn column_ids(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut counters = BTreeMap::new();
    let mut tables = check.scan::<TableKey>(TableKey::scan()).await?;
    while let Some((key, value)) = tables.next().await? {
        if value.next_column_id > 0 {
            counters.insert(key.table_id, value.next_column_id);
        }
    }
    of_table::<ColumnKey>(check, &counters, |key| (key.table_id, key.column_id)).await?;
    of_table::<History<ColumnKey>>(check, &counters, |key| {
        (key.entity.table_id, key.entity.column_id)
    })
    .await
}

async fn of_table<K: Stored>(
    check: &mut Check<'_>,
    counters: &BTreeMap<u64, u64>,
    ids: fn(&K) -> (u64, u64),
) -> Result<(), ReadError> {
    let mut scan = check.scan::<K>(K::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        let (table_id, column_id) = ids(&key);
        if let Some(counter) = counters.get(&table_id)
            && column_id >= *counter
        {
            let detail = format!("its id is {column_id}, and the table's next is {counter}");
            check.found(Invariant::IdsBelowCounters, &key, detail);
        }
    }
    Ok(())
}
