//! Cursors: queries whose rows are fetched bit by bit, by DECLARE and FETCH or by Execute with a number of rows. A cursor
//! runs as a task over the state its transaction had when it was opened, and waits while nobody fetches.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::reader::OwnReader;
use super::run::panicked;
use crate::bind::Output;
use crate::errors::{SqlError, state};
use crate::execute::{Cell, RowSink};
use crate::general::QuerySink;
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::values::parameters::Parameters;
use crate::wire::Failure;

/// One running query.
#[derive(Debug)]
pub(super) struct Cursor {
    outputs: Vec<Output>,
    said: mpsc::Receiver<Said>,
    /// Rows that came and were not yet fetched.
    waiting: VecDeque<Vec<Cell>>,
    is_over: bool,
    /// The rows fetched so far, where the cursor can go back to them.
    seen: Option<Vec<Vec<Cell>>>,
    /// The place among the rows: 0 is before the first one, `n` on the `n`th one.
    place: usize,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Said {
    Columns(Vec<Output>),
    Rows(Vec<Vec<Cell>>),
    Failed(SqlError),
    End,
}

/// Where to go from the present row, and which rows to give on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// As many rows on; `None` for all that are left.
    Forward(Option<usize>),
    /// As many rows back; `None` for all.
    Backward(Option<usize>),
    /// To that row, counted from the end when negative.
    Absolute(i64),
    /// To the row that far from here.
    Relative(i64),
}

struct ToCursor {
    said: mpsc::Sender<Said>,
    columns: Option<Vec<Output>>,
}

fn unheard() -> Failure {
    SqlError::new(state::QUERY_CANCELED, "the cursor was closed").into()
}

impl QuerySink for ToCursor {
    fn begin(&mut self, outputs: Vec<Output>) -> Result<&mut dyn RowSink, Failure> {
        self.columns = Some(outputs);
        Ok(self)
    }
}

#[async_trait]
impl RowSink for ToCursor {
    async fn rows(&mut self, rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
        self.tell_columns().await?;
        self.said.send(Said::Rows(rows)).await.map_err(|_| unheard())
    }
}

