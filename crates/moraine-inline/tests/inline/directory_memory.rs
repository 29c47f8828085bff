//! What is remembered of a chunk directory: completeness only of committed states, for them and later ones; a width that only rises.

use std::sync::Arc;

use moraine_inline::{
    Directories, DirectoriesAt, RowPredicate, create_table, end_rows, insert, remove_rows, select,
};
use moraine_keys::{ChunkLocatorKey, InlineInsertKey};
use moraine_store::{MemoryStore, Staging, Store};

use crate::support::{TABLE, VERSION, columns, commit, keys, rows, run, staging};

/// A committed table of `chunks` chunks of `width` rows each, whose row ids follow one another.
async fn table(store: &MemoryStore, memory: &DirectoriesAt, chunks: u64, width: u64) {
    let mut staged = staging(store);
    create_table(&mut staged, TABLE, VERSION, &columns(), true)
        .await
        .unwrap();
    for chunk in 0..chunks {
        put(&mut staged, memory, chunk + 1, chunk * width..(chunk + 1) * width).await;
    }
    commit(store, &staged).await;
}

async fn put(staged: &mut Staging, memory: &DirectoriesAt, begin: u64, row_ids: std::ops::Range<u64>) {
    let row_ids: Vec<u64> = row_ids.collect();
    let values: Vec<i64> = row_ids.iter().map(|id| i64::try_from(*id).unwrap()).collect();
    insert(staged, memory, TABLE, VERSION, begin, &row_ids, &rows(&values))
        .await
        .unwrap();
}

fn row(row_id: u64) -> RowPredicate {
    RowPredicate {
        row_ids: [row_id].into_iter().collect(),
        ..RowPredicate::default()
    }
}

async fn found(staged: &Staging, memory: &DirectoriesAt, predicate: &RowPredicate) -> Vec<(u64, u64)> {
    let selection = select(staged, memory, TABLE, VERSION, predicate).await.unwrap();
    let rows = selection.rows().iter();
    rows.map(|row| (row.row_id, row.begin_snapshot)).collect()
}

/// Store reads of what `work` does.
async fn reads<T>(store: &MemoryStore, work: impl Future<Output = T>) -> u64 {
    let before = store.reads();
    work.await;
    store.reads() - before
}

#[test]
fn a_complete_directory_is_judged_once_and_then_answers_without_the_chunks() {
    run(async {
        let store = MemoryStore::new();
        let directories = Arc::new(Directories::default());
        table(&store, &directories.at(0), 200, 3).await;
        let all = RowPredicate::default();
        let (first, later) = (staging(&store), staging(&store));
        let judging = reads(&store, found(&first, &directories.at(1), &all)).await;
        let remembered = reads(&store, found(&later, &directories.at(2), &all)).await;
        // Locators and chunks to judge, then locators; and the schema record each time.
        assert!(judging >= 600, "{judging}");
        assert!((200..210).contains(&remembered), "{remembered}");
    });
}

#[test]
fn ending_one_row_reads_no_more_when_there_are_a_hundred_times_as_many_chunks() {
    run(async {
        let mut counts = Vec::new();
        for chunks in [100, 10_000] {
            let store = MemoryStore::new();
            let directories = Arc::new(Directories::default());
            table(&store, &directories.at(0), chunks, 5).await;
            let memory = directories.at(1);
            found(&staging(&store), &memory, &row(0)).await;
            let work = async {
                let mut staged = staging(&store);
                let target = chunks * 5 / 2;
                let version = found(&staged, &memory, &row(target)).await;
                assert_eq!(version.len(), 1);
                end_rows(&mut staged, TABLE, &version, chunks + 1).await.unwrap();
            };
            counts.push(reads(&store, work).await);
        }
        assert_eq!(counts[0], counts[1]);
        assert!(counts[0] < 20, "{counts:?}");
    });
}

