//! Multisets of row ids, exact and small: what a flush writes is compared with what it removes, row by row.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// How often each row id occurs, kept as the steps of that function over the row ids: rows that follow one another take no space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowMultiset {
    /// Where the count changes, and by how much; never by zero.
    steps: BTreeMap<u64, i64>,
    rows: u64,
}

impl RowMultiset {
    /// Adds each row id of the range once.
    pub fn add(&mut self, rows: &RangeInclusive<u64>) {
        if rows.is_empty() {
            return;
        }
        self.rows = self
            .rows
            .saturating_add(rows.end().saturating_sub(*rows.start()).saturating_add(1));
        self.step(*rows.start(), 1);
        if let Some(after) = rows.end().checked_add(1) {
            self.step(after, -1);
        }
    }

    /// How many rows there are, each as often as it occurs.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The first row id that occurs in one more often than in the other.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        let differs = |(row_id, step): (&u64, &i64), in_other: &Self| {
            (in_other.steps.get(row_id) != Some(step)).then_some(*row_id)
        };
        let here = self.steps.iter().find_map(|step| differs(step, other));
        let there = other.steps.iter().find_map(|step| differs(step, self));
        here.into_iter().chain(there).min()
    }

    fn step(&mut self, at: u64, by: i64) {
        let step = self.steps.entry(at).or_default();
        *step += by;
        if *step == 0 {
            self.steps.remove(&at);
        }
    }
}
