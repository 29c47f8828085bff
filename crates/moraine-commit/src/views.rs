//! The catalog at any snapshot, as typed records: current versions that had begun, and ended ones that had not yet ended.
//! Over any [`Read`], a transaction's overlay included. Whether a snapshot still exists is the caller's to ask
//! ([`snapshot`]): versions that only expired snapshots saw may be gone.

use moraine_codec::proto::{
    ColumnValue, DataFileValue, DeleteFileValue, HeadValue, MacroValue, PartitionValue, SchemaValue,
    SnapshotValue, SortValue, TableValue, ViewValue,
};
use moraine_codec::{Stored, Version};
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, HeadKey, History, KeyRange, Kind, MacroKey, PartitionKey,
    SchemaKey, SnapshotKey, SortKey, TableKey, TableScoped, Versioned, ViewKey,
};
use moraine_store::{ReadError, ReadExt};

/// The head: the newest committed snapshot and the number of batches. `None` where there is no lake.
///
/// # Errors
/// See [`ReadError`], as for all functions of this module.
pub async fn head<R: ReadExt + ?Sized>(read: &R) -> Result<Option<HeadValue>, ReadError> {
    read.value(&HeadKey {}).await
}

/// All snapshots that have not expired, ascending.
///
/// # Errors
/// See [`head`].
pub async fn snapshots<R: ReadExt + ?Sized>(read: &R) -> Result<Vec<SnapshotValue>, ReadError> {
    let records = read.records::<SnapshotKey>(SnapshotKey::scan()).await?;
    let values = records.into_iter().map(|(_, value)| value);
    Ok(values.filter(|value| !value.changes_only).collect())
}

/// One snapshot; `None` when it never was, or has expired.
///
/// # Errors
/// See [`head`].
pub async fn snapshot<R: ReadExt + ?Sized>(
    read: &R,
    snapshot_id: u64,
) -> Result<Option<SnapshotValue>, ReadError> {
    let value = read.value(&SnapshotKey { snapshot_id }).await?;
    Ok(value.filter(|value| !value.changes_only))
}

macro_rules! whole_catalog {
    ($($(#[$doc:meta])* $name:ident: $key:ident => $value:ident),+ $(,)?) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// See [`head`].
        pub async fn $name<R: ReadExt + ?Sized>(
            read: &R,
            snapshot_id: u64,
        ) -> Result<Vec<($key, $value)>, ReadError> {
            versions_at(read, $key::scan(), History::<$key>::scan(), snapshot_id).await
        }
    )+ };
}

macro_rules! one_table {
    ($($(#[$doc:meta])* $name:ident: $key:ident => $value:ident),+ $(,)?) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// See [`head`].
        pub async fn $name<R: ReadExt + ?Sized>(
            read: &R,
            snapshot_id: u64,
            table_id: u64,
        ) -> Result<Vec<($key, $value)>, ReadError> {
            let current = $key::scan_table(table_id);
            versions_at(read, current, History::<$key>::scan_table(table_id), snapshot_id).await
        }
    )+ };
}

whole_catalog! {
    /// The schemas at a snapshot, by id.
    schemas_at: SchemaKey => SchemaValue,
    /// The tables of all schemas at a snapshot, by id.
    tables_at: TableKey => TableValue,
    /// The views of all schemas at a snapshot, by id.
    views_at: ViewKey => ViewValue,
    /// The macros of all schemas at a snapshot, by id.
    macros_at: MacroKey => MacroValue,
}

one_table! {
    /// The columns of a table at a snapshot, by field id, nested fields included.
    columns_at: ColumnKey => ColumnValue,
    /// The partitionings of a table at a snapshot, by id.
    partitions_at: PartitionKey => PartitionValue,
    /// The sort orders of a table at a snapshot, by id.
    sorts_at: SortKey => SortValue,
    /// The data files of a table at a snapshot, by id.
    data_files_at: DataFileKey => DataFileValue,
    /// The delete files of a table at a snapshot, by id.
    delete_files_at: DeleteFileKey => DeleteFileValue,
}

/// The versions within two ranges, one of current and one of ended records, that a reader at the snapshot sees.
async fn versions_at<R, K>(
    read: &R,
    current: KeyRange,
    ended: KeyRange,
    snapshot_id: u64,
) -> Result<Vec<(K, K::Value)>, ReadError>
where
    R: ReadExt + ?Sized,
    K: Versioned + Stored,
    K::Value: Version,
{
    let mut versions = Vec::new();
    let mut scan = read.record_scan::<K>(current).await?;
    while let Some((key, value)) = scan.next().await? {
        if value.is_visible_at(snapshot_id) {
            versions.push((key, value));
        }
    }
    let mut scan = read.record_scan::<History<K>>(ended).await?;
    while let Some((key, value)) = scan.next().await? {
        if value.is_visible_at(snapshot_id) {
            versions.push((key.entity, value));
        }
    }
    versions.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(versions)
}
