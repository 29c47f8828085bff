//! Reading the catalog at one state, in records: by id with a get, by name through the directories where the state is the
//! newest, and by going through versions where it is an earlier one.

use moraine_codec::format::Format;
use moraine_codec::proto::{
    ColumnValue, MacroValue, OptionScopeValue, PartitionValue, SchemaValue, SortValue, TableStatsValue,
    TableValue, TagValue, ViewValue,
};
use moraine_codec::{Stored, Version};
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, FormatKey, History, KeyRange, Kind, LeadingId, MacroKey, NameKey,
    OptionKey, PartitionKey, SchemaKey, SortKey, TableKey, TableScoped, TableStatsKey, TagKey, Versioned,
    ViewKey,
};
use moraine_store::{ReadError, ReadExt, Staging};

use crate::lake::entities::same_name;
use crate::lake::files::VersionScan;

/// The scope kinds of `current/option`.
pub(crate) const GLOBAL_SCOPE: u64 = 0;
pub(crate) const SCHEMA_SCOPE: u64 = 1;
pub(crate) const TABLE_SCOPE: u64 = 2;

/// Which directories a store has, by its format. One that it has not answers nothing, and must not be written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StoredDirectories {
    pub(crate) names: bool,
    pub(crate) delete_targets: bool,
}

impl StoredDirectories {
    pub(crate) async fn of<R: ReadExt + ?Sized>(read: &R) -> Result<Self, ReadError> {
        let stamp = read.value(&FormatKey {}).await?;
        let version = stamp.map_or(0, |stamp| stamp.format_version);
        Ok(StoredDirectories {
            names: version >= Format::NameDirectory.number(),
            delete_targets: version >= Format::DeleteTargetDirectory.number(),
        })
    }
}

/// One state of the catalog.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) read: &'a Staging,
    pub(crate) directories: StoredDirectories,
    pub(crate) snapshot_id: u64,
    /// Whether nothing newer is in `read`: then every current record is visible, and nothing that has ended.
    pub(crate) newest: bool,
}

