//! The handle that a closure gets: each of its methods is a verb, all or nothing. The verbs themselves are in the modules
//! beside this one.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use moraine_codec::proto::SnapshotValue;
use moraine_store::ReadError;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::lake::{Column, Macro, Partition, Schema, Sort, Table, TableStats, Tag, View, entities};
use crate::transaction::{CatalogTransaction, TransactionSavepoint};
use crate::verbs::error::VerbError;
use crate::verbs::names::TableRef;
use crate::verbs::work::{State, Work};

/// A transaction of verbs, as [`crate::Catalog::commit`] gives it to a closure. Every verb is all or nothing: one that is
/// refused has changed nothing, and the closure may go on. Reads see what the transaction has done. Clones are handles to
/// the same transaction; none outlives the closure.
#[derive(Clone)]
pub struct LakeTransaction {
    work: Arc<Mutex<Work>>,
}

/// A verb at work: whatever it has done is taken back unless [`Verb::done`] is told that it succeeded.
pub(crate) struct Verb {
    work: OwnedMutexGuard<Work>,
    before: Option<(TransactionSavepoint, State)>,
}

impl LakeTransaction {
    pub(crate) async fn begin(transaction: CatalogTransaction) -> Result<Self, VerbError> {
        Ok(LakeTransaction {
            work: Arc::new(Mutex::new(Work::begin(transaction).await?)),
        })
    }

    /// Begins a verb.
    pub(crate) async fn verb(&self) -> Result<Verb, VerbError> {
        let work = Arc::clone(&self.work).lock_owned().await;
        let before = Some(work.savepoint()?);
        Ok(Verb { work, before })
    }

    /// Takes the transaction out, so that no handle serves any more.
    pub(crate) async fn end(&self) -> (Option<CatalogTransaction>, State) {
        let mut work = self.work.lock().await;
        (work.transaction.take(), std::mem::take(&mut work.state))
    }

    /// The snapshot that this transaction builds on.
    ///
    /// # Errors
    /// [`VerbError::Over`].
    pub async fn base_snapshot_id(&self) -> Result<u64, VerbError> {
        Ok(self.base().await?.snapshot_id)
    }

    /// The snapshot that the commit makes, if it makes one.
    ///
    /// # Errors
    /// [`VerbError::Over`].
    pub async fn snapshot_id(&self) -> Result<u64, VerbError> {
        Ok(self.verb().await?.snapshot_id())
    }

    async fn base(&self) -> Result<SnapshotValue, VerbError> {
        Ok(self.verb().await?.state.base.clone())
    }

    /// Says who commits, in `ducklake_snapshot_changes`.
    ///
    /// # Errors
    /// [`VerbError::Over`].
    pub async fn set_author(&self, author: impl Into<String>) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        verb.state.author = Some(author.into());
        verb.done(Ok(()))
    }

    /// Gives the commit a message.
    ///
    /// # Errors
    /// [`VerbError::Over`].
    pub async fn set_message(&self, message: impl Into<String>) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        verb.state.message = Some(message.into());
        verb.done(Ok(()))
    }

    /// Gives the commit extra information, such as JSON for other programs.
    ///
    /// # Errors
    /// [`VerbError::Over`].
    pub async fn set_extra_info(&self, extra_info: impl Into<String>) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        verb.state.extra_info = Some(extra_info.into());
        verb.done(Ok(()))
    }

    /// The schema of a name, as this transaction sees it.
    ///
    /// # Errors
    /// See [`VerbError`], as for all reads that follow.
    pub async fn schema(&self, name: &str) -> Result<Option<Schema>, VerbError> {
        let verb = self.verb().await?;
        Ok(verb.reading()?.schema(name).await?.map(Schema::of))
    }

    /// All schemas, by id.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn schemas(&self) -> Result<Vec<Schema>, VerbError> {
        let verb = self.verb().await?;
        all(verb.reading()?.schemas().await, Schema::of)
    }

    /// The table that is meant, as this transaction sees it; `None` where there is none.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn table(&self, table: impl Into<TableRef> + Send) -> Result<Option<Table>, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        match verb.table(&table).await {
            Ok(found) => Ok(Some(Table::of(found))),
            Err(VerbError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All tables of all schemas, by id.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn tables(&self) -> Result<Vec<Table>, VerbError> {
        let verb = self.verb().await?;
        all(verb.reading()?.tables().await, Table::of)
    }

    /// The columns of a table, in order, with the fields of nested ones below them.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn columns(&self, table: impl Into<TableRef> + Send) -> Result<Vec<Column>, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        let table_id = verb.table(&table).await?.table_id;
        let records = verb.reading()?.columns(table_id).await?;
        Ok(Column::trees(&records, verb.snapshot_id()))
    }

    /// The view of a name within the schema of a name.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn view(&self, schema: &str, name: &str) -> Result<Option<View>, VerbError> {
        let verb = self.verb().await?;
        let schema_id = verb.schema(schema).await?.schema_id;
        Ok(verb.reading()?.view(schema_id, name).await?.map(View::of))
    }

    /// All views of all schemas, by id.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn views(&self) -> Result<Vec<View>, VerbError> {
        let verb = self.verb().await?;
        all(verb.reading()?.views().await, View::of)
    }

    /// All macros of all schemas, by id.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn macros(&self) -> Result<Vec<Macro>, VerbError> {
        let verb = self.verb().await?;
        all(verb.reading()?.macros().await, Macro::of)
    }

    /// How a table is partitioned.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn partition(&self, table: impl Into<TableRef> + Send) -> Result<Option<Partition>, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        let table_id = verb.table(&table).await?.table_id;
        Ok(verb.reading()?.partition(table_id).await?.map(Partition::of))
    }

    /// How a table is sorted.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn sort(&self, table: impl Into<TableRef> + Send) -> Result<Option<Sort>, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        let table_id = verb.table(&table).await?.table_id;
        Ok(verb.reading()?.sort(table_id).await?.map(Sort::of))
    }

    /// The live tags of a schema, table, view or macro.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn tags(&self, object_id: u64) -> Result<Vec<Tag>, VerbError> {
        let verb = self.verb().await?;
        let found = verb.reading()?.tag(object_id).await?;
        Ok(entities::tags(&found.entries, verb.snapshot_id()))
    }

    /// The size of a table; `None` before its first rows.
    ///
    /// # Errors
    /// See [`LakeTransaction::schema`].
    pub async fn table_stats(
        &self,
        table: impl Into<TableRef> + Send,
    ) -> Result<Option<TableStats>, VerbError> {
        let table = table.into();
        let verb = self.verb().await?;
        let table_id = verb.table(&table).await?.table_id;
        let found = verb.reading()?.table_stats(table_id).await?;
        Ok(found.as_ref().map(TableStats::of))
    }
}

fn all<V, T>(found: Result<Vec<V>, ReadError>, of: fn(V) -> T) -> Result<Vec<T>, VerbError> {
    Ok(found?.into_iter().map(of).collect())
}

impl std::fmt::Debug for LakeTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LakeTransaction").finish_non_exhaustive()
    }
}

impl Verb {
    /// Lets the verb's changes stand if it succeeded.
    pub(crate) fn done<T>(mut self, outcome: Result<T, VerbError>) -> Result<T, VerbError> {
        if outcome.is_ok() {
            self.before = None;
        }
        outcome
    }
}

impl Drop for Verb {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.work.rollback_to(before);
        }
    }
}

impl Deref for Verb {
    type Target = Work;

    fn deref(&self) -> &Work {
        &self.work
    }
}

impl DerefMut for Verb {
    fn deref_mut(&mut self) -> &mut Work {
        &mut self.work
    }
}
