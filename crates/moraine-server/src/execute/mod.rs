//! Bound statements, run against a transaction: reads stream their rows to a sink, changes become staged changes of the
//! lake. Nothing here knows SQL text or the protocol.

pub(crate) mod modify;
pub(crate) mod select;

use async_trait::async_trait;
use moraine_tables::Value;

use crate::wire::Failure;

/// One field of a result row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Value(Value),
    /// A row's number.
    Tid(u64),
}

/// Where the rows of a read go.
#[async_trait]
pub(crate) trait RowSink: Send {
    /// Takes rows, in order.
    async fn rows(&mut self, rows: Vec<Vec<Cell>>) -> Result<(), Failure>;
}

/// Rows kept in memory.
#[derive(Default)]
pub(crate) struct Collected(pub(crate) Vec<Vec<Cell>>);

#[async_trait]
impl RowSink for Collected {
    async fn rows(&mut self, rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
        self.0.extend(rows);
        Ok(())
    }
}
