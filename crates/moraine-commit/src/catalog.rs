//! One lake: an opened store and the commit slot in front of it. What a transaction does is in [`crate::transaction`],
//! how a commit is written in [`crate::commit`].

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use moraine_codec::proto::HeadValue;
use moraine_inline::Directories;
use moraine_keys::{FormatKey, HeadKey, MigrationKey};
use moraine_store::{OpenError, OpenOptions, ReadError, ReadExt, ReadPoint, Store, StoreUrl, View, WriteSet};

use crate::activity::Activity;
use crate::claims::Claims;
use crate::definitions::{DefinitionView, Definitions};
use crate::error::{CatalogError, StageError};
use crate::indexes::IndexMemory;
use crate::slot::{Hold, Place, Slot};
use crate::transaction::CatalogTransaction;
use crate::verbs::GROUP_BYTES_MAX;

/// How long a transaction waits for its turn: one that creates a lake is then told to try again, one that begins goes on
/// without.
pub const SLOT_WAIT_DEFAULT: Duration = Duration::from_secs(30);

/// How long a transaction that waited for its turn may take until it inserts its snapshot, before the next in line may
/// overtake it. A second try of DuckLake takes tens of milliseconds.
pub const RESERVATION_DEFAULT: Duration = Duration::from_secs(2);

/// Others wait for a transaction that is expected to commit, from one of its statements to the next, for this part of
/// [`CatalogOptions::reservation`].
const EXPECTED_PART: u32 = 4;

/// The same of one of which nothing is known yet, and how long such a one waits for its turn.
const POSSIBLE_PART: u32 = 8;
const POSSIBLE_WAIT: Duration = Duration::from_secs(10);

/// How long a transaction that has inserted its snapshot may do nothing before the next in line may overtake it.
pub const SLOT_IDLE_DEFAULT: Duration = Duration::from_secs(5);

/// Bytes of keys and values that one commit may write, unless told otherwise. Far above what DuckLake sends, far below
/// what the storage engine would choke on.
pub const BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why a transaction begins when its turn comes ([`Catalog::begin_in_turn`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Its client has lost a race for a snapshot and comes again. It waits for its turn no longer than
    /// [`CatalogOptions::slot_wait`], and others for it no longer than [`CatalogOptions::reservation`] from one of its
    /// statements to the next.
    SecondTry,
    /// Its client has committed again and again, or has lost before, so it is likely to commit again. It waits as long as a
    /// second try, and others wait for it for a quarter of [`CatalogOptions::reservation`] from one of its statements to the
    /// next: so that many writers take turns rather than lose races.
    Expected,
    /// Nothing is known of its client, and others have committed lately. What updates or deletes rows must not be overtaken
    /// from its first read on, because DuckLake does not try that again; and that is only known a few statements later. It
    /// waits for 10 s at most, and others wait for it for an eighth of the reservation from one of its statements to the next,
    /// until it is known to read only ([`CatalogTransaction::give_turn_up`]).
    Possible,
    /// Its client has appended where appends are rebased, so it needs no turn; but no more than
    /// [`CatalogOptions::appends_at_once`] are at work at the same time, each from its beginning to its commit. It waits
    /// for 10 s at most, and others wait for it for an eighth of the reservation from one of its statements to the next.
    Append,
}

/// A place in line for a turn ([`Catalog::line_up`]). Dropping it gives it up.
#[derive(Debug)]
pub struct TurnPlace {
    place: Place,
    turn: Turn,
    reservation: Duration,
}

impl TurnPlace {
    /// Waits until the turn is near, no longer than for the turn itself: whoever has it has inserted its snapshot, and nobody
    /// else comes before this one. What a client does from here to its first read is then done while the other commits. For
    /// a [`Turn::Append`] it is the turn itself.
    pub async fn near(&self) {
        self.place.near().await;
    }
}

/// What may be done with a lake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Everything. Whoever had the lake open for writing is shut out.
    #[default]
    Write,
    /// Reading at a [`ReadPoint`]: nobody is shut out, and credentials that cannot write are enough. Whatever would write is
    /// refused with [`ReadError::ReadOnly`].
    Read(ReadPoint),
}

