//! What is kept is what a scan of the store gives, whatever has been committed in between.

use std::sync::Arc;

use bytes::Bytes;
use moraine_codec::Record;
use moraine_codec::proto::{
    ColumnValue, OptionScopeValue, SchemaValue, SnapshotValue, TableStatsValue, TableValue,
};
use moraine_keys::{ColumnKey, Kind, OptionKey, SchemaKey, TableKey, TableScoped, TableStatsKey};
use moraine_store::{MemoryStore, Read, collect};
use proptest::prelude::*;

use super::{KINDS, PARTS_READ_MIN};
use crate::{Catalog, Change, SnapshotChanges};

/// What one commit does to a few records of each kind.
#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(u64),
    Rename(u64),
    Remove(u64),
    /// A batch without a snapshot: the changelog does not tell of it.
    Maintain,
    /// Nothing but a snapshot.
    Idle,
    /// Somebody reads all.
    Look,
    /// Somebody reads a little.
    Glance,
}

fn step() -> impl Strategy<Value = Step> {
    let id = 1..6_u64;
    prop_oneof![
        3 => id.clone().prop_map(Step::Insert),
        3 => id.clone().prop_map(Step::Rename),
        2 => id.prop_map(Step::Remove),
        1 => Just(Step::Maintain),
        1 => Just(Step::Idle),
        2 => Just(Step::Look),
        6 => Just(Step::Glance),
    ]
}

/// The schema, table, column and statistics of an id, named after the snapshot.
fn records(id: u64, snapshot: u64) -> [Record; 4] {
    let name = format!("n{id}-{snapshot}");
    let schema = SchemaValue {
        schema_id: id,
        begin_snapshot: snapshot,
        schema_name: name.clone(),
        ..SchemaValue::default()
    };
    let table = TableValue {
        table_id: id,
        begin_snapshot: snapshot,
        table_name: name.clone(),
        ..TableValue::default()
    };
    let column = ColumnValue {
        table_id: id,
        column_id: 1,
        begin_snapshot: snapshot,
        column_name: name,
        column_type: "int64".to_owned(),
        ..ColumnValue::default()
    };
    let key = ColumnKey {
        table_id: id,
        column_id: 1,
    };
    let stats = TableStatsValue {
        table_id: id,
        record_count: snapshot,
        ..TableStatsValue::default()
    };
    [
        Record::Schema(SchemaKey { schema_id: id }, schema),
        Record::Table(TableKey { table_id: id }, table),
        Record::Column(key, column),
        Record::TableStats(TableStatsKey { table_id: id }, stats),
    ]
}

/// The changes of a step, given what lives.
fn changes(step: Step, live: &mut std::collections::BTreeSet<u64>, snapshot: u64) -> Vec<Change> {
    match step {
        Step::Insert(id) if live.insert(id) => records(id, snapshot).map(Change::Insert).into(),
        Step::Rename(id) if live.contains(&id) => {
            let renamed = records(id, snapshot);
            renamed.map(|new| Change::Replace { old: new.key(), new }).into()
        }
        Step::Remove(id) if live.remove(&id) => records(id, snapshot)
            .map(|gone| Change::Remove { key: gone.key() })
            .into(),
        _ => Vec::new(),
    }
}

async fn commit(catalog: &Arc<Catalog>, step: Step, live: &mut std::collections::BTreeSet<u64>) {
    let mut transaction = catalog.begin().await.unwrap();
    if let Step::Maintain = step {
        let key = OptionKey {
            scope_kind: 2,
            scope_id: transaction.head().unwrap().batch_seq,
        };
        let options = OptionScopeValue {
            options: [("a".to_owned(), "b".to_owned())].into(),
        };
        transaction
            .stage(vec![Change::Insert(Record::Option(key, options))])
            .await
            .unwrap();
    } else {
        let snapshot_id = transaction.head().unwrap().snapshot_id + 1;
        let snapshot = SnapshotValue {
            snapshot_id,
            next_catalog_id: 100,
            ..SnapshotValue::default()
        };
        transaction.insert_snapshot(snapshot).await.unwrap();
        let made = SnapshotChanges {
            snapshot_id,
            ..SnapshotChanges::default()
        };
        transaction.set_snapshot_changes(made).await.unwrap();
        transaction.stage(changes(step, live, snapshot_id)).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

/// Reads a part of a kind and a record of another, which keeps nothing by itself.
async fn glance(catalog: &Arc<Catalog>) {
    let transaction = catalog.begin().await.unwrap();
    let (read, store) = (transaction.read(), catalog.store().view().unwrap());
    let part = ColumnKey::scan_table(3);
    let stored = collect(store.scan(part.clone()).await.unwrap()).await.unwrap();
    assert_eq!(collect(read.scan(part).await.unwrap()).await.unwrap(), stored);
    let key = TableStatsKey { table_id: 3 }.encode();
    for _ in 0..2 {
        assert_eq!(read.get(&key).await.unwrap(), store.get(&key).await.unwrap());
    }
}

/// Reads every kind whole, a part of it, and a record that is there and one that is not.
async fn look(catalog: &Arc<Catalog>) {
    let transaction = catalog.begin().await.unwrap();
    let (read, store) = (transaction.read(), catalog.store().view().unwrap());
    for range in KINDS.iter() {
        let stored = collect(store.scan(range.clone()).await.unwrap()).await.unwrap();
        let kept = collect(read.scan(range.clone()).await.unwrap()).await.unwrap();
        assert_eq!(kept, stored, "{range:?}");
        for (key, value) in &stored {
            assert_eq!(read.get(key).await.unwrap().as_ref(), Some(value));
        }
        let mut absent = range.start.to_vec();
        absent.push(0xff);
        assert_eq!(
            read.get(&absent).await.unwrap(),
            store.get(&Bytes::from(absent)).await.unwrap()
        );
    }
    let some = ColumnKey::scan_table(2);
    let stored = collect(store.scan(some.clone()).await.unwrap()).await.unwrap();
    assert_eq!(collect(read.scan(some).await.unwrap()).await.unwrap(), stored);
}

async fn lake() -> (Arc<Catalog>, MemoryStore) {
    let store = MemoryStore::new();
    let catalog = Catalog::with_store(Arc::new(store.clone()));
    catalog.create(None, false).await.unwrap();
    (catalog, store)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_replay_gives_is_what_a_scan_gives(steps in proptest::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (writer, store) = lake().await;
            let reader = Catalog::with_store(Arc::new(store));
            let mut live = std::collections::BTreeSet::new();
            look(&reader).await;
            for step in steps {
                match step {
                    Step::Look => {
                        look(&writer).await;
                        look(&reader).await;
                    }
                    Step::Glance => {
                        glance(&writer).await;
                        glance(&reader).await;
                    }
                    step => commit(&writer, step, &mut live).await,
                }
            }
            look(&writer).await;
            look(&reader).await;
        });
    }
}

