//! Many committers at once: commits per flush, and how long each waits, beside a loop on bare SlateDB that writes as many
//! bytes and flushes, as its documentation has it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::ObjectStore;
use slatedb::config::Settings;
use slatedb::{Db, WriteBatch};

use crate::subjects::{WRITE, append, flushes, lake, millis, objects, percentile};

const COMMITTERS: [u64; 5] = [1, 4, 16, 64, 256];
/// Commits of all committers of a round together, at least.
const COMMITS: u64 = 512;
/// Commits of each committer, at least.
const COMMITS_EACH: u64 = 4;
/// Records that a commit of a file writes, and bytes of each.
const RECORDS: u64 = 8;
const RECORD_BYTES: usize = 80;

struct Round {
    seconds: f64,
    waits: Vec<Duration>,
    flushes: usize,
}

pub async fn run() {
    for (kind, write) in [("in memory", Duration::ZERO), ("with 30 ms writes", WRITE)] {
        println!("\n## Committers at once, on an object store {kind}\n");
        println!(
            "| committers | commits/s | per flush | p50 ms | p99 ms | p50 / write | bare commits/s | per flush | ratio |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for committers in COMMITTERS {
            let each = (COMMITS / committers).max(COMMITS_EACH);
            // One committer alone would take its time over so many slow writes.
            let each = if write.is_zero() { each } else { each.min(64) };
            let ours = verbs(write, committers, each).await;
            let bare = bare(write, committers, each).await;
            print(committers, each, write, &ours, &bare);
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn print(committers: u64, each: u64, write: Duration, ours: &Round, bare: &Round) {
    let commits = (committers * each) as f64;
    let rate = |round: &Round| commits / round.seconds;
    let per_flush = |round: &Round| commits / round.flushes.max(1) as f64;
    let p50 = percentile(&ours.waits, 0.5);
    let relative = if write.is_zero() {
        "-".to_owned()
    } else {
        format!("{:.2}", millis(p50) / millis(write))
    };
    println!(
        "| {committers} | {:.0} | {:.1} | {:.2} | {:.2} | {relative} | {:.0} | {:.1} | {:.1} |",
        rate(ours),
        per_flush(ours),
        millis(p50),
        millis(percentile(&ours.waits, 0.99)),
        rate(bare),
        per_flush(bare),
        rate(ours) / rate(bare),
    );
}

async fn verbs(write: Duration, committers: u64, each: u64) -> Round {
    let objects = objects(write);
    let catalog = lake(&objects).await;
    let before = flushes(&objects, "lake").await;
    let round = race(committers, each, |number| {
        let catalog = Arc::clone(&catalog);
        async move { append(&catalog, number).await }
    });
    let (seconds, waits) = round.await;
    let flushes = flushes(&objects, "lake").await - before;
    catalog.close().await.unwrap();
    Round {
        seconds,
        waits,
        flushes,
    }
}

async fn bare(write: Duration, committers: u64, each: u64) -> Round {
    let objects: Arc<dyn ObjectStore> = objects(write);
    let settings = Settings {
        flush_interval: None,
        ..Settings::default()
    };
    let db = Db::builder("bare", Arc::clone(&objects))
        .with_settings(settings)
        .build()
        .await
        .unwrap();
    let before = flushes(&objects, "bare").await;
    let round = race(committers, each, |number| {
        let db = db.clone();
        async move {
            let mut batch = WriteBatch::new();
            for part in 0..RECORDS {
                let key = [part.to_be_bytes(), number.to_be_bytes()].concat();
                batch.put_bytes(Bytes::from(key), Bytes::from(vec![7; RECORD_BYTES]));
            }
            let written = db.write(batch).await.unwrap();
            db.flush().await.unwrap();
            written.await_durable().await.unwrap();
        }
    });
    let (seconds, waits) = round.await;
    let flushes = flushes(&objects, "bare").await - before;
    db.close().await.unwrap();
    Round {
        seconds,
        waits,
        flushes,
    }
}

/// Lets committers commit so often each, as fast as they can: seconds in all, and how long each commit took, sorted.
async fn race<Fut>(committers: u64, each: u64, commit: impl Fn(u64) -> Fut) -> (f64, Vec<Duration>)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let started = Instant::now();
    let tasks: Vec<_> = (0..committers)
        .map(|committer| {
            let commits: Vec<_> = (0..each)
                .map(|number| commit(committer * each + number))
                .collect();
            tokio::spawn(async move {
                let mut waits = Vec::new();
                for commit in commits {
                    let started = Instant::now();
                    commit.await;
                    waits.push(started.elapsed());
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.unwrap());
    }
    waits.sort();
    (started.elapsed().as_secs_f64(), waits)
}
