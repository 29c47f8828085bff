//! Verbs that register compacted files: merged ones and ones without their deleted rows. The files themselves are written
//! by whoever compacts.

use moraine_codec::proto::{DataFileValue, DeleteFileValue, TableValue};
use moraine_keys::{DataFileKey, DeleteFileKey, FileColumnStatsKey, History, Kind, TableScoped};
use moraine_store::ReadExt;

use crate::change::Change;
use crate::verbs::definitions::NewDataFile;
use crate::verbs::error::VerbError;
use crate::verbs::files::data_file_changes;
use crate::verbs::names::TableRef;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

impl LakeTransaction {
    /// Puts one file in the place of several adjacent ones with the same rows, in order, and gives its id. Nothing is
    /// inserted or deleted by that: the file is seen by every snapshot that saw one of the others, each of which is
    /// scheduled for deletion. Unless it takes the place of one file alone, it holds the row id and the snapshot of each
    /// row.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for a file that is not live; [`VerbError::Refused`] for a file with deletions (rewrite it
    /// first), and where the rows of the files do not add up.
    pub async fn merge_adjacent_files(
        &self,
        table: impl Into<TableRef> + Send,
        source_file_ids: &[u64],
        merged: NewDataFile,
    ) -> Result<u64, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let registered = verb.merge_adjacent(&table, source_file_ids, &merged).await;
        verb.done(registered)
    }

    /// Puts a file without deleted rows in the place of files with deletions, and gives its id; none where no row is left.
    /// Earlier snapshots go on seeing the files with their delete files. The rows of the new file keep their row ids: it
    /// begins at `row_id_start`, or holds them itself.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for a file that is not live; [`VerbError::Refused`] where the rows do not add up.
    pub async fn rewrite_data_files(
        &self,
        table: impl Into<TableRef> + Send,
        source_file_ids: &[u64],
        rewritten: Option<NewDataFile>,
        row_id_start: Option<u64>,
    ) -> Result<Option<u64>, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let registered = verb
            .rewrite(&table, source_file_ids, rewritten, row_id_start)
            .await;
        verb.done(registered)
    }
}

impl Work {
    /// The live files of these ids, none twice and none of this transaction.
    async fn sources(&self, table: &TableValue, ids: &[u64]) -> Result<Vec<DataFileValue>, VerbError> {
        if ids.is_empty() {
            return Err(VerbError::refused("a compaction must have a source file"));
        }
        let mut files: Vec<DataFileValue> = Vec::new();
        for data_file_id in ids {
            let file = self.data_file(table.table_id, *data_file_id).await?;
            if file.begin_snapshot == self.snapshot_id()
                || files.iter().any(|other| other.data_file_id == *data_file_id)
            {
                return Err(VerbError::refused(format!(
                    "data file {data_file_id} is named twice, or was added by this transaction"
                )));
            }
            files.push(file);
        }
        Ok(files)
    }

    async fn merge_adjacent(
        &mut self,
        table: &TableRef,
        ids: &[u64],
        merged: &NewDataFile,
    ) -> Result<u64, VerbError> {
        let table = self.table(table).await?;
        let table_id = table.table_id;
        let sources = self.sources(&table, ids).await?;
        for source in &sources {
            if let Some(deleted) = self.delete_file_of(table_id, source.data_file_id).await? {
                return Err(VerbError::refused(format!(
                    "data file {} has delete file {}; rewrite it first",
                    source.data_file_id, deleted.delete_file_id
                )));
            }
        }
        check_rows(&sources, 0, merged.record_count)?;
        let mut changes = Vec::new();
        for source in &sources {
            let (id, path) = (source.data_file_id, source.path.clone());
            changes.push(self.scheduled(&table, id, &path, source.path_is_relative).await?);
            changes.extend(self.forgotten(source).await?);
        }
        self.stage(changes).await?;
        let mut value = self.data_file_value(table_id, merged, sources.first()).await?;
        if let Some(first) = sources.first() {
            value.begin_snapshot = first.begin_snapshot;
            value.row_id_start = first.row_id_start;
        }
        let newest = sources
            .iter()
            .map(|file| file.partial_max.unwrap_or(file.begin_snapshot));
        value.partial_max = newest.max().filter(|_| sources.len() > 1);
        let data_file_id = value.data_file_id;
        self.stage(data_file_changes(value, merged)).await?;
        self.state.changes.merges.insert(table_id);
        self.mint();
        Ok(data_file_id)
    }

