//! Conditions on ids become key ranges, counted in records read from the store.

use moraine_store::Store;
use moraine_tables::{CompareOp, Comparison, Filter, Relation, Value};

use crate::support::{Lake, Null, and, compare, equals, row, rows_where, uuid};

const TABLES: i64 = 40;
const FILES: i64 = 25;

/// 40 tables with 25 files each, every file with statistics of two columns; the files with odd ids have ended. Nothing of it is
/// kept in memory yet.
async fn wide_lake() -> Lake {
    let lake = Lake::new().await;
    let all = || (1..=TABLES).flat_map(|table| (0..FILES).map(move |file| (table, table * 100 + file)));
    let file = |(table, id): (i64, i64)| {
        let end = if id % 2 == 0 {
            Value::Null
        } else {
            Value::Int64(1000)
        };
        row![
            id, table, 1, end, Null, "p", true, "parquet", 1, id, 1, 0, Null, Null, Null, Null
        ]
    };
    let stats =
        |(table, id): (i64, i64)| [1, 2].map(|column| row![id, table, column, 1, 1, 0, "a", "b", Null, Null]);
    let table = |id: i64| row![id, uuid(1), 1, Null, 0, "t", "t/", true];
    let column = |id: i64| {
        [1, 2].map(|c| {
            row![
                c, 1, Null, id, c, "c", "int32", Null, Null, true, Null, Null, Null
            ]
        })
    };
    lake.write([
        (Relation::Table, (1..=TABLES).map(table).collect()),
        (Relation::Column, (1..=TABLES).flat_map(column).collect()),
        (Relation::DataFile, all().map(file).collect()),
        (Relation::FileColumnStats, all().flat_map(stats).collect()),
    ])
    .await;
    lake.reopen()
}

/// How many rows pass, and how many records the store gave out for it.
async fn counted(lake: &Lake, relation: Relation, filter: Filter) -> (usize, u64) {
    let tx = lake.begin().await;
    let before = lake.store.reads();
    let rows = rows_where(&tx, relation, filter).await.len();
    (rows, lake.store.reads() - before)
}

const ALL_FILES: u64 = (TABLES * FILES).unsigned_abs();

#[tokio::test]
async fn a_table_id_reads_no_other_tables_records() {
    let lake = wide_lake().await;
    assert_eq!(
        counted(&lake, Relation::DataFile, Filter::all()).await,
        (1000, ALL_FILES)
    );
    let of_table = [
        (Relation::DataFile, 1, 25, 25),
        (Relation::FileColumnStats, 1, 50, 50),
        (Relation::Column, 3, 2, 2),
        (Relation::Table, 0, 1, 1),
        // Two columns, and the table for the tags whose column is not there.
        (Relation::ColumnTag, 0, 0, 3),
    ];
    for (relation, table_id, rows, reads) in of_table {
        assert_eq!(
            counted(&lake, relation, equals(table_id, 7)).await,
            (rows, reads),
            "{relation}"
        );
    }
    let two = Filter::only(Comparison::In {
        column: 1,
        values: vec![Value::Int64(7), Value::Int64(9), Value::Null],
    });
    assert_eq!(counted(&lake, Relation::DataFile, two).await, (50, 50));
    let range = and([compare(1, CompareOp::Ge, 7), compare(1, CompareOp::Lt, 10)]);
    assert_eq!(counted(&lake, Relation::DataFile, range).await, (75, 75));
}

#[tokio::test]
async fn impossible_ids_read_nothing() {
    let lake = wide_lake().await;
    let filters = [
        equals(1, -1),
        equals(1, Null),
        compare(1, CompareOp::Lt, 0),
        compare(1, CompareOp::Gt, i64::MAX),
        and([equals(1, 7), equals(1, 8)]),
        and([compare(1, CompareOp::Gt, 7), compare(1, CompareOp::Lt, 7)]),
        Filter::only(Comparison::IsNull { column: 1 }),
        Filter::only(Comparison::In {
            column: 1,
            values: vec![Value::Null],
        }),
        Filter::only(Comparison::In {
            column: 1,
            values: vec![],
        }),
    ];
    for filter in filters {
        assert_eq!(
            counted(&lake, Relation::DataFile, filter.clone()).await,
            (0, 0),
            "{filter:?}"
        );
    }
}

