//! The lake that is imported, made by SQL in a SQLite file, and the same lake as format 9 has it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use moraine_codec::encode;
use moraine_codec::proto::FormatValue;
use moraine_commit::Catalog;
use moraine_keys::{FormatKey, Key, KeyRange, Kind};
use moraine_migrate::Silent;
use moraine_migrate::export::{ExportOptions, export};
use moraine_migrate::lake::{CatalogLocation, open_target};
use moraine_store::{MemoryStore, OpenOptions, Store, open};

use crate::work::{BATCH_RECORDS, put};

/// Tables that the files are of.
pub(crate) const TABLES: u64 = 100;
/// Commits that have registered the files, at most.
const COMMITS_MAX: u64 = 10_000;

/// Makes a SQLite file with a lake of `files` file records: data files with one row of statistics each, and as many delete
/// files.
pub(crate) async fn make(path: &Path, files: u64) -> anyhow::Result<u64> {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()) as Arc<dyn Store>);
    catalog.create(Some("/data/"), false).await?;
    let location = CatalogLocation::Sqlite {
        path: path.to_owned(),
    };
    export(
        &catalog,
        open_target(&location).await?,
        &ExportOptions::default(),
        &Silent,
    )
    .await?;
    let database = rusqlite::Connection::open(path)?;
    let data_files = files.div_ceil(2);
    let last = data_files.saturating_sub(1);
    let newest = data_files.min(COMMITS_MAX);
    let uuid = "'00000000-0000-0000-0000-000000000000'";
    database.execute_batch(&format!(
        "BEGIN;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {newest})
         INSERT INTO ducklake_snapshot SELECT i, '2026-01-01 00:00:00+00', 1, {TABLES} + 1, 2 * {data_files} FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {newest})
         INSERT INTO ducklake_snapshot_changes SELECT i, 'inserted_into_table:1', NULL, NULL, NULL FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TABLES})
         INSERT INTO ducklake_table SELECT i, {uuid}, 1, NULL, 0, 't' || i, 't' || i || '/', 1 FROM n;
         INSERT INTO ducklake_column SELECT 1, 1, NULL, table_id, 1, 'a', 'int64', NULL, NULL, 1, NULL, NULL, NULL
             FROM ducklake_table;
         INSERT INTO ducklake_table_stats SELECT table_id, {data_files} * 100, {data_files} * 100, 0 FROM ducklake_table;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
         INSERT INTO ducklake_data_file SELECT 2 * i, i % {TABLES} + 1, i % {newest} + 1, NULL, NULL,
             'ducklake-' || printf('%032x', i) || '.parquet', 1, 'parquet', 100, 2048, 300, i * 100, NULL, NULL, NULL, NULL
             FROM n;
         INSERT INTO ducklake_file_column_stats SELECT data_file_id, table_id, 1, 800, 100, 0, data_file_id,
             data_file_id + 100, NULL, NULL FROM ducklake_data_file;
         INSERT INTO ducklake_delete_file SELECT data_file_id + 1, table_id, begin_snapshot, NULL, data_file_id,
             replace(path, '.parquet', '-delete.parquet'), 1, 'parquet', 12, 1200, 400, NULL, NULL FROM ducklake_data_file;
         COMMIT"
    ))?;
    Ok(files)
}

/// Writes the lake of one store into another as format 9 has it: without directories of names and delete targets.
pub(crate) async fn older(newest: &str, older: &str) -> anyhow::Result<u64> {
    let from = open(&newest.parse()?, &OpenOptions::default()).await?;
    let to = open(&older.parse()?, &OpenOptions::create()).await?;
    let view = from.view()?;
    let mut scan = view.scan(KeyRange::all()).await?;
    let (mut batch, mut records) = (Vec::new(), 0);
    while let Some((key, mut value)) = scan.next().await? {
        match Key::decode(&key).context("a key of the lake")? {
            Key::Name(_) | Key::DeleteTarget(_) => continue,
            _ if key == FormatKey.encode() => {
                let stamp = FormatValue {
                    format_version: 9,
                    writer_version: "bench".to_owned(),
                };
                value = encode(&FormatKey, &stamp)?;
            }
            _ => {}
        }
        records += 1;
        batch.push((key, value));
        if batch.len() == BATCH_RECORDS {
            put(to.as_ref(), std::mem::take(&mut batch)).await?;
        }
    }
    put(to.as_ref(), batch).await?;
    drop(scan);
    drop(view);
    to.close().await?;
    from.close().await?;
    Ok(records)
}
