//! The live definitions of a lake, kept in memory: schemas, tables, columns and whatever else every client reads whole when
//! it attaches or begins, and the statistics of tables, which every commit of rows reads and changes. They stand for one head.
//! A commit of this process brings them to the next by what it has written; commits of others are followed by the changelog;
//! where neither leads there, they are read anew. Files are not among them.

mod kept;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_codec::format::CHANGELOG_SNAPSHOTS_MAX;
use moraine_codec::proto::HeadValue;
use moraine_keys::{ChangelogKey, KeyRange};
use moraine_store::{CommitError, Read, ReadError, ReadExt, Scan, View, WriteSet};

use self::kept::{Changed, KIND_BYTES_MAX, KINDS, Kept, Records, kind_around, kind_of};

/// A replay that has to read more keys than this is no cheaper than reading anew.
const REPLAYED_KEYS_MAX: usize = 4_096;
/// So many snapshots are replayed in any case; more of them where less is read so than by reading anew.
const REPLAYED_SNAPSHOTS_MIN: u64 = 64;
/// Records that a scan reads while one is got by its key.
const RECORDS_PER_GET: u64 = 4;
/// A kind of which so many parts have been read from the store is read whole and kept.
const PARTS_READ_MIN: u32 = 16;
/// Commits of this process that are remembered, so that what was read a few commits ago can be brought to the newest head.
const STEPS_MAX: usize = 64;
/// Records that one view remembers to have read: a commit asks for some of them again and again.
const READ_AGAIN_MAX: usize = 64;
/// Bytes of one of them.
const READ_AGAIN_BYTES_MAX: usize = 4_096;

/// What is kept of a lake.
#[derive(Default)]
pub(crate) struct Definitions {
    state: Mutex<State>,
    replays: AtomicU64,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// Commits of this process, by the number of the batch that they built on.
    steps: BTreeMap<u64, Step>,
    /// How many parts of a kind that is not kept were read from the store; `None` for a kind that is too large to be kept.
    parts_read: HashMap<usize, Option<u32>>,
}

/// From one head to the next.
struct Step {
    from: HeadValue,
    to: HeadValue,
    changes: Vec<Changed>,
}

impl State {
    /// Brings what is kept to later heads by the commits that are remembered.
    fn catch_up(&self, kept: &mut Kept) {
        while let Some(step) = self.steps.get(&kept.head.batch_seq)
            && step.from == kept.head
            && step.to.batch_seq > step.from.batch_seq
        {
            kept.change(step.to, step.changes.iter().cloned());
        }
    }

    /// Whether a part of a kind is read from the store once more. Otherwise all of it is to be read and kept.
    fn reads_a_part(&mut self, kind: usize) -> bool {
        match self.parts_read.entry(kind).or_insert(Some(0)) {
            None => true,
            Some(parts) if *parts < PARTS_READ_MIN => {
                *parts += 1;
                true
            }
            Some(parts) => {
                *parts = 0;
                false
            }
        }
    }
}

