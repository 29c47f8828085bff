//! Verbs of inlined rows: rows that are kept in the catalog instead of files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use moraine_inline::{EndPredicate, RowMultiset, RowPredicate};

use crate::change::{Change, InlineChange};
use crate::lake::entities::same_name;
use crate::lake::{Column, InlinedTable};
use crate::verbs::definitions::FlushedDataFile;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::files::data_file_changes;
use crate::verbs::names::TableRef;
use crate::verbs::stats::Growth;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::{PendingRows, Work};
use crate::verbs::{inlined_columns, inlined_stats};

impl LakeTransaction {
    /// The columns that a batch for [`LakeTransaction::insert_inlined`] must have: those of the table, of the Arrow types
    /// they are kept in. Nested values, intervals and times with a zone are given as DuckDB's text of them.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for a table whose rows cannot be inlined.
    pub async fn inlined_schema(&self, table: impl Into<TableRef> + Send) -> Result<SchemaRef, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        let table_id = verb.table(&table).await?.table_id;
        verb.inlined_schema(table_id).await
    }

    /// The inlined tables of a table, by schema version.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn inlined_tables(
        &self,
        table: impl Into<TableRef> + Send,
    ) -> Result<Vec<InlinedTable>, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        let table_id = verb.table(&table).await?.table_id;
        let versions = moraine_inline::versions(verb.read()?, Some(table_id)).await?;
        Ok(InlinedTable::listed(versions))
    }

    /// Inserts rows without a file and gives their row ids.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for rows that do not fit the table's columns.
    pub async fn insert_inlined(
        &self,
        table: impl Into<TableRef> + Send,
        rows: RecordBatch,
    ) -> Result<std::ops::Range<u64>, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let inserted = verb.insert_inlined(&table, rows).await;
        verb.done(inserted)
    }

    /// Deletes inlined rows, by row id.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for a row that is not inlined, or not live.
    pub async fn delete_inlined(
        &self,
        table: impl Into<TableRef> + Send,
        row_ids: &[u64],
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let deleted = verb.delete_inlined(&table, row_ids).await;
        verb.done(deleted)
    }

    /// Puts rows in the place of inlined ones, which keep their row ids: row `i` of `rows` is row `row_ids[i]`.
    ///
    /// # Errors
    /// As [`LakeTransaction::delete_inlined`] and [`LakeTransaction::insert_inlined`].
    pub async fn update_inlined(
        &self,
        table: impl Into<TableRef> + Send,
        row_ids: &[u64],
        rows: RecordBatch,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let updated = verb.update_inlined(&table, row_ids, rows).await;
        verb.done(updated)
    }

    /// Deletes rows of a data file without a delete file, by their positions in it.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for a file that is not live; [`VerbError::Refused`] for a position beyond its end;
    /// [`VerbError::Stage`] for a row that is deleted already.
    pub async fn delete_from_file_inlined(
        &self,
        table: impl Into<TableRef> + Send,
        data_file_id: u64,
        positions: &[u64],
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let deleted = verb
            .delete_from_file_inlined(&table, data_file_id, positions)
            .await;
        verb.done(deleted)
    }

    /// Registers files in the place of all rows of an inlined table that began by a snapshot. Nothing is inserted or
    /// deleted by that: each snapshot sees what it saw. The row ids of files and rows are compared. An inlined table that
    /// has been superseded goes. [`crate::Catalog::flush`] also writes the files.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Stage`] where files and rows differ.
    pub async fn flush_inlined(
        &self,
        inlined: InlinedTable,
        until_snapshot: u64,
        files: Vec<FlushedDataFile>,
    ) -> Result<Vec<u64>, VerbError> {
        let mut verb = self.verb().await?;
        let flushed = verb.flush_inlined(inlined, until_snapshot, files).await;
        verb.done(flushed)
    }
}

impl Work {
    async fn columns(&self, table_id: u64) -> Result<Vec<Column>, VerbError> {
        let records = self.reading()?.columns(table_id).await?;
        Ok(Column::trees(&records, self.snapshot_id()))
    }

    async fn inlined_schema(&self, table_id: u64) -> Result<SchemaRef, VerbError> {
        let columns = self.columns(table_id).await?;
        let schema = inlined_columns::schema(&columns).map_err(VerbError::refused)?;
        Ok(Arc::new(schema))
    }

    async fn insert_inlined(
        &mut self,
        table: &TableRef,
        rows: RecordBatch,
    ) -> Result<std::ops::Range<u64>, VerbError> {
        let table_id = self.table(table).await?.table_id;
        let first = self.next_row_id(table_id).await?;
        let past = first.saturating_add(rows.num_rows() as u64);
        self.add_inlined(table_id, (first..past).collect(), rows, true)
            .await?;
        Ok(first..past)
    }

