//! The flusher: the one task of a store that calls `Db::flush`. A flush per commit would put WAL uploads one behind the
//! other; one flush in the air at a time lets everything that arrives meanwhile share the next.

use std::sync::Arc;

use slatedb::Db;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Turns the flusher leaves to others between its wake-up and its flush: those whose commits the last flush
/// acknowledged write again at once, and so come along.
const COHORT_YIELDS: usize = 8;

/// Handle of the flusher task; the task ends with it.
pub(crate) struct Flusher {
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Flusher {
    pub(crate) fn start(db: Db) -> Self {
        let wake = Arc::new(Notify::new());
        let task = tokio::spawn(run(db, Arc::clone(&wake)));
        Flusher { wake, task }
    }

    /// Something was written. Returns at once.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(db: Db, wake: Arc<Notify>) {
    loop {
        wake.notified().await;
        for _ in 0..COHORT_YIELDS {
            tokio::task::yield_now().await;
        }
        if let Err(error) = db.flush().await {
            // The handles of the writes report it to those who wait; the database serves nothing more.
            tracing::error!(%error, "flush failed; the store has to be opened again");
            return;
        }
    }
}
