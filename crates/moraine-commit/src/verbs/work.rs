//! The state of a transaction of verbs: what it reads, which ids it has given out, what it has changed so far. What each
//! verb does is in the modules beside this one; who commits, in [`crate::verbs::commit`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use moraine_codec::proto::{DeleteFileValue, SchemaValue, SnapshotValue, TableValue};
use moraine_codec::{Record, Stored, Version};
use moraine_keys::{DeleteTargetKey, Kind, NameKey, Versioned};
use moraine_store::Staging;

use crate::change::Change;
use crate::lake::reading::{Reading, StoredDirectories};
use crate::transaction::{CatalogTransaction, TransactionSavepoint};
use crate::verbs::changes::Changes;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names::TableRef;

/// A transaction of verbs.
pub(crate) struct Work {
    /// `None` once the transaction is over.
    pub(crate) transaction: Option<CatalogTransaction>,
    pub(crate) directories: StoredDirectories,
    pub(crate) state: State,
}

/// All that a verb which fails half way has to take back, besides what is staged.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// The newest snapshot below.
    pub(crate) base: SnapshotValue,
    pub(crate) next_catalog_id: u64,
    pub(crate) next_file_id: u64,
    /// The next column id of each table that has been given one here.
    pub(crate) next_column_ids: BTreeMap<u64, u64>,
    pub(crate) changes: Changes,
    /// Whether anything has been done that makes a snapshot.
    pub(crate) mints: bool,
    /// Whether that makes a new version of the lake's schema.
    pub(crate) schema_changed: bool,
    /// Tables that files written from now on do not fit together with earlier ones of: they get a row in
    /// `ducklake_schema_versions`.
    pub(crate) new_schema_versions: BTreeSet<u64>,
    /// Tables whose rows are inlined with other columns from now on.
    pub(crate) new_inlined_tables: BTreeSet<u64>,
    /// Rows to be inlined, once it is settled under which schema version.
    pub(crate) inlined: Vec<PendingRows>,
    /// Tables that have been given files.
    pub(crate) tables_with_files: BTreeSet<u64>,
    pub(crate) author: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) extra_info: Option<String>,
}

/// Rows to be inlined.
#[derive(Debug, Clone)]
pub(crate) struct PendingRows {
    pub(crate) table_id: u64,
    pub(crate) row_ids: Arc<Vec<u64>>,
    pub(crate) rows: RecordBatch,
}

impl Work {
    pub(crate) async fn begin(transaction: CatalogTransaction) -> Result<Self, VerbError> {
        let newest = transaction.newest_snapshot_id();
        let newest = newest.ok_or_else(|| VerbError::not_found(ObjectKind::Lake, "in this store"))?;
        let base = crate::views::snapshot(transaction.read(), newest).await?;
        let base = base.ok_or_else(|| VerbError::not_found(ObjectKind::Snapshot, newest))?;
        let state = State {
            next_catalog_id: base.next_catalog_id,
            next_file_id: base.next_file_id,
            base,
            ..State::default()
        };
        Ok(Work {
            directories: StoredDirectories::of(transaction.read()).await?,
            transaction: Some(transaction),
            state,
        })
    }

    /// The id of the snapshot that the commit makes.
    pub(crate) fn snapshot_id(&self) -> u64 {
        self.state.base.snapshot_id.saturating_add(1)
    }

    pub(crate) fn transaction(&mut self) -> Result<&mut CatalogTransaction, VerbError> {
        self.transaction.as_mut().ok_or(VerbError::Over)
    }

