//! Half-open ranges of encoded keys, the bounds of every scan. They come from the kinds, not from callers' bytes.

use std::ops::RangeInclusive;

use bytes::Bytes;

/// A half-open range `[start, end)` of encoded keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first key that may be in the range.
    pub start: Bytes,
    /// The first key after the range; `None` means the range goes to the end of the keyspace.
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self {
            start: Bytes::new(),
            end: None,
        }
    }

    /// Every key that starts with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        Self {
            start: Bytes::copy_from_slice(prefix),
            end: after_prefix(prefix),
        }
    }

    /// Every key from the first that starts with `first` to the last that starts with `last`.
    pub(crate) fn prefixes(first: &[u8], last: &[u8]) -> Self {
        Self {
            start: Bytes::copy_from_slice(first),
            end: after_prefix(last),
        }
    }

    /// The range of the prefixes that `prefix_of` gives for the ends of `ids`; no key at all when `ids` is empty.
    pub(crate) fn ids(ids: &RangeInclusive<u64>, prefix_of: impl Fn(u64) -> Bytes) -> Self {
        let first = prefix_of(*ids.start());
        if ids.is_empty() {
            return Self {
                end: Some(first.clone()),
                start: first,
            };
        }
        Self::prefixes(&first, &prefix_of(*ids.end()))
    }

    /// Whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }

    /// The part of the range from `key` on: `key` itself and everything after it. For going on with a scan.
    #[must_use]
    pub fn from_key_on(&self, key: &[u8]) -> Self {
        if key <= self.start.as_ref() {
            return self.clone();
        }
        Self {
            start: Bytes::copy_from_slice(key),
            end: self.end.clone(),
        }
    }

    /// The part of the range strictly after `key`. For going on with a scan whose last key was `key`.
    #[must_use]
    pub fn after_key(&self, key: &[u8]) -> Self {
        let mut next = Vec::with_capacity(key.len() + 1);
        next.extend_from_slice(key);
        next.push(0);
        self.from_key_on(&next)
    }

    /// Whether no key can lie in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end <= &self.start)
    }
}

/// The least byte string above everything that starts with `prefix`, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(Bytes::from(bytes));
        }
    }
    None
}
