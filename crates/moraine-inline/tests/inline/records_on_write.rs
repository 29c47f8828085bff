//! Which records writes of inlined rows leave in the store, and which they leave alone: writing only adds, and what a chunk holds is
//! read by the columns it was written with for ever.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use moraine_codec::proto::{InlineChunkValue, InlineInlineDeleteValue};
use moraine_inline::{
    Directories, DirectoriesAt, RowPredicate, create_file_delete_table, create_table, decode_body, drain,
    drop_file_delete_table, end_rows, file_delete_table_exists, file_deletes, insert_file_deletes,
};
use moraine_keys::{
    ChunkLocatorKey, ChunkRangeKey, InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey,
    RowTombstoneKey,
};
use moraine_store::{MemoryStore, ReadExt, Staging, Store};

use crate::support::{
    TABLE, VERSION, columns, commit, everything, fresh, insert, keys, lifetimes, numbers, put,
    put_unverified, rows, run, select, staging, visible,
};

async fn records(staging: &Staging) -> BTreeMap<Bytes, Bytes> {
    everything(staging).await.into_iter().collect()
}

async fn chunks(staging: &Staging) -> Vec<(InlineInsertKey, InlineChunkValue)> {
    let range = <InlineInsertKey as moraine_keys::Kind>::scan();
    staging.records::<InlineInsertKey>(range).await.unwrap()
}

#[test]
fn ordinary_writes_add_chunks_with_their_locators_and_tombstones_and_change_no_record() {
    run(async {
        let mut staging = fresh().await;
        create_file_delete_table(&mut staging, TABLE).await.unwrap();
        put(&mut staging, VERSION, 2, &[1, 2, 3]).await;
        let before = records(&staging).await;
        // An insert, a deletion, an update, and deletions from a file, in one commit each.
        put(&mut staging, VERSION, 3, &[4]).await;
        end_rows(&mut staging, TABLE, &[(1, 2)], 4).await.unwrap();
        end_rows(&mut staging, TABLE, &[(2, 2)], 5).await.unwrap();
        put(&mut staging, VERSION, 5, &[2]).await;
        insert_file_deletes(&mut staging, TABLE, &[(70, 1, 6)])
            .await
            .unwrap();
        let after = records(&staging).await;
        assert!(before.iter().all(|(key, value)| after.get(key) == Some(value)));
        assert_eq!(keys::<InlineInsertKey>(&staging).await.len(), 3);
        assert_eq!(keys::<ChunkLocatorKey>(&staging).await.len(), 3);
        assert_eq!(keys::<RowTombstoneKey>(&staging).await.len(), 2);
        assert_eq!(keys::<InlineFileDeleteKey>(&staging).await.len(), 1);
        // The deletions and directories of earlier formats are written by nobody.
        assert!(keys::<InlineDeleteKey>(&staging).await.is_empty());
        assert!(keys::<ChunkRangeKey>(&staging).await.is_empty());
        // Nothing else: two chunks and locators, two tombstones, a deletion from a file.
        assert_eq!(after.len(), before.len() + 7);
    });
}

#[test]
fn a_chunk_holds_user_columns_and_neither_a_schema_nor_the_columns_that_are_derived() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 4, &[7, 8]).await;
        let (key, value) = chunks(&staging).await.remove(0);
        assert_eq!((key.begin_snapshot, key.schema_version), (4, VERSION));
        assert_eq!((value.row_id_start, value.row_count), (7, 2));
        assert_eq!(decode_body(&value.body, columns(), 2).unwrap(), rows(&[7, 8]));
        let schemas = keys::<InlineSchemaKey>(&staging).await;
        assert_eq!(schemas.len(), 1);
        put(&mut staging, VERSION, 5, &[9]).await;
        assert_eq!(keys::<InlineSchemaKey>(&staging).await, schemas);
    });
}

#[test]
fn a_chunk_is_read_by_the_columns_of_its_own_version_which_later_ones_do_not_change() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 4, &[7, 8]).await;
        let before = chunks(&staging).await;
        let later = Schema::new(vec![Field::new("m", DataType::Int64, true)]);
        create_table(&mut staging, TABLE, 4, &later, true).await.unwrap();
        let batch = RecordBatch::try_new(Arc::new(later), vec![Arc::new(Int64Array::from(vec![90]))]);
        insert(&mut staging, TABLE, 4, 5, &[9], &batch.unwrap())
            .await
            .unwrap();
        assert_eq!(chunks(&staging).await[..1], before);
        assert_eq!(visible(&staging, VERSION, 9).await, vec![(7, 7), (8, 8)]);
        let selection = select(&staging, TABLE, 4, &RowPredicate::visible_at(9))
            .await
            .unwrap();
        let batch = selection.window(&staging, 0..1, &[0]).await.unwrap();
        assert_eq!(
            (batch.schema().field(0).name().as_str(), numbers(&batch)),
            ("m", vec![90])
        );
    });
}