impl Definitions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the changelog has led to the next head, for tests.
    #[cfg(test)]
    fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }

    /// Notes what a commit of this process has written on top of `from`, which led to `to`.
    pub(crate) fn advance(&self, from: HeadValue, to: HeadValue, writes: &WriteSet) {
        let changes = writes.iter().filter_map(|(key, change)| {
            let kind = kind_of(key)?;
            Some((kind, key.clone(), change.clone()))
        });
        let changes: Vec<Changed> = changes.collect();
        let mut state = self.state();
        if changes.len() > REPLAYED_KEYS_MAX {
            state.steps.clear();
            return;
        }
        state.steps.insert(from.batch_seq, Step { from, to, changes });
        while state.steps.len() > STEPS_MAX {
            state.steps.pop_first();
        }
        if let Some(mut kept) = state.kept.take() {
            state.catch_up(&mut kept);
            state.kept = Some(kept);
        }
    }

    /// What is kept at `head`.
    fn kept_at(&self, head: &HeadValue) -> Kept {
        let state = self.state();
        let kept = state.kept.as_ref().filter(|kept| kept.head == *head);
        kept.cloned().unwrap_or_else(|| Kept::at(*head))
    }

    /// Whether a part of a kind, at `head`, is to be read from the store, rather than all of it.
    fn reads_a_part(&self, head: &HeadValue, kind: usize) -> bool {
        let mut state = self.state();
        let is_past = state
            .kept
            .as_ref()
            .is_some_and(|kept| kept.head.batch_seq > head.batch_seq);
        is_past || state.reads_a_part(kind)
    }

    /// Notes that a kind is too large to be kept.
    fn note_too_large(&self, kind: usize) {
        self.state().parts_read.insert(kind, None);
    }

    fn is_too_large(&self, kind: usize) -> bool {
        matches!(self.state().parts_read.get(&kind), Some(None))
    }

    /// What is kept, brought to the head of `view` if that is possible.
    async fn brought_to(&self, view: &DefinitionView) -> Result<Kept, ReadError> {
        let kept = {
            let mut state = self.state();
            if let Some(mut kept) = state.kept.take() {
                if kept.head.batch_seq < view.head.batch_seq {
                    state.catch_up(&mut kept);
                }
                state.kept = Some(kept);
            }
            match state.kept.as_ref() {
                Some(kept) if kept.head == view.head => return Ok(kept.clone()),
                // Who reads at an earlier head reads from the store.
                Some(kept) if kept.head.batch_seq < view.head.batch_seq => kept.clone(),
                _ => return Ok(Kept::at(view.head)),
            }
        };
        let known = kept.head;
        let next = match replay(kept, view.head, view.view.as_ref()).await? {
            Some(replayed) => {
                self.replays.fetch_add(1, Ordering::Relaxed);
                replayed
            }
            None => Kept::at(view.head),
        };
        let mut state = self.state();
        // Somebody else may have been quicker, and gone further.
        if state.kept.as_ref().is_some_and(|kept| kept.head == known) {
            state.kept = Some(next.clone());
        }
        Ok(next)
    }

    /// Keeps the records of a kind, read at `head`.
    fn keep(&self, kind: usize, head: HeadValue, records: Arc<Records>) {
        let mut state = self.state();
        let mut read = Kept::at(head);
        read.insert(kind, records);
        state.catch_up(&mut read);
        match state.kept.as_mut() {
            Some(kept) if kept.head == read.head => kept.adopt(kind, &read),
            Some(kept) if kept.head.batch_seq > read.head.batch_seq => {}
            _ => state.kept = Some(read),
        }
    }
}

/// What is kept, brought to a later head by what the commits in between have noted; `None` where they have not noted all.
async fn replay(mut kept: Kept, head: HeadValue, view: &dyn View) -> Result<Option<Kept>, ReadError> {
    let snapshots = head.snapshot_id.saturating_sub(kept.head.snapshot_id);
    let batches = head.batch_seq.saturating_sub(kept.head.batch_seq);
    // A batch without a snapshot notes nothing.
    if snapshots != batches || snapshots == 0 || snapshots > CHANGELOG_SNAPSHOTS_MAX {
        return Ok(None);
    }
    // Each snapshot is a get, which costs as much as a few records of a scan.
    let records = u64::try_from(kept.len()).unwrap_or(u64::MAX);
    if snapshots > REPLAYED_SNAPSHOTS_MIN && snapshots > records / RECORDS_PER_GET {
        return Ok(None);
    }
    let mut changed: BTreeSet<Bytes> = BTreeSet::new();
    for snapshot_id in kept.head.snapshot_id + 1..=head.snapshot_id {
        let Some(noted) = view.value(&ChangelogKey { snapshot_id }).await? else {
            return Ok(None);
        };
        let of_kept = |key: &Bytes| kind_of(key).is_some_and(|kind| kept.has(kind));
        changed.extend(noted.keys.into_iter().filter(of_kept));
        if changed.len() > REPLAYED_KEYS_MAX {
            return Ok(None);
        }
    }
    let mut changes = Vec::with_capacity(changed.len());
    for key in changed {
        if let Some(kind) = kind_of(&key) {
            let value = view.get(&key).await?;
            changes.push((kind, key, value));
        }
    }
    kept.change(head, changes);
    Ok(Some(kept))
}

