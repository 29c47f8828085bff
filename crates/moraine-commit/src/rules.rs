//! What a staged change does to records. Each rule is a pure function over the record that is changed and those it
//! depends on; [`apply`] reads them, asks the rule, and writes to the transaction's overlay.

use std::collections::BTreeMap;

use bytes::Bytes;
use moraine_codec::proto::{ColumnValue, TableValue};
use moraine_codec::{Record, encode_record};
use moraine_keys::{
    ColumnKey, CurrentKey, DataFileKey, EntityKey, History, HistoryKey, InlineFileDeleteKey, Key, Kind,
    TableChild, TableScoped,
};
use moraine_store::{Read, ReadError, ReadExt, Staging};

use crate::change::Change;
use crate::error::StageError;
use crate::presence::Presence;
use crate::tags;
use crate::transaction::Staged;

/// A change whose record stands where it belongs: current or history.
enum Step {
    Insert { key: Key, record: Record },
    Replace { old: Key, key: Key, record: Record },
    Remove { key: Key },
}

/// Stages `changes` in order. `head` is the newest snapshot the transaction sees. What was staged before an error stays;
/// the caller takes it back.
pub(crate) async fn apply(
    staging: &mut Staging,
    staged: &mut Staged,
    head: Option<u64>,
    changes: Vec<Change>,
) -> Result<(), StageError> {
    let steps: Vec<Step> = changes.into_iter().map(Step::from).collect();
    for step in &steps {
        check_allowed(step, head)?;
    }
    let keys = steps.iter().flat_map(Step::keys).map(Key::encode).collect();
    let presence = Presence::load(staging, keys).await?;
    let mut file_deletes = FileDeletes::default();
    for step in steps {
        match step {
            Step::Insert { key, record } => insert(staging, staged, &presence, &key, record).await?,
            Step::Replace { old, key, record } => replace(staging, &presence, &old, &key, record).await?,
            Step::Remove { key } => remove(staging, &presence, &mut file_deletes, &key).await?,
        }
    }
    Ok(())
}

async fn insert(
    staging: &mut Staging,
    staged: &mut Staged,
    presence: &Presence,
    key: &Key,
    record: Record,
) -> Result<(), StageError> {
    let bytes = key.encode();
    if presence.sees(staging, &bytes) {
        return Err(StageError::Duplicate { key: key.to_string() });
    }
    let record = match record {
        Record::Table(table, mut value) => {
            let ended = tags::newest_table(staging, table.table_id).await?;
            tags::follow_table(&mut value, ended.as_ref());
            let mut value = continued_table(value, ended.as_ref());
            if presence.below(&bytes) {
                let before = staging.base().value(&table).await?;
                value = continued_table(value, before.as_ref());
            } else if ended.is_none() {
                staged.new_tables.insert(table.table_id);
            }
            Record::Table(table, value)
        }
        Record::HistoryTable(table, mut value) => {
            let newest = tags::newest_table(staging, value.table_id).await?;
            tags::follow_table(&mut value, newest.as_ref());
            Record::HistoryTable(table, value)
        }
        Record::Column(column, value) => {
            let value = new_column(staging, staged, &column, value).await?;
            Record::Column(column, value)
        }
        Record::HistoryColumn(column, value) => {
            let value = new_column(staging, staged, &column.entity, value).await?;
            Record::HistoryColumn(column, value)
        }
        record => record,
    };
    put(staging, &record)
}

/// A version of a column as it is stored: with the tags of the column.
async fn new_column(
    staging: &mut Staging,
    staged: &Staged,
    column: &ColumnKey,
    mut value: ColumnValue,
) -> Result<ColumnValue, StageError> {
    let is_new_table = staged.new_tables.contains(&column.table_id);
    let newest = tags::newest_column(staging, column, is_new_table).await?;
    tags::follow_column(&mut value, newest.as_ref());
    tags::collect_strays(staging, &mut value).await?;
    Ok(value)
}

