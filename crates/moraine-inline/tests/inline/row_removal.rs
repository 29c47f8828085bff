//! Removal for good: flush, selective expiry, dropped inlined tables, dead tables.

use moraine_codec::proto::InlineInlineDeleteValue;
use moraine_inline::{
    InlineError, RowPredicate, create_file_delete_table, create_table, deregister, drop_table, end_rows,
    insert_file_deletes, schema, versions,
};
use moraine_keys::{
    ChunkLocatorKey, ChunkRangeKey, InlineDeleteKey, InlineInsertKey, RowTombstoneKey, SchemaDroppedKey,
};
use moraine_store::ReadExt;

use crate::support::{
    TABLE, VERSION, columns, drop_version, everything, fresh, is_corruption_at, keys, lifetimes, numbers,
    put, remove_rows, run, select, visible,
};

async fn tombstones(read: &moraine_store::Staging) -> Vec<(u64, u64)> {
    keys::<RowTombstoneKey>(read)
        .await
        .iter()
        .map(|key| (key.row_id, key.end_snapshot))
        .collect()
}

#[test]
fn a_flush_removes_chunks_locators_and_consumed_tombstones() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2]).await;
        put(&mut staging, VERSION, 2, &[3]).await;
        end_rows(&mut staging, TABLE, &[(1, 1)], 2).await.unwrap();
        put(&mut staging, VERSION, 5, &[4]).await;
        let drained = select(&staging, TABLE, VERSION, &RowPredicate::begun_by(3))
            .await
            .unwrap();
        let drained: Vec<(u64, u64)> = drained
            .rows()
            .iter()
            .map(|row| (row.row_id, row.begin_snapshot))
            .collect();
        remove_rows(&mut staging, TABLE, VERSION, &drained).await.unwrap();
        assert_eq!(visible(&staging, VERSION, 9).await, vec![(4, 4)]);
        assert_eq!(keys::<InlineInsertKey>(&staging).await.len(), 1);
        assert_eq!(keys::<ChunkLocatorKey>(&staging).await.len(), 1);
        assert!(tombstones(&staging).await.is_empty());
        assert!(schema(&staging, TABLE, VERSION).await.unwrap().is_some());
    });
}

#[test]
fn a_partial_chunk_is_split_into_dense_runs_of_the_same_version() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 4, &[10, 11, 12, 13, 14, 15, 16]).await;
        put(&mut staging, VERSION, 4, &[30]).await;
        remove_rows(&mut staging, TABLE, VERSION, &[(12, 4), (13, 4), (16, 4)])
            .await
            .unwrap();
        let locators: Vec<(u64, u64)> = keys::<ChunkLocatorKey>(&staging)
            .await
            .iter()
            .map(|key| (key.row_id_end, key.chunk_seq))
            .collect();
        assert_eq!(locators, vec![(11, 2), (15, 3), (30, 1)]);
        assert_eq!(keys::<InlineInsertKey>(&staging).await.len(), 3);
        let expected: Vec<(u64, i64)> = vec![(10, 10), (11, 11), (14, 14), (15, 15), (30, 30)];
        assert_eq!(visible(&staging, VERSION, 4).await, expected);
        let text = select(&staging, TABLE, VERSION, &RowPredicate::default())
            .await
            .unwrap();
        let batch = text.window(&staging, 0..5, &[0, 1]).await.unwrap();
        assert_eq!(batch, crate::support::rows(&[10, 11, 14, 15, 30]));
        assert_eq!(numbers(&batch), vec![10, 11, 14, 15, 30]);
    });
}

