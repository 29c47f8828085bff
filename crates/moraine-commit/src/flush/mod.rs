//! Flushing a lake from the library: inlined rows go to Parquet files, data before metadata, and land in one commit through the
//! ordinary commit path. How rows become Parquet is `moraine-inline`'s; DuckLake's own flush comes as staged rows like any commit.

mod plan;
mod spool;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use moraine_codec::Record;
use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, FileColumnStatsValue, SnapshotValue, TableStatsValue,
};
use moraine_inline::{
    ColumnStatistics, FlushedFile, InlineError, flushable_rows, write_data_file, write_delete_file,
};
use moraine_keys::{DataFileKey, DeleteFileKey, FileColumnStatsKey, Key, Kind, TableStatsKey};
use moraine_store::{DataFiles, OpenError, ReadError, ReadExt, StoreUrl};

use crate::catalog::Catalog;
use crate::change::{Change, InlineChange, SnapshotChanges};
use crate::changes_made::{ChangeEntry, ChangesMade};
use crate::error::{CatalogError, CommitFailure, StageError};
use crate::flush::plan::{Plan, Source};
use crate::flush::spool::Spool;
use crate::transaction::CatalogTransaction;

/// How often a flush that lost a race begins again, from the newest state.
const FLUSH_TRIES_MAX: usize = 10;

/// What to flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlushOptions {
    /// Tables, as `table` in schema `main` or `schema.table`; all of them when there is none.
    pub tables: Vec<String>,
    /// Where the lake's data files are, if not where its `data_path` says; a relative `data_path` is one of the client that made
    /// the lake.
    pub data_path: Option<String>,
}

/// What a flush has moved, table by table. Tables without inlined rows are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlushReport {
    /// The tables.
    pub tables: Vec<FlushedTable>,
    /// The snapshot of the flush; `None` when there was nothing to flush.
    pub snapshot_id: Option<u64>,
}

/// One flushed table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushedTable {
    /// Its schema.
    pub schema_name: String,
    /// Its name.
    pub table_name: String,
    /// Versions of rows that went to data files, ended ones too.
    pub rows: u64,
    /// Data files written.
    pub files: u64,
}

