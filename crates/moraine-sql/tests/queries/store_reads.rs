//! Conditions on ids become key ranges behind DataFusion too, in joins as well.

use moraine_store::Store;
use moraine_tables::{Relation, Value};

use crate::support::{Lake, answer};

const TABLES: i64 = 40;
const FILES: i64 = 25;

async fn wide_lake() -> Lake {
    let lake = Lake::empty().await;
    let int = Value::Int64;
    let null = || Value::Null;
    let table = |id: i64| {
        let uuid = Value::Uuid([1; 16]);
        let relative = Value::Bool(true);
        vec![
            int(id),
            uuid,
            int(1),
            null(),
            int(0),
            Value::text("t"),
            Value::text("t/"),
            relative,
        ]
    };
    let file = |id: i64, table: i64| {
        let mut row = vec![
            int(id),
            int(table),
            int(1),
            null(),
            null(),
            Value::text("p"),
            Value::Bool(true),
        ];
        row.extend([
            Value::text("parquet"),
            int(1),
            int(id),
            int(1),
            int(0),
            null(),
            null(),
            null(),
            null(),
        ]);
        row
    };
    lake.write(vec![
        (Relation::Table, (1..=TABLES).map(table).collect()),
        (
            Relation::DataFile,
            (1..=TABLES)
                .flat_map(|table| (0..FILES).map(move |at| (table * 100 + at, table)))
                .map(|(id, table)| file(id, table))
                .collect(),
        ),
    ])
    .await;
    lake
}

async fn counted(lake: &Lake, text: &str) -> (usize, u64) {
    let tx = lake.begin().await;
    let before = lake.store.reads();
    let rows = answer(&tx, text, &[], &[]).await.unwrap().len();
    (rows, lake.store.reads() - before)
}

#[tokio::test]
async fn a_condition_on_one_side_of_a_join_confines_both() {
    let lake = wide_lake().await;
    let (rows, reads) = counted(
        &lake,
        "SELECT f.path FROM ducklake_table t JOIN ducklake_data_file f ON f.table_id = t.table_id WHERE t.table_id = 7",
    )
    .await;
    assert_eq!(rows, 25);
    assert!(reads < 100, "{reads} records were read");
    let (rows, reads) = counted(
        &lake,
        "SELECT f.path FROM ducklake_table t JOIN ducklake_data_file f USING (table_id) WHERE table_id = '7'",
    )
    .await;
    assert_eq!(rows, 25);
    assert!(reads < 100, "{reads} records were read");
}

#[tokio::test]
async fn a_subquery_is_confined_by_its_own_condition() {
    let lake = wide_lake().await;
    let (rows, reads) = counted(
        &lake,
        "SELECT count(*) FROM (SELECT * FROM ducklake_data_file) f WHERE f.table_id IN (3, 4) AND f.data_file_id < 310",
    )
    .await;
    assert_eq!(rows, 1);
    assert!(reads < 120, "{reads} records were read");
}

#[tokio::test]
async fn a_whole_relation_is_read_once() {
    let lake = wide_lake().await;
    let (rows, reads) = counted(&lake, "SELECT lower(path) FROM ducklake_data_file").await;
    assert_eq!(rows, 1000);
    assert!((1000..1100).contains(&reads), "{reads} records were read");
}

#[tokio::test]
async fn rows_come_while_the_scan_goes_on() {
    let lake = wide_lake().await;
    let (rows, reads) = counted(&lake, "SELECT upper(path) FROM ducklake_data_file LIMIT 3").await;
    assert_eq!(rows, 3);
    assert!(reads <= 1100, "{reads} records were read");
}

#[tokio::test]
async fn a_subquery_that_is_run_for_each_row_is_confined_by_the_row() {
    let lake = wide_lake().await;
    let (rows, reads) = counted(
        &lake,
        "SELECT (SELECT f.path FROM ducklake_data_file f WHERE f.table_id = t.table_id AND f.data_file_id > t.table_id \
         ORDER BY f.data_file_id LIMIT 1 OFFSET 2) FROM ducklake_table t WHERE t.table_id < 3",
    )
    .await;
    assert_eq!(rows, 2);
    assert!(reads < 150, "{reads} records were read");
}

#[tokio::test]
async fn what_no_row_confines_is_read_once_for_all_of_them() {
    let lake = wide_lake().await;
    let (rows, reads) = counted(
        &lake,
        "SELECT d.data_file_id, (SELECT count(*) FROM ducklake_data_file f WHERE f.file_size_bytes + 0 < d.file_size_bytes), \
         EXISTS (SELECT 1 FROM ducklake_data_file f JOIN ducklake_table t USING (table_id) WHERE t.table_id + f.data_file_id < d.data_file_id) \
         FROM ducklake_data_file d WHERE d.table_id < 5",
    )
    .await;
    assert_eq!(rows, 100);
    assert!((2000..2700).contains(&reads), "{reads} records were read");
}
