//! What the parts of an import share: where rows come from and go to, what is known of the whole lake, and how rows are
//! staged.

use std::collections::{BTreeMap, BTreeSet};

use moraine_commit::bulk::{BulkLoad, Changelog};
use moraine_commit::{CatalogTransaction, StageError};
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, Kind, MacroKey, PartitionKey, SchemaKey, SortKey, TableKey,
    ViewKey,
};
use moraine_tables::{Relation, TableError, Value, fixed_schema, insert_borrowed};

use crate::import::error::ImportError;
use crate::import::parents::Parents;
use crate::import::rules::number;
use crate::import::stream::{Checks, KeyedStream, shown};
use crate::lake::{Query, Source};
use crate::progress::Progress;

/// What is known of the rows of a table in files and inlined.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounts {
    /// The greatest row id there is.
    pub(crate) row_id_max: Option<u64>,
    /// Rows of its live data files.
    pub(crate) records: u64,
    /// Bytes of its live data files.
    pub(crate) bytes: u64,
}

/// What the parts of an import share.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) load: BulkLoad,
    pub(crate) checks: Checks,
    pub(crate) changelog: Changelog,
    /// Tables whose statistics the snapshots of the changelog have written, by snapshot.
    pub(crate) touched: BTreeSet<(u64, u64)>,
    /// The ids of the snapshots that the changelog covers.
    pub(crate) snapshots: BTreeSet<u64>,
    /// What rows can belong to.
    pub(crate) parents: Parents,
    pub(crate) catalog_id_max: u64,
    /// The greatest `next_catalog_id` and `next_file_id` of the snapshots so far.
    pub(crate) counters_max: [u64; 2],
    /// The greatest `schema_version` of the snapshots so far.
    pub(crate) schema_version_max: u64,
    pub(crate) file_id_max: Option<u64>,
    pub(crate) row_counts: BTreeMap<u64, RowCounts>,
    pub(crate) progress: &'a dyn Progress,
    /// Rows imported, by table.
    pub(crate) rows: BTreeMap<String, u64>,
}

impl Context<'_> {
    /// The rows of a query, grouped by the columns it is sorted by.
    pub(crate) async fn stream(&self, relation: Relation, query: &Query) -> Result<KeyedStream, ImportError> {
        Ok(KeyedStream::open(self.source, relation, query).await?)
    }

    /// Stages rows; those that the rules of the catalog refuse are noted and left out.
    pub(crate) async fn stage(
        &mut self,
        tx: &mut CatalogTransaction,
        relation: Relation,
        rows: &[Vec<Value>],
    ) -> Result<(), ImportError> {
        let staged = stage_rows(tx, relation, rows).await?;
        self.take_in(relation, staged);
        Ok(())
    }

    /// Notes what came of staging rows.
    pub(crate) fn take_in(&mut self, relation: Relation, staged: StagedRows) {
        if staged.rows == 0 && staged.left_out.is_empty() {
            return;
        }
        self.progress.rows(staged.rows + staged.left_out.len() as u64);
        *self.rows.entry(relation.name()).or_default() += staged.rows;
        for (row, detail) in staged.left_out {
            self.checks.leave_out(relation, row, detail);
        }
    }

    /// Adds everything staged to the store.
    pub(crate) async fn add(&mut self, tx: CatalogTransaction) -> Result<(), ImportError> {
        let writes = tx.into_bulk_writes().await?;
        Ok(self.load.add(writes).await?)
    }

    /// Notes the ids and the snapshots of rows with versions.
    pub(crate) fn note(&mut self, relation: Relation, rows: &[Vec<Value>]) {
        let Some((id, begin, end)) = version_columns(relation) else {
            return;
        };
        let is_file = matches!(relation, Relation::DataFile | Relation::DeleteFile);
        for row in rows {
            if let Some(id) = number(row, id) {
                if is_file {
                    self.file_id_max = self.file_id_max.max(Some(id));
                } else if relation != Relation::Column {
                    self.catalog_id_max = self.catalog_id_max.max(id);
                }
            }
            for snapshot in [number(row, begin), number(row, end)].into_iter().flatten() {
                if !self.changelog.covers(snapshot) {
                    continue;
                }
                if let Some(key) = current_key(relation, row) {
                    self.changelog.note(snapshot, key);
                }
                if is_file && let Some(table_id) = number(row, 1) {
                    self.touched.insert((snapshot, table_id));
                }
            }
        }
    }
}

