//! Sets of row ids as ascending ranges: what a selection is confined to, and where it has to look for it.

use std::ops::RangeInclusive;

/// How many places of a table one selection seeks; beyond that, one walk over all of them is cheaper.
const SEEKS_MAX: usize = 256;

/// A set of row ids. An UPDATE or DELETE names a few; most reads name none and mean all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowIds {
    /// Ascending; no two touch.
    ranges: Vec<RangeInclusive<u64>>,
}

impl RowIds {
    /// Every row id.
    #[must_use]
    pub fn all() -> Self {
        Self::within(0..=u64::MAX)
    }

    /// The row ids in `range`; none when it is empty.
    #[must_use]
    pub fn within(range: RangeInclusive<u64>) -> Self {
        Self::merged(vec![range])
    }

    /// Whether no row id is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges of the set, ascending.
    pub(crate) fn ranges(&self) -> &[RangeInclusive<u64>] {
        &self.ranges
    }

    /// The parts of the set from `first` to `last`, ascending.
    pub(crate) fn clipped(&self, first: u64, last: u64) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let from = self.ranges.partition_point(|range| *range.end() < first);
        let reached = self
            .ranges
            .iter()
            .skip(from)
            .take_while(move |range| *range.start() <= last);
        reached.map(move |range| first.max(*range.start())..=last.min(*range.end()))
    }

    /// The set from `first` to `last`.
    pub(crate) fn within_bounds(&self, first: u64, last: u64) -> Self {
        Self {
            ranges: self.clipped(first, last).collect(),
        }
    }

    /// Whether the set has a row id from `first` to `last`.
    pub(crate) fn meets(&self, first: u64, last: u64) -> bool {
        self.clipped(first, last).next().is_some()
    }

    /// Where chunks end that hold any of the set and span at most `width` row ids beyond their first.
    pub(crate) fn chunk_ends(&self, width: u64) -> Self {
        let reach = |range: &RangeInclusive<u64>| *range.start()..=range.end().saturating_add(width);
        Self::merged(self.ranges.iter().map(reach).collect()).coarse()
    }

    /// A superset of few ranges.
    pub(crate) fn coarse(self) -> Self {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) if self.ranges.len() > SEEKS_MAX => {
                Self::within(*first.start()..=*last.end())
            }
            _ => self,
        }
    }

    fn merged(mut ranges: Vec<RangeInclusive<u64>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => merged.push(range),
            }
        }
        Self { ranges: merged }
    }
}

impl FromIterator<u64> for RowIds {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        Self::merged(ids.into_iter().map(|id| id..=id).collect())
    }
}

impl FromIterator<RangeInclusive<u64>> for RowIds {
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u64>>>(ranges: I) -> Self {
        Self::merged(ranges.into_iter().collect())
    }
}
