//! What the write-ahead log holds on top of a database's SSTs: every version of a record that a view may still need. How
//! the log is read is [`super::follow`]'s.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use moraine_keys::KeyRange;

/// A change of one record: `None` deletes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Bytes,
    pub(crate) sequence: u64,
    pub(crate) value: Option<Bytes>,
}

/// The newest rows of a log.
#[derive(Debug)]
pub(crate) struct Tail {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What views see from now on: every batch up to this one is here whole.
    published: u64,
    records: BTreeMap<Bytes, Vec<Version>>,
    /// Sequence numbers that views are pinned at, with how many of them.
    pinned: BTreeMap<u64, usize>,
}

#[derive(Debug)]
struct Version {
    sequence: u64,
    value: Option<Bytes>,
}

impl Tail {
    /// No rows on top of SSTs that hold every batch up to `published`.
    pub(crate) fn new(published: u64) -> Tail {
        Tail {
            state: Mutex::new(State {
                published,
                ..State::default()
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the rows of whole batches, in any order. Views that are pinned do not see them.
    pub(crate) fn add(&self, rows: Vec<Row>) {
        let mut state = self.state();
        let State {
            published,
            records,
            pinned,
        } = &mut *state;
        for row in rows {
            *published = row.sequence.max(*published);
            let versions = records.entry(row.key).or_default();
            let place = versions.partition_point(|version| version.sequence < row.sequence);
            versions.insert(
                place,
                Version {
                    sequence: row.sequence,
                    value: row.value,
                },
            );
            keep_seen(versions, pinned);
        }
    }

    /// The newest batch that is here.
    pub(crate) fn published(&self) -> u64 {
        self.state().published
    }

    /// The newest version of every record that a batch after `sequence` has changed.
    pub(crate) fn newest_after(&self, sequence: u64) -> Vec<Row> {
        let state = self.state();
        let newest = state.records.iter().filter_map(|(key, versions)| {
            let version = versions.last().filter(|version| version.sequence > sequence)?;
            Some(Row {
                key: key.clone(),
                sequence: version.sequence,
                value: version.value.clone(),
            })
        });
        newest.collect()
    }

    /// The newest state, kept while the pin lives.
    pub(crate) fn pin(self: &Arc<Self>) -> Pin {
        let mut state = self.state();
        let sequence = state.published;
        *state.pinned.entry(sequence).or_default() += 1;
        Pin {
            tail: Arc::clone(self),
            sequence,
        }
    }
}

/// A state of a [`Tail`].
#[derive(Debug)]
pub(crate) struct Pin {
    tail: Arc<Tail>,
    sequence: u64,
}

impl Pin {
    /// What the log says of a record: `None` nothing, `Some(None)` that it is deleted.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let state = self.tail.state();
        visible(state.records.get(key)?, self.sequence)
    }

    /// What the log says of the records in a range, ascending by key.
    pub(crate) fn range(&self, range: &KeyRange) -> Vec<(Bytes, Option<Bytes>)> {
        if range.is_empty() {
            return Vec::new();
        }
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.tail.state();
        let records = state
            .records
            .range::<Bytes, _>((Bound::Included(&range.start), end));
        let visible =
            records.filter_map(|(key, versions)| Some((key.clone(), visible(versions, self.sequence)?)));
        visible.collect()
    }
}

/// Keeps the newest version, and of the others those that a pin sees: a record that is written again and again while a view
/// is held must not become a long list.
fn keep_seen(versions: &mut Vec<Version>, pinned: &BTreeMap<u64, usize>) {
    let successors: Vec<u64> = versions.iter().skip(1).map(|version| version.sequence).collect();
    let mut successors = successors.into_iter();
    versions.retain(|version| match successors.next() {
        Some(next) => next > version.sequence && pinned.range(version.sequence..next).next().is_some(),
        None => true,
    });
}

/// What a state sees of a record's versions, which ascend.
fn visible(versions: &[Version], sequence: u64) -> Option<Option<Bytes>> {
    let later = versions.partition_point(|version| version.sequence <= sequence);
    let version = versions.get(later.checked_sub(1)?)?;
    Some(version.value.clone())
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.tail.state();
        if let Some(count) = state.pinned.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                state.pinned.remove(&self.sequence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &'static str, sequence: u64, value: Option<&'static str>) -> Row {
        Row {
            key: Bytes::from_static(key.as_bytes()),
            sequence,
            value: value.map(|value| Bytes::from_static(value.as_bytes())),
        }
    }

    fn all(pin: &Pin) -> Vec<(Bytes, Option<Bytes>)> {
        pin.range(&KeyRange::all())
    }

    #[test]
    fn a_pin_stays_at_its_batch_and_needs_no_more_than_that() {
        let tail = Arc::new(Tail::new(10));
        let empty = tail.pin();
        tail.add(vec![
            row("b", 12, Some("2")),
            row("a", 11, Some("1")),
            row("b", 11, Some("1")),
        ]);
        let first = tail.pin();
        tail.add(vec![row("a", 13, None), row("b", 14, Some("4"))]);
        assert_eq!(all(&empty), []);
        assert_eq!(first.get(b"a"), Some(Some(Bytes::from_static(b"1"))));
        assert_eq!(first.get(b"b"), Some(Some(Bytes::from_static(b"2"))));
        let second = tail.pin();
        assert_eq!(second.get(b"a"), Some(None));
        assert_eq!(second.get(b"c"), None);
        assert_eq!(tail.published(), 14);
        drop((empty, first));
        tail.add(vec![row("b", 15, Some("5"))]);
        assert_eq!(second.get(b"b"), Some(Some(Bytes::from_static(b"4"))));
        assert_eq!(tail.state().records[&Bytes::from_static(b"b")].len(), 2);
    }

    #[test]
    fn of_a_record_that_is_written_again_and_again_what_pins_see_is_kept_and_no_more() {
        let tail = Arc::new(Tail::new(0));
        let value = |number: u64| Some(Bytes::copy_from_slice(&number.to_be_bytes()));
        let mut pins = Vec::new();
        for number in 1..=2_000 {
            let key = Bytes::from_static(b"statistics");
            let value = value(number);
            tail.add(vec![Row {
                key,
                sequence: number,
                value,
            }]);
            if number % 500 == 0 {
                pins.push((number, tail.pin()));
            }
        }
        for (number, pin) in &pins {
            assert_eq!(pin.get(b"statistics"), Some(value(*number)));
            assert_eq!(all(pin).len(), 1);
        }
        assert_eq!(tail.state().records[&Bytes::from_static(b"statistics")].len(), 4);
        pins.clear();
        tail.add(vec![row("statistics", 2_001, None)]);
        assert_eq!(all(&tail.pin()), [(Bytes::from_static(b"statistics"), None)]);
        assert_eq!(tail.state().records[&Bytes::from_static(b"statistics")].len(), 1);
    }

    #[test]
    fn what_has_gone_to_ssts_is_left_behind() {
        let tail = Arc::new(Tail::new(0));
        tail.add(vec![
            row("a", 1, Some("1")),
            row("b", 2, Some("2")),
            row("a", 3, None),
        ]);
        assert_eq!(tail.newest_after(2), [row("a", 3, None)]);
        assert_eq!(tail.newest_after(3), []);
    }
}
