//! Multisets of row ids, exact and small: what a flush writes is compared with what it removes, row by row.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Row ids that share a block of bits.
const BLOCK_ROWS: u64 = 4096;
/// Words of a block.
const BLOCK_WORDS: usize = 64;
/// Occurrences that have a layer of bits of their own; a row id that occurs more often is counted.
const LAYERS_MAX: usize = 4;

/// One bit for each row id, in blocks that hold at least one.
type Layer = BTreeMap<u64, Box<[u64; BLOCK_WORDS]>>;

/// How often each row id occurs: an eighth of a byte for each row where ids lie close together, in whatever order they come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowMultiset {
    /// Layer n has the row ids that occur more than n times.
    layers: [Layer; LAYERS_MAX],
    /// Further occurrences.
    surplus: BTreeMap<u64, u64>,
    rows: u64,
}

impl RowMultiset {
    /// Adds each row id of the range once.
    pub fn add(&mut self, rows: &RangeInclusive<u64>) {
        for row_id in rows.clone() {
            self.add_row(row_id);
        }
    }

    /// Adds a row id once.
    pub fn add_row(&mut self, row_id: u64) {
        self.rows = self.rows.saturating_add(1);
        for layer in &mut self.layers {
            let block = layer
                .entry(row_id / BLOCK_ROWS)
                .or_insert_with(|| Box::new([0; BLOCK_WORDS]));
            let (word, bit) = place(row_id);
            let Some(word) = block.get_mut(word) else {
                continue;
            };
            if *word & bit == 0 {
                *word |= bit;
                return;
            }
        }
        *self.surplus.entry(row_id).or_default() += 1;
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
        let layers = self.layers.iter().zip(&other.layers);
        let in_layers = layers.filter_map(|(here, there)| first_of_layers(here, there));
        let counts = self.surplus.iter().chain(&other.surplus);
        let counted = counts.filter(|(row_id, _)| self.surplus.get(row_id) != other.surplus.get(row_id));
        in_layers.chain(counted.map(|(row_id, _)| *row_id)).min()
    }
}

fn place(row_id: u64) -> (usize, u64) {
    let within = row_id % BLOCK_ROWS;
    (
        usize::try_from(within / 64).unwrap_or_default(),
        1 << (within % 64),
    )
}

fn first_of_layers(here: &Layer, there: &Layer) -> Option<u64> {
    let blocks = here.keys().chain(there.keys());
    let differing = blocks.filter(|block| here.get(block) != there.get(block));
    let block = *differing.min()?;
    let word = |layer: &Layer, position: usize| {
        let words = layer.get(&block).and_then(|words| words.get(position));
        words.copied().unwrap_or_default()
    };
    let position = (0..BLOCK_WORDS).find(|position| word(here, *position) != word(there, *position))?;
    let bit = (word(here, position) ^ word(there, position)).trailing_zeros();
    Some(block * BLOCK_ROWS + position as u64 * 64 + u64::from(bit))
}
