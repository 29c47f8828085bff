//! Verbs of data files, delete files and column mappings.

use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, FilePartitionValue, GcFileValue, MappingValue, NameMapping, TableValue,
};
use moraine_codec::{Nullable, Record};
use moraine_keys::{DataFileKey, DeleteFileKey, DeleteTargetKey, GcFileKey, Kind, MappingKey};
use moraine_store::ReadExt;

use crate::change::Change;
use crate::lake::MappedColumn;
use crate::lake::files::{FOOTER_SIZE_FIELD, PARTITION_VALUE_FIELD};
use crate::verbs::commit::now_micros;
use crate::verbs::definitions::{NewDataFile, NewDeleteFile};
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names::TableRef;
use crate::verbs::stats::{Growth, file_column_stats};
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

impl LakeTransaction {
    /// Adds files with new rows to a table and gives their ids, in order. Their rows get row ids in order.
    ///
    /// # Errors
    /// [`VerbError::NotFound`], for a mapping or column that a file names too; [`VerbError::Refused`] for a file whose
    /// partition values do not fit the table's partitioning.
    pub async fn add_data_files(
        &self,
        table: impl Into<TableRef> + Send,
        files: Vec<NewDataFile>,
    ) -> Result<Vec<u64>, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let added = verb.add_data_files(&table, files).await;
        verb.done(added)
    }

    /// Takes whole data files out of a table, because all of their rows are deleted. Earlier snapshots go on seeing them.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for a file that this transaction has added.
    pub async fn drop_data_files(
        &self,
        table: impl Into<TableRef> + Send,
        data_file_ids: &[u64],
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let dropped = verb.drop_data_files(&table, data_file_ids).await;
        verb.done(dropped)
    }

    /// Adds files that delete rows of data files and gives their ids, in order. Each takes the place of the delete file
    /// that its data file has: where the new one says of each row when it was deleted, so that it serves earlier snapshots
    /// too (its `begin_snapshot` is given), the old one goes and is scheduled for deletion; otherwise the old one ends.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for a data file that is not live; [`VerbError::Changed`] where it has another delete file
    /// than the new one replaces; [`VerbError::Refused`] for two files of one data file, or more deletions than it has
    /// rows.
    pub async fn add_delete_files(
        &self,
        table: impl Into<TableRef> + Send,
        files: Vec<NewDeleteFile>,
    ) -> Result<Vec<u64>, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let added = verb.add_delete_files(&table, files).await;
        verb.done(added)
    }

    /// Adds a way to read files that DuckLake has not written, by the names of their columns, and gives its id for
    /// [`NewDataFile::mapping_id`].
    ///
    /// # Errors
    /// [`VerbError::NotFound`], for a column that it names too; [`VerbError::Refused`] for one without columns.
    pub async fn add_mapping(
        &self,
        table: impl Into<TableRef> + Send,
        columns: Vec<MappedColumn>,
    ) -> Result<u64, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let added = verb.add_mapping(&table, &columns).await;
        verb.done(added)
    }
}

impl Work {
    async fn add_data_files(
        &mut self,
        table: &TableRef,
        files: Vec<NewDataFile>,
    ) -> Result<Vec<u64>, VerbError> {
        let table_id = self.table(table).await?.table_id;
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut next_row_id = self.next_row_id(table_id).await?;
        let mut growth = Growth::default();
        let mut ids = Vec::new();
        let mut changes = Vec::new();
        for file in files {
            let mut value = self.data_file_value(table_id, &file, None).await?;
            value.row_id_start = Some(next_row_id);
            next_row_id = next_row_id.saturating_add(file.record_count);
            ids.push(value.data_file_id);
            changes.extend(data_file_changes(value, &file));
            growth.records = growth.records.saturating_add(file.record_count);
            growth.file_bytes = growth.file_bytes.saturating_add(file.file_size_bytes);
            growth.columns.push(file.column_stats);
        }
        growth.row_ids = growth.records;
        self.grow(table_id, growth).await?;
        self.stage(changes).await?;
        self.state.changes.inserted.insert(table_id);
        self.state.tables_with_files.insert(table_id);
        self.mint();
        Ok(ids)
    }

