//! Changes staged on top of a pinned view: reads see both merged, savepoints take a failed statement's changes back.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_codec::{EncodeError, Stored};
use moraine_keys::{KeyRange, Kind};

use crate::{Read, ReadError, Scan, View, WriteSet};

/// A pinned view with staged changes on top. Gets and scans see the changes (read-your-writes).
pub struct Staging {
    base: Arc<dyn View>,
    writes: WriteSet,
    /// What each change replaced, in order, so that a savepoint is a length and taking it costs nothing.
    undo: Vec<(Bytes, Option<Option<Bytes>>)>,
}

/// A state of a [`Staging`] to roll back to. Valid until the staging is rolled back to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

impl Staging {
    /// Nothing staged on top of `base`.
    pub fn new(base: Arc<dyn View>) -> Self {
        Staging {
            base,
            writes: WriteSet::new(),
            undo: Vec::new(),
        }
    }

    /// The view below the staged changes.
    pub fn base(&self) -> &Arc<dyn View> {
        &self.base
    }

    /// Stages a put of `value` under `key`.
    ///
    /// # Errors
    /// [`EncodeError`] when the value does not belong under the key.
    pub fn put<K: Stored>(&mut self, key: &K, value: &K::Value) -> Result<(), EncodeError> {
        let bytes = moraine_codec::encode(key, value)?;
        self.put_raw(key.encode(), bytes);
        Ok(())
    }

    /// Stages a put of raw bytes; for records that have no typed value.
    pub fn put_raw(&mut self, key: Bytes, value: Bytes) {
        let before = self.writes.put(key.clone(), value);
        self.undo.push((key, before));
    }

    /// Stages the deletion of `key`.
    pub fn delete<K: Kind>(&mut self, key: &K) {
        self.delete_raw(key.encode());
    }

    /// Stages the deletion of a raw key.
    pub fn delete_raw(&mut self, key: Bytes) {
        let before = self.writes.delete(key.clone());
        self.undo.push((key, before));
    }

    /// The staged changes.
    pub fn writes(&self) -> &WriteSet {
        &self.writes
    }

    /// The staged changes, for good.
    #[must_use]
    pub fn into_writes(self) -> WriteSet {
        self.writes
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of all staged keys and values.
    pub fn bytes(&self) -> usize {
        self.writes.bytes()
    }

    /// The present state on its own, to be read while this one goes on.
    #[must_use]
    pub fn frozen(&self) -> Staging {
        Staging {
            base: Arc::clone(&self.base),
            writes: self.writes.clone(),
            undo: Vec::new(),
        }
    }

    /// The present state, to roll back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    /// Takes back every change staged since `savepoint`.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        while self.undo.len() > savepoint.0 {
            if let Some((key, before)) = self.undo.pop() {
                self.writes.set(key, before);
            }
        }
    }
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staging")
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Read for Staging {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        match self.writes.get(key) {
            Some(change) => Ok(change.clone()),
            None => self.base.get(key).await,
        }
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        let below = self.base.scan(range.clone()).await?;
        Ok(self.writes.overlay(below, &range))
    }
}
