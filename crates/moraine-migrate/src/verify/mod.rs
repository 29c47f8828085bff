//! Whether a lake and its like in another catalog are the same: for every table the number of rows, and a sum over the hashes
//! of its rows that does not depend on their order.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use moraine_commit::{Catalog, CatalogError, CatalogTransaction};
use moraine_tables::{Column, ColumnType, Relation, TableError, Value, describe, dump};

use crate::column_types::ColumnTypes;
use crate::export::{column_types, relations};
use crate::import::query_of;
use crate::inlined_tables::{SYSTEM_COLUMNS, inlined};
use crate::lake::{LakeError, Query, Source, value_of};
use crate::progress::Progress;

/// Rows that are compared at once where a database has to be asked.
const NORMALISED_ROWS: usize = 65_536;

/// The option that says where the data files are.
const DATA_PATH: &str = "data_path";

/// How two lakes are compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerifyOptions {
    /// Whether the data path that is recorded may be another.
    pub ignore_data_path: bool,
}

/// One table on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableComparison {
    /// The table.
    pub table: String,
    /// Rows and the sum of their hashes in the store; `None` where there is no such table.
    pub here: Option<Sum>,
    /// The same in the other catalog.
    pub there: Option<Sum>,
}

impl TableComparison {
    /// Whether both sides are the same. An inlined table without rows may be missing.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.here.unwrap_or_default() == self.there.unwrap_or_default()
    }
}

/// The rows of a table, in whatever order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many they are.
    pub rows: u64,
    /// The sum of their hashes.
    pub hash: u128,
}

