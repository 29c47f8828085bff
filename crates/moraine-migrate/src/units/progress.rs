//! What a migration tells while it runs, and how it is asked to stop.

use std::ops::ControlFlow;

/// How far a migration has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, in words.
    pub doing: &'static str,
    /// Records done, of all that is to be done.
    pub done: u64,
    /// Records to be done, where that is known.
    pub total: Option<u64>,
}

/// Who is told. Called after each batch.
pub trait Observer: Send {
    /// Takes note. [`ControlFlow::Break`] stops the migration here, with all that was written durable.
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Progress) -> ControlFlow<()> + Send> Observer for F {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self(progress)
    }
}
