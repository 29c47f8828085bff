use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use moraine_commit::{Catalog, Turn, views};
use moraine_store::{
    Bytes, CommitError, KeyRange, MemoryStore, Pending, Read, ReadError, Scan, Store, Transaction, View,
};

use crate::support::{begin_snapshot, commit, head, insert, lake, table};

/// Polls a future once and drops it, as a client does that vanishes while its COMMIT is under way.
async fn poll_once_and_drop<F: Future>(future: F) {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

/// A store whose transactions answer a read only when they are asked again, so that a commit cannot be done at once.
struct SlowStore(MemoryStore);

struct SlowTransaction(Box<dyn Transaction>);

#[async_trait]
impl Store for SlowStore {
    fn view(&self) -> Result<Arc<dyn View>, ReadError> {
        self.0.view()
    }

    fn begin(&self) -> Result<Box<dyn Transaction>, ReadError> {
        Ok(Box::new(SlowTransaction(self.0.begin()?)))
    }

    fn reads(&self) -> u64 {
        self.0.reads()
    }

    async fn close(&self) -> Result<(), ReadError> {
        self.0.close().await
    }
}

#[async_trait]
impl Read for SlowTransaction {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        tokio::task::yield_now().await;
        self.0.get(key).await
    }

    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError> {
        self.0.scan(range).await
    }
}

#[async_trait]
impl Transaction for SlowTransaction {
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), ReadError> {
        self.0.put(key, value)
    }

    fn delete(&mut self, key: Bytes) -> Result<(), ReadError> {
        self.0.delete(key)
    }

    async fn commit(self: Box<Self>) -> Result<Pending, CommitError> {
        self.0.commit().await
    }
}

#[tokio::test]
async fn a_commit_whose_caller_is_gone_comes_to_its_end_and_gives_the_slot_back() {
    let catalog = Catalog::with_store(Arc::new(SlowStore(MemoryStore::new())));
    catalog.create(None, false).await.unwrap();
    let mut transaction = begin_snapshot(&catalog, "created_table:\"main\".\"t\"").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    poll_once_and_drop(transaction.commit()).await;
    assert_eq!(head(&catalog).await.snapshot_id, 0, "it is still under way");

    let end = async {
        while head(&catalog).await.snapshot_id == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), end).await.unwrap();
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(2));
    let reader = catalog.begin().await.unwrap();
    assert_eq!(views::tables_at(reader.read(), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_transaction_dropped_before_its_commit_leaves_nothing_and_gives_the_slot_back() {
    let (catalog, store) = lake().await;
    let mut transaction = begin_snapshot(&catalog, "created_table:\"main\".\"t\"").await;
    transaction.stage(vec![insert(table(1, 1, "t"))]).await.unwrap();
    drop(transaction);
    let unpolled = begin_snapshot(&catalog, "").await.commit();
    drop(unpolled);
    assert_eq!(
        (head(&catalog).await.snapshot_id, head(&catalog).await.batch_seq),
        (0, 0)
    );
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(1));
    drop(store);
}

#[tokio::test]
async fn waiting_for_a_turn_can_be_given_up() {
    let (catalog, _) = lake().await;
    let holder = begin_snapshot(&catalog, "").await;
    poll_once_and_drop(catalog.begin_in_turn(Turn::SecondTry)).await;
    holder.commit().await.unwrap();
    assert_eq!(commit(&catalog, "", vec![]).await.snapshot_id, Some(1 + 1));
}
