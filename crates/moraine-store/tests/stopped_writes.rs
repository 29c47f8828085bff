//! The object store stops after its k-th write, for every k: what is found afterwards is a state between two batches,
//! and at least what was acknowledged. And several processes that create the same store at the same moment.

use std::sync::Arc;
use std::time::Duration;

use moraine_store::{Bytes, OpenError, OpenOptions, SlateStore};
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::support::lake::{Records, genesis, key, newest, put};
use crate::support::stopping_store::StoppingStore;

const ROUNDS: u64 = 6;
const OPENERS: usize = 6;

fn impatient() -> OpenOptions {
    OpenOptions {
        create: true,
        open_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_millis(500),
        ..OpenOptions::default()
    }
}

fn round(number: u64) -> Records {
    [4, 6, 9]
        .map(|subspace| (key(subspace, number), Bytes::from(vec![1; 100])))
        .into()
}

/// Creates a store, commits its genesis and some rounds, until writing stops; how many batches were acknowledged.
async fn work(objects: Arc<dyn ObjectStore>) -> u64 {
    let Ok(store) = SlateStore::open_on(objects, "lake", &impatient()).await else {
        return 0;
    };
    let mut acknowledged = 0;
    for number in 0..ROUNDS {
        let batch = if number == 0 { genesis(12) } else { round(number) };
        if put(store.as_ref(), &batch).await.is_err() {
            break;
        }
        acknowledged += 1;
    }
    acknowledged
}

/// The state after the first `batches` batches.
fn state(batches: u64) -> Records {
    let mut records: Records = if batches == 0 { Vec::new() } else { genesis(12) };
    records.extend((1..batches).flat_map(round));
    records.sort();
    records
}

async fn stop_after(writes: u64) -> bool {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let stopping = StoppingStore::new(Arc::clone(&objects), writes);
    let acknowledged = work(Arc::clone(&stopping) as Arc<dyn ObjectStore>).await;
    let store = SlateStore::open_on(objects, "lake", &OpenOptions::create()).await;
    let store = store.unwrap_or_else(|error| panic!("stopped after {writes} writes: {error}"));
    let found = newest(&store).await.unwrap();
    assert!(
        found == state(acknowledged) || found == state(acknowledged + 1),
        "stopped after {writes} writes: {acknowledged} batches acknowledged, {} records found",
        found.len()
    );
    put(store.as_ref(), &round(99)).await.unwrap();
    acknowledged == ROUNDS
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_after_any_write_leaves_a_whole_state() {
    let objects = StoppingStore::new(Arc::new(InMemory::new()), u64::MAX);
    assert_eq!(work(Arc::clone(&objects) as Arc<dyn ObjectStore>).await, ROUNDS);
    let writes = objects.writes();
    assert!(writes > ROUNDS);
    let rounds: Vec<_> = (0..=writes + 2)
        .map(|writes| tokio::spawn(stop_after(writes)))
        .collect();
    let (mut cut, mut whole) = (0, 0);
    for round in rounds {
        if round.await.unwrap() {
            whole += 1
        } else {
            cut += 1
        }
    }
    assert!(
        cut > ROUNDS && whole > 0,
        "{cut} rounds were cut short, {whole} were not"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creating_the_same_store_at_the_same_moment_is_not_called_damage() {
    for _ in 0..10 {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let openers: Vec<_> = (0..OPENERS)
            .map(|_| {
                let objects = Arc::clone(&objects);
                tokio::spawn(
                    async move { SlateStore::open_on(objects, "lake", &OpenOptions::create()).await },
                )
            })
            .collect();
        let mut stores = Vec::new();
        for opener in openers {
            match opener.await.unwrap() {
                Ok(store) => stores.push(store),
                Err(OpenError::Fenced { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        let mut owners = 0;
        for store in &stores {
            owners += usize::from(put(store.as_ref(), &genesis(12)).await.is_ok());
        }
        assert!(owners <= 1, "{owners} processes own one store");
        let last = SlateStore::open_on(objects, "lake", &OpenOptions::default())
            .await
            .unwrap();
        assert_eq!(newest(&last).await.unwrap(), state(owners as u64));
    }
}
