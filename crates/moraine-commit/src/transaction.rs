//! One transaction on a lake: a pinned view with its own changes on top, and what has been staged so far. What a change
//! does to records is decided in [`crate::rules`], what a commit adds to them in [`crate::derive`]; how a transaction comes
//! to its snapshot is in [`race`].

mod race;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use moraine_codec::proto::{HeadValue, SnapshotValue};
use moraine_inline::{DirectoriesAt, RowMultiset};
use moraine_keys::{HeadKey, SnapshotKey};
use moraine_store::{ReadExt, Savepoint, Staging, View};

use crate::catalog::Catalog;
use crate::change::{Change, InlineChange, SnapshotChanges};
use crate::claims::Claimant;
use crate::commit::{self, Committed, Written};
use crate::error::{CommitFailure, StageError};
use crate::slot::Hold;
use crate::{rules, snapshot};

/// A transaction: reads at a pinned view with its own changes on top, for every relation alike; changes are staged, and
/// written as one batch by [`CatalogTransaction::commit`]. Dropping it abandons them and gives the commit slot back.
pub struct CatalogTransaction {
    catalog: Arc<Catalog>,
    staging: Staging,
    /// The head the pinned view shows: what the transaction builds on.
    premise: Option<HeadValue>,
    /// The commit slot: from the beginning where this transaction waited for its turn, else from the insertion of its
    /// snapshot.
    slot: Option<Hold>,
    /// One of the places of appends, where this one had to wait for it.
    room: Option<Hold>,
    /// How long others wait for it from one of its statements to the next, until it has inserted its snapshot.
    patience: Duration,
    has_lost: bool,
    /// Whether this transaction has inserted its snapshot and has yet to find out whether another came first.
    is_race_open: bool,
    is_append: bool,
    /// Whether it is never shifted.
    is_pinned: bool,
    /// How often this transaction was shifted to a newer head. What was chosen for an older one cannot follow then.
    shifts: u32,
    is_torn: bool,
    /// The inlined rows that this transaction removes, for others to know.
    claimant: Claimant,
    was_overtaken: bool,
    staged: Staged,
}

/// What has been staged, besides the records themselves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Staged {
    /// Whether this transaction creates the lake. If somebody else has meanwhile, and it is the same lake, its commit is a
    /// no-op.
    pub(crate) creating: bool,
    /// The snapshot this transaction mints, as inserted.
    pub(crate) snapshot: Option<SnapshotValue>,
    pub(crate) changes: Option<SnapshotChanges>,
    /// Snapshots whose changes were deleted; their snapshots must be deleted too.
    pub(crate) removed_changes: BTreeSet<u64>,
    /// (table, schema version) registered before their inlined table was created.
    pub(crate) pending_registrations: BTreeSet<(u64, u64)>,
    /// Versions of inlined rows removed for good, by (table, begin snapshot). A flush accounts for them.
    pub(crate) drained: BTreeMap<(u64, u64), u64>,
    /// Row ids of those that a client removes, by table: its files are to hold the same ones.
    pub(crate) drained_rows: BTreeMap<u64, RowMultiset>,
    /// Tables that this transaction created: nothing older can exist below them.
    pub(crate) new_tables: BTreeSet<u64>,
}

impl Staged {
    /// Whether nothing but records has been staged.
    pub(crate) fn adds_records_only(&self) -> bool {
        !self.creating
            && self.removed_changes.is_empty()
            && self.pending_registrations.is_empty()
            && self.drained.is_empty()
            && self.new_tables.is_empty()
    }

    /// Whether there is nothing to write or to check.
    pub(crate) fn is_empty(&self) -> bool {
        !self.creating
            && self.snapshot.is_none()
            && self.changes.is_none()
            && self.removed_changes.is_empty()
            && self.pending_registrations.is_empty()
    }
}

/// A state of a transaction to go back to when a statement fails half way. Valid until the transaction goes back to an
/// earlier one. The commit slot is not part of it: once taken it stays until the end.
#[derive(Debug, Clone)]
pub struct TransactionSavepoint {
    staging: Savepoint,
    staged: Staged,
    shifts: u32,
}

impl CatalogTransaction {
    pub(crate) fn new(catalog: Arc<Catalog>, view: Arc<dyn View>, premise: Option<HeadValue>) -> Self {
        CatalogTransaction {
            claimant: catalog.claims().claimant(),
            catalog,
            staging: Staging::new(view),
            premise,
            slot: None,
            room: None,
            patience: Duration::ZERO,
            has_lost: false,
            is_race_open: false,
            is_append: false,
            is_pinned: false,
            shifts: 0,
            is_torn: false,
            was_overtaken: false,
            staged: Staged::default(),
        }
    }

