//! `ducklake_schema_versions`: one record per table and begin snapshot, both only in the key.

use std::collections::{BTreeMap, HashSet};

use moraine_codec::Record;
use moraine_codec::format::Format;
use moraine_codec::proto::{DataFileValue, SchemaVersionValue};
use moraine_commit::{CatalogTransaction, Change};
use moraine_keys::{DataFileKey, FormatKey, History, Key, Kind, SchemaVersionKey, SnapshotKey};
use moraine_store::{ReadExt, Staging};

use crate::cell::{CellError, noting_null, read_cell, show_id, take_id, take_key};
use crate::error::TableError;
use crate::filter::CompiledFilter;
use crate::plan::{KeyIds, Plan, RecordSource, leading_plan};
use crate::relation::Relation;
use crate::relations::records::Assignments;
use crate::row::{Place, Row, RowAddress};
use crate::scan::Sorted;
use crate::value::Value;

const RELATION: Relation = Relation::SchemaVersions;
const BEGIN: usize = 0;
const VERSION: usize = 1;
const TABLE: usize = 2;

/// The rows that pass, by begin snapshot and table.
pub(crate) async fn scan(
    read: &Staging,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    let ids = KeyIds::of(filter, [Some(TABLE), None, None]);
    let plan: Plan<SchemaVersionKey> = leading_plan(&ids);
    let mut source = RecordSource::new(plan);
    let mut rows = Vec::new();
    let mut derived = missing_rows(read).await?.into_iter();
    loop {
        let stored = source.next(read).await?;
        let Some((key, record)) = stored.or_else(|| derived.next()) else {
            break;
        };
        let address = RowAddress(Place::Record(key.to_key()));
        if filter
            .addresses()
            .is_some_and(|addresses| !addresses.contains(&address))
        {
            continue;
        }
        let get = |column| cell(&key, &record, column).map_err(|error| error.at(RELATION, column));
        if !filter.matches(get)? {
            continue;
        }
        let values = projection
            .iter()
            .map(|column| get(*column))
            .collect::<Result<_, _>>()?;
        rows.push(([key.begin_snapshot, key.table_id, 0], Row { values, address }));
    }
    Ok(Sorted::new(rows))
}

/// Rows that older software kept within its snapshots, or lost when they expired; from the format on that has all
/// directories, its migration has written them. A planner of compactions that finds no row for a file gives up, so a table
/// whose oldest file is older than all its rows gets one for that file.
async fn missing_rows(read: &Staging) -> Result<Vec<(SchemaVersionKey, SchemaVersionValue)>, TableError> {
    let stamp = read.value(&FormatKey).await?;
    if stamp.is_none_or(|stamp| stamp.format_version >= Format::DeleteTargetDirectory.number()) {
        return Ok(Vec::new());
    }
    let mut stored: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (key, value) in read.records::<SchemaVersionKey>(SchemaVersionKey::scan()).await? {
        stored.insert((key.table_id, key.begin_snapshot), value.schema_version);
    }
    let mut all = stored.clone();
    let mut newest = 0;
    let mut snapshots = read.record_scan::<SnapshotKey>(SnapshotKey::scan()).await?;
    while let Some((_, snapshot)) = snapshots.next().await? {
        newest = snapshot.schema_version;
        for table_id in &snapshot.schema_changed_table_ids {
            all.entry((*table_id, snapshot.snapshot_id))
                .or_insert(snapshot.schema_version);
        }
    }
    let mut oldest_files: BTreeMap<u64, u64> = BTreeMap::new();
    let mut note = |file: &DataFileValue| {
        let oldest = oldest_files.entry(file.table_id).or_insert(file.begin_snapshot);
        *oldest = file.begin_snapshot.min(*oldest);
    };
    let mut files = read.record_scan::<DataFileKey>(DataFileKey::scan()).await?;
    while let Some((_, file)) = files.next().await? {
        note(&file);
    }
    let mut ended = read
        .record_scan::<History<DataFileKey>>(History::<DataFileKey>::scan())
        .await?;
    while let Some((_, file)) = ended.next().await? {
        note(&file);
    }
    for (table_id, oldest) in oldest_files {
        let first = all.range((table_id, 0)..=(table_id, u64::MAX)).next();
        let first = first.map(|((_, begin), version)| (*begin, *version));
        if first.is_none_or(|(begin, _)| begin > oldest) {
            all.insert((table_id, oldest), first.map_or(newest, |(_, version)| version));
        }
    }
    let missing = all.into_iter().filter(|(row, _)| !stored.contains_key(row));
    let row = |((table_id, begin_snapshot), schema_version)| {
        let key = SchemaVersionKey {
            table_id,
            begin_snapshot,
        };
        let value = SchemaVersionValue {
            schema_version,
            ..SchemaVersionValue::default()
        };
        (key, value)
    };
    Ok(missing.map(row).collect())
}

