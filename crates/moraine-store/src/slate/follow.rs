//! Following a writer: its write-ahead log is read as it grows, and its SSTs are opened anew when they change. Nothing is
//! written, so nobody is fenced and no right to write is needed.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesOrdered;
use slatedb::admin::Admin;
use slatedb::manifest::VersionedManifest;
use slatedb::{DbReaderMode, ErrorKind, ValueDeletable, WalFile, WalReader};

use super::guard::{Failure, Guard};
use super::read_only::{Generation, Opener};
use super::tail::{Row, Tail};

/// Log objects that are read at the same time. Their ids follow one another, so all but the last are there.
const LOG_OBJECTS_AT_ONCE_MAX: u64 = 32;
/// The manifest is looked at once in so many polls, for SSTs that have changed.
const POLLS_PER_LOOK: u32 = 10;
/// At most so much later. Far below the age at which the garbage collector takes away what no manifest names.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// The follower's place in the log.
pub(crate) struct Follower {
    opener: Opener,
    wal: WalReader,
    admin: Admin,
    guard: Guard,
    next_log_object: u64,
    looked: Instant,
    look_interval: Duration,
}

impl Follower {
    /// Opens a database at its newest state.
    pub(crate) async fn start(
        opener: Opener,
        guard: Guard,
        poll_interval: Duration,
    ) -> Result<(Follower, Arc<Generation>), Failure> {
        let (prefix, store) = opener.place();
        let mut follower = Follower {
            wal: WalReader::new(prefix.clone(), Arc::clone(&store)),
            admin: Admin::builder(prefix, store).build(),
            opener,
            guard,
            next_log_object: 0,
            looked: Instant::now(),
            look_interval: poll_interval
                .saturating_mul(POLLS_PER_LOOK)
                .min(LOOK_INTERVAL_MAX),
        };
        let generation = follower.generation(None).await?;
        Ok((follower, generation))
    }

    /// Reads what is new. A new generation where the SSTs have changed, else what is new is in the tail of `current`.
    pub(crate) async fn poll(
        &mut self,
        current: &Arc<Generation>,
    ) -> Result<Option<Arc<Generation>>, Failure> {
        self.next_log_object = self.catch_up(&current.tail, self.next_log_object).await?;
        if self.looked.elapsed() < self.look_interval {
            return Ok(None);
        }
        let newest = self.guard.run(self.admin.read_manifest(None)).await?;
        self.looked = Instant::now();
        match newest {
            Some(newest) if has_moved(&current.manifest, &newest) => {
                Ok(Some(self.generation(Some(current)).await?))
            }
            _ => Ok(None),
        }
    }

    /// The newest SSTs, with all that the log has on top of them. What `before` has read of the log is not read again.
    async fn generation(&mut self, before: Option<&Arc<Generation>>) -> Result<Arc<Generation>, Failure> {
        let (base, manifest) = self.opener.open(DbReaderMode::FollowLatest, &self.guard).await?;
        let in_ssts = manifest.last_l0_seq();
        let covered = before.filter(|_| self.next_log_object > manifest.replay_after_wal_id());
        let (tail, next) = match covered {
            Some(before) => {
                let tail = Tail::new(in_ssts.max(before.tail.published()));
                tail.add(before.tail.newest_after(in_ssts));
                (tail, self.next_log_object)
            }
            None => (Tail::new(in_ssts), manifest.replay_after_wal_id() + 1),
        };
        let tail = Arc::new(tail);
        // Only then does the tail hold every batch of which the SSTs hold a part.
        self.next_log_object = self.catch_up(&tail, next).await?;
        Ok(Arc::new(Generation { base, manifest, tail }))
    }

    /// Reads the log from the object `next` on; the id of the first that is not there yet.
    async fn catch_up(&self, tail: &Tail, mut next: u64) -> Result<u64, Failure> {
        let mut at_once = 1;
        loop {
            let objects = (next..next.saturating_add(at_once)).map(|id| {
                let object = self.wal.get(id);
                async move { self.guard.run(rows(&object)).await }
            });
            let mut objects: FuturesOrdered<_> = objects.collect();
            while let Some(rows) = objects.next().await {
                let Some(rows) = rows? else {
                    return Ok(next);
                };
                tail.add(rows);
                next = next.saturating_add(1);
            }
            at_once = (at_once * 2).min(LOG_OBJECTS_AT_ONCE_MAX);
        }
    }
}

/// Whether SSTs have come or gone.
fn has_moved(known: &VersionedManifest, newest: &VersionedManifest) -> bool {
    newest.id() > known.id()
        && (newest.last_l0_seq() != known.last_l0_seq()
            || newest.replay_after_wal_id() != known.replay_after_wal_id()
            || newest.segments() != known.segments())
}

/// The rows of one log object; `None` where there is none.
async fn rows(object: &WalFile) -> Result<Option<Vec<Row>>, slatedb::Error> {
    let mut entries = match object.iterator().await {
        Ok(entries) => entries,
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut rows = Vec::new();
    while let Some(entry) = entries.next().await? {
        let value = match entry.value {
            ValueDeletable::Value(value) => Some(value),
            ValueDeletable::Tombstone => None,
            ValueDeletable::Merge(_) => {
                return Err(slatedb::Error::data(format!(
                    "log object {} has a merge operand, which no moraine writes",
                    object.id
                )));
            }
        };
        rows.push(Row {
            key: entry.key,
            sequence: entry.seq,
            value,
        });
    }
    Ok(Some(rows))
}

/// Whether the object store has said that the object is not there.
fn is_not_found(error: &slatedb::Error) -> bool {
    if error.kind() != ErrorKind::Data {
        return false;
    }
    let mut source = error.source();
    while let Some(cause) = source {
        let plain = cause.downcast_ref::<object_store::Error>();
        let shared = cause.downcast_ref::<Arc<object_store::Error>>().map(Arc::as_ref);
        if matches!(plain.or(shared), Some(object_store::Error::NotFound { .. })) {
            return true;
        }
        source = cause.source();
    }
    false
}
