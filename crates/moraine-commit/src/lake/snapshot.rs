//! A snapshot of the lake: an immutable, typed view. What it is read from is [`crate::lake::reading`]'s.

use std::sync::Arc;

use moraine_inline::DirectoriesAt;
use moraine_keys::{FileColumnStatsKey, GcFileKey, Kind, MappingKey, TableColumnStatsKey, TableScoped};
use moraine_store::{ReadError, ReadExt, Staging, View as StoreView};

use crate::lake::entities::{
    self, Column, Macro, Mapping, Partition, Schema, SnapshotInfo, Sort, Table, Tag, View,
};
use crate::lake::error::LakeError;
use crate::lake::files::{
    ColumnStats, DataFileScan, DeleteFileScan, ScheduledFile, TableColumnStats, TableStats,
};
use crate::lake::inlined::{InlinedRows, InlinedTable};
use crate::lake::options::OptionScope;
use crate::lake::reading::{Reading, StoredDirectories};

/// The lake as of a snapshot. It does not change, whatever is committed meanwhile, and holds nothing up; reading it costs
/// what is asked for. Clones share the view.
///
/// Names of schemas, tables and so on are found in any case of letters, as DuckDB does; the name as written is preferred.
/// In the newest snapshot a lookup by name or id is a get; in an earlier one a lookup by name goes through what there is.
///
/// ```
/// use std::sync::Arc;
/// use moraine_commit::{Catalog, lake::ColumnType, verbs::{ColumnDefinition, TableDefinition}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let catalog = Catalog::with_store(Arc::new(moraine_store::MemoryStore::new()));
/// # catalog.create(Some("data/"), false).await?;
/// catalog.commit(|tx| async move {
///     let columns = vec![ColumnDefinition::new("id", ColumnType::Int64)];
///     tx.create_table("main", TableDefinition::new("orders", columns)).await
/// }).await?;
///
/// let newest = catalog.snapshot().await?;
/// let orders = newest.table("main", "orders").await?.ok_or("no such table")?;
/// assert_eq!(newest.columns(orders.table_id).await?[0].name, "id");
/// assert!(catalog.snapshot_at(0).await?.table("main", "orders").await?.is_none());
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    read: Arc<Staging>,
    directories: DirectoriesAt,
    stored_directories: StoredDirectories,
    info: SnapshotInfo,
    newest: bool,
}

impl Snapshot {
    pub(crate) fn new(
        view: Arc<dyn StoreView>,
        directories: DirectoriesAt,
        stored_directories: StoredDirectories,
        info: SnapshotInfo,
        newest: bool,
    ) -> Self {
        Snapshot {
            read: Arc::new(Staging::new(view)),
            directories,
            stored_directories,
            info,
            newest,
        }
    }

