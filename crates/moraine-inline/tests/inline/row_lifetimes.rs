//! Inserts, ends and what a reader sees of them at which snapshot.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use moraine_codec::proto::InlineInlineDeleteValue;
use moraine_inline::{
    EndPredicate, INLINE_CHUNK_ROWS_MAX, InlineError, RowIds, RowPredicate, create_table, end_rows,
};
use moraine_keys::{ChunkLocatorKey, InlineInsertKey, RowTombstoneKey};
use moraine_store::{MemoryStore, Store};

use crate::support::{
    TABLE, VERSION, columns, everything, fresh, insert, is_corruption_at, keys, lifetimes, numbers, put,
    put_unverified, rows, run, select, staging, visible,
};

#[test]
fn one_chunk_per_contiguous_run_with_a_locator_each() {
    run(async {
        let mut staging = fresh().await;
        insert(
            &mut staging,
            TABLE,
            VERSION,
            11,
            &[9, 4, 5, 7, 6],
            &rows(&[90, 40, 50, 70, 60]),
        )
        .await
        .unwrap();
        let chunks = keys::<InlineInsertKey>(&staging).await;
        let sequence: Vec<u64> = chunks.iter().map(|chunk| chunk.chunk_seq).collect();
        assert_eq!(sequence, vec![0, 1]);
        let ends: Vec<(u64, u64)> = keys::<ChunkLocatorKey>(&staging)
            .await
            .iter()
            .map(|key| (key.row_id_end, key.chunk_seq))
            .collect();
        assert_eq!(ends, vec![(7, 0), (9, 1)]);
        assert_eq!(
            visible(&staging, VERSION, 11).await,
            vec![(4, 40), (5, 50), (6, 60), (7, 70), (9, 90)]
        );
    });
}

#[test]
fn chunk_sequence_continues_within_a_snapshot_and_starts_anew_in_the_next() {
    run(async {
        let store = MemoryStore::new();
        let mut first = staging(&store);
        create_table(&mut first, TABLE, VERSION, &columns(), true)
            .await
            .unwrap();
        put(&mut first, VERSION, 11, &[0]).await;
        crate::support::commit(&store, &first).await;
        let mut second = staging(&store);
        put(&mut second, VERSION, 11, &[1, 3]).await;
        put(&mut second, VERSION, 12, &[4]).await;
        let chunks = keys::<InlineInsertKey>(&second).await;
        let identities: Vec<(u64, u64)> = chunks
            .iter()
            .map(|key| (key.begin_snapshot, key.chunk_seq))
            .collect();
        assert_eq!(identities, vec![(11, 0), (11, 1), (11, 2), (12, 0)]);
    });
}

#[test]
fn a_run_longer_than_a_chunk_may_be_is_split() {
    run(async {
        let mut staging = fresh().await;
        let row_ids: Vec<u64> = (0..INLINE_CHUNK_ROWS_MAX + 2).collect();
        put(&mut staging, VERSION, 1, &row_ids).await;
        assert_eq!(keys::<InlineInsertKey>(&staging).await.len(), 2);
        let all = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        let boundary = usize::try_from(INLINE_CHUNK_ROWS_MAX).unwrap();
        let batch = all
            .window(&staging, boundary - 1..boundary + 1, &[0])
            .await
            .unwrap();
        let expected = i64::try_from(INLINE_CHUNK_ROWS_MAX).unwrap();
        assert_eq!(numbers(&batch), vec![expected - 1, expected]);
    });
}

#[test]
fn bad_inserts_are_refused_and_stage_nothing() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 5, &[10, 11, 12]).await;
        let before = everything(&staging).await;
        let other = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        let narrow =
            RecordBatch::try_new(Arc::new(other), vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
        let one = rows(&[1]);
        let two = rows(&[1, 2]);
        let cases = [
            (vec![], rows(&[]), "at least one row"),
            (vec![1, 2], one.clone(), "2 row ids were given for 1 rows"),
            (vec![u64::MAX], one.clone(), "above the greatest BIGINT"),
            (
                vec![i64::MAX as u64 + 1],
                one.clone(),
                "above the greatest BIGINT",
            ),
            (vec![1], narrow, "do not fit the columns"),
            (vec![4, 4], two.clone(), "already inlined"),
            (vec![9, 12], two, "already inlined"),
        ];
        for (row_ids, batch, reason) in cases {
            let error = insert(&mut staging, TABLE, VERSION, 5, &row_ids, &batch)
                .await
                .unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert_eq!(everything(&staging).await, before);
        // The same row at another snapshot is the shape of an UPDATE.
        insert(&mut staging, TABLE, VERSION, 6, &[10], &one)
            .await
            .unwrap();
    });
}