impl ToCursor {
    async fn tell_columns(&mut self) -> Result<(), Failure> {
        match self.columns.take() {
            Some(columns) => self
                .said
                .send(Said::Columns(columns))
                .await
                .map_err(|_| unheard()),
            None => Ok(()),
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cursor {
    /// Starts a query over a frozen transaction. Returns once its columns are known.
    pub(super) async fn open(
        parsed: Arc<Parsed>,
        parameters: Arc<Parameters>,
        mut transaction: Transaction,
        reader: OwnReader,
        scrolls: bool,
    ) -> Result<Cursor, SqlError> {
        let (said, mut hears) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            let mut sink = ToCursor {
                said: said.clone(),
                columns: None,
            };
            let reader = reader.reader();
            let read = reader.read(&parsed, &parameters, &mut transaction, &mut sink);
            let outcome = AssertUnwindSafe(read).catch_unwind().await;
            let told = match outcome {
                Ok(Ok(_)) => {
                    // A query without rows has columns all the same.
                    let _ = sink.tell_columns().await;
                    Said::End
                }
                Ok(Err(Failure::Sql(error))) => Said::Failed(error),
                Ok(Err(Failure::Gone(error))) => Said::Failed(SqlError::internal(error.to_string())),
                Err(panic) => Said::Failed(panicked(panic.as_ref())),
            };
            let _ = said.send(told).await;
        });
        let outputs = match hears.recv().await {
            Some(Said::Columns(outputs)) => outputs,
            Some(Said::Failed(error)) => return Err(error),
            _ => return Err(SqlError::internal("a query without columns")),
        };
        Ok(Cursor {
            outputs,
            said: hears,
            waiting: VecDeque::new(),
            is_over: false,
            seen: scrolls.then(Vec::new),
            place: 0,
            task,
        })
    }

    pub(super) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The next rows, as many as wanted where there are; `None` for all. They come in batches, so that all of them need
    /// not be in memory; an empty batch is the end.
    pub(super) async fn next(&mut self, wanted: Option<usize>) -> Result<Vec<Vec<Cell>>, SqlError> {
        while self.waiting.is_empty() && !self.is_over {
            match self.said.recv().await {
                Some(Said::Rows(rows)) => self.waiting.extend(rows),
                Some(Said::Columns(_)) => {}
                Some(Said::End) => self.is_over = true,
                Some(Said::Failed(error)) => {
                    self.is_over = true;
                    return Err(error);
                }
                None => {
                    self.is_over = true;
                    return Err(SqlError::internal("a cursor's query is gone"));
                }
            }
        }
        let count = wanted.unwrap_or(usize::MAX).min(self.waiting.len());
        Ok(self.waiting.drain(..count).collect())
    }

    /// Moves, and gives the rows on the way to the sink; how many.
    pub(super) async fn travel(
        &mut self,
        direction: Direction,
        sink: &mut dyn RowSink,
    ) -> Result<u64, Failure> {
        match direction {
            Direction::Forward(wanted) => self.forward(wanted, sink).await,
            Direction::Backward(wanted) => self.backward(wanted, sink).await,
            Direction::Absolute(place) => {
                let place = match usize::try_from(place) {
                    Ok(place) => place,
                    Err(_) => {
                        let all = self.count().await?;
                        let from_end = usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX);
                        (all + 1).saturating_sub(from_end)
                    }
                };
                self.to(place, sink).await
            }
            Direction::Relative(distance) => {
                let distance_size = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX);
                let place = match distance {
                    0.. => self.place.saturating_add(distance_size),
                    _ => self.place.saturating_sub(distance_size),
                };
                self.to(place, sink).await
            }
        }
    }

    async fn forward(&mut self, wanted: Option<usize>, sink: &mut dyn RowSink) -> Result<u64, Failure> {
        let mut left = wanted;
        let mut count = 0u64;
        while left != Some(0) {
            let rows = self.step(left).await?;
            if rows.is_empty() {
                // Behind the last row.
                self.place = self.seen.as_ref().map_or(self.place, Vec::len) + 1;
                break;
            }
            self.place += rows.len();
            count += u64::try_from(rows.len()).unwrap_or(u64::MAX);
            left = left.map(|left| left - rows.len());
            sink.rows(rows).await?;
        }
        Ok(count)
    }

    /// The rows after the present one: from those seen where the cursor was further already.
    async fn step(&mut self, wanted: Option<usize>) -> Result<Vec<Vec<Cell>>, SqlError> {
        if let Some(seen) = &self.seen
            && self.place < seen.len()
        {
            let ahead = seen.get(self.place..).unwrap_or_default().iter();
            return Ok(ahead.take(wanted.unwrap_or(usize::MAX)).cloned().collect());
        }
        let rows = self.next(wanted).await?;
        if let Some(seen) = &mut self.seen {
            seen.extend(rows.iter().cloned());
        }
        Ok(rows)
    }

    async fn backward(&mut self, wanted: Option<usize>, sink: &mut dyn RowSink) -> Result<u64, Failure> {
        let seen = self.seen.as_ref().ok_or_else(forward_only)?;
        let wanted = wanted.unwrap_or(usize::MAX);
        let end = self.place.saturating_sub(1).min(seen.len());
        let start = end.saturating_sub(wanted);
        let rows: Vec<Vec<Cell>> = seen
            .get(start..end)
            .unwrap_or_default()
            .iter()
            .rev()
            .cloned()
            .collect();
        self.place = if rows.len() < wanted { 0 } else { start + 1 };
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        sink.rows(rows).await?;
        Ok(count)
    }

    /// To a row, which alone is given.
    async fn to(&mut self, place: usize, sink: &mut dyn RowSink) -> Result<u64, Failure> {
        if place < self.place && self.seen.is_none() {
            return Err(forward_only().into());
        }
        if self.seen.is_some() {
            self.place = self.place.min(place.saturating_sub(1));
        }
        while self.place + 1 < place {
            let rows = self.step(Some(place - 1 - self.place)).await?;
            if rows.is_empty() {
                return Ok(0);
            }
            self.place += rows.len();
        }
        if place == 0 {
            self.place = 0;
            return Ok(0);
        }
        self.forward(Some(1), sink).await
    }

    async fn count(&mut self) -> Result<usize, SqlError> {
        if self.seen.is_none() {
            return Err(forward_only());
        }
        loop {
            let rows = self.next(None).await?;
            let Some(seen) = &mut self.seen else {
                return Err(forward_only());
            };
            if rows.is_empty() {
                return Ok(seen.len());
            }
            seen.extend(rows);
        }
    }
}

fn forward_only() -> SqlError {
    SqlError::new(
        state::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cursor can only scan forward",
    )
    .hint("Declare it with SCROLL option to enable backward scan.")
}
