//! The live definitions of a lake, kept in memory: schemas, tables, columns and whatever else every client reads whole when
//! it attaches or begins, and few commits change. They stand for one head, and are brought to the next by the changelog;
//! where that does not lead there they are read anew. Files and statistics are not among them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_codec::format::CHANGELOG_SNAPSHOTS_MAX;
use moraine_codec::proto::HeadValue;
use moraine_keys::{
    ChangelogKey, ColumnKey, KeyRange, Kind, MacroKey, PartitionKey, SchemaKey, SortKey, TableKey, TagKey,
    ViewKey,
};
use moraine_store::{CommitError, Read, ReadError, ReadExt, Scan, View};

/// Bytes of keys and values that are kept of one kind. A lake with more definitions is read from the store.
const KIND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A replay that has to read more keys than this is no cheaper than reading anew.
const REPLAYED_KEYS_MAX: usize = 4_096;

/// The ranges of the kinds that are kept, each whole or not at all.
static KINDS: LazyLock<Vec<KeyRange>> = LazyLock::new(|| {
    vec![
        SchemaKey::scan(),
        TableKey::scan(),
        ViewKey::scan(),
        ColumnKey::scan(),
        PartitionKey::scan(),
        SortKey::scan(),
        MacroKey::scan(),
        TagKey::scan(),
    ]
});

/// The records of one kind, by key.
type Records = BTreeMap<Bytes, Bytes>;

/// What is kept of a lake.
#[derive(Default)]
pub(crate) struct Definitions {
    kept: Mutex<Option<Kept>>,
    replays: AtomicU64,
}

/// Kinds by their place in [`KINDS`], all at one head.
#[derive(Clone)]
struct Kept {
    head: HeadValue,
    kinds: BTreeMap<usize, Arc<Records>>,
}

impl Definitions {
    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the changelog has led to the next head, for tests.
    #[cfg(test)]
    fn replays(&self) -> u64 {
        self.replays.load(Ordering::Relaxed)
    }

    /// The records of a kind at `head`, if they are kept there.
    fn kept_at(&self, head: &HeadValue, kind: usize) -> Option<Arc<Records>> {
        let kept = self.kept();
        let kept = kept.as_ref().filter(|kept| kept.head == *head)?;
        kept.kinds.get(&kind).cloned()
    }

    /// The records of a kind at the head of `view`, if they are kept or can be brought there.
    async fn brought_to(
        &self,
        kind: usize,
        view: &DefinitionView,
    ) -> Result<Option<Arc<Records>>, ReadError> {
        let kept = {
            let kept = self.kept();
            match kept.as_ref() {
                Some(kept) if kept.head == view.head => return Ok(kept.kinds.get(&kind).cloned()),
                // Who reads at an earlier head reads from the store.
                Some(kept) if kept.head.batch_seq < view.head.batch_seq => kept.clone(),
                _ => return Ok(None),
            }
        };
        let known = kept.head;
        let replayed = replay(kept, view.head, view.view.as_ref()).await?;
        let next = match replayed {
            Some(replayed) => {
                self.replays.fetch_add(1, Ordering::Relaxed);
                replayed
            }
            None => Kept {
                head: view.head,
                kinds: BTreeMap::new(),
            },
        };
        let found = next.kinds.get(&kind).cloned();
        let mut kept = self.kept();
        // Somebody else may have been quicker, and gone further.
        if kept.as_ref().is_some_and(|kept| kept.head == known) {
            *kept = Some(next);
        }
        Ok(found)
    }

