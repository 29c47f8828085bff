//! Why a snapshot of the lake cannot be shown.

use moraine_inline::InlineError;
use moraine_store::{CommitError, ReadError};

use crate::error::CatalogError;

/// Why a snapshot cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LakeError {
    /// There is no lake in the store.
    #[error("there is no lake in this store yet; create one, or attach with DuckDB, which does")]
    NoLake,
    /// There has been no such snapshot yet.
    #[error("there is no snapshot {snapshot_id} yet; the newest is {newest}")]
    NoSuchSnapshot {
        /// The snapshot that was asked for.
        snapshot_id: u64,
        /// The newest there is.
        newest: u64,
    },
    /// The snapshot has been expired, and what only it saw may be gone.
    #[error("snapshot {snapshot_id} has been expired; ask for one that `snapshots` lists")]
    SnapshotExpired {
        /// The snapshot that was asked for.
        snapshot_id: u64,
    },
    /// No snapshot that is left was there at that time.
    #[error(
        "no snapshot that is left is as old as {time_micros} microseconds after 1970-01-01 UTC; ask for a later time"
    )]
    NothingAtTime {
        /// The time that was asked for.
        time_micros: i64,
    },
    /// A format migration began and has not finished.
    #[error(
        "the store is in the middle of a migration from format {from_format} to {to_format}; let the \
         program that began it finish, then try again"
    )]
    MidMigration {
        /// The format the store is leaving.
        from_format: u64,
        /// The format the store is going to.
        to_format: u64,
    },
    /// A newer version has migrated the store since it was opened here.
    #[error(
        "the store has been brought to format {found} since it was opened here, and this version reads up to {newest}; \
         use the version that did it"
    )]
    NewerFormat {
        /// The store's format now.
        found: u64,
        /// The newest format this version knows.
        newest: u64,
    },
    /// What the snapshot shows did not become durable, so it may never have been.
    #[error("what this snapshot shows did not become durable: {0}; ask for the newest snapshot again")]
    NotDurable(#[source] CommitError),
    /// Inlined rows could not be read.
    #[error(transparent)]
    Inline(InlineError),
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<InlineError> for LakeError {
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Read(error) => LakeError::Read(error),
            error => LakeError::Inline(error),
        }
    }
}

impl From<CatalogError> for LakeError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Read(error) => LakeError::Read(error),
            CatalogError::MidMigration {
                from_format,
                to_format,
            } => LakeError::MidMigration {
                from_format,
                to_format,
            },
            CatalogError::NewerFormat { found, newest } => LakeError::NewerFormat { found, newest },
        }
    }
}
