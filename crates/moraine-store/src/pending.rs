//! The second half of a commit: a batch that is written and visible, and not yet durable.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::CommitError;

/// A written batch on its way to durability. Dropping it does not take the batch back: it will become durable, and
/// nobody here will hear of it.
#[must_use = "a batch may be acknowledged only after `durable` has returned Ok"]
pub struct Pending {
    outcome: Pin<Box<dyn Future<Output = Result<(), CommitError>> + Send>>,
}

impl Pending {
    /// A pending batch whose outcome is what `outcome` resolves to. For implementations of `Store`.
    pub fn new(outcome: impl Future<Output = Result<(), CommitError>> + Send + 'static) -> Self {
        Pending {
            outcome: Box::pin(outcome),
        }
    }

    /// Waits until the batch is durable. One flush serves everybody who waits; this never issues its own.
    ///
    /// # Errors
    /// [`CommitError::Fenced`] or [`CommitError::Unknown`]; whatever was built on this batch fails with it.
    pub async fn durable(self) -> Result<(), CommitError> {
        self.outcome.await
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}
