//! What is kept of a lake's definitions and statistics: whole kinds of records at one head, which the commits of this process
//! bring to the next themselves. Who reads what, and when it is loaded, is decided in [`super`].

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_codec::proto::HeadValue;
use moraine_keys::{
    ColumnKey, FormatKey, KeyRange, Kind, MacroKey, PartitionKey, SchemaKey, SortKey, TableColumnStatsKey,
    TableKey, TableStatsKey, TagKey, ViewKey,
};
use moraine_store::{ReadError, Scan, WriteSet, lay_over};

/// Bytes of keys and values that are kept of one kind. A lake with more of them is read from the store.
pub(super) const KIND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Records that commits have changed are kept apart from the others, up to so many: what open transactions read stays as it
/// is, so the others would have to be copied at each commit.
const CHANGED_RECORDS_MAX: usize = 256;

/// The ranges of the kinds that are kept, each whole or not at all. They do not overlap.
pub(super) static KINDS: LazyLock<Vec<KeyRange>> = LazyLock::new(|| {
    vec![
        SchemaKey::scan(),
        TableKey::scan(),
        ViewKey::scan(),
        ColumnKey::scan(),
        PartitionKey::scan(),
        SortKey::scan(),
        MacroKey::scan(),
        TagKey::scan(),
        TableStatsKey::scan(),
        TableColumnStatsKey::scan(),
        only(&FormatKey {}),
    ]
});

/// The range of one key.
fn only<K: Kind>(key: &K) -> KeyRange {
    let start = key.encode();
    let end = Bytes::from([start.as_ref(), &[0]].concat());
    KeyRange {
        start,
        end: Some(end),
    }
}

/// The kind of a key, by its place in [`KINDS`].
pub(super) fn kind_of(key: &[u8]) -> Option<usize> {
    KINDS
        .iter()
        .position(|kind| kind.start.as_ref() <= key && kind.end.as_ref().is_none_or(|end| key < end.as_ref()))
}

/// The kind that a range lies within.
pub(super) fn kind_around(range: &KeyRange) -> Option<usize> {
    let kind = kind_of(&range.start)?;
    let (end, whole) = (range.end.as_ref()?, KINDS.get(kind)?);
    whole.end.as_ref().is_none_or(|last| end <= last).then_some(kind)
}

/// The records of one kind, by key.
pub(super) type Records = BTreeMap<Bytes, Bytes>;

/// A change of a record of a kind that may be kept: `None` deletes it.
pub(super) type Changed = (usize, Bytes, Option<Bytes>);

/// Kinds by their place in [`KINDS`], all at one head. A clone costs next to nothing.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) head: HeadValue,
    kinds: BTreeMap<usize, Arc<Records>>,
    /// What has changed since the kinds were read.
    changed: Arc<WriteSet>,
}

impl Kept {
    /// Nothing, at a head.
    pub(super) fn at(head: HeadValue) -> Self {
        Kept {
            head,
            kinds: BTreeMap::new(),
            changed: Arc::default(),
        }
    }

    pub(super) fn has(&self, kind: usize) -> bool {
        self.kinds.contains_key(&kind)
    }

    /// How many records are kept, about.
    pub(super) fn len(&self) -> usize {
        self.kinds.values().map(|records| records.len()).sum()
    }

    /// Keeps the records of a kind as they are at the head.
    pub(super) fn insert(&mut self, kind: usize, records: Arc<Records>) {
        if !self.has(kind) {
            self.kinds.insert(kind, records);
        }
    }

    /// Takes over a kind that another one has at the same head.
    pub(super) fn adopt(&mut self, kind: usize, other: &Kept) {
        if let Some(records) = other.kinds.get(&kind) {
            let mut records = Arc::clone(records);
            apply(&mut records, &other.changed, kind);
            self.insert(kind, records);
        }
    }

    /// What is kept of a key of a kind: `None` where the kind is not.
    pub(super) fn get(&self, kind: usize, key: &[u8]) -> Option<Option<Bytes>> {
        let records = self.kinds.get(&kind)?;
        match self.changed.get(key) {
            Some(change) => Some(change.clone()),
            None => Some(records.get(key).cloned()),
        }
    }

    /// The records of a range within a kind, ascending by key; `None` where the kind is not kept.
    pub(super) fn scan(&self, kind: usize, range: KeyRange) -> Option<Box<dyn Scan>> {
        let records = Arc::clone(self.kinds.get(&kind)?);
        let changes = self.changed.range(&range);
        let changes = changes
            .map(|(key, change)| (key.clone(), change.clone()))
            .collect();
        Some(lay_over(Box::new(KeptScan::new(records, range)), changes))
    }

    /// Changes records, those of kinds that are kept, and goes to the head that they lead to.
    pub(super) fn change(&mut self, head: HeadValue, changes: impl IntoIterator<Item = Changed>) {
        for (kind, key, change) in changes {
            if self.has(kind) {
                let changed = Arc::make_mut(&mut self.changed);
                match change {
                    Some(value) => changed.put(key, value),
                    None => changed.delete(key),
                };
            }
        }
        self.head = head;
        if self.changed.len() > CHANGED_RECORDS_MAX {
            for (kind, records) in &mut self.kinds {
                apply(records, &self.changed, *kind);
            }
            self.changed = Arc::default();
        }
    }
}

/// Applies changes to the records of a kind. They are copied where somebody reads them.
fn apply(records: &mut Arc<Records>, changed: &WriteSet, kind: usize) {
    let Some(range) = KINDS.get(kind) else {
        return;
    };
    for (key, change) in changed.range(range) {
        let records = Arc::make_mut(records);
        match change {
            Some(value) => records.insert(key.clone(), value.clone()),
            None => records.remove(key),
        };
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
