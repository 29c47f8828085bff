//! Scans and changes of relations whose rows are records, whatever the relation.

use std::collections::HashSet;

use moraine_codec::Stored;
use moraine_commit::{CatalogTransaction, Change};
use moraine_keys::{Key, Kind};
use moraine_store::{ReadExt, Staging};

use crate::error::TableError;
use crate::filter::CompiledFilter;
use crate::plan::{KeyIds, RecordSource};
use crate::relations::{KeyColumns, RecordRelation};
use crate::row::{Place, Row, RowAddress};
use crate::scan::{RowStream, SCAN_BATCH_ROWS, Sorted};
use crate::value::Value;

/// What a statement changes: rows by address, and the new value of each column set.
pub(crate) type Assignments = Vec<(RowAddress, Vec<(usize, Value)>)>;

/// Which records of a relation a filter needs.
pub(crate) struct Wanted {
    ids: KeyIds,
    live: bool,
    past: bool,
    keys: Option<Vec<Key>>,
}

impl Wanted {
    /// `end` is the position of `end_snapshot`, where it says whether the record is live.
    pub(crate) fn of(filter: &CompiledFilter, key_columns: KeyColumns, end: Option<usize>) -> Self {
        let keys = filter.addresses().map(|addresses| {
            let distinct: HashSet<&Key> = addresses.iter().filter_map(RowAddress::record_key).collect();
            let mut keys: Vec<Key> = distinct.into_iter().cloned().collect();
            keys.sort();
            keys
        });
        Self {
            ids: KeyIds::of(filter, key_columns),
            live: end.is_none_or(|end| !filter.refuses_null(end)),
            past: end.is_none_or(|end| !filter.requires_null(end)),
            keys,
        }
    }
}

/// Calls `each` with every record that the filter may want, live ones first, in key order.
pub(crate) async fn visit<R: RecordRelation>(
    read: &Staging,
    wanted: &Wanted,
    mut each: impl FnMut(Key, R::Record) -> Result<(), TableError> + Send,
) -> Result<(), TableError> {
    if let Some(keys) = &wanted.keys {
        for key in keys {
            if let Some(record) = load::<R>(read, key).await? {
                each(key.clone(), record)?;
            }
        }
        return Ok(());
    }
    if wanted.live {
        let source = RecordSource::with_third(R::plan(&wanted.ids), wanted.ids.third.clone());
        drain(source, read, R::third, &mut each).await?;
    }
    if wanted.past
        && let Some(plan) = R::past_plan(&wanted.ids)
    {
        drain(RecordSource::new(plan), read, |_| 0, &mut each).await?;
    }
    Ok(())
}

async fn drain<K: Stored>(
    mut source: RecordSource<K>,
    read: &Staging,
    third: fn(&K) -> u64,
    each: &mut (impl FnMut(Key, K::Value) -> Result<(), TableError> + Send),
) -> Result<(), TableError> {
    while let Some((key, record)) = source.next_where(read, third).await? {
        each(key.to_key(), record)?;
    }
    Ok(())
}

/// The record under a key of the relation, live or ended; `None` when there is none, or the key is of another relation.
pub(crate) async fn load<R: RecordRelation>(
    read: &Staging,
    key: &Key,
) -> Result<Option<R::Record>, TableError> {
    if let Ok(live) = R::Key::from_key(key.clone()) {
        return Ok(read.value(&live).await?);
    }
    match R::Past::from_key(key.clone()) {
        Ok(past) => Ok(read.value(&past).await?),
        Err(_) => Ok(None),
    }
}

/// The rows that pass, sorted.
pub(crate) async fn scan_sorted<R: RecordRelation>(
    read: &Staging,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    let wanted = Wanted::of(filter, R::KEY_COLUMNS, R::END);
    let mut rows = Vec::new();
    visit::<R>(read, &wanted, |key, record| {
        if let Some(row) = row::<R>(filter, projection, key, &record)? {
            rows.push((R::order(&record), row));
        }
        Ok(())
    })
    .await?;
    Ok(Sorted::new(rows))
}

