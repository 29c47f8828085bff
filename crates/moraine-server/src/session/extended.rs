//! The extended query protocol: the same statements, described before they run and answered one by one. Outside of a
//! transaction block each Execute is a transaction of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::DataRow;
use postgres_types::Type;

use super::control::Control;
use super::general::General;
use super::run::{Framing, bind};
use super::{Block, PendingCopy, Session};
use crate::bind::{Bound, Output};
use crate::errors::SqlError;
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::values::parameters::{Parameter, Parameters};
use crate::wire::{Failure, KeptWire};

/// What a prepared statement takes and gives.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) parameters: Vec<Type>,
    /// Empty for a statement without rows.
    pub(crate) outputs: Vec<Output>,
}

/// What became of an Execute.
#[derive(Debug)]
pub(crate) enum Executed {
    /// Rows, and the command's tag without their number.
    Rows(Vec<DataRow>, String),
    /// A command's tag.
    Command(String),
    Began(String),
    Ended(String),
    CopyOut {
        binary: bool,
        columns: usize,
        data: Vec<Bytes>,
    },
    CopyIn {
        binary: bool,
        columns: usize,
    },
}

impl Session {
    /// What a statement takes and gives, without running it.
    pub(crate) async fn describe(&mut self, parsed: &Parsed) -> Result<Description, SqlError> {
        if Control::of(parsed)?.is_some() {
            return Ok(Description {
                parameters: Vec::new(),
                outputs: Vec::new(),
            });
        }
        match std::mem::replace(&mut self.block, Block::Failed) {
            Block::Failed => Err(SqlError::in_failed_transaction()),
            Block::Open(mut transaction) => {
                let outcome = self.describe_in(parsed, &mut transaction).await;
                if outcome.is_ok() {
                    self.block = Block::Open(transaction);
                } else {
                    self.temporary = std::mem::take(&mut self.temporary_before);
                }
                outcome
            }
            Block::Idle => {
                self.block = Block::Idle;
                let mut transaction = self.new_transaction(true);
                let outcome = self.describe_in(parsed, &mut transaction).await;
                transaction.commit().await?;
                outcome
            }
        }
    }

    async fn describe_in(
        &mut self,
        parsed: &Parsed,
        transaction: &mut Transaction,
    ) -> Result<Description, SqlError> {
        if let Some(outputs) = self.utility_outputs(parsed, transaction).await? {
            return Ok(Description {
                parameters: Vec::new(),
                outputs,
            });
        }
        transaction.opens_with(parsed);
        let parameters = Arc::new(Parameters::to_learn());
        let bound = bind(
            parsed,
            Arc::clone(&parameters),
            self.names(),
            transaction,
            &self.temporary,
        )
        .await;
        let bound = match (bound, General::of(parsed)) {
            (Ok(bound), _) => bound,
            (Err(error), Some(general)) if general.takes(&error) => {
                return self.describe_general(&general, transaction).await;
            }
            (Err(error), _) => return Err(error),
        };
        let outputs = match bound {
            Bound::Select(select) => select.outputs,
            _ => Vec::new(),
        };
        Ok(Description {
            parameters: parameters.learned(),
            outputs,
        })
    }

    /// Runs one prepared statement. `codes` are the result formats as Bind sent them.
    pub(crate) async fn execute(
        &mut self,
        parsed: &Parsed,
        parameters: Vec<Parameter>,
        codes: &[i16],
    ) -> Result<Executed, SqlError> {
        self.cancel.start();
        let outcome = self.execute_inner(parsed, parameters, codes).await;
        self.cancel.finish();
        if outcome.is_err() {
            self.fail_block();
        }
        match outcome {
            Ok(executed) => Ok(executed),
            Err(Failure::Sql(error)) => Err(error),
            Err(Failure::Gone(error)) => Err(SqlError::internal(error.to_string())),
        }
    }

