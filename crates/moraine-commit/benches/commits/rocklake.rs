//! RockLake's keys for what a lake loads: a tag for each table of DuckLake, ids big-endian, and the first snapshot of a
//! version at the end of the key. A version ends by a value in its place, so who loads the newest state reads all versions and
//! leaves out what has ended. Only for comparison; the values are moraine's own.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use moraine_codec::proto::{ColumnValue, DataFileValue, TableValue};
use moraine_codec::{decode, encode};
use moraine_keys::{ColumnKey, DataFileKey, KeyRange, TableKey};
use moraine_store::{SlateStore, Store};

const TABLE: u8 = 0x05;
const COLUMN: u8 = 0x06;
const DATA_FILE: u8 = 0x0B;
/// moraine's first byte of a key is its segment, so that the layouts are apart and each tag has a segment, as RockLake's tables.
const SEGMENT: u8 = 0x20;

/// What stands behind a value: the snapshot at which the version ended.
const END_BYTES: usize = size_of::<u64>();
const NO_END: u64 = u64::MAX;

pub struct RockLake<'a> {
    store: &'a Arc<SlateStore>,
}

fn key(tag: u8, ids: &[u64]) -> Bytes {
    let mut key = BytesMut::new();
    key.put_u8(SEGMENT + tag);
    for id in ids {
        key.put_u64(*id);
    }
    key.freeze()
}

fn with_end(value: &Bytes, end: Option<u64>) -> Bytes {
    let end = end.unwrap_or(NO_END).to_be_bytes();
    Bytes::from([value.as_ref(), end.as_slice()].concat())
}

/// The id at a place of a key.
fn id(key: &[u8], place: usize) -> u64 {
    let bytes = &key[1 + place * 8..9 + place * 8];
    u64::from_be_bytes(bytes.try_into().unwrap())
}

impl<'a> RockLake<'a> {
    pub fn new(store: &'a Arc<SlateStore>) -> Self {
        RockLake { store }
    }

    pub fn table(value: &TableValue) -> (Bytes, Bytes) {
        let table_id = value.table_id;
        let live = TableValue {
            end_snapshot: None,
            ..value.clone()
        };
        let bytes = encode(&TableKey { table_id }, &live).unwrap();
        let key = key(TABLE, &[value.schema_id, table_id, value.begin_snapshot]);
        (key, with_end(&bytes, value.end_snapshot))
    }

    pub fn column(value: &ColumnValue) -> (Bytes, Bytes) {
        let (table_id, column_id) = (value.table_id, value.column_id);
        let live = ColumnValue {
            end_snapshot: None,
            ..value.clone()
        };
        let bytes = encode(&ColumnKey { table_id, column_id }, &live).unwrap();
        let key = key(COLUMN, &[table_id, column_id, value.begin_snapshot]);
        (key, with_end(&bytes, value.end_snapshot))
    }

    pub fn data_file(value: &DataFileValue) -> (Bytes, Bytes) {
        let (table_id, data_file_id) = (value.table_id, value.data_file_id);
        let live = DataFileValue {
            end_snapshot: None,
            ..value.clone()
        };
        let file = DataFileKey {
            table_id,
            data_file_id,
        };
        let bytes = encode(&file, &live).unwrap();
        let key = key(DATA_FILE, &[table_id, data_file_id]);
        (key, with_end(&bytes, value.end_snapshot))
    }

    /// Loads what is live; how much that is.
    pub async fn load(&self) -> usize {
        let tables = self.live(TABLE, |key, value| {
            let table_id = id(key, 1);
            decode(&TableKey { table_id }, value).unwrap()
        });
        let columns = self.live(COLUMN, |key, value| {
            let (table_id, column_id) = (id(key, 0), id(key, 1));
            decode(&ColumnKey { table_id, column_id }, value).unwrap()
        });
        let files = self.live(DATA_FILE, |key, value| {
            let (table_id, data_file_id) = (id(key, 0), id(key, 1));
            decode(
                &DataFileKey {
                    table_id,
                    data_file_id,
                },
                value,
            )
            .unwrap()
        });
        tables.await.len() + columns.await.len() + files.await.len()
    }

    async fn live<V>(&self, tag: u8, decode: impl Fn(&[u8], &Bytes) -> V) -> Vec<V> {
        let view = self.store.view().unwrap();
        let all = KeyRange {
            start: Bytes::from(vec![SEGMENT + tag]),
            end: Some(Bytes::from(vec![SEGMENT + tag + 1])),
        };
        let mut scan = view.scan(all).await.unwrap();
        let mut live = Vec::new();
        while let Some((key, value)) = scan.next().await.unwrap() {
            let (bytes, end) = value.split_at(value.len() - END_BYTES);
            let version = decode(&key, &value.slice_ref(bytes));
            if end == NO_END.to_be_bytes() {
                live.push(version);
            }
        }
        live
    }
}