/// What came of staging rows of one table.
#[derive(Debug, Default)]
pub(crate) struct StagedRows {
    /// Rows that were staged.
    pub(crate) rows: u64,
    /// Rows that the rules of the catalog refused, for a message, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

/// Stages rows, one by one where they are refused together.
pub(crate) async fn stage_rows(
    tx: &mut CatalogTransaction,
    relation: Relation,
    rows: &[Vec<Value>],
) -> Result<StagedRows, ImportError> {
    let mut staged = StagedRows::default();
    if rows.is_empty() {
        return Ok(staged);
    }
    match insert_borrowed(tx, relation, rows).await {
        Ok(_) => staged.rows = rows.len() as u64,
        Err(error) if is_about_rows(&error) => {
            for row in rows {
                match insert_borrowed(tx, relation, std::slice::from_ref(row)).await {
                    Ok(_) => staged.rows += 1,
                    Err(error) if is_about_rows(&error) => {
                        staged.left_out.push((shown(relation, row), error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(staged)
}

/// Whether an error is about the rows that were given, rather than about the store.
pub(crate) fn is_about_rows(error: &TableError) -> bool {
    match error {
        TableError::Read(_) | TableError::Missing { .. } | TableError::Corrupt { .. } => false,
        TableError::Stage(error) => !matches!(
            error,
            StageError::Read(_) | StageError::SlotBusy { .. } | StageError::NoLake | StageError::Limit { .. }
        ),
        _ => true,
    }
}

/// Where a relation's id, `begin_snapshot` and `end_snapshot` are.
pub(crate) fn version_columns(relation: Relation) -> Option<(usize, usize, usize)> {
    let schema = fixed_schema(relation)?;
    let id = match relation {
        Relation::Macro => 1,
        Relation::Schema
        | Relation::Table
        | Relation::View
        | Relation::Column
        | Relation::PartitionInfo
        | Relation::SortInfo
        | Relation::DataFile
        | Relation::DeleteFile => 0,
        _ => return None,
    };
    Some((
        id,
        schema.position("begin_snapshot")?,
        schema.position("end_snapshot")?,
    ))
}

/// The key of the current record that a row is, or was, a version of.
fn current_key(relation: Relation, row: &[Value]) -> Option<bytes::Bytes> {
    let id = |column| number(row, column);
    Some(match relation {
        Relation::Schema => SchemaKey { schema_id: id(0)? }.encode(),
        Relation::Table => TableKey { table_id: id(0)? }.encode(),
        Relation::View => ViewKey { view_id: id(0)? }.encode(),
        Relation::Macro => MacroKey { macro_id: id(1)? }.encode(),
        Relation::Column => ColumnKey {
            table_id: id(3)?,
            column_id: id(0)?,
        }
        .encode(),
        Relation::PartitionInfo => PartitionKey {
            table_id: id(1)?,
            partition_id: id(0)?,
        }
        .encode(),
        Relation::SortInfo => SortKey {
            table_id: id(1)?,
            sort_id: id(0)?,
        }
        .encode(),
        Relation::DataFile => DataFileKey {
            table_id: id(1)?,
            data_file_id: id(0)?,
        }
        .encode(),
        Relation::DeleteFile => DeleteFileKey {
            table_id: id(1)?,
            delete_file_id: id(0)?,
        }
        .encode(),
        _ => return None,
    })
}
