//! Portals: statements with values for their parameters, made by Bind and run by Execute, whole or bit by bit. Outside of a
//! transaction block everything up to a Sync is one transaction.

use std::collections::VecDeque;
use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::DataRow;
use pgwire::messages::extendedquery::{Bind, PortalSuspended};
use pgwire::messages::response::EmptyQueryResponse;
use pgwire::messages::startup::ParameterStatus;

use super::control::Control;
use super::cursors::Cursor;
use super::prepared::Prepared;
use super::run::Framing;
use super::{Block, Next, PendingCopy, Session, reader};
use crate::bind::Output;
use crate::copy::input::CopyReader;
use crate::copy::output::{RowWriter, complete};
use crate::errors::{SqlError, state};
use crate::execute::RowSink;
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::values::parameters::{Parameter, Parameters};
use crate::wire::{Failure, KeptWire, Wire};
use postgres_types::Type;

/// A statement ready to run, or running.
#[derive(Debug)]
pub(super) struct Portal {
    statement: Arc<Prepared>,
    parameters: Arc<Parameters>,
    /// The formats of the result columns as Bind gave them.
    codes: Vec<i16>,
    pub(super) state: PortalState,
    /// Whether it outlives its transaction.
    pub(super) holds: bool,
}

#[derive(Debug)]
pub(super) enum PortalState {
    /// Not run yet.
    New,
    /// A query whose rows are fetched from it.
    Running(Box<Cursor>),
    /// A change that has been made, whose rows are kept, and its tag.
    Kept(VecDeque<DataRow>, String),
    Done,
}

impl Portal {
    /// The portal of a declared cursor.
    pub(super) fn of_cursor(cursor: Cursor, binary: bool, holds: bool) -> Portal {
        Portal {
            statement: Arc::new(Prepared {
                parsed: None,
                description: super::prepared::Description {
                    parameters: Vec::new(),
                    outputs: cursor.outputs().to_vec(),
                },
            }),
            parameters: Arc::new(Parameters::none()),
            codes: if binary { vec![1] } else { Vec::new() },
            state: PortalState::Running(Box::new(cursor)),
            holds,
        }
    }

    pub(super) fn outputs(&self) -> &[Output] {
        match &self.state {
            PortalState::Running(cursor) => cursor.outputs(),
            _ => &self.statement.description.outputs,
        }
    }

    /// The query and the parameters of a portal that has not run yet; `None` for any other portal.
    pub(super) fn bound_query(&self) -> Option<(Arc<Parsed>, Arc<Parameters>)> {
        let parsed = self.statement.parsed.as_ref()?;
        let is_new = matches!(self.state, PortalState::New) && reader::query_of(parsed).is_some();
        is_new.then(|| (Arc::clone(parsed), Arc::clone(&self.parameters)))
    }

    /// Whether all its columns go out in binary form.
    pub(super) fn is_binary(&self) -> bool {
        self.codes == [1]
    }

    /// How its rows go out.
    fn framing(&self) -> Framing {
        Framing {
            described: false,
            codes: self.codes.clone(),
        }
    }
}

