//! What can go wrong while reading or committing. Outcomes are types: nothing above this crate decides by message text.

use moraine_codec::DecodeError;
use moraine_keys::KeyError;

/// Why a read gave no answer. Cloneable, so that one failure can be handed to everybody who waits for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Stored bytes are not what was written. No answer is given rather than a wrong one.
    #[error("the store is damaged at {at}: {detail}; restore it from a checkpoint or a copy of the bucket")]
    Corruption {
        /// The key or the object whose bytes are wrong.
        at: String,
        /// What was found there.
        detail: String,
    },
    /// Another process opened the store for writing; this one must not serve it any more.
    #[error(
        "another process has taken over this store ({detail}); stop this one, or open the store again here"
    )]
    Fenced {
        /// What SlateDB reported.
        detail: String,
    },
    /// The object store did not answer, or refused.
    #[error(
        "the object store is unavailable while {doing}: {detail}; check the endpoint and credentials, then try again"
    )]
    Unavailable {
        /// What was being done.
        doing: String,
        /// What the object store reported.
        detail: String,
    },
    /// The store is open for reading only.
    #[error("the store is open for reading only; change it through whoever has it open for writing")]
    ReadOnly,
    /// This handle was closed.
    #[error("the store is closed; open it again")]
    Closed,
    /// The storage engine stopped because of an error inside it; nothing more is served from this handle.
    #[error("the storage engine stopped: {detail}; open the store again")]
    Stopped {
        /// What the engine reported.
        detail: String,
    },
    /// A request that no store can carry out, such as a write to an empty key.
    #[error("invalid request to the store: {detail}")]
    Invalid {
        /// What is wrong with it.
        detail: String,
    },
}

impl ReadError {
    /// A [`ReadError::Corruption`] at `at` (a key or an object) with what was found there.
    pub fn corruption(at: impl Into<String>, detail: impl Into<String>) -> Self {
        ReadError::Corruption {
            at: at.into(),
            detail: detail.into(),
        }
    }
}

impl From<KeyError> for ReadError {
    fn from(error: KeyError) -> Self {
        ReadError::corruption("a key", error.to_string())
    }
}

impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        ReadError::corruption("a record", error.to_string())
    }
}

/// Why a commit was not acknowledged. Only [`CommitError::Conflicted`] and [`CommitError::Abandoned`] prove that
/// nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Another transaction committed a key of this batch since this one began; nothing was written.
    #[error(
        "write conflict: another transaction committed one of these keys first; begin again on the new state"
    )]
    Conflicted,
    /// Another process took the store over before this batch was durable. A batch that was already on its way may have
    /// landed before the takeover; the new owner knows.
    #[error("another process has taken over this store ({detail}); look there for whether the batch landed")]
    Fenced {
        /// What SlateDB reported.
        detail: String,
    },
    /// The batch was submitted and its fate is not known: it is there after a reopen, or it is not. Never retried here.
    #[error("the outcome of the batch is not known: {detail}; read the store again to see whether it landed")]
    Unknown {
        /// What happened after submission.
        detail: String,
    },
    /// The batch was given up before it was submitted; nothing was written.
    #[error("the batch was given up before anything was written: {source}")]
    Abandoned {
        /// What stopped it.
        source: ReadError,
    },
}

impl From<ReadError> for CommitError {
    fn from(source: ReadError) -> Self {
        match source {
            ReadError::Fenced { detail } => CommitError::Fenced { detail },
            source => CommitError::Abandoned { source },
        }
    }
}

/// The text of `error` and of everything below it that it does not repeat.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        let more = source.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        below = source.source();
    }
    text
}