async fn replace(
    staging: &mut Staging,
    presence: &Presence,
    old: &Key,
    key: &Key,
    record: Record,
) -> Result<(), StageError> {
    let old_bytes = old.encode();
    if !presence.sees(staging, &old_bytes) {
        return Err(StageError::Missing { key: old.to_string() });
    }
    if matches!(record, Record::Mapping(..)) && presence.below(&old_bytes) {
        let detail =
            format!("{old} is committed, and column mappings never change; insert a new one with a new id");
        return Err(StageError::Constraint { detail });
    }
    if old != key && presence.sees(staging, &key.encode()) {
        return Err(StageError::Duplicate { key: key.to_string() });
    }
    let record = match record {
        Record::Table(table, value) => {
            let before = table_value(staging, old).await?;
            Record::Table(table, continued_table(value, before.as_ref()))
        }
        Record::HistoryTable(table, value) => {
            let before = table_value(staging, old).await?;
            Record::HistoryTable(table, continued_table(value, before.as_ref()))
        }
        Record::Column(column, mut value) if entity(old) != entity(key) => {
            tags::collect_strays(staging, &mut value).await?;
            Record::Column(column, value)
        }
        Record::HistoryColumn(column, mut value) if entity(old) != entity(key) => {
            tags::collect_strays(staging, &mut value).await?;
            Record::HistoryColumn(column, value)
        }
        record => record,
    };
    if old != key {
        staging.delete_raw(old_bytes);
    }
    put(staging, &record)
}

async fn remove(
    staging: &mut Staging,
    presence: &Presence,
    file_deletes: &mut FileDeletes,
    key: &Key,
) -> Result<(), StageError> {
    let bytes = key.encode();
    if !presence.sees(staging, &bytes) {
        return if is_statistics(key) {
            Ok(())
        } else {
            Err(StageError::Missing { key: key.to_string() })
        };
    }
    staging.delete_raw(bytes);
    if let Some(file) = data_file(key)
        && file_deletes.may_exist(staging, file.table_id).await?
        && is_gone(staging, file).await?
    {
        moraine_inline::remove_deletes_of_file(staging, file.table_id, file.data_file_id).await?;
    }
    Ok(())
}

/// Refuses what no client may write.
fn check_allowed(step: &Step, head: Option<u64>) -> Result<(), StageError> {
    for key in step.keys() {
        let refused = match key {
            Key::Current(_) | Key::History(_) | Key::SchemaVersion(_) => None,
            Key::Snapshot(snapshot) => match step {
                Step::Remove { .. } if head == Some(snapshot.snapshot_id) => {
                    Some("is the newest snapshot, which stays; expire older ones")
                }
                Step::Remove { .. } => None,
                Step::Insert { .. } => Some("is not staged like other records; insert it as a snapshot"),
                Step::Replace { .. } => Some("never changes once it is written"),
            },
            Key::System(_)
            | Key::Inline(_)
            | Key::Index(_)
            | Key::Changelog(_)
            | Key::Name(_)
            | Key::DeleteTarget(_) => {
                Some("is kept by the catalog itself; stage the records it follows from")
            }
        };
        if let Some(reason) = refused {
            return Err(StageError::Constraint {
                detail: format!("{key} {reason}"),
            });
        }
    }
    Ok(())
}

/// A version of a table that follows another: its column counter never falls, or ids of dropped columns would be given
/// again.
fn continued_table(mut value: TableValue, before: Option<&TableValue>) -> TableValue {
    let inherited = before.map_or(0, |before| before.next_column_id);
    value.next_column_id = value.next_column_id.max(inherited);
    value
}

/// What a key of a catalog record is a version of.
fn entity(key: &Key) -> Option<&EntityKey> {
    match key {
        Key::Current(CurrentKey::Entity(entity)) | Key::History(HistoryKey { entity, .. }) => Some(entity),
        _ => None,
    }
}