    /// What takes a data file away for good, with all that belongs to it.
    pub(crate) async fn forgotten(&self, file: &DataFileValue) -> Result<Vec<Change>, VerbError> {
        let (table_id, data_file_id) = (file.table_id, file.data_file_id);
        let key = DataFileKey {
            table_id,
            data_file_id,
        };
        let mut changes = vec![match file.end_snapshot {
            None => Change::Remove { key: key.to_key() },
            Some(end_snapshot) => {
                let ended = History {
                    entity: key,
                    end_snapshot,
                };
                Change::Remove { key: ended.to_key() }
            }
        }];
        let range = FileColumnStatsKey::scan_file(table_id, data_file_id);
        for key in self.read()?.keys::<FileColumnStatsKey>(range).await? {
            changes.push(Change::Remove { key: key.to_key() });
        }
        let ended = History::<DeleteFileKey>::scan_table(table_id);
        for (key, value) in self.read()?.records::<History<DeleteFileKey>>(ended).await? {
            if value.data_file_id == data_file_id {
                changes.push(Change::Remove { key: key.to_key() });
            }
        }
        Ok(changes)
    }

    async fn rewrite(
        &mut self,
        table: &TableRef,
        ids: &[u64],
        rewritten: Option<NewDataFile>,
        row_id_start: Option<u64>,
    ) -> Result<Option<u64>, VerbError> {
        let table = self.table(table).await?;
        let table_id = table.table_id;
        let sources = self.sources(&table, ids).await?;
        let mut deleted = 0_u64;
        let mut changes = Vec::new();
        for source in &sources {
            if let Some(delete_file) = self.delete_file_of(table_id, source.data_file_id).await? {
                deleted = deleted.saturating_add(delete_file.delete_count);
                self.target_entry(&delete_file, false)?;
                changes.push(self.ended_delete_file(delete_file));
            }
            let inlined = self.inlined_deletes_of(table_id, source.data_file_id).await?;
            deleted = deleted.saturating_add(inlined);
            let key = DataFileKey {
                table_id,
                data_file_id: source.data_file_id,
            };
            changes.push(self.ended(key, source.clone()));
        }
        let left = rewritten.as_ref().map_or(0, |file| file.record_count);
        check_rows(&sources, deleted, left)?;
        let mut data_file_id = None;
        if let Some(file) = rewritten {
            let mut value = self.data_file_value(table_id, &file, sources.first()).await?;
            value.row_id_start = row_id_start;
            data_file_id = Some(value.data_file_id);
            changes.extend(data_file_changes(value, &file));
        }
        self.stage(changes).await?;
        self.recount(table_id).await?;
        self.state.changes.rewrites.insert(table_id);
        self.mint();
        Ok(data_file_id)
    }

    fn ended_delete_file(&self, file: DeleteFileValue) -> Change {
        let key = DeleteFileKey {
            table_id: file.table_id,
            delete_file_id: file.delete_file_id,
        };
        self.ended(key, file)
    }

    /// Rows of a data file that are deleted without a delete file.
    async fn inlined_deletes_of(&self, table_id: u64, data_file_id: u64) -> Result<u64, VerbError> {
        let range = data_file_id..=data_file_id;
        let found = moraine_inline::file_deletes(self.read()?, table_id, range).await?;
        Ok(found.len() as u64)
    }
}

fn check_rows(sources: &[DataFileValue], deleted: u64, left: u64) -> Result<(), VerbError> {
    let rows: u64 = sources.iter().map(|file| file.record_count).sum();
    if rows.saturating_sub(deleted) == left {
        return Ok(());
    }
    Err(VerbError::refused(format!(
        "the source files have {rows} rows, of which {deleted} are deleted, but the new file has {left}; rows would be lost \
         or doubled"
    )))
}
