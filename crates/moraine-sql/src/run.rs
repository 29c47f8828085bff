//! A plan running: its rows are pulled by whoever wants them, and the scans it asks for are served in between, in the
//! same task, because only there the transaction may be borrowed.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use moraine_tables::Value;
use tokio::sync::mpsc;

use crate::error::{QueryError, RelationError};
use crate::kept::KeptScans;
use crate::plan::Plan;
use crate::provider::{Door, ScanTask};
use crate::relations::Relations;
use crate::types::SqlType;
use crate::values;

/// The rows of a running query. Dropping them stops it.
pub struct Rows<'a> {
    relations: &'a dyn Relations,
    output: SendableRecordBatchStream,
    asked: mpsc::UnboundedReceiver<ScanTask>,
    scans: FuturesUnordered<BoxFuture<'a, Result<(), RelationError>>>,
    types: Vec<SqlType>,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Rows")
            .field("scans", &self.scans.len())
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Starts the query with these values for its parameters, which must be of the types that
    /// [`Plan::parameters`] says.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn run<'a>(
        &self,
        parameters: &[Value],
        relations: &'a dyn Relations,
    ) -> Result<Rows<'a>, QueryError> {
        let logical = self.bound(parameters)?;
        let physical = crate::dependent::planned(&self.engine.state, &logical).await?;
        let (door, asked) = mpsc::unbounded_channel();
        let config = self
            .engine
            .state
            .config()
            .clone()
            .with_extension(Arc::new(Door(door)))
            .with_extension(Arc::new(KeptScans::new(&self.engine.runtime.memory_pool)));
        let context = TaskContext::new(
            None,
            String::new(),
            config,
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::clone(&self.engine.runtime),
        );
        let output = execute_stream(physical, Arc::new(context))?;
        Ok(Rows {
            relations,
            output,
            asked,
            scans: FuturesUnordered::new(),
            types: self.columns().iter().map(|column| column.sql_type).collect(),
        })
    }
}

impl Rows<'_> {
    /// The next rows, at least one, or `None` at the end.
    ///
    /// # Errors
    /// See [`QueryError`]; the query is over then.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<Vec<Value>>>, QueryError> {
        loop {
            tokio::select! {
                biased;
                Some(scanned) = self.scans.next(), if !self.scans.is_empty() => {
                    scanned.map_err(of_scan)?;
                }
                Some(task) = self.asked.recv() => {
                    self.scans.push(self.relations.scan(task.request, task.sink));
                }
                batch = self.output.next() => {
                    let Some(batch) = batch else {
                        return Ok(None);
                    };
                    let rows = values::rows(&batch?, &self.types)?;
                    if !rows.is_empty() {
                        return Ok(Some(rows));
                    }
                }
            }
        }
    }

    /// All rows that are left.
    ///
    /// # Errors
    /// As [`Rows::next_batch`].
    pub async fn collect(mut self) -> Result<Vec<Vec<Value>>, QueryError> {
        let mut rows = Vec::new();
        while let Some(batch) = self.next_batch().await? {
            rows.extend(batch);
        }
        Ok(rows)
    }
}

/// An error of a scan: the sink's own, or one of whoever serves the relations.
fn of_scan(error: RelationError) -> QueryError {
    match error.downcast::<QueryError>() {
        Ok(error) => *error,
        Err(error) => QueryError::Relation(error),
    }
}
