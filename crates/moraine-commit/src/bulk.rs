//! Writing a whole lake at once, from another catalog: batches of records into a store that holds nothing, behind a marker
//! that every reader refuses, until the last batch takes the marker away and stamps format and head. What follows from
//! records is added here as a commit adds it; which records there are, and whether they fit together, is the caller's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use moraine_codec::ImportMarker;
use moraine_codec::format::CHANGELOG_KEYS_MAX;
use moraine_codec::proto::{ChangelogValue, HeadValue, SnapshotValue};
use moraine_keys::{ChangelogKey, FormatKey, HeadKey, KeyRange, Kind, MigrationKey, SnapshotKey};
use moraine_store::{CommitError, MemoryStore, Pending, ReadError, ReadExt, Store, WriteSet};

use crate::catalog::Catalog;
use crate::change::SnapshotChanges;
use crate::error::{CatalogError, CommitFailure, StageError};
use crate::snapshot::{self, Deletions};
use crate::transaction::CatalogTransaction;
use crate::{batch, genesis};

/// Bytes of keys and values from which on a batch is written.
pub const BULK_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Batches that are on their way to durability at the same time.
const BATCHES_PENDING_MAX: usize = 4;
/// Keys that one batch removes when an import is discarded.
const DISCARD_BATCH_KEYS: usize = 16_384;

