//! What the engine asks of whoever has the data: which relations there are, and their rows under a filter.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use moraine_tables::{Filter, Value};
use tokio::sync::mpsc;

use crate::error::RelationError;
use crate::types::SqlType;
use crate::values;

/// A relation as a query names it, folded as Postgres folds names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationName {
    /// The schema, when the query said one.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
}

impl std::fmt::Display for RelationName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(schema) = &self.schema {
            write!(out, "{schema}.")?;
        }
        out.write_str(&self.name)
    }
}

/// One column of a relation or of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlColumn {
    /// The column's name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Whether `*` leaves it out. Such a column is there only for queries that say its name.
    pub hidden: bool,
}

impl SqlColumn {
    /// A column that `*` shows.
    #[must_use]
    pub fn new(name: impl Into<String>, sql_type: impl Into<SqlType>) -> Self {
        Self {
            name: name.into(),
            sql_type: sql_type.into(),
            hidden: false,
        }
    }

    /// A column that has to be asked for by name.
    #[must_use]
    pub fn hidden(name: impl Into<String>, sql_type: impl Into<SqlType>) -> Self {
        Self {
            hidden: true,
            ..Self::new(name, sql_type)
        }
    }
}

/// A relation that exists.
#[derive(Clone, Debug)]
pub enum Resolved {
    /// Rows that [`Relations::scan`] reads. `ctid` is a hidden column of every such relation and not listed.
    Stored {
        /// What `scan` knows the relation by.
        handle: usize,
        /// The columns, in order; conditions speak about them by position.
        columns: Vec<SqlColumn>,
    },
    /// Rows in memory.
    Rows {
        /// The columns, in order.
        columns: Vec<SqlColumn>,
        /// The rows, each with a value for every column.
        rows: Vec<Vec<Value>>,
    },
}

/// A read of a stored relation.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// The handle [`Relations::resolve`] gave out.
    pub handle: usize,
    /// The columns wanted, by position.
    pub projection: Vec<usize>,
    /// Whether each row's number is wanted.
    pub with_ctid: bool,
    /// The conditions; rows that do not meet them must not be given.
    pub filter: Filter,
    /// How many rows are wanted at most.
    pub limit: Option<usize>,
}

/// Whoever has the data of a query.
#[async_trait]
pub trait Relations: Send + Sync {
    /// The relation of this name; `None` when there is none.
    async fn resolve(&mut self, name: &RelationName) -> Result<Option<Resolved>, RelationError>;

    /// Reads rows into the sink, in the order in which they are stored, until it is full or there are no more. Several
    /// scans of one query may be in progress at the same time.
    async fn scan(&self, request: ScanRequest, sink: ScanSink) -> Result<(), RelationError>;
}

/// One row of a scan: the projected values, and the row's number when it was asked for.
#[derive(Clone, Debug)]
pub struct ScannedRow {
    /// The projected values, in the order of the projection.
    pub values: Vec<Value>,
    /// The row's number; at most 2^47 - 1.
    pub ctid: Option<u64>,
}

/// Where the rows of a scan go.
#[derive(Debug)]
pub struct ScanSink {
    pub(crate) schema: SchemaRef,
    pub(crate) types: Vec<SqlType>,
    pub(crate) batches: mpsc::Sender<RecordBatch>,
}

impl ScanSink {
    /// Takes rows; waits while the query has enough to do. `false` when no more are wanted.
    ///
    /// # Errors
    /// A value that does not fit its column's type.
    pub async fn send(&self, rows: Vec<ScannedRow>) -> Result<bool, RelationError> {
        let batch = values::batch(&self.schema, &self.types, rows)?;
        Ok(self.batches.send(batch).await.is_ok())
    }
}
