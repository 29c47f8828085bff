//! The chunk directory: it serves reads only while it names exactly the chunks that exist, and a removal makes it whole again.

use moraine_codec::proto::InlineChunkRangeValue;
use moraine_inline::{RowPredicate, create_table};
use moraine_keys::{ChunkLocatorKey, ChunkRangeKey, InlineInsertKey, Kind};
use moraine_store::{MemoryStore, Read, ReadExt, Staging};

use crate::support::{
    TABLE, VERSION, columns, commit, committed, fresh, is_corruption_at, keys, lifetimes, put,
    put_unverified, remove_rows, run, select, staging, visible,
};

fn locator(row_id_end: u64, begin_snapshot: u64, chunk_seq: u64) -> ChunkLocatorKey {
    ChunkLocatorKey {
        table_id: TABLE,
        row_id_end,
        schema_version: VERSION,
        begin_snapshot,
        chunk_seq,
    }
}

fn range(key: &ChunkLocatorKey, row_id_start: u64) -> InlineChunkRangeValue {
    let ChunkLocatorKey {
        schema_version,
        begin_snapshot,
        chunk_seq,
        ..
    } = *key;
    InlineChunkRangeValue {
        row_id_start,
        schema_version,
        begin_snapshot,
        chunk_seq,
    }
}

fn chunk(begin_snapshot: u64, chunk_seq: u64) -> InlineInsertKey {
    InlineInsertKey {
        table_id: TABLE,
        schema_version: VERSION,
        begin_snapshot,
        chunk_seq,
    }
}

/// Whether every chunk of the table has exactly its locator.
async fn is_complete(read: &Staging) -> bool {
    let chunks: Vec<(InlineInsertKey, moraine_codec::proto::InlineChunkValue)> =
        read.records(InlineInsertKey::scan()).await.unwrap();
    let mut expected: Vec<(u64, u64, InlineInsertKey)> = chunks
        .into_iter()
        .map(|(key, value)| (value.row_id_start, value.row_id_start + value.row_count - 1, key))
        .collect();
    let locators: Vec<(ChunkLocatorKey, InlineChunkRangeValue)> =
        read.records(ChunkLocatorKey::scan()).await.unwrap();
    let mut found: Vec<(u64, u64, InlineInsertKey)> = locators
        .into_iter()
        .map(|(key, value)| {
            (
                value.row_id_start,
                key.row_id_end,
                chunk(key.begin_snapshot, key.chunk_seq),
            )
        })
        .collect();
    expected.sort();
    found.sort();
    expected == found
}

#[test]
fn two_chunks_that_share_a_range_end_are_both_found() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        put(&mut staging, VERSION, 2, &[3]).await;
        assert_eq!(keys::<ChunkLocatorKey>(&staging).await.len(), 2);
        let all = lifetimes(&staging, VERSION, &RowPredicate::default()).await;
        assert_eq!(all, vec![(1, 1, None), (2, 1, None), (3, 1, None), (3, 2, None)]);
    });
}

#[test]
fn a_complete_directory_serves_a_selection_without_reading_a_body() {
    run(async {
        let store = MemoryStore::new();
        let mut writes = staging(&store);
        create_table(&mut writes, TABLE, VERSION, &columns(), true)
            .await
            .unwrap();
        put(&mut writes, VERSION, 1, &[1, 2]).await;
        // A body that no reader could decode: only its frame's header says what it is.
        let mut value = writes.value(&chunk(1, 0)).await.unwrap().unwrap();
        value.body = bytes::Bytes::from_static(b"not a body");
        writes.put(&chunk(1, 0), &value).unwrap();
        commit(&store, &writes).await;
        let view = staging(&store);
        let all = select(&view, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        assert_eq!(all.rows().len(), 2);
        let error = all.window(&view, 0..1, &[0]).await.unwrap_err();
        assert!(is_corruption_at(&error, &chunk(1, 0)), "{error}");
    });
}

#[test]
fn an_incomplete_directory_costs_a_chunk_walk_and_never_a_row() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2]).await;
        put(&mut staging, VERSION, 2, &[5]).await;
        let expected = visible(&staging, VERSION, 9).await;
        staging.delete(&locator(2, 1, 0));
        assert_eq!(visible(&committed(&staging).await, VERSION, 9).await, expected);
        // As many locators as chunks, one of them naming no chunk: sets are compared, not counts.
        let dangling = locator(8, 1, 7);
        staging.put(&dangling, &range(&dangling, 8)).unwrap();
        assert_eq!(visible(&committed(&staging).await, VERSION, 9).await, expected);
    });
}

