//! Committing transactions of verbs: the closure is run in its turn, and run again where somebody else came first all the
//! same. What it comes to is settled in [`crate::verbs::finish`]; how a batch is written, in [`crate::commit`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::task::JoinHandle;

use crate::catalog::Catalog;
use crate::commit::Committed;
use crate::error::{CommitFailure, StageError};
use crate::transaction::CatalogTransaction;
use crate::verbs::changes::Changes;
use crate::verbs::error::{CommitError, VerbError};
use crate::verbs::finish::{Finished, finish};
use crate::verbs::transaction::LakeTransaction;

/// How often a closure is run before its commit is given up. It takes its turn each time, so a second run is rare.
pub const COMMIT_TRIES_DEFAULT: u32 = 10;

/// How much longer a closure may take at each further try until others go first.
const PATIENCE_GROWTH: u32 = 2;

/// Bytes of a group's batches that wait to become durable, before the group waits for them, unless told otherwise
/// ([`crate::CatalogOptions::group_bytes_max`]).
pub const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How a commit is to be made.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// The snapshot that what the closure writes was worked out from, where that is older than the newest: such as delete
    /// files for what a snapshot showed. The commit is refused if a later snapshot conflicts with it by DuckLake's rules.
    pub based_on: Option<u64>,
    /// How often the closure is run at most; [`COMMIT_TRIES_DEFAULT`] unless set.
    pub tries: Option<u32>,
}

/// A commit that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit<T> {
    /// The snapshot that it made; `None` where nothing was changed that a snapshot shows.
    pub snapshot_id: Option<u64>,
    /// What the closure returned.
    pub value: T,
}

/// The closure of one member of a group; see [`Catalog::commit_group`].
pub struct GroupMember<T> {
    run: Box<dyn FnMut(LakeTransaction) -> BoxedRun<T> + Send>,
    options: CommitOptions,
}

type BoxedRun<T> = Pin<Box<dyn Future<Output = Result<T, VerbError>> + Send>>;

impl<T> GroupMember<T> {
    /// A member that commits what `closure` does.
    pub fn new<F, Fut>(mut closure: F) -> Self
    where
        F: FnMut(LakeTransaction) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, VerbError>> + Send + 'static,
    {
        GroupMember {
            run: Box::new(move |transaction| Box::pin(closure(transaction))),
            options: CommitOptions::default(),
        }
    }

    /// The member with options.
    #[must_use]
    pub fn with_options(mut self, options: CommitOptions) -> Self {
        self.options = options;
        self
    }
}

