//! What inlined rows cost, side by side in one run: a commit of a small chunk beside the same bytes written raw, both durable on a
//! disk, a million rows in ten thousand chunks beside one Parquet file, and the ways to get at a chunk's columns. Prints; asserts
//! nothing about time.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use criterion::{Criterion, criterion_group, criterion_main};
use moraine_inline::{
    DataFileStream, Directories, DirectoriesAt, FlushColumn, FlushLayout, RowIds, RowPredicate, create_table,
    decode_body, encode_body, flushable_rows, insert, select,
};
use moraine_store::{Bytes, OpenOptions, SlateStore, Staging, Store, open};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio::runtime::Runtime;

const TABLE: u64 = 1;
const VERSION: u64 = 1;
const CHUNKS: u64 = 10_000;
const CHUNK_ROWS: u64 = 100;
/// Rows that a reader asks for at once.
const WINDOW_ROWS: usize = 8_192;
const SMALL_CHUNK_ROWS: u64 = 10;

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]))
}

fn rows(first: u64, count: u64) -> RecordBatch {
    let ids = first..first + count;
    let numbers = Int64Array::from_iter_values(ids.clone().map(|id| id.cast_signed()));
    let texts: StringArray = ids.map(|id| Some(format!("value {id}"))).collect();
    RecordBatch::try_new(columns(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

async fn commit(store: &SlateStore, staged: &Staging) {
    let mut transaction = store.begin().unwrap();
    staged.writes().apply(transaction.as_mut()).unwrap();
    transaction.commit().await.unwrap().durable().await.unwrap();
}

async fn put(staged: &mut Staging, memory: &DirectoriesAt, begin: u64, first: u64, count: u64) {
    let row_ids: Vec<u64> = (first..first + count).collect();
    let batch = rows(first, count);
    insert(staged, memory, TABLE, VERSION, begin, &row_ids, &batch)
        .await
        .unwrap();
}

async fn store(url: &str) -> Arc<SlateStore> {
    let url = url.parse().unwrap();
    let store = open(&url, &OpenOptions::create()).await.unwrap();
    let mut staged = Staging::new(store.view().unwrap());
    create_table(&mut staged, TABLE, VERSION, &columns(), true)
        .await
        .unwrap();
    commit(&store, &staged).await;
    store
}

fn writing(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(store(folder.path().to_str().unwrap()));
    let memory = Arc::new(Directories::default()).at(0);
    let next = AtomicU64::new(0);
    let mut group = criterion.benchmark_group("ten rows, durable");
    group.sample_size(20);
    group.bench_function("as a chunk", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let mut staged = Staging::new(store.view().unwrap());
                put(
                    &mut staged,
                    &memory,
                    number + 1,
                    number * SMALL_CHUNK_ROWS,
                    SMALL_CHUNK_ROWS,
                )
                .await;
                commit(&store, &staged).await;
            })
        });
    });
    let prepared = runtime.block_on(async {
        let mut staged = Staging::new(store.view().unwrap());
        put(&mut staged, &memory, u64::MAX >> 2, 1 << 40, SMALL_CHUNK_ROWS).await;
        staged
    });
    group.bench_function("as the same bytes", |bencher| {
        bencher.iter(|| runtime.block_on(commit(&store, &prepared)));
    });
    group.finish();
}

/// Writes the chunks of a million rows.
async fn fill(store: &SlateStore, directories: &Arc<Directories>) {
    for part in 0..10 {
        let mut staged = Staging::new(store.view().unwrap());
        for chunk in part * CHUNKS / 10..(part + 1) * CHUNKS / 10 {
            put(
                &mut staged,
                &directories.at(0),
                chunk + 1,
                chunk * CHUNK_ROWS,
                CHUNK_ROWS,
            )
            .await;
        }
        commit(store, &staged).await;
    }
}

/// The same rows as one Parquet file.
async fn parquet(staged: &Staging, memory: &DirectoriesAt) -> Vec<u8> {
    let described = [(1, "n", "int64"), (2, "s", "varchar")].map(|(column_id, name, kind)| FlushColumn {
        name: name.to_owned(),
        column_id,
        ducklake_type: kind.to_owned(),
        children: Vec::new(),
    });
    let layout = FlushLayout {
        columns: described.to_vec(),
        ..FlushLayout::default()
    };
    let found = flushable_rows(staged, memory, TABLE, VERSION, u64::MAX)
        .await
        .unwrap();
    let mut stream = DataFileStream::new(found, layout).unwrap();
    let mut file = Vec::new();
    stream.next_file(staged, &mut file).await.unwrap();
    file
}

fn reading(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(store("memory://reading"));
    let directories = Arc::new(Directories::default());
    runtime.block_on(fill(&store, &directories));
    let staged = Staging::new(store.view().unwrap());
    let memory = directories.at(1);
    let file = Bytes::from(runtime.block_on(parquet(&staged, &memory)));
    let read = async |predicate: RowPredicate, projection: &[usize]| {
        let selection = select(&staged, &memory, TABLE, VERSION, &predicate)
            .await
            .unwrap();
        let (total, mut largest) = (selection.rows().len(), 0);
        for start in (0..total).step_by(WINDOW_ROWS) {
            let range = start..total.min(start + WINDOW_ROWS);
            let batch = selection.window(&staged, range, projection).await.unwrap();
            largest = largest.max(batch.get_array_memory_size());
        }
        (total, largest)
    };
    let (total, largest) = runtime.block_on(read(RowPredicate::default(), &[0, 1]));
    println!(
        "{total} rows in {CHUNKS} chunks; the largest window of {WINDOW_ROWS} rows holds {largest} bytes"
    );
    let mut group = criterion.benchmark_group("a million rows");
    group.sample_size(10);
    group.bench_function("from chunks", |bencher| {
        bencher.iter(|| runtime.block_on(read(RowPredicate::default(), &[0, 1])));
    });
    group.bench_function("from one Parquet file", |bencher| {
        bencher.iter(|| {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
            let reader = reader.with_batch_size(WINDOW_ROWS).build().unwrap();
            reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>()
        });
    });
    group.bench_function("counted", |bencher| {
        bencher.iter(|| runtime.block_on(read(RowPredicate::default(), &[])));
    });
    group.bench_function("one in a hundred", |bencher| {
        let slice = RowPredicate {
            row_ids: RowIds::within(500_000..=509_999),
            ..RowPredicate::default()
        };
        bencher.iter(|| runtime.block_on(read(slice.clone(), &[0, 1])));
    });
    group.finish();
}

fn decoding(criterion: &mut Criterion) {
    let batch = rows(0, 2048);
    let body = encode_body(&batch).unwrap();
    let mut group = criterion.benchmark_group("columns of a chunk of 2048 rows");
    group.bench_function("copied and decoded", |bencher| {
        bencher.iter(|| decode_body(&Bytes::copy_from_slice(&body), columns(), 2048).unwrap());
    });
    group.bench_function("decoded from the shared body", |bencher| {
        bencher.iter(|| decode_body(&body, columns(), 2048).unwrap());
    });
    group.bench_function("retained", |bencher| bencher.iter(|| batch.clone()));
    group.finish();
}

criterion_group!(benches, writing, reading, decoding);
criterion_main!(benches);