    /// The record of a new data file that begins here, with an id of its own and no row ids: of the table's partitioning,
    /// or with the place of a file that it replaces.
    pub(crate) async fn data_file_value(
        &mut self,
        table_id: u64,
        file: &NewDataFile,
        replaced: Option<&DataFileValue>,
    ) -> Result<DataFileValue, VerbError> {
        check_path(&file.path)?;
        let (partition_id, partition_values) = match replaced {
            Some(replaced) => (replaced.partition_id, replaced.partition_values.clone()),
            None => self.partition_place(table_id, file).await?,
        };
        if let Some(mapping_id) = file.mapping_id {
            let key = MappingKey { table_id, mapping_id };
            if self.read()?.value(&key).await?.is_none() {
                return Err(VerbError::not_found(ObjectKind::Mapping, mapping_id));
            }
        }
        let mut value = DataFileValue {
            table_id,
            begin_snapshot: self.snapshot_id(),
            path: file.path.clone(),
            path_is_relative: file.path_is_relative,
            file_format: "parquet".to_owned(),
            record_count: file.record_count,
            file_size_bytes: file.file_size_bytes,
            footer_size: file.footer_size.unwrap_or_default(),
            partition_id,
            encryption_key: file.encryption_key.clone(),
            mapping_id: file.mapping_id,
            partition_values,
            ..DataFileValue::default()
        };
        value.set_null(FOOTER_SIZE_FIELD, file.footer_size.is_none());
        value.data_file_id = self.give_file_id();
        Ok(value)
    }

    /// Where a new file belongs in the table's partitioning.
    async fn partition_place(
        &self,
        table_id: u64,
        file: &NewDataFile,
    ) -> Result<(Option<u64>, Vec<FilePartitionValue>), VerbError> {
        let partition = self.reading()?.partition(table_id).await?;
        let keys = partition.as_ref().map_or(0, |partition| partition.columns.len());
        if file.partition_values.len() != keys {
            return Err(VerbError::refused(format!(
                "file {} has {} partition values, but the table has {keys} partition keys",
                file.path,
                file.partition_values.len()
            )));
        }
        let values = file.partition_values.iter().zip(0..);
        let stored = values.map(|(value, partition_key_index)| {
            let mut stored = FilePartitionValue {
                partition_key_index,
                partition_value: value.clone().unwrap_or_default(),
                ..FilePartitionValue::default()
            };
            stored.set_null(PARTITION_VALUE_FIELD, value.is_none());
            stored
        });
        let partition = partition.filter(|_| keys > 0);
        Ok((partition.map(|found| found.partition_id), stored.collect()))
    }

    /// The live data file of an id.
    pub(crate) async fn data_file(
        &self,
        table_id: u64,
        data_file_id: u64,
    ) -> Result<DataFileValue, VerbError> {
        let key = DataFileKey {
            table_id,
            data_file_id,
        };
        let found = self.read()?.value(&key).await?;
        found.ok_or_else(|| VerbError::not_found(ObjectKind::DataFile, data_file_id))
    }

    async fn drop_data_files(&mut self, table: &TableRef, ids: &[u64]) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let mut changes = Vec::new();
        for data_file_id in ids {
            let file = self.data_file(table_id, *data_file_id).await?;
            if file.begin_snapshot == self.snapshot_id() {
                return Err(VerbError::refused(format!(
                    "data file {data_file_id} was added by this transaction; do not add it"
                )));
            }
            let key = DataFileKey {
                table_id,
                data_file_id: *data_file_id,
            };
            changes.push(self.ended(key, file));
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.stage(changes).await?;
        let deleted = self.state.changes.deleted.entry(table_id).or_default();
        deleted.extend(ids);
        self.mint();
        Ok(())
    }

