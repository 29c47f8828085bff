//! The relations a query of this session can name: the lakes' as its transaction sees them, its temporary tables, and the
//! system catalogs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use moraine_sql::{
    NamedRelation, RelationError, RelationName, Relations, Resolved, ScanRequest, ScanSink, ScannedRow,
    SessionFacts, SqlColumn, relation_columns, relation_names,
};
use moraine_tables::Column;
use sqlparser::ast::Query;

use super::Surroundings;
use crate::bind::{Source, TableName, Tables};
use crate::errors::SqlError;
use crate::introspect::{self, VirtualTable};
use crate::session::SessionTables;
use crate::tid::{Ledger, TableKey};
use crate::transaction::{PinnedLakes, Transaction};

/// The relations of one query, all found before it is planned.
pub(super) struct SessionRelations<'t> {
    known: BTreeMap<RelationName, Resolved>,
    stored: Vec<TableKey>,
    lakes: PinnedLakes<'t>,
    ledger: Mutex<&'t mut Ledger>,
}

impl<'t> SessionRelations<'t> {
    pub(super) async fn prepare(
        query: &Query,
        transaction: &'t mut Transaction,
        surroundings: &Surroundings<'_>,
    ) -> Result<SessionRelations<'t>, SqlError> {
        let mut known = BTreeMap::new();
        let mut stored = Vec::new();
        for name in relation_names(query) {
            let found = find(&name, transaction, surroundings, &mut stored).await?;
            known.extend(found.map(|found| (name, found)));
        }
        transaction.settle().await?;
        let (lakes, ledger) = transaction.lakes_and_ledger();
        Ok(SessionRelations {
            known,
            stored,
            lakes,
            ledger: Mutex::new(ledger),
        })
    }

    /// Adds a relation that is there for this query only.
    pub(super) fn add(
        &mut self,
        name: RelationName,
        columns: Vec<SqlColumn>,
        rows: Vec<Vec<moraine_tables::Value>>,
    ) {
        self.known.insert(name, Resolved::Rows { columns, rows });
    }
}

async fn find(
    name: &RelationName,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
    stored: &mut Vec<TableKey>,
) -> Result<Option<Resolved>, SqlError> {
    if let Some((schema, table)) = introspect::system_name(name.schema.as_deref(), &name.name) {
        let found = introspect::system_table(transaction, schema, &table, &surroundings.settings).await?;
        return Ok(found.map(rows_of));
    }
    let table = TableName {
        schema: name.schema.clone(),
        table: name.name.clone(),
    };
    let mut tables = SessionTables {
        transaction,
        temporary: surroundings.temporary,
        schema: surroundings.schema.clone(),
    };
    Ok(match tables.find(&table).await? {
        None => None,
        Some(Source::Temporary(table)) => Some(Resolved::Rows {
            columns: table.columns.iter().map(column).collect(),
            rows: table.rows.clone(),
        }),
        Some(Source::Relation {
            lake,
            relation,
            schema,
        }) => {
            stored.push(TableKey { lake, relation });
            Some(Resolved::Stored {
                handle: stored.len() - 1,
                columns: relation_columns(&schema),
            })
        }
    })
}

/// A column of the tables as the engine knows it.
pub(super) fn column(column: &Column) -> SqlColumn {
    SqlColumn::new(column.name.clone(), column.column_type)
}

fn rows_of(table: VirtualTable) -> Resolved {
    let columns = table.columns().into_iter();
    let columns = columns.map(|(name, sql_type, hidden)| match hidden {
        true => SqlColumn::hidden(name, sql_type),
        false => SqlColumn::new(name, sql_type),
    });
    Resolved::Rows {
        columns: columns.collect(),
        rows: table.rows,
    }
}

#[async_trait]
impl Relations for SessionRelations<'_> {
    async fn resolve(&mut self, name: &RelationName) -> Result<Option<Resolved>, RelationError> {
        Ok(self.known.remove(name))
    }

    async fn scan(&self, request: ScanRequest, sink: ScanSink) -> Result<(), RelationError> {
        let missing = || SqlError::internal("a scan of a relation that was not found");
        let table = self.stored.get(request.handle).ok_or_else(missing)?;
        let catalog = self.lakes.get(&table.lake).ok_or_else(missing)?;
        let mut left = request.limit.unwrap_or(usize::MAX);
        let scan = moraine_tables::scan(catalog, table.relation, &request.projection, &request.filter);
        let mut scan = Box::pin(scan).await?;
        while left > 0
            && let Some(mut rows) = Box::pin(scan.next_batch()).await?
        {
            rows.truncate(left);
            left -= rows.len();
            let mut scanned = Vec::with_capacity(rows.len());
            for row in rows {
                let ctid = match request.with_ctid {
                    true => {
                        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
                        Some(ledger.number(table, &row.address)?)
                    }
                    false => None,
                };
                scanned.push(ScannedRow {
                    values: row.values,
                    ctid,
                });
            }
            if !sink.send(scanned).await? {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// The schemas in which unqualified names are looked for. Of several only the first has tables here.
fn search_path(surroundings: &Surroundings<'_>) -> Vec<String> {
    let mut settings = surroundings.settings.iter();
    let nothing = settings.any(|(name, value)| *name == "search_path" && value.trim().is_empty());
    if nothing {
        return Vec::new();
    }
    vec![surroundings.schema.clone()]
}

/// What functions about the session answer. The list of relations is read only for a query that may ask for it.
pub(super) async fn facts(
    query: &Query,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
) -> Result<SessionFacts, SqlError> {
    let relations = if moraine_sql::names_objects(query) {
        introspect::relations(transaction).await?
    } else {
        Vec::new()
    };
    Ok(SessionFacts {
        version: introspect::version(),
        database: transaction.database().to_owned(),
        search_path: search_path(surroundings),
        user: surroundings.user.clone(),
        pid: surroundings.pid,
        now: transaction.started,
        settings: surroundings
            .settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        relations: relations
            .into_iter()
            .map(|known| NamedRelation {
                oid: known.oid,
                schema: known.schema,
                name: known.name,
                key: known.key,
                index_of: known.index_of,
            })
            .collect(),
    })
}
