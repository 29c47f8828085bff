//! SAVEPOINT, ROLLBACK TO, RELEASE, and what a failed transaction goes back to.

use std::collections::BTreeSet;

use super::settings::Settings;
use super::{Block, Session, TemporaryTables};
use crate::errors::{SqlError, state};
use crate::transaction::{Mark, Transaction};

/// A state of an open block to go back to.
pub(super) struct Savepoint {
    name: String,
    mark: Mark,
    before: Before,
    portals: BTreeSet<String>,
}

/// What of a session a transaction that fails takes back.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    pub(super) temporary: TemporaryTables,
    pub(super) settings: Settings,
}

impl Session {
    /// A transaction begins: what it changes of the session can be taken back.
    pub(super) fn note_beginning(&mut self) {
        self.before = self.present();
    }

    fn present(&self) -> Before {
        Before {
            temporary: self.temporary.clone(),
            settings: self.settings.clone(),
        }
    }

    /// Takes back what the transaction has changed of the session.
    pub(super) fn restore(&mut self) {
        let before = std::mem::take(&mut self.before);
        self.take_over(before.clone());
        self.before = before;
    }

    fn take_over(&mut self, before: Before) {
        self.temporary = before.temporary;
        self.settings.replace(before.settings);
    }

    /// A statement of the block has failed. Only where there is a savepoint the transaction is kept; else what it holds is
    /// free at once.
    pub(super) fn failed(&mut self, transaction: Box<Transaction>) {
        self.copy = None;
        if self.savepoints.is_empty() {
            drop(transaction);
            self.restore();
            self.block = Block::Failed(None);
        } else {
            self.block = Block::Failed(Some(transaction));
        }
    }

    /// SAVEPOINT.
    pub(super) fn savepoint(&mut self, name: String) -> Result<(), SqlError> {
        let Block::Open(transaction) = &self.block else {
            return Err(self.outside("SAVEPOINT"));
        };
        let savepoint = Savepoint {
            name,
            mark: transaction.mark(),
            before: self.present(),
            portals: self.portals.keys().cloned().collect(),
        };
        self.savepoints.push(savepoint);
        Ok(())
    }

    /// RELEASE: what was done since the savepoint stays, the savepoint and later ones go.
    pub(super) fn release(&mut self, name: &str) -> Result<(), SqlError> {
        let Block::Open(_) = &self.block else {
            return Err(self.outside("RELEASE SAVEPOINT"));
        };
        let index = self.position_of(name)?;
        self.savepoints.truncate(index);
        Ok(())
    }

    /// ROLLBACK TO: takes back what was done since the savepoint, which stays.
    pub(super) fn roll_back_to(&mut self, name: &str) -> Result<(), SqlError> {
        if matches!(self.block, Block::Idle) {
            return Err(self.outside("ROLLBACK TO SAVEPOINT"));
        }
        let index = self.position_of(name)?;
        self.savepoints.truncate(index + 1);
        let (Block::Open(mut transaction) | Block::Failed(Some(mut transaction))) =
            std::mem::replace(&mut self.block, Block::Failed(None))
        else {
            return Err(SqlError::internal("a savepoint without a transaction"));
        };
        let Some(savepoint) = self.savepoints.last() else {
            return Err(SqlError::internal("a savepoint that is gone"));
        };
        transaction.roll_back_to(&savepoint.mark);
        self.portals.retain(|name, _| savepoint.portals.contains(name));
        let before = savepoint.before.clone();
        self.take_over(before);
        self.copy = None;
        self.block = Block::Open(transaction);
        Ok(())
    }

    fn position_of(&self, name: &str) -> Result<usize, SqlError> {
        let found = self
            .savepoints
            .iter()
            .rposition(|savepoint| savepoint.name == name);
        found.ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(state::INVALID_SAVEPOINT, message)
        })
    }

    fn outside(&self, statement: &str) -> SqlError {
        match self.block {
            Block::Failed(_) => SqlError::in_failed_transaction(),
            _ => {
                let message = format!("{statement} can only be used in transaction blocks");
                SqlError::new(state::NO_ACTIVE_TRANSACTION, message)
            }
        }
    }
}
