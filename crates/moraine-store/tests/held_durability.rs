//! What may be built on a batch that is written and not yet durable, and what becomes of it.

use std::time::Duration;

use moraine_store::{Bytes, CommitError, MemoryStore, Pending, ReadError, Store};
use tokio::time::timeout;

use crate::support::lake::key;

const SOON: Duration = Duration::from_millis(50);

async fn write(store: &MemoryStore, id: u64) -> Pending {
    let mut transaction = store.begin().unwrap();
    transaction.put(key(4, id), Bytes::from_static(b"v")).unwrap();
    transaction.commit().await.unwrap()
}

#[tokio::test]
async fn acknowledgements_wait_and_views_of_earlier_states_do_not() {
    let store = MemoryStore::new();
    write(&store, 1).await.durable().await.unwrap();
    let earlier = store.view().unwrap();
    store.hold();
    let pending = write(&store, 2).await;
    let later = store.view().unwrap();
    earlier.settled().await.unwrap();
    assert!(
        timeout(SOON, later.settled()).await.is_err(),
        "a view of what is not durable has settled"
    );
    let mut durable = Box::pin(pending.durable());
    assert!(
        timeout(SOON, &mut durable).await.is_err(),
        "a held batch is durable"
    );
    store.release();
    durable.await.unwrap();
    later.settled().await.unwrap();
    write(&store, 3).await.durable().await.unwrap();
}

#[tokio::test]
async fn a_failed_flush_fails_all_that_depends_on_it() {
    let store = MemoryStore::new();
    write(&store, 1).await.durable().await.unwrap();
    let earlier = store.view().unwrap();
    store.hold();
    let first = write(&store, 2).await;
    let view = store.view().unwrap();
    let second = write(&store, 3).await;
    let lost = CommitError::Unknown {
        detail: "the flush failed".to_owned(),
    };
    store.fail(lost.clone());
    assert_eq!(first.durable().await, Err(lost.clone()));
    assert_eq!(second.durable().await, Err(lost.clone()));
    assert_eq!(view.settled().await, Err(lost));
    assert_eq!(
        earlier.settled().await,
        Ok(()),
        "what was durable before stays so"
    );
    let refused = store.view().map(|_| ());
    assert!(matches!(refused, Err(ReadError::Stopped { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_fenced_store_refuses_by_that_name() {
    let store = MemoryStore::new();
    let mut open = store.begin().unwrap();
    open.put(key(4, 1), Bytes::new()).unwrap();
    store.fail(CommitError::Fenced {
        detail: "taken over".to_owned(),
    });
    let refused = open.commit().await.map(|_| ());
    assert_eq!(
        refused,
        Err(CommitError::Fenced {
            detail: "taken over".to_owned()
        })
    );
    assert_eq!(
        store.begin().map(|_| ()),
        Err(ReadError::Fenced {
            detail: "taken over".to_owned()
        })
    );
}
