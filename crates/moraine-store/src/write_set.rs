//! Staged changes to raw records, by key: what one batch will write.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;

use crate::{ReadError, Scan, Transaction};

/// Changes by key: `Some` puts a value, `None` deletes. The last change of a key wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteSet {
    changes: BTreeMap<Bytes, Option<Bytes>>,
    bytes: usize,
}

impl WriteSet {
    /// No changes.
    pub fn new() -> Self {
        WriteSet::default()
    }

    /// Stages a put and returns the change of this key that it replaces, if there was one.
    pub fn put(&mut self, key: Bytes, value: Bytes) -> Option<Option<Bytes>> {
        self.set(key, Some(Some(value)))
    }

    /// Stages a deletion and returns the change of this key that it replaces, if there was one.
    pub fn delete(&mut self, key: Bytes) -> Option<Option<Bytes>> {
        self.set(key, Some(None))
    }

    /// The change of `key`: `None` when it is untouched, `Some(None)` when it is deleted.
    pub fn get(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.changes.get(key)
    }

    /// All changes, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Option<Bytes>)> {
        self.changes.iter()
    }

    /// The changes within `range`, ascending by key.
    pub fn range(&self, range: &KeyRange) -> impl Iterator<Item = (&Bytes, &Option<Bytes>)> {
        let end = match &range.end {
            // `BTreeMap::range` panics on inverted bounds.
            Some(_) if range.is_empty() => Bound::Excluded(&range.start),
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        self.changes
            .range::<Bytes, _>((Bound::Included(&range.start), end))
    }

    /// How many keys are changed.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of all keys and values in the set.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stages all changes in `transaction`.
    ///
    /// # Errors
    /// See [`Transaction::put`].
    pub fn apply(&self, transaction: &mut dyn Transaction) -> Result<(), ReadError> {
        for (key, change) in &self.changes {
            match change {
                Some(value) => transaction.put(key.clone(), value.clone())?,
                None => transaction.delete(key.clone())?,
            }
        }
        Ok(())
    }

    /// `below`, a scan over `range`, with the changes of that range laid over it.
    pub(crate) fn overlay(&self, below: Box<dyn Scan>, range: &KeyRange) -> Box<dyn Scan> {
        let changes: Vec<_> = self
            .range(range)
            .map(|(key, change)| (key.clone(), change.clone()))
            .collect();
        lay_over(below, changes)
    }

    /// Puts the change of `key` to `change` (`None`: the key becomes untouched) and returns what it was.
    pub(crate) fn set(&mut self, key: Bytes, change: Option<Option<Bytes>>) -> Option<Option<Bytes>> {
        let key_bytes = key.len();
        let size = |change: &Option<Bytes>| key_bytes + change.as_ref().map_or(0, Bytes::len);
        let added = change.as_ref().map_or(0, size);
        let before = match change {
            Some(change) => self.changes.insert(key, change),
            None => self.changes.remove(&key),
        };
        self.bytes = (self.bytes + added).saturating_sub(before.as_ref().map_or(0, size));
        before
    }
}

impl<'a> IntoIterator for &'a WriteSet {
    type Item = (&'a Bytes, &'a Option<Bytes>);
    type IntoIter = std::collections::btree_map::Iter<'a, Bytes, Option<Bytes>>;

    fn into_iter(self) -> Self::IntoIter {
        self.changes.iter()
    }
}

impl IntoIterator for WriteSet {
    type Item = (Bytes, Option<Bytes>);
    type IntoIter = std::collections::btree_map::IntoIter<Bytes, Option<Bytes>>;

    fn into_iter(self) -> Self::IntoIter {
        self.changes.into_iter()
    }
}

/// `below` with changes laid over it, both ascending by key and of the same range. A change of `None` is a deletion.
pub fn lay_over(below: Box<dyn Scan>, changes: Vec<(Bytes, Option<Bytes>)>) -> Box<dyn Scan> {
    if changes.is_empty() {
        return below;
    }
    Box::new(MergedScan {
        below,
        head: Head::Unread,
        changes: changes.into_iter().peekable(),
    })
}

/// The next record of the scan below, when it has been looked at.
enum Head {
    Unread,
    Record((Bytes, Bytes)),
    End,
}

/// A scan with staged changes laid over it; both sides ascend.
struct MergedScan {
    below: Box<dyn Scan>,
    head: Head,
    changes: std::iter::Peekable<std::vec::IntoIter<(Bytes, Option<Bytes>)>>,
}

#[async_trait]
impl Scan for MergedScan {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError> {
        loop {
            if matches!(self.head, Head::Unread) {
                self.head = self.below.next().await?.map_or(Head::End, Head::Record);
            }
            let below_key = match &self.head {
                Head::Record((key, _)) => Some(key),
                Head::Unread | Head::End => None,
            };
            let change_key = self.changes.peek().map(|(key, _)| key);
            let (take_change, skip_below) = match (below_key, change_key) {
                (None, None) => return Ok(None),
                (Some(_), None) => (false, false),
                (None, Some(_)) => (true, false),
                (Some(below), Some(change)) => (change <= below, change == below),
            };
            if take_change {
                if skip_below {
                    self.head = Head::Unread;
                }
                if let Some((key, Some(value))) = self.changes.next() {
                    return Ok(Some((key, value)));
                }
            } else if let Head::Record(record) = std::mem::replace(&mut self.head, Head::Unread) {
                return Ok(Some(record));
            }
        }
    }
}
