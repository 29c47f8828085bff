//! The relations of one catalog transaction.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use moraine_commit::CatalogTransaction;
use moraine_tables::{Relation, RelationSchema, Row, RowAddress};

use crate::error::RelationError;
use crate::relations::{RelationName, Relations, Resolved, ScanRequest, ScanSink, ScannedRow, SqlColumn};

/// The `ducklake_*` relations and the inlined tables as a transaction sees them, its own changes included. Names may be
/// qualified by the given schema.
#[derive(Debug)]
pub struct CatalogRelations<'a> {
    transaction: &'a CatalogTransaction,
    schema: String,
    resolved: Vec<Relation>,
    addresses: Mutex<Addresses>,
}

#[derive(Debug, Default)]
struct Addresses {
    rows: Vec<(Relation, RowAddress)>,
    numbers: HashMap<(Relation, RowAddress), u64>,
}

impl<'a> CatalogRelations<'a> {
    /// The relations of a transaction, in a schema of this name.
    #[must_use]
    pub fn new(transaction: &'a CatalogTransaction, schema: impl Into<String>) -> Self {
        Self {
            transaction,
            schema: schema.into(),
            resolved: Vec::new(),
            addresses: Mutex::default(),
        }
    }

    /// The row of that number, when a query of these relations has shown it.
    #[must_use]
    pub fn address(&self, number: u64) -> Option<(Relation, RowAddress)> {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.rows.get(usize::try_from(number).ok()?).cloned()
    }

    fn number(&self, relation: Relation, address: RowAddress) -> u64 {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let next = u64::try_from(addresses.rows.len()).unwrap_or(u64::MAX);
        let key = (relation, address);
        if let Some(number) = addresses.numbers.get(&key) {
            return *number;
        }
        addresses.rows.push(key.clone());
        addresses.numbers.insert(key, next);
        next
    }
}

/// The columns of a relation of the tables.
#[must_use]
pub fn relation_columns(schema: &RelationSchema) -> Vec<SqlColumn> {
    schema
        .columns
        .iter()
        .map(|column| SqlColumn::new(column.name.clone(), column.column_type))
        .collect()
}

#[async_trait]
impl Relations for CatalogRelations<'_> {
    async fn resolve(&mut self, name: &RelationName) -> Result<Option<Resolved>, RelationError> {
        if name.schema.as_ref().is_some_and(|schema| *schema != self.schema) {
            return Ok(None);
        }
        let Some(relation) = Relation::parse(&name.name) else {
            return Ok(None);
        };
        let Some(schema) = Box::pin(moraine_tables::describe(self.transaction, relation)).await? else {
            return Ok(None);
        };
        self.resolved.push(relation);
        Ok(Some(Resolved::Stored {
            handle: self.resolved.len() - 1,
            columns: relation_columns(&schema),
        }))
    }

    async fn scan(&self, request: ScanRequest, sink: ScanSink) -> Result<(), RelationError> {
        let Some(relation) = self.resolved.get(request.handle).copied() else {
            return Err("a scan of a relation that was not resolved".into());
        };
        let number = |row: &Row| {
            request
                .with_ctid
                .then(|| self.number(relation, row.address.clone()))
        };
        let mut left = request.limit.unwrap_or(usize::MAX);
        let mut scan = Box::pin(moraine_tables::scan(
            self.transaction,
            relation,
            &request.projection,
            &request.filter,
        ))
        .await?;
        while left > 0
            && let Some(mut rows) = Box::pin(scan.next_batch()).await?
        {
            rows.truncate(left);
            left -= rows.len();
            let rows = rows.into_iter().map(|row| ScannedRow {
                ctid: number(&row),
                values: row.values,
            });
            if !sink.send(rows.collect()).await? {
                break;
            }
        }
        Ok(())
    }
}
