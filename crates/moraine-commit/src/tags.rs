//! Which record holds the rows of `ducklake_column_tag`. They do not end with a version of their column, so the newest
//! version holds them all; while there is no such column, the newest version of the table does. Who may change them, and
//! how they look as rows, is not decided here.

use moraine_codec::proto::{ColumnTag, ColumnValue, StrayColumnTag, TableValue};
use moraine_codec::{Record, Version, encode_record};
use moraine_keys::{ColumnKey, History, Kind, LeadingId, TableChild, TableKey};
use moraine_store::{ReadError, ReadExt, Staging};

use crate::error::StageError;

/// A version of a column takes over the tags of the version it follows.
pub(crate) fn follow_column(value: &mut ColumnValue, before: Option<&ColumnValue>) {
    if let Some(before) = before
        && value.tags.is_empty()
        && follows(value, before)
    {
        value.tags.clone_from(&before.tags);
    }
}

/// A version of a table takes over the stray tags of the version it follows.
pub(crate) fn follow_table(value: &mut TableValue, before: Option<&TableValue>) {
    if let Some(before) = before
        && value.stray_column_tags.is_empty()
        && follows(value, before)
    {
        value.stray_column_tags.clone_from(&before.stray_column_tags);
    }
}

/// Whether a version is newer than the one that was the newest before it came.
fn follows(value: &impl Version, before: &impl Version) -> bool {
    match (value.end_snapshot(), before.end_snapshot()) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(end), Some(before)) => end > before,
    }
}

/// Moves the tags that have waited for a column out of its table's record and into the column's, which is about to be
/// stored.
pub(crate) async fn collect_strays(staging: &mut Staging, value: &mut ColumnValue) -> Result<(), StageError> {
    let Some(mut table) = newest_table(staging, value.table_id).await? else {
        return Ok(());
    };
    let tags = take_strays(&mut table, value.column_id);
    if tags.is_empty() {
        return Ok(());
    }
    value.tags.extend(tags);
    let entity = TableKey {
        table_id: table.table_id,
    };
    let record = match table.end_snapshot {
        None => Record::Table(entity, table),
        Some(end_snapshot) => Record::HistoryTable(History { entity, end_snapshot }, table),
    };
    let (key, bytes) = encode_record(&record)?;
    staging.put_raw(key, bytes);
    Ok(())
}

/// Takes the tags that name a column out of a table's record, in stored order.
fn take_strays(table: &mut TableValue, column_id: u64) -> Vec<ColumnTag> {
    let (taken, left): (Vec<StrayColumnTag>, _) = std::mem::take(&mut table.stray_column_tags)
        .into_iter()
        .partition(|stray| stray.column_id == column_id);
    table.stray_column_tags = left;
    taken.into_iter().filter_map(|stray| stray.tag).collect()
}

/// The live version of a column, else the one that ended last. In a table that the transaction created, `is_new_table`,
/// no version can be older than the transaction, so nothing below it is read.
pub(crate) async fn newest_column(
    staging: &Staging,
    key: &ColumnKey,
    is_new_table: bool,
) -> Result<Option<ColumnValue>, ReadError> {
    let ended = History::<ColumnKey>::scan_table_ids(key.table_id, key.column_id..=key.column_id);
    if !is_new_table {
        if let Some(live) = staging.value(key).await? {
            return Ok(Some(live));
        }
        let versions = staging.records::<History<ColumnKey>>(ended).await?;
        return Ok(versions.into_iter().next_back().map(|(_, value)| value));
    }
    let writes = staging.writes();
    if let Some(Some(live)) = writes.get(&key.encode()) {
        return Ok(Some(moraine_codec::decode(key, live)?));
    }
    let staged = writes
        .range(&ended)
        .filter_map(|(key, value)| value.as_ref().map(|value| (key, value)));
    match staged.last() {
        Some((key, value)) => {
            let key = History::<ColumnKey>::decode(key)?;
            Ok(Some(moraine_codec::decode(&key, value)?))
        }
        None => Ok(None),
    }
}

/// The live version of a table, else the one that ended last.
pub(crate) async fn newest_table(staging: &Staging, table_id: u64) -> Result<Option<TableValue>, ReadError> {
    if let Some(live) = staging.value(&TableKey { table_id }).await? {
        return Ok(Some(live));
    }
    let ended = History::<TableKey>::scan_ids(table_id..=table_id);
    let versions = staging.records::<History<TableKey>>(ended).await?;
    Ok(versions.into_iter().next_back().map(|(_, value)| value))
}
