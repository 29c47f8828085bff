//! Lakes in stores, and what is in a store compared with what should be.

use std::sync::Arc;

use moraine_codec::proto::HeadValue;
use moraine_keys::{FormatKey, HeadKey, Key, KeyRange, Kind, MigrationKey};
use moraine_store::{MemoryStore, OpenOptions, ReadExt, SlateStore, Store, collect};
use object_store::ObjectStore;

use crate::NEWEST;
use crate::bytes::Records;
use crate::lake::{self, Size};

/// Where a lake is in an object store.
pub(crate) const PREFIX: &str = "lake";
/// Differences shown.
const SHOWN_MAX: usize = 5;

/// A store in memory with these records.
pub(crate) async fn in_memory(records: &Records) -> MemoryStore {
    let store = MemoryStore::new();
    load(&store, records).await;
    store
}

/// Writes records in one batch.
pub(crate) async fn load(store: &dyn Store, records: &Records) {
    let mut transaction = store.begin().unwrap();
    for (key, value) in records {
        transaction.put(key.clone().into(), value.clone().into()).unwrap();
    }
    transaction.commit().await.unwrap().durable().await.unwrap();
}

/// A database with these records in an object store.
pub(crate) async fn in_object_store(object_store: Arc<dyn ObjectStore>, records: &Records) {
    let store = SlateStore::open_on(object_store, PREFIX, &OpenOptions::create())
        .await
        .unwrap();
    load(store.as_ref(), records).await;
    store.close().await.unwrap();
}

/// All records of the newest state.
pub(crate) async fn records_of(store: &dyn Store) -> Records {
    let view = store.view().unwrap();
    let records = collect(view.scan(KeyRange::all()).await.unwrap()).await.unwrap();
    records
        .into_iter()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

/// The head of the newest state.
pub(crate) async fn head_of(store: &dyn Store) -> HeadValue {
    let view = store.view().unwrap();
    view.value(&HeadKey).await.unwrap().unwrap()
}

/// Whether a store is the lake of format `features`, as the newest format has it.
pub(crate) async fn check_migrated(store: &dyn Store, features: u64, size: Size) -> Result<(), String> {
    let view = store.view().unwrap();
    let stamp = view.value(&FormatKey).await.unwrap().unwrap();
    if stamp.format_version != NEWEST {
        return Err(format!(
            "from {features}: the stamp says {}",
            stamp.format_version
        ));
    }
    if view.value(&MigrationKey).await.unwrap().is_some() {
        return Err(format!("from {features}: there is a marker"));
    }
    let mut expected = lake::records(features, NEWEST, size);
    let (before, head) = (in_memory(&expected).await, head_of(store).await);
    let before = head_of(&before).await;
    if head.snapshot_id != before.snapshot_id || head.batch_seq <= before.batch_seq {
        return Err(format!(
            "from {features}: the head is {head:?}, before {before:?}"
        ));
    }
    let mut found = records_of(store).await;
    for key in [FormatKey.encode(), HeadKey.encode()] {
        expected.remove(key.as_ref());
        found.remove(key.as_ref());
    }
    match difference(&found, &expected) {
        None => Ok(()),
        Some(difference) => Err(format!("from {features}: {difference}")),
    }
}

/// The first differences between two sets of records, in words.
pub(crate) fn difference(found: &Records, expected: &Records) -> Option<String> {
    let mut differences = Vec::new();
    for (key, value) in expected {
        match found.get(key) {
            None => differences.push(format!("{} is missing", name(key))),
            Some(other) if other != value => {
                differences.push(format!("{} is {other:02x?}, not {value:02x?}", name(key)));
            }
            Some(_) => {}
        }
    }
    let extra = found.keys().filter(|key| !expected.contains_key(*key));
    differences.extend(extra.map(|key| format!("{} should not be there", name(key))));
    let count = differences.len();
    differences.truncate(SHOWN_MAX);
    (count > 0).then(|| format!("{count} differences: {}", differences.join("; ")))
}

fn name(key: &[u8]) -> String {
    Key::decode(key).map_or_else(|error| error.to_string(), |key| key.to_string())
}
