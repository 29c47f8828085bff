//! BEGIN, COMMIT, ROLLBACK, and the savepoints between them.

use sqlparser::ast::{Statement, TransactionAccessMode, TransactionIsolationLevel, TransactionMode};

use super::{Block, Session, send_warning};
use crate::bind::fold;
use crate::errors::{SqlError, state};
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::wire::{Failure, KeptWire, Wire};

/// A statement that begins or ends a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Control {
    Begin(Modes),
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
}

/// What a statement says of a transaction; `None` where it leaves that to the session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) read_only: Option<bool>,
    pub(super) isolation: Option<&'static str>,
}

impl Control {
    /// The transaction control a statement is, if it is any.
    pub(super) fn of(parsed: &Parsed) -> Result<Option<Control>, SqlError> {
        let Parsed::Sql(statement) = parsed else {
            return Ok(None);
        };
        Ok(Some(match statement.as_ref() {
            Statement::StartTransaction {
                modes,
                statements,
                exception,
                ..
            } => {
                if !statements.is_empty() || exception.is_some() {
                    return Err(SqlError::unsupported("a BEGIN … END block"));
                }
                Control::Begin(Modes::of(modes))
            }
            Statement::Commit { chain, .. } | Statement::Rollback { chain, .. } if *chain => {
                return Err(SqlError::unsupported("AND CHAIN"));
            }
            Statement::Commit { .. } => Control::Commit,
            Statement::Rollback {
                savepoint: Some(name),
                ..
            } => Control::RollbackTo(fold(name)),
            Statement::Rollback { .. } => Control::Rollback,
            Statement::Savepoint { name } => Control::Savepoint(fold(name)),
            Statement::ReleaseSavepoint { name } => Control::Release(fold(name)),
            _ => return Ok(None),
        }))
    }
}

impl Modes {
    /// What modes say. Every isolation level is given at least what it asks for: a transaction reads at one pinned view.
    pub(super) fn of(modes: &[TransactionMode]) -> Modes {
        let mut said = Modes::default();
        for mode in modes {
            match mode {
                TransactionMode::AccessMode(access) => {
                    said.read_only = Some(matches!(access, TransactionAccessMode::ReadOnly));
                }
                TransactionMode::IsolationLevel(level) => {
                    said.isolation = Some(match level {
                        TransactionIsolationLevel::ReadUncommitted => "read uncommitted",
                        TransactionIsolationLevel::ReadCommitted => "read committed",
                        TransactionIsolationLevel::Serializable => "serializable",
                        TransactionIsolationLevel::RepeatableRead | TransactionIsolationLevel::Snapshot => {
                            "repeatable read"
                        }
                    });
                }
            }
        }
        said
    }
}

impl Session {
    /// Begins or ends a transaction; the command's tag.
    pub(super) async fn control(
        &mut self,
        control: Control,
        implicit: &mut Option<Box<Transaction>>,
        kept: &mut KeptWire,
        wire: &mut dyn Wire,
    ) -> Result<&'static str, Failure> {
        match control {
            Control::Begin(modes) => {
                let tag = self.begin(modes, implicit, wire).await?;
                kept.release(wire).await?;
                Ok(tag)
            }
            Control::Savepoint(name) => self.savepoint(name).map(|()| "SAVEPOINT").map_err(Failure::from),
            Control::Release(name) => self.release(&name).map(|()| "RELEASE").map_err(Failure::from),
            Control::RollbackTo(name) => {
                self.roll_back_to(&name)?;
                Ok("ROLLBACK")
            }
            Control::Commit => match std::mem::replace(&mut self.block, Block::Idle) {
                Block::Open(transaction) => {
                    self.end_transaction(true);
                    if let Err(error) = transaction.commit().await {
                        self.restore();
                        return Err(error.into());
                    }
                    Ok("COMMIT")
                }
                Block::Failed(_) => {
                    self.end_transaction(false);
                    Ok("ROLLBACK")
                }
                Block::Idle => {
                    if let Some(transaction) = implicit.take() {
                        self.end_transaction(true);
                        transaction.commit().await?;
                    }
                    kept.release(wire).await?;
                    warn_idle(wire).await?;
                    Ok("COMMIT")
                }
            },
            Control::Rollback => {
                let was_idle = matches!(self.block, Block::Idle);
                self.roll_back();
                if was_idle {
                    if let Some(transaction) = implicit.take() {
                        self.end_transaction(false);
                        transaction.abandon().await?;
                    }
                    kept.release(wire).await?;
                    warn_idle(wire).await?;
                }
                Ok("ROLLBACK")
            }
        }
    }

    async fn begin(
        &mut self,
        modes: Modes,
        implicit: &mut Option<Box<Transaction>>,
        wire: &mut dyn Wire,
    ) -> Result<&'static str, Failure> {
        match self.block {
            Block::Idle => {
                let read_only = modes.read_only.unwrap_or(self.settings.reads_only());
                // What the message has done so far becomes part of the block.
                let mut transaction = match implicit.take() {
                    Some(transaction) => transaction,
                    None => {
                        self.note_beginning();
                        Box::new(self.new_transaction(read_only))
                    }
                };
                if read_only && transaction.has_written() {
                    let message = "transaction read-only mode must be set before any change";
                    return Err(SqlError::new(state::ACTIVE_TRANSACTION, message).into());
                }
                transaction.read_only = read_only;
                transaction.is_implicit = false;
                self.savepoints.clear();
                self.settings.note_modes(Modes {
                    read_only: Some(read_only),
                    ..modes
                });
                self.block = Block::Open(transaction);
            }
            Block::Open(_) => {
                send_warning(
                    wire,
                    state::ACTIVE_TRANSACTION,
                    "there is already a transaction in progress",
                )
                .await?;
            }
            Block::Failed(_) => return Err(SqlError::in_failed_transaction().into()),
        }
        Ok("BEGIN")
    }

    /// Gives up whatever is open.
    pub(super) fn roll_back(&mut self) {
        let was_in_block = self.in_block();
        self.block = Block::Idle;
        self.copy = None;
        if was_in_block {
            self.end_transaction(false);
        }
    }

    /// What of the session ends with a transaction: temporary tables, local settings, savepoints, cursors.
    pub(super) fn end_transaction(&mut self, committed: bool) {
        self.savepoints.clear();
        self.portals.retain(|_, portal| committed && portal.holds);
        if committed {
            self.settings.end_local();
            self.temporary.retain(|_, table| !table.drop_on_commit);
        } else {
            self.restore();
        }
    }
}

async fn warn_idle(wire: &mut dyn Wire) -> Result<(), Failure> {
    send_warning(wire, "25P01", "there is no transaction in progress").await
}
