//! Staging a flush: the records of its files, the removal of the inlined rows and deletions they hold, one snapshot.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moraine_codec::Record;
use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, FileColumnStatsValue, FilePartitionValue, GcFileValue, SnapshotValue,
    TableColumnStatsValue, TableStatsValue,
};
use moraine_inline::ColumnStatistics;
use moraine_keys::{
    DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, Key, Kind, TableColumnStatsKey, TableStatsKey,
};
use moraine_store::{ReadError, ReadExt};

use crate::change::{Change, InlineChange, SnapshotChanges};
use crate::changes_made::{ChangeEntry, ChangesMade};
use crate::flush::file_deletes::{WrittenDeletes, full_path};
use crate::flush::plan::{Plan, Source, TablePlan};
use crate::flush::write::{WrittenDeleteFile, WrittenFile, WrittenSource};
use crate::flush::{FlushError, FlushedTable};
use crate::transaction::CatalogTransaction;

/// Field number of `FilePartitionValue.partition_value`, whose SQL NULL is kept in `null_fields`.
const PARTITION_VALUE_FIELD: u32 = 2;

/// What one table contributes to the commit.
pub(super) struct WrittenTable<'p> {
    pub(super) table: &'p TablePlan,
    pub(super) files: Vec<WrittenSource<'p>>,
    pub(super) deletes: Vec<WrittenDeletes>,
    /// Superseded inlined tables without rows, which go with a commit that there is anyway.
    pub(super) empty: Vec<&'p Source>,
}

impl WrittenTable<'_> {
    /// Whether there is a reason to commit.
    pub(super) fn moves(&self) -> bool {
        !self.files.is_empty() || !self.deletes.is_empty()
    }

    pub(super) fn report(&self) -> FlushedTable {
        let files = || self.files.iter().flat_map(|source| &source.files);
        FlushedTable {
            schema_name: self.table.name.schema.clone(),
            table_name: self.table.name.name.clone(),
            rows: files().map(|file| file.flushed.rows).sum(),
            files: files().count() as u64,
            deletions: self.deletes.iter().map(|file| file.positions.len() as u64).sum(),
            unsorted_by: self
                .table
                .unsorted_by()
                .map(str::to_owned)
                .filter(|_| !self.files.is_empty()),
        }
    }
}

/// The ids that files get.
struct FileIds(u64);

impl FileIds {
    fn next(&mut self) -> u64 {
        let id = self.0;
        self.0 += 1;
        id
    }
}

