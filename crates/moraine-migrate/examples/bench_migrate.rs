//! `cargo xtask bench migrate`: a migration of a catalog with many file records, beside the same reads and writes without
//! any migration, and beside rewriting every record. Prints records per second, ratios and peak memory; asserts nothing.

#![allow(missing_docs)]

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use moraine_codec::proto::{DataFileValue, DeleteFileValue, FormatValue, HeadValue, SchemaValue, TableValue};
use moraine_codec::{Record, encode_record};
use moraine_keys::{
    DataFileKey, DeleteFileKey, DeleteTargetKey, FormatKey, HeadKey, KeyRange, Kind, SchemaKey, TableKey,
};
use moraine_migrate::units::{MigrateOptions, Progress, migrate};
use moraine_store::{Bytes, OpenOptions, Store, StoreUrl, open};

type Failure = Box<dyn std::error::Error>;

const TABLES: u64 = 100;
/// Records per batch of the work that is compared with.
const BATCH_RECORDS: usize = 2048;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let files: u64 = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "1000000".to_owned())
        .parse()?;
    let folder = std::env::temp_dir().join(format!("moraine-bench-migrate-{}", std::process::id()));
    let outcome = compare(&folder, files).await;
    std::fs::remove_dir_all(&folder)?;
    outcome
}

async fn compare(folder: &Path, files: u64) -> Result<(), Failure> {
    let url = |name: &str| -> Result<StoreUrl, Failure> {
        let path = folder.join(name);
        Ok(path.to_str().ok_or("a folder with a name in UTF-8")?.parse()?)
    };
    println!("{files} file records in {TABLES} tables, half of them delete files, format 9");
    for name in ["migrated", "same", "all"] {
        let before = Instant::now();
        write_lake(&url(name)?, files).await?;
        println!("wrote {name} in {:.1} s", before.elapsed().as_secs_f64());
    }
    let (migrated, looking) = migration(&url("migrated")?, files).await?;
    let same = same_work(&url("same")?, files).await?;
    let all = rewrite(&url("all")?, files).await?;
    println!(
        "  of the migration, looking at every record first: {:.1} s",
        looking.as_secs_f64()
    );
    let ratio = |other: Duration| migrated.as_secs_f64() / other.as_secs_f64();
    println!(
        "the migration takes {:.2} times the same reads and writes alone,",
        ratio(same)
    );
    println!(
        "and {:.2} times a plain scan and rewrite of every record",
        ratio(all)
    );
    Ok(())
}

/// Says how fast something was, and how much memory the process took at most meanwhile.
fn report(what: &str, files: u64, started: Instant) -> Duration {
    let took = started.elapsed();
    #[allow(clippy::cast_precision_loss)]
    let per_second = files as f64 / took.as_secs_f64();
    println!(
        "{what}: {:.1} s, {per_second:.0} file records/s, peak memory {}",
        took.as_secs_f64(),
        peak_memory()
    );
    took
}

/// Peak resident memory since the last call of [`forget_peak`], where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}

fn forget_peak() {
    // Where the system does not know this, the peak is that of the whole run.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn records(files: u64) -> impl Iterator<Item = Record> {
    let schema = SchemaValue {
        schema_name: "main".to_owned(),
        ..SchemaValue::default()
    };
    let tables = (1..=TABLES).map(|table_id| {
        let value = TableValue {
            table_id,
            table_name: format!("table {table_id}"),
            ..TableValue::default()
        };
        Record::Table(TableKey { table_id }, value)
    });
    let files = (0..files / 2).flat_map(|file| {
        let (table_id, data_file_id, delete_file_id) = (1 + file % TABLES, 2 * file, 2 * file + 1);
        let data = DataFileValue {
            table_id,
            data_file_id,
            begin_snapshot: 1,
            path: format!("ducklake-0191b2c4-{file:016x}.parquet"),
            path_is_relative: true,
            file_format: "parquet".to_owned(),
            record_count: 100_000,
            file_size_bytes: 1 << 24,
            footer_size: 1200,
            row_id_start: Some(file * 100_000),
            ..DataFileValue::default()
        };
        let delete = DeleteFileValue {
            table_id,
            delete_file_id,
            data_file_id,
            begin_snapshot: 1,
            path: format!("ducklake-0191b2c4-{file:016x}-delete.parquet"),
            path_is_relative: true,
            format: "parquet".to_owned(),
            delete_count: 12,
            file_size_bytes: 1200,
            footer_size: 400,
            ..DeleteFileValue::default()
        };
        let data_key = DataFileKey {
            table_id,
            data_file_id,
        };
        let delete_key = DeleteFileKey {
            table_id,
            delete_file_id,
        };
        [
            Record::DataFile(data_key, data),
            Record::DeleteFile(delete_key, delete),
        ]
    });
    let stamp = FormatValue {
        format_version: 9,
        writer_version: "bench".to_owned(),
    };
    let head = HeadValue {
        snapshot_id: 1,
        batch_seq: 1,
    };
    let first = [
        Record::Format(FormatKey, stamp),
        Record::Head(HeadKey, head),
        Record::Schema(SchemaKey { schema_id: 0 }, schema),
    ];
    first.into_iter().chain(tables).chain(files)
}

