//! Lakes and rows for the tests.

use std::sync::Arc;

use moraine_codec::Record;
use moraine_codec::proto::{
    ColumnValue, DataFileValue, DeleteFileValue, FileColumnStatsValue, HeadValue, SchemaValue, SnapshotValue,
    TableValue,
};
use moraine_commit::{Catalog, CatalogTransaction, Change, Committed, SnapshotChanges, StageError, views};
use moraine_keys::{ColumnKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, Key, SchemaKey, TableKey};
use moraine_store::{MemoryStore, ReadExt};

/// A fresh lake in memory, with the store to look into.
pub async fn lake() -> (Arc<Catalog>, MemoryStore) {
    let store = MemoryStore::new();
    let catalog = Catalog::with_store(Arc::new(store.clone()));
    catalog.create(Some("data/"), false).await.unwrap();
    (catalog, store)
}

pub async fn head(catalog: &Arc<Catalog>) -> HeadValue {
    views::head(&*catalog.store().view().unwrap())
        .await
        .unwrap()
        .unwrap()
}

/// The value of a key in the newest state.
pub async fn value<K: moraine_codec::Stored>(catalog: &Arc<Catalog>, key: &K) -> Option<K::Value> {
    catalog.store().view().unwrap().value(key).await.unwrap()
}

/// The keys of a kind in the newest state.
pub async fn keys<K: moraine_keys::Kind>(catalog: &Arc<Catalog>) -> Vec<K> {
    catalog
        .store()
        .view()
        .unwrap()
        .keys::<K>(K::scan())
        .await
        .unwrap()
}

/// A row of `ducklake_snapshot`; its time is after that of every lower id, and after the present.
pub fn snapshot(snapshot_id: u64) -> SnapshotValue {
    let later = i64::try_from(snapshot_id).unwrap();
    SnapshotValue {
        snapshot_id,
        snapshot_time_micros: 4_000_000_000_000_000 + later,
        schema_version: snapshot_id,
        next_catalog_id: 1000,
        next_file_id: 1000,
        ..SnapshotValue::default()
    }
}

pub fn changes(snapshot_id: u64, changes_made: &str) -> SnapshotChanges {
    SnapshotChanges {
        snapshot_id,
        changes_made: Some(changes_made.to_owned()),
        ..SnapshotChanges::default()
    }
}

/// Begins a transaction that has inserted both rows of the next snapshot.
pub async fn begin_snapshot(catalog: &Arc<Catalog>, changes_made: &str) -> CatalogTransaction {
    let mut transaction = catalog.begin().await.unwrap();
    let snapshot_id = transaction.head().unwrap().snapshot_id + 1;
    insert_snapshot(&mut transaction, snapshot_id, changes_made)
        .await
        .unwrap();
    transaction
}

pub async fn insert_snapshot(
    transaction: &mut CatalogTransaction,
    snapshot_id: u64,
    changes_made: &str,
) -> Result<(), StageError> {
    transaction.insert_snapshot(snapshot(snapshot_id)).await?;
    transaction
        .set_snapshot_changes(changes(snapshot_id, changes_made))
        .await
}

/// Commits changes as the next snapshot.
pub async fn commit(catalog: &Arc<Catalog>, changes_made: &str, changes: Vec<Change>) -> Committed {
    let mut transaction = begin_snapshot(catalog, changes_made).await;
    transaction.stage(changes).await.unwrap();
    transaction.commit().await.unwrap()
}

/// Commits changes without a snapshot.
pub async fn maintain(catalog: &Arc<Catalog>, changes: Vec<Change>) -> Committed {
    let mut transaction = catalog.begin().await.unwrap();
    transaction.stage(changes).await.unwrap();
    transaction.commit().await.unwrap()
}

pub fn insert(record: impl Into<Record>) -> Change {
    Change::Insert(record.into())
}

pub fn replace<K: moraine_keys::Kind>(old: &K, new: impl Into<Record>) -> Change {
    Change::Replace {
        old: old.to_key(),
        new: new.into(),
    }
}

pub fn remove<K: moraine_keys::Kind>(key: &K) -> Change {
    let key: Key = key.to_key();
    Change::Remove { key }
}

pub fn schema(schema_id: u64, begin_snapshot: u64, name: &str) -> (SchemaKey, SchemaValue) {
    let value = SchemaValue {
        schema_id,
        begin_snapshot,
        schema_name: name.to_owned(),
        ..SchemaValue::default()
    };
    (SchemaKey { schema_id }, value)
}

pub fn table(table_id: u64, begin_snapshot: u64, name: &str) -> (TableKey, TableValue) {
    let value = TableValue {
        table_id,
        begin_snapshot,
        table_name: name.to_owned(),
        ..TableValue::default()
    };
    (TableKey { table_id }, value)
}

pub fn column(table_id: u64, column_id: u64, begin_snapshot: u64, name: &str) -> (ColumnKey, ColumnValue) {
    let value = ColumnValue {
        table_id,
        column_id,
        begin_snapshot,
        column_order: column_id,
        column_name: name.to_owned(),
        column_type: "int64".to_owned(),
        ..ColumnValue::default()
    };
    (ColumnKey { table_id, column_id }, value)
}

pub fn data_file(table_id: u64, data_file_id: u64, begin_snapshot: u64) -> (DataFileKey, DataFileValue) {
    let value = DataFileValue {
        table_id,
        data_file_id,
        begin_snapshot,
        path: format!("{data_file_id}.parquet"),
        ..DataFileValue::default()
    };
    (
        DataFileKey {
            table_id,
            data_file_id,
        },
        value,
    )
}

pub fn delete_file(
    table_id: u64,
    delete_file_id: u64,
    data_file_id: u64,
    begin_snapshot: u64,
) -> (DeleteFileKey, DeleteFileValue) {
    let value = DeleteFileValue {
        table_id,
        delete_file_id,
        data_file_id,
        begin_snapshot,
        ..DeleteFileValue::default()
    };
    (
        DeleteFileKey {
            table_id,
            delete_file_id,
        },
        value,
    )
}

pub fn file_stats(
    table_id: u64,
    data_file_id: u64,
    column_id: u64,
) -> (FileColumnStatsKey, FileColumnStatsValue) {
    let value = FileColumnStatsValue {
        table_id,
        data_file_id,
        column_id,
        ..FileColumnStatsValue::default()
    };
    (
        FileColumnStatsKey {
            table_id,
            data_file_id,
            column_id,
        },
        value,
    )
}

/// The same record, ended.
pub fn ended<K, V: moraine_codec::Version>(mut record: (K, V), end_snapshot: u64) -> (K, V) {
    record.1.set_end_snapshot(Some(end_snapshot));
    record
}
