//! Dropping indexes that other software made: their definitions end in one commit, then their entries go, a batch at a time.
//! Whoever is interrupted between leaves entries that nobody reads; dropping the index again takes them away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use moraine_codec::Record;
use moraine_codec::proto::{IndexValue, SchemaVersionValue, SnapshotValue};
use moraine_keys::{
    HeadKey, History, IndexDefinitionKey, Kind, LeadingId, MultiIndexKey, SchemaVersionKey, SnapshotKey,
    UniqueIndexKey,
};
use moraine_store::{CommitError, KeyRange, ReadExt};

use crate::catalog::Catalog;
use crate::change::{Change, SnapshotChanges};
use crate::error::{CommitFailure, StageError};
use crate::premise;

/// Entries that one batch takes away.
const SWEEP_ENTRIES_MAX: usize = 4096;

/// What was dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DroppedIndexes {
    /// The snapshot that ended the definitions; `None` where they had ended before.
    pub snapshot_id: Option<u64>,
    /// The indexes' names.
    pub names: Vec<String>,
    /// Entries taken away.
    pub entries: u64,
}

impl Catalog {
    /// Drops every index of one of these names, with its entries, in every table that has one.
    ///
    /// # Errors
    /// [`CommitFailure::Constraint`] for a name that no index has, naming those there are; whatever a commit comes to.
    pub async fn drop_indexes(
        self: &Arc<Self>,
        names: &BTreeSet<String>,
    ) -> Result<DroppedIndexes, CommitFailure> {
        let view = self.store().view()?;
        let is_named = |index: &IndexValue| names.contains(&index.index_name);
        let live = view
            .records::<IndexDefinitionKey>(IndexDefinitionKey::scan())
            .await?;
        let ended = view
            .records::<History<IndexDefinitionKey>>(History::<IndexDefinitionKey>::scan())
            .await?;
        let all = live.iter().map(|(_, index)| index);
        let all: Vec<&IndexValue> = all.chain(ended.iter().map(|(_, index)| index)).collect();
        for name in names {
            if !all.iter().any(|index| index.index_name == *name) {
                return Err(no_such_index(name, &live));
            }
        }
        let ids: BTreeSet<u64> = all
            .into_iter()
            .filter(|index| is_named(index))
            .map(|index| index.index_id)
            .collect();
        let doomed: Vec<_> = live.into_iter().filter(|(_, index)| is_named(index)).collect();
        let mut dropped = DroppedIndexes {
            names: names.iter().cloned().collect(),
            ..DroppedIndexes::default()
        };
        if !doomed.is_empty() {
            dropped.snapshot_id = self.end_definitions(doomed).await?;
        }
        for index_id in ids {
            dropped.entries += self.sweep(UniqueIndexKey::scan_ids(index_id..=index_id)).await?;
            dropped.entries += self.sweep(MultiIndexKey::scan_ids(index_id..=index_id)).await?;
        }
        Ok(dropped)
    }

    async fn end_definitions(
        self: &Arc<Self>,
        doomed: Vec<(IndexDefinitionKey, IndexValue)>,
    ) -> Result<Option<u64>, CommitFailure> {
        let mut transaction = self.begin().await.map_err(crate::genesis::begin_failure)?;
        let newest = transaction.newest_snapshot_id().unwrap_or_default();
        let before = SnapshotKey { snapshot_id: newest };
        let before = transaction.read().value(&before).await?.unwrap_or_default();
        let (snapshot_id, schema_version) = (newest + 1, before.schema_version + 1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let snapshot = SnapshotValue {
            snapshot_id,
            snapshot_time_micros: i64::try_from(now.as_micros()).unwrap_or(i64::MAX),
            schema_version,
            next_catalog_id: before.next_catalog_id,
            next_file_id: before.next_file_id,
            ..SnapshotValue::default()
        };
        transaction.insert_snapshot(snapshot).await?;
        let tables: BTreeSet<u64> = doomed.iter().map(|(key, _)| key.table_id).collect();
        let made: Vec<String> = tables
            .iter()
            .map(|table| format!("altered_table:{table}"))
            .collect();
        transaction
            .set_snapshot_changes(SnapshotChanges {
                snapshot_id,
                changes_made: Some(made.join(",")),
                ..SnapshotChanges::default()
            })
            .await?;
        let ends = doomed.into_iter().map(|(key, index)| {
            let ended = IndexValue {
                end_snapshot: Some(snapshot_id),
                ..index
            };
            Change::Replace {
                old: key.to_key(),
                new: Record::IndexDefinition(key, ended),
            }
        });
        let versions = tables.into_iter().map(|table_id| {
            let key = SchemaVersionKey {
                table_id,
                begin_snapshot: snapshot_id,
            };
            let value = SchemaVersionValue {
                schema_version,
                ..SchemaVersionValue::default()
            };
            Change::Insert(Record::SchemaVersion(key, value))
        });
        transaction.stage(ends.chain(versions).collect()).await?;
        Ok(transaction.commit().await?.snapshot_id)
    }

    /// Takes away every record in `range`, and says how many there were. Each batch moves the head.
    async fn sweep(&self, range: KeyRange) -> Result<u64, CommitFailure> {
        let mut swept = 0;
        loop {
            let mut transaction = self.store().begin()?;
            let mut keys = Vec::new();
            let mut scan = transaction.scan(range.clone()).await?;
            while keys.len() < SWEEP_ENTRIES_MAX
                && let Some((key, _)) = scan.next().await?
            {
                keys.push(key);
            }
            drop(scan);
            if keys.is_empty() {
                return Ok(swept);
            }
            let count = keys.len() as u64;
            keys.into_iter().try_for_each(|key| transaction.delete(key))?;
            let head = transaction.value(&HeadKey {}).await?;
            let next = premise::next_head(head.as_ref(), None);
            transaction.put(HeadKey {}.encode(), moraine_codec::encode(&HeadKey {}, &next)?)?;
            match transaction.commit().await {
                Ok(pending) => pending.durable().await?,
                // Somebody else's batch came first; these entries are still there.
                Err(CommitError::Conflicted) => continue,
                Err(error) => return Err(error.into()),
            }
            swept += count;
        }
    }
}

fn no_such_index(name: &str, live: &[(IndexDefinitionKey, IndexValue)]) -> CommitFailure {
    let there: Vec<String> = live
        .iter()
        .map(|(_, index)| format!("'{}' of table {}", index.index_name, index.table_id))
        .collect();
    let there = match there.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are {}", there.join(", ")),
    };
    StageError::Constraint {
        detail: format!("this lake has no index '{name}'; {there}"),
    }
    .into()
}
