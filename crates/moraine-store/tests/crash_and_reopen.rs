//! Processes that end without closing, and stores that change hands.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use moraine_store::{Bytes, CommitError, OpenOptions, ReadError, Store, StoreUrl, open};

use crate::support::lake::{Records, genesis, key, newest, put};

const CHILD_FOLDER: &str = "MORAINE_TEST_FOLDER";

fn url(folder: &std::path::Path) -> StoreUrl {
    folder.to_str().unwrap().parse().unwrap()
}

/// The batch of one round: three records in three subspaces.
fn round(number: u64) -> Records {
    [4, 6, 9]
        .map(|subspace| (key(subspace, number), Bytes::from(number.to_be_bytes().to_vec())))
        .into()
}

#[test]
fn a_dropped_runtime_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = genesis(12);
    let first = tokio::runtime::Runtime::new().unwrap();
    first.block_on(async {
        let store = open(&url(folder.path()), &OpenOptions::create()).await.unwrap();
        put(store.as_ref(), &expected).await.unwrap();
        for number in 0..20 {
            put(store.as_ref(), &round(number)).await.unwrap();
            expected.extend(round(number));
        }
    });
    first.shutdown_background();
    expected.sort();
    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        let store = open(&url(folder.path()), &OpenOptions::default()).await.unwrap();
        assert_eq!(newest(&store).await.unwrap(), expected);
        store.view().unwrap().settled().await.unwrap();
        store.close().await.unwrap();
    });
}

#[tokio::test]
async fn a_dropped_store_can_be_opened_again_in_the_same_process() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..4 {
        let store = open(&url(folder.path()), &OpenOptions::create()).await.unwrap();
        if number == 0 {
            put(store.as_ref(), &genesis(12)).await.unwrap();
        }
        put(store.as_ref(), &round(number)).await.unwrap();
        assert_eq!(newest(&store).await.unwrap().len() as u64, 4 + 3 * (number + 1));
    }
}

/// Run by the next test in a process of its own: commits rounds until it is killed, printing what was acknowledged.
#[test]
#[ignore = "a child process of `a_killed_process_loses_nothing_acknowledged`"]
fn commit_until_killed() {
    let Ok(folder) = std::env::var(CHILD_FOLDER) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(&url(folder.as_ref()), &OpenOptions::default())
            .await
            .unwrap();
        let begin = (newest(&store).await.unwrap().len() as u64 - 4) / 3;
        for number in begin.. {
            put(store.as_ref(), &round(number)).await.unwrap();
            println!("acknowledged {number}");
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(&url(folder.path()), &OpenOptions::create()).await.unwrap();
        put(store.as_ref(), &genesis(12)).await.unwrap();
        store.close().await.unwrap();
    });
    for kills in [3, 17, 40] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash_and_reopen::commit_until_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(CHILD_FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let acknowledged = lines
            .filter_map(|line| {
                line.split_once("acknowledged ")
                    .and_then(|(_, n)| n.trim().parse::<u64>().ok())
            })
            .nth(kills)
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        runtime.block_on(async {
            let store = open(&url(folder.path()), &OpenOptions::default()).await.unwrap();
            let found = newest(&store).await.unwrap();
            let rounds = (found.len() as u64 - 4) / 3;
            assert!(
                rounds > acknowledged,
                "{rounds} rounds found, {acknowledged} was acknowledged"
            );
            let mut expected = genesis(12);
            expected.extend((0..rounds).flat_map(round));
            expected.sort();
            assert_eq!(found, expected, "batches are whole");
            store.close().await.unwrap();
        });
    }
}

#[tokio::test]
async fn a_second_opener_fences_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(&url(folder.path()), &OpenOptions::create()).await.unwrap();
    put(first.as_ref(), &genesis(12)).await.unwrap();
    let second = open(&url(folder.path()), &OpenOptions::default()).await.unwrap();
    put(second.as_ref(), &round(1)).await.unwrap();

    let refused = put(first.as_ref(), &round(2)).await;
    assert!(matches!(refused, Err(CommitError::Fenced { .. })), "{refused:?}");
    let (view, begin) = (first.view().map(|_| ()), first.begin().map(|_| ()));
    assert!(matches!(view, Err(ReadError::Fenced { .. })), "{view:?}");
    assert!(matches!(begin, Err(ReadError::Fenced { .. })), "{begin:?}");
    let closed = first.close().await;
    assert!(matches!(closed, Err(ReadError::Fenced { .. })), "{closed:?}");

    let mut expected = genesis(12);
    expected.extend(round(1));
    expected.sort();
    assert_eq!(
        newest(&second).await.unwrap(),
        expected,
        "the fenced one wrote nothing"
    );
}

#[tokio::test]
async fn closing_takes_bounded_time_after_many_batches_in_every_subspace() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&url(folder.path()), &OpenOptions::create()).await.unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    for number in 0..50 {
        // System records of no known kind are refused at opening; the head is overwritten as it is by every batch.
        let batch: Records = (3..12)
            .map(|subspace| (key(subspace, number), Bytes::from(vec![7; 4096])))
            .chain([genesis(12).remove(1)])
            .collect();
        put(store.as_ref(), &batch).await.unwrap();
    }
    let start = Instant::now();
    store.close().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let store = open(&url(folder.path()), &OpenOptions::default()).await.unwrap();
    assert_eq!(newest(&store).await.unwrap().len(), 454);
}
