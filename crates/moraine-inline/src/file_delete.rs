//! Inlined deletions of rows that live in Parquet files, and the marker that says their table exists. Deletions of inlined rows
//! are tombstones, not these.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use moraine_codec::proto::{InlineFileDeleteTableValue, InlineFileDeleteValue};
use moraine_keys::{FileDeleteTableKey, InlineFileDeleteKey, Kind, TableChild, TableScoped};
use moraine_store::{Read, ReadExt, Staging};

use crate::error::InlineError;

/// The rows of `ducklake_inlined_delete_<table_id>` whose data file lies in `data_file_ids`, as (data file id, row id, begin
/// snapshot), ascending.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn file_deletes(
    read: &dyn Read,
    table_id: u64,
    data_file_ids: RangeInclusive<u64>,
) -> Result<Vec<(u64, u64, u64)>, InlineError> {
    let range = InlineFileDeleteKey::scan_table_ids(table_id, data_file_ids);
    let mut scan = read.record_scan::<InlineFileDeleteKey>(range).await?;
    let mut deletes = Vec::new();
    while let Some((key, value)) = scan.next().await? {
        deletes.push((key.data_file_id, key.row_id, value.begin_snapshot));
    }
    Ok(deletes)
}

/// Inserts rows, given as (data file id, row id, begin snapshot), into `ducklake_inlined_delete_<table_id>`, which exists from then
/// on.
///
/// # Errors
/// [`InlineError::DuplicateFileDelete`] for a row that is deleted already. Nothing is staged then.
pub async fn insert_file_deletes(
    staging: &mut Staging,
    table_id: u64,
    deletes: &[(u64, u64, u64)],
) -> Result<(), InlineError> {
    let mut seen = BTreeSet::new();
    for &(data_file_id, row_id, _) in deletes {
        let key = InlineFileDeleteKey {
            table_id,
            data_file_id,
            row_id,
        };
        if !seen.insert((data_file_id, row_id)) || staging.get(&key.encode()).await?.is_some() {
            return Err(InlineError::DuplicateFileDelete {
                table_id,
                data_file_id,
                row_id,
            });
        }
    }
    create_file_delete_table(staging, table_id).await?;
    for &(data_file_id, row_id, begin_snapshot) in deletes {
        let key = InlineFileDeleteKey {
            table_id,
            data_file_id,
            row_id,
        };
        staging.put(&key, &InlineFileDeleteValue { begin_snapshot })?;
    }
    Ok(())
}

/// Removes rows, given as (data file id, row id), from `ducklake_inlined_delete_<table_id>`. The table stays, and exists from then
/// on even in a store written before its marker was.
///
/// # Errors
/// [`InlineError::FileDeleteNotFound`] for a row that is not there. Nothing is staged then.
pub async fn remove_file_deletes(
    staging: &mut Staging,
    table_id: u64,
    deletes: &[(u64, u64)],
) -> Result<(), InlineError> {
    let deletes: BTreeSet<(u64, u64)> = deletes.iter().copied().collect();
    for &(data_file_id, row_id) in &deletes {
        let key = InlineFileDeleteKey {
            table_id,
            data_file_id,
            row_id,
        };
        if staging.get(&key.encode()).await?.is_none() {
            return Err(InlineError::FileDeleteNotFound {
                table_id,
                data_file_id,
                row_id,
            });
        }
    }
    create_file_delete_table(staging, table_id).await?;
    for (data_file_id, row_id) in deletes {
        staging.delete(&InlineFileDeleteKey {
            table_id,
            data_file_id,
            row_id,
        });
    }
    Ok(())
}

/// Removes every inlined deletion from a data file whose record is gone for good; a file without any is the ordinary case. The
/// table stays.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn remove_deletes_of_file(
    staging: &mut Staging,
    table_id: u64,
    data_file_id: u64,
) -> Result<(), InlineError> {
    let range = InlineFileDeleteKey::scan_file(table_id, data_file_id);
    let keys: Vec<InlineFileDeleteKey> = staging.keys(range).await?;
    keys.iter().for_each(|key| staging.delete(key));
    Ok(())
}

/// Creates `ducklake_inlined_delete_<table_id>`; one that exists stays as it is.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn create_file_delete_table(staging: &mut Staging, table_id: u64) -> Result<(), InlineError> {
    let marker = FileDeleteTableKey { table_id };
    if staging.get(&marker.encode()).await?.is_none() {
        staging.put(&marker, &InlineFileDeleteTableValue {})?;
    }
    Ok(())
}

/// Whether `ducklake_inlined_delete_<table_id>` exists. It outlives its rows; rows without a marker, as old stores have them, prove
/// it too.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn file_delete_table_exists(read: &dyn Read, table_id: u64) -> Result<bool, InlineError> {
    if read
        .get(&FileDeleteTableKey { table_id }.encode())
        .await?
        .is_some()
    {
        return Ok(true);
    }
    let mut rows = read.scan(InlineFileDeleteKey::scan_table(table_id)).await?;
    Ok(rows.next().await?.is_some())
}

/// The tables that have a `ducklake_inlined_delete_<table_id>`, ascending.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn file_delete_tables(read: &dyn Read) -> Result<Vec<u64>, InlineError> {
    let markers: Vec<FileDeleteTableKey> = read.keys(FileDeleteTableKey::scan()).await?;
    Ok(markers.into_iter().map(|marker| marker.table_id).collect())
}

/// Drops `ducklake_inlined_delete_<table_id>` with its rows; one that does not exist stays absent.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn drop_file_delete_table(staging: &mut Staging, table_id: u64) -> Result<(), InlineError> {
    let rows: Vec<InlineFileDeleteKey> = staging.keys(InlineFileDeleteKey::scan_table(table_id)).await?;
    rows.iter().for_each(|key| staging.delete(key));
    let marker = FileDeleteTableKey { table_id };
    if staging.get(&marker.encode()).await?.is_some() {
        staging.delete(&marker);
    }
    Ok(())
}
