//! `ducklake_inlined_data_tables`: the inlined tables that are registered. There is no record of a row; a row is a schema
//! record without the marker that takes it off the list, or a registration whose table has yet to be created.

use std::collections::BTreeSet;

use moraine_commit::{CatalogTransaction, InlineChange};

use crate::cell::{CellError, show_id, take_key, take_text};
use crate::error::TableError;
use crate::filter::{CompiledFilter, Ids};
use crate::relation::Relation;
use crate::row::{Place, Row, RowAddress};
use crate::scan::Sorted;
use crate::value::Value;

const RELATION: Relation = Relation::InlinedDataTables;
const TABLE: usize = 0;
const NAME: usize = 1;
const VERSION: usize = 2;

/// The rows that pass, by table and schema version.
pub(crate) async fn scan(
    tx: &CatalogTransaction,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    let tables = filter.ids(TABLE);
    let mut listed: BTreeSet<(u64, u64)> = tx
        .pending_registrations()
        .iter()
        .filter(|(table_id, _)| tables.contains(*table_id))
        .copied()
        .collect();
    let versions = match &tables {
        Ids::Points(points) => {
            let mut versions = Vec::new();
            for table_id in points {
                versions.extend(moraine_inline::versions(tx.read(), Some(*table_id)).await?);
            }
            versions
        }
        _ => moraine_inline::versions(tx.read(), None).await?,
    };
    listed.extend(
        versions
            .into_iter()
            .filter(|found| found.2)
            .map(|found| (found.0, found.1)),
    );
    let mut rows = Vec::new();
    for (table_id, schema_version) in listed {
        let get = |column| cell(table_id, schema_version, column).map_err(|error| error.at(RELATION, column));
        let address = RowAddress(Place::Registration {
            table_id,
            schema_version,
        });
        if filter
            .addresses()
            .is_some_and(|addresses| !addresses.contains(&address))
            || !filter.matches(get)?
        {
            continue;
        }
        let values = projection
            .iter()
            .map(|column| get(*column))
            .collect::<Result<_, _>>()?;
        rows.push(Row { values, address });
    }
    Ok(Sorted::in_order(rows))
}

fn cell(table_id: u64, schema_version: u64, column: usize) -> Result<Value, CellError> {
    match column {
        TABLE => show_id(table_id),
        NAME => Ok(Value::text(
            Relation::InlinedData {
                table_id,
                schema_version,
            }
            .name(),
        )),
        VERSION => show_id(schema_version),
        _ => Err(CellError::NoColumn),
    }
}

pub(crate) async fn insert(tx: &mut CatalogTransaction, rows: &[Vec<Value>]) -> Result<u64, TableError> {
    for row in rows {
        let at = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let id = |column| take_key(at(column)).map_err(|error| error.at(RELATION, column));
        let (table_id, schema_version) = (id(TABLE)?, id(VERSION)?);
        let name = take_text(at(NAME)).map_err(|error| error.at(RELATION, NAME))?;
        let expected = Relation::InlinedData {
            table_id,
            schema_version,
        }
        .name();
        if name.as_deref() != Some(expected.as_str()) {
            let detail = format!(
                "the table_name of table {table_id} at schema version {schema_version} is {expected}, not {}",
                name.as_deref().unwrap_or("null")
            );
            return Err(TableError::Constraint {
                relation: RELATION,
                detail,
            });
        }
        if is_listed(tx, table_id, schema_version).await? {
            return Err(TableError::Duplicate {
                relation: RELATION,
                key: expected,
            });
        }
        tx.inline(InlineChange::Register {
            table_id,
            schema_version,
        })
        .await?;
    }
    Ok(rows.len() as u64)
}

pub(crate) async fn delete(tx: &mut CatalogTransaction, rows: &[RowAddress]) -> Result<u64, TableError> {
    let mut removed = 0;
    for address in rows {
        let Place::Registration {
            table_id,
            schema_version,
        } = address.0
        else {
            continue;
        };
        if is_listed(tx, table_id, schema_version).await? {
            tx.inline(InlineChange::Deregister {
                table_id,
                schema_version,
            })
            .await?;
            removed += 1;
        }
    }
    Ok(removed)
}

async fn is_listed(tx: &CatalogTransaction, table_id: u64, schema_version: u64) -> Result<bool, TableError> {
    if tx.pending_registrations().contains(&(table_id, schema_version)) {
        return Ok(true);
    }
    let versions = moraine_inline::versions(tx.read(), Some(table_id)).await?;
    Ok(versions.contains(&(table_id, schema_version, true)))
}

/// The refusal of an update.
pub(crate) fn update_refused() -> TableError {
    let detail = "a registration is inserted and deleted, not changed".to_owned();
    TableError::Unsupported {
        relation: RELATION,
        detail,
    }
}
