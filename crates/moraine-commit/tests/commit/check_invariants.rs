//! Each invariant of [`moraine_commit::check`] is broken once, on a lake on which all hold, by a write below the catalog.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_codec::proto::{
    ChangelogValue, DataFileValue, DeleteFileValue, EmptyValue, FormatValue, GcFileValue,
    InlineInlineDeleteValue, InlineSchemaValue, MappingValue, MigrationValue, PartitionColumn,
    PartitionValue, SchemaVersionValue, SnapshotValue, TableColumnStatsValue, TableStatsValue, TagValue,
};
use moraine_codec::{Stored, encode};
use moraine_commit::check::{Checked, Finding, Invariant, Severity, check};
use moraine_commit::{Catalog, InlineChange};
use moraine_keys::{
    ChangelogKey, ChunkLocatorKey, ColumnKey, DataFileKey, DeleteFileKey, DeleteTargetKey, FormatKey,
    GcFileKey, HeadKey, History, InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey,
    Kind, MappingKey, MigrationKey, MultiIndexKey, NameKey, PartitionKey, RowTombstoneKey, SchemaKey,
    SchemaVersionKey, SnapshotKey, TableColumnStatsKey, TableKey, TableStatsKey, TagKey,
};
use moraine_store::{MemoryStore, ReadExt, Store};

use crate::support::{
    begin_snapshot, column, commit, data_file, delete_file, file_stats, insert, lake, table,
};

const TABLE: u64 = 1;

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]))
}

fn rows(begin_snapshot: u64, row_ids: &[u64]) -> InlineChange {
    let values: Vec<i64> = row_ids.iter().map(|id| i64::try_from(*id).unwrap()).collect();
    InlineChange::Insert {
        table_id: TABLE,
        schema_version: 1,
        begin_snapshot,
        row_ids: row_ids.to_vec(),
        batch: RecordBatch::try_new(columns(), vec![Arc::new(Int64Array::from(values))]).unwrap(),
    }
}

fn file(data_file_id: u64, begin_snapshot: u64) -> (DataFileKey, DataFileValue) {
    let (key, value) = data_file(TABLE, data_file_id, begin_snapshot);
    let value = DataFileValue {
        record_count: 10,
        row_id_start: Some(data_file_id * 10),
        ..value
    };
    (key, value)
}

/// Table 1 with two columns, a partitioning, two data files (one with a delete file, one with an inlined deletion),
/// statistics, a tag, a scheduled file, and inlined rows of which one was updated twice.
async fn sound_lake() -> (Arc<Catalog>, MemoryStore) {
    let (catalog, store) = lake().await;
    first_snapshot(&catalog).await;
    let mut second = begin_snapshot(&catalog, "inlined_delete:1,inlined_insert:1,deleted_from_table:1").await;
    let (key, value) = delete_file(TABLE, 7, 1, 2);
    let value = DeleteFileValue {
        delete_count: 3,
        ..value
    };
    second.stage(vec![insert((key, value))]).await.unwrap();
    for change in [
        InlineChange::EndRows {
            table_id: TABLE,
            rows: vec![(101, 1)],
            end_snapshot: 2,
        },
        rows(2, &[101]),
        InlineChange::CreateFileDeleteTable { table_id: TABLE },
        InlineChange::InsertFileDeletes {
            table_id: TABLE,
            rows: vec![(2, 4, 2)],
        },
    ] {
        second.inline(change).await.unwrap();
    }
    second.commit().await.unwrap();
    let mut third = begin_snapshot(&catalog, "inlined_delete:1,inlined_insert:1").await;
    let end = InlineChange::EndRows {
        table_id: TABLE,
        rows: vec![(101, 2)],
        end_snapshot: 3,
    };
    third.inline(end).await.unwrap();
    third.inline(rows(3, &[101])).await.unwrap();
    third.commit().await.unwrap();
    (catalog, store)
}

