//! The comparison of a lake with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use moraine_codec::proto::{ColumnValue, DataFileValue, DeleteFileValue, SchemaValue, TableValue};
use moraine_codec::{Stored, Version, format};
use moraine_commit::{Catalog, views};
use moraine_keys::{
    ChangelogKey, ColumnKey, DataFileKey, DeleteFileKey, DeleteTargetKey, History, KeyRange, Kind, NameKey,
    SchemaKey, Subspace, TableKey, Versioned,
};
use moraine_store::{Bytes, ReadExt, collect};

use super::model::{Id, Model, Row};

/// Every record of the newest state, as bytes.
pub async fn dump(catalog: &Arc<Catalog>) -> BTreeMap<Bytes, Bytes> {
    let view = catalog.store().view().unwrap();
    collect(view.scan(KeyRange::all()).await.unwrap())
        .await
        .unwrap()
        .into_iter()
        .collect()
}

/// All that must hold after a commit.
pub async fn everything(catalog: &Arc<Catalog>, model: &Model) {
    let view = catalog.store().view().unwrap();
    rows_of(&*view, model).await;
    for snapshot in &model.snapshots {
        rows_at(&*view, model, *snapshot).await;
    }
    directories(&*view).await;
    counters(&*view, model).await;
}

/// The stored rows are the model's.
pub async fn rows_of<R: ReadExt + ?Sized>(read: &R, model: &Model) {
    let mut found = Vec::new();
    found.extend(versions::<R, SchemaKey>(read, schema_row).await);
    found.extend(versions::<R, TableKey>(read, table_row).await);
    found.extend(versions::<R, ColumnKey>(read, column_row).await);
    found.extend(versions::<R, DataFileKey>(read, data_file_row).await);
    found.extend(versions::<R, DeleteFileKey>(read, delete_file_row).await);
    assert_eq!(sorted(found), sorted(model.rows.clone()));
}

/// The catalog at a snapshot is what the model's rows give there.
async fn rows_at<R: ReadExt + ?Sized>(read: &R, model: &Model, snapshot: u64) {
    let mut found = Vec::new();
    let schemas = views::schemas_at(read, snapshot).await.unwrap();
    found.extend(schemas.iter().map(|(key, value)| schema_row(key, value)));
    let tables = views::tables_at(read, snapshot).await.unwrap();
    found.extend(tables.iter().map(|(key, value)| table_row(key, value)));
    // Columns of a table that is not there at the snapshot are not asked for, so all tables ever are.
    let table_ids: BTreeSet<u64> = model.rows.iter().filter_map(|row| table_of(row.id)).collect();
    for table in table_ids {
        let columns = views::columns_at(read, snapshot, table).await.unwrap();
        found.extend(columns.iter().map(|(key, value)| column_row(key, value)));
        let files = views::data_files_at(read, snapshot, table).await.unwrap();
        found.extend(files.iter().map(|(key, value)| data_file_row(key, value)));
        let files = views::delete_files_at(read, snapshot, table).await.unwrap();
        found.extend(files.iter().map(|(key, value)| delete_file_row(key, value)));
    }
    let expected = model
        .rows
        .iter()
        .filter(|row| row.is_visible_at(snapshot))
        .cloned();
    assert_eq!(
        sorted(found),
        sorted(expected.collect()),
        "at snapshot {snapshot}"
    );
}

fn table_of(id: Id) -> Option<u64> {
    match id {
        Id::Schema(_) => None,
        Id::Table(table) | Id::Column(table, _) | Id::DataFile(table, _) | Id::DeleteFile(table, _) => {
            Some(table)
        }
    }
}