#[test]
fn row_deletions_of_earlier_formats_end_nothing() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 2, &[1]).await;
        let key = InlineDeleteKey {
            table_id: TABLE,
            row_id: 1,
        };
        let value = InlineInlineDeleteValue { end_snapshot: 3 };
        put_unverified(&mut staging, &key, &value);
        assert_eq!(
            lifetimes(&staging, VERSION, &RowPredicate::default()).await,
            vec![(1, 2, None)]
        );
    });
}

/// Makes the body of the chunk that `begin` inserted one that cannot be decoded.
async fn damage(staging: &mut Staging, begin: u64) {
    for (key, mut value) in chunks(staging).await {
        if key.begin_snapshot == begin {
            value.body = Bytes::from_static(b"no body");
            put_unverified(staging, &key, &value);
        }
    }
}

#[test]
fn chunks_without_a_selected_row_are_never_hauled() {
    run(async {
        let mut staging = fresh().await;
        put(&mut staging, VERSION, 2, &[1, 2]).await;
        put(&mut staging, VERSION, 3, &[3]).await;
        put(&mut staging, VERSION, 6, &[4]).await;
        end_rows(&mut staging, TABLE, &[(1, 2), (2, 2)], 4).await.unwrap();
        // All of its rows have ended, or it was inserted later.
        damage(&mut staging, 2).await;
        damage(&mut staging, 6).await;
        assert_eq!(visible(&staging, VERSION, 5).await, vec![(3, 3)]);
    });
}

#[test]
fn a_flush_removes_whole_chunks_from_their_locators_alone() {
    run(async {
        let store = MemoryStore::new();
        let directories = Arc::new(Directories::default());
        let mut staged = staging(&store);
        create_table(&mut staged, TABLE, VERSION, &columns(), true)
            .await
            .unwrap();
        for chunk in 0..200 {
            put(&mut staged, VERSION, chunk + 1, &[chunk * 2, chunk * 2 + 1]).await;
        }
        commit(&store, &staged).await;
        // Whoever judges the directory reads the chunks; from then on nobody does.
        let judged = staging(&store);
        let all = RowPredicate::default();
        moraine_inline::select(&judged, &directories.at(1), TABLE, VERSION, &all)
            .await
            .unwrap();
        let mut flush = staging(&store);
        let before = store.reads();
        let mut written = moraine_inline::RowMultiset::default();
        written.add(&(0..=399));
        drain(&mut flush, &directories.at(1), TABLE, VERSION, 200, &written)
            .await
            .unwrap();
        let read = store.reads() - before;
        assert!((200..250).contains(&read), "{read}");
        assert!(keys::<InlineInsertKey>(&flush).await.is_empty());
        assert!(keys::<ChunkLocatorKey>(&flush).await.is_empty());
    });
}

#[test]
fn a_chunk_that_reaches_into_the_next_windows_of_a_flush_is_read_once() {
    run(async {
        let store = MemoryStore::new();
        let mut staged = staging(&store);
        create_table(&mut staged, TABLE, VERSION, &columns(), true)
            .await
            .unwrap();
        put(&mut staged, VERSION, 1, &(0..40_000).collect::<Vec<_>>()).await;
        put(&mut staged, VERSION, 2, &(40_000..40_010).collect::<Vec<_>>()).await;
        put(&mut staged, VERSION, 3, &(40_010..40_020).collect::<Vec<_>>()).await;
        commit(&store, &staged).await;
        let read = staging(&store);
        let unknown = DirectoriesAt::unknown();
        let mut found = moraine_inline::flushable_rows(&read, &unknown, TABLE, VERSION, 9)
            .await
            .unwrap();
        let before = store.reads();
        let (mut windows, mut next) = (0, 0);
        while let Some(window) = found.next_window(&read).await.unwrap() {
            for (row, value) in window.rows.iter().zip(numbers(&window.columns)) {
                assert_eq!((row.row_id, value), (next, i64::try_from(next).unwrap()));
                next += 1;
            }
            windows += 1;
        }
        assert_eq!(next, 40_020);
        assert!(windows >= 4, "{windows}");
        // Three chunks; no tombstones are there to be read.
        assert_eq!(store.reads() - before, 3);
    });
}

#[test]
fn dropping_the_table_of_deletions_from_files_takes_them_and_its_name() {
    run(async {
        let mut staging = fresh().await;
        create_file_delete_table(&mut staging, TABLE).await.unwrap();
        insert_file_deletes(&mut staging, TABLE, &[(70, 1, 6), (71, 0, 6)])
            .await
            .unwrap();
        put(&mut staging, VERSION, 2, &[1]).await;
        drop_file_delete_table(&mut staging, TABLE).await.unwrap();
        assert!(!file_delete_table_exists(&staging, TABLE).await.unwrap());
        assert!(
            file_deletes(&staging, TABLE, 0..=u64::MAX)
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(visible(&staging, VERSION, 9).await, vec![(1, 1)]);
    });
}