async fn first_snapshot(catalog: &Arc<Catalog>) {
    let mut first = begin_snapshot(catalog, "created_table:\"main\".\"t\",inserted_into_table:1").await;
    let partition = PartitionValue {
        table_id: TABLE,
        partition_id: 5,
        begin_snapshot: 1,
        columns: vec![PartitionColumn {
            column_id: 1,
            transform: "identity".to_owned(),
            ..PartitionColumn::default()
        }],
        ..PartitionValue::default()
    };
    let stats = TableStatsValue {
        table_id: TABLE,
        next_row_id: 200,
        ..TableStatsValue::default()
    };
    let column_stats = TableColumnStatsValue {
        table_id: TABLE,
        column_id: 1,
        contains_null: Some(false),
        ..TableColumnStatsValue::default()
    };
    let scheduled = GcFileValue {
        data_file_id: 90,
        path: "old.parquet".to_owned(),
        ..GcFileValue::default()
    };
    let partition_id = PartitionKey {
        table_id: TABLE,
        partition_id: 5,
    };
    let column_id = TableColumnStatsKey {
        table_id: TABLE,
        column_id: 1,
    };
    first
        .stage(vec![
            insert(table(TABLE, 1, "t")),
            insert(column(TABLE, 1, 1, "a")),
            insert(column(TABLE, 2, 1, "b")),
            insert((partition_id, partition)),
            insert(file(1, 1)),
            insert(file(2, 1)),
            insert(file_stats(TABLE, 1, 1)),
            insert((TableStatsKey { table_id: TABLE }, stats)),
            insert((column_id, column_stats)),
            insert((GcFileKey { data_file_id: 90 }, scheduled)),
        ])
        .await
        .unwrap();
    for change in [
        InlineChange::CreateTable {
            table_id: TABLE,
            schema_version: 1,
            schema: columns(),
        },
        InlineChange::Register {
            table_id: TABLE,
            schema_version: 1,
        },
        rows(1, &[100, 101, 102]),
    ] {
        first.inline(change).await.unwrap();
    }
    first.commit().await.unwrap();
}

async fn findings(store: &MemoryStore) -> (Checked, Vec<Finding>) {
    let mut found = Vec::new();
    let view = store.view().unwrap();
    let checked = check(view.as_ref(), &mut |finding| found.push(finding))
        .await
        .unwrap();
    (checked, found)
}

async fn put<K: Stored>(store: &MemoryStore, key: &K, value: &K::Value) {
    put_raw(store, &key.encode(), &encode(key, value).unwrap()).await;
}

async fn put_raw(store: &MemoryStore, key: &[u8], value: &[u8]) {
    let mut transaction = store.begin().unwrap();
    transaction
        .put(key.to_vec().into(), value.to_vec().into())
        .unwrap();
    transaction.commit().await.unwrap().durable().await.unwrap();
}

async fn delete<K: Kind>(store: &MemoryStore, key: &K) {
    let mut transaction = store.begin().unwrap();
    transaction.delete(key.encode()).unwrap();
    transaction.commit().await.unwrap().durable().await.unwrap();
}

/// Changes a value that is there.
async fn edit<K: Stored>(store: &MemoryStore, key: &K, change: impl FnOnce(&mut K::Value)) {
    let mut value = store.view().unwrap().value(key).await.unwrap().unwrap();
    change(&mut value);
    put(store, key, &value).await;
}

fn chunk(begin_snapshot: u64) -> InlineInsertKey {
    InlineInsertKey {
        table_id: TABLE,
        schema_version: 1,
        begin_snapshot,
        chunk_seq: 0,
    }
}

fn locator(row_id_end: u64, begin_snapshot: u64) -> ChunkLocatorKey {
    ChunkLocatorKey {
        table_id: TABLE,
        row_id_end,
        schema_version: 1,
        begin_snapshot,
        chunk_seq: 0,
    }
}

#[tokio::test]
async fn a_lake_that_the_catalog_wrote_is_sound() {
    let (_catalog, store) = sound_lake().await;
    let (checked, found) = findings(&store).await;
    assert_eq!(found, []);
    assert!(checked.is_sound());
    assert!(checked.records > 20, "{checked:?}");
}