#[test]
fn a_removal_heals_the_directory_and_sweeps_the_legacy_one() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        put(&mut staging, VERSION, 2, &[5]).await;
        put(&mut staging, VERSION, 3, &[8, 9]).await;
        for lost in [locator(3, 1, 0), locator(5, 2, 0), locator(9, 3, 0)] {
            staging.delete(&lost);
        }
        // One right but for its start, one naming no chunk, one from before format 8.
        let wrong = locator(5, 2, 0);
        staging.put(&wrong, &range(&wrong, 4)).unwrap();
        let dangling = locator(20, 6, 0);
        staging.put(&dangling, &range(&dangling, 20)).unwrap();
        let legacy = ChunkRangeKey {
            table_id: TABLE,
            row_id_end: 3,
        };
        staging.put(&legacy, &range(&locator(3, 1, 0), 1)).unwrap();
        assert!(!is_complete(&staging).await);
        let mut staging = committed(&staging).await;

        remove_rows(&mut staging, TABLE, VERSION, &[(2, 1), (8, 3), (9, 3)])
            .await
            .unwrap();
        assert!(is_complete(&staging).await);
        assert!(keys::<ChunkRangeKey>(&staging).await.is_empty());
        assert_eq!(visible(&staging, VERSION, 9).await, vec![(1, 1), (3, 3), (5, 5)]);
    });
}

#[test]
fn a_locator_that_contradicts_its_chunk_is_corruption_naming_the_chunk() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        let key = locator(3, 1, 0);
        staging.put(&key, &range(&key, 2)).unwrap();
        let all = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        let error = all.window(&staging, 0..1, &[0]).await.unwrap_err();
        assert!(is_corruption_at(&error, &chunk(1, 0)), "{error}");
    });
}

#[test]
fn a_locator_that_starts_after_its_end_is_corruption_naming_the_locator() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        let key = locator(3, 1, 0);
        put_unverified(&mut staging, &key, &range(&key, 4));
        let error = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap_err();
        assert!(is_corruption_at(&error, &key), "{error}");
    });
}

#[test]
fn a_chunk_gone_since_the_selection_is_corruption_naming_the_chunk() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1]).await;
        let all = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        staging.delete(&chunk(1, 0));
        let error = all.window(&staging, 0..1, &[0]).await.unwrap_err();
        assert!(is_corruption_at(&error, &chunk(1, 0)), "{error}");
    });
}

#[test]
fn a_chunk_with_an_outlandish_row_count_is_refused_before_its_rows_are_counted_out() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1]).await;
        let mut value = staging.value(&chunk(1, 0)).await.unwrap().unwrap();
        value.row_count = u64::MAX - 1;
        staging.put(&chunk(1, 0), &value).unwrap();
        let key = locator(u64::MAX - 1, 1, 0);
        staging.delete(&locator(1, 1, 0));
        staging.put(&key, &range(&key, 1)).unwrap();
        let error = select(
            &committed(&staging).await,
            TABLE,
            VERSION,
            &RowPredicate::default(),
        )
        .await
        .unwrap_err();
        assert!(is_corruption_at(&error, &chunk(1, 0)), "{error}");
        // The same without a locator, and with a count that overflows the row ids.
        staging.delete(&key);
        let error = select(
            &committed(&staging).await,
            TABLE,
            VERSION,
            &RowPredicate::default(),
        )
        .await
        .unwrap_err();
        assert!(is_corruption_at(&error, &chunk(1, 0)), "{error}");
        for row_count in [0, u64::MAX] {
            value.row_count = row_count;
            value.row_id_start = 2;
            put_unverified(&mut staging, &chunk(1, 0), &value);
            let error = select(
                &committed(&staging).await,
                TABLE,
                VERSION,
                &RowPredicate::default(),
            )
            .await
            .unwrap_err();
            assert!(is_corruption_at(&error, &chunk(1, 0)), "{error}");
        }
    });
}

#[test]
fn rows_of_other_tables_and_versions_stay_out_of_a_selection() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 4, &columns(), true)
            .await
            .unwrap();
        create_table(&mut staging, 8, VERSION, &columns(), true)
            .await
            .unwrap();
        put(&mut staging, VERSION, 1, &[1]).await;
        put(&mut staging, 4, 1, &[2]).await;
        let batch = crate::support::rows(&[3]);
        crate::support::insert(&mut staging, 8, VERSION, 1, &[3], &batch)
            .await
            .unwrap();
        assert_eq!(visible(&staging, VERSION, 1).await, vec![(1, 1)]);
        assert_eq!(visible(&staging, 4, 1).await, vec![(2, 2)]);
        assert!(staging.get(&locator(1, 1, 0).encode()).await.unwrap().is_some());
    });
}