impl<T> std::fmt::Debug for GroupMember<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupMember")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Catalog {
    /// Commits what a closure does, in one snapshot, and returns once it is durable. Commits take turns, so the closure
    /// mostly runs once; where it takes so long that others go first, it is run again on the newest state, unless what they
    /// did conflicts with what it did by DuckLake's rules. It should only register what has been prepared before, such as
    /// files that are written.
    ///
    /// The closure gets a handle, not a reference: `catalog.commit(|tx| async move { … }).await`. Nothing is committed
    /// when it returns an error; [`VerbError::other`] takes one of the caller's own. A caller that stops waiting before
    /// the closure has returned has committed nothing; after that, the commit goes on to its end.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use moraine_commit::{Catalog, verbs::{CommitError, VerbError}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let catalog = Catalog::with_store(Arc::new(moraine_store::MemoryStore::new()));
    /// # catalog.create(Some("data/"), false).await?;
    /// let commit = catalog.commit(|tx| async move {
    ///     tx.set_author("a friend").await?;
    ///     tx.create_schema("sales").await
    /// }).await?;
    /// assert_eq!(commit.snapshot_id, Some(1));
    ///
    /// let again = catalog.commit(|tx| async move { tx.create_schema("sales").await }).await;
    /// assert!(matches!(again, Err(CommitError::Refused(VerbError::AlreadyExists { .. }))));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit<T, F, Fut>(self: &Arc<Self>, closure: F) -> Result<Commit<T>, CommitError>
    where
        F: FnMut(LakeTransaction) -> Fut,
        Fut: Future<Output = Result<T, VerbError>>,
    {
        self.commit_with(&CommitOptions::default(), closure).await
    }

    /// [`Catalog::commit`] with options.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit_with<T, F, Fut>(
        self: &Arc<Self>,
        options: &CommitOptions,
        closure: F,
    ) -> Result<Commit<T>, CommitError>
    where
        F: FnMut(LakeTransaction) -> Fut,
        Fut: Future<Output = Result<T, VerbError>>,
    {
        let pending = self.write(options, closure).await?;
        pending.durable().await
    }

    /// Commits the closures of a group one after the other, each on top of the last and in a snapshot of its own, and lets
    /// all of them share flushes. Each has an outcome of its own: one that is refused harms no other. No number of members
    /// is too great: once more than [`crate::CatalogOptions::group_bytes_max`] are on the way, a group waits for its own earlier
    /// members before the next.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use moraine_commit::{Catalog, verbs::GroupMember};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let catalog = Catalog::with_store(Arc::new(moraine_store::MemoryStore::new()));
    /// # catalog.create(Some("data/"), false).await?;
    /// let schema = |name: &'static str| GroupMember::new(move |tx| async move { tx.create_schema(name).await });
    /// let outcomes = catalog.commit_group(vec![schema("a"), schema("a"), schema("b")]).await;
    /// let committed: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    /// assert_eq!(committed, [true, false, true]);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub async fn commit_group<T: Send + 'static>(
        self: &Arc<Self>,
        members: Vec<GroupMember<T>>,
    ) -> Vec<Result<Commit<T>, CommitError>> {
        let mut outcomes = Vec::with_capacity(members.len());
        let mut waiting: Vec<(usize, PendingCommit<T>)> = Vec::new();
        let mut bytes = 0_usize;
        for (place, mut member) in members.into_iter().enumerate() {
            match self.write(&member.options, &mut member.run).await {
                Ok(pending) => {
                    bytes = bytes.saturating_add(pending.bytes);
                    outcomes.push(None);
                    waiting.push((place, pending));
                }
                Err(error) => outcomes.push(Some(Err(error))),
            }
            if bytes > self.group_bytes_max() {
                settle(&mut waiting, &mut outcomes).await;
                bytes = 0;
            }
        }
        settle(&mut waiting, &mut outcomes).await;
        let lost = || {
            Err(CommitError::Unknown {
                detail: "the group lost a member's outcome".to_owned(),
            })
        };
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(lost))
            .collect()
    }

    /// Runs a closure until its batch is on its way to the store.
    async fn write<T, F, Fut>(
        self: &Arc<Self>,
        options: &CommitOptions,
        mut closure: F,
    ) -> Result<PendingCommit<T>, CommitError>
    where
        F: FnMut(LakeTransaction) -> Fut,
        Fut: Future<Output = Result<T, VerbError>>,
    {
        let tries = options.tries.unwrap_or(COMMIT_TRIES_DEFAULT).max(1);
        let mut patience = 1;
        let mut lost = String::new();
        for _ in 0..tries {
            let transaction = self.begin_patiently(patience).await?;
            patience = patience.saturating_mul(PATIENCE_GROWTH);
            match self.try_write(options, transaction, &mut closure).await? {
                Tried::Pending(pending) => return Ok(pending),
                Tried::Lost(detail, unwritten) => {
                    self.check_race(&unwritten).await?;
                    lost = detail;
                }
            }
        }
        Err(CommitError::Conflicted {
            detail: format!("other commits came first {tries} times: {lost}"),
        })
    }

    async fn try_write<T, F, Fut>(
        self: &Arc<Self>,
        options: &CommitOptions,
        transaction: CatalogTransaction,
        closure: &mut F,
    ) -> Result<Tried<T>, CommitError>
    where
        F: FnMut(LakeTransaction) -> Fut,
        Fut: Future<Output = Result<T, VerbError>>,
    {
        let handle = LakeTransaction::begin(transaction).await?;
        let value = closure(handle.clone()).await?;
        let (transaction, state) = handle.end().await;
        let transaction = transaction.ok_or(VerbError::Over)?;
        let base = state.base.snapshot_id;
        let finished = finish(transaction, state).await?;
        self.check_base(options, &finished).await?;
        let Finished {
            mut transaction,
            snapshot,
            changes,
        } = finished;
        let unwritten = Box::new(Unwritten { base, changes });
        if let Some((snapshot, snapshot_changes)) = snapshot {
            transaction.pin();
            match transaction.insert_snapshot(snapshot).await {
                Ok(()) => {}
                Err(
                    error @ (StageError::LostRace { .. }
                    | StageError::SlotTaken { .. }
                    | StageError::SlotBusy { .. }),
                ) => return Ok(Tried::Lost(error.to_string(), unwritten)),
                Err(error) => return Err(VerbError::from(error).into()),
            }
            transaction
                .set_snapshot_changes(snapshot_changes)
                .await
                .map_err(VerbError::from)?;
        }
        PendingCommit::submit(transaction, value, unwritten).await
    }

    /// Refuses to run a closure again after a lost race that was not harmless: who came first did something that
    /// conflicts with what the closure did.
    async fn check_race(self: &Arc<Self>, unwritten: &Unwritten) -> Result<(), CommitError> {
        let newest = self.begin().await?;
        let head = newest.head().map_or(unwritten.base, |head| head.snapshot_id);
        crate::verbs::conflict::check(newest.read(), unwritten.base, head, &unwritten.changes).await
    }

    /// Refuses a commit that conflicts with what was committed after the snapshot it was worked out from.
    async fn check_base(&self, options: &CommitOptions, finished: &Finished) -> Result<(), CommitError> {
        let (Some(based_on), Some(head)) = (options.based_on, finished.transaction.head()) else {
            return Ok(());
        };
        crate::verbs::conflict::check(
            finished.transaction.read(),
            based_on,
            head.snapshot_id,
            &finished.changes,
        )
        .await
    }
}