#[tokio::test]
async fn a_store_without_a_lake_is_sound() {
    let (checked, found) = findings(&MemoryStore::new()).await;
    assert_eq!((checked.records, found), (0, vec![]));
}

/// Breaks `invariant` on a sound lake.
async fn break_it(store: &MemoryStore, invariant: Invariant) {
    break_records(store, invariant).await;
    break_references(store, invariant).await;
    break_files(store, invariant).await;
    break_inlined(store, invariant).await;
}

/// Breaks an invariant of single records and what the store says of itself.
async fn break_records(store: &MemoryStore, invariant: Invariant) {
    match invariant {
        Invariant::KeyOfTheTree => put_raw(store, &[0x0c, 1], b"").await,
        Invariant::ValueOfTheKey => {
            put_raw(store, &TableKey { table_id: TABLE }.encode(), b"MRNE\0\xff").await
        }
        Invariant::NoReplacedKind => {
            let key = InlineDeleteKey {
                table_id: TABLE,
                row_id: 1,
            };
            put(store, &key, &InlineInlineDeleteValue { end_snapshot: 1 }).await;
        }
        Invariant::StampedAndWhole => {
            let marker = MigrationValue {
                from_format: 11,
                to_format: 12,
                ..MigrationValue::default()
            };
            put(store, &MigrationKey, &marker).await;
        }
        Invariant::HeadIsNewestSnapshot => {
            edit(store, &HeadKey, |head| head.snapshot_id = 2).await;
        }
        Invariant::SnapshotsInOrder => {
            edit(store, &SnapshotKey { snapshot_id: 2 }, |value| {
                value.next_file_id = 5000
            })
            .await;
        }
        Invariant::ChangelogInWindow => {
            put(
                store,
                &ChangelogKey { snapshot_id: 9 },
                &ChangelogValue::default(),
            )
            .await;
        }
        Invariant::IndexEntriesOfIndexes => {
            put(
                store,
                &MultiIndexKey {
                    index_id: 3,
                    ..MultiIndexKey::default()
                },
                &EmptyValue {},
            )
            .await;
        }
        _ => {}
    }
}

/// Breaks an invariant of what records say of each other.
async fn break_references(store: &MemoryStore, invariant: Invariant) {
    match invariant {
        Invariant::VersionsWithinHead => {
            let key = ColumnKey {
                table_id: TABLE,
                column_id: 2,
            };
            edit(store, &key, |value| value.begin_snapshot = 9).await;
        }
        Invariant::VersionsApart => {
            let (entity, mut value) = column(TABLE, 2, 1, "b");
            value.end_snapshot = Some(2);
            let key = History {
                entity,
                end_snapshot: 2,
            };
            put(store, &key, &value).await;
        }
        Invariant::ParentExists => {
            let (key, value) = data_file(77, 8, 1);
            put(store, &key, &value).await;
        }
        Invariant::ObjectExists => {
            let value = TagValue {
                object_id: 77,
                entries: vec![],
            };
            put(store, &TagKey { object_id: 77 }, &value).await;
        }
        Invariant::IdsBelowCounters => {
            let (key, value) = data_file(TABLE, 1000, 1);
            put(store, &key, &value).await;
        }
        Invariant::RowIdsBelowCounter => {
            edit(store, &TableStatsKey { table_id: TABLE }, |value| {
                value.next_row_id = 102
            })
            .await;
        }
        Invariant::NamesComplete => delete(store, &NameKey::table(0, "t", TABLE)).await,
        Invariant::NamesExact => put(store, &NameKey::table(0, "u", TABLE), &EmptyValue {}).await,
        Invariant::DeleteTargetsComplete => delete(store, &delete_target(1, 7)).await,
        Invariant::DeleteTargetsExact => put(store, &delete_target(2, 7), &EmptyValue {}).await,
        _ => {}
    }
}