/// Why a lake could not be written at once.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BulkError {
    /// There is a lake already.
    #[error("there is a lake in this store already; import into an empty place, or remove this one first")]
    NotEmpty,
    /// Another import, or the same of another state of its source, was interrupted here.
    #[error(
        "an import of {found} into this store was interrupted, and this is another import, or its source has changed \
         since; begin anew with --restart"
    )]
    OtherImport {
        /// The catalog that was being imported, in words.
        found: String,
    },
    /// A batch could not be written.
    #[error("the import stopped: {0}")]
    Commit(#[from] CommitError),
    /// The store could not be read.
    #[error("the import stopped: {0}")]
    Read(#[from] ReadError),
    /// A record does not belong under its key.
    #[error("the import stopped: {0}")]
    Encode(#[from] moraine_codec::EncodeError),
}

/// A transaction on a lake of its own in memory that holds nothing: a place to stage records that belong together, by the
/// rules of ordinary commits. [`CatalogTransaction::into_bulk_writes`] takes them out again.
///
/// # Errors
/// [`StageError::Read`] and [`StageError::SlotBusy`], which an empty store in memory does not give.
pub async fn scratch() -> Result<CatalogTransaction, StageError> {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
    let begun = catalog.begin().await;
    let mut transaction = begun.map_err(|error| match error {
        CatalogError::Read(error) => StageError::Read(error),
        error => StageError::Constraint {
            detail: error.to_string(),
        },
    })?;
    transaction.create_lake().await?;
    Ok(transaction)
}

impl CatalogTransaction {
    /// Everything staged, with the directories and column counters that follow from it, and nothing of a snapshot.
    ///
    /// # Errors
    /// [`CommitFailure::Constraint`] for a macro or a mapping whose embedded rows do not make a whole.
    pub async fn into_bulk_writes(self) -> Result<WriteSet, CommitFailure> {
        let (staging, staged) = self.into_staged();
        batch::complete_records(staging, &staged).await
    }
}

/// The record of a snapshot that is not being committed but was, elsewhere: both of its rows, and the facts that this store
/// records of a commit. `deleted_from` names the (table id, data file id) that its delete files are of.
#[must_use]
pub fn snapshot_record(
    value: &SnapshotValue,
    changes: Option<&SnapshotChanges>,
    schema_changed_table_ids: BTreeSet<u64>,
    deleted_from: BTreeSet<(u64, u64)>,
) -> SnapshotValue {
    let merged = changes.map_or_else(|| value.clone(), |changes| snapshot::merge(value, changes));
    let deletions = Deletions {
        files: deleted_from,
        inlined: false,
    };
    snapshot::with_facts(merged, schema_changed_table_ids, &deletions)
}

/// The record of a row of `ducklake_snapshot_changes` that no snapshot belongs to.
#[must_use]
pub fn changes_record(changes: &SnapshotChanges) -> SnapshotValue {
    snapshot::changes_only(changes)
}

/// The keys of `current` that the newest snapshots wrote, as far as the changelog goes back.
#[derive(Debug, Default)]
pub struct Changelog {
    oldest: u64,
    keys: BTreeMap<u64, BTreeSet<Bytes>>,
}

impl Changelog {
    /// A changelog of the snapshots from `oldest` on.
    #[must_use]
    pub fn since(oldest: u64) -> Self {
        Changelog {
            oldest,
            keys: BTreeMap::new(),
        }
    }

    /// Whether the changelog goes back to `snapshot_id`.
    #[must_use]
    pub fn covers(&self, snapshot_id: u64) -> bool {
        snapshot_id >= self.oldest
    }

    /// Notes that `snapshot_id` wrote the current record under `key`.
    pub fn note(&mut self, snapshot_id: u64, key: Bytes) {
        if self.covers(snapshot_id) {
            let keys = self.keys.entry(snapshot_id).or_default();
            // One more than is recorded says that they are too many.
            if keys.len() <= CHANGELOG_KEYS_MAX {
                keys.insert(key);
            }
        }
    }

    /// The records of those snapshots of `existing` that did not write too much to be recorded.
    ///
    /// # Errors
    /// [`moraine_codec::EncodeError`], which no such record gives.
    pub fn writes(self, existing: &BTreeSet<u64>) -> Result<WriteSet, moraine_codec::EncodeError> {
        let mut writes = WriteSet::new();
        for snapshot_id in existing.range(self.oldest..).copied() {
            let keys = self.keys.get(&snapshot_id);
            if keys.is_some_and(|keys| keys.len() > CHANGELOG_KEYS_MAX) {
                continue;
            }
            let value = ChangelogValue {
                keys: keys.into_iter().flatten().cloned().collect(),
            };
            let key = ChangelogKey { snapshot_id };
            writes.put(key.encode(), moraine_codec::encode(&key, &value)?);
        }
        Ok(writes)
    }
}

/// A lake being written at once.
pub struct BulkLoad {
    store: Arc<dyn Store>,
    marker: ImportMarker,
    /// Batches that the store had when this load began; they are not written again.
    resumed: u64,
    /// Batches filled so far, those before [`BulkLoad::resumed`] included.
    filled: u64,
    batch: WriteSet,
    pending: VecDeque<Pending>,
}

impl BulkLoad {
    /// Begins, or resumes the same load where it was interrupted: the caller then adds the same records in the same order
    /// again, and those that are there already are passed over. With `restart` what an interrupted load left is removed
    /// first.
    ///
    /// # Errors
    /// [`BulkError::NotEmpty`] where there is a lake, [`BulkError::OtherImport`]; failures of the store.
    pub async fn begin(
        store: Arc<dyn Store>,
        source: &str,
        fingerprint: &str,
        restart: bool,
    ) -> Result<BulkLoad, BulkError> {
        let found = interrupted(store.as_ref()).await?;
        let mut load = BulkLoad {
            store,
            marker: ImportMarker {
                source: source.to_owned(),
                fingerprint: fingerprint.to_owned(),
                batches: 0,
            },
            resumed: 0,
            filled: 0,
            batch: WriteSet::new(),
            pending: VecDeque::new(),
        };
        match found {
            Found::Nothing => load.mark().await?,
            Found::Import(_) if restart => {
                load.remove_records().await?;
                load.mark().await?;
            }
            Found::Import(Some(marker)) if marker.fingerprint == load.marker.fingerprint => {
                load.resumed = marker.batches;
            }
            Found::Import(marker) => {
                return Err(BulkError::OtherImport {
                    found: marker.map_or_else(|| "another catalog".to_owned(), |marker| marker.source),
                });
            }
            Found::Lake => return Err(BulkError::NotEmpty),
        }
        Ok(load)
    }

    /// Batches that were there already when this load began.
    #[must_use]
    pub fn resumed_batches(&self) -> u64 {
        self.resumed
    }

    /// Adds records. They are in the store once [`BulkLoad::finish`] has returned.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn add(&mut self, writes: WriteSet) -> Result<(), BulkError> {
        for (key, change) in writes {
            if let Some(value) = change {
                self.batch.put(key, value);
            }
            if self.batch.bytes() >= BULK_BATCH_BYTES {
                self.write_batch().await?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and with it the stamps that make all of it a lake whose newest snapshot is `snapshot_id`.
    /// Returns once it is durable.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn finish(mut self, snapshot_id: u64) -> Result<(), BulkError> {
        self.write_batch().await?;
        self.settle(0).await?;
        let mut last = WriteSet::new();
        last.put(
            FormatKey {}.encode(),
            moraine_codec::encode(&FormatKey {}, &genesis::format_stamp())?,
        );
        last.delete(MigrationKey {}.encode());
        self.commit(&last, Some(snapshot_id)).await?;
        self.settle(0).await
    }

    /// Takes everything back: the store holds nothing then.
    ///
    /// # Errors
    /// Failures of the store; the marker is there until all else is gone.
    pub async fn discard(mut self) -> Result<(), BulkError> {
        self.settle(0).await?;
        self.remove_records().await?;
        let mut last = WriteSet::new();
        for key in [MigrationKey {}.encode(), HeadKey {}.encode()] {
            last.delete(key);
        }
        let mut transaction = self.store.begin()?;
        last.apply(transaction.as_mut())?;
        self.pending.push_back(transaction.commit().await?);
        self.settle(0).await
    }

    async fn write_batch(&mut self) -> Result<(), BulkError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.filled += 1;
        if self.filled <= self.resumed {
            return Ok(());
        }
        self.marker.batches = self.filled;
        let mut batch = batch;
        batch.put(
            MigrationKey {}.encode(),
            moraine_codec::encode(&MigrationKey {}, &self.marker.to_value())?,
        );
        self.commit(&batch, None).await?;
        self.settle(BATCHES_PENDING_MAX - 1).await
    }

    /// Puts the marker and nothing else.
    async fn mark(&mut self) -> Result<(), BulkError> {
        let mut first = WriteSet::new();
        first.put(
            MigrationKey {}.encode(),
            moraine_codec::encode(&MigrationKey {}, &self.marker.to_value())?,
        );
        self.commit(&first, None).await?;
        self.settle(0).await
    }

    /// Writes one batch with the head that follows.
    async fn commit(&mut self, writes: &WriteSet, snapshot_id: Option<u64>) -> Result<(), BulkError> {
        let mut transaction = self.store.begin()?;
        let head = transaction.value(&HeadKey {}).await?;
        writes.apply(transaction.as_mut())?;
        let next = HeadValue {
            snapshot_id: snapshot_id
                .or(head.map(|head| head.snapshot_id))
                .unwrap_or_default(),
            batch_seq: head.map_or(0, |head| head.batch_seq.saturating_add(1)),
        };
        transaction.put(HeadKey {}.encode(), moraine_codec::encode(&HeadKey {}, &next)?)?;
        self.pending.push_back(transaction.commit().await?);
        Ok(())
    }

    /// Waits until no more than `left` batches are pending.
    async fn settle(&mut self, left: usize) -> Result<(), BulkError> {
        while self.pending.len() > left {
            if let Some(pending) = self.pending.pop_front() {
                pending.durable().await?;
            }
        }
        Ok(())
    }

    /// Removes all records but the marker and the head.
    async fn remove_records(&mut self) -> Result<(), BulkError> {
        let kept = [MigrationKey {}.encode(), HeadKey {}.encode()];
        loop {
            let view = self.store.view()?;
            let mut scan = view.scan(KeyRange::all()).await?;
            let mut gone = WriteSet::new();
            while gone.len() < DISCARD_BATCH_KEYS
                && let Some((key, _)) = scan.next().await?
            {
                if !kept.contains(&key) {
                    gone.delete(key);
                }
            }
            if gone.is_empty() {
                return Ok(());
            }
            self.commit(&gone, None).await?;
            self.settle(0).await?;
        }
    }
}

impl std::fmt::Debug for BulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoad")
            .field("marker", &self.marker)
            .field("resumed", &self.resumed)
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}

/// What is in a store that a lake is to be written to.
enum Found {
    Nothing,
    Lake,
    /// An import that was interrupted; `None`: one whose marker this version cannot read.
    Import(Option<ImportMarker>),
}

async fn interrupted(store: &dyn Store) -> Result<Found, BulkError> {
    let view = store.view()?;
    if let Some(value) = view.value(&MigrationKey {}).await? {
        return Ok(if ImportMarker::is_import(&value) {
            Found::Import(ImportMarker::from_value(&value))
        } else {
            Found::Lake
        });
    }
    let first = view.scan(KeyRange::all()).await?.next().await?;
    Ok(first.map_or(Found::Nothing, |_| Found::Lake))
}

/// The record of a snapshot as a write.
///
/// # Errors
/// [`moraine_codec::EncodeError`], which no snapshot gives.
pub fn snapshot_write(value: &SnapshotValue) -> Result<(Bytes, Bytes), moraine_codec::EncodeError> {
    let key = SnapshotKey {
        snapshot_id: value.snapshot_id,
    };
    Ok((key.encode(), moraine_codec::encode(&key, value)?))
}