/// Stages the whole commit and gives its snapshot id. The snapshot comes first: there a lost race is found out.
pub(super) async fn stage(
    transaction: &mut CatalogTransaction,
    plan: &Plan,
    written: &[WrittenTable<'_>],
) -> Result<u64, FlushError> {
    let snapshot_id = plan.until.saturating_add(1);
    let mut ids = FileIds(plan.snapshot.next_file_id);
    let mut changes = Vec::new();
    for table in written {
        let mut file_bytes = 0;
        for source in &table.files {
            for file in &source.files {
                file_bytes += file.flushed.file_bytes;
                data_file(table.table.table_id, source, file, &mut ids, &mut changes);
            }
        }
        changes.extend(table_size(transaction, table.table.table_id, file_bytes).await?);
        column_bounds(transaction, table, &mut changes).await?;
        for deletes in &table.deletes {
            deletion_file(plan, table.table, deletes, &mut ids, &mut changes);
        }
    }
    transaction.pin();
    transaction
        .insert_snapshot(SnapshotValue {
            snapshot_id,
            snapshot_time_micros: now_micros(),
            schema_version: plan.snapshot.schema_version,
            next_catalog_id: plan.snapshot.next_catalog_id,
            next_file_id: ids.0,
            ..SnapshotValue::default()
        })
        .await?;
    transaction.stage(changes).await?;
    for table in written {
        remove_inlined(transaction, plan.until, table).await?;
    }
    let entries = entries(written);
    transaction
        .set_snapshot_changes(SnapshotChanges {
            snapshot_id,
            changes_made: Some(ChangesMade { entries }.to_string()),
            ..SnapshotChanges::default()
        })
        .await?;
    Ok(snapshot_id)
}

/// What the snapshot says it has changed, in DuckLake's order.
fn entries(written: &[WrittenTable<'_>]) -> Vec<ChangeEntry> {
    let deleted = written.iter().filter(|table| !table.deletes.is_empty());
    let flushed = written.iter().filter(|table| !table.files.is_empty());
    let deleted = deleted.map(|table| ChangeEntry::DeletedFromTable(table.table.table_id));
    let flushed = flushed.map(|table| ChangeEntry::InlineFlush(table.table.table_id));
    deleted.chain(flushed).collect()
}

/// Removes what the files hold; refused when that is not exactly the rows that were written.
async fn remove_inlined(
    transaction: &mut CatalogTransaction,
    until: u64,
    written: &WrittenTable<'_>,
) -> Result<(), FlushError> {
    let table_id = written.table.table_id;
    for source in &written.files {
        let schema_version = source.source.schema_version;
        transaction
            .inline(InlineChange::Drain {
                table_id,
                schema_version,
                until_snapshot: until,
                written: source.rows.clone(),
            })
            .await?;
    }
    let flushed = written.files.iter().map(|source| source.source);
    let gone = flushed
        .filter(|source| source.superseded)
        .chain(written.empty.iter().copied());
    for source in gone {
        let schema_version = source.schema_version;
        transaction
            .inline(InlineChange::DropTable {
                table_id,
                schema_version,
            })
            .await?;
    }
    let deletions = written.deletes.iter().flat_map(|deletes| {
        let positions = deletes.positions.iter();
        positions.map(|position| (deletes.data_file_id, *position))
    });
    let rows: Vec<(u64, u64)> = deletions.collect();
    if !rows.is_empty() {
        transaction
            .inline(InlineChange::RemoveFileDeletes { table_id, rows })
            .await?;
    }
    Ok(())
}

/// The records of a data file, its statistics and the delete file of its ended rows.
fn data_file(
    table_id: u64,
    source: &WrittenSource<'_>,
    file: &WrittenFile,
    ids: &mut FileIds,
    changes: &mut Vec<Change>,
) {
    let data_file_id = ids.next();
    let flushed = &file.flushed;
    let (least, greatest) = flushed
        .begin_snapshots
        .clone()
        .map_or((0, 0), std::ops::RangeInclusive::into_inner);
    let encryption_key = source.encryption_key.as_ref().map(|key| STANDARD.encode(key));
    let value = DataFileValue {
        data_file_id,
        table_id,
        begin_snapshot: least,
        path: file.path.clone(),
        path_is_relative: true,
        file_format: "parquet".to_owned(),
        record_count: flushed.rows,
        file_size_bytes: flushed.file_bytes,
        footer_size: flushed.footer_bytes,
        row_id_start: Some(flushed.first_row_id),
        partition_id: source
            .source
            .partition
            .as_ref()
            .map(|partition| partition.partition_id),
        partial_max: Some(greatest),
        partition_values: partition_values(&flushed.partition_values),
        encryption_key: encryption_key.clone(),
        ..DataFileValue::default()
    };
    let key = DataFileKey {
        table_id,
        data_file_id,
    };
    changes.push(Change::Insert(Record::DataFile(key, value)));
    for (column_id, statistics) in &flushed.columns {
        changes.push(column_record(table_id, data_file_id, *column_id, statistics));
    }
    if let Some(delete_file) = &file.delete_file {
        let value = delete_file_value(table_id, data_file_id, ids.next(), delete_file, encryption_key);
        changes.push(insert_delete_file(value));
    }
}

fn partition_values(values: &[Option<String>]) -> Vec<FilePartitionValue> {
    let values = values
        .iter()
        .zip(0..)
        .map(|(value, partition_key_index)| FilePartitionValue {
            partition_key_index,
            partition_value: value.clone().unwrap_or_default(),
            null_fields: value
                .is_none()
                .then_some(PARTITION_VALUE_FIELD)
                .into_iter()
                .collect(),
        });
    values.collect()
}

/// The records of a delete file of an older data file; one that it replaces is removed and scheduled for deletion.
fn deletion_file(
    plan: &Plan,
    table: &TablePlan,
    deletes: &WrittenDeletes,
    ids: &mut FileIds,
    changes: &mut Vec<Change>,
) {
    let table_id = table.table_id;
    if let Some(replaced) = &deletes.replaced {
        let key = DeleteFileKey {
            table_id,
            delete_file_id: replaced.delete_file_id,
        };
        changes.push(Change::Remove { key: key.to_key() });
        let path = full_path(table, &replaced.path, replaced.path_is_relative);
        let below = path.strip_prefix(&plan.data_path);
        let scheduled = GcFileValue {
            data_file_id: replaced.delete_file_id,
            path: below.unwrap_or(&path).to_owned(),
            path_is_relative: below.is_some(),
            schedule_start_micros: now_micros(),
            ..GcFileValue::default()
        };
        let key = GcFileKey {
            data_file_id: replaced.delete_file_id,
        };
        changes.push(Change::Insert(Record::GcFile(key, scheduled)));
    }
    let encryption_key = deletes.encryption_key.as_ref().map(|key| STANDARD.encode(key));
    let value = delete_file_value(
        table_id,
        deletes.data_file_id,
        ids.next(),
        &deletes.file,
        encryption_key,
    );
    changes.push(insert_delete_file(DeleteFileValue {
        partial_max: Some(deletes.last_snapshot),
        ..value
    }));
}

fn delete_file_value(
    table_id: u64,
    data_file_id: u64,
    delete_file_id: u64,
    file: &WrittenDeleteFile,
    encryption_key: Option<String>,
) -> DeleteFileValue {
    DeleteFileValue {
        delete_file_id,
        table_id,
        begin_snapshot: file.begin_snapshot,
        data_file_id,
        path: file.path.clone(),
        path_is_relative: true,
        format: "parquet".to_owned(),
        delete_count: file.count,
        file_size_bytes: file.file_bytes,
        footer_size: file.footer_bytes,
        encryption_key,
        ..DeleteFileValue::default()
    }
}

fn insert_delete_file(value: DeleteFileValue) -> Change {
    let key = DeleteFileKey {
        table_id: value.table_id,
        delete_file_id: value.delete_file_id,
    };
    Change::Insert(Record::DeleteFile(key, value))
}

fn column_record(table_id: u64, data_file_id: u64, column_id: u64, found: &ColumnStatistics) -> Change {
    let key = FileColumnStatsKey {
        table_id,
        data_file_id,
        column_id,
    };
    let value = FileColumnStatsValue {
        data_file_id,
        table_id,
        column_id,
        column_size_bytes: found.column_size_bytes,
        value_count: found.value_count,
        null_count: found.null_count,
        min_value: found.min_value.clone(),
        max_value: found.max_value.clone(),
        contains_nan: found.contains_nan,
        ..FileColumnStatsValue::default()
    };
    Change::Insert(Record::FileColumnStats(key, value))
}

/// The table's statistics with so many more bytes in files. Its rows and the bounds of its columns were counted when the rows were
/// inlined.
async fn table_size(
    transaction: &CatalogTransaction,
    table_id: u64,
    more_bytes: u64,
) -> Result<Option<Change>, ReadError> {
    let key = TableStatsKey { table_id };
    let found = transaction.read().value(&key).await?;
    let Some(found) = found.filter(|_| more_bytes > 0) else {
        return Ok(None);
    };
    let old: Key = key.to_key();
    let new = TableStatsValue {
        file_size_bytes: found.file_size_bytes.saturating_add(more_bytes),
        ..found
    };
    Ok(Some(Change::Replace {
        old,
        new: Record::TableStats(key, new),
    }))
}

/// Notes NULLs and NaNs that the files are now known to hold: of the fields of nested columns nobody knew when the rows were inlined.
/// Bounds stay, because no value has changed.
async fn column_bounds(
    transaction: &CatalogTransaction,
    written: &WrittenTable<'_>,
    changes: &mut Vec<Change>,
) -> Result<(), ReadError> {
    let table_id = written.table.table_id;
    let mut seen: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
    let files = written.files.iter().flat_map(|source| &source.files);
    for (column_id, statistics) in files.flat_map(|file| &file.flushed.columns) {
        let (null, nan) = seen.entry(*column_id).or_default();
        *null |= statistics.null_count > 0;
        *nan |= statistics.contains_nan == Some(true);
    }
    for (column_id, (null, nan)) in seen {
        let key = TableColumnStatsKey { table_id, column_id };
        let Some(found) = transaction.read().value(&key).await? else {
            continue;
        };
        let new = TableColumnStatsValue {
            contains_null: found.contains_null.map(|contains| contains || null),
            contains_nan: found.contains_nan.map(|contains| contains || nan),
            ..found.clone()
        };
        if new != found {
            changes.push(Change::Replace {
                old: key.to_key(),
                new: Record::TableColumnStats(key, new),
            });
        }
    }
    Ok(())
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