/// Breaks an invariant of data and delete files.
async fn break_files(store: &MemoryStore, invariant: Invariant) {
    match invariant {
        Invariant::OneDeleteFile => {
            let (key, value) = delete_file(TABLE, 8, 1, 2);
            put(store, &key, &value).await;
            put(store, &delete_target(1, 8), &EmptyValue {}).await;
        }
        Invariant::DeletesWithinFile => {
            let key = DeleteFileKey {
                table_id: TABLE,
                delete_file_id: 7,
            };
            edit(store, &key, |value| value.delete_count = 11).await;
        }
        Invariant::PartitionValuesComplete => {
            let key = DataFileKey {
                table_id: TABLE,
                data_file_id: 1,
            };
            edit(store, &key, |value| value.partition_id = Some(5)).await;
        }
        Invariant::StatisticsAgree => {
            edit(store, &file_stats(TABLE, 1, 1).0, |value| value.null_count = 3).await;
        }
        Invariant::ScheduledFilesUnused => {
            let value = GcFileValue {
                data_file_id: 2,
                ..GcFileValue::default()
            };
            put(store, &GcFileKey { data_file_id: 2 }, &value).await;
        }
        Invariant::FileDeletesOfFiles | Invariant::FileDeletesOfPresentFiles => {
            let is_expired = invariant == Invariant::FileDeletesOfPresentFiles;
            let key = InlineFileDeleteKey {
                table_id: TABLE,
                data_file_id: if is_expired { 9 } else { 2 },
                row_id: 10,
            };
            put(
                store,
                &key,
                &moraine_codec::proto::InlineFileDeleteValue { begin_snapshot: 2 },
            )
            .await;
        }
        _ => {}
    }
}

/// Breaks an invariant of inlined rows.
async fn break_inlined(store: &MemoryStore, invariant: Invariant) {
    match invariant {
        Invariant::InlineSchemaExists => {
            let key = InlineSchemaKey {
                table_id: TABLE,
                schema_version: 2,
            };
            let value = InlineSchemaValue {
                same_as_version: Some(9),
                ..InlineSchemaValue::default()
            };
            put(store, &key, &value).await;
        }
        Invariant::ChunkDecodes => edit(store, &chunk(2), |value| value.body = value.body.slice(..40)).await,
        Invariant::ChunksLocated => delete(store, &locator(101, 2)).await,
        Invariant::LocatorsOfChunks => {
            let value = store
                .view()
                .unwrap()
                .value(&locator(101, 3))
                .await
                .unwrap()
                .unwrap();
            let key = ChunkLocatorKey {
                chunk_seq: 5,
                ..locator(150, 3)
            };
            let value = moraine_codec::proto::InlineChunkRangeValue {
                row_id_start: 150,
                chunk_seq: 5,
                ..value
            };
            put(store, &key, &value).await;
        }
        Invariant::RowsSeenOnce => delete(store, &tombstone(101, 3)).await,
        Invariant::TombstonesEndRows => {
            put(
                store,
                &tombstone(150, 2),
                &InlineInlineDeleteValue { end_snapshot: 2 },
            )
            .await;
        }
        _ => {}
    }
}

fn delete_target(data_file_id: u64, delete_file_id: u64) -> DeleteTargetKey {
    DeleteTargetKey {
        table_id: TABLE,
        data_file_id,
        delete_file_id,
    }
}

fn tombstone(row_id: u64, end_snapshot: u64) -> RowTombstoneKey {
    RowTombstoneKey {
        table_id: TABLE,
        row_id,
        end_snapshot,
    }
}