/// The row of a record, if it passes.
pub(crate) fn row<R: RecordRelation>(
    filter: &CompiledFilter,
    projection: &[usize],
    key: Key,
    record: &R::Record,
) -> Result<Option<Row>, TableError> {
    let get = |column| R::get(record, column).map_err(|error| error.at(R::RELATION, column));
    if !R::is_row(record) || !filter.matches(get)? {
        return Ok(None);
    }
    let values = projection
        .iter()
        .map(|column| get(*column))
        .collect::<Result<_, _>>()?;
    Ok(Some(Row {
        values,
        address: RowAddress(Place::Record(key)),
    }))
}

/// Rows of a relation whose keys are in row order, read as they are asked for.
pub(crate) struct RecordStream<'a, R: RecordRelation> {
    read: &'a Staging,
    source: RecordSource<R::Key>,
    filter: CompiledFilter,
    projection: Vec<usize>,
}

impl<'a, R: RecordRelation> RecordStream<'a, R> {
    pub(crate) fn new(read: &'a Staging, filter: CompiledFilter, projection: &[usize]) -> Self {
        let ids = KeyIds::of(&filter, R::KEY_COLUMNS);
        let source = RecordSource::with_third(R::plan(&ids), ids.third);
        Self {
            read,
            source,
            filter,
            projection: projection.to_vec(),
        }
    }
}

#[async_trait::async_trait]
impl<R: RecordRelation> RowStream for RecordStream<'_, R> {
    async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, TableError> {
        let mut rows = Vec::new();
        while rows.len() < SCAN_BATCH_ROWS {
            let Some((key, record)) = self.source.next_where(self.read, R::third).await? else {
                break;
            };
            rows.extend(row::<R>(&self.filter, &self.projection, key.to_key(), &record)?);
        }
        Ok((!rows.is_empty()).then_some(rows))
    }
}

/// The record of a new row.
pub(crate) fn build<R: RecordRelation>(row: &[Value]) -> Result<R::Record, TableError> {
    let mut record = R::Record::default();
    for (column, cell) in row.iter().enumerate() {
        R::set(&mut record, column, cell).map_err(|error| error.at(R::RELATION, column))?;
    }
    Ok(record)
}

/// Inserts rows.
pub(crate) async fn insert<R: RecordRelation>(
    tx: &mut CatalogTransaction,
    rows: &[Vec<Value>],
) -> Result<u64, TableError> {
    let changes = rows
        .iter()
        .map(|row| build::<R>(row).map(|record| Change::Insert(R::stored(record))))
        .collect::<Result<Vec<_>, _>>()?;
    let count = changes.len() as u64;
    tx.stage(changes).await?;
    Ok(count)
}

/// Changes rows; a row named twice is changed once, as in Postgres.
pub(crate) async fn update<R: RecordRelation>(
    tx: &mut CatalogTransaction,
    rows: &Assignments,
) -> Result<u64, TableError> {
    let mut seen = HashSet::new();
    let mut changes = Vec::with_capacity(rows.len());
    for (address, assignments) in rows {
        let Place::Record(key) = &address.0 else {
            continue;
        };
        if !seen.insert(key) {
            continue;
        }
        let Some(mut record) = load::<R>(tx.read(), key).await? else {
            continue;
        };
        for (column, cell) in assignments {
            R::set(&mut record, *column, cell).map_err(|error| error.at(R::RELATION, *column))?;
        }
        changes.push(Change::Replace {
            old: key.clone(),
            new: R::stored(record),
        });
    }
    let count = changes.len() as u64;
    tx.stage(changes).await?;
    Ok(count)
}

/// Deletes rows for good.
pub(crate) async fn delete<R: RecordRelation>(
    tx: &mut CatalogTransaction,
    rows: &[RowAddress],
) -> Result<u64, TableError> {
    let mut seen = HashSet::new();
    let mut changes = Vec::with_capacity(rows.len());
    for address in rows {
        let Place::Record(key) = &address.0 else {
            continue;
        };
        if seen.insert(key) && load::<R>(tx.read(), key).await?.is_some() {
            changes.push(Change::Remove { key: key.clone() });
        }
    }
    let count = changes.len() as u64;
    tx.stage(changes).await?;
    Ok(count)
}
