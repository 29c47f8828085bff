//! `ctid`: the rows a transaction has shown, numbered, so that a later statement of it can name them. The number is
//! split as Postgres splits a page and an item; the item stays below 2^15 because DuckDB reads it with a sign.

use std::collections::HashMap;

use moraine_tables::{Relation, RowAddress};

use crate::errors::{SqlError, state};

const ITEM_BITS: u32 = 15;
const ITEM_MASK: u64 = (1 << ITEM_BITS) - 1;
/// The greatest number a `ctid` can carry: 32 bits of page, 15 of item.
const TID_MAX: u64 = (1 << (32 + ITEM_BITS)) - 1;

/// Page and item of a row number.
pub(crate) fn split(tid: u64) -> (u32, u16) {
    let page = u32::try_from(tid >> ITEM_BITS).unwrap_or(u32::MAX);
    let item = u16::try_from(tid & ITEM_MASK).unwrap_or(u16::MAX);
    (page, item)
}

/// The text of a `ctid`: `(page,item)`.
pub(crate) fn format(tid: u64) -> String {
    let (page, item) = split(tid);
    format!("({page},{item})")
}

/// Reads `(page,item)`. As in Postgres, what stands before the parenthesis is skipped: DuckDB sends the text with its
/// quotes inside.
pub(crate) fn parse(text: &str) -> Result<u64, SqlError> {
    let invalid = || {
        SqlError::new(
            state::INVALID_TEXT,
            format!("invalid input syntax for type tid: \"{text}\" (column \"ctid\")"),
        )
    };
    let (_, inner) = text.split_once('(').ok_or_else(invalid)?;
    let (inner, _) = inner.split_once(')').ok_or_else(invalid)?;
    let (page, item) = inner.split_once(',').ok_or_else(invalid)?;
    let page: u64 = page.trim().parse::<u32>().map_err(|_| invalid())?.into();
    let item: u64 = item.trim().parse::<u16>().map_err(|_| invalid())?.into();
    // An item of 2^15 or more was never handed out: it names no row, and must not spill into the page.
    Ok(if item > ITEM_MASK {
        u64::MAX
    } else {
        page << ITEM_BITS | item
    })
}

/// The rows a transaction has handed out, by number. The same row keeps its number.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The table (by its position in `tables`) and address of each number.
    rows: Vec<(usize, RowAddress)>,
    tables: Vec<Shown>,
}

/// What has been handed out of one table.
#[derive(Debug)]
struct Shown {
    table: TableKey,
    numbers: HashMap<RowAddress, u64>,
}

/// A relation of one of the lakes of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableKey {
    /// The schema whose lake it is.
    pub(crate) lake: String,
    pub(crate) relation: Relation,
}

impl Ledger {
    /// The number of a row.
    pub(crate) fn number(&mut self, table: &TableKey, address: &RowAddress) -> Result<u64, SqlError> {
        let position = match self.tables.iter().position(|shown| shown.table == *table) {
            Some(position) => position,
            None => {
                self.tables.push(Shown {
                    table: table.clone(),
                    numbers: HashMap::new(),
                });
                self.tables.len() - 1
            }
        };
        let Some(shown) = self.tables.get_mut(position) else {
            return Err(SqlError::internal("a table that was just added is gone"));
        };
        if let Some(number) = shown.numbers.get(address) {
            return Ok(*number);
        }
        let number = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        if number > TID_MAX {
            return Err(SqlError::new(
                state::LIMIT_EXCEEDED,
                "this transaction has read too many rows by ctid",
            ));
        }
        self.rows.push((position, address.clone()));
        shown.numbers.insert(address.clone(), number);
        Ok(number)
    }

    /// The row of that number, when it was handed out for this relation.
    pub(crate) fn row(&self, table: &TableKey, number: u64) -> Option<&RowAddress> {
        let (position, address) = self.rows.get(usize::try_from(number).ok()?)?;
        let owner = &self.tables.get(*position)?.table;
        (owner == table).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_their_text() {
        for tid in [0, 1, ITEM_MASK, ITEM_MASK + 1, 1 << 31, TID_MAX] {
            assert_eq!(parse(&format(tid)), Ok(tid));
            assert!(split(tid).1 < 1 << 15);
        }
        assert_eq!(parse("'(2,3)'"), Ok(2 << 15 | 3));
        assert_eq!(parse("(0,32768)"), Ok(u64::MAX));
        for bad in ["", "(1)", "1,2", "(x,1)", "(1,70000)"] {
            assert_eq!(parse(bad).unwrap_err().state, "22P02", "{bad}");
        }
    }
}
