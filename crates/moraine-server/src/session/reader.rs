//! Reads of a session, from what they need of it: its settings, its temporary tables, who it is. A cursor reads by a copy
//! of these while the session goes on.

use std::sync::Arc;

use moraine_tables::Value;
use postgres_types::Type;
use sqlparser::ast::{Query, SetExpr, Statement};

use super::TemporaryTables;
use super::general::General;
use super::run::bind;
use super::set_config;
use super::settings::Settings;
use crate::bind::{Bound, Output, OutputKind, SessionNames};
use crate::errors::{SqlError, state};
use crate::execute::{Cell, select};
use crate::general::{self, QuerySink, Surroundings};
use crate::introspect::{self, Context, ResultSet};
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::values::parameters::Parameters;
use crate::wire::Failure;

/// What reads need of a session.
#[derive(Debug, Clone)]
pub(super) struct Reader<'s> {
    pub(super) database: &'s str,
    pub(super) user: &'s str,
    pub(super) pid: i32,
    pub(super) settings: &'s Settings,
    pub(super) temporary: &'s TemporaryTables,
}

/// The same, to keep.
#[derive(Debug)]
pub(super) struct OwnReader {
    database: String,
    user: String,
    pid: i32,
    settings: Settings,
    temporary: TemporaryTables,
}

impl OwnReader {
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader {
            database: &self.database,
            user: &self.user,
            pid: self.pid,
            settings: &self.settings,
            temporary: &self.temporary,
        }
    }
}

/// The query of a statement that only reads; `None` for any other statement.
pub(super) fn query_of(parsed: &Parsed) -> Option<&Query> {
    let Parsed::Sql(statement) = parsed else {
        return None;
    };
    match statement.as_ref() {
        Statement::Query(query) if only_reads(&query.body) && matches!(set_config::of(query), Ok(None)) => {
            Some(query)
        }
        _ => None,
    }
}

fn only_reads(body: &SetExpr) -> bool {
    !matches!(
        body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

impl Reader<'_> {
    pub(super) fn to_own(&self) -> OwnReader {
        OwnReader {
            database: self.database.to_owned(),
            user: self.user.to_owned(),
            pid: self.pid,
            settings: self.settings.clone(),
            temporary: self.temporary.clone(),
        }
    }

    pub(super) fn names(&self) -> SessionNames {
        SessionNames {
            database: self.database.to_owned(),
            schema: self.settings.schema(),
        }
    }

    pub(super) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            temporary: self.temporary,
            schema: self.settings.schema(),
            user: self.user.to_owned(),
            pid: self.pid,
            settings: self.settings.all(),
        }
    }

    /// Runs a statement that only reads; the number of its rows.
    pub(super) async fn read(
        &self,
        parsed: &Parsed,
        parameters: &Arc<Parameters>,
        transaction: &mut Transaction,
        sink: &mut dyn QuerySink,
    ) -> Result<u64, Failure> {
        if let Some(result) = self.result_set(parsed, transaction).await? {
            let count = u64::try_from(result.rows.len()).unwrap_or(u64::MAX);
            let rows = sink.begin(outputs(&result))?;
            rows.rows(cells(result)).await?;
            return Ok(count);
        }
        let bound = bind(
            parsed,
            Arc::clone(parameters),
            self.names(),
            transaction,
            self.temporary,
        )
        .await;
        match (bound, General::of(parsed)) {
            (Ok(Bound::Select(read)), _) => {
                transaction.settle().await?;
                let rows = sink.begin(read.outputs.clone())?;
                select::run(transaction, &read, rows).await
            }
            (Err(error), Some(General::Query(query))) if General::Query(query).takes(&error) => {
                let surroundings = self.surroundings();
                let run = general::run(query, transaction, &surroundings, parameters, sink);
                Box::pin(run).await
            }
            (Err(error), _) => Err(error.into()),
            (Ok(_), _) => Err(SqlError::internal("a change was taken for a read").into()),
        }
    }

    /// The rows of SHOW and of a query of the system catalogs.
    pub(super) async fn result_set(
        &self,
        parsed: &Parsed,
        transaction: &mut Transaction,
    ) -> Result<Option<ResultSet>, SqlError> {
        let Parsed::Sql(statement) = parsed else {
            return Ok(None);
        };
        match statement.as_ref() {
            Statement::ShowVariable { variable } => {
                let words: Vec<String> = variable.iter().map(|ident| ident.value.to_lowercase()).collect();
                self.show(&words).map(Some)
            }
            Statement::Query(query) if introspect::is_about_the_system(query) => {
                let settings = self.settings.all();
                let context = Context {
                    user: self.user,
                    schema: &self.settings.schema(),
                    pid: self.pid,
                    settings: &settings,
                };
                match introspect::run(query, transaction, &context).await {
                    // What the small engine does not have, the query engine may.
                    Err(error)
                        if matches!(
                            error.state,
                            state::FEATURE_NOT_SUPPORTED
                                | state::UNDEFINED_TABLE
                                | state::UNDEFINED_PARAMETER
                        ) =>
                    {
                        Ok(None)
                    }
                    answered => answered.map(Some),
                }
            }
            _ => Ok(None),
        }
    }

    fn show(&self, words: &[String]) -> Result<ResultSet, SqlError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let name = match words.as_slice() {
            ["all"] => {
                let rows = self.settings.all().into_iter();
                let rows = rows
                    .map(|(name, value)| vec![Value::text(name), Value::text(value)])
                    .collect();
                let columns = vec![
                    ("name".to_owned(), Type::TEXT),
                    ("setting".to_owned(), Type::TEXT),
                ];
                return Ok(ResultSet { columns, rows });
            }
            ["transaction", "isolation", "level"] => "transaction_isolation".to_owned(),
            ["time", "zone"] => "timezone".to_owned(),
            words => words.join("."),
        };
        let (name, value) = self.settings.shown(&name)?;
        Ok(ResultSet {
            columns: vec![(name, Type::TEXT)],
            rows: vec![vec![Value::text(value)]],
        })
    }
}

pub(super) fn outputs(result: &ResultSet) -> Vec<Output> {
    let output = |(name, wire_type): &(String, Type)| Output {
        name: name.clone(),
        kind: OutputKind::Constant(Value::Null),
        wire_type: wire_type.clone(),
        type_modifier: -1,
    };
    result.columns.iter().map(output).collect()
}

pub(super) fn cells(result: ResultSet) -> Vec<Vec<Cell>> {
    let rows = result.rows.into_iter();
    rows.map(|row| row.into_iter().map(Cell::Value).collect())
        .collect()
}