#[test]
fn rows_far_apart_are_each_sought() {
    run(async {
        let store = MemoryStore::new();
        let directories = Arc::new(Directories::default());
        table(&store, &directories.at(0), 1000, 5).await;
        let memory = directories.at(1);
        found(&staging(&store), &memory, &row(0)).await;
        let predicate = RowPredicate {
            row_ids: [3, 2500, 4999].into_iter().collect(),
            ..RowPredicate::default()
        };
        let staged = staging(&store);
        assert_eq!(
            found(&staged, &memory, &predicate).await,
            vec![(3, 1), (2500, 501), (4999, 1000)]
        );
        let read = reads(&store, found(&staged, &memory, &predicate)).await;
        assert!(read < 20, "{read}");
    });
}

#[test]
fn a_wide_chunk_is_found_from_its_first_row_behind_many_narrow_ones() {
    run(async {
        let store = MemoryStore::new();
        let directories = Arc::new(Directories::default());
        table(&store, &directories.at(0), 50, 2).await;
        let memory = directories.at(1);
        found(&staging(&store), &memory, &row(0)).await;
        // The bound is known by now, and too low for this one.
        let mut staged = staging(&store);
        put(&mut staged, &memory, 60, 0..90).await;
        assert_eq!(found(&staged, &memory, &row(4)).await, vec![(4, 3), (4, 60)]);
        commit(&store, &staged).await;
        let later = staging(&store);
        assert_eq!(
            found(&later, &directories.at(2), &row(4)).await,
            vec![(4, 3), (4, 60)]
        );
        // Nor does it fall again with the chunk gone for good.
        let mut staged = staging(&store);
        let gone: Vec<(u64, u64)> = (0..90).map(|row_id| (row_id, 60)).collect();
        remove_rows(&mut staged, &directories.at(2), TABLE, VERSION, &gone)
            .await
            .unwrap();
        commit(&store, &staged).await;
        assert_eq!(
            found(&later, &directories.at(2), &row(4)).await,
            vec![(4, 3), (4, 60)]
        );
    });
}

/// A committed table whose second chunk has lost its locator.
async fn short(store: &MemoryStore, memory: &DirectoriesAt) {
    table(store, memory, 3, 2).await;
    let mut staged = staging(store);
    staged.delete(&keys::<ChunkLocatorKey>(&staged).await[1]);
    commit(store, &staged).await;
}

const ALL: [(u64, u64); 6] = [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3)];

#[test]
fn a_short_directory_is_never_remembered_and_costs_no_row() {
    run(async {
        let store = MemoryStore::new();
        let directories = Arc::new(Directories::default());
        short(&store, &directories.at(0)).await;
        for _ in 0..2 {
            let staged = staging(&store);
            assert_eq!(
                found(&staged, &directories.at(1), &RowPredicate::default()).await,
                ALL
            );
            assert_eq!(found(&staged, &directories.at(1), &row(2)).await, vec![(2, 2)]);
        }
    });
}

#[test]
fn a_repair_in_flight_is_not_remembered_and_one_that_landed_is_for_later_readers_only() {
    run(async {
        let store = MemoryStore::new();
        let directories = Arc::new(Directories::default());
        short(&store, &directories.at(0)).await;
        let all = RowPredicate::default();
        let before = staging(&store);
        let mut repairing = staging(&store);
        remove_rows(
            &mut repairing,
            &directories.at(1),
            TABLE,
            VERSION,
            &[(4, 3), (5, 3)],
        )
        .await
        .unwrap();
        assert_eq!(found(&repairing, &directories.at(1), &all).await, ALL[..4]);
        assert_eq!(found(&before, &directories.at(1), &all).await, ALL);
        commit(&store, &repairing).await;
        let after = staging(&store);
        assert_eq!(found(&after, &directories.at(2), &all).await, ALL[..4]);
        let remembered = reads(&store, found(&staging(&store), &directories.at(2), &all)).await;
        assert!(remembered < 6, "{remembered}");
        // Whoever still reads the state before the repair must not rely on it.
        assert_eq!(found(&before, &directories.at(1), &all).await, ALL);
        assert_eq!(keys::<InlineInsertKey>(&before).await.len(), 3);
    });
}
