//! What this process has lately seen happen to a lake, and what it expects next from that. It decides who waits for whom,
//! and never what may be committed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::changes_made::{ChangeEntry, ChangesMade};

/// How long a lake is busy after a commit.
const BUSY: Duration = Duration::from_secs(60);
/// After so many appends, and nothing that updates or deletes rows, a lake is taken for one that only grows.
const APPENDS_MIN: u32 = 8;

/// What was seen of one lake since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The snapshot that was committed last, and when.
    last_commit: Option<(u64, Instant)>,
    /// Commits that only added rows; counted as far as [`APPENDS_MIN`].
    appends: u32,
    /// Whether anybody has updated or deleted rows, or was about to.
    was_updated: bool,
}

impl Activity {
    /// Notes a commit and what its snapshot changed.
    pub(crate) fn note_commit(&self, snapshot_id: u64, changes_made: &str) {
        let entries = ChangesMade::parse(changes_made).entries;
        let mut seen = self.lock();
        seen.last_commit = Some((snapshot_id, Instant::now()));
        if entries.iter().any(takes_rows_away) {
            seen.was_updated = true;
        } else if !entries.is_empty() && entries.iter().all(adds_rows) {
            seen.appends = seen.appends.saturating_add(1).min(APPENDS_MIN);
        }
    }

    /// Notes that a transaction is about to update or delete rows, whether it comes to its commit or not.
    pub(crate) fn note_update(&self) {
        self.lock().was_updated = true;
    }

    /// The snapshot that was committed last; `None` before the first one.
    pub(crate) fn newest_snapshot(&self) -> Option<u64> {
        self.lock().last_commit.map(|(snapshot_id, _)| snapshot_id)
    }

    /// Whether somebody has committed a snapshot lately.
    pub(crate) fn is_busy(&self) -> bool {
        let last = self.lock().last_commit;
        last.is_some_and(|(_, at)| at.elapsed() < BUSY)
    }

    /// Whether enough was seen, and nothing that takes rows away.
    pub(crate) fn only_grows(&self) -> bool {
        let seen = self.lock();
        seen.appends >= APPENDS_MIN && !seen.was_updated
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn adds_rows(entry: &ChangeEntry) -> bool {
    matches!(
        entry,
        ChangeEntry::InsertedIntoTable(_) | ChangeEntry::InlinedInsert(_)
    )
}

fn takes_rows_away(entry: &ChangeEntry) -> bool {
    matches!(
        entry,
        ChangeEntry::DeletedFromTable(_) | ChangeEntry::InlinedDelete(_) | ChangeEntry::Unknown(_)
    )
}