#[test]
fn a_tombstone_stays_while_a_surviving_version_ends_by_it() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 4, &columns(), true)
            .await
            .unwrap();
        put(&mut staging, VERSION, 1, &[1]).await;
        end_rows(&mut staging, TABLE, &[(1, 1)], 3).await.unwrap();
        put(&mut staging, 4, 3, &[1]).await;
        end_rows(&mut staging, TABLE, &[(1, 3)], 6).await.unwrap();
        put(&mut staging, 4, 6, &[1]).await;
        assert_eq!(tombstones(&staging).await, vec![(1, 3), (1, 6)]);

        // The version in schema version 3 still ends at 3, the one removed was the only one ending at 6.
        remove_rows(&mut staging, TABLE, 4, &[(1, 3)]).await.unwrap();
        assert_eq!(tombstones(&staging).await, vec![(1, 3)]);
        assert_eq!(
            lifetimes(&staging, VERSION, &RowPredicate::default()).await,
            vec![(1, 1, Some(3))]
        );
        assert_eq!(
            lifetimes(&staging, 4, &RowPredicate::default()).await,
            vec![(1, 6, None)]
        );

        remove_rows(&mut staging, TABLE, VERSION, &[(1, 1)])
            .await
            .unwrap();
        assert!(tombstones(&staging).await.is_empty());
        assert_eq!(
            lifetimes(&staging, 4, &RowPredicate::default()).await,
            vec![(1, 6, None)]
        );
    });
}

#[test]
fn tombstones_of_rows_beside_the_removed_ones_are_not_touched() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        end_rows(&mut staging, TABLE, &[(1, 1), (2, 1), (3, 1)], 4)
            .await
            .unwrap();
        remove_rows(&mut staging, TABLE, VERSION, &[(1, 1), (3, 1)])
            .await
            .unwrap();
        assert_eq!(tombstones(&staging).await, vec![(2, 4)]);
        assert_eq!(
            lifetimes(&staging, VERSION, &RowPredicate::default()).await,
            vec![(2, 1, Some(4))]
        );
    });
}

#[test]
fn naming_a_version_that_is_not_there_removes_nothing() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        let before = everything(&staging).await;
        for absent in [(2, 2), (4, 1)] {
            let error = remove_rows(&mut staging, TABLE, VERSION, &[(1, 1), absent])
                .await
                .unwrap_err();
            assert!(matches!(error, InlineError::RowNotFound { .. }), "{error}");
        }
        remove_rows(&mut staging, TABLE, VERSION, &[]).await.unwrap();
        assert_eq!(everything(&staging).await, before);
    });
}

#[test]
fn a_damaged_partial_chunk_removes_nothing() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        let key = InlineInsertKey {
            table_id: TABLE,
            schema_version: VERSION,
            begin_snapshot: 1,
            chunk_seq: 0,
        };
        let mut value = staging.value(&key).await.unwrap().unwrap();
        value.body = value.body.slice(..value.body.len() - 1);
        staging.put(&key, &value).unwrap();
        let before = everything(&staging).await;
        let error = remove_rows(&mut staging, TABLE, VERSION, &[(1, 1)])
            .await
            .unwrap_err();
        assert!(is_corruption_at(&error, &key), "{error}");
        assert_eq!(everything(&staging).await, before);
    });
}

#[test]
fn ten_thousand_rows_in_thousands_of_chunks_are_removed_in_one_pass() {
    run(async {
        let mut staging = fresh().await;
        let all: Vec<(u64, u64)> = (0..10_000).map(|row| (row, row / 3 + 1)).collect();
        for begin in all.chunks(3) {
            let ids: Vec<u64> = begin.iter().map(|(row, _)| *row).collect();
            put(&mut staging, VERSION, begin[0].1, &ids).await;
        }
        end_rows(&mut staging, TABLE, &all, 5_000).await.unwrap();
        let odd: Vec<(u64, u64)> = all.iter().copied().filter(|(row, _)| row % 2 == 1).collect();
        let started = std::time::Instant::now();
        remove_rows(&mut staging, TABLE, VERSION, &odd).await.unwrap();
        // Per-row scans would take minutes; the bound is far above what a slow machine needs.
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        let left = lifetimes(&staging, VERSION, &RowPredicate::default()).await;
        assert_eq!(left.len(), 5_000);
        assert!(
            left.iter()
                .all(|(row, _, end)| row % 2 == 0 && *end == Some(5_000))
        );
        assert_eq!(tombstones(&staging).await.len(), 5_000);
    });
}

