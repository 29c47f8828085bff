//! Statements that the direct path does not have, handed to the query engine.

use sqlparser::ast::{CopySource, CopyTarget, Query, SetExpr, Statement};

use super::Session;
use super::prepared::Description;
use super::reader::Reader;
use super::run::Framing;
use crate::bind::{CopyFormat, Output, copy_format};
use crate::copy::output::{Form, RowWriter, complete};
use crate::errors::{SqlError, state};
use crate::execute::RowSink;
use crate::general::{self, Change, QuerySink};
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::values::parameters::Parameters;
use crate::wire::{Failure, Wire};

/// A statement the query engine can run.
pub(super) enum General<'s> {
    Query(&'s Query),
    CopyOut(&'s Query, &'s Statement),
    Change(Change<'s>),
}

impl<'s> General<'s> {
    /// The statement, if it is of such a kind.
    pub(super) fn of(parsed: &'s Parsed) -> Option<General<'s>> {
        let Parsed::Sql(statement) = parsed else {
            return None;
        };
        if let Some(change) = Change::of(statement) {
            return Some(General::Change(change));
        }
        match statement.as_ref() {
            Statement::Query(query) if !matches!(query.body.as_ref(), SetExpr::Merge(_)) => {
                Some(General::Query(query))
            }
            Statement::Copy {
                source: CopySource::Query(query),
                to: true,
                target: CopyTarget::Stdout,
                ..
            } => Some(General::CopyOut(query, statement)),
            _ => None,
        }
    }

    /// Whether the binder's refusal means that the statement is not one of a single relation. A name it does not know
    /// may be one of a system catalog or of a common table expression.
    pub(super) fn takes(&self, refusal: &SqlError) -> bool {
        match self {
            General::Change(_) => refusal.state == state::FEATURE_NOT_SUPPORTED,
            // A qualifier that FROM does not give has the same state and stays what it is.
            General::Query(_) | General::CopyOut(..) => {
                refusal.state == state::FEATURE_NOT_SUPPORTED
                    || (refusal.state == state::UNDEFINED_TABLE && refusal.message.starts_with("relation "))
            }
        }
    }
}

impl Session {
    /// Runs a statement through the query engine and answers it.
    pub(super) async fn general(
        &mut self,
        statement: &General<'_>,
        parameters: &Parameters,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<(), Failure> {
        let reader = self.reader();
        let surroundings = reader.surroundings();
        let (query, copy) = match statement {
            General::Query(query) => (query, None),
            General::CopyOut(query, copy) => (query, Some(copy_format(copy)?)),
            General::Change(change) => {
                let changed =
                    Box::pin(general::change(change, transaction, &surroundings, parameters)).await?;
                if let Some((outputs, rows)) = changed.returned {
                    let form = framing.form(outputs.len());
                    let mut writer = RowWriter::new(wire, &outputs, form);
                    writer.rows(rows).await?;
                    return writer.finish_as(&changed.tag).await;
                }
                return complete(wire, &changed.tag).await;
            }
        };
        let mut answer = Answer::Waiting { wire, framing, copy };
        let run = general::run(query, transaction, &surroundings, parameters, &mut answer);
        let rows = Box::pin(run).await?;
        answer.finish(rows).await
    }
}

impl Reader<'_> {
    /// What a statement of the query engine takes and gives.
    pub(super) async fn describe_general(
        &self,
        statement: &General<'_>,
        transaction: &mut Transaction,
        parameters: &Parameters,
    ) -> Result<Description, SqlError> {
        let surroundings = self.surroundings();
        let described = match statement {
            General::Query(query) | General::CopyOut(query, _) => {
                Box::pin(general::describe(query, transaction, &surroundings, parameters)).await?
            }
            General::Change(change) => {
                Box::pin(general::describe_change(
                    change,
                    transaction,
                    &surroundings,
                    parameters,
                ))
                .await?
            }
        };
        Ok(Description {
            parameters: described
                .parameters
                .into_iter()
                .enumerate()
                .map(|(index, sql_type)| {
                    let declared = parameters.declared().get(index).cloned().flatten();
                    declared.unwrap_or_else(|| general::wire_type(sql_type))
                })
                .collect(),
            outputs: match statement {
                General::CopyOut(..) => Vec::new(),
                _ => described.outputs,
            },
        })
    }
}

/// The answer to a query, whose columns are known only once it is planned.
pub(super) enum Answer<'w> {
    Waiting {
        wire: &'w mut dyn Wire,
        framing: &'w Framing,
        copy: Option<CopyFormat>,
    },
    Writing(RowWriter<'w>),
    Done,
}

impl QuerySink for Answer<'_> {
    fn begin(&mut self, outputs: Vec<Output>) -> Result<&mut dyn RowSink, Failure> {
        *self = match std::mem::replace(self, Answer::Done) {
            Answer::Waiting { wire, framing, copy } => {
                let form = match copy {
                    Some(format) => Form::Copy(format),
                    None => framing.form(outputs.len()),
                };
                Answer::Writing(RowWriter::owning(wire, outputs, form))
            }
            other => other,
        };
        match self {
            Answer::Writing(writer) => Ok(writer),
            _ => Err(SqlError::internal("a query answered twice").into()),
        }
    }
}

impl<'w> Answer<'w> {
    /// The rows of a query.
    pub(super) fn new(wire: &'w mut dyn Wire, framing: &'w Framing) -> Answer<'w> {
        Answer::Waiting {
            wire,
            framing,
            copy: None,
        }
    }

    pub(super) async fn finish(self, rows: u64) -> Result<(), Failure> {
        match self {
            Answer::Writing(writer) => writer.finish(rows).await,
            _ => Err(SqlError::internal("a query without an answer").into()),
        }
    }
}
