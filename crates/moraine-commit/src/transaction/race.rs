//! How a transaction comes to its snapshot: it wins the race for it, loses it, or is shifted to where the lake is now.

use std::sync::Arc;

use moraine_codec::proto::{HeadValue, SnapshotValue};
use moraine_keys::{HeadKey, SnapshotKey};
use moraine_store::{ReadExt, Staging, View};

use super::CatalogTransaction;
use crate::conflicts;
use crate::error::StageError;
use crate::rebase::{self, Append, Rebased, State};

impl CatalogTransaction {
    /// This transaction is about to update or delete rows, so it is sure to commit a snapshot: others wait for it for all of [`crate::CatalogOptions::reservation`].
    /// One that has no turn gets it if nobody has it and nobody has committed since it began.
    pub fn take_turn(&mut self) {
        if self.staged.snapshot.is_some() {
            return;
        }
        self.catalog.activity().note_update();
        self.patience = self.catalog.reservation();
        if self.slot.is_none() {
            self.slot = self.catalog.try_take_turn().filter(|_| self.is_newest());
        }
        self.keep_turn();
    }

    /// This transaction is not known to commit a snapshot, so nobody has to wait for it, neither for its turn nor for its place
    /// among the appends. It can still commit one.
    pub fn give_turn_up(&mut self) {
        self.room = None;
        if self.staged.snapshot.is_none() {
            self.slot = None;
        }
    }

    /// This transaction is at work: others go on waiting for it.
    pub fn keep_turn(&self) {
        if let Some(room) = &self.room {
            room.renew(self.patience);
        }
        if self.staged.snapshot.is_none()
            && let Some(hold) = &self.slot
        {
            hold.renew(self.patience);
        }
    }

    /// Whether nobody has committed since this transaction began.
    fn is_newest(&self) -> bool {
        self.premise
            .is_some_and(|premise| self.catalog.activity().newest_snapshot() == Some(premise.snapshot_id))
    }

    /// Decides the race for snapshot `asked`, or leaves it open until it is known what the transaction does.
    pub(super) async fn enter_race(&mut self, asked: u64) -> Result<(), StageError> {
        let has_turn = self.slot.as_ref().is_some_and(|hold| self.catalog.renew(hold));
        let can_shift = self.catalog.rebases_appends() && !self.is_pinned;
        if can_shift && !has_turn && self.staged.changes.is_none() {
            self.is_race_open = true;
            return Ok(());
        }
        self.win_race(asked).await
    }

    /// Decides a race that was left open, now that all of the transaction is there.
    pub(super) async fn end_race(&mut self) -> Result<(), StageError> {
        let (Some(snapshot), Some(changes)) = (&self.staged.snapshot, &self.staged.changes) else {
            return Ok(());
        };
        if !self.catalog.rebases_appends() {
            return Ok(());
        }
        let asked = snapshot.snapshot_id;
        let append = match self.staged.adds_records_only() {
            true => Append::of(self.staging.writes(), snapshot, changes).ok(),
            false => None,
        };
        self.is_append = append.is_some();
        if !std::mem::take(&mut self.is_race_open) {
            return Ok(());
        }
        let Some(append) = append else {
            return self.win_race(asked).await;
        };
        let outcome = self.follow(asked, &append).await;
        if outcome.is_err() {
            self.slot = None;
            self.has_lost = true;
        }
        outcome
    }

    /// Waits for the slot, and shifts the append to the newest head if it has moved.
    async fn follow(&mut self, asked: u64, append: &Append) -> Result<(), StageError> {
        self.slot = Some(self.catalog.wait_for_slot().await?);
        let view = self.catalog.store().view()?;
        let lost = |head: Option<&HeadValue>| StageError::LostRace {
            asked,
            newest: head.map_or(0, |head| head.snapshot_id),
        };
        let head = view.value(&HeadKey {}).await?;
        let (Some(premise), Some(head)) = (self.premise, head) else {
            return Err(lost(head.as_ref()));
        };
        if premise.snapshot_id == head.snapshot_id && premise.snapshot_id < asked {
            return Ok(());
        }
        match self.rebased(append, &premise, &head, &view).await? {
            Ok(rebased) => {
                tracing::debug!(asked, got = rebased.snapshot.snapshot_id, "rebased an append");
                self.shift(view, head, rebased);
                Ok(())
            }
            Err(reason) => {
                tracing::debug!(asked, newest = head.snapshot_id, %reason, "lost race for a snapshot: append not rebased");
                Err(lost(Some(&head)))
            }
        }
    }

