//! Flushing a lake from the library: inlined rows go to Parquet files, inlined deletions to delete files, data before metadata, and
//! land in one commit through the ordinary commit path. How rows become Parquet is `moraine-inline`'s; DuckLake's own flush comes as
//! staged rows like any commit.

mod file_deletes;
mod litter;
mod options;
mod plan;
mod stage;
mod write;

use std::sync::Arc;

use moraine_inline::InlineError;
use moraine_store::{OpenError, ReadError};

use crate::catalog::Catalog;
use crate::error::{CatalogError, CommitFailure, StageError};
use crate::flush::litter::Litter;
use crate::flush::plan::Plan;
use crate::transaction::CatalogTransaction;

pub(crate) use crate::flush::plan::folder;

/// How often a flush that lost a race begins again, from the newest state.
const FLUSH_TRIES_MAX: usize = 10;
/// By how much longer others wait for each try after the second, so that a flush that takes its time comes to an end.
const PATIENCE_GROWTH: u32 = 2;

/// What to flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlushOptions {
    /// Tables, as `table` in schema `main` or `schema.table`; all of them when there is none.
    pub tables: Vec<String>,
    /// Where the lake's data files are, if not where its `data_path` says; a relative `data_path` is one of the client that made
    /// the lake.
    pub data_path: Option<String>,
}

/// What a flush has moved, table by table. Tables without inlined rows and deletions are left out.
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
    /// Inlined deletions from older data files that went to delete files.
    pub deletions: u64,
    /// The first part of the table's sort order that only DuckDB can sort by, such as `lower(name)`: the data files are sorted by
    /// what comes before it. `None` where they follow the whole order.
    pub unsorted_by: Option<String>,
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
    /// An option of the lake, a schema or a table that cannot be followed.
    #[error(
        "table {table}: the option {option} is {value:?}, which is not known here; set another: CALL <lake>.set_option(...)"
    )]
    Option {
        /// The table.
        table: String,
        /// The option.
        option: String,
        /// Its value.
        value: String,
    },
    /// A column or a value of a table cannot be written, or a file of it not read.
    #[error("table {table}: {source}")]
    Table {
        /// The table.
        table: String,
        /// What stands in the way.
        source: InlineError,
    },
    /// The system gave no random numbers for a key.
    #[error("no key to encrypt files with could be made: {detail}; try again")]
    Randomness {
        /// The system's reason.
        detail: String,
    },
    /// The place of the data files cannot be opened.
    #[error(transparent)]
    DataPath(#[from] OpenError),
    /// A file on its way to the data path could not be written.
    #[error("a temporary file could not be written: {source}; make room, or set TMPDIR to another folder")]
    Spool {
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

impl Catalog {
    /// Moves the inlined rows of tables to Parquet files, as of the newest snapshot, in one commit. Rows that have ended go along,
    /// with a delete file that ends them when they ended, so every snapshot shows what it showed before; inlined deletions from
    /// older data files go to delete files. Files lie and look as DuckLake's options, partitionings and sort orders of the table
    /// say. Begins again when another commit comes first, in its turn then: others wait for it, longer each time.
    ///
    /// Memory is bounded whatever the number of rows; sorting and partitioning use temporary files. What cannot be written so that
    /// DuckDB reads the same is refused by name, such as values that Parquet does not hold. Rows are sorted up to the first
    /// expression of the sort order that only DuckDB evaluates ([`FlushedTable::unsorted_by`]). A table whose option
    /// `auto_compact` is off is flushed when it is named.
    ///
    /// # Errors
    /// See [`FlushError`].
    pub async fn flush(self: &Arc<Self>, options: &FlushOptions) -> Result<FlushReport, FlushError> {
        let (mut tries, mut patience) = (1, 1);
        let mut transaction = self.begin().await?;
        loop {
            let mut litter = Litter::default();
            let outcome = try_flush(transaction, options, &mut litter).await;
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
            transaction = self.begin_patiently(patience).await?;
            patience = patience.saturating_mul(PATIENCE_GROWTH);
        }
    }
}

async fn try_flush(
    mut transaction: CatalogTransaction,
    options: &FlushOptions,
    litter: &mut Litter,
) -> Result<FlushReport, FlushError> {
    let plan = Plan::read(&transaction, options).await?;
    let mut written = Vec::new();
    for table in &plan.tables {
        let (files, empty) = write::table(&transaction, &plan, table, litter).await?;
        let deletes = file_deletes::write(&transaction, &plan, table, litter).await?;
        written.push(stage::WrittenTable {
            table,
            files,
            deletes,
            empty,
        });
    }
    if !written.iter().any(stage::WrittenTable::moves) {
        return Ok(FlushReport::default());
    }
    let snapshot_id = stage::stage(&mut transaction, &plan, &written).await?;
    let moved = written.iter().filter(|table| table.moves());
    let tables = moved.map(stage::WrittenTable::report).collect();
    transaction.commit().await?;
    Ok(FlushReport {
        tables,
        snapshot_id: Some(snapshot_id),
    })
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
