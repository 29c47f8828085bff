//! Why a verb was refused, and how a commit came out.

use moraine_inline::InlineError;
use moraine_store::ReadError;

use crate::error::{CatalogError, CommitFailure, StageError};
use crate::words::{self, permanent};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectKind {
    /// A schema.
    Schema,
    /// A table.
    Table,
    /// A view.
    View,
    /// A scalar macro.
    ScalarMacro,
    /// A table macro.
    TableMacro,
    /// A column of a table, or a field of one.
    Column,
    /// A data file.
    DataFile,
    /// A delete file.
    DeleteFile,
    /// A column mapping.
    Mapping,
    /// A snapshot.
    Snapshot,
    /// A file that waits to be deleted.
    ScheduledFile,
    /// An inlined table.
    InlinedTable,
    /// An option.
    Option,
    /// A tag.
    Tag,
    /// The lake itself.
    Lake,
}

impl std::fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ObjectKind::Schema => "schema",
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::ScalarMacro => "scalar macro",
            ObjectKind::TableMacro => "table macro",
            ObjectKind::Column => "column",
            ObjectKind::DataFile => "data file",
            ObjectKind::DeleteFile => "delete file",
            ObjectKind::Mapping => "column mapping",
            ObjectKind::Snapshot => "snapshot",
            ObjectKind::ScheduledFile => "file scheduled for deletion",
            ObjectKind::InlinedTable => "inlined table",
            ObjectKind::Option => "option",
            ObjectKind::Tag => "tag",
            ObjectKind::Lake => "lake",
        })
    }
}

/// Why a verb was refused. It has then changed nothing, and its transaction goes on as if it had not been called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerbError {
    /// What the verb names does not exist.
    #[error("there is no {kind} {}; see what the newest snapshot has", permanent(.name))]
    NotFound {
        /// What is missing.
        kind: ObjectKind,
        /// Its name or id, as given.
        name: String,
    },
    /// What the verb makes is there already.
    #[error("there is a {kind} {} already; choose another name, or drop or change what is there", permanent(.name))]
    AlreadyExists {
        /// What is there.
        kind: ObjectKind,
        /// Its name.
        name: String,
    },
    /// A name that nothing can have.
    #[error("{} is no name for a {kind}: {}", permanent(format!("{name:?}")), permanent(.reason))]
    InvalidName {
        /// What was to be named.
        kind: ObjectKind,
        /// The name as given.
        name: String,
        /// The rule it breaks.
        reason: String,
    },
    /// Something else needs what the verb takes away.
    #[error("{kind} {} is in use by {}; change that first", permanent(.name), permanent(.by))]
    InUse {
        /// What was to go or to change.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// What needs it.
        by: String,
    },
    /// DuckLake widens types, and this would not.
    #[error("column {} cannot change from {from} to {to}; DuckLake only changes types to wider ones", permanent(.column))]
    TypeChange {
        /// The column, with the columns it is a field of.
        column: String,
        /// Its type.
        from: String,
        /// The type asked for.
        to: String,
    },
    /// What the verb builds on has changed since the caller looked. The commit is [`CommitError::Conflicted`] by that.
    #[error("{}: {detail}", words::CONFLICT)]
    Changed {
        /// What has changed, and how.
        detail: String,
    },
    /// The verb, as called, breaks another rule of DuckLake's.
    #[error("{}", permanent(.detail))]
    Refused {
        /// The rule, the values, and what to do.
        detail: String,
    },
    /// The transaction is over: its closure has returned.
    #[error("this transaction is over; a handle on it serves only within the closure that was given it")]
    Over,
    /// What the closure itself had to say.
    #[error("{}", permanent(.0))]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A change could not be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Inlined rows could not be changed.
    #[error("{}", permanent(.0))]
    Inline(#[source] InlineError),
    /// The store could not be read.
    #[error("{}", permanent(.0))]
    Read(#[source] ReadError),
}

impl VerbError {
    /// An error of the caller's own, to give up a transaction with.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        VerbError::Other(error.into())
    }

    pub(crate) fn not_found(kind: ObjectKind, name: impl std::fmt::Display) -> Self {
        VerbError::NotFound {
            kind,
            name: name.to_string(),
        }
    }

    pub(crate) fn exists(kind: ObjectKind, name: impl std::fmt::Display) -> Self {
        VerbError::AlreadyExists {
            kind,
            name: name.to_string(),
        }
    }

    pub(crate) fn refused(detail: impl Into<String>) -> Self {
        VerbError::Refused {
            detail: detail.into(),
        }
    }
}

impl From<ReadError> for VerbError {
    fn from(error: ReadError) -> Self {
        VerbError::Read(error)
    }
}

impl From<InlineError> for VerbError {
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Read(error) => VerbError::Read(error),
            error => VerbError::Inline(error),
        }
    }
}

/// How a commit came out that was not committed. After [`CommitError::Refused`], [`CommitError::Conflicted`] and
/// [`CommitError::Abandoned`] nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The closure, or a verb within it, gave up.
    #[error(transparent)]
    Refused(VerbError),
    /// Somebody else committed what this conflicts with, or was quicker as often as was allowed. Read again, and decide
    /// again.
    #[error("{}: {detail}", words::CONFLICT)]
    Conflicted {
        /// With what, or how often.
        detail: String,
    },
    /// Another process has taken the lake over. The commit may have landed before that; the new owner knows.
    #[error("another process has taken over this lake ({}); open it again there", permanent(.detail))]
    Fenced {
        /// What the store reported.
        detail: String,
    },
    /// The commit was written and its fate is not known. It is never tried again here: look whether it is there.
    #[error("the outcome of this commit is not known ({}); look whether it is there before trying again", permanent(.detail))]
    Unknown {
        /// What happened.
        detail: String,
    },
    /// The commit was given up before anything was written.
    #[error("nothing was committed: {}", permanent(.detail))]
    Abandoned {
        /// Why.
        detail: String,
    },
}

impl From<CommitFailure> for CommitError {
    fn from(failure: CommitFailure) -> Self {
        match failure {
            CommitFailure::Conflict { detail } => CommitError::Conflicted { detail },
            CommitFailure::Constraint { detail } => CommitError::Refused(VerbError::Refused { detail }),
            CommitFailure::Fenced { detail } => CommitError::Fenced { detail },
            CommitFailure::Unknown { detail } => CommitError::Unknown { detail },
            CommitFailure::Abandoned(error) => CommitError::Abandoned {
                detail: error.to_string(),
            },
        }
    }
}

impl From<CatalogError> for CommitError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Read(error) => VerbError::Read(error).into(),
            error => CommitError::Abandoned {
                detail: error.to_string(),
            },
        }
    }
}

impl From<VerbError> for CommitError {
    fn from(error: VerbError) -> Self {
        match error {
            VerbError::Read(ReadError::Fenced { detail })
            | VerbError::Stage(StageError::Read(ReadError::Fenced { detail })) => {
                CommitError::Fenced { detail }
            }
            VerbError::Changed { detail } => CommitError::Conflicted { detail },
            error => CommitError::Refused(error),
        }
    }
}
