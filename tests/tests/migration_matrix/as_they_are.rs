//! Lakes of formats 9 to 11 without a migration: they give the same answers as the same lake of the newest format, before
//! and after the same work; and a migration afterwards makes the same lake of them.

use std::sync::Arc;

use moraine_codec::Record;
use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, SchemaValue, SchemaVersionValue, SnapshotValue, TableValue,
};
use moraine_commit::{Catalog, Change, SnapshotChanges};
use moraine_keys::{DataFileKey, DeleteFileKey, Kind, SchemaKey, SchemaVersionKey, TableKey};
use moraine_migrate::units::{MigrateOptions, Unobserved, migrate_store};
use moraine_store::{MemoryStore, ReadExt, check_format};

use crate::NEWEST;
use crate::lake::{self, SMALL};
use crate::rows;
use crate::stores::{difference, head_of, in_memory, records_of};

/// Makes a snapshot of these changes.
async fn commit(catalog: &Arc<Catalog>, changes: Vec<Change>) -> u64 {
    let mut tx = catalog.begin().await.unwrap();
    let id = tx.newest_snapshot_id().unwrap() + 1;
    let snapshot = SnapshotValue {
        snapshot_id: id,
        snapshot_time_micros: 1_800_000_000_000_000 + i64::try_from(id).unwrap(),
        schema_version: id,
        next_catalog_id: 2000 + id,
        next_file_id: 20_000 + id,
        ..SnapshotValue::default()
    };
    tx.insert_snapshot(snapshot).await.unwrap();
    tx.set_snapshot_changes(SnapshotChanges {
        snapshot_id: id,
        changes_made: Some("created_table:\"main\".\"new\"".to_owned()),
        ..SnapshotChanges::default()
    })
    .await
    .unwrap();
    tx.stage(changes).await.unwrap();
    tx.commit().await.unwrap();
    id
}

fn table(id: u64, name: &str, begin: u64, end: Option<u64>) -> Record {
    let value = TableValue {
        table_id: id,
        table_uuid: "30000000-0000-4000-8000-000000000000".to_owned(),
        begin_snapshot: begin,
        end_snapshot: end,
        table_name: name.to_owned(),
        ..TableValue::default()
    };
    Record::Table(TableKey { table_id: id }, value)
}

/// A day's work: a table and a schema made, renamed and dropped, files and a delete file added, a delete file replaced.
async fn work(catalog: &Arc<Catalog>) {
    let begin = catalog.begin().await.unwrap().newest_snapshot_id().unwrap() + 1;
    let file = DataFileValue {
        table_id: 2001,
        data_file_id: 20_001,
        begin_snapshot: begin,
        path: "new.parquet".to_owned(),
        ..DataFileValue::default()
    };
    let schema = SchemaValue {
        schema_id: 2002,
        schema_uuid: "40000000-0000-4000-8000-000000000000".to_owned(),
        begin_snapshot: begin,
        schema_name: "new".to_owned(),
        ..SchemaValue::default()
    };
    let made = vec![
        Change::Insert(table(2001, "new", begin, None)),
        Change::Insert(Record::Schema(SchemaKey { schema_id: 2002 }, schema)),
        Change::Insert(Record::SchemaVersion(
            SchemaVersionKey {
                table_id: 2001,
                begin_snapshot: begin,
            },
            SchemaVersionValue {
                schema_version: begin,
                ..SchemaVersionValue::default()
            },
        )),
        Change::Insert(Record::DataFile(
            DataFileKey {
                table_id: 2001,
                data_file_id: 20_001,
            },
            file,
        )),
    ];
    let first = commit(catalog, made).await;
    let delete = |id, begin, end| {
        let value = DeleteFileValue {
            table_id: 2001,
            delete_file_id: id,
            data_file_id: 20_001,
            begin_snapshot: begin,
            end_snapshot: end,
            ..DeleteFileValue::default()
        };
        let key = DeleteFileKey {
            table_id: 2001,
            delete_file_id: id,
        };
        (key.to_key(), Record::DeleteFile(key, value))
    };
    let renamed = vec![
        Change::Replace {
            old: TableKey { table_id: 2001 }.to_key(),
            new: table(2001, "new", first, Some(first + 1)),
        },
        Change::Insert(table(2001, "renamed", first + 1, None)),
        Change::Insert(delete(20_002, first + 1, None).1),
    ];
    let second = commit(catalog, renamed).await;
    let (old, ended) = delete(20_002, second, Some(second + 1));
    let replaced = vec![
        Change::Replace { old, new: ended },
        Change::Insert(delete(20_003, second + 1, None).1),
    ];
    commit(catalog, replaced).await;
}

async fn opened(layout: u64, features: u64) -> (Arc<MemoryStore>, Arc<Catalog>) {
    let store = Arc::new(in_memory(&lake::records(features, layout, SMALL)).await);
    let catalog = Catalog::with_store(Arc::clone(&store) as _);
    (store, catalog)
}

#[tokio::test]
async fn lakes_of_formats_without_directories_answer_and_take_work_as_they_are() {
    for format in 9..NEWEST {
        let (store, catalog) = opened(format, format).await;
        let (newest, of_newest) = opened(NEWEST, format).await;
        check_format(catalog.begin().await.unwrap().read()).await.unwrap();
        let differs = rows::difference(&rows::all(&catalog).await, &rows::all(&of_newest).await);
        assert_eq!(differs, None, "format {format}");

        work(&catalog).await;
        work(&of_newest).await;
        let differs = rows::difference(&rows::all(&catalog).await, &rows::all(&of_newest).await);
        assert_eq!(differs, None, "format {format}, after work");
        let records = records_of(store.as_ref()).await;
        let has = |prefix: &[u8]| records.keys().any(|key| key.starts_with(prefix));
        assert_eq!(
            (has(&[10]), has(&[11])),
            (format >= 11, false),
            "format {format} gets its own directories"
        );

        migrate_store(store.as_ref(), &MigrateOptions::default(), &mut Unobserved)
            .await
            .unwrap();
        let (mut found, mut expected) = (
            records_of(store.as_ref()).await,
            records_of(newest.as_ref()).await,
        );
        for system in [&[2, 2], &[2, 3]] {
            found.remove(system.as_slice());
            expected.remove(system.as_slice());
        }
        assert_eq!(
            difference(&found, &expected),
            None,
            "format {format}, migrated after work"
        );
        assert_eq!(
            head_of(store.as_ref()).await.snapshot_id,
            head_of(newest.as_ref()).await.snapshot_id
        );
    }
}

#[tokio::test]
async fn rows_that_older_software_lost_are_served_before_and_after_a_migration() {
    // What format 1 left out, in a store that other software raised to format 9.
    let mut records = lake::records(1, 9, SMALL);
    records.retain(|key, _| !key.starts_with(&[8]));
    let store = Arc::new(in_memory(&records).await);
    let catalog = Catalog::with_store(Arc::clone(&store) as _);
    let before = rows::all(&catalog).await;
    let (_, of_newest) = opened(NEWEST, 1).await;
    assert_eq!(rows::difference(&before, &rows::all(&of_newest).await), None);
    migrate_store(store.as_ref(), &MigrateOptions::default(), &mut Unobserved)
        .await
        .unwrap();
    assert_eq!(rows::difference(&rows::all(&catalog).await, &before), None);
    let view = moraine_store::Store::view(store.as_ref()).unwrap();
    assert!(view.value(&moraine_keys::MigrationKey).await.unwrap().is_none());
}