#[tokio::test]
async fn each_invariant_is_found_broken() {
    for invariant in Invariant::ALL {
        let (_catalog, store) = sound_lake().await;
        break_it(&store, *invariant).await;
        let (checked, found) = findings(&store).await;
        let kinds: BTreeSet<Invariant> = found.iter().map(|finding| finding.invariant).collect();
        assert!(
            kinds.contains(invariant),
            "{invariant} was broken, and found was {found:?}"
        );
        assert!(
            found
                .iter()
                .all(|finding| !finding.key.is_empty() && !finding.detail.is_empty())
        );
        if invariant.severity() == Severity::Violation {
            assert!(!checked.is_sound(), "{invariant}");
        }
        assert_eq!(
            checked.findings.values().sum::<u64>(),
            found.len() as u64,
            "{invariant}"
        );
    }
}

/// What is broken, and the key and a part of the detail that a finding has to have.
async fn found_after(key: &str, detail: &str, break_it: impl AsyncFnOnce(&MemoryStore)) {
    let (_catalog, store) = sound_lake().await;
    break_it(&store).await;
    let (_, found) = findings(&store).await;
    let is_told = found
        .iter()
        .any(|finding| finding.key.contains(key) && finding.detail.contains(detail));
    assert!(is_told, "nothing says that {key} … {detail}: {found:#?}");
}

#[tokio::test]
async fn stamps_that_are_missing_or_wrong() {
    found_after("system/head", "no head", async |store| {
        delete(store, &HeadKey).await
    })
    .await;
    found_after("system/format", "no format stamp", async |store| {
        delete(store, &FormatKey).await
    })
    .await;
    found_after("system/format", "the format is 8", async |store| {
        edit(store, &FormatKey, |value: &mut FormatValue| {
            value.format_version = 8
        })
        .await;
    })
    .await;
    found_after("system/head", "there is none", async |store| {
        for snapshot_id in 0..=3 {
            delete(store, &SnapshotKey { snapshot_id }).await;
        }
    })
    .await;
}

#[tokio::test]
async fn counters_that_are_too_low() {
    let lower = |change: fn(&mut SnapshotValue)| {
        async move |store: &MemoryStore| {
            edit(store, &SnapshotKey { snapshot_id: 3 }, change).await;
        }
    };
    found_after(
        "snapshot{snapshot_id=3}",
        "schema_version is 1",
        lower(|v| v.schema_version = 1),
    )
    .await;
    found_after(
        "snapshot{snapshot_id=3}",
        "next_catalog_id is 1",
        lower(|v| v.next_catalog_id = 1),
    )
    .await;
    found_after(
        "snapshot{snapshot_id=3}",
        "snapshot_time",
        lower(|v| v.snapshot_time_micros = 1),
    )
    .await;
    found_after(
        "current/table{",
        "next_catalog_id of the newest",
        lower(|v| v.next_catalog_id = 1),
    )
    .await;
    found_after(
        "current/partition{",
        "its id is 5",
        lower(|v| v.next_catalog_id = 5),
    )
    .await;
    found_after(
        "current/delete_file{",
        "its id is 7",
        lower(|v| v.next_file_id = 7),
    )
    .await;
}