/// Statistics are removed by file or table, whether they were written or not.
fn is_statistics(key: &Key) -> bool {
    matches!(
        key,
        Key::Current(CurrentKey::Entity(
            EntityKey::FileColumnStats(_) | EntityKey::TableStats(_) | EntityKey::TableColumnStats(_)
        ))
    )
}

fn data_file(key: &Key) -> Option<&DataFileKey> {
    match key {
        Key::Current(CurrentKey::Entity(EntityKey::DataFile(file)))
        | Key::History(HistoryKey {
            entity: EntityKey::DataFile(file),
            ..
        }) => Some(file),
        _ => None,
    }
}

/// Whether no version of the file is left.
async fn is_gone(staging: &Staging, file: &DataFileKey) -> Result<bool, ReadError> {
    if staging.get(&file.encode()).await?.is_some() {
        return Ok(false);
    }
    let ended = History::<DataFileKey>::scan_table_ids(file.table_id, file.data_file_id..=file.data_file_id);
    Ok(staging.scan(ended).await?.next().await?.is_none())
}

async fn table_value(staging: &Staging, key: &Key) -> Result<Option<TableValue>, ReadError> {
    match key {
        Key::Current(CurrentKey::Entity(EntityKey::Table(table))) => staging.value(table).await,
        Key::History(HistoryKey {
            entity: EntityKey::Table(table),
            end_snapshot,
        }) => {
            staging
                .value(&History {
                    entity: table.clone(),
                    end_snapshot: *end_snapshot,
                })
                .await
        }
        _ => Ok(None),
    }
}

fn put(staging: &mut Staging, record: &Record) -> Result<(), StageError> {
    let (key, value): (Bytes, Bytes) = encode_record(record)?;
    staging.put_raw(key, value);
    Ok(())
}

/// Which tables have inlined deletions at all, so that expiring many files of others costs nothing.
#[derive(Debug, Default)]
struct FileDeletes {
    by_table: BTreeMap<u64, bool>,
}

impl FileDeletes {
    async fn may_exist(&mut self, staging: &Staging, table_id: u64) -> Result<bool, ReadError> {
        if let Some(known) = self.by_table.get(&table_id) {
            return Ok(*known);
        }
        let mut scan = staging.scan(InlineFileDeleteKey::scan_table(table_id)).await?;
        let found = scan.next().await?.is_some();
        self.by_table.insert(table_id, found);
        Ok(found)
    }
}

impl Step {
    /// The keys the change needs or takes.
    fn keys(&self) -> impl Iterator<Item = &Key> {
        let (first, second) = match self {
            Step::Insert { key, .. } | Step::Remove { key } => (key, None),
            Step::Replace { old, key, .. } => (old, (old != key).then_some(key)),
        };
        std::iter::once(first).chain(second)
    }
}

impl From<Change> for Step {
    fn from(change: Change) -> Self {
        match change {
            Change::Insert(record) => {
                let record = placed(record);
                Step::Insert {
                    key: record.key(),
                    record,
                }
            }
            Change::Replace { old, new } => {
                let record = placed(new);
                Step::Replace {
                    old,
                    key: record.key(),
                    record,
                }
            }
            Change::Remove { key } => Step::Remove { key },
        }
    }
}

/// The record where it belongs: an ended version in history.
fn placed(record: Record) -> Record {
    macro_rules! placed {
        ($($current:ident => $history:ident),+ $(,)?) => {
            match record {
                $(Record::$current(entity, value) => match value.end_snapshot {
                    Some(end_snapshot) => Record::$history(History { entity, end_snapshot }, value),
                    None => Record::$current(entity, value),
                },)+
                record => record,
            }
        };
    }
    placed! {
        Schema => HistorySchema,
        Table => HistoryTable,
        View => HistoryView,
        Column => HistoryColumn,
        Partition => HistoryPartition,
        DataFile => HistoryDataFile,
        DeleteFile => HistoryDeleteFile,
        Sort => HistorySort,
        Macro => HistoryMacro,
        IndexDefinition => HistoryIndexDefinition,
    }
}