/// How a lake is opened and served.
#[derive(Debug, Clone)]
pub struct CatalogOptions {
    /// What may be done with it; everything unless set.
    pub access: Access,
    /// How the store is opened.
    pub store: OpenOptions,
    /// How long a transaction waits for its turn; [`SLOT_WAIT_DEFAULT`] unless set.
    pub slot_wait: Duration,
    /// How long others wait for a transaction that has its turn and has not inserted its snapshot;
    /// [`RESERVATION_DEFAULT`] unless set.
    pub reservation: Duration,
    /// How long others wait for a transaction that has inserted its snapshot and does nothing; [`SLOT_IDLE_DEFAULT`]
    /// unless set.
    pub slot_idle: Duration,
    /// Bytes of keys and values that one commit may write; [`BATCH_BYTES_MAX`] unless set.
    pub batch_bytes_max: usize,
    /// Bytes of keys and values of a group's commits that may be on their way to the store before the group waits for them;
    /// [`GROUP_BYTES_MAX`](crate::verbs::GROUP_BYTES_MAX) unless set.
    pub group_bytes_max: usize,
    /// Whether a transaction that only adds rows, and lost the race for its snapshot, is shifted to the newest head instead
    /// of refused. Off unless set: its client then takes its snapshot for the one that it had asked for.
    pub rebase_appends: bool,
    /// How many appends are at work at the same time where appends are rebased ([`Turn::Append`]); twice the cores of this
    /// machine unless set, where their clients are too: more would wait for one another, and DuckDB waits in a busy loop.
    pub appends_at_once: usize,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        CatalogOptions {
            access: Access::default(),
            store: OpenOptions::default(),
            slot_wait: SLOT_WAIT_DEFAULT,
            reservation: RESERVATION_DEFAULT,
            slot_idle: SLOT_IDLE_DEFAULT,
            batch_bytes_max: BATCH_BYTES_MAX,
            group_bytes_max: GROUP_BYTES_MAX,
            rebase_appends: false,
            appends_at_once: 2 * std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

/// One lake: an opened store, and the slot that lets one snapshot commit at a time come to its end.
///
/// A store that holds no lake yet is a `Catalog` too: [`CatalogTransaction::exists`] is false until somebody creates it.
pub struct Catalog {
    store: Arc<dyn Store>,
    slot: Slot,
    /// How many appends are at work at once.
    appends: Slot,
    slot_wait: Duration,
    reservation: Duration,
    slot_idle: Duration,
    batch_bytes_max: usize,
    group_bytes_max: usize,
    rebase_appends: bool,
    /// What was seen to happen here.
    activity: Activity,
    /// The inlined rows that open transactions remove.
    claims: Claims,
    /// Whether the store was opened for reading only, beside whoever writes it.
    only_reads: bool,
    /// What every client reads again and again.
    definitions: Arc<Definitions>,
    /// Which writer of the store this process is; `None` where it only reads, or the store does not count them.
    writer_epoch: Option<u64>,
    /// Which chunk directories of inlined tables are complete.
    directories: Arc<Directories>,
    /// What is known of indexes.
    indexes: IndexMemory,
    /// Whether the store is in a bucket, so that other places in buckets can be reached too.
    is_remote: bool,
    /// The head at which the migration marker was last seen absent. A marker can only appear together with a new head.
    unmigrated_head: StdMutex<Option<HeadValue>>,
}

impl Catalog {
    /// Opens the lake at `url`, or the empty store a lake can be created in, for what `options.access` says.
    ///
    /// # Errors
    /// See [`OpenError`]; each names the reason and the way out.
    pub async fn open(url: &StoreUrl, options: &CatalogOptions) -> Result<Arc<Catalog>, OpenError> {
        let is_remote = url.is_local().is_none();
        let store = match &options.access {
            Access::Write => {
                let store = moraine_store::open(url, &options.store).await?;
                let writer_epoch = store.writer_epoch();
                tracing::info!(lake = %url, writer_epoch, "taken over for writing; whoever had it open before is shut out");
                return Ok(Catalog::on(store, options, Some(writer_epoch), is_remote));
            }
            Access::Read(point) => moraine_store::open_read_only(url, &options.store, point).await?,
        };
        Ok(Catalog::on(store, options, None, is_remote))
    }

    /// The lake in an opened store, with default options. One `Catalog` for each opened store: it remembers what every writer of
    /// inlined rows has to keep up to date.
    #[must_use]
    pub fn with_store(store: Arc<dyn Store>) -> Arc<Catalog> {
        Catalog::with_options(store, &CatalogOptions::default())
    }

    /// The lake in an opened store.
    #[must_use]
    pub fn with_options(store: Arc<dyn Store>, options: &CatalogOptions) -> Arc<Catalog> {
        Catalog::on(store, options, None, false)
    }

    fn on(
        store: Arc<dyn Store>,
        options: &CatalogOptions,
        writer_epoch: Option<u64>,
        is_remote: bool,
    ) -> Arc<Catalog> {
        Arc::new(Catalog {
            writer_epoch,
            only_reads: options.access != Access::Write,
            definitions: Arc::default(),
            store,
            is_remote,
            slot: Slot::default(),
            appends: Slot::with_room(options.appends_at_once.max(1)),
            slot_wait: options.slot_wait,
            reservation: options.reservation,
            slot_idle: options.slot_idle,
            batch_bytes_max: options.batch_bytes_max,
            group_bytes_max: options.group_bytes_max,
            rebase_appends: options.rebase_appends,
            activity: Activity::default(),
            claims: Claims::default(),
            directories: Arc::new(Directories::default()),
            indexes: IndexMemory::default(),
            unmigrated_head: StdMutex::new(None),
        })
    }

    /// Begins a transaction when its turn comes: the commit slot is its own before it reads, so that nobody else commits a
    /// snapshot on top of what it sees until it ends, or its time is over and somebody else wants to. Turns come in
    /// order; a transaction whose turn does not come in time begins without.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub async fn begin_in_turn(self: &Arc<Self>, turn: Turn) -> Result<CatalogTransaction, CatalogError> {
        self.begin_at(self.line_up(turn)).await
    }

    /// Takes the place in line of a transaction that is to begin when its turn comes.
    #[must_use]
    pub fn line_up(&self, turn: Turn) -> TurnPlace {
        let (reservation, limit) = match turn {
            Turn::SecondTry => (self.reservation, self.slot_wait),
            Turn::Expected => (self.reservation / EXPECTED_PART, self.slot_wait),
            Turn::Possible | Turn::Append => (
                self.reservation / POSSIBLE_PART,
                POSSIBLE_WAIT.min(self.slot_wait),
            ),
        };
        let slot = match turn {
            Turn::Append => &self.appends,
            _ => &self.slot,
        };
        TurnPlace {
            place: slot.line_up(reservation, limit),
            turn,
            reservation,
        }
    }

    /// [`Catalog::begin_in_turn`] from a place in line that was taken before.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub async fn begin_at(self: &Arc<Self>, place: TurnPlace) -> Result<CatalogTransaction, CatalogError> {
        let hold = place.place.turn().await;
        let mut transaction = self.begin().await?;
        match place.turn {
            Turn::Append => transaction.give_room(hold, place.reservation),
            _ => transaction.give_slot(hold, place.reservation),
        }
        Ok(transaction)
    }