    /// The append where the lake is now, or why not.
    async fn rebased(
        &self,
        append: &Append,
        premise: &HeadValue,
        head: &HeadValue,
        view: &Arc<dyn View>,
    ) -> Result<Result<Rebased, String>, StageError> {
        let seen = State::load(self.staging.base().as_ref(), premise.snapshot_id, &append.tables).await?;
        let newest = State::load(view.as_ref(), head.snapshot_id, &append.tables).await?;
        let (Some(seen), Some(newest)) = (seen, newest) else {
            return Ok(Err("a snapshot has no record".to_owned()));
        };
        let since = conflicts::changes_since(view.as_ref(), premise.snapshot_id, head.snapshot_id).await?;
        Ok(rebase::rebase(append, &seen, &newest, &since).map_err(|refusal| refusal.to_string()))
    }

    /// From here on this transaction is one that began at `head`.
    fn shift(&mut self, view: Arc<dyn View>, head: HeadValue, rebased: Rebased) {
        self.staging = Staging::new(view);
        for (key, value) in rebased.puts {
            self.staging.put_raw(key, value);
        }
        self.premise = Some(head);
        self.staged.snapshot = Some(rebased.snapshot);
        self.staged.changes = Some(rebased.changes);
        self.shifts += 1;
    }

    /// Refuses changes whose ids were chosen for the head that this transaction began at.
    pub(super) fn check_not_shifted(&self) -> Result<(), StageError> {
        if self.shifts == 0 {
            return Ok(());
        }
        let newest = self.premise.as_ref().map_or(0, |head| head.snapshot_id);
        Err(StageError::LostRace {
            asked: newest,
            newest,
        })
    }

    /// Refuses unless the newest committed snapshot is the one this transaction builds on and the slot is its own. Who
    /// finds the slot taken is refused at once: it would wait for the other's commit only to lose to it.
    async fn win_race(&mut self, asked: u64) -> Result<(), StageError> {
        let outcome = self.take_slot_for(asked).await;
        if outcome.is_err() {
            self.slot = None;
            self.has_lost = true;
        }
        outcome
    }

    async fn take_slot_for(&mut self, asked: u64) -> Result<(), StageError> {
        let had_turn = self.slot.is_some();
        if !self.slot.as_ref().is_some_and(|hold| self.catalog.renew(hold)) {
            self.was_overtaken = had_turn;
            self.slot = self.catalog.try_take_slot();
        }
        // The pinned view cannot show who came first; a fresh one can.
        let view = self.catalog.store().view()?;
        let newest = view.value(&HeadKey {}).await?.map(|head| head.snapshot_id);
        let premise = self.premise.as_ref().map(|head| head.snapshot_id);
        if newest != premise || newest.is_none_or(|newest| newest >= asked) {
            tracing::debug!(asked, ?newest, ?premise, "lost race for a snapshot");
            return Err(StageError::LostRace {
                asked,
                newest: newest.unwrap_or_default(),
            });
        }
        if self.slot.is_none() {
            tracing::debug!(asked, "another transaction has the commit slot");
            return Err(StageError::SlotTaken { asked });
        }
        Ok(())
    }

    /// The snapshot record with a time after that of the newest snapshot: what clients say is the time of their BEGIN.
    pub(super) async fn later_than_the_newest(
        &self,
        mut value: SnapshotValue,
    ) -> Result<SnapshotValue, StageError> {
        let Some(premise) = &self.premise else {
            return Ok(value);
        };
        let newest = SnapshotKey {
            snapshot_id: premise.snapshot_id,
        };
        if let Some(newest) = self.staging.base().value(&newest).await? {
            let earliest = newest.snapshot_time_micros.saturating_add(1);
            value.snapshot_time_micros = value.snapshot_time_micros.max(earliest);
        }
        Ok(value)
    }
}