    fn reading(&self) -> Reading<'_> {
        Reading {
            read: &self.read,
            directories: self.stored_directories,
            snapshot_id: self.info.snapshot_id,
            newest: self.newest,
        }
    }

    /// The snapshot's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.info.snapshot_id
    }

    /// When and by whom it was committed, and what it changed.
    #[must_use]
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// All schemas, by id.
    ///
    /// # Errors
    /// See [`ReadError`], as for all that follow unless they say otherwise.
    pub async fn schemas(&self) -> Result<Vec<Schema>, ReadError> {
        let found = self.reading().schemas().await?;
        Ok(found.into_iter().map(Schema::of).collect())
    }

    /// The schema of a name.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn schema(&self, name: &str) -> Result<Option<Schema>, ReadError> {
        Ok(self.reading().schema(name).await?.map(Schema::of))
    }

    /// The schema of an id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn schema_by_id(&self, schema_id: u64) -> Result<Option<Schema>, ReadError> {
        Ok(self.reading().schema_by_id(schema_id).await?.map(Schema::of))
    }

    /// All tables of all schemas, by id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn tables(&self) -> Result<Vec<Table>, ReadError> {
        let found = self.reading().tables().await?;
        Ok(found.into_iter().map(Table::of).collect())
    }

    /// The table of a name within the schema of a name; `None` where either is missing.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn table(&self, schema: &str, name: &str) -> Result<Option<Table>, ReadError> {
        match self.reading().schema(schema).await? {
            Some(schema) => Ok(self.reading().table(schema.schema_id, name).await?.map(Table::of)),
            None => Ok(None),
        }
    }

    /// The table of an id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn table_by_id(&self, table_id: u64) -> Result<Option<Table>, ReadError> {
        Ok(self.reading().table_by_id(table_id).await?.map(Table::of))
    }

    /// The columns of a table, in order, with the fields of nested ones below them.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn columns(&self, table_id: u64) -> Result<Vec<Column>, ReadError> {
        let records = self.reading().columns(table_id).await?;
        Ok(Column::trees(&records, self.info.snapshot_id))
    }

    /// All views of all schemas, by id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn views(&self) -> Result<Vec<View>, ReadError> {
        let found = self.reading().views().await?;
        Ok(found.into_iter().map(View::of).collect())
    }

    /// The view of a name within the schema of a name.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn view(&self, schema: &str, name: &str) -> Result<Option<View>, ReadError> {
        match self.reading().schema(schema).await? {
            Some(schema) => Ok(self.reading().view(schema.schema_id, name).await?.map(View::of)),
            None => Ok(None),
        }
    }

    /// The view of an id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn view_by_id(&self, view_id: u64) -> Result<Option<View>, ReadError> {
        Ok(self.reading().view_by_id(view_id).await?.map(View::of))
    }

    /// All macros of all schemas, by id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn macros(&self) -> Result<Vec<Macro>, ReadError> {
        let found = self.reading().macros().await?;
        Ok(found.into_iter().map(Macro::of).collect())
    }

    /// The macro of an id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn macro_by_id(&self, macro_id: u64) -> Result<Option<Macro>, ReadError> {
        Ok(self.reading().macro_by_id(macro_id).await?.map(Macro::of))
    }

    /// How a table is partitioned; `None` where it is not, and never was.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn partition(&self, table_id: u64) -> Result<Option<Partition>, ReadError> {
        Ok(self.reading().partition(table_id).await?.map(Partition::of))
    }

    /// How a table is sorted.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn sort(&self, table_id: u64) -> Result<Option<Sort>, ReadError> {
        Ok(self.reading().sort(table_id).await?.map(Sort::of))
    }

    /// The tags of a schema, table, view or macro, in the order they were set. Those of a column are with it.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn tags(&self, object_id: u64) -> Result<Vec<Tag>, ReadError> {
        let found = self.reading().tag(object_id).await?;
        Ok(entities::tags(&found.entries, self.info.snapshot_id))
    }

    /// The options of exactly one scope, by name. Options have no history: these are of the newest state that this
    /// snapshot was read from.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn options(&self, scope: OptionScope) -> Result<Vec<(String, String)>, ReadError> {
        let (kind, id) = scope.key();
        let found = self.reading().options(kind, id).await?;
        Ok(found.options.into_iter().collect())
    }

    /// What holds for an option of a table: what its own scope says, its schema's, or the lake's.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn table_option(&self, table_id: u64, name: &str) -> Result<Option<String>, ReadError> {
        match self.reading().table_by_id(table_id).await? {
            Some(table) => self.reading().table_option(&table, name).await,
            None => Ok(None),
        }
    }

    /// The data files of a table, one at a time.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn data_files(&self, table_id: u64) -> Result<DataFileScan, ReadError> {
        Ok(DataFileScan::new(self.reading().data_files(table_id).await?))
    }

    /// The delete files of a table, one at a time.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn delete_files(&self, table_id: u64) -> Result<DeleteFileScan, ReadError> {
        Ok(DeleteFileScan::new(self.reading().delete_files(table_id).await?))
    }

    /// The statistics of a data file, by column id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn column_stats(
        &self,
        table_id: u64,
        data_file_id: u64,
    ) -> Result<Vec<(u64, ColumnStats)>, ReadError> {
        let range = FileColumnStatsKey::scan_file(table_id, data_file_id);
        let found = self.read.records::<FileColumnStatsKey>(range).await?;
        Ok(found
            .into_iter()
            .map(|(key, value)| (key.column_id, ColumnStats::of(value)))
            .collect())
    }

    /// The size of a table in the newest state that this snapshot was read from; `None` before its first rows.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn table_stats(&self, table_id: u64) -> Result<Option<TableStats>, ReadError> {
        let found = self.reading().table_stats(table_id).await?;
        Ok(found.as_ref().map(TableStats::of))
    }

    /// The statistics of a table's columns in the newest state that this snapshot was read from, by column id.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn table_column_stats(&self, table_id: u64) -> Result<Vec<(u64, TableColumnStats)>, ReadError> {
        let range = TableColumnStatsKey::scan_table(table_id);
        let found = self.read.records::<TableColumnStatsKey>(range).await?;
        Ok(found
            .into_iter()
            .map(|(key, value)| (key.column_id, TableColumnStats::of(value)))
            .collect())
    }

    /// The column mappings of a table, by id. They are never changed, and a snapshot sees later ones too.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn mappings(&self, table_id: u64) -> Result<Vec<Mapping>, ReadError> {
        let found = self
            .read
            .records::<MappingKey>(MappingKey::scan_table(table_id))
            .await?;
        Ok(found.into_iter().map(|(_, value)| Mapping::of(value)).collect())
    }

    /// The files that wait to be deleted, by id, in the newest state that this snapshot was read from.
    ///
    /// # Errors
    /// See [`Snapshot::schemas`].
    pub async fn scheduled_files(&self) -> Result<Vec<ScheduledFile>, ReadError> {
        let found = self.read.records::<GcFileKey>(GcFileKey::scan()).await?;
        Ok(found
            .into_iter()
            .map(|(_, value)| ScheduledFile::of(value))
            .collect())
    }

    /// The inlined tables of a table that there were by this snapshot, by schema version: each holds the rows that were
    /// inlined under its columns.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn inlined_tables(&self, table_id: u64) -> Result<Vec<InlinedTable>, LakeError> {
        let mut tables = InlinedTable::of_table(&self.read, table_id).await?;
        tables.retain(|table| table.schema_version <= self.info.schema_version);
        Ok(tables)
    }

    /// The inlined rows of one inlined table that this snapshot sees, by row id; see [`InlinedRows`].
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn inlined_rows(&self, table: InlinedTable) -> Result<InlinedRows, LakeError> {
        InlinedRows::select(
            Arc::clone(&self.read),
            &self.directories,
            table,
            self.info.snapshot_id,
        )
        .await
    }

    /// The rows deleted from data files without a delete file that this snapshot sees: data file id and position in it.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn inlined_file_deletes(&self, table_id: u64) -> Result<Vec<(u64, u64)>, LakeError> {
        let found = moraine_inline::file_deletes(self.read.as_ref(), table_id, 0..=u64::MAX).await?;
        Ok(found
            .into_iter()
            .filter(|(_, _, begin_snapshot)| *begin_snapshot <= self.info.snapshot_id)
            .map(|(data_file_id, position, _)| (data_file_id, position))
            .collect())
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
