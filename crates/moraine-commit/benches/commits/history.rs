//! What a long history adds to a commit: one committer, in memory, after so many snapshots.

use std::time::{Duration, Instant};

use crate::subjects::{append, lake, millis, objects, percentile};

const SNAPSHOTS: [u64; 3] = [10, 1_000, 100_000];
const MEASURED: u64 = 300;
/// Commits at the same time while the history is made.
const MAKERS: u64 = 64;

pub async fn run(shorter: u64) {
    println!("\n## A commit after a history\n");
    println!("| snapshots | p50 ms | p90 ms | ratio to the first |");
    println!("|---|---|---|---|");
    let mut first = None;
    for snapshots in SNAPSHOTS {
        let snapshots = if snapshots > 1_000 {
            snapshots / shorter
        } else {
            snapshots
        };
        let waits = after(snapshots).await;
        let p50 = percentile(&waits, 0.5);
        let ratio = p50.as_secs_f64() / first.get_or_insert(p50).as_secs_f64();
        println!(
            "| {snapshots} | {:.3} | {:.3} | {ratio:.2} |",
            millis(p50),
            millis(percentile(&waits, 0.9))
        );
    }
}

async fn after(snapshots: u64) -> Vec<Duration> {
    let objects = objects(Duration::ZERO);
    let catalog = lake(&objects).await;
    let makers: Vec<_> = (0..MAKERS)
        .map(|maker| {
            let catalog = std::sync::Arc::clone(&catalog);
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
    let mut waits = Vec::new();
    for number in 0..MEASURED {
        let started = Instant::now();
        append(&catalog, snapshots + number).await;
        waits.push(started.elapsed());
    }
    waits.sort();
    catalog.close().await.unwrap();
    waits
}