/// Why a lake was not flushed. Nothing has changed then, unless the commit's outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlushError {
    /// There is no lake in the store.
    #[error("there is no lake in this store; `moraine info` shows where the lakes are")]
    NoLake,
    /// A table that was named does not exist.
    #[error("there is no table {name}; name tables as they are now, as <table> or <schema>.<table>")]
    NoSuchTable {
        /// The name as given.
        name: String,
    },
    /// Something this flush does not do, and DuckLake's own does.
    #[error(
        "{what} cannot be flushed here: {reason}; flush it from DuckDB: CALL ducklake_flush_inlined_data(...)"
    )]
    Unsupported {
        /// The lake or the table.
        what: String,
        /// What stands in the way.
        reason: String,
    },
    /// A column of a table cannot be written.
    #[error("table {table}: {source}")]
    Table {
        /// The table.
        table: String,
        /// What stands in the way.
        source: InlineError,
    },
    /// The place of the data files cannot be opened.
    #[error(transparent)]
    DataPath(#[from] OpenError),
    /// A file on its way to the data path could not be written.
    #[error(
        "a temporary file in {folder} could not be written: {source}; make room, or set TMPDIR to another folder"
    )]
    Spool {
        /// The folder.
        folder: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A transaction could not begin.
    #[error(transparent)]
    Begin(#[from] CatalogError),
    /// The store or the data path could not be read or written.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The change could not be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The commit failed.
    #[error(transparent)]
    Commit(#[from] CommitFailure),
}

/// What one table contributes to the commit.
struct Staged {
    files: Vec<Written>,
    table: FlushedTable,
}

/// A file that lies at the data path, not yet known to the catalog.
struct Written {
    source: Source,
    name: String,
    flushed: FlushedFile,
    delete_file: Option<DeleteFile>,
}

struct DeleteFile {
    name: String,
    file_bytes: u64,
    footer_bytes: u64,
}

/// Files put at the data path, to take them away again if they come to nothing.
#[derive(Default)]
struct Litter(Vec<(String, String)>);

impl Catalog {
    /// Moves the inlined rows of tables to Parquet files, as of the newest snapshot, in one commit. Rows that have ended go along,
    /// with a delete file that ends them when they ended, so every snapshot shows what it showed before. Begins again when another
    /// commit comes first.
    ///
    /// Tables with a partitioning or a sort order, encrypted lakes, and columns whose values chunks hold as DuckLake's text (nested
    /// ones, intervals and others) are refused by name. Inlined deletions from data files stay inlined.
    ///
    /// # Errors
    /// See [`FlushError`].
    pub async fn flush(self: &Arc<Self>, options: &FlushOptions) -> Result<FlushReport, FlushError> {
        let mut tries = 1;
        loop {
            let mut litter = Litter::default();
            let outcome = self.try_flush(options, &mut litter).await;
            let error = match outcome {
                Ok(report) => return Ok(report),
                Err(error) => error,
            };
            if !is_unknown(&error) {
                litter.remove().await;
            }
            if tries == FLUSH_TRIES_MAX || !is_lost_race(&error) {
                return Err(error);
            }
            tries += 1;
        }
    }

    async fn try_flush(
        self: &Arc<Self>,
        options: &FlushOptions,
        litter: &mut Litter,
    ) -> Result<FlushReport, FlushError> {
        let mut transaction = self.begin().await?;
        let plan = Plan::read(&transaction, options).await?;
        let mut staged: Vec<Staged> = Vec::new();
        for source in &plan.sources {
            if let Some(written) = write(&transaction, &plan, source, litter).await? {
                add(&mut staged, written);
            }
        }
        if staged.is_empty() {
            return Ok(FlushReport::default());
        }
        let snapshot_id = stage(&mut transaction, &plan, &staged).await?;
        transaction.commit().await?;
        Ok(FlushReport {
            tables: staged.into_iter().map(|staged| staged.table).collect(),
            snapshot_id: Some(snapshot_id),
        })
    }
}

fn is_lost_race(error: &FlushError) -> bool {
    matches!(
        error,
        FlushError::Stage(
            StageError::LostRace { .. } | StageError::SlotTaken { .. } | StageError::SlotBusy { .. }
        ) | FlushError::Commit(CommitFailure::Conflict { .. })
    )
}

/// Whether the commit may have landed all the same.
fn is_unknown(error: &FlushError) -> bool {
    matches!(
        error,
        FlushError::Commit(CommitFailure::Unknown { .. } | CommitFailure::Fenced { .. })
    )
}

/// Writes the files of one inlined table; `None` when it holds nothing to flush.
async fn write(
    transaction: &CatalogTransaction,
    plan: &Plan,
    source: &Source,
    litter: &mut Litter,
) -> Result<Option<Written>, FlushError> {
    let of_table = |error| FlushError::Table {
        table: source.table.to_string(),
        source: error,
    };
    let (read, directories) = (transaction.read(), transaction.directories());
    let (table_id, version) = (source.table_id, source.schema_version);
    let mut rows = flushable_rows(read, &directories, table_id, version, plan.until)
        .await
        .map_err(of_table)?;
    if rows.count() == 0 {
        return Ok(None);
    }
    source.check()?;
    let files = DataFiles::open(&source.folder.parse::<StoreUrl>()?)?;
    let spool = Spool::new()?;
    let flushed = write_data_file(&mut rows, read, &source.columns, spool.writer()?).await;
    let flushed = flushed.map_err(of_table)?;
    let name = format!("ducklake-{}.parquet", uuid::Uuid::new_v4());
    litter.0.push((source.folder.clone(), name.clone()));
    files.put(&name, &mut spool.reader()?).await?;
    let mut delete_file = None;
    if !flushed.ended.is_empty() {
        let spool = Spool::new()?;
        let path = format!("{}{name}", source.folder);
        let (file_bytes, footer_bytes) =
            write_delete_file(&path, &flushed.ended, spool.writer()?).map_err(of_table)?;
        let name = format!("ducklake-{}-delete.parquet", uuid::Uuid::new_v4());
        litter.0.push((source.folder.clone(), name.clone()));
        files.put(&name, &mut spool.reader()?).await?;
        delete_file = Some(DeleteFile {
            name,
            file_bytes,
            footer_bytes,
        });
    }
    Ok(Some(Written {
        source: source.clone(),
        name,
        flushed,
        delete_file,
    }))
}

fn add(staged: &mut Vec<Staged>, written: Written) {
    let rows = written.flushed.rows;
    match staged.last_mut() {
        Some(last)
            if last
                .files
                .last()
                .is_some_and(|file| file.source.table_id == written.source.table_id) =>
        {
            last.table.rows += rows;
            last.table.files += 1;
            last.files.push(written);
        }
        _ => staged.push(Staged {
            table: FlushedTable {
                schema_name: written.source.table.schema.clone(),
                table_name: written.source.table.name.clone(),
                rows,
                files: 1,
            },
            files: vec![written],
        }),
    }
}

/// Stages the whole commit and gives its snapshot id. The snapshot comes first: there a lost race is found out.
async fn stage(
    transaction: &mut CatalogTransaction,
    plan: &Plan,
    staged: &[Staged],
) -> Result<u64, FlushError> {
    let snapshot_id = plan.until.saturating_add(1);
    let mut next_file_id = plan.snapshot.next_file_id;
    let mut changes = Vec::new();
    let mut entries = Vec::new();
    for table in staged {
        let mut file_bytes = 0;
        for written in &table.files {
            file_bytes += written.flushed.file_bytes;
            let ids = next_file_id;
            next_file_id += 1 + u64::from(written.delete_file.is_some());
            changes.extend(records(written, ids));
        }
        if let Some(table_id) = table.files.first().map(|file| file.source.table_id) {
            changes.extend(table_size(transaction, table_id, file_bytes).await?);
            entries.push(ChangeEntry::InlineFlush(table_id));
        }
    }
    transaction.pin();
    transaction
        .insert_snapshot(SnapshotValue {
            snapshot_id,
            snapshot_time_micros: now_micros(),
            schema_version: plan.snapshot.schema_version,
            next_catalog_id: plan.snapshot.next_catalog_id,
            next_file_id,
            ..SnapshotValue::default()
        })
        .await?;
    transaction.stage(changes).await?;
    for written in staged.iter().flat_map(|table| &table.files) {
        let (table_id, schema_version) = (written.source.table_id, written.source.schema_version);
        let drain = InlineChange::Drain {
            table_id,
            schema_version,
            until_snapshot: plan.until,
            written: written.flushed.written.clone(),
        };
        transaction.inline(drain).await?;
        if written.source.superseded {
            let drop = InlineChange::DropTable {
                table_id,
                schema_version,
            };
            transaction.inline(drop).await?;
        }
    }
    transaction
        .set_snapshot_changes(SnapshotChanges {
            snapshot_id,
            changes_made: Some(ChangesMade { entries }.to_string()),
            ..SnapshotChanges::default()
        })
        .await?;
    Ok(snapshot_id)
}

/// The records of a file, its statistics and its delete file; `data_file_id` is the first free id.
fn records(written: &Written, data_file_id: u64) -> Vec<Change> {
    let table_id = written.source.table_id;
    let flushed = &written.flushed;
    let (least, greatest) = flushed
        .begin_snapshots
        .clone()
        .map_or((0, 0), std::ops::RangeInclusive::into_inner);
    let file = DataFileValue {
        data_file_id,
        table_id,
        begin_snapshot: least,
        path: written.name.clone(),
        path_is_relative: true,
        file_format: "parquet".to_owned(),
        record_count: flushed.rows,
        file_size_bytes: flushed.file_bytes,
        footer_size: flushed.footer_bytes,
        row_id_start: Some(flushed.first_row_id),
        partial_max: Some(greatest),
        ..DataFileValue::default()
    };
    let key = DataFileKey {
        table_id,
        data_file_id,
    };
    let mut changes = vec![Change::Insert(Record::DataFile(key, file))];
    for (column, statistics) in written.source.columns.iter().zip(&flushed.columns) {
        changes.push(column_record(
            table_id,
            data_file_id,
            column.column_id,
            statistics,
        ));
    }
    if let Some(delete_file) = &written.delete_file {
        let delete_file_id = data_file_id + 1;
        let ends = flushed.ended.iter().map(|(_, end)| *end);
        let value = DeleteFileValue {
            delete_file_id,
            table_id,
            begin_snapshot: ends.min().unwrap_or_default(),
            data_file_id,
            path: delete_file.name.clone(),
            path_is_relative: true,
            format: "parquet".to_owned(),
            delete_count: flushed.ended.len() as u64,
            file_size_bytes: delete_file.file_bytes,
            footer_size: delete_file.footer_bytes,
            ..DeleteFileValue::default()
        };
        let key = DeleteFileKey {
            table_id,
            delete_file_id,
        };
        changes.push(Change::Insert(Record::DeleteFile(key, value)));
    }
    changes
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
    let Some(found) = transaction.read().value(&key).await? else {
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

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl Litter {
    /// Takes the files away; one that stays is an orphan that DuckLake's own cleanup finds.
    async fn remove(self) {
        for (folder, name) in self.0 {
            let files = folder.parse::<StoreUrl>().and_then(|url| DataFiles::open(&url));
            let removed = match files {
                Ok(files) => files.remove(&name).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = removed {
                tracing::warn!(%error, file = name, "a file of a flush that did not commit is left");
            }
        }
    }
}
