use std::sync::Arc;

use bytes::Bytes;
use moraine_codec::proto::SnapshotValue;
use moraine_codec::{Record, decode_record};
use moraine_commit::{Catalog, CatalogTransaction, StageError, views};
use moraine_keys::{InlineInsertKey, KeyRange, OptionKey, TableStatsKey};
use moraine_store::{MemoryStore, ReadExt, Store};
use proptest::prelude::*;

use super::client::{
    Row, TABLES, TYPES, TableAppend, append, rebasing_lake, schema_version, seen_snapshot, stage,
};
use crate::support::{changes, insert, keys, table, value};

/// One transaction, and when it begins, stages and ends, among the others.
#[derive(Debug, Clone)]
struct Writer {
    appends: Vec<TableAppend>,
    begins: u16,
    stages: u16,
    ends: u16,
}

/// What somebody else does between them, whole.
#[derive(Debug, Clone, Copy)]
enum Other {
    /// Creates a table of its own.
    Create,
    /// Alters one of the tables.
    Alter(u64),
    /// Deletes from one of the tables.
    Delete(u64),
    /// Changes an option, without a snapshot.
    Maintain,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Begin(usize),
    Stage(usize),
    End(usize),
    Other(Other),
}

/// What has been committed, in order.
#[derive(Debug, Clone, Copy)]
enum Done {
    Writer(usize),
    Other(Other),
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let cell = prop_oneof![3 => (-100_i8..100).prop_map(Some), 1 => Just(None)];
    let row = proptest::array::uniform5(cell);
    proptest::collection::vec(row, 1..4)
}

fn table_append() -> impl Strategy<Value = TableAppend> {
    let files = proptest::collection::vec(rows(), 0..3);
    (
        proptest::sample::select(&TABLES[..]),
        files,
        proptest::option::of(rows()),
    )
        .prop_map(|(table_id, files, inlined)| {
            let inlined = inlined.or_else(|| files.is_empty().then(|| vec![[Some(1); TYPES.len()]]));
            TableAppend {
                table_id,
                files,
                inlined: inlined.unwrap_or_default(),
            }
        })
}

fn writer() -> impl Strategy<Value = Writer> {
    let appends = proptest::collection::vec(table_append(), 1..3);
    (appends, any::<[u16; 3]>()).prop_map(|(mut appends, mut times)| {
        appends.sort_by_key(|append| append.table_id);
        appends.dedup_by_key(|append| append.table_id);
        times.sort_unstable();
        let [begins, stages, ends] = times;
        Writer {
            appends,
            begins,
            stages,
            ends,
        }
    })
}

fn other() -> impl Strategy<Value = Other> {
    prop_oneof![
        2 => Just(Other::Create),
        1 => proptest::sample::select(&TABLES[..]).prop_map(Other::Alter),
        1 => proptest::sample::select(&TABLES[..]).prop_map(Other::Delete),
        2 => Just(Other::Maintain),
    ]
}

fn events(writers: &[Writer], others: &[(u16, Other)]) -> Vec<Event> {
    let mut events: Vec<(u16, u8, Event)> = Vec::new();
    for (number, writer) in writers.iter().enumerate() {
        events.push((writer.begins, 0, Event::Begin(number)));
        events.push((writer.stages, 1, Event::Stage(number)));
        events.push((writer.ends, 2, Event::End(number)));
    }
    events.extend(others.iter().map(|(at, other)| (*at, 3, Event::Other(*other))));
    events.sort_by_key(|(at, kind, _)| (*at, *kind));
    events.into_iter().map(|(_, _, event)| event).collect()
}