    /// Begins a transaction of this process in its turn. `patience`: by how much longer than usually others wait for it.
    pub(crate) async fn begin_patiently(
        self: &Arc<Self>,
        patience: u32,
    ) -> Result<CatalogTransaction, CatalogError> {
        let reservation = self.reservation.saturating_mul(patience);
        let hold = self.slot.wait(reservation, self.slot_wait).await;
        let mut transaction = self.begin().await?;
        transaction.give_slot(hold, reservation);
        Ok(transaction)
    }

    /// Begins a transaction on the newest state, durable or not. Where another process has taken the lake over this finds
    /// out, at most [`OpenOptions::ownership_age_max`] later.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub async fn begin(self: &Arc<Self>) -> Result<CatalogTransaction, CatalogError> {
        self.store.confirm().await?;
        let view = self.store.view()?;
        let head = view.value(&HeadKey {}).await?;
        self.check_unmigrated(view.as_ref(), head.as_ref()).await?;
        let view: Arc<dyn View> = match head {
            Some(head) => Arc::new(DefinitionView::new(view, head, Arc::clone(&self.definitions))),
            None => view,
        };
        Ok(CatalogTransaction::new(Arc::clone(self), view, head))
    }

    /// Which writer of the store this process is, counted from the first that ever opened it; `None` where it only reads, or
    /// the store does not count them. An [`OpenOptions::expected_writer_epoch`] of this opens the lake again only if nobody
    /// else has meanwhile.
    #[must_use]
    pub fn writer_epoch(&self) -> Option<u64> {
        self.writer_epoch
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The definitions that are kept in memory, for tests.
    #[cfg(test)]
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Whether somebody has committed a snapshot in the last minute.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.activity.is_busy()
    }

    /// Whether the lake only grows, as far as this process has seen since it opened it: at least eight commits have only added
    /// rows, and nobody has updated or deleted any, or was about to. A transaction that begins there is more likely to read
    /// or to append than to update, and an append that loses a race may try again.
    #[must_use]
    pub fn only_grows(&self) -> bool {
        self.activity.only_grows()
    }

    /// Whether a transaction of this process has seen the lake: whoever begins now sees it too, since a lake never ceases to
    /// exist. False says nothing.
    #[must_use]
    pub fn is_known_to_exist(&self) -> bool {
        self.unmigrated_head().is_some()
    }

    /// What was seen to happen here.
    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Whether appends are rebased; see [`CatalogOptions::rebase_appends`].
    #[must_use]
    pub fn rebases_appends(&self) -> bool {
        self.rebase_appends
    }

    /// Whether the store is in a bucket.
    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// The inlined rows that open transactions remove.
    pub(crate) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// What is remembered of indexes.
    pub(crate) fn indexes(&self) -> &IndexMemory {
        &self.indexes
    }

    /// What is remembered of the chunk directories.
    pub(crate) fn directories(&self) -> &Arc<Directories> {
        &self.directories
    }

    /// Makes everything committed durable and closes the store. Takes bounded time.
    ///
    /// # Errors
    /// What kept committed batches from becoming durable.
    pub async fn close(&self) -> Result<(), ReadError> {
        self.store.close().await
    }

    /// Waits for the commit slot, no longer than allowed.
    pub(crate) async fn wait_for_slot(&self) -> Result<Hold, StageError> {
        let hold = self.slot.wait(self.slot_idle, self.slot_wait).await;
        hold.ok_or(StageError::SlotBusy {
            waited: self.slot_wait,
        })
    }

    /// The commit slot, if nobody has it, for a transaction that inserts its snapshot.
    pub(crate) fn try_take_slot(&self) -> Option<Hold> {
        let hold = self.slot.try_take(self.slot_idle);
        hold.filter(|hold| hold.finish(self.slot_idle))
    }

    /// The commit slot, if nobody has it, for a transaction that has yet to insert its snapshot.
    pub(crate) fn try_take_turn(&self) -> Option<Hold> {
        self.slot.try_take(self.reservation)
    }

    /// How long others wait for a transaction that is sure to commit until it inserts its snapshot.
    pub(crate) fn reservation(&self) -> Duration {
        self.reservation
    }

    /// Whether the slot is still this transaction's, which inserts its snapshot or has done something since, so that others
    /// go on waiting for it.
    pub(crate) fn renew(&self, hold: &Hold) -> bool {
        hold.finish(self.slot_idle)
    }

    /// Bytes of a group's commits that may be on their way before it waits for them.
    pub(crate) fn group_bytes_max(&self) -> usize {
        self.group_bytes_max
    }

    /// Refuses more bytes than one commit may write.
    pub(crate) fn check_batch_bytes(&self, bytes: usize) -> Result<(), StageError> {
        if bytes > self.batch_bytes_max {
            return Err(StageError::Limit {
                bytes,
                max: self.batch_bytes_max,
            });
        }
        Ok(())
    }

    /// Refuses a store whose migration has not finished. Reads nothing when the head has not moved since the last check.
    async fn check_unmigrated(&self, view: &dyn View, head: Option<&HeadValue>) -> Result<(), CatalogError> {
        if self.is_known_unmigrated(head) {
            return Ok(());
        }
        if let Some(marker) = view.value(&MigrationKey {}).await? {
            return Err(CatalogError::MidMigration {
                from_format: marker.from_format,
                to_format: marker.to_format,
            });
        }
        // Nobody migrates a store under its writer without fencing it.
        if self.only_reads
            && let Some(format) = view.value(&FormatKey {}).await?
            && format.format_version > moraine_codec::format::CURRENT
        {
            return Err(CatalogError::newer_format(format.format_version));
        }
        *self.unmigrated_head() = head.copied();
        Ok(())
    }

    fn unmigrated_head(&self) -> std::sync::MutexGuard<'_, Option<HeadValue>> {
        self.unmigrated_head
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is known to be no migration marker at a head.
    pub(crate) fn is_known_unmigrated(&self, head: Option<&HeadValue>) -> bool {
        head.is_some() && self.unmigrated_head().as_ref() == head
    }

    /// Notes what a commit of this process has written on top of `from`, which led to `to`: what is known of the one is then
    /// known of the other. A commit writes no migration marker.
    pub(crate) fn advance(&self, from: HeadValue, to: HeadValue, writes: &WriteSet) {
        self.definitions.advance(from, to, writes);
        let mut unmigrated = self.unmigrated_head();
        if *unmigrated == Some(from) {
            *unmigrated = Some(to);
        }
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog")
            .field("slot_wait", &self.slot_wait)
            .finish_non_exhaustive()
    }
}