impl Session {
    /// Makes a portal.
    pub(crate) fn bind(&mut self, message: Bind) -> Result<(), SqlError> {
        let statement = self.prepared(message.statement_name.as_deref().unwrap_or_default())?;
        let name = message.portal_name.unwrap_or_default();
        if let (Block::Failed(_), Some(parsed)) = (&self.block, &statement.parsed)
            && Control::of(parsed)?.is_none()
        {
            return Err(SqlError::in_failed_transaction());
        }
        if !name.is_empty() && self.portals.contains_key(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(state::DUPLICATE_CURSOR, message));
        }
        let types = &statement.description.parameters;
        check_bind(
            types.len(),
            message.parameters.len(),
            message.parameter_format_codes.len(),
        )?;
        let outputs = statement.description.outputs.len();
        let codes = message.result_column_format_codes;
        if codes.len() > 1 && codes.len() != outputs {
            let message = format!(
                "bind message has {} result formats but query has {outputs} columns",
                codes.len()
            );
            return Err(SqlError::new(state::PROTOCOL_VIOLATION, message));
        }
        let columns = statement.description.outputs.iter().enumerate();
        let mut binary = columns.filter(|(index, _)| is_binary(&codes, *index));
        // Its parts would have to say their types, which the text of a row does not.
        if binary.any(|(_, output)| output.wire_type == Type::RECORD) {
            return Err(SqlError::unsupported("a row in binary form"));
        }
        let formats = message.parameter_format_codes;
        let parameters = message.parameters.into_iter().zip(types).enumerate();
        let parameters = parameters.map(|(index, (bytes, of_type)): (_, (_, &Type))| {
            Parameter::sent(bytes, is_binary(&formats, index), of_type.clone())
        });
        let portal = Portal {
            parameters: Arc::new(Parameters::bound(parameters.collect())),
            statement,
            codes,
            state: PortalState::New,
            holds: false,
        };
        self.portals.insert(name, portal);
        Ok(())
    }

    /// The portal of that name; 34000 where there is none.
    pub(super) fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    pub(super) fn cursor_outputs(&self, name: &str) -> Result<Vec<Output>, SqlError> {
        self.portals
            .get(name)
            .map(|portal| portal.outputs().to_vec())
            .ok_or_else(|| no_cursor(name))
    }

    /// The columns of a portal and, for each, whether it goes out in binary form.
    pub(crate) async fn describe_portal(&mut self, name: &str) -> Result<Vec<(Output, bool)>, SqlError> {
        let portal = self.portal(name)?;
        let codes = portal.codes.clone();
        let outputs = match portal.state {
            PortalState::New => {
                let statement = Arc::clone(&portal.statement);
                self.describe_prepared(&statement).await?.outputs
            }
            _ => portal.outputs().to_vec(),
        };
        let with_form = |(index, output)| (output, is_binary(&codes, index));
        Ok(outputs.into_iter().enumerate().map(with_form).collect())
    }

    /// Runs a portal, or goes on with it, up to `rows_max` rows; 0 is all.
    pub(crate) async fn execute(
        &mut self,
        name: &str,
        rows_max: usize,
        wire: &mut dyn Wire,
    ) -> Result<Next, Failure> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let outcome = self.execute_portal(&mut portal, rows_max, wire).await;
        let ends_transaction = !self.in_block() && self.implicit.is_none();
        // The end of a transaction closes its portals, and this is one of them.
        if outcome.is_ok() && !ends_transaction {
            self.portals.insert(name.to_owned(), portal);
        }
        let reader = outcome?;
        self.tell_settings(wire).await?;
        Ok(match reader {
            None => Next::Ready,
            Some(reader) => {
                let own = self.implicit.take();
                self.copy = Some(PendingCopy {
                    reader,
                    own,
                    rest: VecDeque::new(),
                });
                Next::CopyIn
            }
        })
    }

    async fn execute_portal(
        &mut self,
        portal: &mut Portal,
        rows_max: usize,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        if let PortalState::New = portal.state {
            let Some(parsed) = portal.statement.parsed.clone() else {
                let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
                return wire.feed(empty).await.map(|()| None);
            };
            let gives_rows = !portal.statement.description.outputs.is_empty();
            if rows_max == 0 || !gives_rows {
                portal.state = PortalState::Done;
                let parameters = Arc::clone(&portal.parameters);
                return self
                    .run_extended(&parsed, parameters, &portal.framing(), wire)
                    .await;
            }
            self.start_portal(portal, parsed).await?;
        }
        self.go_on(portal, rows_max, wire).await.map(|()| None)
    }

    /// Starts a portal whose rows are asked for bit by bit.
    async fn start_portal(&mut self, portal: &mut Portal, parsed: Arc<Parsed>) -> Result<(), Failure> {
        let outputs = &portal.statement.description.outputs;
        let shows_rows_of_this_transaction = outputs.iter().any(|output| output.wire_type == Type::TID);
        let parameters = Arc::clone(&portal.parameters);
        if reader::query_of(&parsed).is_some() && !shows_rows_of_this_transaction {
            let cursor = self.open_portal(parsed, parameters).await?;
            portal.state = PortalState::Running(Box::new(cursor));
            return Ok(());
        }
        let mut kept = KeptWire::default();
        self.run_extended(&parsed, parameters, &portal.framing(), &mut kept)
            .await?;
        let mut rows = VecDeque::new();
        let mut tag = String::new();
        for message in kept.take() {
            match message {
                PgWireBackendMessage::DataRow(row) => rows.push_back(row),
                PgWireBackendMessage::CommandComplete(complete) => tag = complete.tag,
                _ => {}
            }
        }
        portal.state = PortalState::Kept(rows, tag);
        Ok(())
    }

    async fn open_portal(
        &mut self,
        parsed: Arc<Parsed>,
        parameters: Arc<Parameters>,
    ) -> Result<Cursor, Failure> {
        let mut transaction = self.take_extended()?;
        let opened = self.open_cursor(parsed, parameters, &mut transaction, false);
        let timeout = self.settings.statement_timeout();
        let cancel = Arc::clone(&self.cancel);
        let opened = super::run::interruptible(&cancel, timeout, opened).await;
        self.give_back(transaction, opened.is_ok());
        opened
    }

    /// Sends the next rows of a started portal.
    async fn go_on(
        &mut self,
        portal: &mut Portal,
        rows_max: usize,
        wire: &mut dyn Wire,
    ) -> Result<(), Failure> {
        let wanted = (rows_max > 0).then_some(rows_max);
        let form = portal.framing().form(portal.outputs().len());
        let suspended = PgWireBackendMessage::PortalSuspended(PortalSuspended::new());
        match &mut portal.state {
            PortalState::New => Err(SqlError::internal("a portal that was not started").into()),
            PortalState::Done => {
                let message = "portal cannot be run anymore";
                Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into())
            }
            PortalState::Kept(rows, tag) => {
                let count = wanted.unwrap_or(usize::MAX).min(rows.len());
                for row in rows.drain(..count) {
                    wire.feed(PgWireBackendMessage::DataRow(row)).await?;
                }
                if wanted == Some(count) {
                    return wire.feed(suspended).await;
                }
                complete(wire, tag).await
            }
            PortalState::Running(cursor) => {
                let outputs = cursor.outputs().to_vec();
                let mut writer = RowWriter::owning(wire, outputs, form);
                let cancel = Arc::clone(&self.cancel);
                let timeout = self.settings.statement_timeout();
                let mut count = 0;
                let fetching = async {
                    while wanted != Some(count) {
                        let rows = cursor.next(wanted.map(|wanted| wanted - count)).await?;
                        if rows.is_empty() {
                            break;
                        }
                        count += rows.len();
                        writer.rows(rows).await?;
                    }
                    Ok(count)
                };
                let count = match super::run::interruptible(&cancel, timeout, fetching).await {
                    Ok(count) => count,
                    Err(failure) => {
                        self.fail_block();
                        return Err(failure);
                    }
                };
                if wanted == Some(count) {
                    drop(writer);
                    return wire.feed(suspended).await;
                }
                writer.finish(u64::try_from(count).unwrap_or(u64::MAX)).await
            }
        }
    }

    /// Runs a statement of the extended protocol whole.
    async fn run_extended(
        &mut self,
        parsed: &Parsed,
        parameters: Arc<Parameters>,
        framing: &Framing,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        if let Some(control) = Control::of(parsed)? {
            let mut implicit = self.implicit.take();
            let outcome = self
                .control(control, &mut implicit, &mut KeptWire::default(), wire)
                .await;
            self.implicit = implicit;
            complete(wire, outcome?).await?;
            return Ok(None);
        }
        let mut transaction = self.take_extended()?;
        let outcome = self
            .guarded(parsed, parameters, framing, &mut transaction, wire)
            .await;
        self.give_back(transaction, outcome.is_ok());
        outcome
    }

    /// The transaction that a message of the extended protocol runs in: the block's, or the one that the next Sync ends.
    fn take_extended(&mut self) -> Result<Box<Transaction>, SqlError> {
        match std::mem::replace(&mut self.block, Block::Failed(None)) {
            Block::Failed(kept) => {
                self.block = Block::Failed(kept);
                Err(SqlError::in_failed_transaction())
            }
            Block::Open(transaction) => Ok(transaction),
            Block::Idle => {
                self.block = Block::Idle;
                Ok(match self.implicit.take() {
                    Some(transaction) => transaction,
                    None => {
                        self.note_beginning();
                        let mut transaction = Box::new(self.new_transaction(false));
                        transaction.is_implicit = true;
                        transaction
                    }
                })
            }
        }
    }

    /// Puts the transaction back after a message that succeeded or failed.
    fn give_back(&mut self, transaction: Box<Transaction>, succeeded: bool) {
        match (&self.block, succeeded) {
            (Block::Idle, true) => self.implicit = Some(transaction),
            (Block::Idle, false) => {
                drop(transaction);
                self.restore();
                self.portals.clear();
            }
            (_, true) => self.block = Block::Open(transaction),
            (_, false) => self.failed(transaction),
        }
    }

    /// Sync: ends the transaction of the messages before it, unless a block is open.
    pub(crate) async fn sync(&mut self) -> Result<(), SqlError> {
        let Some(transaction) = self.implicit.take() else {
            return Ok(());
        };
        self.end_transaction(true);
        if let Err(error) = transaction.commit().await {
            self.restore();
            return Err(error);
        }
        Ok(())
    }

    /// Close of a portal.
    pub(crate) fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Close of a statement, which is no error where there is none.
    pub(crate) fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Tells the client of settings that it follows and that have changed.
    pub(super) async fn tell_settings(&mut self, wire: &mut dyn Wire) -> Result<(), Failure> {
        for (name, value) in self.settings.changes_to_tell() {
            let status = ParameterStatus::new(name.to_owned(), value);
            wire.feed(PgWireBackendMessage::ParameterStatus(status)).await?;
        }
        Ok(())
    }
}

fn check_bind(wanted: usize, given: usize, formats: usize) -> Result<(), SqlError> {
    if formats > 1 && formats != given {
        let message = format!("bind message has {formats} parameter formats but {given} parameters");
        return Err(SqlError::new(state::PROTOCOL_VIOLATION, message));
    }
    if wanted != given {
        let message =
            format!("bind message supplies {given} parameters, but prepared statement requires {wanted}");
        return Err(SqlError::new(state::PROTOCOL_VIOLATION, message));
    }
    Ok(())
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(
        state::INVALID_CURSOR_NAME,
        format!("portal \"{name}\" does not exist"),
    )
}

pub(super) fn no_cursor(name: &str) -> SqlError {
    SqlError::new(
        state::INVALID_CURSOR_NAME,
        format!("cursor \"{name}\" does not exist"),
    )
}

/// The format of field `index`: no code is text, one is for all, else one each.
pub(super) fn is_binary(codes: &[i16], index: usize) -> bool {
    let code = match codes {
        [] => 0,
        [all] => *all,
        each => each.get(index).copied().unwrap_or(0),
    };
    code == 1
}