    /// The live delete file of a data file.
    pub(crate) async fn delete_file_of(
        &self,
        table_id: u64,
        data_file_id: u64,
    ) -> Result<Option<DeleteFileValue>, VerbError> {
        if !self.directories.delete_targets {
            let mut scan = self.reading()?.delete_files(table_id).await?;
            while let Some(found) = scan.next().await? {
                if found.data_file_id == data_file_id {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
        let range = DeleteTargetKey::scan_file(table_id, data_file_id);
        let entries = self.read()?.keys::<DeleteTargetKey>(range).await?;
        for entry in entries.into_iter().rev() {
            let key = DeleteFileKey {
                table_id,
                delete_file_id: entry.delete_file_id,
            };
            let found = self.read()?.value(&key).await?;
            if found
                .as_ref()
                .is_some_and(|found| found.data_file_id == data_file_id)
            {
                return Ok(found);
            }
        }
        Ok(None)
    }

    async fn add_delete_files(
        &mut self,
        table: &TableRef,
        files: Vec<NewDeleteFile>,
    ) -> Result<Vec<u64>, VerbError> {
        let table = self.table(table).await?;
        let mut ids = Vec::new();
        for file in files {
            ids.push(self.add_delete_file(&table, file).await?);
        }
        Ok(ids)
    }

    async fn add_delete_file(&mut self, table: &TableValue, file: NewDeleteFile) -> Result<u64, VerbError> {
        let table_id = table.table_id;
        check_path(&file.path)?;
        let target = self.data_file(table_id, file.data_file_id).await?;
        if file.delete_count > target.record_count {
            return Err(VerbError::refused(format!(
                "delete file {} deletes {} rows of data file {}, which has {}",
                file.path, file.delete_count, file.data_file_id, target.record_count
            )));
        }
        let old = self.delete_file_of(table_id, file.data_file_id).await?;
        let present = old.as_ref().map(|old| old.delete_file_id);
        if present != file.replaces {
            let name = |id: Option<u64>| {
                id.map_or_else(|| "no delete file".to_owned(), |id| format!("delete file {id}"))
            };
            return Err(VerbError::Changed {
                detail: format!(
                    "data file {} has {}, not {}",
                    file.data_file_id,
                    name(present),
                    name(file.replaces)
                ),
            });
        }
        if let Some(old) = old {
            if old.begin_snapshot == self.snapshot_id() {
                return Err(VerbError::refused(format!(
                    "data file {} has a delete file of this transaction already; give one that has all deletions",
                    file.data_file_id
                )));
            }
            self.replace_delete_file(table, old, file.begin_snapshot.is_some())
                .await?;
        }
        let delete_file_id = self.give_file_id();
        let value = DeleteFileValue {
            delete_file_id,
            table_id,
            begin_snapshot: file.begin_snapshot.unwrap_or(self.snapshot_id()),
            data_file_id: file.data_file_id,
            path: file.path,
            path_is_relative: file.path_is_relative,
            format: file.format,
            delete_count: file.delete_count,
            file_size_bytes: file.file_size_bytes,
            footer_size: file.footer_size,
            encryption_key: file.encryption_key,
            partial_max: file.partial_max,
            ..DeleteFileValue::default()
        };
        let data_file_id = file.data_file_id;
        self.put_delete_file(value).await?;
        let deleted = self.state.changes.deleted.entry(table_id).or_default();
        deleted.insert(data_file_id);
        self.mint();
        Ok(delete_file_id)
    }

    /// Stages a new delete file, and its entry in the directory for the lookups of this transaction.
    pub(crate) async fn put_delete_file(&mut self, value: DeleteFileValue) -> Result<(), VerbError> {
        if value.begin_snapshot > self.snapshot_id() {
            return Err(VerbError::refused(format!(
                "delete file {} begins at snapshot {}, which is yet to come",
                value.path, value.begin_snapshot
            )));
        }
        let key = DeleteFileKey {
            table_id: value.table_id,
            delete_file_id: value.delete_file_id,
        };
        self.target_entry(&value, true)?;
        self.stage(vec![Change::Insert(Record::DeleteFile(key, value))])
            .await
    }

    /// Takes a delete file's place away: for good where `serves_the_past` says that the next one shows earlier snapshots
    /// what this one did.
    async fn replace_delete_file(
        &mut self,
        table: &TableValue,
        old: DeleteFileValue,
        serves_the_past: bool,
    ) -> Result<(), VerbError> {
        let key = DeleteFileKey {
            table_id: old.table_id,
            delete_file_id: old.delete_file_id,
        };
        self.target_entry(&old, false)?;
        let changes = if serves_the_past {
            let id = old.delete_file_id;
            let scheduled = self.scheduled(table, id, &old.path, old.path_is_relative).await?;
            vec![Change::Remove { key: key.to_key() }, scheduled]
        } else {
            vec![self.ended(key, old)]
        };
        self.stage(changes).await
    }

    /// A file on the list of those to be deleted; its path there is one below the lake's data path.
    pub(crate) async fn scheduled(
        &self,
        table: &TableValue,
        file_id: u64,
        path: &str,
        path_is_relative: bool,
    ) -> Result<Change, VerbError> {
        let (path, path_is_relative) = if path_is_relative {
            let schema = self.schema_of(table).await?;
            below_data_path(&schema, table, path)
        } else {
            (path.to_owned(), false)
        };
        let value = GcFileValue {
            data_file_id: file_id,
            path,
            path_is_relative,
            schedule_start_micros: now_micros(),
            ..GcFileValue::default()
        };
        let key = GcFileKey {
            data_file_id: file_id,
        };
        Ok(Change::Insert(Record::GcFile(key, value)))
    }

    /// Folder of a table's schema, and whether it is below the lake's data path; live or not.
    async fn schema_of(&self, table: &TableValue) -> Result<(String, bool), VerbError> {
        let schema_id = table.schema_id;
        if let Some(found) = self.reading()?.schema_by_id(schema_id).await? {
            return Ok((found.path, found.path_is_relative));
        }
        use moraine_keys::{History, LeadingId, SchemaKey};
        let range = History::<SchemaKey>::scan_ids(schema_id..=schema_id);
        let ended = self.read()?.records::<History<SchemaKey>>(range).await?;
        let found = ended.into_iter().next_back();
        found
            .map(|(_, schema)| (schema.path, schema.path_is_relative))
            .ok_or_else(|| VerbError::not_found(ObjectKind::Schema, schema_id))
    }

    async fn add_mapping(&mut self, table: &TableRef, columns: &[MappedColumn]) -> Result<u64, VerbError> {
        let table_id = self.table(table).await?.table_id;
        if columns.is_empty() {
            return Err(VerbError::refused("a column mapping must map a column"));
        }
        let known = self.column_types(table_id).await?;
        let mut name_mappings = Vec::new();
        flatten(columns, None, &mut name_mappings);
        for row in &name_mappings {
            if !known.contains_key(&row.target_field_id) {
                return Err(VerbError::not_found(ObjectKind::Column, row.target_field_id));
            }
        }
        let mapping_id = self.give_file_id();
        let key = MappingKey { table_id, mapping_id };
        let value = MappingValue {
            mapping_id,
            table_id,
            map_type: "map_by_name".to_owned(),
            name_mappings,
            ..MappingValue::default()
        };
        self.stage(vec![Change::Insert(Record::Mapping(key, value))])
            .await?;
        self.mint();
        Ok(mapping_id)
    }
}

/// The records of a new data file and of what is known of its columns.
pub(crate) fn data_file_changes(value: DataFileValue, file: &NewDataFile) -> Vec<Change> {
    let (table_id, data_file_id) = (value.table_id, value.data_file_id);
    let key = DataFileKey {
        table_id,
        data_file_id,
    };
    let mut changes = vec![Change::Insert(Record::DataFile(key, value))];
    for (column_id, stats) in &file.column_stats {
        changes.push(file_column_stats(table_id, data_file_id, *column_id, stats));
    }
    changes
}

fn check_path(path: &str) -> Result<(), VerbError> {
    if path.is_empty() {
        return Err(VerbError::refused("a file must have a path"));
    }
    Ok(())
}

/// Where a file below a table's folder is: below the lake's data path, or, where one of the folders is elsewhere, in full.
fn below_data_path(schema: &(String, bool), table: &TableValue, path: &str) -> (String, bool) {
    let file = format!("{}{path}", table.path);
    if !table.path_is_relative {
        return (file, false);
    }
    (format!("{}{file}", schema.0), schema.1)
}

/// The rows of mapped columns: each before its fields, numbered from 0.
fn flatten(columns: &[MappedColumn], parent: Option<u64>, rows: &mut Vec<NameMapping>) {
    for column in columns {
        let column_id = rows.len() as u64;
        rows.push(NameMapping {
            column_id,
            source_name: column.source_name.clone(),
            target_field_id: column.column_id,
            parent_column: parent,
            is_partition: column.is_partition,
            ..NameMapping::default()
        });
        flatten(&column.fields, Some(column_id), rows);
    }
}