/// Both directories are what a scan of the live records gives.
async fn directories<R: ReadExt + ?Sized>(read: &R) {
    let schemas = read.records::<SchemaKey>(SchemaKey::scan()).await.unwrap();
    let tables = read.records::<TableKey>(TableKey::scan()).await.unwrap();
    let names = schemas
        .iter()
        .map(|(key, value)| NameKey::schema(&value.schema_name, key.schema_id));
    let names = names.chain(
        tables
            .iter()
            .map(|(key, value)| NameKey::table(value.schema_id, &value.table_name, key.table_id)),
    );
    assert_eq!(
        read.keys::<NameKey>(NameKey::scan()).await.unwrap(),
        sorted(names.collect())
    );
    let deletes = read
        .records::<DeleteFileKey>(DeleteFileKey::scan())
        .await
        .unwrap();
    let targets = deletes.iter().map(|(key, value)| DeleteTargetKey {
        table_id: key.table_id,
        data_file_id: value.data_file_id,
        delete_file_id: key.delete_file_id,
    });
    let found = read
        .keys::<DeleteTargetKey>(DeleteTargetKey::scan())
        .await
        .unwrap();
    assert_eq!(found, sorted(targets.collect()));
}

/// No column counter stands at or below an id its table has ever had.
async fn counters<R: ReadExt + ?Sized>(read: &R, model: &Model) {
    for (key, value) in read.records::<TableKey>(TableKey::scan()).await.unwrap() {
        let greatest = model
            .greatest_columns
            .get(&key.table_id)
            .copied()
            .unwrap_or_default();
        assert!(
            value.next_column_id > greatest,
            "{key}: {} is not above {greatest}",
            value.next_column_id
        );
    }
}

/// The changelog record of a snapshot names every current key whose value the commit changed, and the window is kept.
pub async fn changelog(catalog: &Arc<Catalog>, snapshot: u64, before: &BTreeMap<Bytes, Bytes>) {
    let after = dump(catalog).await;
    let current = Subspace::Current.scan();
    let keys: BTreeSet<&Bytes> = before
        .keys()
        .chain(after.keys())
        .filter(|key| current.contains(key))
        .collect();
    let changed: BTreeSet<Bytes> = keys
        .into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .cloned()
        .collect();
    let view = catalog.store().view().unwrap();
    let recorded = view
        .value(&ChangelogKey {
            snapshot_id: snapshot,
        })
        .await
        .unwrap()
        .unwrap()
        .keys;
    assert!(
        recorded.is_sorted_by(|left, right| left < right),
        "sorted, each once"
    );
    let recorded: BTreeSet<Bytes> = recorded.into_iter().collect();
    assert!(changed.is_subset(&recorded), "{changed:?} {recorded:?}");
    let window = view.keys::<ChangelogKey>(ChangelogKey::scan()).await.unwrap();
    let oldest = snapshot.saturating_sub(format::CHANGELOG_SNAPSHOTS_MAX);
    assert!(window.iter().all(|key| key.snapshot_id > oldest));
}

/// All versions of a kind, current and ended, as rows.
async fn versions<R, K>(read: &R, row: impl Fn(&K, &K::Value) -> Row) -> Vec<Row>
where
    R: ReadExt + ?Sized,
    K: Versioned + Stored,
    K::Value: Version,
{
    let current = read.records::<K>(K::scan()).await.unwrap();
    let ended = read.records::<History<K>>(History::<K>::scan()).await.unwrap();
    let current = current.iter().map(|(key, value)| row(key, value));
    let ended = ended.iter().map(|(key, value)| row(&key.entity, value));
    current.chain(ended).collect()
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

fn row(id: Id, value: &impl Version, text: &str, reference: u64) -> Row {
    Row {
        id,
        begin: value.begin_snapshot(),
        end: value.end_snapshot(),
        text: text.to_owned(),
        reference,
    }
}

fn schema_row(key: &SchemaKey, value: &SchemaValue) -> Row {
    row(Id::Schema(key.schema_id), value, &value.schema_name, 0)
}

fn table_row(key: &TableKey, value: &TableValue) -> Row {
    row(Id::Table(key.table_id), value, &value.table_name, value.schema_id)
}

fn column_row(key: &ColumnKey, value: &ColumnValue) -> Row {
    row(
        Id::Column(key.table_id, key.column_id),
        value,
        &value.column_name,
        0,
    )
}

fn data_file_row(key: &DataFileKey, value: &DataFileValue) -> Row {
    row(
        Id::DataFile(key.table_id, key.data_file_id),
        value,
        &value.path,
        0,
    )
}

fn delete_file_row(key: &DeleteFileKey, value: &DeleteFileValue) -> Row {
    row(
        Id::DeleteFile(key.table_id, key.delete_file_id),
        value,
        "",
        value.data_file_id,
    )
}