#[test]
fn dropping_a_version_keeps_its_schema_and_the_tombstones_others_need() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 4, &columns(), true)
            .await
            .unwrap();
        put(&mut staging, VERSION, 1, &[1, 2, 3]).await;
        put(&mut staging, 4, 2, &[7]).await;
        end_rows(&mut staging, TABLE, &[(1, 1), (2, 1), (7, 2)], 5)
            .await
            .unwrap();
        put(&mut staging, 4, 5, &[2]).await;
        drop_version(&mut staging, TABLE, VERSION).await.unwrap();
        assert!(
            lifetimes(&staging, VERSION, &RowPredicate::default())
                .await
                .is_empty()
        );
        assert_eq!(
            lifetimes(&staging, 4, &RowPredicate::default()).await,
            vec![(2, 5, None), (7, 2, Some(5))]
        );
        assert_eq!(tombstones(&staging).await, vec![(7, 5)]);
        assert_eq!(schema(&staging, TABLE, VERSION).await.unwrap(), Some(columns()));
        assert_eq!(
            versions(&staging, None).await.unwrap(),
            vec![(TABLE, VERSION, false), (TABLE, 4, true)]
        );
        // DuckLake names a drop twice.
        drop_version(&mut staging, TABLE, VERSION).await.unwrap();
    });
}

#[test]
fn dropping_a_table_removes_every_inlined_record_of_it_and_of_no_other() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, 8, 1, &columns(), true).await.unwrap();
        crate::support::insert(&mut staging, 8, 1, 1, &[0], &crate::support::rows(&[0]))
            .await
            .unwrap();
        end_rows(&mut staging, 8, &[(0, 1)], 2).await.unwrap();
        create_file_delete_table(&mut staging, 8).await.unwrap();
        let others: Vec<_> = everything(&staging)
            .await
            .into_iter()
            .filter(|(key, _)| !matches!(moraine_keys::Key::decode(key).unwrap().to_string(), text if text.contains("table_id=7")))
            .collect();
        assert!(!others.is_empty());

        create_table(&mut staging, TABLE, 4, &columns(), true)
            .await
            .unwrap();
        put(&mut staging, 4, 1, &[1, 2]).await;
        end_rows(&mut staging, TABLE, &[(1, 1)], 2).await.unwrap();
        deregister(&mut staging, TABLE, VERSION).await.unwrap();
        assert_eq!(keys::<SchemaDroppedKey>(&staging).await.len(), 1);
        insert_file_deletes(&mut staging, TABLE, &[(3, 1, 2)])
            .await
            .unwrap();
        // What formats before 9 left behind.
        let legacy = InlineDeleteKey {
            table_id: TABLE,
            row_id: 5,
        };
        staging
            .put(&legacy, &InlineInlineDeleteValue { end_snapshot: 2 })
            .unwrap();
        let range = ChunkRangeKey {
            table_id: TABLE,
            row_id_end: 5,
        };
        staging.put_raw(
            moraine_keys::Kind::encode(&range),
            bytes::Bytes::from_static(b"damaged"),
        );
        let archived = moraine_keys::ArchivedInsertKey {
            operation: InlineInsertKey {
                table_id: TABLE,
                schema_version: 1,
                begin_snapshot: 1,
                chunk_seq: 0,
            },
        };
        staging.put_raw(
            moraine_keys::Kind::encode(&archived),
            bytes::Bytes::from_static(b"damaged"),
        );

        drop_table(&mut staging, TABLE).await.unwrap();
        assert_eq!(everything(&staging).await, others);
    });
}