/// A view whose definitions come from memory where they are kept, and are kept where they are read whole or often.
pub(crate) struct DefinitionView {
    view: Arc<dyn View>,
    head: HeadValue,
    definitions: Arc<Definitions>,
    /// What is kept at this view's head, whatever is committed meanwhile.
    kept: Mutex<Kept>,
    /// Other records that were read here, and are read again: the view does not move.
    read: Mutex<HashMap<Bytes, Option<Bytes>>>,
}

impl DefinitionView {
    /// `view`, which shows `head`.
    pub(crate) fn new(view: Arc<dyn View>, head: HeadValue, definitions: Arc<Definitions>) -> Self {
        DefinitionView {
            view,
            head,
            kept: Mutex::new(definitions.kept_at(&head)),
            definitions,
            read: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> MutexGuard<'_, HashMap<Bytes, Option<Bytes>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a kind is kept here, if it is small enough. `false`: it is not.
    async fn load(&self, kind: usize) -> Result<bool, ReadError> {
        let brought = self.definitions.brought_to(self).await?;
        if brought.has(kind) {
            *self.kept() = brought;
            return Ok(true);
        }
        let Some(range) = KINDS.get(kind).filter(|_| !self.definitions.is_too_large(kind)) else {
            return Ok(false);
        };
        let mut scan = self.view.scan(range.clone()).await?;
        let (mut records, mut bytes) = (Records::new(), 0);
        while let Some((key, value)) = scan.next().await? {
            bytes += key.len() + value.len();
            if bytes > KIND_BYTES_MAX {
                self.definitions.note_too_large(kind);
                return Ok(false);
            }
            // What is kept for long must not keep the blocks alive that it lay in.
            records.insert(Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value));
        }
        let records = Arc::new(records);
        self.kept().insert(kind, Arc::clone(&records));
        self.definitions.keep(kind, self.head, records);
        Ok(true)
    }

    /// A record of no kind that is kept.
    async fn get_other(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        if let Some(known) = self.read().get(key) {
            return Ok(known.clone());
        }
        let found = self.view.get(key).await?;
        let bytes = key.len() + found.as_ref().map_or(0, Bytes::len);
        let mut read = self.read();
        if read.len() < READ_AGAIN_MAX && bytes <= READ_AGAIN_BYTES_MAX {
            read.insert(Bytes::copy_from_slice(key), found.clone());
        }
        Ok(found)
    }
}

#[async_trait]
impl Read for DefinitionView {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        let Some(kind) = kind_of(key) else {
            return self.get_other(key).await;
        };
        if let Some(found) = self.kept().get(kind, key) {
            return Ok(found);
        }
        if self.definitions.reads_a_part(&self.head, kind) || !self.load(kind).await? {
            return self.get_other(key).await;
        }
        let found = self.kept().get(kind, key);
        Ok(found.flatten())
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let Some(kind) = kind_around(&range) else {
            return self.view.scan(range).await;
        };
        if let Some(scan) = self.kept().scan(kind, range.clone()) {
            return Ok(scan);
        }
        // Reading a kind and keeping it pays where all of it is read, or parts of it again and again.
        let is_whole = KINDS.get(kind) == Some(&range);
        if (is_whole || !self.definitions.reads_a_part(&self.head, kind)) && self.load(kind).await? {
            let scan = self.kept().scan(kind, range.clone());
            if let Some(scan) = scan {
                return Ok(scan);
            }
        }
        self.view.scan(range).await
    }
}

#[async_trait]
impl View for DefinitionView {
    async fn settled(&self) -> Result<(), CommitError> {
        self.view.settled().await
    }
}

#[cfg(test)]
mod tests;