    /// Keeps the records of a kind, read at `head`.
    fn keep(&self, kind: usize, head: HeadValue, records: Arc<Records>) {
        let mut kept = self.kept();
        match kept.as_mut() {
            Some(kept) if kept.head == head => {
                kept.kinds.insert(kind, records);
            }
            Some(kept) if kept.head.batch_seq > head.batch_seq => {}
            _ => {
                let kinds = BTreeMap::from([(kind, records)]);
                *kept = Some(Kept { head, kinds });
            }
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
    let mut changed: BTreeMap<usize, BTreeSet<Bytes>> = BTreeMap::new();
    for snapshot_id in kept.head.snapshot_id + 1..=head.snapshot_id {
        let Some(noted) = view.value(&ChangelogKey { snapshot_id }).await? else {
            return Ok(None);
        };
        for key in noted.keys {
            if let Some(kind) = kind_of(&key).filter(|kind| kept.kinds.contains_key(kind)) {
                changed.entry(kind).or_default().insert(key);
            }
        }
    }
    if changed.values().map(BTreeSet::len).sum::<usize>() > REPLAYED_KEYS_MAX {
        return Ok(None);
    }
    for (kind, keys) in changed {
        let Some(records) = kept.kinds.get_mut(&kind) else {
            continue;
        };
        let records = Arc::make_mut(records);
        for key in keys {
            match view.get(&key).await? {
                Some(value) => records.insert(key, value),
                None => records.remove(&key),
            };
        }
    }
    kept.head = head;
    Ok(Some(kept))
}

/// The kind of a key, by its place in [`KINDS`].
fn kind_of(key: &[u8]) -> Option<usize> {
    KINDS
        .iter()
        .position(|kind| kind.start.as_ref() <= key && kind.end.as_ref().is_none_or(|end| key < end.as_ref()))
}

/// The kind that a range lies within.
fn kind_around(range: &KeyRange) -> Option<usize> {
    let kind = kind_of(&range.start)?;
    let (end, whole) = (range.end.as_ref()?, KINDS.get(kind)?);
    whole.end.as_ref().is_none_or(|last| end <= last).then_some(kind)
}

/// A view whose definitions come from memory where they are kept, and are kept where they are read whole.
pub(crate) struct DefinitionView {
    view: Arc<dyn View>,
    head: HeadValue,
    definitions: Arc<Definitions>,
}

impl DefinitionView {
    /// `view`, which shows `head`.
    pub(crate) fn new(view: Arc<dyn View>, head: HeadValue, definitions: Arc<Definitions>) -> Self {
        DefinitionView {
            view,
            head,
            definitions,
        }
    }

    /// Reads a whole kind, keeps it where it is not too large, and gives it.
    async fn load(&self, kind: usize, range: KeyRange) -> Result<Vec<(Bytes, Bytes)>, ReadError> {
        let records = moraine_store::collect(self.view.scan(range).await?).await?;
        let bytes: usize = records.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes <= KIND_BYTES_MAX {
            // What is kept for long must not keep the blocks alive that it lay in.
            let copies = records
                .iter()
                .map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
            self.definitions.keep(kind, self.head, Arc::new(copies.collect()));
        }
        Ok(records)
    }
}

#[async_trait]
impl Read for DefinitionView {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        match kind_of(key).and_then(|kind| self.definitions.kept_at(&self.head, kind)) {
            Some(records) => Ok(records.get(key).cloned()),
            None => self.view.get(key).await,
        }
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let Some(kind) = kind_around(&range) else {
            return self.view.scan(range).await;
        };
        // Bringing a kind to this head pays where all of it is read, not where a part is.
        let whole = KINDS.get(kind) == Some(&range);
        let records = match whole {
            true => self.definitions.brought_to(kind, self).await?,
            false => self.definitions.kept_at(&self.head, kind),
        };
        if let Some(records) = records {
            return Ok(Box::new(KeptScan::new(records, range)));
        }
        if whole {
            let records = self.load(kind, range).await?;
            return Ok(Box::new(LoadedScan(records.into_iter())));
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

/// A scan over records that are kept.
struct KeptScan {
    records: Arc<Records>,
    next: Bound<Bytes>,
    end: Option<Bytes>,
}

impl KeptScan {
    fn new(records: Arc<Records>, range: KeyRange) -> Self {
        // An empty range would be an inverted one, which the map panics on.
        let end = range.end.map(|end| end.max(range.start.clone()));
        KeptScan {
            records,
            next: Bound::Included(range.start),
            end,
        }
    }
}

#[async_trait]
impl Scan for KeptScan {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        let start = match &self.next {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => return Ok(None),
        };
        if self.end.as_ref().is_some_and(|end| end <= start) {
            return Ok(None);
        }
        let end = self.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.records.range::<Bytes, _>((self.next.as_ref(), end)).next();
        let Some((key, value)) = found else {
            self.next = Bound::Unbounded;
            return Ok(None);
        };
        let record = (key.clone(), value.clone());
        self.next = Bound::Excluded(record.0.clone());
        Ok(Some(record))
    }
}

/// A scan over records that have just been read.
struct LoadedScan(std::vec::IntoIter<(Bytes, Bytes)>);

#[async_trait]
impl Scan for LoadedScan {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        Ok(self.0.next())
    }
}

#[cfg(test)]
mod tests;
