//! The rows of an inlined data table: which versions there are is known without reading a chunk, user columns are read
//! window by window.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use moraine_commit::{CatalogTransaction, InlineChange};
use moraine_inline::{EndPredicate, RowIds, RowPredicate, RowVersion, Selection};
use moraine_store::Staging;

use crate::cell::{CellError, show_id, take_id, take_key};
use crate::error::TableError;
use crate::filter::{CompiledFilter, Ids};
use crate::inlined::decode::decode;
use crate::inlined::encode::{Refused, encode};
use crate::inlined::form::Form;
use crate::inlined::tables::form_of;
use crate::relation::Relation;
use crate::relations::records::Assignments;
use crate::row::{Place, Row, RowAddress};
use crate::scan::RowStream;
use crate::schema::RelationSchema;
use crate::value::Value;

/// Rows whose user columns are read at once.
const WINDOW_ROWS: usize = 1024;

const ROW_ID: usize = 0;
const BEGIN: usize = 1;
const END: usize = 2;
/// Columns before the user's.
const SYSTEM: usize = 3;

/// One inlined data table.
#[derive(Clone, Copy)]
pub(crate) struct InlinedTable {
    pub(crate) table_id: u64,
    pub(crate) schema_version: u64,
}

impl InlinedTable {
    fn relation(self) -> Relation {
        Relation::InlinedData {
            table_id: self.table_id,
            schema_version: self.schema_version,
        }
    }

    async fn select(
        self,
        tx: &CatalogTransaction,
        predicate: &RowPredicate,
    ) -> Result<Selection, TableError> {
        let InlinedTable {
            table_id,
            schema_version,
        } = self;
        let directories = tx.directories();
        Ok(moraine_inline::select(tx.read(), &directories, table_id, schema_version, predicate).await?)
    }
}

/// The rows of a scan, by row id and begin snapshot.
pub(crate) struct DataStream<'a> {
    read: &'a Staging,
    relation: Relation,
    selection: Selection,
    next: usize,
    filter: CompiledFilter,
    projection: Vec<usize>,
    /// The user columns to read: position at the door, position in the chunk, form.
    needed: Vec<(usize, usize, Form)>,
}

impl<'a> DataStream<'a> {
    pub(crate) async fn open(
        tx: &'a CatalogTransaction,
        table: InlinedTable,
        filter: CompiledFilter,
        projection: &[usize],
    ) -> Result<Self, TableError> {
        let mut selection = table.select(tx, &predicate(&filter)).await?;
        selection.retain(|version| {
            filter.matches_where(|column| column < SYSTEM, |column| system_cell(version, column))
        });
        let wanted: BTreeSet<usize> = projection
            .iter()
            .copied()
            .chain(filter.columns())
            .filter(|column| *column >= SYSTEM)
            .collect();
        let mut needed = Vec::with_capacity(wanted.len());
        for column in wanted {
            let position = column - SYSTEM;
            let Some(field) = selection.schema().fields().get(position) else {
                return Err(TableError::Width {
                    relation: table.relation(),
                    expected: SYSTEM + selection.schema().fields().len(),
                    found: column + 1,
                });
            };
            needed.push((column, position, form_of(table.relation(), field)?));
        }
        let (relation, projection) = (table.relation(), projection.to_vec());
        Ok(Self {
            read: tx.read(),
            relation,
            selection,
            next: 0,
            filter,
            projection,
            needed,
        })
    }

    async fn window(&mut self) -> Result<Vec<Row>, TableError> {
        let end = (self.next + WINDOW_ROWS).min(self.selection.rows().len());
        let range = self.next..end;
        self.next = end;
        let positions: Vec<usize> = self.needed.iter().map(|(_, position, _)| *position).collect();
        let batch = match positions.is_empty() {
            true => None,
            false => Some(
                self.selection
                    .window(self.read, range.clone(), &positions)
                    .await?,
            ),
        };
        let versions = self.selection.rows().get(range).unwrap_or_default();
        let mut rows = Vec::with_capacity(versions.len());
        for (index, version) in versions.iter().enumerate() {
            let get = |column| self.cell(version, batch.as_ref(), index, column);
            if !self.filter.matches(get)? {
                continue;
            }
            let values = self
                .projection
                .iter()
                .map(|column| get(*column))
                .collect::<Result<_, _>>()?;
            let place = Place::InlinedRow {
                row_id: version.row_id,
                begin_snapshot: version.begin_snapshot,
            };
            rows.push(Row {
                values,
                address: RowAddress(place),
            });
        }
        Ok(rows)
    }

