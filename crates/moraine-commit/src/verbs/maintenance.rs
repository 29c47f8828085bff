//! Verbs that take away what no snapshot needs: expired snapshots with all that only they saw, and the entries of files
//! that have been deleted. They make no snapshot.

use std::collections::{BTreeMap, BTreeSet};

use moraine_codec::proto::{DataFileValue, DeleteFileValue, TableValue};
use moraine_codec::{Record, Stored, Version};
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, History, Kind, LeadingId, MacroKey,
    MappingKey, PartitionKey, SchemaKey, SchemaVersionKey, SnapshotKey, SortKey, TableColumnStatsKey,
    TableKey, TableScoped, TableStatsKey, TagKey, Versioned, ViewKey,
};
use moraine_store::ReadExt;

use crate::change::Change;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

impl LakeTransaction {
    /// Expires snapshots: they can be asked for no more, and what only they saw goes. Files that go are put on the list of
    /// those to be deleted; see [`crate::lake::Snapshot::scheduled_files`].
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for the newest snapshot.
    pub async fn expire_snapshots(&self, snapshot_ids: &[u64]) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let expired = verb.expire_snapshots(snapshot_ids).await;
        verb.done(expired)
    }

    /// Takes files off the list of those to be deleted, because they have been.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for a file that is not on it.
    pub async fn forget_scheduled_files(&self, file_ids: &[u64]) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let forgotten = verb.forget_scheduled_files(file_ids).await;
        verb.done(forgotten)
    }
}

/// The snapshots that are left.
struct Survivors(BTreeSet<u64>);

impl Survivors {
    /// Whether none of them sees a version.
    fn miss(&self, version: &impl Version) -> bool {
        match version.end_snapshot() {
            Some(end) => self.0.range(version.begin_snapshot()..end).next().is_none(),
            None => false,
        }
    }
}

/// What goes.
#[derive(Default)]
struct Doomed {
    changes: Vec<Change>,
    tables: BTreeMap<u64, TableValue>,
    files: BTreeSet<u64>,
}

impl Work {
    async fn forget_scheduled_files(&mut self, file_ids: &[u64]) -> Result<(), VerbError> {
        let mut changes = Vec::new();
        let ids: BTreeSet<u64> = file_ids.iter().copied().collect();
        for data_file_id in ids {
            let key = GcFileKey { data_file_id };
            if self.read()?.value(&key).await?.is_none() {
                return Err(VerbError::not_found(ObjectKind::ScheduledFile, data_file_id));
            }
            changes.push(Change::Remove { key: key.to_key() });
        }
        self.stage(changes).await
    }

    async fn expire_snapshots(&mut self, snapshot_ids: &[u64]) -> Result<(), VerbError> {
        let expired: BTreeSet<u64> = snapshot_ids.iter().copied().collect();
        let mut left: BTreeSet<u64> = crate::views::snapshots(self.read()?)
            .await?
            .into_iter()
            .map(|snapshot| snapshot.snapshot_id)
            .collect();
        let mut doomed = Doomed::default();
        for snapshot_id in &expired {
            if *snapshot_id == self.state.base.snapshot_id {
                return Err(VerbError::refused(format!(
                    "snapshot {snapshot_id} is the newest, which stays; expire older ones"
                )));
            }
            if !left.remove(snapshot_id) {
                return Err(VerbError::not_found(ObjectKind::Snapshot, snapshot_id));
            }
            let key = SnapshotKey {
                snapshot_id: *snapshot_id,
            };
            doomed.changes.push(Change::Remove { key: key.to_key() });
        }
        // A snapshot that this commit makes sees all that is live now.
        left.insert(self.snapshot_id());
        let survivors = Survivors(left);
        self.doom_tables(&survivors, &mut doomed).await?;
        self.doom_data_files(&survivors, &mut doomed).await?;
        self.doom_delete_files(&survivors, &mut doomed).await?;
        self.doom_contents(&mut doomed).await?;
        self.doom_versions::<SchemaKey>(&survivors, &mut doomed).await?;
        self.doom_versions::<ViewKey>(&survivors, &mut doomed).await?;
        self.doom_versions::<MacroKey>(&survivors, &mut doomed).await?;
        self.doom_tags(&survivors, &mut doomed).await?;
        self.stage(doomed.changes).await?;
        for snapshot_id in expired {
            self.transaction()?.remove_snapshot_changes(snapshot_id);
        }
        Ok(())
    }

    /// Tables of which no version is live, nor seen by a snapshot that is left.
    async fn doom_tables(&self, survivors: &Survivors, doomed: &mut Doomed) -> Result<(), VerbError> {
        let ended = self
            .read()?
            .records::<History<TableKey>>(History::<TableKey>::scan())
            .await?;
        let mut versions: BTreeMap<u64, Vec<TableValue>> = BTreeMap::new();
        for (key, value) in ended {
            versions.entry(key.entity.table_id).or_default().push(value);
        }
        for (table_id, versions) in versions {
            let seen = !versions.iter().all(|version| survivors.miss(version));
            if seen || self.read()?.value(&TableKey { table_id }).await?.is_some() {
                continue;
            }
            for version in &versions {
                let key = History {
                    entity: TableKey { table_id },
                    end_snapshot: version.end_snapshot.unwrap_or_default(),
                };
                doomed.changes.push(Change::Remove { key: key.to_key() });
            }
            doomed
                .tables
                .extend(versions.into_iter().next_back().map(|last| (table_id, last)));
        }
        Ok(())
    }