/// What became of one run of a closure.
enum Tried<T> {
    Pending(PendingCommit<T>),
    /// Somebody else came first; nothing was written.
    Lost(String, Box<Unwritten>),
}

/// What a run of a closure would have changed, and on which snapshot.
struct Unwritten {
    base: u64,
    changes: Changes,
}

/// A commit whose batch is on its way.
struct PendingCommit<T> {
    task: JoinHandle<Result<Committed, CommitFailure>>,
    value: T,
    bytes: usize,
}

impl<T> PendingCommit<T> {
    /// Hands a batch over, and waits until it is written or refused, which is before it is durable.
    async fn submit(
        transaction: CatalogTransaction,
        value: T,
        unwritten: Box<Unwritten>,
    ) -> Result<Tried<T>, CommitError> {
        let bytes = transaction.read().bytes();
        let (written, is_written) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(transaction.commit_noting(written));
        if is_written.await.is_err() {
            // Refused before it was written, or nothing was to be written: the task is at its end.
            return match join(task).await {
                Ok(committed) => Ok(Tried::Pending(PendingCommit {
                    task: tokio::spawn(async move { Ok(committed) }),
                    value,
                    bytes: 0,
                })),
                Err(CommitFailure::Conflict { detail }) => Ok(Tried::Lost(detail, unwritten)),
                Err(failure) => Err(failure.into()),
            };
        }
        Ok(Tried::Pending(PendingCommit { task, value, bytes }))
    }

    async fn durable(self) -> Result<Commit<T>, CommitError> {
        let committed = join(self.task).await?;
        Ok(Commit {
            snapshot_id: committed.snapshot_id,
            value: self.value,
        })
    }
}

async fn join(task: JoinHandle<Result<Committed, CommitFailure>>) -> Result<Committed, CommitFailure> {
    task.await.unwrap_or_else(|error| {
        Err(CommitFailure::Unknown {
            detail: format!("the commit's task ended early: {error}"),
        })
    })
}

async fn settle<T>(
    waiting: &mut Vec<(usize, PendingCommit<T>)>,
    outcomes: &mut [Option<Result<Commit<T>, CommitError>>],
) {
    for (place, pending) in waiting.drain(..) {
        let outcome = pending.durable().await;
        if let Some(slot) = outcomes.get_mut(place) {
            *slot = Some(outcome);
        }
    }
}

/// Microseconds since 1970-01-01 UTC.
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
