//! Every implementation, on every kind of object store, held to the same conformance functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use moraine_store::conformance::run_all;
use moraine_store::{MemoryStore, OpenOptions, SlateStore, Store, StoreUrl, open};

use crate::support::mini_s3::MiniS3;

#[tokio::test]
async fn memory() {
    run_all(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slatedb_in_memory() {
    let url: StoreUrl = "memory://conformance".parse().unwrap();
    run_all(numbered(url)).await.unwrap();
}

#[tokio::test]
async fn slatedb_on_a_local_disk() {
    let folder = tempfile::tempdir().unwrap();
    let url: StoreUrl = folder.path().to_str().unwrap().parse().unwrap();
    run_all(numbered(url)).await.unwrap();
}

#[tokio::test]
async fn slatedb_on_s3() {
    let s3 = MiniS3::start().await;
    let next = AtomicU32::new(0);
    let make = async || {
        let prefix = format!("lakes/{}", next.fetch_add(1, Ordering::Relaxed));
        let store = SlateStore::open_on(s3.client(), &prefix, &OpenOptions::create())
            .await
            .unwrap();
        store as Arc<dyn Store>
    };
    run_all(make).await.unwrap();
}

/// Makes stores `1`, `2`, … below `root`.
fn numbered(root: StoreUrl) -> impl AsyncFn() -> Arc<dyn Store> {
    let next = AtomicU32::new(0);
    async move || {
        let url = root.join(&next.fetch_add(1, Ordering::Relaxed).to_string());
        open(&url, &OpenOptions::create()).await.unwrap() as Arc<dyn Store>
    }
}
