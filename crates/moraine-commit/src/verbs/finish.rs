//! What a transaction of verbs comes to when its closure has returned: the rows of its snapshot, the schema versions that
//! follow from its changes, and the inlined tables that its rows go into.

use std::sync::Arc;

use moraine_codec::Record;
use moraine_codec::proto::{SchemaVersionValue, SnapshotValue};
use moraine_keys::SchemaVersionKey;

use crate::change::{Change, InlineChange, SnapshotChanges};
use crate::lake::Column;
use crate::lake::reading::StoredDirectories;
use crate::transaction::CatalogTransaction;
use crate::verbs::changes::Changes;
use crate::verbs::commit::now_micros;
use crate::verbs::error::VerbError;
use crate::verbs::inlined_columns;
use crate::verbs::work::{PendingRows, State, Work};

/// A transaction that only wants its snapshot, if it makes one.
pub(crate) struct Finished {
    pub(crate) transaction: CatalogTransaction,
    pub(crate) snapshot: Option<(SnapshotValue, SnapshotChanges)>,
    pub(crate) changes: Changes,
}

/// Completes a transaction.
pub(crate) async fn finish(transaction: CatalogTransaction, state: State) -> Result<Finished, VerbError> {
    let mut work = Work {
        directories: StoredDirectories::of(transaction.read()).await?,
        transaction: Some(transaction),
        state,
    };
    let snapshot = if work.state.mints {
        Some(work.complete().await?)
    } else {
        None
    };
    Ok(Finished {
        transaction: work.transaction.ok_or(VerbError::Over)?,
        snapshot,
        changes: work.state.changes,
    })
}

impl Work {
    async fn complete(&mut self) -> Result<(SnapshotValue, SnapshotChanges), VerbError> {
        let made = self.state.changes.made();
        if self.state.changes.has_compaction() && made.entries.len() > self.compactions() {
            return Err(VerbError::refused(
                "a commit either changes a lake or compacts its files; do the one after the other",
            ));
        }
        let mut schema_version = self.state.base.schema_version;
        if self.state.schema_changed {
            schema_version = schema_version.saturating_add(1);
        }
        for table_id in self.state.new_inlined_tables.clone() {
            self.create_inlined_table(table_id, schema_version).await?;
        }
        for rows in std::mem::take(&mut self.state.inlined) {
            schema_version = self.write_inlined(rows, schema_version).await?;
        }
        let unfiled = |table: &&u64| !self.state.tables_with_files.contains(table);
        // As DuckLake does, so that its caches see that the table has other rows.
        let unfiled = self.state.changes.inlined_inserts.iter().filter(unfiled).count();
        self.state.next_file_id = self.state.next_file_id.saturating_add(unfiled as u64);
        self.write_schema_versions(schema_version).await?;
        let snapshot_id = self.snapshot_id();
        let snapshot = SnapshotValue {
            snapshot_id,
            snapshot_time_micros: now_micros(),
            schema_version,
            next_catalog_id: self.state.next_catalog_id,
            next_file_id: self.state.next_file_id,
            ..SnapshotValue::default()
        };
        let changes = SnapshotChanges {
            snapshot_id,
            changes_made: (!made.entries.is_empty()).then(|| made.to_string()),
            author: self.state.author.clone(),
            commit_message: self.state.message.clone(),
            commit_extra_info: self.state.extra_info.clone(),
        };
        Ok((snapshot, changes))
    }

    fn compactions(&self) -> usize {
        self.state.changes.merges.len() + self.state.changes.rewrites.len()
    }

    async fn write_schema_versions(&mut self, schema_version: u64) -> Result<(), VerbError> {
        let begin_snapshot = self.snapshot_id();
        let changes = self.state.new_schema_versions.iter().map(|table_id| {
            let key = SchemaVersionKey {
                table_id: *table_id,
                begin_snapshot,
            };
            let value = SchemaVersionValue {
                schema_version,
                ..SchemaVersionValue::default()
            };
            Change::Insert(Record::SchemaVersion(key, value))
        });
        let changes = changes.collect();
        self.stage(changes).await
    }

    /// Makes the inlined table of a table under a schema version, unless its rows are not inlined.
    async fn create_inlined_table(&mut self, table_id: u64, schema_version: u64) -> Result<(), VerbError> {
        if self.inlining_row_limit(table_id).await? > 0 {
            self.register_inlined_table(table_id, schema_version).await?;
        }
        Ok(())
    }

    /// Makes the inlined table of a table, if it can have one, and says whether it can.
    async fn register_inlined_table(
        &mut self,
        table_id: u64,
        schema_version: u64,
    ) -> Result<bool, VerbError> {
        let records = self.reading()?.columns(table_id).await?;
        let columns = Column::trees(&records, self.snapshot_id());
        let Ok(schema) = inlined_columns::schema(&columns) else {
            return Ok(false);
        };
        let transaction = self.transaction()?;
        transaction
            .inline(InlineChange::Register {
                table_id,
                schema_version,
            })
            .await?;
        transaction
            .inline(InlineChange::CreateTable {
                table_id,
                schema_version,
                schema: schema.into(),
            })
            .await?;
        Ok(true)
    }

    /// Writes rows into the newest inlined table of their table. A table that has none gets one, under a new version of the
    /// lake's schema, which is given.
    async fn write_inlined(&mut self, rows: PendingRows, schema_version: u64) -> Result<u64, VerbError> {
        let table_id = rows.table_id;
        let newest = self.newest_inlined_table(&rows).await?;
        let (version, schema_version) = match newest {
            Some(version) => (version, schema_version),
            None => {
                let next = schema_version.saturating_add(1);
                if !self.register_inlined_table(table_id, next).await? {
                    return Err(VerbError::refused(format!(
                        "rows of table {table_id} cannot be inlined; add a file with them"
                    )));
                }
                (next, next)
            }
        };
        let begin_snapshot = self.snapshot_id();
        let change = InlineChange::Insert {
            table_id,
            schema_version: version,
            begin_snapshot,
            row_ids: Arc::unwrap_or_clone(rows.row_ids),
            batch: rows.rows,
        };
        self.transaction()?.inline(change).await?;
        Ok(schema_version)
    }

    /// The newest inlined table of the rows' table, if it has their columns.
    async fn newest_inlined_table(&self, rows: &PendingRows) -> Result<Option<u64>, VerbError> {
        let versions = moraine_inline::versions(self.read()?, Some(rows.table_id)).await?;
        let listed = versions.into_iter().filter(|(_, _, listed)| *listed);
        let Some(newest) = listed.map(|(_, version, _)| version).max() else {
            return Ok(None);
        };
        let schema = moraine_inline::schema(self.read()?, rows.table_id, newest).await?;
        let same = schema.is_some_and(|schema| {
            let wanted = rows.rows.schema();
            let types = |fields: &arrow_schema::Fields| -> Vec<arrow_schema::DataType> {
                fields.iter().map(|field| field.data_type().clone()).collect()
            };
            types(schema.fields()) == types(wanted.fields())
        });
        Ok(same.then_some(newest))
    }
}
