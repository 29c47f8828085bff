//! The census: what a store holds, by subspace and by kind of record, for people who look into it.

use std::collections::BTreeMap;

use bytes::Bytes;
use moraine_codec::proto::{FormatValue, HeadValue, MigrationValue};
use moraine_keys::{FormatKey, HeadKey, Key, KeyRange, Kind, MigrationKey, Subspace};
use slatedb::manifest::VersionedManifest;

use crate::slate::{SlateReader, SlateStore};
use crate::{Read, ReadError};

/// Unknown keys kept as samples.
const UNKNOWN_SAMPLES_MAX: usize = 8;

/// What a store holds at one state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Census {
    /// `sys/format`.
    pub format: Option<FormatValue>,
    /// `sys/head`.
    pub head: Option<HeadValue>,
    /// `sys/migration`, while one is under way.
    pub migration: Option<MigrationValue>,
    /// Records by kind (see [`Key::kind_name`]), only kinds that occur.
    pub kinds: BTreeMap<&'static str, Tally>,
    /// Records by subspace, only subspaces that occur.
    pub subspaces: BTreeMap<Subspace, Tally>,
    /// Records whose key is of no kind this version knows.
    pub unknown: Tally,
    /// The first unknown keys, at most eight, in full.
    pub unknown_keys: Vec<Bytes>,
}

/// Number and size of some records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there are.
    pub records: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
}

impl Tally {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        self.key_bytes += key.len() as u64;
        self.value_bytes += value.len() as u64;
    }
}

/// Counts every record with one scan, so that all numbers belong to one state.
///
/// # Errors
/// See [`ReadError`]; an undecodable `sys/format`, `sys/head` or `sys/migration` is corruption.
pub async fn take(read: &dyn Read) -> Result<Census, ReadError> {
    let mut census = Census::default();
    let mut scan = read.scan(KeyRange::all()).await?;
    while let Some((key, value)) = scan.next().await? {
        census.add(&key, &value)?;
    }
    Ok(census)
}

impl Census {
    fn add(&mut self, bytes: &Bytes, value: &Bytes) -> Result<(), ReadError> {
        let Ok(key) = Key::decode(bytes) else {
            self.unknown.add(bytes, value);
            if self.unknown_keys.len() < UNKNOWN_SAMPLES_MAX {
                self.unknown_keys.push(bytes.clone());
            }
            return Ok(());
        };
        self.kinds.entry(key.kind_name()).or_default().add(bytes, value);
        self.subspaces
            .entry(key.subspace())
            .or_default()
            .add(bytes, value);
        if key == FormatKey.to_key() {
            self.format = Some(moraine_codec::decode(&FormatKey, value)?);
        } else if key == HeadKey.to_key() {
            self.head = Some(moraine_codec::decode(&HeadKey, value)?);
        } else if key == MigrationKey.to_key() {
            self.migration = Some(moraine_codec::decode(&MigrationKey, value)?);
        }
        Ok(())
    }
}

/// What the SSTs of one subspace take in the object store. What is only in the write-ahead log is not in them yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubspaceSize {
    /// The first byte of its keys.
    pub prefix: Bytes,
    /// The subspace, where this version knows it.
    pub subspace: Option<Subspace>,
    /// SSTs, in level 0 and below.
    pub ssts: u64,
    /// Their bytes, estimated from the manifest.
    pub bytes: u64,
}

/// The shape of the database below the records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageSize {
    /// Sizes by subspace, in key order.
    pub subspaces: Vec<SubspaceSize>,
    /// Write-ahead log objects that an opener would replay, at most.
    pub wal_objects: u64,
    /// The number of the newest manifest.
    pub manifest: u64,
    /// How many writers have opened the store so far.
    pub writer_epoch: u64,
}

impl SlateStore {
    /// Sizes by subspace, from the newest manifest this process knows; reads nothing.
    #[must_use]
    pub fn storage_size(&self) -> StorageSize {
        storage_size(&self.manifest())
    }
}

impl SlateReader {
    /// Sizes by subspace, from the newest manifest this process knows; reads nothing.
    #[must_use]
    pub fn storage_size(&self) -> StorageSize {
        storage_size(&self.manifest())
    }
}

fn storage_size(manifest: &VersionedManifest) -> StorageSize {
    let subspaces = manifest.segments().iter().map(|segment| {
        let runs = segment.compacted().iter();
        let in_runs = runs.clone().map(|run| run.sst_views().len() as u64).sum::<u64>();
        SubspaceSize {
            prefix: segment.prefix().clone(),
            subspace: Subspace::ALL
                .iter()
                .copied()
                .find(|known| segment.prefix().as_ref() == [known.byte()]),
            ssts: segment.l0().len() as u64 + in_runs,
            bytes: segment.l0().iter().map(|sst| sst.estimate_size()).sum::<u64>()
                + runs.map(|run| run.estimate_size()).sum::<u64>(),
        }
    });
    let mut subspaces: Vec<_> = subspaces.collect();
    subspaces.sort_by(|left, right| left.prefix.cmp(&right.prefix));
    StorageSize {
        subspaces,
        wal_objects: manifest
            .next_wal_sst_id()
            .saturating_sub(manifest.replay_after_wal_id() + 1),
        manifest: manifest.id(),
        writer_epoch: manifest.writer_epoch(),
    }
}
