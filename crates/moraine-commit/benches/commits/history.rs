//! What a long history adds to a commit: one committer, in memory, after so many snapshots; as the process is that has made
//! them, whose newest records are in its memtable, and after a restart with all of them in SSTs. Beside each, bare SlateDB on a
//! copy of the same objects, with the reads and the batch of such a commit. Lakes take turns, so that whatever else the machine
//! does befalls all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moraine_commit::Catalog;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use slatedb::Db;

use crate::bare;
use crate::subjects::{append, lake, millis, percentile, store};

const SNAPSHOTS: [u64; 3] = [10, 1_000, 100_000];
/// Commits of one turn, and turns of each lake.
const MEASURED: u64 = 30;
const TURNS: u64 = 10;
/// Commits at the same time while the history is made.
const MAKERS: u64 = 64;

/// A lake with its history.
struct Subject {
    snapshots: u64,
    objects: Arc<InMemory>,
}

impl Subject {
    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.objects) as Arc<dyn ObjectStore>
    }
}

/// How long commits took, sorted, and how many records each read of the store.
#[derive(Default)]
struct Measured {
    ours: Vec<Duration>,
    bare: Vec<Duration>,
    reads: u64,
}

pub async fn run(shorter: u64) {
    println!("\n## A commit after a history\n");
    println!(
        "| snapshots | state | p50 ms | p90 ms | ratio to the first | bare p50 ms | ratio to the first | reads of the engine |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let (mut subjects, mut catalogs) = (Vec::new(), Vec::new());
    for snapshots in SNAPSHOTS {
        let subject = Subject {
            snapshots: if snapshots > 1_000 {
                snapshots / shorter
            } else {
                snapshots
            },
            objects: Arc::new(InMemory::new()),
        };
        let catalog = make(&subject).await;
        bare::rest(&subject.store()).await;
        subjects.push(subject);
        catalogs.push(catalog);
    }
    measure(&subjects, catalogs, "as made").await;
    let mut catalogs = Vec::new();
    for subject in &subjects {
        bare::settle(&subject.store()).await;
        let catalog = Catalog::with_store(store(&subject.store()).await);
        bare::rest(&subject.store()).await;
        catalogs.push(catalog);
    }
    measure(&subjects, catalogs, "settled").await;
}

/// A lake with so many snapshots, by many committers at once.
async fn make(subject: &Subject) -> Arc<Catalog> {
    let snapshots = subject.snapshots;
    let catalog = lake(&subject.store()).await;
    let makers: Vec<_> = (0..MAKERS)
        .map(|maker| {
            let catalog = Arc::clone(&catalog);
            tokio::spawn(async move {
                let mut number = maker;
                while number < snapshots {
                    append(&catalog, number).await;
                    number += MAKERS;
                }
            })
        })
        .collect();
    for maker in makers {
        maker.await.unwrap();
    }
    catalog
}

async fn measure(subjects: &[Subject], catalogs: Vec<Arc<Catalog>>, state: &str) {
    let mut all: Vec<Measured> = subjects.iter().map(|_| Measured::default()).collect();
    let mut engines: Vec<Db> = Vec::new();
    for subject in subjects {
        let copy: Arc<dyn ObjectStore> = Arc::new(subject.objects.fork());
        let engine = bare::open(&copy).await;
        bare::rest(&copy).await;
        engines.push(engine);
    }
    for turn in 0..TURNS {
        for (place, measured) in all.iter_mut().enumerate() {
            let (catalog, snapshots) = (&catalogs[place], subjects[place].snapshots);
            let before = catalog.store().reads();
            for number in 0..MEASURED {
                let number = snapshots + turn * MEASURED + number;
                let started = Instant::now();
                append(catalog, number).await;
                measured.ours.push(started.elapsed());
                let started = Instant::now();
                bare::commit(&engines[place], number).await;
                measured.bare.push(started.elapsed());
            }
            measured.reads = (catalog.store().reads() - before) / MEASURED;
        }
    }
    for (engine, catalog) in engines.iter().zip(catalogs) {
        engine.close().await.unwrap();
        catalog.close().await.unwrap();
    }
    for measured in &mut all {
        measured.ours.sort();
        measured.bare.sort();
    }
    for (subject, measured) in subjects.iter().zip(&all) {
        print(subject.snapshots, state, measured, &all[0]);
    }
}

fn print(snapshots: u64, state: &str, measured: &Measured, first: &Measured) {
    let ratio = |of: fn(&Measured) -> &Vec<Duration>| {
        percentile(of(measured), 0.5).as_secs_f64() / percentile(of(first), 0.5).as_secs_f64()
    };
    println!(
        "| {snapshots} | {state} | {:.3} | {:.3} | {:.2} | {:.3} | {:.2} | {} |",
        millis(percentile(&measured.ours, 0.5)),
        millis(percentile(&measured.ours, 0.9)),
        ratio(|measured| &measured.ours),
        millis(percentile(&measured.bare, 0.5)),
        ratio(|measured| &measured.bare),
        measured.reads,
    );
}