async fn write_lake(url: &StoreUrl, files: u64) -> Result<(), Failure> {
    let store = moraine_store::open(url, &OpenOptions::create()).await?;
    let mut batch = Vec::new();
    for record in records(files) {
        batch.push(encode_record(&record)?);
        if batch.len() == BATCH_RECORDS {
            put(store.as_ref(), std::mem::take(&mut batch)).await?;
        }
    }
    put(store.as_ref(), batch).await?;
    Ok(store.close().await?)
}

async fn put(store: &dyn Store, records: Vec<(Bytes, Bytes)>) -> Result<(), Failure> {
    let mut transaction = store.begin()?;
    for (key, value) in records {
        transaction.put(key, value)?;
    }
    Ok(transaction.commit().await?.durable().await?)
}

async fn migration(url: &StoreUrl, files: u64) -> Result<(Duration, Duration), Failure> {
    forget_peak();
    let started = Instant::now();
    let mut looking = Duration::ZERO;
    let mut observer = |progress: &Progress| {
        if progress.total.is_none() {
            looking = started.elapsed();
        }
        ControlFlow::Continue(())
    };
    migrate(url, &MigrateOptions::default(), &mut observer).await?;
    Ok((report("migration from format 9 to 12", files, started), looking))
}

/// Reads what the migration reads and writes what it writes, and nothing else.
async fn same_work(url: &StoreUrl, files: u64) -> Result<Duration, Failure> {
    forget_peak();
    let started = Instant::now();
    let store = open(url, &OpenOptions::default()).await?;
    let view = store.view()?;
    let mut all = view.scan(KeyRange::all()).await?;
    while all.next().await?.is_some() {}
    let mut scan = view.scan(DeleteFileKey::scan()).await?;
    let mut batch = Vec::new();
    while let Some((key, _)) = scan.next().await? {
        let key = DeleteFileKey::decode(&key)?;
        let target = DeleteTargetKey {
            table_id: key.table_id,
            data_file_id: key.delete_file_id - 1,
            delete_file_id: key.delete_file_id,
        };
        batch.push((target.encode(), Bytes::new()));
        if batch.len() == BATCH_RECORDS {
            put(store.as_ref(), std::mem::take(&mut batch)).await?;
        }
    }
    put(store.as_ref(), batch).await?;
    store.close().await?;
    Ok(report("the same reads and writes alone", files, started))
}

/// Reads every record and writes it again.
async fn rewrite(url: &StoreUrl, files: u64) -> Result<Duration, Failure> {
    forget_peak();
    let started = Instant::now();
    let store = open(url, &OpenOptions::default()).await?;
    let view = store.view()?;
    let mut scan = view.scan(KeyRange::all()).await?;
    let mut batch = Vec::new();
    while let Some(record) = scan.next().await? {
        batch.push(record);
        if batch.len() == BATCH_RECORDS {
            put(store.as_ref(), std::mem::take(&mut batch)).await?;
        }
    }
    put(store.as_ref(), batch).await?;
    store.close().await?;
    Ok(report("a plain scan and rewrite of every record", files, started))
}
