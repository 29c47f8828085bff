//! Writing a migration: batches that are atomic, each with the head and the marker, a few of them in the air at a time.

use std::collections::VecDeque;

use moraine_codec::proto::{FormatValue, HeadValue, MigrationValue};
use moraine_keys::{FormatKey, HeadKey, Kind, MigrationKey};
use moraine_store::{Bytes, CommitError, Pending, ReadError, ReadExt, Store, Transaction};

use super::error::MigrateError;
use super::step::{Action, Unit};

/// How often a batch is taken to the store; each lost try means that somebody else in this process has committed.
const COMMIT_TRIES_MAX: usize = 10;
/// Batches that are written and not yet durable. What follows builds on them; a crash takes back the last ones whole.
const IN_FLIGHT_BATCHES_MAX: usize = 4;

/// What a batch makes of the stamp and the marker.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stamp<'a> {
    /// The stamp rises; there is no marker.
    Raise(u64),
    /// The marker appears.
    Start(&'a Unit),
    /// The marker says how far the unit has come.
    Step(&'a Unit, &'a Bytes),
    /// The marker stays as it is.
    Within,
    /// The stamp rises and the marker goes, together: "new format and marker" is never seen.
    Finish(&'a Unit),
}

/// Writes batches, expecting that nobody else moves stamp or marker.
pub(crate) struct Writer<'a> {
    store: &'a dyn Store,
    stamped: u64,
    marker: Option<MigrationValue>,
    in_flight: VecDeque<Pending>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(store: &'a dyn Store, stamped: u64, marker: Option<MigrationValue>) -> Self {
        Writer {
            store,
            stamped,
            marker,
            in_flight: VecDeque::new(),
        }
    }

    pub(crate) fn store(&self) -> &'a dyn Store {
        self.store
    }

    /// The format in the stamp.
    pub(crate) fn stamped(&self) -> u64 {
        self.stamped
    }

    /// Writes one batch, and waits until all but the last few are durable.
    pub(crate) async fn write(&mut self, stamp: Stamp<'_>, actions: &[Action]) -> Result<(), MigrateError> {
        let (stamped, marker) = self.after(stamp);
        for _ in 0..COMMIT_TRIES_MAX {
            let mut transaction = self.store.begin()?;
            check_alone(transaction.as_ref(), self.stamped, self.marker.as_ref()).await?;
            move_head(transaction.as_mut()).await?;
            if stamped != self.stamped {
                put(transaction.as_mut(), &FormatKey, &format_value(stamped))?;
            }
            match &marker {
                Some(marker) => put(transaction.as_mut(), &MigrationKey, marker)?,
                None if self.marker.is_some() => transaction.delete(MigrationKey.encode())?,
                None => {}
            }
            for action in actions {
                match action {
                    Action::Put { key, value } => transaction.put(key.clone(), value.clone())?,
                    Action::Delete { key } => transaction.delete(key.clone())?,
                }
            }
            match transaction.commit().await {
                Ok(pending) => {
                    self.in_flight.push_back(pending);
                    (self.stamped, self.marker) = (stamped, marker);
                    return self.settle(IN_FLIGHT_BATCHES_MAX).await;
                }
                Err(CommitError::Conflicted) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(MigrateError::Interfered {
            detail: format!("it was quicker {COMMIT_TRIES_MAX} times in a row"),
        })
    }

    /// Waits until everything that was written is durable.
    pub(crate) async fn settle_all(&mut self) -> Result<(), MigrateError> {
        self.settle(0).await
    }

    async fn settle(&mut self, leave: usize) -> Result<(), MigrateError> {
        while self.in_flight.len() > leave {
            if let Some(oldest) = self.in_flight.pop_front() {
                oldest.durable().await?;
            }
        }
        Ok(())
    }

    fn after(&self, stamp: Stamp<'_>) -> (u64, Option<MigrationValue>) {
        let marker = |unit: &Unit, cursor: Bytes| MigrationValue {
            from_format: unit.from,
            to_format: unit.to,
            cursor,
        };
        match stamp {
            Stamp::Raise(to) => (to, None),
            Stamp::Start(unit) => (self.stamped, Some(marker(unit, Bytes::new()))),
            Stamp::Step(unit, cursor) => (self.stamped, Some(marker(unit, cursor.clone()))),
            Stamp::Within => (self.stamped, self.marker.clone()),
            Stamp::Finish(unit) => (unit.to, None),
        }
    }
}

/// Whether stamp and marker are as they were left. Read through the transaction that writes, so that nothing can come
/// between.
async fn check_alone(
    transaction: &dyn Transaction,
    stamped: u64,
    marker: Option<&MigrationValue>,
) -> Result<(), MigrateError> {
    let stamp = transaction.value(&FormatKey).await?;
    let found = transaction.value(&MigrationKey).await?;
    if stamp.as_ref().map(|stamp| stamp.format_version) == Some(stamped) && found.as_ref() == marker {
        return Ok(());
    }
    Err(MigrateError::Interfered {
        detail: format!("its stamp is {stamp:?} where the format was {stamped}, and its marker {found:?}"),
    })
}

/// Every batch moves the head: readers look for the marker only when it has moved.
async fn move_head(transaction: &mut dyn Transaction) -> Result<(), MigrateError> {
    let head = transaction.value(&HeadKey).await?;
    let head = head.ok_or_else(|| ReadError::corruption(HeadKey.to_string(), "it is gone"))?;
    let next = HeadValue {
        snapshot_id: head.snapshot_id,
        batch_seq: head.batch_seq.saturating_add(1),
    };
    put(transaction, &HeadKey, &next)
}

fn put<K: moraine_codec::Stored>(
    transaction: &mut dyn Transaction,
    key: &K,
    value: &K::Value,
) -> Result<(), MigrateError> {
    let bytes = moraine_codec::encode(key, value)
        .map_err(|error| ReadError::corruption(key.to_string(), error.to_string()))?;
    transaction.put(key.encode(), bytes)?;
    Ok(())
}

fn format_value(format_version: u64) -> FormatValue {
    FormatValue {
        format_version,
        writer_version: concat!("moraine ", env!("CARGO_PKG_VERSION")).to_owned(),
    }
}
