//! `ducklake_schema_versions`: one record per table and begin snapshot, both only in the key.

use std::collections::HashSet;

use moraine_codec::Record;
use moraine_codec::proto::SchemaVersionValue;
use moraine_commit::{CatalogTransaction, Change};
use moraine_keys::{Key, Kind, SchemaVersionKey};
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
    while let Some((key, record)) = source.next(read).await? {
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
