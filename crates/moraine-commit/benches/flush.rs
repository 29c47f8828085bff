//! Flushing a table of many inlined rows: rows a second and the greatest resident memory, beside arrow-rs writing the same Parquet
//! from rows in memory. Each measurement is a process of its own, so that none is charged for another's memory. Arguments: the
//! number of rows (10,000,000), `sorted` to give the table a sort order and `partitioned` to give it partitions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_codec::proto::SnapshotValue;
use moraine_commit::flush::FlushOptions;
use moraine_commit::lake::{ColumnType, SortExpression, Transform};
use moraine_commit::verbs::{ColumnDefinition, PartitionField, TableDefinition};
use moraine_commit::{Catalog, CatalogOptions, CatalogTransaction, InlineChange, SnapshotChanges};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

const ROWS: u64 = 10_000_000;
const CHUNK_ROWS: u64 = 1_000;
/// Chunks of one commit while the table is built.
const COMMIT_CHUNKS: u64 = 50;
const ROW_GROUP_ROWS: usize = 122_880;
/// What the children are told to do.
const TASK: &str = "MORAINE_FLUSH_BENCH_TASK";

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let rows = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(ROWS);
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let order = Order {
        sorted: has("sorted"),
        partitioned: has("partitioned"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Ok(task) = std::env::var(TASK) {
        let (task, folder) = task.split_once(' ').unwrap();
        let folder = Path::new(folder);
        let began = match task {
            "build" => runtime.block_on(build(folder, rows, order)),
            "flush" => runtime.block_on(flush(folder)),
            _ => write_parquet(folder, rows),
        };
        println!("{} {}", began.elapsed().as_secs_f64(), peak_bytes());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (task, doing) in [
        ("build", "inserting through the library"),
        ("flush", "flushing"),
        ("parquet", "arrow-rs writing the same rows from memory"),
    ] {
        let (seconds, bytes) = measured(task, folder.path(), &arguments);
        println!(
            "{doing:45} {:>11.0} rows/s {:>7.1} s {:>6.0} MiB at most",
            rows as f64 / seconds,
            seconds,
            bytes / 1024.0 / 1024.0
        );
    }
    let flushed = bytes(&folder.path().join("data/main/t"));
    println!(
        "{flushed} bytes flushed, {} by arrow-rs",
        bytes(&folder.path().join("parquet"))
    );
}

/// Bytes of the files in a folder and in those below it.
fn bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    files
        .map(|file| match file.metadata().unwrap() {
            metadata if metadata.is_dir() => bytes(&file.path()),
            metadata => metadata.len(),
        })
        .sum()
}

/// What a table's files are to look like.
#[derive(Clone, Copy)]
struct Order {
    sorted: bool,
    partitioned: bool,
}

fn measured(task: &str, folder: &Path, arguments: &[String]) -> (f64, f64) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child
        .args(arguments)
        .env(TASK, format!("{task} {}", folder.display()));
    let output = child.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{task}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (seconds, bytes) = text.trim().split_once(' ').unwrap();
    (seconds.parse().unwrap(), bytes.parse().unwrap())
}

/// The greatest resident memory this process has had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok())
        .unwrap_or_default()
        * 1024
}

fn columns() -> SchemaRef {
    let fields = ["id", "value"].map(|name| Field::new(name, DataType::Int64, true));
    let texts = ["name", "place"].map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(fields.into_iter().chain(texts).collect::<Vec<_>>()))
}

/// Numbers in order and out of order, and texts of few and of many values.
fn rows_of(ids: std::ops::Range<u64>) -> RecordBatch {
    let number = |id: u64| i64::try_from(id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).unwrap();
    let numbers = Int64Array::from_iter_values(ids.clone().map(|id| i64::try_from(id).unwrap()));
    let values = Int64Array::from_iter_values(ids.clone().map(number));
    let names = StringArray::from_iter_values(ids.clone().map(|id| format!("name {:x}", number(id))));
    let places = StringArray::from_iter_values(ids.map(|id| format!("place {}", number(id) % 1000)));
    let arrays: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(numbers),
        Arc::new(values),
        Arc::new(names),
        Arc::new(places),
    ];
    RecordBatch::try_new(columns(), arrays).unwrap()
}

async fn open(folder: &Path) -> Arc<Catalog> {
    let url = folder.join("lake").display().to_string().parse().unwrap();
    let mut options = CatalogOptions::default();
    options.store.create = true;
    Catalog::open(&url, &options).await.unwrap()
}

async fn begin(catalog: &Arc<Catalog>, changes_made: &str) -> (CatalogTransaction, u64) {
    let mut transaction = catalog.begin().await.unwrap();
    let snapshot_id = transaction.head().unwrap().snapshot_id + 1;
    let snapshot = SnapshotValue {
        snapshot_id,
        schema_version: 1,
        next_catalog_id: 10,
        next_file_id: 10,
        ..SnapshotValue::default()
    };
    transaction.insert_snapshot(snapshot).await.unwrap();
    let changes = SnapshotChanges {
        snapshot_id,
        changes_made: Some(changes_made.to_owned()),
        ..SnapshotChanges::default()
    };
    transaction.set_snapshot_changes(changes).await.unwrap();
    (transaction, snapshot_id)
}