    fn cell(
        &self,
        version: &RowVersion,
        batch: Option<&RecordBatch>,
        index: usize,
        column: usize,
    ) -> Result<Value, TableError> {
        if column < SYSTEM {
            return Ok(system_cell(version, column));
        }
        let place = self.needed.binary_search_by_key(&column, |(door, ..)| *door).ok();
        let found = place.and_then(|place| {
            let (_, _, form) = self.needed.get(place)?;
            decode(*form, batch?.columns().get(place)?, index)
        });
        found.ok_or_else(|| TableError::Corrupt {
            relation: self.relation,
            detail: format!(
                "column {} of row {} at snapshot {} does not hold what the table's schema says",
                column + 1,
                version.row_id,
                version.begin_snapshot
            ),
        })
    }
}

#[async_trait::async_trait]
impl RowStream for DataStream<'_> {
    async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, TableError> {
        while self.next < self.selection.rows().len() {
            let rows = self.window().await?;
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }
}

fn system_cell(version: &RowVersion, column: usize) -> Value {
    let shown = match column {
        ROW_ID => show_id(version.row_id),
        BEGIN => show_id(version.begin_snapshot),
        _ => version.end_snapshot.map_or(Ok(Value::Null), show_id),
    };
    // Row ids and snapshots beyond BIGINT are refused when they are written.
    shown.unwrap_or(Value::Null)
}

/// What a filter says about row ids and snapshots, for the part that reads no chunk.
fn predicate(filter: &CompiledFilter) -> RowPredicate {
    let (row_ids, begin, end) = (filter.ids(ROW_ID), filter.ids(BEGIN), filter.ids(END));
    let none = RowPredicate::exactly([]);
    let Some(begin_bounds) = begin.bounds() else {
        return none;
    };
    let mut predicate = match filter.addresses() {
        None => RowPredicate::default(),
        Some(addresses) => RowPredicate::exactly(addresses.iter().filter_map(identity)),
    };
    if predicate.identities.is_none() {
        predicate.row_ids = match row_ids {
            Ids::All => RowIds::all(),
            Ids::Range(first, last) => RowIds::within(first..=last),
            Ids::Points(points) => points.into_iter().collect(),
        };
    }
    predicate.begin = begin_bounds.0..=begin_bounds.1;
    if filter.requires_null(END) {
        predicate.end = EndPredicate::Live;
    } else if end != Ids::All {
        match end.bounds() {
            Some((first, last)) => predicate.end = EndPredicate::Within(first..=last),
            None => return none,
        }
    }
    predicate
}

fn identity(address: &RowAddress) -> Option<(u64, u64)> {
    match address.0 {
        Place::InlinedRow {
            row_id,
            begin_snapshot,
        } => Some((row_id, begin_snapshot)),
        _ => None,
    }
}

/// Inserts rows; each begins a version that nothing ends yet.
pub(crate) async fn insert(
    tx: &mut CatalogTransaction,
    table: InlinedTable,
    described: &RelationSchema,
    rows: &[Vec<Value>],
) -> Result<u64, TableError> {
    let relation = table.relation();
    let Some(schema) = moraine_inline::schema(tx.read(), table.table_id, table.schema_version).await? else {
        return Err(TableError::Missing { relation });
    };
    let mut groups: BTreeMap<u64, Vec<(u64, &[Value])>> = BTreeMap::new();
    for row in rows {
        let at = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let id = |column| take_key(at(column)).map_err(|error| at_column(error, relation, described, column));
        if !at(END).is_null() {
            let detail = "insert rows with a null end_snapshot, then set it".to_owned();
            return Err(TableError::Unsupported { relation, detail });
        }
        groups.entry(id(BEGIN)?).or_default().push((id(ROW_ID)?, row));
    }
    for (begin_snapshot, mut members) in groups {
        // Chunks hold runs of consecutive row ids.
        members.sort_by_key(|(row_id, _)| *row_id);
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for (position, field) in schema.fields().iter().enumerate() {
            let column = SYSTEM + position;
            let form = form_of(relation, field)?;
            let cells = members
                .iter()
                .map(|(_, row)| row.get(column).unwrap_or(&Value::Null));
            let array = encode(form, cells);
            arrays.push(array.map_err(|failure| refused(failure, relation, described, column, form))?);
        }
        let row_ids: Vec<u64> = members.iter().map(|(row_id, _)| *row_id).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(row_ids.len()));
        let batch =
            RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options).map_err(|error| {
                TableError::Definition {
                    relation,
                    detail: error.to_string(),
                }
            })?;
        let InlinedTable {
            table_id,
            schema_version,
        } = table;
        let change = InlineChange::Insert {
            table_id,
            schema_version,
            begin_snapshot,
            row_ids,
            batch,
        };
        tx.inline(change).await?;
    }
    Ok(rows.len() as u64)
}