    async fn doom_data_files(&self, survivors: &Survivors, doomed: &mut Doomed) -> Result<(), VerbError> {
        let mut gone: Vec<(moraine_keys::Key, DataFileValue)> = Vec::new();
        let mut scan = self
            .read()?
            .record_scan::<History<DataFileKey>>(History::<DataFileKey>::scan())
            .await?;
        while let Some((key, value)) = scan.next().await? {
            if survivors.miss(&value) || doomed.tables.contains_key(&value.table_id) {
                gone.push((key.to_key(), value));
            }
        }
        for table_id in doomed.tables.keys() {
            let live = DataFileKey::scan_table(*table_id);
            let live = self.read()?.records::<DataFileKey>(live).await?;
            gone.extend(live.into_iter().map(|(key, value)| (key.to_key(), value)));
        }
        for (key, value) in gone {
            doomed.changes.push(Change::Remove { key });
            let range = FileColumnStatsKey::scan_file(value.table_id, value.data_file_id);
            for key in self.read()?.keys::<FileColumnStatsKey>(range).await? {
                doomed.changes.push(Change::Remove { key: key.to_key() });
            }
            let table = self.any_table(doomed, value.table_id).await?;
            let id = value.data_file_id;
            let scheduled = self
                .scheduled(&table, id, &value.path, value.path_is_relative)
                .await?;
            doomed.changes.push(scheduled);
            doomed.files.insert(id);
        }
        Ok(())
    }

    async fn doom_delete_files(&self, survivors: &Survivors, doomed: &mut Doomed) -> Result<(), VerbError> {
        let is_gone = |doomed: &Doomed, value: &DeleteFileValue| {
            survivors.miss(value)
                || doomed.tables.contains_key(&value.table_id)
                || doomed.files.contains(&value.data_file_id)
        };
        let mut gone: Vec<(moraine_keys::Key, DeleteFileValue)> = Vec::new();
        let mut scan = self
            .read()?
            .record_scan::<History<DeleteFileKey>>(History::<DeleteFileKey>::scan())
            .await?;
        while let Some((key, value)) = scan.next().await? {
            if is_gone(doomed, &value) {
                gone.push((key.to_key(), value));
            }
        }
        let mut scan = self
            .read()?
            .record_scan::<DeleteFileKey>(DeleteFileKey::scan())
            .await?;
        while let Some((key, value)) = scan.next().await? {
            if is_gone(doomed, &value) {
                gone.push((key.to_key(), value));
            }
        }
        for (key, value) in gone {
            doomed.changes.push(Change::Remove { key });
            let table = self.any_table(doomed, value.table_id).await?;
            let id = value.delete_file_id;
            let scheduled = self
                .scheduled(&table, id, &value.path, value.path_is_relative)
                .await?;
            doomed.changes.push(scheduled);
        }
        Ok(())
    }

    /// A version of a table, live or not: its folder is the same in all.
    async fn any_table(&self, doomed: &Doomed, table_id: u64) -> Result<TableValue, VerbError> {
        if let Some(found) = doomed.tables.get(&table_id) {
            return Ok(found.clone());
        }
        if let Some(found) = self.read()?.value(&TableKey { table_id }).await? {
            return Ok(found);
        }
        let range = History::<TableKey>::scan_ids(table_id..=table_id);
        let ended = self.read()?.records::<History<TableKey>>(range).await?;
        let found = ended.into_iter().next_back().map(|(_, value)| value);
        found.ok_or_else(|| VerbError::not_found(ObjectKind::Table, table_id))
    }

    /// What belongs to the tables that go. Their inlined rows go with the commit.
    async fn doom_contents(&self, doomed: &mut Doomed) -> Result<(), VerbError> {
        let table_ids: Vec<u64> = doomed.tables.keys().copied().collect();
        for table_id in table_ids {
            self.doom_all::<History<ColumnKey>>(History::<ColumnKey>::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<History<PartitionKey>>(History::<PartitionKey>::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<History<SortKey>>(History::<SortKey>::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<PartitionKey>(PartitionKey::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<SortKey>(SortKey::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<ColumnKey>(ColumnKey::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<TableStatsKey>(TableStatsKey::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<TableColumnStatsKey>(TableColumnStatsKey::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<SchemaVersionKey>(SchemaVersionKey::scan_table(table_id), doomed)
                .await?;
            self.doom_all::<MappingKey>(MappingKey::scan_table(table_id), doomed)
                .await?;
        }
        Ok(())
    }

    async fn doom_all<K: Kind>(
        &self,
        range: moraine_keys::KeyRange,
        doomed: &mut Doomed,
    ) -> Result<(), VerbError> {
        for key in self.read()?.keys::<K>(range).await? {
            doomed.changes.push(Change::Remove { key: key.to_key() });
        }
        Ok(())
    }

    async fn doom_versions<K>(&self, survivors: &Survivors, doomed: &mut Doomed) -> Result<(), VerbError>
    where
        K: Versioned + Stored,
        K::Value: Version,
    {
        let mut scan = self
            .read()?
            .record_scan::<History<K>>(History::<K>::scan())
            .await?;
        while let Some((key, value)) = scan.next().await? {
            if survivors.miss(&value) {
                doomed.changes.push(Change::Remove { key: key.to_key() });
            }
        }
        Ok(())
    }

    async fn doom_tags(&self, survivors: &Survivors, doomed: &mut Doomed) -> Result<(), VerbError> {
        for (key, mut value) in self.read()?.records::<TagKey>(TagKey::scan()).await? {
            let before = value.entries.len();
            value.entries.retain(|entry| !survivors.miss(entry));
            if value.entries.len() == before {
                continue;
            }
            doomed.changes.push(if value.entries.is_empty() {
                Change::Remove { key: key.to_key() }
            } else {
                Change::Replace {
                    old: key.to_key(),
                    new: Record::Tag(key, value),
                }
            });
        }
        Ok(())
    }
}
