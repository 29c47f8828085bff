//! How a writer knows that the store is still its own. Whoever writes finds out at its next flush; whoever only reads has to
//! ask, or it would go on answering from memory what a successor has long changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use slatedb::Db;
use tokio::time::Instant;

use super::guard::{Guard, read_error};
use crate::ReadError;

/// From this part of the allowed age on the object store is asked again beside the reads, so that a server that reads all the
/// time never waits for the answer.
const EARLY_PART: u32 = 2;

/// When this process was last known to be the only writer of its store.
pub(super) struct Ownership {
    db: Db,
    guard: Guard,
    age_max: Duration,
    opened: Instant,
    /// Microseconds from `opened` on.
    confirmed_micros: AtomicU64,
    /// One question at a time: who comes while it is asked is content with its answer.
    asking: tokio::sync::Mutex<()>,
    is_asked_early: AtomicBool,
}

impl Ownership {
    /// The store was opened for writing after `opened`.
    pub(super) fn new(db: Db, guard: Guard, age_max: Duration, opened: Instant) -> Arc<Self> {
        Arc::new(Ownership {
            db,
            guard,
            age_max,
            opened,
            confirmed_micros: AtomicU64::new(0),
            asking: tokio::sync::Mutex::default(),
            is_asked_early: AtomicBool::new(false),
        })
    }

    /// Notes that nobody had taken the store over at an instant.
    pub(super) fn note(&self, at: Instant) {
        let micros = at.saturating_duration_since(self.opened).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        self.confirmed_micros.fetch_max(micros, Ordering::Relaxed);
    }

    fn age(&self) -> Duration {
        let confirmed = Duration::from_micros(self.confirmed_micros.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(confirmed)
    }

    /// Asks the object store whether the store is still this process's, unless that was known not longer ago than allowed.
    pub(super) async fn confirm(self: &Arc<Self>) -> Result<(), ReadError> {
        let age = self.age();
        if age >= self.age_max {
            return self.ask().await;
        }
        if age >= self.age_max / EARLY_PART && !self.is_asked_early.swap(true, Ordering::Relaxed) {
            let ownership = Arc::clone(self);
            tokio::spawn(async move {
                // What went wrong is told to who has to wait for the answer.
                let _told_later = ownership.ask().await;
                ownership.is_asked_early.store(false, Ordering::Relaxed);
            });
        }
        Ok(())
    }

    /// Asks, or waits for the answer that somebody else gets. Who waits does so no longer than who asks.
    async fn ask(&self) -> Result<(), ReadError> {
        let answer = self.guard.run(async {
            let _asking = self.asking.lock().await;
            if self.age() < self.age_max / EARLY_PART {
                return Ok(());
            }
            let asked = Instant::now();
            self.db.refresh_manifest().await?;
            self.note(asked);
            Ok(())
        });
        let answer = answer.await;
        answer.map_err(|failure| read_error(failure, &"whether another process has taken the store over"))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use object_store::memory::InMemory;
    use slatedb::config::Settings;

    use super::*;
    use crate::location::Location;
    use crate::{OpenOptions, SlateStore, Store};

    const LONG: Duration = Duration::from_secs(3600);

    /// A database that asks nobody by itself, and who owns it since an hour ago or now.
    async fn owned(objects: &Arc<InMemory>, age: Duration) -> Arc<Ownership> {
        let settings = Settings {
            manifest_poll_interval: LONG,
            ..Settings::default()
        };
        let db = Db::builder("db", Arc::clone(objects) as Arc<dyn object_store::ObjectStore>)
            .with_settings(settings)
            .build()
            .await
            .unwrap();
        let guard = Guard {
            limit: Duration::from_secs(60),
            seen: Arc::default(),
        };
        let opened = Instant::now().checked_sub(age).unwrap();
        Ownership::new(db, guard, LONG / 2, opened)
    }

    #[tokio::test]
    async fn who_has_not_heard_of_a_successor_for_too_long_asks() {
        let objects = Arc::new(InMemory::new());
        let first = owned(&objects, LONG).await;
        first.confirm().await.unwrap();
        assert!(first.age() < LONG / 4, "the answer is new");
        let _successor = owned(&objects, Duration::ZERO).await;
        first.confirm().await.unwrap();
        let long_ago = Ownership::new(first.db.clone(), first.guard.clone(), LONG / 2, first.opened);
        assert!(matches!(long_ago.confirm().await, Err(ReadError::Fenced { .. })));
    }

    #[tokio::test]
    async fn those_who_come_at_the_same_time_are_told_the_same() {
        let objects = Arc::new(InMemory::new());
        let first = owned(&objects, LONG).await;
        let _successor = owned(&objects, Duration::ZERO).await;
        let asking = (0..8).map(|_| {
            let first = Arc::clone(&first);
            tokio::spawn(async move { first.confirm().await })
        });
        let asking: Vec<_> = asking.collect();
        for answer in asking {
            assert!(matches!(answer.await.unwrap(), Err(ReadError::Fenced { .. })));
        }
    }

    #[tokio::test]
    async fn a_commit_that_became_durable_is_an_answer() {
        let location = Location {
            store: Arc::new(InMemory::new()),
            prefix: "db".into(),
            local: false,
        };
        let store = SlateStore::start(&location, &OpenOptions::default()).await;
        let store = store.ok().unwrap();
        let ownership = &store.inner.ownership;
        let before = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let since = before.elapsed();
        assert!(ownership.age() >= since, "nothing was heard after it was opened");
        let mut transaction = store.begin().unwrap();
        transaction
            .put(Bytes::from_static(b"key"), Bytes::from_static(b"value"))
            .unwrap();
        let pending = transaction.commit().await.unwrap();
        pending.durable().await.unwrap();
        let age = ownership.age();
        assert!(age < before.elapsed(), "the commit was an answer");
    }
}