    /// What the transaction sees, its own changes included.
    pub(crate) fn reading(&self) -> Result<Reading<'_>, VerbError> {
        Ok(Reading {
            read: self.read()?,
            directories: self.directories,
            snapshot_id: self.snapshot_id(),
            newest: true,
        })
    }

    pub(crate) fn read(&self) -> Result<&Staging, VerbError> {
        let transaction = self.transaction.as_ref().ok_or(VerbError::Over)?;
        Ok(transaction.read())
    }

    pub(crate) async fn stage(&mut self, changes: Vec<Change>) -> Result<(), VerbError> {
        if !changes.is_empty() {
            self.transaction()?.stage(changes).await?;
        }
        Ok(())
    }

    pub(crate) fn savepoint(&self) -> Result<(TransactionSavepoint, State), VerbError> {
        let transaction = self.transaction.as_ref().ok_or(VerbError::Over)?;
        Ok((transaction.savepoint(), self.state.clone()))
    }

    pub(crate) fn rollback_to(&mut self, savepoint: (TransactionSavepoint, State)) {
        if let Some(transaction) = &mut self.transaction {
            transaction.rollback_to(savepoint.0);
            self.state = savepoint.1;
        }
    }

    /// The commit makes a snapshot.
    pub(crate) fn mint(&mut self) {
        self.state.mints = true;
    }

    /// The commit makes a snapshot with a new version of the lake's schema.
    pub(crate) fn mint_schema(&mut self) {
        self.state.schema_changed = true;
        self.mint();
    }

    pub(crate) fn give_catalog_id(&mut self) -> u64 {
        let given = self.state.next_catalog_id;
        self.state.next_catalog_id = given.saturating_add(1);
        given
    }

    pub(crate) fn give_file_id(&mut self) -> u64 {
        let given = self.state.next_file_id;
        self.state.next_file_id = given.saturating_add(1);
        given
    }

    /// The live schema of a name.
    pub(crate) async fn schema(&self, name: &str) -> Result<SchemaValue, VerbError> {
        let found = self.reading()?.schema(name).await?;
        found.ok_or_else(|| VerbError::not_found(ObjectKind::Schema, name))
    }

    /// The live table that is meant.
    pub(crate) async fn table(&self, table: &TableRef) -> Result<TableValue, VerbError> {
        let found = match table {
            TableRef::Id(table_id) => self.reading()?.table_by_id(*table_id).await?,
            TableRef::Name { schema, table: name } => {
                let schema_id = self.schema(schema).await?.schema_id;
                self.reading()?.table(schema_id, name).await?
            }
        };
        found.ok_or_else(|| VerbError::not_found(ObjectKind::Table, table))
    }

    /// The name of a table's schema.
    pub(crate) async fn schema_name(&self, schema_id: u64) -> Result<String, VerbError> {
        let found = self.reading()?.schema_by_id(schema_id).await?;
        found
            .map(|schema| schema.schema_name)
            .ok_or_else(|| VerbError::not_found(ObjectKind::Schema, schema_id))
    }

    /// Ends a live version here; one that began here was never there.
    pub(crate) fn ended<K>(&self, key: K, mut value: K::Value) -> Change
    where
        K: Versioned + Stored,
        K::Value: Version,
        Record: From<(K, K::Value)>,
    {
        let old = key.to_key();
        if value.begin_snapshot() == self.snapshot_id() {
            return Change::Remove { key: old };
        }
        value.set_end_snapshot(Some(self.snapshot_id()));
        Change::Replace {
            old,
            new: Record::from((key, value)),
        }
    }

    /// Puts a new version in the place of a live one.
    pub(crate) fn replaced<K>(&self, key: K, old: K::Value, mut new: K::Value) -> Vec<Change>
    where
        K: Versioned + Stored,
        K::Value: Version,
        Record: From<(K, K::Value)>,
    {
        new.set_begin_snapshot(self.snapshot_id());
        new.set_end_snapshot(None);
        if old.begin_snapshot() == self.snapshot_id() {
            return vec![Change::Replace {
                old: key.to_key(),
                new: Record::from((key, new)),
            }];
        }
        vec![
            self.ended(key.clone(), old),
            Change::Insert(Record::from((key, new))),
        ]
    }

    /// Keeps the directory of names in step, for the lookups of this transaction; the commit does so for everybody.
    pub(crate) fn rename_entry(
        &mut self,
        old: Option<NameKey>,
        new: Option<NameKey>,
    ) -> Result<(), VerbError> {
        if !self.directories.names {
            return Ok(());
        }
        let staging = self.transaction()?.staging_mut();
        if let Some(old) = old {
            staging.delete(&old);
        }
        if let Some(new) = new {
            staging.put_raw(new.encode(), bytes::Bytes::new());
        }
        Ok(())
    }

    /// Keeps the directory of delete files in step, likewise.
    pub(crate) fn target_entry(&mut self, file: &DeleteFileValue, is_there: bool) -> Result<(), VerbError> {
        if !self.directories.delete_targets {
            return Ok(());
        }
        let entry = DeleteTargetKey {
            table_id: file.table_id,
            data_file_id: file.data_file_id,
            delete_file_id: file.delete_file_id,
        };
        let staging = self.transaction()?.staging_mut();
        if is_there {
            staging.put_raw(entry.encode(), bytes::Bytes::new());
        } else {
            staging.delete(&entry);
        }
        Ok(())
    }
}
