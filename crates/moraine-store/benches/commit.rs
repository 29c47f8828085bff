//! What a commit costs: one client, and 64 of them sharing flushes; moraine's store beside bare SlateDB in the same run,
//! in memory and on a local disk with fsync. Prints PUT counts and ratios; asserts nothing about time.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use futures::TryStreamExt;
use moraine_store::{Bytes, OpenOptions, SlateStore, Store};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use slatedb::config::Settings;
use slatedb::{Db, WriteBatch};
use tokio::runtime::Runtime;

const CLIENTS: u64 = 64;
/// Commits of each client in one round.
const COMMITS: u64 = 20;
/// Commits of the single client whose PUTs are counted.
const SINGLE_COMMITS: u64 = 100;
const PUTS_PER_COMMIT: u64 = 6;

/// Both subjects on object stores of one kind.
struct Subjects {
    kind: &'static str,
    objects: Arc<dyn ObjectStore>,
    moraine: Arc<SlateStore>,
    bare: Db,
    _folder: Option<tempfile::TempDir>,
}

fn records(client: u64, number: u64) -> impl Iterator<Item = (Bytes, Bytes)> {
    (0..PUTS_PER_COMMIT).map(move |part| {
        let mut key = vec![u8::try_from(part).unwrap_or(0) + 2];
        key.extend_from_slice(&client.to_be_bytes());
        key.extend_from_slice(&number.to_be_bytes());
        (Bytes::from(key), Bytes::from(vec![7; 40]))
    })
}

async fn commit_moraine(store: &SlateStore, client: u64, number: u64) {
    let mut transaction = store.begin().unwrap();
    for (key, value) in records(client, number) {
        transaction.put(key, value).unwrap();
    }
    transaction.commit().await.unwrap().durable().await.unwrap();
}

/// The way of the documentation: write, then flush.
async fn commit_bare(db: &Db, client: u64, number: u64) {
    let mut batch = WriteBatch::new();
    for (key, value) in records(client, number) {
        batch.put_bytes(key, value);
    }
    let written = db.write(batch).await.unwrap();
    db.flush().await.unwrap();
    written.await_durable().await.unwrap();
}

impl Subjects {
    async fn new(
        kind: &'static str,
        objects: Arc<dyn ObjectStore>,
        folder: Option<tempfile::TempDir>,
    ) -> Subjects {
        let moraine = SlateStore::open_on(Arc::clone(&objects), "moraine", &OpenOptions::create())
            .await
            .unwrap();
        let settings = Settings {
            flush_interval: None,
            ..Settings::default()
        };
        let bare = Db::builder("bare", Arc::clone(&objects))
            .with_settings(settings)
            .build()
            .await
            .unwrap();
        Subjects {
            kind,
            objects,
            moraine,
            bare,
            _folder: folder,
        }
    }

    async fn all() -> Vec<Subjects> {
        let folder = tempfile::tempdir().unwrap();
        let disk = LocalFileSystem::new_with_prefix(folder.path())
            .unwrap()
            .with_fsync(true);
        vec![
            Subjects::new("memory", Arc::new(InMemory::new()), None).await,
            Subjects::new("disk with fsync", Arc::new(disk), Some(folder)).await,
        ]
    }

    async fn wal_objects(&self, subject: &str) -> usize {
        let folder = Path::from(format!("{subject}/wal"));
        self.objects
            .list(Some(&folder))
            .try_collect::<Vec<_>>()
            .await
            .unwrap()
            .len()
    }

    /// One round of all clients; the time it took.
    async fn round(&self, bare: bool, first: u64) -> Duration {
        let start = Instant::now();
        let clients = (0..CLIENTS).map(|client| {
            let (moraine, db) = (Arc::clone(&self.moraine), self.bare.clone());
            tokio::spawn(async move {
                for number in first..first + COMMITS {
                    if bare {
                        commit_bare(&db, client, number).await;
                    } else {
                        commit_moraine(&moraine, client, number).await;
                    }
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        start.elapsed()
    }

    /// PUTs and ratios, printed once.
    async fn print(&self) {
        let before = self.wal_objects("moraine").await;
        let start = Instant::now();
        for number in 0..SINGLE_COMMITS {
            commit_moraine(&self.moraine, CLIENTS, number).await;
        }
        let moraine = start.elapsed();
        let puts = self.wal_objects("moraine").await - before;
        let start = Instant::now();
        for number in 0..SINGLE_COMMITS {
            commit_bare(&self.bare, CLIENTS, number).await;
        }
        let bare = start.elapsed();
        println!(
            "{}: {SINGLE_COMMITS} commits of one client = {puts} PUTs; {:?} each, bare SlateDB {:?}, ratio {:.2}",
            self.kind,
            moraine / 100,
            bare / 100,
            moraine.as_secs_f64() / bare.as_secs_f64()
        );
        let commits = CLIENTS * COMMITS;
        let mut line = format!("{}: {commits} commits of {CLIENTS} clients", self.kind);
        let mut times = Vec::new();
        for (subject, bare) in [("moraine", false), ("bare", true)] {
            let before = self.wal_objects(subject).await;
            let time = self.round(bare, 1000).await;
            let puts = self.wal_objects(subject).await - before;
            let rate = f64::from(u32::try_from(commits).unwrap_or(u32::MAX)) / time.as_secs_f64();
            line += &format!("; {subject}: {puts} PUTs, {rate:.0} commits/s");
            times.push(time.as_secs_f64());
        }
        println!("{line}; ratio {:.1}", times[1] / times[0]);
    }
}

fn commits(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let subjects = runtime.block_on(Subjects::all());
    for subject in &subjects {
        runtime.block_on(subject.print());
    }
    let mut next = 1_000_000;
    let mut group = criterion.benchmark_group("one commit");
    for subject in &subjects {
        group.bench_function(BenchmarkId::new("moraine", subject.kind), |bencher| {
            bencher.iter(|| {
                next += 1;
                runtime.block_on(commit_moraine(&subject.moraine, 0, next));
            });
        });
        group.bench_function(BenchmarkId::new("bare", subject.kind), |bencher| {
            bencher.iter(|| {
                next += 1;
                runtime.block_on(commit_bare(&subject.bare, 0, next));
            });
        });
    }
    group.finish();
    for subject in subjects {
        runtime.block_on(subject.moraine.close()).unwrap();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots();
    targets = commits
}
criterion_main!(benches);