/// The table, as snapshot 1.
async fn create_table(catalog: &Arc<Catalog>, order: Order) {
    let numbers = ["id", "value"].map(|name| ColumnDefinition::new(name, ColumnType::Int64));
    let texts = ["name", "place"].map(|name| ColumnDefinition::new(name, ColumnType::Varchar));
    let definition = TableDefinition::new("t", numbers.into_iter().chain(texts).collect());
    let created = catalog.commit(|tx| {
        let definition = definition.clone();
        async move {
            let table = tx.create_table("main", definition).await?;
            if order.partitioned {
                let key = PartitionField::new("place", Transform::Identity);
                tx.set_partition(table, vec![key]).await?;
            }
            if order.sorted {
                tx.set_sort(table, vec![SortExpression::ascending("value")])
                    .await?;
            }
            Ok(())
        }
    });
    created.await.unwrap();
}

async fn create_inlined_table(transaction: &mut CatalogTransaction, table_id: u64, schema_version: u64) {
    for change in [
        InlineChange::CreateTable {
            table_id,
            schema_version,
            schema: columns(),
        },
        InlineChange::Register {
            table_id,
            schema_version,
        },
    ] {
        transaction.inline(change).await.unwrap();
    }
}

async fn build(folder: &Path, rows: u64, order: Order) -> Instant {
    let catalog = open(folder).await;
    catalog
        .create(Some(&folder.join("data").display().to_string()), false)
        .await
        .unwrap();
    let began = Instant::now();
    create_table(&catalog, order).await;
    let (table_id, schema_version) = (1, 1);
    let chunks: Vec<u64> = (0..rows).step_by(usize::try_from(CHUNK_ROWS).unwrap()).collect();
    for part in chunks.chunks(usize::try_from(COMMIT_CHUNKS).unwrap()) {
        let (mut transaction, begin_snapshot) = begin(&catalog, "inlined_insert:1").await;
        if part.first() == Some(&0) {
            create_inlined_table(&mut transaction, table_id, schema_version).await;
        }
        for first in part {
            let ids = *first..(first + CHUNK_ROWS).min(rows);
            let insert = InlineChange::Insert {
                table_id,
                schema_version,
                begin_snapshot,
                row_ids: ids.clone().collect(),
                batch: rows_of(ids),
            };
            transaction.inline(insert).await.unwrap();
        }
        transaction.commit().await.unwrap();
    }
    // One row in a thousand has ended.
    let (mut transaction, end_snapshot) = begin(&catalog, "inlined_delete:1").await;
    let ended = chunks
        .iter()
        .zip(0..)
        .map(|(first, chunk)| (*first, 2 + chunk / COMMIT_CHUNKS));
    let end = InlineChange::EndRows {
        table_id,
        rows: ended.collect(),
        end_snapshot,
    };
    transaction.inline(end).await.unwrap();
    transaction.commit().await.unwrap();
    catalog.close().await.unwrap();
    began
}

async fn flush(folder: &Path) -> Instant {
    let catalog = open(folder).await;
    let began = Instant::now();
    let report = catalog.flush(&FlushOptions::default()).await.unwrap();
    assert_eq!(report.tables.len(), 1);
    catalog.close().await.unwrap();
    began
}

fn write_parquet(folder: &Path, rows: u64) -> Instant {
    let folder = folder.join("parquet");
    std::fs::create_dir(&folder).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let file = std::fs::File::create(folder.join("rows.parquet")).unwrap();
    let own = ["_ducklake_internal_row_id", "_ducklake_internal_snapshot_id"];
    let own = own.map(|name| Arc::new(Field::new(name, DataType::Int64, true)));
    let fields: Vec<_> = columns().fields().iter().cloned().chain(own).collect();
    let schema = Arc::new(Schema::new(fields));
    let began = Instant::now();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).unwrap();
    for first in (0..rows).step_by(16_384) {
        let ids = first..(first + 16_384).min(rows);
        let mut arrays = rows_of(ids.clone()).columns().to_vec();
        let row_ids = Int64Array::from_iter_values(ids.clone().map(|id| i64::try_from(id).unwrap()));
        let snapshots = ids.map(|id| i64::try_from(2 + id / CHUNK_ROWS / COMMIT_CHUNKS).unwrap());
        arrays.push(Arc::new(row_ids));
        arrays.push(Arc::new(Int64Array::from_iter_values(snapshots)));
        writer
            .write(&RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap())
            .unwrap();
    }
    writer.close().unwrap();
    began
}
