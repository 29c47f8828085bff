//! What an opened lake remembers of its chunk directories, per table: from when on the directory is known to name every chunk,
//! and how many row ids the widest chunk spans. How completeness is judged is in [`crate::directory`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of one opened store; whoever opens it keeps one, and gives every reader and writer of inlined rows a handle of the
/// state it works on ([`Directories::at`]).
///
/// A chunk and its locator always arrive and go in one batch, so a directory that is complete stays so: what was judged on one
/// state holds for every later one, and for none before. The width only ever rises, so however old it is it still bounds the widest
/// chunk. Both rest on all writers of the store using this memory: there must be one per opened store.
#[derive(Debug, Default)]
pub struct Directories {
    tables: Mutex<HashMap<u64, Known>>,
}

/// The directories as a reader at one state of the store may rely on them.
#[derive(Debug, Clone)]
pub struct DirectoriesAt {
    directories: Arc<Directories>,
    batch_seq: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The batch from which on the directory names every chunk.
    complete_since: Option<u64>,
    /// Row ids beyond the first that any chunk written or judged here spans.
    width: u64,
}

impl Directories {
    /// A handle for a reader of the state that batch `batch_seq` left (`batch_seq` of `sys/head`).
    #[must_use]
    pub fn at(self: &Arc<Self>, batch_seq: u64) -> DirectoriesAt {
        DirectoriesAt {
            directories: Arc::clone(self),
            batch_seq,
        }
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirectoriesAt {
    /// A handle that remembers nothing from before: every table is judged anew.
    #[must_use]
    pub fn unknown() -> Self {
        Arc::new(Directories::default()).at(0)
    }

    /// The bound on the width of every chunk of the table, if its directory is known to be complete in this state.
    pub(crate) fn complete_width(&self, table_id: u64) -> Option<u64> {
        let known = self.directories.tables().get(&table_id).copied()?;
        known
            .complete_since
            .filter(|since| *since <= self.batch_seq)
            .map(|_| known.width)
    }

    /// Remembers that the directory was complete in this state, with chunks of at most `width`. Gives the bound that holds.
    pub(crate) fn remember_complete(&self, table_id: u64, width: u64) -> u64 {
        let mut tables = self.directories.tables();
        let known = tables.entry(table_id).or_default();
        let since = known
            .complete_since
            .map_or(self.batch_seq, |since| since.min(self.batch_seq));
        known.complete_since = Some(since);
        known.width = known.width.max(width);
        known.width
    }

    /// Notes a chunk that may come to be. It never has to be taken back: a bound too high costs a few keys.
    pub(crate) fn raise_width(&self, table_id: u64, width: u64) {
        let mut tables = self.directories.tables();
        let known = tables.entry(table_id).or_default();
        known.width = known.width.max(width);
    }
}