impl Reading<'_> {
    /// The versions of a kind, within two ranges, that this state sees.
    async fn versions<K>(&self, current: KeyRange, ended: KeyRange) -> Result<VersionScan<K>, ReadError>
    where
        K: Versioned + Stored,
        K::Value: Version,
    {
        let ended = if self.newest {
            None
        } else {
            Some(self.read.record_scan::<History<K>>(ended).await?)
        };
        Ok(VersionScan {
            current: Some(self.read.record_scan::<K>(current).await?),
            ended,
            snapshot_id: self.snapshot_id,
        })
    }

    /// The version of one entity that this state sees.
    async fn version<K>(&self, key: &K, ended: KeyRange) -> Result<Option<K::Value>, ReadError>
    where
        K: Versioned + Stored,
        K::Value: Version,
    {
        let live = self.read.value(key).await?;
        if let Some(live) = live.filter(|live| live.is_visible_at(self.snapshot_id)) {
            return Ok(Some(live));
        }
        if self.newest {
            return Ok(None);
        }
        let mut scan = self.read.record_scan::<History<K>>(ended).await?;
        while let Some((_, value)) = scan.next().await? {
            if value.is_visible_at(self.snapshot_id) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    pub(crate) async fn schemas(&self) -> Result<Vec<SchemaValue>, ReadError> {
        let scan = self.versions::<SchemaKey>(SchemaKey::scan(), History::<SchemaKey>::scan());
        sorted(scan.await?.all().await?, |schema| schema.schema_id)
    }

    pub(crate) async fn tables(&self) -> Result<Vec<TableValue>, ReadError> {
        let scan = self.versions::<TableKey>(TableKey::scan(), History::<TableKey>::scan());
        sorted(scan.await?.all().await?, |table| table.table_id)
    }

    pub(crate) async fn views(&self) -> Result<Vec<ViewValue>, ReadError> {
        let scan = self.versions::<ViewKey>(ViewKey::scan(), History::<ViewKey>::scan());
        sorted(scan.await?.all().await?, |view| view.view_id)
    }

    pub(crate) async fn macros(&self) -> Result<Vec<MacroValue>, ReadError> {
        let scan = self.versions::<MacroKey>(MacroKey::scan(), History::<MacroKey>::scan());
        sorted(scan.await?.all().await?, |found| found.macro_id)
    }

    pub(crate) async fn columns(&self, table_id: u64) -> Result<Vec<ColumnValue>, ReadError> {
        let ended = History::<ColumnKey>::scan_table(table_id);
        let scan = self.versions::<ColumnKey>(ColumnKey::scan_table(table_id), ended);
        sorted(scan.await?.all().await?, |column| column.column_id)
    }

    /// The partitioning of a table. Of several, which only clients write that know no better, the newest.
    pub(crate) async fn partition(&self, table_id: u64) -> Result<Option<PartitionValue>, ReadError> {
        let ended = History::<PartitionKey>::scan_table(table_id);
        let scan = self.versions::<PartitionKey>(PartitionKey::scan_table(table_id), ended);
        let found = scan.await?.all().await?;
        Ok(found.into_iter().max_by_key(|found| found.partition_id))
    }

    /// The sort order of a table; of several the newest.
    pub(crate) async fn sort(&self, table_id: u64) -> Result<Option<SortValue>, ReadError> {
        let ended = History::<SortKey>::scan_table(table_id);
        let scan = self.versions::<SortKey>(SortKey::scan_table(table_id), ended);
        let found = scan.await?.all().await?;
        Ok(found.into_iter().max_by_key(|found| found.sort_id))
    }

    pub(crate) async fn data_files(&self, table_id: u64) -> Result<VersionScan<DataFileKey>, ReadError> {
        let ended = History::<DataFileKey>::scan_table(table_id);
        self.versions(DataFileKey::scan_table(table_id), ended).await
    }

    pub(crate) async fn delete_files(&self, table_id: u64) -> Result<VersionScan<DeleteFileKey>, ReadError> {
        let ended = History::<DeleteFileKey>::scan_table(table_id);
        self.versions(DeleteFileKey::scan_table(table_id), ended).await
    }

    pub(crate) async fn schema_by_id(&self, schema_id: u64) -> Result<Option<SchemaValue>, ReadError> {
        let ended = History::<SchemaKey>::scan_ids(schema_id..=schema_id);
        self.version(&SchemaKey { schema_id }, ended).await
    }

    pub(crate) async fn table_by_id(&self, table_id: u64) -> Result<Option<TableValue>, ReadError> {
        let ended = History::<TableKey>::scan_ids(table_id..=table_id);
        self.version(&TableKey { table_id }, ended).await
    }

    pub(crate) async fn view_by_id(&self, view_id: u64) -> Result<Option<ViewValue>, ReadError> {
        let ended = History::<ViewKey>::scan_ids(view_id..=view_id);
        self.version(&ViewKey { view_id }, ended).await
    }

    pub(crate) async fn macro_by_id(&self, macro_id: u64) -> Result<Option<MacroValue>, ReadError> {
        let ended = History::<MacroKey>::scan_ids(macro_id..=macro_id);
        self.version(&MacroKey { macro_id }, ended).await
    }

    /// The schema of a name in any case of letters; the name as written is preferred.
    pub(crate) async fn schema(&self, name: &str) -> Result<Option<SchemaValue>, ReadError> {
        if self.newest && self.directories.names {
            for schema_id in self.named(NameKey::SCHEMA, 0, name).await? {
                let found = self.read.value(&SchemaKey { schema_id }).await?;
                if let Some(found) = found.filter(|found| same_name(&found.schema_name, name)) {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
        Ok(best_named(self.schemas().await?, name, |found| {
            &found.schema_name
        }))
    }

    /// The table of a name within a schema, in any case of letters; the name as written is preferred.
    pub(crate) async fn table(&self, schema_id: u64, name: &str) -> Result<Option<TableValue>, ReadError> {
        if self.newest && self.directories.names {
            let at_home =
                |found: &TableValue| found.schema_id == schema_id && same_name(&found.table_name, name);
            for table_id in self.named(NameKey::TABLE, schema_id, name).await? {
                let found = self.read.value(&TableKey { table_id }).await?;
                if let Some(found) = found.filter(at_home) {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
        let mut found = self.tables().await?;
        found.retain(|found| found.schema_id == schema_id);
        Ok(best_named(found, name, |found| &found.table_name))
    }

    /// The ids that the directory gives for a name: those of the name as written, or else in other cases of letters, the
    /// greatest first.
    async fn named(&self, kind: u64, parent_id: u64, name: &str) -> Result<Vec<u64>, ReadError> {
        let exact = NameKey::scan_exact(kind, parent_id, name);
        let mut entries = self.read.keys::<NameKey>(exact).await?;
        if entries.is_empty() {
            let all = NameKey::scan_parent(kind, parent_id);
            entries = self.read.keys::<NameKey>(all).await?;
            entries.retain(|entry| same_name(&entry.name, name));
        }
        let mut ids: Vec<u64> = entries.into_iter().map(|entry| entry.entity_id).collect();
        ids.sort_unstable_by(|left, right| right.cmp(left));
        Ok(ids)
    }

    pub(crate) async fn view(&self, schema_id: u64, name: &str) -> Result<Option<ViewValue>, ReadError> {
        let mut found = self.views().await?;
        found.retain(|found| found.schema_id == schema_id);
        Ok(best_named(found, name, |found| &found.view_name))
    }

    /// The macros of a name within a schema: a scalar and a table macro may share one.
    pub(crate) async fn macros_named(
        &self,
        schema_id: u64,
        name: &str,
    ) -> Result<Vec<MacroValue>, ReadError> {
        let mut found = self.macros().await?;
        found.retain(|found| found.schema_id == schema_id && same_name(&found.macro_name, name));
        Ok(found)
    }

    pub(crate) async fn tag(&self, object_id: u64) -> Result<TagValue, ReadError> {
        let found = self.read.value(&TagKey { object_id }).await?;
        Ok(found.unwrap_or(TagValue {
            object_id,
            ..TagValue::default()
        }))
    }

    pub(crate) async fn options(
        &self,
        scope_kind: u64,
        scope_id: u64,
    ) -> Result<OptionScopeValue, ReadError> {
        let key = OptionKey { scope_kind, scope_id };
        Ok(self.read.value(&key).await?.unwrap_or_default())
    }

    /// What holds for an option of a table: what its own scope says, its schema's, or the lake's.
    pub(crate) async fn table_option(
        &self,
        table: &TableValue,
        name: &str,
    ) -> Result<Option<String>, ReadError> {
        let scopes = [
            (TABLE_SCOPE, table.table_id),
            (SCHEMA_SCOPE, table.schema_id),
            (GLOBAL_SCOPE, 0),
        ];
        for (kind, id) in scopes {
            if let Some(value) = self.options(kind, id).await?.options.remove(name) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    pub(crate) async fn table_stats(&self, table_id: u64) -> Result<Option<TableStatsValue>, ReadError> {
        self.read.value(&TableStatsKey { table_id }).await
    }
}

fn sorted<V>(mut values: Vec<V>, id: impl Fn(&V) -> u64) -> Result<Vec<V>, ReadError> {
    values.sort_by_key(id);
    Ok(values)
}

/// Of those of a name, the one that has it as written, and of those the newest.
fn best_named<V>(found: Vec<V>, name: &str, name_of: impl Fn(&V) -> &String) -> Option<V> {
    let mut best: Option<V> = None;
    for candidate in found {
        if !same_name(name_of(&candidate), name) {
            continue;
        }
        let keep = best
            .as_ref()
            .is_some_and(|best| name_of(best) == name && name_of(&candidate) != name);
        if !keep {
            best = Some(candidate);
        }
    }
    best
}