    /// Notes rows that are to be inlined, and counts them.
    async fn add_inlined(
        &mut self,
        table_id: u64,
        row_ids: Vec<u64>,
        rows: RecordBatch,
        are_new: bool,
    ) -> Result<(), VerbError> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        if row_ids.len() != rows.num_rows() {
            return Err(VerbError::refused(format!(
                "{} row ids are given for {} rows",
                row_ids.len(),
                rows.num_rows()
            )));
        }
        let columns = self.columns(table_id).await?;
        let schema = self.inlined_schema(table_id).await?;
        let rows = fitted(&rows, &schema)?;
        for (column, values) in columns.iter().zip(rows.columns()) {
            if !column.nulls_allowed && values.null_count() > 0 {
                return Err(VerbError::refused(format!(
                    "column {} forbids NULL, and a row has one",
                    column.name
                )));
            }
        }
        let count = rows.num_rows() as u64;
        let growth = Growth {
            records: count,
            row_ids: if are_new { count } else { 0 },
            file_bytes: 0,
            columns: vec![inlined_stats::of(&columns, &rows)],
        };
        self.grow(table_id, growth).await?;
        self.state.inlined.push(PendingRows {
            table_id,
            row_ids: Arc::new(row_ids),
            rows,
        });
        self.state.changes.inlined_inserts.insert(table_id);
        self.mint();
        Ok(())
    }

    /// The live versions of inlined rows, as (row id, begin snapshot), in order.
    async fn live_inlined(&mut self, table_id: u64, row_ids: &[u64]) -> Result<Vec<(u64, u64)>, VerbError> {
        let versions = moraine_inline::versions(self.read()?, Some(table_id)).await?;
        let predicate = RowPredicate {
            row_ids: row_ids.iter().copied().collect(),
            end: EndPredicate::Live,
            ..RowPredicate::default()
        };
        let mut found = BTreeMap::new();
        for (_, schema_version, _) in versions {
            let transaction = self.transaction()?;
            let directories = transaction.directories();
            let selection = moraine_inline::select(
                transaction.read(),
                &directories,
                table_id,
                schema_version,
                &predicate,
            )
            .await?;
            found.extend(
                selection
                    .rows()
                    .iter()
                    .map(|row| (row.row_id, row.begin_snapshot)),
            );
        }
        for row_id in row_ids {
            if !found.contains_key(row_id) {
                return Err(VerbError::refused(format!(
                    "row {row_id} of table {table_id} is not an inlined row, or is deleted already"
                )));
            }
        }
        Ok(found.into_iter().collect())
    }

    async fn delete_inlined(&mut self, table: &TableRef, row_ids: &[u64]) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        if row_ids.is_empty() {
            return Ok(());
        }
        let rows = self.live_inlined(table_id, row_ids).await?;
        let end_snapshot = self.snapshot_id();
        let change = InlineChange::EndRows {
            table_id,
            rows,
            end_snapshot,
        };
        self.transaction()?.inline(change).await?;
        self.state.changes.inlined_deletes.insert(table_id);
        self.mint();
        Ok(())
    }

    async fn update_inlined(
        &mut self,
        table: &TableRef,
        row_ids: &[u64],
        rows: RecordBatch,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        self.delete_inlined(table, row_ids).await?;
        self.add_inlined(table_id, row_ids.to_vec(), rows, false).await
    }

    async fn delete_from_file_inlined(
        &mut self,
        table: &TableRef,
        data_file_id: u64,
        positions: &[u64],
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let file = self.data_file(table_id, data_file_id).await?;
        if positions.is_empty() {
            return Ok(());
        }
        if let Some(beyond) = positions.iter().find(|at| **at >= file.record_count) {
            return Err(VerbError::refused(format!(
                "data file {data_file_id} has {} rows, so there is none at position {beyond}",
                file.record_count
            )));
        }
        let begin_snapshot = self.snapshot_id();
        let rows = positions.iter().map(|at| (data_file_id, *at, begin_snapshot));
        let change = InlineChange::InsertFileDeletes {
            table_id,
            rows: rows.collect(),
        };
        self.transaction()?.inline(change).await?;
        self.state.changes.inlined_deletes.insert(table_id);
        self.mint();
        Ok(())
    }

    /// Whether a live row of a table is inlined.
    pub(crate) async fn has_inlined_rows(&self, table_id: u64) -> Result<bool, VerbError> {
        let transaction = self.transaction.as_ref().ok_or(VerbError::Over)?;
        let directories = transaction.directories();
        let predicate = RowPredicate {
            end: EndPredicate::Live,
            ..RowPredicate::default()
        };
        for (_, schema_version, _) in moraine_inline::versions(transaction.read(), Some(table_id)).await? {
            let selection = moraine_inline::select(
                transaction.read(),
                &directories,
                table_id,
                schema_version,
                &predicate,
            )
            .await?;
            if !selection.rows().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn flush_inlined(
        &mut self,
        inlined: InlinedTable,
        until_snapshot: u64,
        files: Vec<FlushedDataFile>,
    ) -> Result<Vec<u64>, VerbError> {
        let InlinedTable {
            table_id,
            schema_version,
        } = inlined;
        self.table(&TableRef::Id(table_id)).await?;
        if until_snapshot > self.state.base.snapshot_id {
            return Err(VerbError::refused(format!(
                "rows of snapshot {until_snapshot} cannot be flushed on snapshot {}",
                self.state.base.snapshot_id
            )));
        }
        let versions = moraine_inline::versions(self.read()?, Some(table_id)).await?;
        let listed = versions.iter().filter(|(_, _, listed)| *listed);
        let newest = listed.map(|(_, version, _)| *version).max();
        if !versions.iter().any(|(_, version, _)| *version == schema_version) {
            let name = format!("ducklake_inlined_data_{table_id}_{schema_version}");
            return Err(VerbError::not_found(ObjectKind::InlinedTable, name));
        }
        let mut written = RowMultiset::default();
        let mut ids = Vec::new();
        for flushed in files {
            let mut row_ids = flushed.row_ids.clone();
            row_ids.sort_unstable();
            for row_id in row_ids {
                written.add(&(row_id..=row_id));
            }
            ids.push(self.register_flushed(table_id, flushed).await?);
        }
        let transaction = self.transaction()?;
        transaction
            .inline(InlineChange::Drain {
                table_id,
                schema_version,
                until_snapshot,
                written,
            })
            .await?;
        if newest.is_some_and(|newest| schema_version < newest) {
            let change = InlineChange::DropTable {
                table_id,
                schema_version,
            };
            transaction.inline(change).await?;
        }
        self.state.changes.inline_flushes.insert(table_id);
        self.mint();
        Ok(ids)
    }

    async fn register_flushed(&mut self, table_id: u64, flushed: FlushedDataFile) -> Result<u64, VerbError> {
        let mut value = self.data_file_value(table_id, &flushed.file, None).await?;
        value.begin_snapshot = flushed.begin_snapshot;
        value.partial_max = Some(flushed.partial_max);
        value.row_id_start = Some(flushed.row_id_start);
        let data_file_id = value.data_file_id;
        let growth = Growth {
            file_bytes: flushed.file.file_size_bytes,
            columns: vec![flushed.file.column_stats.clone()],
            ..Growth::default()
        };
        self.grow(table_id, growth).await?;
        let changes: Vec<Change> = data_file_changes(value, &flushed.file);
        self.stage(changes).await?;
        if let Some(file) = flushed.delete_file {
            let delete_file_id = self.give_file_id();
            self.put_delete_file(moraine_codec::proto::DeleteFileValue {
                delete_file_id,
                table_id,
                begin_snapshot: file.begin_snapshot,
                data_file_id,
                path: file.path,
                path_is_relative: file.path_is_relative,
                format: file.format,
                delete_count: file.delete_count,
                file_size_bytes: file.file_size_bytes,
                footer_size: file.footer_size,
                encryption_key: file.encryption_key,
                partial_max: file.partial_max,
                ..moraine_codec::proto::DeleteFileValue::default()
            })
            .await?;
        }
        Ok(data_file_id)
    }
}

/// The rows in the order and with the names of the table's columns.
fn fitted(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, VerbError> {
    let given = rows.schema();
    let mut columns = Vec::new();
    for wanted in schema.fields() {
        let place = given
            .fields()
            .iter()
            .position(|field| same_name(field.name(), wanted.name()));
        let values = place.map(|place| rows.column(place));
        let Some(values) = values.filter(|values| values.data_type() == wanted.data_type()) else {
            let found = values.map_or_else(|| "nothing".to_owned(), |values| values.data_type().to_string());
            return Err(VerbError::refused(format!(
                "column {} takes {}, but the rows have {found}; inlined_schema gives what they must have",
                wanted.name(),
                wanted.data_type()
            )));
        };
        columns.push(Arc::clone(values));
    }
    if let Some(extra) = given.fields().iter().find(|field| {
        let mut wanted = schema.fields().iter();
        !wanted.any(|wanted| same_name(wanted.name(), field.name()))
    }) {
        return Err(VerbError::refused(format!(
            "the rows have a column {}, and the table has not",
            extra.name()
        )));
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| VerbError::refused(error.to_string()))
}
