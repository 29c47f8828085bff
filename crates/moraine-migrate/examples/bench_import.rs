//! The import of a catalog with many file records, beside `COPY` of the same rows into PostgreSQL where one is given.
//!
//!     cargo run --release -p moraine-migrate --example bench_import -- FILES [POSTGRES_CONNSTR]
//!
//! The records are made by SQL in a SQLite file: data files of ten tables and one row of statistics for each. What is printed
//! is records per second, peak memory, and the ratio of the two; nothing is asserted.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use futures::SinkExt;
use moraine_commit::Catalog;
use moraine_migrate::Silent;
use moraine_migrate::export::{ExportOptions, export};
use moraine_migrate::import::{ImportOptions, import};
use moraine_migrate::lake::{CatalogLocation, open_source, open_target};
use moraine_store::{MemoryStore, OpenOptions, Store, StoreUrl, open};

/// Tables that the files are of.
const TABLES: u64 = 10;
/// Rows for each file: the file and its statistics.
const ROWS_PER_FILE: u64 = 2;
/// Bytes of rows that are sent to PostgreSQL at once.
const COPY_BYTES: usize = 1 << 20;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let files: u64 = arguments
        .next()
        .context("the number of files is missing")?
        .parse()?;
    let postgres = arguments.next();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lake.sqlite");
    empty_lake(&path).await?;
    let made = Instant::now();
    fill(&path, files)?;
    println!(
        "{files} file records made in {:.1} s",
        made.elapsed().as_secs_f64()
    );

    let url: StoreUrl = folder.path().join("lake").display().to_string().parse()?;
    let store = open(&url, &OpenOptions::create()).await?;
    let mut source = open_source(&CatalogLocation::Sqlite { path: path.clone() }).await?;
    reset_peak();
    let before = peak_kib();
    let started = Instant::now();
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let report = import(source.as_mut(), shared, &ImportOptions::default(), &Silent).await?;
    let seconds = started.elapsed().as_secs_f64();
    let rows: u64 = report.rows.values().sum();
    let imported = rows as f64 / seconds;
    println!(
        "import: {rows} records in {seconds:.1} s, {imported:.0} records/s, peak memory {} MiB ({} MiB before)",
        peak_kib() / 1024,
        before / 1024
    );
    store.close().await?;

    if let Some(connection) = postgres {
        let started = Instant::now();
        let rows = copy(&path, &connection).await?;
        let seconds = started.elapsed().as_secs_f64();
        let copied = rows as f64 / seconds;
        println!("COPY into PostgreSQL: {rows} rows in {seconds:.1} s, {copied:.0} rows/s");
        println!("import / COPY: {:.2}", imported / copied);
    }
    Ok(())
}

/// A SQLite file with a lake that has nothing in it.
async fn empty_lake(path: &Path) -> anyhow::Result<()> {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()) as Arc<dyn Store>);
    catalog.create(Some("/data/"), false).await?;
    let target = open_target(&CatalogLocation::Sqlite {
        path: path.to_owned(),
    })
    .await?;
    export(&catalog, target, &ExportOptions::default(), &Silent).await?;
    Ok(())
}

/// Ten tables with files that ten thousand commits have registered.
fn fill(path: &Path, files: u64) -> anyhow::Result<()> {
    let database = rusqlite::Connection::open(path)?;
    let last = files.saturating_sub(1);
    let newest = files.min(10_000);
    let uuid = "'00000000-0000-0000-0000-000000000000'";
    database.execute_batch(&format!(
        "BEGIN;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {newest})
         INSERT INTO ducklake_snapshot SELECT i, '2026-01-01 00:00:00+00', 1, 100, {files} FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {newest})
         INSERT INTO ducklake_snapshot_changes SELECT i, 'inserted_into_table:1', NULL, NULL, NULL FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TABLES})
         INSERT INTO ducklake_table SELECT i, {uuid}, 1, NULL, 0, 't' || i, 't' || i || '/', 1 FROM n;
         INSERT INTO ducklake_column SELECT 1, 1, NULL, table_id, 1, 'a', 'int64', NULL, NULL, 1, NULL, NULL, NULL
             FROM ducklake_table;
         INSERT INTO ducklake_table_stats SELECT table_id, {files} * 100, {files} * 100, 0 FROM ducklake_table;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
         INSERT INTO ducklake_data_file SELECT i, i % {TABLES} + 1, i % {newest} + 1, NULL, NULL,
             'ducklake-' || printf('%032x', i) || '.parquet', 1, 'parquet', 100, 2048, 300, i * 100, NULL, NULL, NULL, NULL
             FROM n;
         INSERT INTO ducklake_file_column_stats SELECT data_file_id, table_id, 1, 800, 100, 0, data_file_id,
             data_file_id + 100, NULL, NULL FROM ducklake_data_file;
         COMMIT"
    ))?;
    Ok(())
}

/// Copies the same rows into tables of their own, and drops them again.
async fn copy(path: &Path, connection: &str) -> anyhow::Result<u64> {
    let (client, driver) = tokio_postgres::connect(connection, tokio_postgres::NoTls).await?;
    tokio::spawn(driver);
    let database = rusqlite::Connection::open(path)?;
    let mut copied = 0;
    for (table, columns) in [("ducklake_data_file", 16), ("ducklake_file_column_stats", 10)] {
        let names = (0..columns)
            .map(|column| format!("c{column} text"))
            .collect::<Vec<_>>();
        let create = format!(
            "DROP TABLE IF EXISTS bench_{table}; CREATE TABLE bench_{table}({})",
            names.join(", ")
        );
        client.batch_execute(&create).await?;
        let mut sink = Box::pin(
            client
                .copy_in::<_, Bytes>(&format!("COPY bench_{table} FROM STDIN"))
                .await?,
        );
        let mut statement = database.prepare(&format!("SELECT * FROM {table}"))?;
        let mut rows = statement.query([])?;
        let mut bytes = Vec::with_capacity(COPY_BYTES);
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                if column > 0 {
                    bytes.push(b'\t');
                }
                match row.get_ref(column)? {
                    rusqlite::types::ValueRef::Integer(number) => bytes.extend(number.to_string().bytes()),
                    rusqlite::types::ValueRef::Text(text) => bytes.extend(text),
                    _ => bytes.extend(b"\\N"),
                }
            }
            bytes.push(b'\n');
            copied += 1;
            if bytes.len() >= COPY_BYTES {
                sink.send(std::mem::take(&mut bytes).into()).await?;
            }
        }
        sink.send(bytes.into()).await?;
        sink.as_mut().finish().await?;
    }
    for table in ["ducklake_data_file", "ducklake_file_column_stats"] {
        client.batch_execute(&format!("DROP TABLE bench_{table}")).await?;
    }
    anyhow::ensure!(copied % ROWS_PER_FILE == 0, "rows were lost on the way");
    Ok(copied)
}

/// Forgets the peak so far, where the system can.
fn reset_peak() {
    // Elsewhere than on Linux the peak is that of the whole run.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that was resident, in KiB; 0 where the system does not tell.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}
