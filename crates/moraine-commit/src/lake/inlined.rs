//! The inlined rows that a snapshot sees, a batch at a time.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use moraine_inline::{DirectoriesAt, RowPredicate, RowVersion, Selection};
use moraine_store::Staging;

use crate::lake::error::LakeError;

/// Rows of one batch of [`InlinedRows`].
const BATCH_ROWS_MAX: usize = 8_192;

/// One inlined table, `ducklake_inlined_data_<table_id>_<schema_version>`: rows kept in the catalog, with the columns that
/// their table had at one schema version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct InlinedTable {
    /// The table whose rows they are.
    pub table_id: u64,
    /// The schema version whose columns they have.
    pub schema_version: u64,
}

impl InlinedTable {
    pub(crate) async fn of_table(read: &Staging, table_id: u64) -> Result<Vec<InlinedTable>, LakeError> {
        let versions = moraine_inline::versions(read, Some(table_id)).await?;
        Ok(Self::listed(versions))
    }

    /// Those of some (table, schema version, listed) that are listed.
    pub(crate) fn listed(versions: Vec<(u64, u64, bool)>) -> Vec<InlinedTable> {
        let listed = versions.into_iter().filter(|(_, _, listed)| *listed);
        listed
            .map(|(table_id, schema_version, _)| InlinedTable {
                table_id,
                schema_version,
            })
            .collect()
    }
}

/// The rows of one inlined table that a snapshot sees, ordered by row id. Columns are named as they were when the inlined
/// table was made, and are of the types they are kept in: nested values as DuckLake's text.
#[derive(Debug)]
pub struct InlinedRows {
    read: Arc<Staging>,
    selection: Selection,
    projection: Vec<usize>,
    next: usize,
}

/// Some inlined rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InlinedBatch {
    /// The row id of each row.
    pub row_ids: Vec<u64>,
    /// The snapshot that inserted each row, as it is.
    pub begin_snapshots: Vec<u64>,
    /// Their columns.
    pub columns: RecordBatch,
}

impl InlinedRows {
    pub(crate) async fn select(
        read: Arc<Staging>,
        directories: &DirectoriesAt,
        table: InlinedTable,
        snapshot_id: u64,
    ) -> Result<Self, LakeError> {
        let predicate = RowPredicate::visible_at(snapshot_id);
        let (table_id, schema_version) = (table.table_id, table.schema_version);
        let selection =
            moraine_inline::select(&read, directories, table_id, schema_version, &predicate).await?;
        let projection = (0..selection.schema().fields().len()).collect();
        Ok(InlinedRows {
            read,
            selection,
            projection,
            next: 0,
        })
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.selection.schema()
    }

    /// How many rows there are in all.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.selection.rows().len()
    }

    /// The next rows, or `None` at the end.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn next(&mut self) -> Result<Option<InlinedBatch>, LakeError> {
        let end = self.row_count().min(self.next.saturating_add(BATCH_ROWS_MAX));
        let range = self.next..end;
        let Some(rows) = self
            .selection
            .rows()
            .get(range.clone())
            .filter(|rows| !rows.is_empty())
        else {
            return Ok(None);
        };
        let batch = InlinedBatch {
            row_ids: rows.iter().map(|row: &RowVersion| row.row_id).collect(),
            begin_snapshots: rows.iter().map(|row| row.begin_snapshot).collect(),
            columns: self
                .selection
                .window(self.read.as_ref(), range, &self.projection)
                .await?,
        };
        self.next = end;
        Ok(Some(batch))
    }
}
