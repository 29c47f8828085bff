//! The tables a statement of this session can name: its temporary ones, and those of the lakes as its transaction sees
//! them.

use std::sync::Arc;

use async_trait::async_trait;
use moraine_tables::Relation;

use super::TemporaryTables;
use crate::bind::{Source, TableName, Tables};
use crate::errors::SqlError;
use crate::transaction::Transaction;

/// The schema temporary tables can be named in.
const TEMPORARY_SCHEMA: &str = "pg_temp";

/// The tables of one session and its transaction.
pub(crate) struct SessionTables<'a> {
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) temporary: &'a TemporaryTables,
    /// The schema of unqualified names.
    pub(crate) schema: String,
}

impl SessionTables<'_> {
    /// The temporary table of this name.
    fn temporary(&self, name: &TableName) -> Option<Source> {
        let schema = name.schema.as_deref();
        let may_be = schema.is_none_or(|schema| schema == TEMPORARY_SCHEMA);
        let table = self.temporary.get(&name.table).filter(|_| may_be)?;
        Some(Source::Temporary(Arc::clone(table)))
    }

    /// The schema of the lake that has a table of this name, if any has.
    fn lake(&self, name: &TableName) -> String {
        name.schema.as_ref().unwrap_or(&self.schema).clone()
    }
}

#[async_trait]
impl Tables for SessionTables<'_> {
    async fn find(&mut self, name: &TableName) -> Result<Option<Source>, SqlError> {
        if let Some(temporary) = self.temporary(name) {
            return Ok(Some(temporary));
        }
        let Some(relation) = Relation::parse(&name.table) else {
            return Ok(None);
        };
        let lake = self.lake(name);
        let Some(catalog) = self.transaction.read(&lake).await? else {
            return Ok(None);
        };
        let described = Box::pin(moraine_tables::describe(catalog, relation)).await?;
        Ok(described.map(|schema| Source::Relation {
            lake,
            relation,
            schema: Arc::new(schema),
        }))
    }
}

/// The same tables for a statement that is described and not run. The columns of DuckLake's fixed tables are those of every
/// lake, so to tell them nothing is read of one: a transaction that has read nothing yet does not come to its view here. It
/// waits until its turn is near.
pub(crate) struct DescribedTables<'a>(pub(crate) SessionTables<'a>);

#[async_trait]
impl Tables for DescribedTables<'_> {
    async fn find(&mut self, name: &TableName) -> Result<Option<Source>, SqlError> {
        let lake = self.0.lake(name);
        if self.0.temporary(name).is_none()
            && let Some(relation) = Relation::parse(&name.table)
            && let Some(columns) = moraine_tables::fixed_schema(relation)
            && self.0.transaction.come_near(&lake).await?
        {
            return Ok(Some(Source::Relation {
                lake,
                relation,
                schema: Arc::new(columns),
            }));
        }
        self.0.find(name).await
    }
}
