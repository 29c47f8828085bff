//! Rows as they leave a scan: batches, either sorted beforehand or read as they are asked for.

use crate::error::TableError;
use crate::relations::Order;
use crate::row::Row;

/// Rows in one batch of a scan.
pub const SCAN_BATCH_ROWS: usize = 1024;

/// A scan in progress. It borrows the transaction it reads in.
pub struct RowScan<'a> {
    stream: Box<dyn RowStream + 'a>,
}

impl<'a> RowScan<'a> {
    pub(crate) fn new(stream: impl RowStream + 'a) -> Self {
        Self {
            stream: Box::new(stream),
        }
    }

    /// The next rows, at most [`SCAN_BATCH_ROWS`] and at least one, or `None` at the end.
    ///
    /// # Errors
    /// [`TableError::Read`] and [`TableError::Corrupt`]; the scan is over then.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, TableError> {
        self.stream.next_batch().await
    }

    /// All rows that are left.
    ///
    /// # Errors
    /// As [`RowScan::next_batch`].
    pub async fn collect(mut self) -> Result<Vec<Row>, TableError> {
        let mut rows = Vec::new();
        while let Some(batch) = self.next_batch().await? {
            rows.extend(batch);
        }
        Ok(rows)
    }
}

impl std::fmt::Debug for RowScan<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RowScan").finish_non_exhaustive()
    }
}

/// Where a scan's rows come from.
#[async_trait::async_trait]
pub(crate) trait RowStream: Send {
    /// The next rows, at least one, or `None` at the end.
    async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, TableError>;
}

/// Rows that had to be sorted, handed out in batches.
pub(crate) struct Sorted {
    rows: std::vec::IntoIter<(Order, Row)>,
}

impl Sorted {
    /// Sorts by order; rows of the same order keep theirs.
    pub(crate) fn new(mut rows: Vec<(Order, Row)>) -> Self {
        rows.sort_by_key(|(order, _)| *order);
        Self {
            rows: rows.into_iter(),
        }
    }

    /// Rows that are in order already.
    pub(crate) fn in_order(rows: Vec<Row>) -> Self {
        let rows: Vec<_> = rows.into_iter().map(|row| ([0; 3], row)).collect();
        Self {
            rows: rows.into_iter(),
        }
    }
}

#[async_trait::async_trait]
impl RowStream for Sorted {
    async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, TableError> {
        let batch: Vec<Row> = self
            .rows
            .by_ref()
            .take(SCAN_BATCH_ROWS)
            .map(|(_, row)| row)
            .collect();
        Ok((!batch.is_empty()).then_some(batch))
    }
}
