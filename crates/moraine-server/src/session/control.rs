//! BEGIN, COMMIT, ROLLBACK.

use sqlparser::ast::{Statement, TransactionAccessMode, TransactionMode};

use super::{Block, Session, send_warning};
use crate::errors::{SqlError, state};
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::wire::{Failure, KeptWire, Wire};

/// A statement that begins or ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Begin {
        /// What the statement says; `None` where it leaves that to the session.
        read_only: Option<bool>,
    },
    Commit,
    Rollback,
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
                Control::Begin {
                    read_only: access_of(modes),
                }
            }
            Statement::Commit { chain, .. } | Statement::Rollback { chain, .. } if *chain => {
                return Err(SqlError::unsupported("AND CHAIN"));
            }
            Statement::Commit { .. } => Control::Commit,
            Statement::Rollback {
                savepoint: Some(_), ..
            } => {
                return Err(SqlError::unsupported("ROLLBACK TO SAVEPOINT"));
            }
            Statement::Rollback { .. } => Control::Rollback,
            Statement::Savepoint { .. } | Statement::ReleaseSavepoint { .. } => {
                return Err(SqlError::unsupported("SAVEPOINT"));
            }
            _ => return Ok(None),
        }))
    }
}

/// Whether modes say that a transaction is read-only, or is not. Every isolation level is given at least what it asks for: a
/// transaction reads at one pinned view.
pub(super) fn access_of(modes: &[TransactionMode]) -> Option<bool> {
    let access = modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::AccessMode(access) => Some(access),
        TransactionMode::IsolationLevel(_) => None,
    });
    access.map(|access| matches!(access, TransactionAccessMode::ReadOnly))
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
            Control::Begin { read_only } => {
                let read_only = read_only.unwrap_or(self.settings.reads_only());
                let tag = self.begin(read_only, implicit, wire).await?;
                kept.release(wire).await?;
                Ok(tag)
            }
            Control::Commit => match std::mem::replace(&mut self.block, Block::Idle) {
                Block::Open(transaction) => {
                    self.end_temporary(true);
                    if let Err(error) = transaction.commit().await {
                        self.temporary = std::mem::take(&mut self.temporary_before);
                        return Err(error.into());
                    }
                    Ok("COMMIT")
                }
                Block::Failed => {
                    self.end_temporary(false);
                    Ok("ROLLBACK")
                }
                Block::Idle => {
                    if let Some(transaction) = implicit.take() {
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
                        self.temporary = std::mem::take(&mut self.temporary_before);
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
        read_only: bool,
        implicit: &mut Option<Box<Transaction>>,
        wire: &mut dyn Wire,
    ) -> Result<&'static str, Failure> {
        match self.block {
            Block::Idle => {
                // What the message has done so far becomes part of the block.
                let mut transaction = implicit
                    .take()
                    .unwrap_or_else(|| Box::new(self.new_transaction(read_only)));
                if read_only && transaction.has_written() {
                    let message = "transaction read-only mode must be set before any change";
                    return Err(SqlError::new(state::ACTIVE_TRANSACTION, message).into());
                }
                transaction.read_only = read_only;
                self.temporary_before = self.temporary.clone();
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
            Block::Failed => return Err(SqlError::in_failed_transaction().into()),
        }
        Ok("BEGIN")
    }

    /// Gives up whatever is open.
    pub(super) fn roll_back(&mut self) {
        let was_open = matches!(self.block, Block::Open(_));
        self.block = Block::Idle;
        self.copy = None;
        if was_open {
            self.end_temporary(false);
        }
    }

    /// The temporary tables at the end of a transaction. Those of a failed one were restored when it failed.
    fn end_temporary(&mut self, committed: bool) {
        if committed {
            self.temporary_before = self.temporary.clone();
            self.temporary.retain(|_, table| !table.drop_on_commit);
            self.temporary_before.retain(|_, table| !table.drop_on_commit);
        } else if !self.temporary_before.is_empty() || !self.temporary.is_empty() {
            self.temporary = std::mem::take(&mut self.temporary_before);
        }
    }
}

async fn warn_idle(wire: &mut dyn Wire) -> Result<(), Failure> {
    send_warning(wire, "25P01", "there is no transaction in progress").await
}