#[tokio::test]
async fn counters_of_one_table_that_are_too_low() {
    found_after(
        "current/column{table_id=1, column_id=2}",
        "the table's next is 2",
        async |store| {
            edit(store, &TableKey { table_id: TABLE }, |value| {
                value.next_column_id = 2
            })
            .await;
        },
    )
    .await;
    found_after("current/mapping{", "its id is 5000", async |store| {
        let key = MappingKey {
            table_id: TABLE,
            mapping_id: 5000,
        };
        let value = MappingValue {
            table_id: TABLE,
            mapping_id: 5000,
            ..MappingValue::default()
        };
        put(store, &key, &value).await;
    })
    .await;
    found_after(
        "schema_version{table_id=1",
        "its schema_version is 99",
        async |store| {
            let key = SchemaVersionKey {
                table_id: TABLE,
                begin_snapshot: 1,
            };
            put(
                store,
                &key,
                &SchemaVersionValue {
                    schema_version: 99,
                    ..SchemaVersionValue::default()
                },
            )
            .await;
        },
    )
    .await;
    found_after("inline/live/insert", "next_row_id is 102", async |store| {
        edit(store, &TableStatsKey { table_id: TABLE }, |value| {
            value.next_row_id = 102
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_a_record_belongs_to_is_missing() {
    found_after("current/table{table_id=1}", "no live schema 0", async |store| {
        delete(store, &SchemaKey { schema_id: 0 }).await;
    })
    .await;
    found_after(
        "current/column{table_id=1, column_id=1}",
        "no live table 1",
        async |store| {
            delete(store, &TableKey { table_id: TABLE }).await;
        },
    )
    .await;
    found_after(
        "current/column{table_id=1, column_id=2}",
        "its parent, column 9",
        async |store| {
            let key = ColumnKey {
                table_id: TABLE,
                column_id: 2,
            };
            edit(store, &key, |value| value.parent_column = Some(9)).await;
        },
    )
    .await;
    found_after("current/partition{", "partitions by column 1", async |store| {
        delete(
            store,
            &ColumnKey {
                table_id: TABLE,
                column_id: 1,
            },
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_a_file_or_a_chunk_belongs_to_is_missing() {
    found_after("current/delete_file{", "no current/data_file", async |store| {
        delete(
            store,
            &DataFileKey {
                table_id: TABLE,
                data_file_id: 1,
            },
        )
        .await;
    })
    .await;
    found_after("current/file_column_stats{", "no data file 1", async |store| {
        delete(
            store,
            &DataFileKey {
                table_id: TABLE,
                data_file_id: 1,
            },
        )
        .await;
    })
    .await;
    found_after("inline/live/file_delete{", "no data file 2", async |store| {
        delete(
            store,
            &DataFileKey {
                table_id: TABLE,
                data_file_id: 2,
            },
        )
        .await;
    })
    .await;
    found_after(
        "current/data_file{table_id=1, data_file_id=1}",
        "no partitioning 6",
        async |store| {
            let key = DataFileKey {
                table_id: TABLE,
                data_file_id: 1,
            };
            edit(store, &key, |value| value.partition_id = Some(6)).await;
        },
    )
    .await;
    found_after("inline/live/insert{", "no schema of version 1", async |store| {
        delete(
            store,
            &InlineSchemaKey {
                table_id: TABLE,
                schema_version: 1,
            },
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_delete_file_may_outlive_its_data_file() {
    let (_catalog, store) = sound_lake().await;
    let (entity, mut value) = file(1, 1);
    delete(&store, &entity).await;
    value.end_snapshot = Some(3);
    let ended = History {
        entity,
        end_snapshot: 3,
    };
    put(&store, &ended, &value).await;
    assert_eq!(findings(&store).await.1, []);
}

#[tokio::test]
async fn directories_are_asked_of_the_formats_that_have_them() {
    let (_catalog, store) = sound_lake().await;
    edit(&store, &FormatKey, |value| value.format_version = 9).await;
    for name in [NameKey::schema("main", 0), NameKey::table(0, "t", TABLE)] {
        delete(&store, &name).await;
    }
    delete(&store, &delete_target(1, 7)).await;
    assert_eq!(findings(&store).await.1, []);
}

#[tokio::test]
async fn a_row_of_two_live_versions_is_named_once() {
    let (_catalog, store) = sound_lake().await;
    delete(&store, &tombstone(101, 2)).await;
    let (_, found) = findings(&store).await;
    let twice: Vec<&Finding> = found
        .iter()
        .filter(|finding| finding.invariant == Invariant::RowsSeenOnce)
        .collect();
    assert_eq!(twice.len(), 1, "{found:#?}");
    assert!(twice[0].detail.contains("row 101"), "{twice:?}");
}

#[tokio::test]
async fn a_lake_with_a_history_of_commits_is_sound() {
    let (catalog, store) = lake().await;
    for id in 1..=70 {
        commit(
            &catalog,
            &format!("created_table:\"main\".\"t{id}\""),
            vec![insert(table(id, id, &format!("t{id}")))],
        )
        .await;
    }
    let (_, found) = findings(&store).await;
    assert_eq!(found, []);
}
