//! DuckLake's options (`ducklake_metadata`) as far as a flush follows them: of a table, else of its schema, else of the lake.

use std::collections::BTreeMap;

use moraine_keys::OptionKey;
use moraine_store::{ReadError, ReadExt, Staging};

/// Scopes of `ducklake_metadata`, as keys number them.
const GLOBAL_SCOPE: u64 = 0;
const SCHEMA_SCOPE: u64 = 1;
const TABLE_SCOPE: u64 = 2;

/// The options that hold for one table.
#[derive(Debug, Clone, Default)]
pub(super) struct TableOptions {
    /// The narrowest scope first.
    scopes: Vec<BTreeMap<String, String>>,
}

impl TableOptions {
    /// The options of the lake alone.
    pub(super) async fn of_lake(read: &Staging) -> Result<Self, ReadError> {
        Ok(Self {
            scopes: vec![scope(read, GLOBAL_SCOPE, 0).await?],
        })
    }

    /// The options of one of the lake's tables.
    pub(super) async fn of_table(
        &self,
        read: &Staging,
        schema_id: u64,
        table_id: u64,
    ) -> Result<Self, ReadError> {
        let mut scopes = vec![
            scope(read, TABLE_SCOPE, table_id).await?,
            scope(read, SCHEMA_SCOPE, schema_id).await?,
        ];
        scopes.extend(self.scopes.iter().cloned());
        Ok(Self { scopes })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.scopes
            .iter()
            .find_map(|scope| scope.get(name))
            .map(String::as_str)
    }

    /// Whether an option is set and not `false`.
    pub(super) fn is_on(&self, name: &str, unset: bool) -> bool {
        self.get(name)
            .map_or(unset, |value| value.eq_ignore_ascii_case("true"))
    }
}

async fn scope(
    read: &Staging,
    scope_kind: u64,
    scope_id: u64,
) -> Result<BTreeMap<String, String>, ReadError> {
    let key = OptionKey { scope_kind, scope_id };
    let stored = read.value(&key).await?.unwrap_or_default();
    Ok(stored.options.into_iter().collect())
}
