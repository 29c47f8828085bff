//! Random histories against a plain model: both stores answer as a sorted map per state would.

use std::collections::BTreeMap;
use std::sync::Arc;

use moraine_store::{
    Bytes, CommitError, KeyRange, MemoryStore, OpenOptions, Read, SlateStore, Store, Transaction, View,
    collect,
};
use object_store::memory::InMemory;
use proptest::prelude::*;

type Model = BTreeMap<Bytes, Bytes>;

#[derive(Debug, Clone)]
enum Step {
    /// Begins a transaction on the newest state.
    Begin,
    /// Puts in the transaction at that position.
    Put(usize, u8, u8),
    /// Deletes in the transaction at that position.
    Delete(usize, u8),
    /// Commits the transaction at that position.
    Commit(usize),
    /// Pins a view.
    Pin,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Begin),
        6 => (any::<usize>(), 0..12_u8, any::<u8>()).prop_map(|(at, key, value)| Step::Put(at, key, value)),
        3 => (any::<usize>(), 0..12_u8).prop_map(|(at, key)| Step::Delete(at, key)),
        3 => any::<usize>().prop_map(Step::Commit),
        1 => Just(Step::Pin),
    ]
}

/// Twelve keys in three subspaces.
fn key(number: u8) -> Bytes {
    Bytes::from(vec![2 + number % 3, number])
}

/// What a transaction should see, and what it started from.
struct Expected {
    transaction: Box<dyn Transaction>,
    sees: Model,
    writes: BTreeMap<Bytes, Option<Bytes>>,
    began_at: usize,
}

async fn check(read: &dyn Read, model: &Model) {
    let all = collect(read.scan(KeyRange::all()).await.unwrap()).await.unwrap();
    assert_eq!(
        all,
        model
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Vec<_>>()
    );
    let range = KeyRange {
        start: key(1),
        end: Some(key(7)),
    };
    let part = collect(read.scan(range.clone()).await.unwrap()).await.unwrap();
    assert_eq!(
        part,
        all.into_iter()
            .filter(|(key, _)| range.contains(key))
            .collect::<Vec<_>>()
    );
    for number in 0..12 {
        assert_eq!(
            read.get(&key(number)).await.unwrap().as_ref(),
            model.get(&key(number))
        );
    }
}

async fn run(store: Arc<dyn Store>, steps: Vec<Step>) {
    let mut model = Model::new();
    // Which keys each commit wrote, in order: what conflicts are judged by.
    let mut commits: Vec<Vec<Bytes>> = Vec::new();
    let mut open: Vec<Expected> = Vec::new();
    let mut views: Vec<(Arc<dyn View>, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::Begin => open.push(Expected {
                transaction: store.begin().unwrap(),
                sees: model.clone(),
                writes: BTreeMap::new(),
                began_at: commits.len(),
            }),
            Step::Pin => views.push((store.view().unwrap(), model.clone())),
            Step::Put(at, number, value) if !open.is_empty() => {
                let at = at % open.len();
                let (key, value) = (key(number), Bytes::from(vec![value]));
                open[at].transaction.put(key.clone(), value.clone()).unwrap();
                open[at].sees.insert(key.clone(), value.clone());
                open[at].writes.insert(key, Some(value));
            }
            Step::Delete(at, number) if !open.is_empty() => {
                let at = at % open.len();
                open[at].transaction.delete(key(number)).unwrap();
                open[at].sees.remove(&key(number));
                open[at].writes.insert(key(number), None);
            }
            Step::Commit(at) if !open.is_empty() => {
                let done = open.swap_remove(at % open.len());
                check(done.transaction.as_ref(), &done.sees).await;
                let conflicts = commits[done.began_at..]
                    .iter()
                    .flatten()
                    .any(|key| done.writes.contains_key(key));
                let outcome = match done.transaction.commit().await {
                    Ok(pending) => pending.durable().await,
                    Err(error) => Err(error),
                };
                assert_eq!(
                    outcome,
                    if conflicts {
                        Err(CommitError::Conflicted)
                    } else {
                        Ok(())
                    }
                );
                if !conflicts {
                    commits.push(done.writes.keys().cloned().collect());
                    for (key, change) in done.writes {
                        match change {
                            Some(value) => model.insert(key, value),
                            None => model.remove(&key),
                        };
                    }
                }
            }
            Step::Put(..) | Step::Delete(..) | Step::Commit(_) => {}
        }
    }
    views.push((store.view().unwrap(), model));
    for (view, expected) in &views {
        check(view.as_ref(), expected).await;
        view.settled().await.unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory(steps in prop::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(Arc::new(MemoryStore::new()), steps));
    }

    #[test]
    fn slatedb(steps in prop::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let objects = Arc::new(InMemory::new());
            let store = SlateStore::open_on(objects, "lake", &OpenOptions::create()).await.unwrap();
            run(store, steps).await;
        });
    }
}
