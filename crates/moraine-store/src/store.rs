//! The traits a store implements: [`Store`], its pinned [`View`]s and its optimistic [`Transaction`]s.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{CommitError, Pending, Read, ReadError};

/// A pinned view: it never moves, and it sees everything that was written, durable or not, when it was taken.
#[async_trait]
pub trait View: Read {
    /// Waits until everything this view can see is durable. Acknowledging anything that was learned from the view
    /// before that would promise a state that a crash can take back. Never issues a flush of its own.
    ///
    /// # Errors
    /// The reason why something this view saw did not become durable, or may not have.
    async fn settled(&self) -> Result<(), CommitError>;
}

/// An optimistic transaction: reads at the state it began on with its own writes on top; committing fails when
/// somebody else has committed one of its written keys meanwhile. Reads are not checked. Dropping it writes nothing.
#[async_trait]
pub trait Transaction: Read {
    /// Stages a put.
    ///
    /// # Errors
    /// [`ReadError::Invalid`] for an empty key; whatever ended the store.
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), ReadError>;

    /// Stages a deletion; deleting an absent key is not an error, and counts as a write of that key.
    ///
    /// # Errors
    /// [`ReadError::Invalid`] for an empty key; whatever ended the store.
    fn delete(&mut self, key: Bytes) -> Result<(), ReadError>;

    /// Writes all staged changes as one atomic batch, visible at once and durable when the [`Pending`] says so. An
    /// empty transaction commits nothing and is pending on nothing.
    ///
    /// # Errors
    /// [`CommitError::Conflicted`] and [`CommitError::Abandoned`]: nothing was written. [`CommitError::Fenced`],
    /// [`CommitError::Unknown`]: see there.
    async fn commit(self: Box<Self>) -> Result<Pending, CommitError>;
}

/// An ordered key-value store with pinned views and optimistic transactions, owned by this process.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Pins the newest state.
    ///
    /// # Errors
    /// Whatever ended the store: [`ReadError::Fenced`], [`ReadError::Closed`], [`ReadError::Stopped`].
    fn view(&self) -> Result<Arc<dyn View>, ReadError>;

    /// Begins a transaction on the newest state.
    ///
    /// # Errors
    /// Whatever ended the store: [`ReadError::Fenced`], [`ReadError::Closed`], [`ReadError::Stopped`].
    fn begin(&self) -> Result<Box<dyn Transaction>, ReadError>;

    /// Sees to it that nobody had taken the store over a moment ago ([`crate::OpenOptions::ownership_age_max`]). A writer that
    /// does not write learns of its successor by asking; without that its views show what was, for as long as it is idle.
    /// Costs nothing where it is known, by a commit that has become durable or by an earlier answer.
    ///
    /// # Errors
    /// [`ReadError::Fenced`]; [`ReadError::Unavailable`] when there is no answer in time.
    async fn confirm(&self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Gets, plus records returned by scans, since the store was opened; for tests that count reads.
    fn reads(&self) -> u64;

    /// Makes what was written durable and closes the store; later calls fail with [`ReadError::Closed`]. Takes bounded
    /// time.
    ///
    /// # Errors
    /// What kept written batches from becoming durable.
    async fn close(&self) -> Result<(), ReadError>;
}