impl Sum {
    fn add(&mut self, row: &[Value]) {
        let half = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            for value in row {
                match value {
                    // There is one NaN, whatever its bits.
                    Value::Float32(number) if number.is_nan() => f32::NAN.to_bits().hash(&mut hasher),
                    Value::Float64(number) if number.is_nan() => f64::NAN.to_bits().hash(&mut hasher),
                    other => other.hash(&mut hasher),
                }
            }
            u128::from(hasher.finish())
        };
        self.rows += 1;
        self.hash = self.hash.wrapping_add(half(0) << 64 | half(1));
    }
}

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// There is no lake in the store.
    #[error("there is no lake in this store")]
    NoLake,
    /// The other catalog has changed while it was read.
    #[error("{catalog} has changed while it was compared; try again when nobody commits")]
    Changed {
        /// The other catalog.
        catalog: String,
    },
    /// A value of the other catalog is not of its column's type.
    #[error("{table} in {catalog}: {detail}")]
    Value {
        /// The catalog.
        catalog: String,
        /// The table.
        table: String,
        /// The value, and what it should be.
        detail: String,
    },
    /// The other catalog could not be read.
    #[error(transparent)]
    Lake(#[from] LakeError),
    /// The lake could not be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The lake could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Compares the lake of `catalog`, which may be open for reading only, with that of `source`, table by table.
///
/// # Errors
/// See [`VerifyError`].
pub async fn verify(
    catalog: &Arc<Catalog>,
    source: &mut dyn Source,
    options: &VerifyOptions,
    progress: &dyn Progress,
) -> Result<Vec<TableComparison>, VerifyError> {
    let tx = catalog.begin().await?;
    if tx.head().is_none() {
        return Err(VerifyError::NoLake);
    }
    let types = column_types(&tx).await?;
    let mut plan: BTreeMap<Relation, (Option<Vec<Column>>, Option<Query>)> = BTreeMap::new();
    for (relation, schema) in relations(&tx).await? {
        plan.insert(relation, (Some(schema.columns), None));
    }
    let there: BTreeSet<Relation> = Relation::FIXED
        .into_iter()
        .chain(inlined(source.tables()))
        .filter(|relation| source.tables().contains_key(&relation.name()))
        .collect();
    for relation in there {
        let here = plan.entry(relation).or_default();
        let columns = columns_there(source, relation, here.0.as_deref(), &tx).await?;
        here.1 = Some(query_of(&relation.name(), &columns, &[]));
    }
    let queries: Vec<Query> = plan.values().filter_map(|(_, query)| query.clone()).collect();
    source.prepare(&queries).await?;
    let mut compared = Vec::with_capacity(plan.len());
    for (relation, (columns, query)) in plan {
        let nested = nested_types(relation, columns.as_deref().unwrap_or_default(), &types);
        progress.table(&relation.name(), None);
        let counted = Counted {
            relation,
            ignore_data_path: options.ignore_data_path,
        };
        let here = match columns {
            Some(_) => Some(sum_here(&tx, counted, source, &nested, progress).await?),
            None => None,
        };
        let there = match query {
            Some(query) => Some(sum_there(source, counted, &query, progress).await?),
            None => None,
        };
        compared.push(TableComparison {
            table: relation.name(),
            here,
            there,
        });
    }
    if !source.is_unchanged().await? {
        let catalog = source.name().to_owned();
        return Err(VerifyError::Changed { catalog });
    }
    Ok(compared)
}

/// The columns by which a table is read there: as here, so that both sides are of the same types. A table that is not here is
/// read by its first columns alone, which is enough to count.
async fn columns_there(
    source: &dyn Source,
    relation: Relation,
    here: Option<&[Column]>,
    tx: &CatalogTransaction,
) -> Result<Vec<Column>, VerifyError> {
    if let Some(columns) = here {
        return Ok(columns.to_vec());
    }
    if let Some(schema) = describe(tx, relation).await? {
        return Ok(schema.columns);
    }
    let declared = source.tables().get(&relation.name()).cloned().unwrap_or_default();
    let first = declared.iter().take(SYSTEM_COLUMNS.len());
    Ok(first
        .map(|column| Column::new(&column.name, ColumnType::Int64))
        .collect())
}

/// Positions and types of the columns whose texts a database may write otherwise.
fn nested_types(relation: Relation, columns: &[Column], types: &ColumnTypes) -> Vec<(usize, String)> {
    let Relation::InlinedData {
        table_id,
        schema_version,
    } = relation
    else {
        return Vec::new();
    };
    columns
        .iter()
        .enumerate()
        .skip(SYSTEM_COLUMNS.len())
        .filter(|(_, column)| column.column_type == ColumnType::Text)
        .filter_map(|(position, column)| {
            let native = types.native_type(table_id, schema_version, &column.name)?;
            let is_nested =
                native.ends_with("[]") || native.starts_with("STRUCT(") || native.starts_with("MAP(");
            is_nested.then_some((position, native))
        })
        .collect()
}

/// Which rows of a table are compared.
#[derive(Clone, Copy)]
struct Counted {
    relation: Relation,
    ignore_data_path: bool,
}

impl Counted {
    fn has(self, row: &[Value]) -> bool {
        let is_data_path =
            || matches!(row, [Value::Text(key), _, Value::Null, _] if key.as_ref() == DATA_PATH);
        !(self.ignore_data_path && self.relation == Relation::Metadata && is_data_path())
    }
}

async fn sum_here(
    tx: &CatalogTransaction,
    counted: Counted,
    source: &dyn Source,
    nested: &[(usize, String)],
    progress: &dyn Progress,
) -> Result<Sum, VerifyError> {
    let mut sum = Sum::default();
    let mut waiting = Vec::new();
    let mut rows = dump(tx, counted.relation).await?;
    while let Some(batch) = rows.next_batch().await? {
        progress.rows(batch.len() as u64);
        if nested.is_empty() {
            batch
                .iter()
                .filter(|row| counted.has(row))
                .for_each(|row| sum.add(row));
            continue;
        }
        waiting.extend(batch);
        if waiting.len() >= NORMALISED_ROWS {
            add_normalised(&mut sum, source, nested, std::mem::take(&mut waiting)).await?;
        }
    }
    add_normalised(&mut sum, source, nested, waiting).await?;
    Ok(sum)
}

/// Adds rows, their nested values as the other side writes them.
async fn add_normalised(
    sum: &mut Sum,
    source: &dyn Source,
    nested: &[(usize, String)],
    mut rows: Vec<Vec<Value>>,
) -> Result<(), VerifyError> {
    if rows.is_empty() {
        return Ok(());
    }
    for (position, native) in nested {
        let texts: Vec<Option<String>> = rows
            .iter()
            .map(|row| match row.get(*position) {
                Some(Value::Text(text)) => Some(text.to_string()),
                _ => None,
            })
            .collect();
        let Some(normalised) = source.normalised(native, &texts).await? else {
            continue;
        };
        for (row, text) in rows.iter_mut().zip(normalised) {
            if let Some(cell) = row.get_mut(*position) {
                *cell = text.map_or(Value::Null, Value::text);
            }
        }
    }
    rows.iter().for_each(|row| sum.add(row));
    Ok(())
}

async fn sum_there(
    source: &dyn Source,
    counted: Counted,
    query: &Query,
    progress: &dyn Progress,
) -> Result<Sum, VerifyError> {
    let mut sum = Sum::default();
    let mut rows = source.rows(query).await?;
    while let Some(batch) = rows.next().await? {
        progress.rows(batch.len() as u64);
        for raw in batch {
            let mut row = Vec::with_capacity(raw.len());
            for (raw, column) in raw.iter().zip(&query.columns) {
                let value = value_of(raw, column.column_type).map_err(|detail| VerifyError::Value {
                    catalog: source.name().to_owned(),
                    table: query.table.clone(),
                    detail: format!("{}: {detail}", column.name),
                })?;
                row.push(value);
            }
            if counted.has(&row) {
                sum.add(&row);
            }
        }
    }
    Ok(sum)
}