    /// Whether the pinned view shows a lake, or this transaction is creating one.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.premise.is_some() || self.staged.creating
    }

    /// Whether this transaction is creating the lake.
    #[must_use]
    pub fn is_creating(&self) -> bool {
        self.staged.creating
    }

    /// The head the pinned view shows; `None` where there is no lake.
    #[must_use]
    pub fn head(&self) -> Option<&HeadValue> {
        self.premise.as_ref()
    }

    /// The newest snapshot id in this transaction's view: its own, or the one the pinned view shows.
    #[must_use]
    pub fn newest_snapshot_id(&self) -> Option<u64> {
        let own = self.staged.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id);
        own.or(self.premise.as_ref().map(|head| head.snapshot_id))
    }

    /// Whether this transaction was refused because another one came first. Its client tries again, and should begin with
    /// [`Catalog::begin_in_turn`].
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Whether this transaction had its turn, and took so long to insert its snapshot that somebody else was given it.
    #[must_use]
    pub fn was_overtaken(&self) -> bool {
        self.was_overtaken
    }

    /// Where appends are rebased: this transaction is not. What works out ids and gives them to its caller begins again
    /// instead when it loses a race.
    pub(crate) fn pin(&mut self) {
        self.is_pinned = true;
    }

    /// Whether this transaction is known to add rows and to do nothing else. Known only where appends are rebased, once both
    /// rows of its snapshot are there.
    #[must_use]
    pub fn is_append(&self) -> bool {
        self.is_append
    }

    pub(crate) fn give_slot(&mut self, hold: Option<Hold>, patience: Duration) {
        self.slot = hold;
        self.patience = patience;
    }

    pub(crate) fn give_room(&mut self, hold: Option<Hold>, patience: Duration) {
        self.room = hold;
        self.patience = patience;
    }

    /// What the transaction reads: the pinned view with all staged changes on top.
    #[must_use]
    pub fn read(&self) -> &Staging {
        &self.staging
    }

    /// The overlay itself, for what the catalog keeps on its own.
    pub(crate) fn staging_mut(&mut self) -> &mut Staging {
        &mut self.staging
    }

    /// What may be relied on about the chunk directories of inlined tables in this transaction's view; selections of inlined rows
    /// need it.
    #[must_use]
    pub fn directories(&self) -> DirectoriesAt {
        let batch_seq = self.premise.as_ref().map_or(0, |head| head.batch_seq);
        self.catalog.directories().at(batch_seq)
    }

    /// The snapshot this transaction has inserted, as it stands.
    #[must_use]
    pub fn inserted_snapshot(&self) -> Option<&SnapshotValue> {
        self.staged.snapshot.as_ref()
    }

    /// The row of `ducklake_snapshot_changes` this transaction has inserted. While a snapshot is inserted and this is
    /// `None`, the snapshot record stands for a row of `ducklake_snapshot` only.
    #[must_use]
    pub fn inserted_snapshot_changes(&self) -> Option<&SnapshotChanges> {
        self.staged.changes.as_ref()
    }

    /// Snapshots whose row of `ducklake_snapshot_changes` this transaction has deleted, whether or not the snapshot
    /// itself is still there.
    #[must_use]
    pub fn removed_snapshot_changes(&self) -> &BTreeSet<u64> {
        &self.staged.removed_changes
    }

    /// (table id, schema version) of the rows of `ducklake_inlined_data_tables` whose inlined table has yet to be
    /// created. They are rows like the others.
    #[must_use]
    pub fn pending_registrations(&self) -> &BTreeSet<(u64, u64)> {
        &self.staged.pending_registrations
    }

    /// Makes this the transaction that creates the lake; the rows of a fresh lake then arrive as ordinary changes. Does
    /// nothing when the lake is there already or being created here. Waits for whoever is creating it at this moment;
    /// when that one succeeds, this transaction's commit compares the two lakes and is a no-op if they are the same.
    ///
    /// # Errors
    /// [`StageError::SlotBusy`], [`StageError::Read`].
    pub async fn create_lake(&mut self) -> Result<(), StageError> {
        if self.exists() {
            return Ok(());
        }
        let slot = self.catalog.wait_for_slot().await?;
        let newest = self.catalog.store().view()?;
        // Where the lake has come to be meanwhile there is nothing to keep others from.
        self.slot = newest.value(&HeadKey {}).await?.is_none().then_some(slot);
        self.staged.creating = true;
        Ok(())
    }

    /// Stages changes of records, in order, all or nothing.
    ///
    /// # Errors
    /// See [`StageError`]; nothing of the call is staged then.
    pub async fn stage(&mut self, changes: Vec<Change>) -> Result<(), StageError> {
        self.check_exists()?;
        self.check_not_shifted()?;
        self.keep_slot();
        let savepoint = self.savepoint();
        let head = self.newest_snapshot_id();
        let mut outcome = rules::apply(&mut self.staging, &mut self.staged, head, changes).await;
        if outcome.is_ok() {
            outcome = self.catalog.check_batch_bytes(self.staging.bytes());
        }
        if outcome.is_err() {
            self.rollback_to(savepoint);
        }
        outcome
    }

    /// Stages a change of inlined rows, all or nothing.
    ///
    /// # Errors
    /// See [`StageError`]; nothing of the call is staged then.
    pub async fn inline(&mut self, change: InlineChange) -> Result<(), StageError> {
        self.check_exists()?;
        self.check_not_shifted()?;
        self.keep_slot();
        if let InlineChange::RemoveRows { table_id, rows, .. } = &change
            && !self.claimant.claim(*table_id, rows)
        {
            return Err(StageError::Claimed { table_id: *table_id });
        }
        let savepoint = self.savepoint();
        let directories = self.directories();
        let mut outcome =
            crate::inline_rules::apply(&mut self.staging, &directories, &mut self.staged, change).await;
        if outcome.is_ok() {
            outcome = self.catalog.check_batch_bytes(self.staging.bytes());
        }
        if outcome.is_err() {
            self.rollback_to(savepoint);
        }
        outcome
    }

    /// Inserts a row of `ducklake_snapshot`: `value` without anything of `ducklake_snapshot_changes`. Takes the lake's
    /// commit slot, and keeps it until the transaction ends, so that from here on no other snapshot can come first. A time
    /// that is not after that of the newest snapshot is raised to one microsecond after it. Where appends are rebased
    /// ([`crate::CatalogOptions::rebase_appends`]) all that waits for [`CatalogTransaction::set_snapshot_changes`], which
    /// tells what the transaction is.
    ///
    /// # Errors
    /// [`StageError::LostRace`] when another snapshot already has; [`StageError::SlotTaken`] when another one is about to;
    /// [`StageError::Constraint`] for a second snapshot in one transaction.
    pub async fn insert_snapshot(&mut self, value: SnapshotValue) -> Result<(), StageError> {
        self.check_exists()?;
        if let Some(inserted) = &self.staged.snapshot {
            let detail = format!(
                "this transaction has inserted snapshot {} already, so {} cannot be inserted too; commit first",
                inserted.snapshot_id, value.snapshot_id
            );
            return Err(StageError::Constraint { detail });
        }
        if !self.staged.creating {
            self.enter_race(value.snapshot_id).await?;
        }
        let value = self.later_than_the_newest(value).await?;
        let key = SnapshotKey {
            snapshot_id: value.snapshot_id,
        };
        // Its row of ducklake_snapshot_changes may have come long before it, on its own.
        let early = self.staging.value(&key).await?;
        if let Some(early) = early.filter(|early| early.changes_only) {
            self.staged.changes = Some(snapshot::changes_of(&early));
        }
        self.staging.put(&key, &value)?;
        self.staged.snapshot = Some(value);
        self.merge_snapshot()
    }

    /// Inserts the row of `ducklake_snapshot_changes` that belongs to this transaction's snapshot, before or after the
    /// row of `ducklake_snapshot`. Where no snapshot is inserted the row stands alone, and is refused by the commit if
    /// there is a row of its id.
    ///
    /// Where appends are rebased, a transaction that only adds rows waits here for the commit slot, and if others have
    /// committed since it began, it is shifted to the newest head as if it had begun there: its ids, counters and
    /// statistics move, and what it reads from here on is that head with its changes on top. It can stage nothing more.
    ///
    /// # Errors
    /// [`StageError::Constraint`] when the transaction has one already, or it names another snapshot; where appends are
    /// rebased also what [`CatalogTransaction::insert_snapshot`] gives.
    pub async fn set_snapshot_changes(&mut self, changes: SnapshotChanges) -> Result<(), StageError> {
        self.check_exists()?;
        if let Some(set) = &self.staged.changes {
            let detail = format!(
                "snapshot {} has its row of ducklake_snapshot_changes already",
                set.snapshot_id
            );
            return Err(StageError::Constraint { detail });
        }
        self.staged.changes = Some(changes);
        self.merge_snapshot()?;
        self.end_race().await
    }

    /// Deletes the row of `ducklake_snapshot_changes` of a snapshot. Both rows are one record, so this stands only
    /// together with the deletion of the snapshot in the same transaction; the commit checks that.
    pub fn remove_snapshot_changes(&mut self, snapshot_id: u64) {
        self.staged.removed_changes.insert(snapshot_id);
    }

    /// The present state as a transaction of its own, to be read while this one goes on: an open cursor does not see what
    /// is changed after it was opened. It has no place in the order of commits and is not to be committed.
    #[must_use]
    pub fn frozen(&self) -> CatalogTransaction {
        CatalogTransaction {
            claimant: self.catalog.claims().claimant(),
            catalog: Arc::clone(&self.catalog),
            staging: self.staging.frozen(),
            premise: self.premise,
            slot: None,
            room: None,
            patience: Duration::ZERO,
            has_lost: false,
            is_race_open: false,
            is_append: false,
            is_pinned: true,
            shifts: self.shifts,
            is_torn: self.is_torn,
            was_overtaken: false,
            staged: self.staged.clone(),
        }
    }

    /// The present state, to go back to.
    #[must_use]
    pub fn savepoint(&self) -> TransactionSavepoint {
        TransactionSavepoint {
            staging: self.staging.savepoint(),
            staged: self.staged.clone(),
            shifts: self.shifts,
        }
    }

    /// Takes back everything staged since `savepoint`. A transaction that was shifted to a newer head since then cannot go
    /// back; its commit is refused, and its client begins again.
    pub fn rollback_to(&mut self, savepoint: TransactionSavepoint) {
        if savepoint.shifts != self.shifts {
            self.is_torn = true;
            return;
        }
        self.staging.rollback_to(savepoint.staging);
        self.staged = savepoint.staged;
    }

    /// Abandons everything staged and gives the commit slot back. Dropping the transaction does the same.
    pub fn rollback(self) {
        drop(self);
    }

    /// Writes everything staged as one batch and waits until it is durable. A transaction that staged nothing waits
    /// until all it saw is durable. The commit goes on to its end when the caller stops waiting.
    ///
    /// # Errors
    /// See [`CommitFailure`].
    pub async fn commit(mut self) -> Result<Committed, CommitFailure> {
        // From here on its client only waits.
        self.room = None;
        if self.is_torn {
            let detail =
                "a statement failed after the transaction had been shifted to a newer snapshot".to_owned();
            return Err(CommitFailure::Conflict { detail });
        }
        commit::run(
            self.catalog,
            self.staging,
            self.premise,
            self.staged,
            self.slot,
            None,
        )
        .await
    }

    /// [`CatalogTransaction::commit`], and a word when the batch is written, which is before it is durable. Who builds on
    /// it need not wait longer.
    pub(crate) async fn commit_noting(self, written: Written) -> Result<Committed, CommitFailure> {
        let noting = Some(written);
        commit::run(
            self.catalog,
            self.staging,
            self.premise,
            self.staged,
            self.slot,
            noting,
        )
        .await
    }

    /// What is staged, taken out of the transaction, which ends.
    pub(crate) fn into_staged(self) -> (Staging, Staged) {
        (self.staging, self.staged)
    }

    /// This transaction is at work: others go on waiting for it. One that was overtaken goes on all the same; its commit
    /// finds out whether anybody has come first.
    fn keep_slot(&self) {
        if self.staged.snapshot.is_some()
            && let Some(hold) = &self.slot
        {
            self.catalog.renew(hold);
        }
    }

    /// Writes the snapshot record anew when both of its rows are there.
    fn merge_snapshot(&mut self) -> Result<(), StageError> {
        let (Some(value), Some(changes)) = (&self.staged.snapshot, &self.staged.changes) else {
            return Ok(());
        };
        if value.snapshot_id != changes.snapshot_id {
            let detail = format!(
                "this transaction's snapshot is {}, but its row of ducklake_snapshot_changes names {}",
                value.snapshot_id, changes.snapshot_id
            );
            self.staged.changes = None;
            return Err(StageError::Constraint { detail });
        }
        let merged = snapshot::merge(value, changes);
        self.staging.put(
            &SnapshotKey {
                snapshot_id: merged.snapshot_id,
            },
            &merged,
        )?;
        Ok(())
    }

    fn check_exists(&self) -> Result<(), StageError> {
        if self.exists() {
            Ok(())
        } else {
            Err(StageError::NoLake)
        }
    }
}

impl std::fmt::Debug for CatalogTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogTransaction")
            .field("premise", &self.premise)
            .field("staging", &self.staging)
            .field("staged", &self.staged)
            .field("slot", &self.slot.is_some())
            .finish_non_exhaustive()
    }
}
