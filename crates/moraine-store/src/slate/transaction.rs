//! A SlateDB transaction at snapshot isolation: writes conflict with writes, reads with nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_keys::KeyRange;
use slatedb::DbTransaction;
use tokio::time::Instant;

use super::guard::{KeyName, commit_error, read_error};
use super::{EmptyScan, Inner, RangeName, bounds, settings};
use crate::{CommitError, Pending, Read, ReadError, Scan, Transaction};

pub(crate) struct SlateTransaction {
    inner: Arc<Inner>,
    transaction: DbTransaction,
    /// Keys of the batch, and its bytes.
    keys: Vec<Bytes>,
    bytes: usize,
}

impl SlateTransaction {
    pub(crate) fn new(inner: Arc<Inner>, transaction: DbTransaction) -> Self {
        SlateTransaction {
            inner,
            transaction,
            keys: Vec::new(),
            bytes: 0,
        }
    }

    fn written(&mut self, key: Bytes, value_bytes: usize) {
        self.bytes += key.len() + value_bytes;
        self.keys.push(key);
    }
}

#[async_trait]
impl Read for SlateTransaction {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        self.inner.reads.fetch_add(1, Ordering::Relaxed);
        self.inner
            .guard
            .read(KeyName(key), self.transaction.get(key))
            .await
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let Some(bounds) = bounds(&range) else {
            return Ok(Box::new(EmptyScan));
        };
        let options = settings::scan();
        let call = self.transaction.scan_with_options(bounds, &options);
        let iterator = self.inner.guard.read(RangeName(&range), call).await?;
        Ok(self.inner.counted(iterator, None))
    }
}

#[async_trait]
impl Transaction for SlateTransaction {
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), ReadError> {
        check_key(&key)?;
        self.transaction
            .put(&key, &value)
            .map_err(|error| read_error(error.into(), &KeyName(&key)))?;
        self.written(key, value.len());
        Ok(())
    }

    fn delete(&mut self, key: Bytes) -> Result<(), ReadError> {
        check_key(&key)?;
        self.transaction
            .delete(&key)
            .map_err(|error| read_error(error.into(), &KeyName(&key)))?;
        self.written(key, 0);
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<Pending, CommitError> {
        let SlateTransaction {
            inner,
            transaction,
            keys,
            bytes,
        } = *self;
        // After this point a failure may be one of a batch that was already on its way.
        inner.snapshot()?;
        let begun = Instant::now();
        match inner.guard.run(transaction.commit()).await {
            Ok(None) => Ok(Pending::new(std::future::ready(Ok(())))),
            Ok(Some(handle)) => {
                inner.rewritten.written(keys, bytes);
                inner.flusher.wake();
                Ok(Pending::new(async move {
                    let durable = inner.guard.run(handle.await_durable()).await;
                    durable.map_err(commit_error)?;
                    // A successor would have kept the batch out of the log.
                    inner.ownership.note(begun);
                    Ok(())
                }))
            }
            Err(failure) => Err(commit_error(failure)),
        }
    }
}

/// SlateDB panics on an empty key.
fn check_key(key: &[u8]) -> Result<(), ReadError> {
    if key.is_empty() {
        return Err(ReadError::Invalid {
            detail: "a key is never empty".to_owned(),
        });
    }
    Ok(())
}
