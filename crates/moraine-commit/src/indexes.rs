//! Indexes that other software made. Their definitions and entries stay as they are; entries are not kept up to date here,
//! so a commit that would leave them stale is refused. What the entries mean is not known here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use moraine_codec::proto::IndexValue;
use moraine_keys::{ColumnKey, History, IndexDefinitionKey, Kind, TableKey, TableScoped};
use moraine_store::{Read, ReadExt, Staging};

use crate::changes_made::{ChangeEntry, ChangesMade};
use crate::error::CommitFailure;

/// What is remembered of the indexes of an opened lake.
#[derive(Debug, Default)]
pub(crate) struct IndexMemory {
    absent: AtomicBool,
}

/// What of a batch concerns indexes.
#[derive(Debug, Default)]
pub(crate) struct IndexChanges {
    /// Tables whose rows may be others afterwards.
    pub(crate) rows: BTreeSet<u64>,
    /// Columns that are written or removed.
    pub(crate) columns: BTreeSet<ColumnKey>,
    /// Tables whose current version is removed.
    pub(crate) removed_tables: BTreeSet<u64>,
    /// Whether a definition is written or removed.
    pub(crate) definitions: bool,
}

/// Refuses what would leave entries stale, and ends the indexes of tables that end. `minted` is the snapshot of the batch,
/// with its changes in DuckLake's grammar; a batch without one changes no rows.
pub(crate) async fn keep(
    staging: &mut Staging,
    memory: &IndexMemory,
    changes: &IndexChanges,
    minted: Option<(u64, &str)>,
) -> Result<(), CommitFailure> {
    if memory.absent.load(Ordering::Relaxed) && !changes.definitions {
        return Ok(());
    }
    let is_absent = staging
        .scan(IndexDefinitionKey::scan())
        .await?
        .next()
        .await?
        .is_none();
    memory.absent.store(is_absent, Ordering::Relaxed);
    let Some((snapshot_id, text)) = minted.filter(|_| !is_absent) else {
        return Ok(());
    };
    for table_id in &changes.removed_tables {
        end_with_table(staging, *table_id, snapshot_id).await?;
    }
    let made = ChangesMade::parse(text);
    for table_id in &changes.rows {
        let indexes = indexes_of(staging, *table_id).await?;
        if let Some((_, index)) = indexes.first()
            && !moves_rows_only(&made, *table_id)
        {
            return Err(refuse(index, "its rows cannot change"));
        }
    }
    for column in &changes.columns {
        for (_, index) in indexes_of(staging, column.table_id).await? {
            if index.column_ids.contains(&column.column_id) && changes_values(staging, column).await? {
                let what = format!("its column {} cannot go or change its type", column.column_id);
                return Err(refuse(&index, &what));
            }
        }
    }
    Ok(())
}

async fn indexes_of(
    staging: &Staging,
    table_id: u64,
) -> Result<Vec<(IndexDefinitionKey, IndexValue)>, CommitFailure> {
    Ok(staging.records(IndexDefinitionKey::scan_table(table_id)).await?)
}

/// The indexes of a table end with it. Their entries are then nobody's; ids are never given twice.
async fn end_with_table(staging: &mut Staging, table_id: u64, snapshot_id: u64) -> Result<(), CommitFailure> {
    if staging.get(&TableKey { table_id }.encode()).await?.is_some() {
        return Ok(());
    }
    for (key, value) in indexes_of(staging, table_id).await? {
        let ended = IndexValue {
            end_snapshot: Some(snapshot_id),
            ..value
        };
        staging.delete(&key);
        let key = History {
            entity: key,
            end_snapshot: snapshot_id,
        };
        staging.put(&key, &ended)?;
    }
    Ok(())
}

/// Whether all that was done to a table is to write the same rows elsewhere: entries name rows by their ids, which stay.
fn moves_rows_only(made: &ChangesMade, table_id: u64) -> bool {
    let flushes = made.entries.contains(&ChangeEntry::InlineFlush(table_id));
    let compacts = flushes
        || [
            ChangeEntry::MergeAdjacent(table_id),
            ChangeEntry::RewriteDelete(table_id),
            ChangeEntry::CompactedTable(table_id),
        ]
        .iter()
        .any(|entry| made.entries.contains(entry));
    let changes_rows = made.entries.iter().any(|entry| match entry {
        ChangeEntry::InsertedIntoTable(of)
        | ChangeEntry::InlinedInsert(of)
        | ChangeEntry::InlinedDelete(of) => *of == table_id,
        // A flush writes the deletions of the rows it flushes, too.
        ChangeEntry::DeletedFromTable(of) => *of == table_id && !flushes,
        ChangeEntry::Unknown(_) => true,
        _ => false,
    });
    compacts && !changes_rows
}

async fn changes_values(staging: &Staging, column: &ColumnKey) -> Result<bool, CommitFailure> {
    let Some(before) = staging.base().value(column).await? else {
        return Ok(false);
    };
    let after = staging.value(column).await?;
    Ok(after.is_none_or(|after| after.column_type != before.column_type))
}

fn refuse(index: &IndexValue, what: &str) -> CommitFailure {
    let detail = format!(
        "table {} has the index '{}' ({}), which other software made and this version does not keep up to date, so {what}; \
         drop the index with `moraine drop-index` first",
        index.table_id, index.index_name, index.index_id
    );
    CommitFailure::Constraint { detail }
}
