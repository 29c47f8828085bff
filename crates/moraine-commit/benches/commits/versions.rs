//! What ended versions add to loading the newest state: all tables, their columns and their files, read once. moraine keeps what
//! has ended elsewhere; RockLake's keys keep every version beside the live one. As the process is that has written them, and
//! after a restart with all in SSTs; beside each, the same scans of bare SlateDB.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moraine_codec::encode;
use moraine_codec::proto::{ColumnValue, DataFileValue, TableValue};
use moraine_commit::Catalog;
use moraine_keys::{ColumnKey, DataFileKey, History, Kind, TableKey};
use moraine_store::{ReadExt, SlateStore, Store};
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::bare;
use crate::rocklake::RockLake;
use crate::subjects::{millis, percentile, store};

const TABLES: u64 = 100;
const COLUMNS: u64 = 5;
const FILES: u64 = 10;
/// Ended versions of each table, column and file.
const ENDED: [u64; 3] = [0, 10, 100];
const LOADS: u32 = 41;
/// Records of one batch while the lake is made.
const BATCH_RECORDS: usize = 20_000;

pub async fn run() {
    println!("\n## Loading the newest state: {TABLES} tables, {COLUMNS} columns and {FILES} files each\n");
    println!(
        "| ended versions of each | state | moraine ms | ratio to none | bare scans ms | ratio to none | RockLake's keys ms | ratio to none | RockLake / moraine |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let (mut lakes, mut stores) = (Vec::new(), Vec::new());
    for ended in ENDED {
        let objects = Arc::new(InMemory::new());
        let store = store(&of(&objects)).await;
        let catalog = Catalog::with_store(Arc::clone(&store) as Arc<dyn Store>);
        catalog.create(Some("data/"), false).await.unwrap();
        fill(&store, ended).await;
        bare::rest(&of(&objects)).await;
        lakes.push(objects);
        stores.push(store);
    }
    compare(&lakes, stores, "as made").await;
    let mut stores = Vec::new();
    for objects in &lakes {
        bare::settle(&of(objects)).await;
        let store = store(&of(objects)).await;
        bare::rest(&of(objects)).await;
        stores.push(store);
    }
    compare(&lakes, stores, "settled").await;
}

fn of(objects: &Arc<InMemory>) -> Arc<dyn ObjectStore> {
    Arc::clone(objects) as Arc<dyn ObjectStore>
}

/// What a load takes: ours, the same scans of the engine alone, and with RockLake's keys.
#[derive(Default)]
struct Loads([Vec<Duration>; 3]);

impl Loads {
    fn p50(&self, place: usize) -> Duration {
        percentile(&self.0[place], 0.5)
    }
}

/// Loads in turns, so that whatever else the machine does befalls all.
async fn compare(lakes: &[Arc<InMemory>], stores: Vec<Arc<SlateStore>>, state: &str) {
    let ranges = [TableKey::scan(), ColumnKey::scan(), DataFileKey::scan()];
    let mut engines = Vec::new();
    for objects in lakes {
        let copy: Arc<dyn ObjectStore> = Arc::new(objects.fork());
        let engine = bare::open(&copy).await;
        bare::rest(&copy).await;
        engines.push(engine);
    }
    let mut all: Vec<Loads> = lakes.iter().map(|_| Loads::default()).collect();
    for _ in 0..LOADS {
        for (place, loads) in all.iter_mut().enumerate() {
            let (store, engine) = (&stores[place], &engines[place]);
            loads.0[0].push(measure(load(store)).await);
            loads.0[1].push(measure(bare::scan(engine, &ranges)).await);
            loads.0[2].push(measure(RockLake::new(store).load()).await);
        }
    }
    for (engine, store) in engines.iter().zip(stores) {
        engine.close().await.unwrap();
        store.close().await.unwrap();
    }
    for times in all.iter_mut().flat_map(|loads| &mut loads.0) {
        times.sort();
    }
    for (ended, loads) in ENDED.into_iter().zip(&all) {
        print(ended, state, loads, &all[0]);
    }
}

fn print(ended: u64, state: &str, loads: &Loads, first: &Loads) {
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    print!("| {ended} | {state} ");
    for place in 0..3 {
        let p50 = loads.p50(place);
        print!("| {:.2} | {:.2} ", millis(p50), ratio(p50, first.p50(place)));
    }
    println!("| {:.1} |", ratio(loads.p50(2), loads.p50(0)));
}

async fn measure(load: impl Future<Output = usize>) -> Duration {
    let expected = usize::try_from(TABLES * (1 + COLUMNS + FILES)).unwrap();
    let started = Instant::now();
    let loaded = load.await;
    let took = started.elapsed();
    assert_eq!(loaded, expected, "all see what is live and nothing else");
    took
}

async fn load(store: &Arc<SlateStore>) -> usize {
    let view = store.view().unwrap();
    let tables = view.records::<TableKey>(TableKey::scan()).await.unwrap();
    let columns = view.records::<ColumnKey>(ColumnKey::scan()).await.unwrap();
    let files = view.records::<DataFileKey>(DataFileKey::scan()).await.unwrap();
    tables.len() + columns.len() + files.len()
}

/// Writes the same versions under both kinds of keys.
async fn fill(store: &Arc<SlateStore>, ended: u64) {
    let mut records = Vec::new();
    for table_id in 1..=TABLES {
        for version in 0..=ended {
            let end = (version < ended).then_some(version + 1);
            let table = table(table_id, version, end);
            records.push(current_or_history(TableKey { table_id }, &table, end));
            records.push(RockLake::table(&table));
            for column_id in 1..=COLUMNS {
                let column = column(table_id, column_id, version, end);
                let key = ColumnKey { table_id, column_id };
                records.push(current_or_history(key, &column, end));
                records.push(RockLake::column(&column));
            }
            for number in 0..FILES {
                let data_file_id = version * TABLES * FILES + table_id * FILES + number;
                let file = file(table_id, data_file_id, version, end);
                let key = DataFileKey {
                    table_id,
                    data_file_id,
                };
                records.push(current_or_history(key, &file, end));
                records.push(RockLake::data_file(&file));
            }
        }
    }
    for batch in records.chunks(BATCH_RECORDS) {
        let mut transaction = store.begin().unwrap();
        for (key, value) in batch {
            transaction.put(key.clone(), value.clone()).unwrap();
        }
        transaction.commit().await.unwrap().durable().await.unwrap();
    }
}

fn current_or_history<K>(key: K, value: &K::Value, end: Option<u64>) -> (bytes::Bytes, bytes::Bytes)
where
    K: moraine_keys::Versioned + moraine_codec::Stored,
    History<K>: moraine_codec::Stored<Value = K::Value>,
{
    match end {
        None => (key.encode(), encode(&key, value).unwrap()),
        Some(end_snapshot) => {
            let key = History {
                entity: key,
                end_snapshot,
            };
            (key.encode(), encode(&key, value).unwrap())
        }
    }
}

fn table(table_id: u64, begin_snapshot: u64, end_snapshot: Option<u64>) -> TableValue {
    TableValue {
        table_id,
        table_uuid: "01234567-89ab-cdef-0123-456789abcdef".into(),
        begin_snapshot,
        end_snapshot,
        table_name: format!("table_{table_id}"),
        path: format!("table_{table_id}/"),
        path_is_relative: true,
        ..TableValue::default()
    }
}

fn column(table_id: u64, column_id: u64, begin_snapshot: u64, end_snapshot: Option<u64>) -> ColumnValue {
    ColumnValue {
        table_id,
        column_id,
        begin_snapshot,
        end_snapshot,
        column_order: column_id,
        column_name: format!("column_{column_id}"),
        column_type: "int64".into(),
        default_value: Some("NULL".into()),
        nulls_allowed: true,
        ..ColumnValue::default()
    }
}

fn file(table_id: u64, data_file_id: u64, begin_snapshot: u64, end_snapshot: Option<u64>) -> DataFileValue {
    DataFileValue {
        table_id,
        data_file_id,
        begin_snapshot,
        end_snapshot,
        path: format!("ducklake-01234567-89ab-cdef-0123-{data_file_id:012x}.parquet"),
        path_is_relative: true,
        file_format: "parquet".into(),
        record_count: 1_000,
        file_size_bytes: 10_000,
        footer_size: 500,
        row_id_start: Some(data_file_id * 1_000),
        ..DataFileValue::default()
    }
}