/// How many records of the store a transaction reads that reads every kind whole.
async fn reads_of_all(catalog: &Arc<Catalog>) -> u64 {
    let transaction = catalog.begin().await.unwrap();
    let before = catalog.store().reads();
    for range in KINDS.iter() {
        collect(transaction.read().scan(range.clone()).await.unwrap())
            .await
            .unwrap();
    }
    catalog.store().reads() - before
}

#[tokio::test]
async fn definitions_that_did_not_change_are_not_read_again() {
    let (writer, store) = lake().await;
    let reader = Catalog::with_store(Arc::new(store));
    let mut live = std::collections::BTreeSet::new();
    for id in 1..6 {
        commit(&writer, Step::Insert(id), &mut live).await;
    }
    for catalog in [&writer, &reader] {
        assert!(reads_of_all(catalog).await >= 21, "the first reads them");
        assert_eq!(reads_of_all(catalog).await, 0);
    }
    commit(&writer, Step::Rename(3), &mut live).await;
    assert_eq!(reads_of_all(&writer).await, 0, "who writes knows what");
    // The changelog, and the four records that it names.
    assert_eq!(reads_of_all(&reader).await, 5);
    assert_eq!(
        (writer.definitions().replays(), reader.definitions().replays()),
        (0, 1)
    );
    commit(&writer, Step::Maintain, &mut live).await;
    assert_eq!(reads_of_all(&writer).await, 0);
    assert!(reads_of_all(&reader).await >= 21, "nothing tells what it changed");
    look(&writer).await;
    look(&reader).await;
}

#[tokio::test]
async fn kinds_of_which_parts_are_read_again_and_again_are_kept() {
    let (writer, _) = lake().await;
    let mut live = std::collections::BTreeSet::new();
    commit(&writer, Step::Insert(3), &mut live).await;
    for _ in 0..PARTS_READ_MIN + 1 {
        glance(&writer).await;
    }
    commit(&writer, Step::Rename(3), &mut live).await;
    let transaction = writer.begin().await.unwrap();
    let before = writer.store().reads();
    let columns = collect(transaction.read().scan(ColumnKey::scan_table(3)).await.unwrap());
    assert_eq!(columns.await.unwrap().len(), 1);
    let key = TableStatsKey { table_id: 3 }.encode();
    assert!(transaction.read().get(&key).await.unwrap().is_some());
    assert_eq!(writer.store().reads(), before);
    look(&writer).await;
}

#[tokio::test]
async fn more_changed_records_than_are_kept_apart_are_read_as_they_are() {
    let (writer, _) = lake().await;
    let mut live = std::collections::BTreeSet::new();
    look(&writer).await;
    let old = writer.begin().await.unwrap();
    for id in 1..100 {
        commit(&writer, Step::Insert(id), &mut live).await;
    }
    for id in 1..50 {
        commit(&writer, Step::Remove(id * 2), &mut live).await;
        commit(&writer, Step::Rename(id * 2 - 1), &mut live).await;
    }
    look(&writer).await;
    let tables = collect(old.read().scan(TableKey::scan()).await.unwrap())
        .await
        .unwrap();
    assert!(tables.is_empty(), "who began before sees nothing of it");
}

#[tokio::test]
async fn a_transaction_of_before_reads_what_it_read() {
    let (catalog, _) = lake().await;
    let mut live = std::collections::BTreeSet::new();
    commit(&catalog, Step::Insert(1), &mut live).await;
    let old = catalog.begin().await.unwrap();
    let read = async || {
        collect(old.read().scan(TableKey::scan()).await.unwrap())
            .await
            .unwrap()
    };
    let before = read().await;
    commit(&catalog, Step::Rename(1), &mut live).await;
    look(&catalog).await;
    assert_eq!(read().await, before);
    look(&catalog).await;
}