    async fn execute_inner(
        &mut self,
        parsed: &Parsed,
        parameters: Vec<Parameter>,
        codes: &[i16],
    ) -> Result<Executed, Failure> {
        let mut kept = KeptWire::default();
        if let Some(control) = Control::of(parsed)? {
            let mut nothing = KeptWire::default();
            let tag = self
                .control(control, &mut None, &mut nothing, &mut kept)
                .await?
                .to_owned();
            return Ok(match control {
                Control::Begin { .. } => Executed::Began(tag),
                Control::Commit | Control::Rollback => Executed::Ended(tag),
            });
        }
        let parameters = Arc::new(Parameters::bound(parameters));
        let framing = Framing {
            described: false,
            binary: is_binary,
            codes: codes.to_vec(),
        };
        match std::mem::replace(&mut self.block, Block::Failed) {
            Block::Failed => Err(SqlError::in_failed_transaction().into()),
            Block::Open(mut transaction) => {
                let outcome = self
                    .guarded(parsed, parameters, &framing, &mut transaction, &mut kept)
                    .await;
                if outcome.is_ok() {
                    self.block = Block::Open(transaction);
                } else {
                    self.temporary = std::mem::take(&mut self.temporary_before);
                }
                self.copy = outcome?.map(|reader| PendingCopy {
                    reader,
                    own: None,
                    rest: VecDeque::new(),
                });
                Ok(answer(kept))
            }
            Block::Idle => {
                self.block = Block::Idle;
                self.autocommit(parsed, parameters, &framing, &mut kept).await?;
                Ok(answer(kept))
            }
        }
    }

    /// Runs a statement in a transaction of its own.
    async fn autocommit(
        &mut self,
        parsed: &Parsed,
        parameters: Arc<Parameters>,
        framing: &Framing,
        kept: &mut KeptWire,
    ) -> Result<(), Failure> {
        self.temporary_before = self.temporary.clone();
        let mut transaction = Box::new(self.new_transaction(false));
        let outcome = self
            .guarded(parsed, parameters, framing, &mut transaction, kept)
            .await;
        if outcome.is_err() {
            self.temporary = std::mem::take(&mut self.temporary_before);
        }
        match outcome? {
            Some(reader) => {
                let own = Some(transaction);
                self.copy = Some(PendingCopy {
                    reader,
                    own,
                    rest: VecDeque::new(),
                });
            }
            None => {
                transaction.commit().await?;
                self.temporary.retain(|_, table| !table.drop_on_commit);
            }
        }
        Ok(())
    }
}

/// The format of field `index`: no code is text, one is for all, else one each.
pub(crate) fn is_binary(codes: &[i16], index: usize) -> bool {
    let code = match codes {
        [] => 0,
        [all] => *all,
        each => each.get(index).copied().unwrap_or(0),
    };
    code == 1
}

/// The answer the messages of a statement amount to.
fn answer(mut kept: KeptWire) -> Executed {
    let mut rows = Vec::new();
    let mut copy_out = None;
    let mut tag = String::new();
    for message in kept.take() {
        match message {
            PgWireBackendMessage::DataRow(row) => rows.push(row),
            PgWireBackendMessage::CopyOutResponse(response) => {
                copy_out = Some((response.format == 1, response.column_formats.len(), Vec::new()));
            }
            PgWireBackendMessage::CopyData(data) => {
                if let Some((_, _, pieces)) = &mut copy_out {
                    pieces.push(data.data);
                }
            }
            PgWireBackendMessage::CopyInResponse(response) => {
                return Executed::CopyIn {
                    binary: response.format == 1,
                    columns: response.column_formats.len(),
                };
            }
            PgWireBackendMessage::CommandComplete(complete) => tag = complete.tag,
            _ => {}
        }
    }
    if let Some((binary, columns, data)) = copy_out {
        return Executed::CopyOut {
            binary,
            columns,
            data,
        };
    }
    if !rows.is_empty() || tag.starts_with("SELECT") || tag.starts_with("SHOW") {
        let verb = tag.rsplit_once(' ').map_or(tag.as_str(), |(verb, _)| verb);
        return Executed::Rows(rows, verb.to_owned());
    }
    Executed::Command(tag)
}