fn cell(key: &SchemaVersionKey, record: &SchemaVersionValue, column: usize) -> Result<Value, CellError> {
    match column {
        BEGIN => show_id(key.begin_snapshot),
        VERSION => read_cell!(record, id, schema_version, 1),
        TABLE => show_id(key.table_id),
        _ => Err(CellError::NoColumn),
    }
}

fn set(
    key: &mut SchemaVersionKey,
    record: &mut SchemaVersionValue,
    column: usize,
    cell: &Value,
) -> Result<(), TableError> {
    let set = || -> Result<(), CellError> {
        match column {
            BEGIN => key.begin_snapshot = take_key(cell)?,
            VERSION => record.schema_version = noting_null(record, 1, take_id(cell)?),
            TABLE => key.table_id = take_key(cell)?,
            _ => return Err(CellError::NoColumn),
        }
        Ok(())
    };
    let mut set = set;
    set().map_err(|error| error.at(RELATION, column))
}

pub(crate) async fn insert(tx: &mut CatalogTransaction, rows: &[Vec<Value>]) -> Result<u64, TableError> {
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        let (mut key, mut record) = (SchemaVersionKey::default(), SchemaVersionValue::default());
        for (column, cell) in row.iter().enumerate() {
            set(&mut key, &mut record, column, cell)?;
        }
        changes.push(Change::Insert(Record::from((key, record))));
    }
    tx.stage(changes).await?;
    Ok(rows.len() as u64)
}

pub(crate) async fn update(tx: &mut CatalogTransaction, rows: &Assignments) -> Result<u64, TableError> {
    let mut changes = Vec::with_capacity(rows.len());
    let mut seen = HashSet::new();
    for (address, assignments) in rows {
        let Some((old, mut key, mut record)) = load(tx.read(), address).await? else {
            continue;
        };
        if !seen.insert(old.clone()) {
            continue;
        }
        for (column, cell) in assignments {
            set(&mut key, &mut record, *column, cell)?;
        }
        changes.push(Change::Replace {
            old,
            new: Record::from((key, record)),
        });
    }
    let count = changes.len() as u64;
    tx.stage(changes).await?;
    Ok(count)
}

pub(crate) async fn delete(tx: &mut CatalogTransaction, rows: &[RowAddress]) -> Result<u64, TableError> {
    let mut changes = Vec::with_capacity(rows.len());
    let mut seen = HashSet::new();
    for address in rows {
        if let Some((key, ..)) = load(tx.read(), address).await?
            && seen.insert(key.clone())
        {
            changes.push(Change::Remove { key });
        }
    }
    let count = changes.len() as u64;
    tx.stage(changes).await?;
    Ok(count)
}

async fn load(
    read: &Staging,
    address: &RowAddress,
) -> Result<Option<(Key, SchemaVersionKey, SchemaVersionValue)>, TableError> {
    let Some(stored) = address.record_key() else {
        return Ok(None);
    };
    let Ok(key) = SchemaVersionKey::from_key(stored.clone()) else {
        return Ok(None);
    };
    Ok(read
        .value(&key)
        .await?
        .map(|record| (stored.clone(), key, record)))
}