#[tokio::test]
async fn a_file_of_a_table_is_read_alone() {
    let lake = wide_lake().await;
    let file = and([equals(1, 7), equals(0, 710)]);
    assert_eq!(counted(&lake, Relation::DataFile, file.clone()).await, (1, 1));
    assert_eq!(counted(&lake, Relation::FileColumnStats, file).await, (2, 2));
}

#[tokio::test]
async fn a_live_row_is_found_without_reading_the_ended_ones() {
    let lake = wide_lake().await;
    let live = Filter::only(Comparison::IsNull { column: 3 });
    assert_eq!(counted(&lake, Relation::DataFile, live.clone()).await, (520, 520));
    let ended = Filter::only(Comparison::IsNotNull { column: 3 });
    assert_eq!(counted(&lake, Relation::DataFile, ended).await, (480, 480));
    assert_eq!(
        counted(&lake, Relation::DataFile, compare(3, CompareOp::Ge, 1000)).await,
        (480, 480)
    );
    assert_eq!(
        counted(&lake, Relation::DataFile, and([live, equals(1, 7)])).await,
        (13, 13)
    );
}

#[tokio::test]
async fn a_file_of_an_unknown_table_is_found_by_leaping_over_the_others() {
    let lake = Lake::new().await;
    let stats = |table: i64, file: i64| row![file, table, 1, 1, 1, 0, "a", "b", Null, Null];
    let all = (1..=10_i64).flat_map(|table| (0..1000).map(move |file| stats(table, table * 1000 + file)));
    lake.write([(Relation::FileColumnStats, all.collect())]).await;
    let (rows, reads) = counted(&lake, Relation::FileColumnStats, equals(0, 5_500)).await;
    assert_eq!(rows, 1);
    assert!(reads < 1000, "{reads} of 10000 records were read");
    let some = Filter::only(Comparison::In {
        column: 0,
        values: vec![Value::Int64(5_500), Value::Int64(5_507)],
    });
    let (rows, reads) = counted(&lake, Relation::FileColumnStats, some).await;
    assert_eq!(rows, 2);
    assert!(reads < 1000, "{reads} of 10000 records were read");
}

#[tokio::test]
async fn an_address_reads_its_record_alone() {
    let lake = wide_lake().await;
    let tx = lake.begin().await;
    let addresses = crate::support::addresses(&tx, Relation::DataFile, equals(1, 7)).await;
    let before = lake.store.reads();
    let filter = Filter::only(Comparison::Address(addresses[3..5].to_vec()));
    assert_eq!(rows_where(&tx, Relation::DataFile, filter).await.len(), 2);
    assert_eq!(lake.store.reads() - before, 2);
}

#[tokio::test]
async fn snapshots_are_read_by_id() {
    let lake = Lake::new().await;
    for _ in 0..20 {
        lake.write([]).await;
    }
    for relation in [Relation::Snapshot, Relation::SnapshotChanges] {
        assert_eq!(counted(&lake, relation, equals(0, 17)).await, (1, 1));
        assert_eq!(
            counted(&lake, relation, compare(0, CompareOp::Gt, 17)).await,
            (3, 3)
        );
    }
}

#[tokio::test]
async fn a_batch_reads_no_further_than_its_rows() {
    let lake = wide_lake().await;
    let tx = lake.begin().await;
    let before = lake.store.reads();
    let mut scan = moraine_tables::scan(&tx, Relation::FileColumnStats, &[0], &Filter::all())
        .await
        .unwrap();
    assert_eq!(
        scan.next_batch().await.unwrap().unwrap().len(),
        moraine_tables::SCAN_BATCH_ROWS
    );
    assert!(lake.store.reads() - before <= moraine_tables::SCAN_BATCH_ROWS as u64 + 1);
}

#[tokio::test]
async fn statistics_of_one_column_are_all_found_in_the_store_and_in_the_transaction() {
    let lake = wide_lake().await;
    let of_column = || and([equals(1, 7), equals(2, 2)]);
    assert_eq!(
        counted(&lake, Relation::FileColumnStats, of_column()).await,
        (25, 50)
    );
    let mut tx = lake.begin_snapshot().await;
    let stats = |column: i64| row![799, 7, column, 1, 1, 0, "a", "b", Null, Null];
    moraine_tables::insert(&mut tx, Relation::FileColumnStats, vec![stats(1), stats(2)])
        .await
        .unwrap();
    assert_eq!(
        rows_where(&tx, Relation::FileColumnStats, of_column())
            .await
            .len(),
        26
    );
}
