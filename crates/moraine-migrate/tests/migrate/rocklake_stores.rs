//! A RockLake store, written as RockLake lays it out, becomes a lake.

use std::sync::Arc;

use moraine_commit::Catalog;
use moraine_migrate::Silent;
use moraine_migrate::import::{ImportOptions, import};
use moraine_migrate::lake::{CatalogLocation, open_source};
use moraine_store::{MemoryStore, Store};
use moraine_tables::{Filter, Relation, Value, scan};

use crate::support::{NULL, n, s};

/// A protobuf message of RockLake, with its header.
#[derive(Clone)]
struct Message(Vec<u8>);

impl Message {
    fn new() -> Self {
        Message(b"\x01SDKV".to_vec())
    }

    fn number(mut self, field: u8, number: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(number);
        self
    }

    fn text(mut self, field: u8, text: &str) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap());
    }
}

fn key(start: &[u8], ids: &[u64]) -> Vec<u8> {
    let ids = ids.iter().flat_map(|id| id.to_be_bytes());
    start.iter().copied().chain(ids).collect()
}

/// A data file, and an inlined row.
fn rows_of_files() -> (Message, Message) {
    let file = Message::new()
        .number(1, 4)
        .number(2, 1)
        .text(3, "f.parquet")
        .text(4, "parquet")
        .number(5, 3);
    let file = file
        .number(6, 300)
        .number(8, 30)
        .number(10, 2)
        .number(13, 1)
        .number(14, 0)
        .text(17, "2");
    let inlined = Message::new().number(1, 1).number(2, 1).number(3, 3);
    let inlined = inlined.text(4, r#"["7","'\\x6869'"]"#).number(5, 2);
    (file, inlined)
}

fn metadata(name: &str, value: &str) -> (Vec<u8>, Message) {
    let mut key = key(&[0x01, 0], &[0]);
    key.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
    key.extend(name.as_bytes());
    (key, Message::new().text(1, name).text(2, value))
}

fn snapshot(id: u64, time: &str) -> (Vec<u8>, Message) {
    let value = Message::new()
        .number(1, id)
        .number(2, 1)
        .text(3, time)
        .number(6, 9)
        .number(7, 9);
    (key(&[0x02], &[id]), value)
}

fn records() -> Vec<(Vec<u8>, Vec<u8>)> {
    let changes = |id: u64, made: &str| (key(&[0x03], &[id]), Message::new().number(1, id).text(9, made));
    let column = |id: u64, name: &str, kind: &str| {
        let value = Message::new()
            .number(1, id)
            .number(2, 1)
            .text(3, name)
            .text(4, kind)
            .number(5, id);
        (key(&[0x06], &[1, id, 1]), value.number(6, 1).number(9, 1))
    };
    let (file, inlined) = rows_of_files();
    let mut all = vec![
        metadata("data_path", "/data/"),
        snapshot(1, "2026-01-02T03:04:05.600000Z"),
        snapshot(2, "2026-01-02T03:04:06+00:00"),
        changes(1, r#"created_table:"main"."t""#),
        changes(2, "inserted_into_table:1,inlined_insert:1"),
        (
            key(&[0x04], &[0]),
            Message::new().text(2, "main").text(6, "main/").number(7, 1),
        ),
        (
            key(&[0x05], &[0, 1, 1]),
            Message::new()
                .number(1, 1)
                .text(3, "t")
                .number(4, 1)
                .text(6, "t/")
                .number(8, 1),
        ),
        column(1, "a", "int32"),
        column(2, "b", "varchar"),
        (key(&[0x0b], &[1, 4]), file),
        (
            key(&[0x0e], &[1, 1]),
            Message::new()
                .number(1, 1)
                .number(2, 1)
                .text(3, "ducklake_inlined_data_1_1"),
        ),
        (
            key(&[0x11], &[1]),
            Message::new()
                .number(1, 1)
                .number(2, 4)
                .number(4, 300)
                .number(5, 4),
        ),
        (
            key(&[0x1c], &[1, 1]),
            Message::new().number(1, 1).number(2, 1).number(3, 1),
        ),
        (key(&[0xfd, 0x01], &[1, 1, 3]), inlined),
        (
            key(&[0xfd, 0x02], &[1, 4, 0]),
            Message::new().number(1, 1).number(2, 4).number(4, 2),
        ),
    ];
    all.push((
        b"\xffcatalog-format-version".to_vec(),
        Message(b"\x01SDKV\0\0\0\x01".to_vec()),
    ));
    all.into_iter().map(|(key, value)| (key, value.0)).collect()
}

async fn rows(catalog: &Arc<Catalog>, relation: Relation, columns: &[usize]) -> Vec<Vec<Value>> {
    let tx = catalog.begin().await.unwrap();
    let rows = scan(&tx, relation, columns, &Filter::default()).await.unwrap();
    rows.collect()
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.values)
        .collect()
}

#[tokio::test]
async fn a_rocklake_store_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Arc::new(object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let database = slatedb::Db::open("peer", objects).await.unwrap();
    for (key, value) in records() {
        database.put(&key, &value).await.unwrap();
    }
    database.close().await.unwrap();

    let name = format!("rocklake:{}", folder.path().join("peer").display());
    let mut source = open_source(&CatalogLocation::parse(&name, None).unwrap())
        .await
        .unwrap();
    let store = Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    let report = import(
        source.as_mut(),
        Arc::clone(&store),
        &ImportOptions::default(),
        &Silent,
    )
    .await
    .unwrap();
    assert_eq!(report.snapshot_id, 2);
    assert_eq!(
        report.rows["ducklake_metadata"], 2,
        "the version and the data path"
    );

    let catalog = Catalog::with_store(store);
    let snapshots = rows(&catalog, Relation::Snapshot, &[0, 1]).await;
    assert_eq!(snapshots[0], [n(1), Value::TimestampTz(1_767_323_045_600_000)]);
    assert_eq!(
        rows(&catalog, Relation::Table, &[0, 4, 5]).await,
        [[n(1), n(0), s("t")]]
    );
    assert_eq!(
        rows(&catalog, Relation::DataFile, &[0, 2, 3, 15]).await,
        [[n(4), n(2), NULL, n(2)]]
    );
    let inlined = Relation::InlinedData {
        table_id: 1,
        schema_version: 1,
    };
    let hi = Value::Bytes("hi".into());
    assert_eq!(
        rows(&catalog, inlined, &[0, 1, 2, 3, 4]).await,
        [[n(3), n(2), NULL, Value::Int32(7), hi]]
    );
    let deletes = Relation::InlinedDelete { table_id: 1 };
    assert_eq!(rows(&catalog, deletes, &[0, 1, 2]).await, [[n(4), n(0), n(2)]]);
}
