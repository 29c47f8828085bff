//! The ids of all tables and schemas there are, live or ended: what other records refer to most.

use std::collections::BTreeMap;

use moraine_keys::{History, Kind, SchemaKey, TableKey};
use moraine_store::ReadError;

use super::Check;

/// Whether an object is there, by its id.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Schemas; `true` for the live ones.
    pub(super) schemas: BTreeMap<u64, bool>,
    /// Tables; `true` for the live ones.
    pub(super) tables: BTreeMap<u64, bool>,
}

impl Tables {
    pub(super) async fn load(check: &Check<'_>) -> Result<Self, ReadError> {
        let mut tables = Self::default();
        let mut scan = check
            .scan::<History<SchemaKey>>(History::<SchemaKey>::scan())
            .await?;
        while let Some((key, _)) = scan.next().await? {
            tables.schemas.insert(key.entity.schema_id, false);
        }
        let mut scan = check.scan::<SchemaKey>(SchemaKey::scan()).await?;
        while let Some((key, _)) = scan.next().await? {
            tables.schemas.insert(key.schema_id, true);
        }
        let mut scan = check
            .scan::<History<TableKey>>(History::<TableKey>::scan())
            .await?;
        while let Some((key, _)) = scan.next().await? {
            tables.tables.insert(key.entity.table_id, false);
        }
        let mut scan = check.scan::<TableKey>(TableKey::scan()).await?;
        while let Some((key, _)) = scan.next().await? {
            tables.tables.insert(key.table_id, true);
        }
        Ok(tables)
    }

    pub(super) fn has_table(&self, table_id: u64) -> bool {
        self.tables.contains_key(&table_id)
    }

    pub(super) fn is_live_table(&self, table_id: u64) -> bool {
        self.tables.get(&table_id).copied().unwrap_or_default()
    }
}
