//! From what was staged to what is written: reads the records that the derived ones follow from, and adds the derived
//! ones. What follows from what is decided in [`crate::derive`], [`crate::snapshot`] and [`crate::validate`].

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use moraine_codec::Stored;
use moraine_codec::format::{self, Format};
use moraine_codec::proto::{DeleteFileValue, HeadValue, SchemaValue, SnapshotValue, TableValue};
use moraine_keys::{
    ChangelogKey, ColumnKey, CurrentKey, DataFileKey, DeleteFileKey, EntityKey, FormatKey, History,
    HistoryKey, InlineKey, InlineOperation, Key, Kind, LeadingId, MacroKey, MappingKey, SchemaKey,
    SnapshotKey, TableKey, TableScoped,
};
use moraine_store::{Read, ReadError, ReadExt, Staging, WriteSet};

use crate::change::SnapshotChanges;
use crate::derive::{self, Pair};
use crate::error::CommitFailure;
use crate::flush_check::{self, FileChanges};
use crate::flushed_rows;
use crate::genesis;
use crate::indexes::{self, IndexChanges, IndexMemory};
use crate::snapshot::{self, Deletions};
use crate::transaction::Staged;
use crate::validate;

/// What of a batch other records follow from.
#[derive(Debug, Default)]
struct Touched {
    schemas: Vec<Pair<SchemaKey, SchemaValue>>,
    tables: Vec<Pair<TableKey, TableValue>>,
    delete_files: Vec<Pair<DeleteFileKey, DeleteFileValue>>,
    /// The greatest column id put per table.
    column_ids: BTreeMap<u64, u64>,
    /// Tables of which a version was removed.
    removed_tables: BTreeSet<u64>,
    /// (table id, begin snapshot) of new schema versions.
    schema_versions: BTreeSet<(u64, u64)>,
    deletions: Deletions,
    data_files: FileChanges,
    index_changes: IndexChanges,
    /// Whether the batch removes snapshots.
    expires_snapshots: bool,
}

impl Touched {
    fn has_directory_entries(&self) -> bool {
        !(self.schemas.is_empty() && self.tables.is_empty() && self.delete_files.is_empty())
    }
}

/// Completes a transaction: checks that it makes a whole commit, adds what follows from it, and gives all that is to be
/// written but the head. With `remote_data` files in buckets are looked into.
pub(crate) async fn finish(
    mut staging: Staging,
    premise: Option<&HeadValue>,
    staged: Staged,
    indexes: &IndexMemory,
    remote_data: bool,
) -> Result<WriteSet, CommitFailure> {
    validate::staged(&staged, staging.writes())?;
    let mut touched = touched(&staging).await?;
    match &staged.snapshot {
        None => check_maintenance(&staging).await?,
        // Expiry removes inlined rows too; where both come together, the rows are not told apart.
        Some(_) if touched.expires_snapshots => {}
        Some(minted) => {
            let (snapshot_id, files) = (minted.snapshot_id, &touched.data_files);
            flush_check::check(snapshot_id, &staged.drained, files)?;
            flushed_rows::check(&staging, snapshot_id, &staged, files, remote_data).await?;
        }
    }
    let made = staged
        .changes
        .as_ref()
        .and_then(|changes| changes.changes_made.as_deref());
    let minted = staged
        .snapshot
        .as_ref()
        .map(|minted| (minted.snapshot_id, made.unwrap_or_default()));
    touched
        .index_changes
        .removed_tables
        .clone_from(&touched.removed_tables);
    indexes::keep(&mut staging, indexes, &touched.index_changes, minted).await?;
    for table_id in std::mem::take(&mut touched.removed_tables) {
        if is_gone(&staging, table_id).await? {
            moraine_inline::drop_table(&mut staging, table_id).await?;
        }
    }
    raise_column_counters(&mut staging, &staged, &touched).await?;
    if touched.has_directory_entries() {
        let store_format = format_of(&staging, premise).await?;
        write_directories(&mut staging, &touched, store_format);
    }
    match (&staged.snapshot, &staged.changes) {
        (Some(value), _) => write_snapshot(&mut staging, &staged, value, &touched)?,
        (None, Some(changes)) => write_changes_alone(&mut staging, changes).await?,
        (None, None) => {}
    }
    if premise.is_none() {
        staging.put(&FormatKey {}, &genesis::format_stamp())?;
    }
    Ok(staging.into_writes())
}

/// Completes records that make no commit of their own, on top of nothing: adds the column counters and the directories that
/// follow from them.
pub(crate) async fn complete_records(
    mut staging: Staging,
    staged: &Staged,
) -> Result<WriteSet, CommitFailure> {
    let touched = touched(&staging).await?;
    raise_column_counters(&mut staging, staged, &touched).await?;
    write_directories(&mut staging, &touched, format::CURRENT);
    Ok(staging.writes().clone())
}

