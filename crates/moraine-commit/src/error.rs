//! What can go wrong between BEGIN and COMMIT. Outcomes are variants; the words that DuckLake acts on come from
//! [`crate::words`], and a test walks every variant against them.

use std::time::Duration;

use moraine_codec::EncodeError;
use moraine_inline::InlineError;
use moraine_store::{CommitError, ReadError};

use crate::words::{self, permanent};

/// Why a transaction could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The store could not be read.
    #[error("{}", permanent(.0))]
    Read(#[source] ReadError),
    /// A format migration began and has not finished.
    #[error(
        "the store is in the middle of a migration from format {from_format} to {to_format}; let `moraine migrate` \
         finish it, then try again"
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
}

impl CatalogError {
    pub(crate) fn newer_format(found: u64) -> Self {
        CatalogError::NewerFormat {
            found,
            newest: moraine_codec::format::CURRENT,
        }
    }
}

impl From<ReadError> for CatalogError {
    fn from(error: ReadError) -> Self {
        CatalogError::Read(error)
    }
}

/// Why a change was not staged. Nothing of the refused call is staged; what was staged before stands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// Another transaction committed a snapshot since this one began. The client reads again and tries again.
    #[error("{}", words::LOST_RACE)]
    LostRace {
        /// The snapshot id that was asked for.
        asked: u64,
        /// The newest committed snapshot id.
        newest: u64,
    },
    /// Another transaction has the lake's commit slot and is about to commit a snapshot. The client tries again.
    #[error("{}: another transaction is committing", words::CONFLICT)]
    SlotTaken {
        /// The snapshot id that was asked for.
        asked: u64,
    },
    /// Other transactions had the lake's commit slot for all of the time allowed. The client tries again.
    #[error("{}: the commit slot was not free within {} ms", words::CONFLICT, .waited.as_millis())]
    SlotBusy {
        /// How long this transaction waited.
        waited: Duration,
    },
    /// Another open transaction removes inlined rows that this one is to remove. The client tries again later.
    #[error(
        "{} of inlined rows of table {table_id} by a transaction that is still open",
        words::CLAIMED
    )]
    Claimed {
        /// The table.
        table_id: u64,
    },
    /// There is no lake in this store yet.
    #[error("there is no lake in this store yet; create its tables first, or attach with DuckDB, which does")]
    NoLake,
    /// A live record with this key exists.
    #[error("{key} exists already; take ids from next_catalog_id and next_file_id of the newest snapshot")]
    Duplicate {
        /// The key, in words.
        key: String,
    },
    /// The record that was to be changed or removed does not exist.
    #[error("{key} does not exist in this transaction's view; read it again before changing it")]
    Missing {
        /// The key, in words.
        key: String,
    },
    /// The change breaks a rule of the catalog.
    #[error("{}", permanent(.detail))]
    Constraint {
        /// The rule, the values, and what to do.
        detail: String,
    },
    /// The transaction has grown past what one batch may carry.
    #[error(
        "this transaction has staged {bytes} bytes, more than the {max} that one commit may write; split it"
    )]
    Limit {
        /// Bytes staged.
        bytes: usize,
        /// [`crate::BATCH_BYTES_MAX`].
        max: usize,
    },
    /// An inlined row could not be staged.
    #[error("{}", permanent(.0))]
    Inline(#[source] InlineError),
    /// The store could not be read.
    #[error("{}", permanent(.0))]
    Read(#[source] ReadError),
    /// The record does not belong under its key.
    #[error("{}", permanent(.0))]
    Encode(#[source] EncodeError),
}

impl From<ReadError> for StageError {
    fn from(error: ReadError) -> Self {
        StageError::Read(error)
    }
}

impl From<EncodeError> for StageError {
    fn from(error: EncodeError) -> Self {
        StageError::Encode(error)
    }
}

impl From<InlineError> for StageError {
    /// A store that could not be read is the same failure whichever of its records was asked for.
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Read(error) => StageError::Read(error),
            error => StageError::Inline(error),
        }
    }
}

/// Why a commit was not acknowledged. After [`CommitFailure::Conflict`], [`CommitFailure::Constraint`] and
/// [`CommitFailure::Abandoned`] nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitFailure {
    /// Another transaction committed something this one builds on or writes. The client begins again.
    #[error("{}: {detail}", words::CONFLICT)]
    Conflict {
        /// What moved.
        detail: String,
    },
    /// What was staged does not make a whole commit.
    #[error("{}", permanent(.detail))]
    Constraint {
        /// The rule, the values, and what to do.
        detail: String,
    },
    /// Another process took the store over. The batch may have landed before that; the new owner knows.
    #[error("another process has taken over this lake ({}); attach again there", permanent(.detail))]
    Fenced {
        /// What the store reported.
        detail: String,
    },
    /// The batch was submitted and its fate is not known. It is never tried again here.
    #[error("the outcome of this commit is not known ({}); look whether it is there before trying again", permanent(.detail))]
    Unknown {
        /// What happened after submission.
        detail: String,
    },
    /// The commit was given up before anything was written.
    #[error("nothing was committed: {}", permanent(.0))]
    Abandoned(#[source] StageError),
}

impl From<StageError> for CommitFailure {
    fn from(error: StageError) -> Self {
        match error {
            StageError::Read(ReadError::Fenced { detail }) => CommitFailure::Fenced { detail },
            StageError::Constraint { detail } => CommitFailure::Constraint { detail },
            error => CommitFailure::Abandoned(error),
        }
    }
}

impl From<ReadError> for CommitFailure {
    fn from(error: ReadError) -> Self {
        StageError::Read(error).into()
    }
}

impl From<EncodeError> for CommitFailure {
    fn from(error: EncodeError) -> Self {
        StageError::Encode(error).into()
    }
}

impl From<InlineError> for CommitFailure {
    fn from(error: InlineError) -> Self {
        StageError::from(error).into()
    }
}

impl From<CommitError> for CommitFailure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflicted => CommitFailure::Conflict {
                detail: "another transaction committed first".to_owned(),
            },
            CommitError::Fenced { detail } => CommitFailure::Fenced { detail },
            CommitError::Unknown { detail } => CommitFailure::Unknown { detail },
            CommitError::Abandoned { source } => source.into(),
            other => CommitFailure::Unknown {
                detail: other.to_string(),
            },
        }
    }
}