async fn play_other(catalog: &Arc<Catalog>, other: Other, number: usize) {
    let mut transaction = catalog.begin().await.unwrap();
    if let Other::Maintain = other {
        let option = moraine_codec::proto::OptionScopeValue {
            options: [(format!("option{number}"), "x".to_owned())].into(),
        };
        let key = OptionKey {
            scope_kind: 2,
            scope_id: 1000 + number as u64,
        };
        transaction.stage(vec![insert((key, option))]).await.unwrap();
        transaction.commit().await.unwrap();
        return;
    }
    let mut row = SnapshotValue {
        changes_made: String::new(),
        ..seen_snapshot(&transaction).await
    };
    row.snapshot_id += 1;
    let snapshot_id = row.snapshot_id;
    let (records, made) = match other {
        Other::Create => {
            let table_id = row.next_catalog_id;
            row.next_catalog_id += 1;
            row.schema_version += 1;
            let name = format!("new{number}");
            let created = insert(table(table_id, snapshot_id, &name));
            let version = schema_version(table_id, snapshot_id, row.schema_version);
            (
                vec![created, version],
                format!(r#"created_table:"main"."{name}""#),
            )
        }
        Other::Alter(table_id) => {
            row.schema_version += 1;
            let version = schema_version(table_id, snapshot_id, row.schema_version);
            (vec![version], format!("altered_table:{table_id}"))
        }
        Other::Delete(table_id) => (Vec::new(), format!("inlined_delete:{table_id}")),
        Other::Maintain => unreachable!("done above"),
    };
    transaction.insert_snapshot(row).await.unwrap();
    transaction.stage(records).await.unwrap();
    transaction
        .set_snapshot_changes(changes(snapshot_id, &made))
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

/// A transaction that has begun, and what it has staged.
struct Open {
    transaction: CatalogTransaction,
    staged: Option<(u64, String)>,
}

/// Plays the events; what was committed in which order, and how often an append was shifted.
async fn play(catalog: &Arc<Catalog>, writers: &[Writer], events: &[Event]) -> (Vec<Done>, usize) {
    let mut open: Vec<Option<Open>> = writers.iter().map(|_| None).collect();
    let (mut done, mut shifted) = (Vec::new(), 0);
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::Begin(number) => {
                open[number] = Some(Open {
                    transaction: catalog.begin().await.unwrap(),
                    staged: None,
                });
            }
            Event::Stage(number) => {
                let open = open[number].as_mut().unwrap();
                let staged = stage(
                    &mut open.transaction,
                    &writers[number].appends,
                    &number.to_string(),
                )
                .await;
                open.staged = Some(staged.unwrap());
            }
            Event::End(number) => {
                let mut open = open[number].take().unwrap();
                let (snapshot_id, made) = open.staged.unwrap();
                let began = *open.transaction.head().unwrap();
                let set = open
                    .transaction
                    .set_snapshot_changes(changes(snapshot_id, &made))
                    .await;
                match set {
                    Ok(()) => {
                        shifted += usize::from(*open.transaction.head().unwrap() != began);
                        open.transaction.commit().await.unwrap();
                    }
                    Err(StageError::LostRace { .. }) => {
                        assert!(open.transaction.has_lost());
                        drop(open.transaction);
                        let again = catalog.begin().await.unwrap();
                        append(again, &writers[number].appends, &number.to_string())
                            .await
                            .unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
                done.push(Done::Writer(number));
            }
            Event::Other(other) => {
                play_other(catalog, other, at).await;
                done.push(Done::Other(other));
            }
        }
    }
    (done, shifted)
}

/// Everything in a store; times of snapshots and the uuid of the schema that the lake is born with are left out.
async fn everything(store: &MemoryStore) -> Vec<(String, Bytes)> {
    let view = store.view().unwrap();
    let all = KeyRange {
        start: Bytes::new(),
        end: None,
    };
    let mut scan = view.scan(all).await.unwrap();
    let mut found = Vec::new();
    while let Some((key, bytes)) = scan.next().await.unwrap() {
        let record = decode_record(&key, &bytes).unwrap();
        let (record, bytes) = match record {
            Record::Snapshot(key, mut value) => {
                value.snapshot_time_micros = 0;
                let bytes = moraine_codec::encode(&key, &value).unwrap();
                (Record::Snapshot(key, value), bytes)
            }
            Record::Schema(key, mut value) => {
                value.schema_uuid = String::new();
                let bytes = moraine_codec::encode(&key, &value).unwrap();
                (Record::Schema(key, value), bytes)
            }
            record => (record, bytes),
        };
        found.push((format!("{record:?}"), bytes));
    }
    found
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_lake_after_rebased_appends_is_the_lake_after_the_same_appends_one_by_one(
        writers in proptest::collection::vec(writer(), 2..8),
        others in proptest::collection::vec((any::<u16>(), other()), 0..3),
    ) {
        let events = events(&writers, &others);
        block_on(async {
            let (catalog, store) = rebasing_lake().await;
            let (done, _) = play(&catalog, &writers, &events).await;
            let (one_by_one, other_store) = rebasing_lake().await;
            let mut at_others = events
                .iter()
                .enumerate()
                .filter(|(_, event)| matches!(event, Event::Other(_)))
                .map(|(at, _)| at);
            for done in done {
                match done {
                    Done::Writer(number) => {
                        let transaction = one_by_one.begin().await.unwrap();
                        append(transaction, &writers[number].appends, &number.to_string()).await.unwrap();
                    }
                    Done::Other(other) => play_other(&one_by_one, other, at_others.next().unwrap()).await,
                }
            }
            let (rebased, serial) = (everything(&store).await, everything(&other_store).await);
            for (left, right) in rebased.iter().zip(&serial) {
                assert_eq!(left.0, right.0);
                assert_eq!(left.1, right.1, "{}", left.0);
            }
            assert_eq!(rebased.len(), serial.len());
        });
    }
}

fn numbers(table_id: u64, files: &[&[i8]], inlined: &[i8]) -> TableAppend {
    let rows = |values: &[i8]| values.iter().map(|value| [Some(*value); TYPES.len()]).collect();
    TableAppend {
        table_id,
        files: files.iter().map(|values| rows(values)).collect(),
        inlined: rows(inlined),
    }
}

#[tokio::test]
async fn appends_on_one_snapshot_all_commit_at_their_first_try() {
    let (catalog, _) = rebasing_lake().await;
    let first = numbers(1, &[&[5, 6]], &[]);
    append(catalog.begin().await.unwrap(), &[first], "first")
        .await
        .unwrap();
    let mut began = Vec::new();
    for _ in 0..16 {
        began.push(catalog.begin().await.unwrap());
    }
    let mut got = Vec::new();
    for (number, transaction) in began.into_iter().enumerate() {
        let value = i8::try_from(number).unwrap();
        let append_of = [numbers(1, &[&[value], &[-value, 9]], &[100, 101])];
        got.push(
            append(transaction, &append_of, &number.to_string())
                .await
                .unwrap(),
        );
    }
    assert_eq!(got, (3..19).collect::<Vec<u64>>());

    let stats = value(&catalog, &TableStatsKey { table_id: 1 }).await.unwrap();
    assert_eq!((stats.record_count, stats.next_row_id), (2 + 16 * 5, 2 + 16 * 5));
    assert_eq!(stats.file_size_bytes, 100 + 16 * 200);
    let view = catalog.store().view().unwrap();
    let files = views::data_files_at(&*view, 18, 1).await.unwrap();
    let ids: Vec<u64> = files.iter().map(|(key, _)| key.data_file_id).collect();
    assert_eq!(ids, (0..33).collect::<Vec<u64>>());
    let mut starts: Vec<(u64, u64)> = files
        .iter()
        .map(|(_, file)| (file.row_id_start.unwrap(), file.record_count))
        .collect();
    for key in keys::<InlineInsertKey>(&catalog).await {
        let chunk = value(&catalog, &key).await.unwrap();
        starts.push((chunk.row_id_start, chunk.row_count));
    }
    starts.sort_unstable();
    let mut next = 0;
    for (start, count) in starts {
        assert_eq!(start, next, "row ids are dense and given once");
        next = start + count;
    }
    assert_eq!(next, stats.next_row_id);
}

#[tokio::test]
async fn a_transaction_that_was_shifted_reads_the_newest_head_with_its_own_rows_on_top() {
    let (catalog, _) = rebasing_lake().await;
    let mut late = catalog.begin().await.unwrap();
    let first = [numbers(1, &[&[1, 2]], &[])];
    append(catalog.begin().await.unwrap(), &first, "first")
        .await
        .unwrap();
    let (asked, made) = stage(&mut late, &[numbers(1, &[&[3]], &[])], "late")
        .await
        .unwrap();
    assert_eq!(asked, 2);
    assert_eq!(late.newest_snapshot_id(), Some(2));
    assert!(!late.is_append());
    late.set_snapshot_changes(changes(asked, &made)).await.unwrap();

    assert!(late.is_append());
    assert_eq!(late.head().unwrap().snapshot_id, 2);
    assert_eq!(late.newest_snapshot_id(), Some(3));
    assert_eq!(late.inserted_snapshot().unwrap().snapshot_id, 3);
    assert_eq!(late.inserted_snapshot_changes().unwrap().snapshot_id, 3);
    let files = views::data_files_at(late.read(), 3, 1).await.unwrap();
    let found: Vec<(u64, &str, u64)> = files
        .iter()
        .map(|(key, file)| (key.data_file_id, file.path.as_str(), file.begin_snapshot))
        .collect();
    assert_eq!(found, [(0, "first-1-0.parquet", 2), (1, "late-1-0.parquet", 3)]);
    let stats = late
        .read()
        .value(&TableStatsKey { table_id: 1 })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stats.record_count, 3);
    assert_eq!(late.commit().await.unwrap().snapshot_id, Some(3));
}