/// Goes through the writes once and reads what was there before, where something follows from it.
async fn touched(staging: &Staging) -> Result<Touched, CommitFailure> {
    let mut touched = Touched::default();
    for (bytes, change) in staging.writes().iter() {
        let key = Key::decode(bytes).map_err(ReadError::from)?;
        match key {
            Key::Current(CurrentKey::Entity(entity)) => {
                touch_entity(&mut touched, staging, entity, change.as_ref()).await?;
            }
            Key::History(HistoryKey { entity, .. }) => touch_history(&mut touched, &entity, change.as_ref()),
            Key::Inline(InlineKey::RowTombstone(_) | InlineKey::Live(InlineOperation::FileDelete(_))) => {
                touched.deletions.inlined |= change.is_some();
                touch_rows(&mut touched, &key, change.as_ref());
            }
            Key::Inline(InlineKey::Live(InlineOperation::Insert(_))) => {
                touch_rows(&mut touched, &key, change.as_ref())
            }
            Key::Snapshot(_) => touched.expires_snapshots |= change.is_none(),
            Key::SchemaVersion(key) if change.is_some() => {
                touched.schema_versions.insert((key.table_id, key.begin_snapshot));
            }
            _ => {}
        }
    }
    Ok(touched)
}

async fn touch_entity(
    touched: &mut Touched,
    staging: &Staging,
    entity: EntityKey,
    change: Option<&Bytes>,
) -> Result<(), CommitFailure> {
    match entity {
        EntityKey::Schema(key) => touched.schemas.push(pair(staging, key, change).await?),
        EntityKey::Table(key) => {
            if change.is_none() {
                touched.removed_tables.insert(key.table_id);
            }
            touched.tables.push(pair(staging, key, change).await?);
        }
        EntityKey::DeleteFile(key) => {
            touched.index_changes.rows.insert(key.table_id);
            let pair = pair(staging, key, change).await?;
            if let (None, Some(new)) = (&pair.old, &pair.new) {
                touched
                    .deletions
                    .files
                    .insert((pair.key.table_id, new.data_file_id));
            }
            touched.delete_files.push(pair);
        }
        EntityKey::DataFile(key) => {
            touched.index_changes.rows.insert(key.table_id);
            let pair = pair(staging, key, change).await?;
            let DataFileKey {
                table_id,
                data_file_id,
            } = pair.key;
            match (&pair.old, &pair.new) {
                (None, Some(new)) => touched.data_files.register(table_id, new),
                (_, None) => {
                    touched.deletions.files.insert((table_id, data_file_id));
                    touched.data_files.replaced.insert(table_id);
                }
                _ => {}
            }
        }
        EntityKey::Index(_) => touched.index_changes.definitions = true,
        EntityKey::Column(key) => {
            if change.is_some() {
                touch_column(touched, &key);
            }
            touched.index_changes.columns.insert(key);
        }
        EntityKey::Macro(key) => {
            if let Some(value) = decode::<MacroKey>(&key, change)? {
                validate::macro_value(&value)?;
            }
        }
        EntityKey::Mapping(key) => {
            if let Some(value) = decode::<MappingKey>(&key, change)? {
                validate::mapping_value(&value)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Inlined rows that come or end.
fn touch_rows(touched: &mut Touched, key: &Key, change: Option<&Bytes>) {
    let table_id = match key {
        Key::Inline(InlineKey::RowTombstone(key)) => key.table_id,
        Key::Inline(InlineKey::Live(InlineOperation::FileDelete(key))) => key.table_id,
        Key::Inline(InlineKey::Live(InlineOperation::Insert(key))) => key.table_id,
        _ => return,
    };
    if change.is_some() {
        touched.index_changes.rows.insert(table_id);
    }
}

fn touch_history(touched: &mut Touched, entity: &EntityKey, change: Option<&Bytes>) {
    match (entity, change) {
        (EntityKey::Table(key), None) => {
            touched.removed_tables.insert(key.table_id);
        }
        (EntityKey::Column(key), Some(_)) => touch_column(touched, key),
        _ => {}
    }
}

fn touch_column(touched: &mut Touched, key: &ColumnKey) {
    let greatest = touched.column_ids.entry(key.table_id).or_default();
    *greatest = key.column_id.max(*greatest);
}

/// A current record before the transaction and after it.
async fn pair<K: Stored>(
    staging: &Staging,
    key: K,
    change: Option<&Bytes>,
) -> Result<Pair<K, K::Value>, CommitFailure> {
    let old = staging.base().value(&key).await?;
    let new = decode(&key, change)?;
    Ok(Pair { key, old, new })
}

fn decode<K: Stored>(key: &K, bytes: Option<&Bytes>) -> Result<Option<K::Value>, ReadError> {
    let decoded = bytes.map(|bytes| moraine_codec::decode(key, bytes)).transpose();
    decoded.map_err(ReadError::from)
}

/// A batch without a snapshot brings nothing that begins or ends at one.
async fn check_maintenance(staging: &Staging) -> Result<(), CommitFailure> {
    for (bytes, change) in staging.writes().iter() {
        if change.is_none() {
            continue;
        }
        let key = Key::decode(bytes).map_err(ReadError::from)?;
        if validate::needs_snapshot(&key) && staging.base().get(bytes).await?.is_none() {
            return Err(validate::new_without_snapshot(&key));
        }
    }
    Ok(())
}

/// Whether no version of the table is left.
async fn is_gone(staging: &Staging, table_id: u64) -> Result<bool, ReadError> {
    if staging.get(&TableKey { table_id }.encode()).await?.is_some() {
        return Ok(false);
    }
    let mut ended = staging
        .scan(History::<TableKey>::scan_ids(table_id..=table_id))
        .await?;
    Ok(ended.next().await?.is_none())
}

/// Raises the column counter of every table that the batch gives columns or a new version.
async fn raise_column_counters(
    staging: &mut Staging,
    staged: &Staged,
    touched: &Touched,
) -> Result<(), CommitFailure> {
    let put = touched.tables.iter().filter(|pair| pair.new.is_some());
    let mut table_ids: BTreeSet<u64> = put.map(|pair| pair.key.table_id).collect();
    table_ids.extend(touched.column_ids.keys());
    for table_id in table_ids {
        let key = TableKey { table_id };
        let Some(mut value) = staging.value(&key).await? else {
            continue;
        };
        let mut greatest = touched.column_ids.get(&table_id).copied();
        if !staged.new_tables.contains(&table_id) {
            let live = staging.keys::<ColumnKey>(ColumnKey::scan_table(table_id)).await?;
            greatest = greatest.max(live.last().map(|column| column.column_id));
        }
        let next = derive::next_column_id(value.next_column_id, greatest);
        if next != value.next_column_id {
            value.next_column_id = next;
            staging.put(&key, &value)?;
        }
    }
    Ok(())
}

/// The format of the store: that of the view below, or of the lake that this transaction creates.
async fn format_of(staging: &Staging, premise: Option<&HeadValue>) -> Result<u64, ReadError> {
    if premise.is_none() {
        return Ok(format::CURRENT);
    }
    let stamp = staging.base().value(&FormatKey {}).await?;
    stamp.map(|stamp| stamp.format_version).ok_or_else(|| {
        ReadError::corruption(
            FormatKey {}.to_string(),
            "there is a head record, but no format record",
        )
    })
}

/// Writes the entries of those directories that the store's format has; in a store without one nobody reads it, and a
/// migration builds it whole.
fn write_directories(staging: &mut Staging, touched: &Touched, store_format: u64) {
    let mut writes: Vec<(Bytes, Option<Bytes>)> = Vec::new();
    if store_format >= Format::NameDirectory.number() {
        let names = touched.schemas.iter().flat_map(derive::schema_names);
        let names = names.chain(touched.tables.iter().flat_map(derive::table_names));
        writes.extend(names.map(derive::Entry::into_write));
    }
    if store_format >= Format::DeleteTargetDirectory.number() {
        let targets = touched.delete_files.iter().flat_map(derive::delete_targets);
        writes.extend(targets.map(derive::Entry::into_write));
    }
    for (key, change) in writes {
        match change {
            Some(value) => staging.put_raw(key, value),
            None => staging.delete_raw(key),
        }
    }
}

/// Writes the snapshot record as it stays, and the changelog record of the batch. Comes last: the changelog names the
/// keys of all the rest.
fn write_snapshot(
    staging: &mut Staging,
    staged: &Staged,
    value: &SnapshotValue,
    touched: &Touched,
) -> Result<(), CommitFailure> {
    let snapshot_id = value.snapshot_id;
    let merged = match &staged.changes {
        Some(changes) => snapshot::merge(value, changes),
        None => value.clone(),
    };
    let versions = touched
        .schema_versions
        .iter()
        .filter(|(_, begin_snapshot)| *begin_snapshot == snapshot_id);
    let tables = versions.map(|(table_id, _)| *table_id).collect();
    let complete = snapshot::with_facts(merged, tables, &touched.deletions);
    staging.put(&SnapshotKey { snapshot_id }, &complete)?;
    if !staged.creating
        && let Some(changelog) = derive::changelog(staging.writes())
    {
        staging.put(&ChangelogKey { snapshot_id }, &changelog)?;
    }
    Ok(())
}

/// Writes the record of a row of `ducklake_snapshot_changes` that no snapshot belongs to.
async fn write_changes_alone(staging: &mut Staging, changes: &SnapshotChanges) -> Result<(), CommitFailure> {
    let snapshot_id = changes.snapshot_id;
    let key = SnapshotKey { snapshot_id };
    if staging.value(&key).await?.is_some() {
        return Err(validate::changes_taken(snapshot_id));
    }
    staging.put(&key, &snapshot::changes_only(changes))?;
    Ok(())
}