#[test]
fn a_version_ends_at_the_earliest_tombstone_strictly_after_its_begin() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 4, &columns(), true)
            .await
            .unwrap();
        put(&mut staging, VERSION, 2, &[1]).await;
        // An UPDATE at 5 ends the old version and inserts the new one, under another schema version, at the same snapshot.
        end_rows(&mut staging, TABLE, &[(1, 2)], 5).await.unwrap();
        put(&mut staging, 4, 5, &[1]).await;
        assert_eq!(
            lifetimes(&staging, VERSION, &RowPredicate::default()).await,
            vec![(1, 2, Some(5))]
        );
        assert_eq!(
            lifetimes(&staging, 4, &RowPredicate::default()).await,
            vec![(1, 5, None)]
        );
        // A later end appends an event and does not move the earlier one.
        end_rows(&mut staging, TABLE, &[(1, 5)], 9).await.unwrap();
        assert_eq!(
            lifetimes(&staging, VERSION, &RowPredicate::default()).await,
            vec![(1, 2, Some(5))]
        );
        assert_eq!(
            lifetimes(&staging, 4, &RowPredicate::default()).await,
            vec![(1, 5, Some(9))]
        );
        assert_eq!(keys::<RowTombstoneKey>(&staging).await.len(), 2);
    });
}

#[test]
fn an_end_is_never_inferred_from_the_next_insert_of_the_row() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 2, &[1]).await;
        end_rows(&mut staging, TABLE, &[(1, 2)], 4).await.unwrap();
        // From 4 to 8 the row lived in Parquet.
        put(&mut staging, VERSION, 8, &[1]).await;
        let all = lifetimes(&staging, VERSION, &RowPredicate::default()).await;
        assert_eq!(all, vec![(1, 2, Some(4)), (1, 8, None)]);
        assert!(visible(&staging, VERSION, 6).await.is_empty());
    });
}

#[test]
fn inlined_rows_are_visible_from_begin_to_before_end() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 3, &[1, 2]).await;
        end_rows(&mut staging, TABLE, &[(1, 3)], 6).await.unwrap();
        let ids = async |snapshot| -> Vec<u64> {
            visible(&staging, VERSION, snapshot)
                .await
                .into_iter()
                .map(|(row_id, _)| row_id)
                .collect()
        };
        assert_eq!(ids(2).await, Vec::<u64>::new());
        assert_eq!(ids(3).await, vec![1, 2]);
        assert_eq!(ids(5).await, vec![1, 2]);
        assert_eq!(ids(6).await, vec![2]);
        assert_eq!(ids(u64::MAX).await, vec![2]);
    });
}

#[test]
fn predicates_select_on_row_begin_end_and_exact_versions() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 2, &[1, 2, 3]).await;
        put(&mut staging, VERSION, 4, &[6]).await;
        end_rows(&mut staging, TABLE, &[(2, 2), (3, 2)], 5).await.unwrap();
        put(&mut staging, VERSION, 5, &[2]).await;
        let select = async |predicate: RowPredicate| -> Vec<(u64, u64)> {
            let rows = lifetimes(&staging, VERSION, &predicate).await;
            rows.into_iter()
                .map(|(row_id, begin, _)| (row_id, begin))
                .collect()
        };
        let row_ids = RowPredicate {
            row_ids: RowIds::within(2..=3),
            ..RowPredicate::default()
        };
        assert_eq!(select(row_ids).await, vec![(2, 2), (2, 5), (3, 2)]);
        let live = RowPredicate {
            end: EndPredicate::Live,
            ..RowPredicate::default()
        };
        assert_eq!(select(live).await, vec![(1, 2), (2, 5), (6, 4)]);
        assert_eq!(select(RowPredicate::inserted_in(3..=4)).await, vec![(6, 4)]);
        assert_eq!(
            select(RowPredicate::deleted_in(5..=5)).await,
            vec![(2, 2), (3, 2)]
        );
        assert_eq!(select(RowPredicate::deleted_in(6..=9)).await, vec![]);
        assert_eq!(
            select(RowPredicate::begun_by(4)).await,
            vec![(1, 2), (2, 2), (3, 2), (6, 4)]
        );
        assert_eq!(
            select(RowPredicate::exactly([(2, 5), (1, 4), (9, 9), (3, 2)])).await,
            vec![(2, 5), (3, 2)]
        );
        assert_eq!(select(RowPredicate::exactly([])).await, vec![]);
        #[allow(clippy::reversed_empty_ranges)]
        let empty = RowPredicate::inserted_in(5..=4);
        assert_eq!(select(empty).await, vec![]);
    });
}