fn column_name(described: &RelationSchema, column: usize) -> String {
    described
        .columns
        .get(column)
        .map_or_else(|| format!("#{}", column + 1), |found| found.name.clone())
}

fn at_column(error: CellError, relation: Relation, described: &RelationSchema, column: usize) -> TableError {
    let name = column_name(described, column);
    match error {
        CellError::Null => TableError::NotNull {
            relation,
            column: name,
        },
        CellError::Type(expected, value) => TableError::Type {
            relation,
            column: name,
            expected: expected.to_owned(),
            found: value.type_name(),
        },
        CellError::Range(value, detail) => TableError::OutOfRange {
            relation,
            column: name,
            value: value.to_string(),
            detail,
        },
        other => other.at(relation, column),
    }
}

fn refused(
    (value, reason): (Value, Refused),
    relation: Relation,
    described: &RelationSchema,
    column: usize,
    form: Form,
) -> TableError {
    let name = column_name(described, column);
    match reason {
        Refused::Type => TableError::Type {
            relation,
            column: name,
            expected: form.door().sql_name(),
            found: value.type_name(),
        },
        Refused::Range(detail) => TableError::OutOfRange {
            relation,
            column: name,
            value: shown(&value),
            detail,
        },
        Refused::Text => TableError::InvalidText {
            relation,
            column: name,
            value: shown(&value),
            data_type: form.type_name().to_owned(),
        },
    }
}

/// A value for an error text.
fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Numeric(number) => number.to_string(),
        Value::Int16(number) => number.to_string(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Ends rows: nothing but `end_snapshot` of an inlined row can change.
pub(crate) async fn update(
    tx: &mut CatalogTransaction,
    table: InlinedTable,
    described: &RelationSchema,
    rows: &Assignments,
) -> Result<u64, TableError> {
    let relation = table.relation();
    let mut ends: BTreeMap<u64, BTreeSet<(u64, u64)>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (address, assignments) in rows {
        let Some(identity) = identity(address) else {
            continue;
        };
        for (column, cell) in assignments {
            if *column != END {
                let name = column_name(described, *column);
                let detail = format!("only end_snapshot of an inlined row can be set, not {name}");
                return Err(TableError::Unsupported { relation, detail });
            }
            let end = take_id(cell).map_err(|error| at_column(error, relation, described, END))?;
            let Some(end) = end else {
                let detail =
                    "end_snapshot of an inlined row cannot be set to null: what ended stays so".to_owned();
                return Err(TableError::Unsupported { relation, detail });
            };
            if seen.insert(identity) {
                ends.entry(end).or_default().insert(identity);
            }
        }
    }
    let present = present(tx, table, seen).await?;
    let mut changed = 0;
    for (end_snapshot, identities) in ends {
        let rows: Vec<(u64, u64)> = identities.intersection(&present).copied().collect();
        if !rows.is_empty() {
            changed += rows.len() as u64;
            tx.inline(InlineChange::EndRows {
                table_id: table.table_id,
                rows,
                end_snapshot,
            })
            .await?;
        }
    }
    Ok(changed)
}

/// Deletes rows for good, in one change.
pub(crate) async fn delete(
    tx: &mut CatalogTransaction,
    table: InlinedTable,
    rows: &[RowAddress],
) -> Result<u64, TableError> {
    let wanted = rows.iter().filter_map(identity).collect();
    let rows: Vec<(u64, u64)> = present(tx, table, wanted).await?.into_iter().collect();
    if rows.is_empty() {
        return Ok(0);
    }
    let count = rows.len() as u64;
    let InlinedTable {
        table_id,
        schema_version,
    } = table;
    tx.inline(InlineChange::RemoveRows {
        table_id,
        schema_version,
        rows,
    })
    .await?;
    Ok(count)
}

/// Those of the versions that are there.
async fn present(
    tx: &CatalogTransaction,
    table: InlinedTable,
    identities: BTreeSet<(u64, u64)>,
) -> Result<BTreeSet<(u64, u64)>, TableError> {
    let selection = table.select(tx, &RowPredicate::exactly(identities)).await?;
    Ok(selection
        .rows()
        .iter()
        .map(|version| (version.row_id, version.begin_snapshot))
        .collect())
}
