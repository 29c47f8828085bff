//! Changing a lake by verbs, and what snapshots then show.

mod column_types;
mod definitions;
mod expiry;
mod files;
mod groups;
mod inlined;
mod races;
mod refusals;
mod snapshots;

use std::sync::Arc;

use moraine_commit::Catalog;
use moraine_commit::lake::{ColumnStats, ColumnType};
use moraine_commit::verbs::{ColumnDefinition, NewDataFile, TableDefinition};
use moraine_store::MemoryStore;

/// A fresh lake with table `main.t(id int64, name varchar)`, id 1, at snapshot 1.
pub(super) async fn lake_with_table() -> (Arc<Catalog>, MemoryStore) {
    let (catalog, store) = super::support::lake().await;
    create_table(&catalog, "t").await;
    (catalog, store)
}

pub(super) async fn create_table(catalog: &Arc<Catalog>, name: &str) -> u64 {
    let committed = catalog
        .commit(|tx| async move {
            let columns = vec![
                ColumnDefinition::new("id", ColumnType::Int64),
                ColumnDefinition::new("name", ColumnType::Varchar),
            ];
            tx.create_table("main", TableDefinition::new(name, columns)).await
        })
        .await;
    committed.unwrap().value
}

/// A file of so many rows, whose `id`s go from one value to another.
pub(super) fn file(path: &str, rows: u64, ids: (i64, i64)) -> NewDataFile {
    let stats = ColumnStats {
        value_count: Some(rows),
        null_count: Some(0),
        min_value: Some(ids.0.to_string()),
        max_value: Some(ids.1.to_string()),
        ..ColumnStats::default()
    };
    NewDataFile::new(path, rows, rows * 100).with_stats(vec![(1, stats)])
}
