//! The rows of an inlined delete table: rows of data files deleted in the catalog, by file and row.

use std::collections::BTreeSet;

use moraine_commit::{CatalogTransaction, InlineChange};

use crate::cell::{CellError, show_id, take_key};
use crate::error::TableError;
use crate::filter::{CompiledFilter, Ids};
use crate::relation::Relation;
use crate::row::{Place, Row, RowAddress};
use crate::scan::Sorted;
use crate::value::Value;

const FILE: usize = 0;
const ROW: usize = 1;
const BEGIN: usize = 2;
const NAMES: [&str; 3] = ["file_id", "row_id", "begin_snapshot"];

/// One row: data file, row, begin snapshot.
type Deleted = (u64, u64, u64);

fn cell((file, row, begin): Deleted, column: usize) -> Result<Value, CellError> {
    match column {
        FILE => show_id(file),
        ROW => show_id(row),
        BEGIN => show_id(begin),
        _ => Err(CellError::NoColumn),
    }
}

fn at(error: CellError, relation: Relation, column: usize) -> TableError {
    let name = NAMES.get(column).copied().unwrap_or("?").to_owned();
    match error {
        CellError::Null => TableError::NotNull {
            relation,
            column: name,
        },
        CellError::Range(value, detail) => TableError::OutOfRange {
            relation,
            column: name,
            value: value.to_string(),
            detail,
        },
        CellError::Type(expected, value) => TableError::Type {
            relation,
            column: name,
            expected: expected.to_owned(),
            found: value.type_name(),
        },
        CellError::Corrupt(detail) => TableError::Corrupt {
            relation,
            detail: format!("{name}: {detail}"),
        },
        _ => TableError::Width {
            relation,
            expected: NAMES.len(),
            found: column + 1,
        },
    }
}

/// The rows that pass, by file and row.
pub(crate) async fn scan(
    tx: &CatalogTransaction,
    table_id: u64,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    let relation = Relation::InlinedDelete { table_id };
    let mut rows = Vec::new();
    for deleted in matching(tx, table_id, &files(filter)).await? {
        let get = |column| cell(deleted, column).map_err(|error| at(error, relation, column));
        let place = Place::InlinedDelete {
            data_file_id: deleted.0,
            row_id: deleted.1,
        };
        let address = RowAddress(place);
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

/// The files that can pass: by the filter's ids, or by those of its addresses.
fn files(filter: &CompiledFilter) -> Ids {
    let by_id = filter.ids(FILE);
    let Some(addresses) = filter.addresses() else {
        return by_id;
    };
    let points: BTreeSet<u64> = addresses
        .iter()
        .filter_map(identity)
        .map(|(file, _)| file)
        .collect();
    by_id.intersect(Ids::Points(points.into_iter().collect()))
}

fn identity(address: &RowAddress) -> Option<(u64, u64)> {
    match address.0 {
        Place::InlinedDelete { data_file_id, row_id } => Some((data_file_id, row_id)),
        _ => None,
    }
}

async fn matching(tx: &CatalogTransaction, table_id: u64, files: &Ids) -> Result<Vec<Deleted>, TableError> {
    let Some((first, last)) = files.bounds() else {
        return Ok(Vec::new());
    };
    let Ids::Points(points) = files else {
        return Ok(moraine_inline::file_deletes(tx.read(), table_id, first..=last).await?);
    };
    let mut found = Vec::new();
    for file in points {
        found.extend(moraine_inline::file_deletes(tx.read(), table_id, *file..=*file).await?);
    }
    Ok(found)
}

pub(crate) async fn insert(
    tx: &mut CatalogTransaction,
    table_id: u64,
    rows: &[Vec<Value>],
) -> Result<u64, TableError> {
    let relation = Relation::InlinedDelete { table_id };
    let mut deleted = Vec::with_capacity(rows.len());
    for row in rows {
        let id = |column: usize| {
            let cell = row.get(column).unwrap_or(&Value::Null);
            take_key(cell).map_err(|error| at(error, relation, column))
        };
        deleted.push((id(FILE)?, id(ROW)?, id(BEGIN)?));
    }
    if !deleted.is_empty() {
        tx.inline(InlineChange::InsertFileDeletes {
            table_id,
            rows: deleted,
        })
        .await?;
    }
    Ok(rows.len() as u64)
}

pub(crate) async fn delete(
    tx: &mut CatalogTransaction,
    table_id: u64,
    rows: &[RowAddress],
) -> Result<u64, TableError> {
    let wanted: BTreeSet<(u64, u64)> = rows.iter().filter_map(identity).collect();
    let files: BTreeSet<u64> = wanted.iter().map(|(file, _)| *file).collect();
    let found = matching(tx, table_id, &Ids::Points(files.into_iter().collect())).await?;
    let rows: Vec<(u64, u64)> = found
        .into_iter()
        .map(|(file, row, _)| (file, row))
        .filter(|row| wanted.contains(row))
        .collect();
    if rows.is_empty() {
        return Ok(0);
    }
    let count = rows.len() as u64;
    tx.inline(InlineChange::RemoveFileDeletes { table_id, rows })
        .await?;
    Ok(count)
}

/// The refusal of an update.
pub(crate) fn update_refused(table_id: u64) -> TableError {
    let detail = "a deleted row is inserted and deleted here, not changed".to_owned();
    TableError::Unsupported {
        relation: Relation::InlinedDelete { table_id },
        detail,
    }
}