#[test]
fn ending_a_row_is_idempotent_and_refused_where_it_would_mean_something_else() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 3, &[1, 2]).await;
        end_rows(&mut staging, TABLE, &[(1, 3)], 6).await.unwrap();
        end_rows(&mut staging, TABLE, &[(1, 3)], 6).await.unwrap();
        end_rows(&mut staging, TABLE, &[], 6).await.unwrap();
        let before = everything(&staging).await;
        let error = end_rows(&mut staging, TABLE, &[(2, 3), (1, 3)], 7)
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                InlineError::AlreadyEnded {
                    row_id: 1,
                    ended: 6,
                    ..
                }
            ),
            "{error}"
        );
        let error = end_rows(&mut staging, TABLE, &[(2, 3)], 3).await.unwrap_err();
        assert!(
            matches!(error, InlineError::EndNotAfterBegin { row_id: 2, .. }),
            "{error}"
        );
        assert_eq!(everything(&staging).await, before);
    });
}

#[test]
fn a_window_reads_only_the_bodies_of_its_rows_and_none_without_user_columns() {
    run(async {
        let store = MemoryStore::new();
        let mut writes = staging(&store);
        create_table(&mut writes, TABLE, VERSION, &columns(), true)
            .await
            .unwrap();
        for begin in 1..=5 {
            put(&mut writes, VERSION, begin, &[begin * 10, begin * 10 + 1]).await;
        }
        crate::support::commit(&store, &writes).await;
        let view = staging(&store);
        let all = select(&view, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        let before = store.reads();
        assert_eq!(all.window(&view, 0..10, &[]).await.unwrap().num_rows(), 10);
        assert_eq!(store.reads(), before);
        assert_eq!(
            numbers(&all.window(&view, 3..6, &[0]).await.unwrap()),
            vec![21, 30, 31]
        );
        assert_eq!(store.reads() - before, 2);
        let swapped = all.window(&view, 9..10, &[1, 0, 1]).await.unwrap();
        assert_eq!(swapped.num_columns(), 3);
        assert!(matches!(
            all.window(&view, 9..11, &[0]).await,
            Err(InlineError::WindowOutOfBounds { rows: 10, .. })
        ));
        assert!(matches!(
            all.window(&view, 0..1, &[2]).await,
            Err(InlineError::Assemble { .. })
        ));
    });
}

#[test]
fn retained_rows_are_those_the_caller_keeps() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3, 4]).await;
        let mut selection = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        selection.retain(|row| row.row_id % 2 == 0);
        let batch = selection.window(&staging, 0..2, &[0]).await.unwrap();
        assert_eq!(numbers(&batch), vec![2, 4]);
    });
}

#[test]
fn a_tombstone_whose_value_is_not_its_keys_end_is_corruption() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1]).await;
        let key = RowTombstoneKey {
            table_id: TABLE,
            row_id: 1,
            end_snapshot: 4,
        };
        put_unverified(&mut staging, &key, &InlineInlineDeleteValue { end_snapshot: 5 });
        let error = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap_err();
        assert!(is_corruption_at(&error, &key), "{error}");
    });
}

/// Sessions run on a multi-threaded runtime: every operation's future has to be able to move between threads.
#[test]
fn operations_can_be_awaited_on_any_thread() {
    async fn whole_day(store: MemoryStore) {
        let mut staging = staging(&store);
        create_table(&mut staging, TABLE, VERSION, &columns(), false)
            .await
            .unwrap();
        moraine_inline::register(&mut staging, TABLE, VERSION)
            .await
            .unwrap();
        put(&mut staging, VERSION, 1, &[1, 2, 4]).await;
        end_rows(&mut staging, TABLE, &[(1, 1)], 2).await.unwrap();
        let all = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        all.window(&staging, 0..3, &[0]).await.unwrap();
        crate::support::remove_rows(&mut staging, TABLE, VERSION, &[(2, 1)])
            .await
            .unwrap();
        moraine_inline::insert_file_deletes(&mut staging, TABLE, &[(1, 1, 1)])
            .await
            .unwrap();
        moraine_inline::remove_file_deletes(&mut staging, TABLE, &[(1, 1)])
            .await
            .unwrap();
        crate::support::drop_version(&mut staging, TABLE, VERSION)
            .await
            .unwrap();
        moraine_inline::drop_table(&mut staging, TABLE).await.unwrap();
        assert!(everything(&staging).await.is_empty());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(whole_day(MemoryStore::new())).await.unwrap() });
}
