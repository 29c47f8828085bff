//! The inlined tables: created, registered, filled, read at snapshots, ended, drained, dropped.

use moraine_commit::CatalogTransaction;
use moraine_store::Store;
use moraine_tables::{
    Column, ColumnType, CompareOp, Comparison, Filter, Relation, Value, create, delete, describe, drop,
    insert, list, scan, update,
};

use crate::support::{
    Lake, Null, addressed, addresses, and, compare, equals, refusal, row, rows, rows_where, uuid,
};

const DATA: Relation = Relation::InlinedData {
    table_id: 7,
    schema_version: 1,
};
const DELETES: Relation = Relation::InlinedDelete { table_id: 7 };

fn user_columns() -> Vec<Column> {
    vec![
        Column::new("id", ColumnType::Int32),
        Column::new("name", ColumnType::Bytes),
    ]
}

fn record(row_id: i64, begin: i64, id: i32, name: Option<&'static str>) -> Vec<Value> {
    let name = name.map_or(Value::Null, |name| Value::Bytes(name.as_bytes().into()));
    row![row_id, begin, Null, Value::Int32(id), name]
}

/// A table with one column of each, registered and created as DuckLake does it: the registration first.
async fn create_table(tx: &mut CatalogTransaction) {
    insert(
        tx,
        Relation::Table,
        vec![row![7, uuid(7), 1, Null, 0, "t", "t/", true]],
    )
    .await
    .unwrap();
    let column = |id: i64, name: &str, data_type: &str| {
        row![
            id, 1, Null, 7, id, name, data_type, Null, Null, true, Null, Null, Null
        ]
    };
    insert(
        tx,
        Relation::Column,
        vec![column(1, "id", "int32"), column(2, "name", "varchar")],
    )
    .await
    .unwrap();
    insert(
        tx,
        Relation::InlinedDataTables,
        vec![row![7, DATA.name().as_str(), 1]],
    )
    .await
    .unwrap();
    create(tx, DATA, Some(user_columns())).await.unwrap();
}

async fn lake() -> Lake {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    create_table(&mut tx).await;
    let inserted = vec![
        record(2, 1, 30, None),
        record(0, 1, 10, Some("a")),
        record(1, 1, 20, Some("ü \0 b")),
    ];
    assert_eq!(insert(&mut tx, DATA, inserted).await.unwrap(), 3);
    tx.commit().await.unwrap();
    lake
}

async fn end(tx: &mut CatalogTransaction, filter: Filter, snapshot: i64) -> u64 {
    let found = addresses(tx, DATA, filter).await;
    let edits = found
        .into_iter()
        .map(|address| (address, vec![(2, Value::Int64(snapshot))]))
        .collect();
    update(tx, DATA, edits).await.unwrap()
}

#[tokio::test]
async fn a_table_exists_and_is_listed_from_its_registration_on() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    assert_eq!(describe(&tx, DATA).await.unwrap(), None);
    create_table(&mut tx).await;
    let listed = vec![row![7, "ducklake_inlined_data_7_1", 1]];
    assert_eq!(rows(&tx, Relation::InlinedDataTables).await, listed);
    tx.commit().await.unwrap();
    let tx = lake.reopen().begin().await;
    assert_eq!(
        rows_where(&tx, Relation::InlinedDataTables, equals(0, 7)).await,
        listed
    );
    let schema = describe(&tx, DATA).await.unwrap().unwrap();
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["row_id", "begin_snapshot", "end_snapshot", "id", "name"]);
    assert_eq!(schema.columns[3..], user_columns());
    assert!(
        list(&tx)
            .await
            .unwrap()
            .iter()
            .any(|(relation, _)| *relation == DATA)
    );
    assert!(rows(&tx, DATA).await.is_empty());
}

#[tokio::test]
async fn rows_come_by_row_id_and_keep_their_values() {
    let lake = lake().await;
    let expected = vec![
        record(0, 1, 10, Some("a")),
        record(1, 1, 20, Some("ü \0 b")),
        record(2, 1, 30, None),
    ];
    assert_eq!(lake.rows(DATA).await, expected);
    assert_eq!(lake.reopen().rows(DATA).await, expected);
}

#[tokio::test]
async fn an_update_ends_the_old_version_and_inserts_a_new_one() {
    let lake = lake().await;
    let mut tx = lake.begin_snapshot().await;
    insert(&mut tx, DATA, vec![record(1, 2, 21, Some("new"))])
        .await
        .unwrap();
    let old = and([
        equals(0, 1),
        Filter::only(Comparison::IsNull { column: 2 }),
        compare(1, CompareOp::Ne, 2),
    ]);
    assert_eq!(end(&mut tx, old, 2).await, 1);
    tx.commit().await.unwrap();
    let tx = lake.begin().await;
    let mut ended = record(1, 1, 20, Some("ü \0 b"));
    ended[2] = Value::Int64(2);
    let all = vec![
        record(0, 1, 10, Some("a")),
        ended.clone(),
        record(1, 2, 21, Some("new")),
        record(2, 1, 30, None),
    ];
    assert_eq!(rows(&tx, DATA).await, all);
    assert_eq!(
        rows_where(&tx, DATA, compare(2, CompareOp::Ge, 2)).await,
        vec![ended]
    );
    assert_eq!(rows_where(&tx, DATA, compare(1, CompareOp::Le, 1)).await.len(), 3);
    assert_eq!(
        rows_where(&tx, DATA, Filter::only(Comparison::IsNull { column: 2 }))
            .await
            .len(),
        3
    );
}

#[tokio::test]
async fn conditions_on_user_columns_and_any_projection_work() {
    let lake = lake().await;
    let tx = lake.begin().await;
    let twenty = equals(3, Value::Int32(20));
    let found = scan(&tx, DATA, &[4, 0], &twenty)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].values, row![Value::Bytes("ü \0 b".as_bytes().into()), 1]);
    let null = Filter::only(Comparison::IsNull { column: 4 });
    assert_eq!(rows_where(&tx, DATA, null).await, vec![record(2, 1, 30, None)]);
    let count = scan(&tx, DATA, &[], &Filter::all())
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(count.len(), 3);
}

#[tokio::test]
async fn deleting_drains_exactly_the_rows_named() {
    let lake = lake().await;
    let mut tx = lake.begin().await;
    insert(&mut tx, DATA, vec![record(3, 2, 40, None)]).await.unwrap();
    let drained = addresses(&tx, DATA, compare(1, CompareOp::Le, 1)).await;
    assert_eq!(delete(&mut tx, DATA, drained.clone()).await.unwrap(), 3);
    assert_eq!(delete(&mut tx, DATA, drained).await.unwrap(), 0);
    assert_eq!(rows(&tx, DATA).await, vec![record(3, 2, 40, None)]);
    tx.commit().await.unwrap();
    assert_eq!(lake.reopen().rows(DATA).await, vec![record(3, 2, 40, None)]);
}

#[tokio::test]
async fn one_row_deleted_by_address_leaves_its_neighbours() {
    let lake = lake().await;
    let mut tx = lake.begin().await;
    let found = addressed(&tx, DATA, equals(0, 1)).await;
    assert_eq!(delete(&mut tx, DATA, vec![found[0].0.clone()]).await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(
        lake.rows(DATA).await,
        vec![record(0, 1, 10, Some("a")), record(2, 1, 30, None)]
    );
}

#[tokio::test]
async fn only_the_end_of_a_row_can_be_set() {
    let lake = lake().await;
    let mut tx = lake.begin_snapshot().await;
    let found = addresses(&tx, DATA, equals(0, 1)).await;
    let edit = |column: usize, value: Value| vec![(found[0].clone(), vec![(column, value)])];
    let (variant, text) = refusal(update(&mut tx, DATA, edit(3, Value::Int32(1))).await);
    assert_eq!(variant, "Unsupported");
    assert!(text.contains("not id"), "{text}");
    assert_eq!(
        refusal(update(&mut tx, DATA, edit(2, Value::Null)).await).0,
        "Unsupported"
    );
    assert_eq!(
        refusal(update(&mut tx, DATA, edit(2, Value::Int64(-1))).await).0,
        "OutOfRange"
    );
    let mut ended = record(9, 2, 1, None);
    ended[2] = Value::Int64(3);
    assert_eq!(refusal(insert(&mut tx, DATA, vec![ended]).await).0, "Unsupported");
    let mut unnamed = record(9, 2, 1, None);
    unnamed[0] = Value::Null;
    assert_eq!(refusal(insert(&mut tx, DATA, vec![unnamed]).await).0, "NotNull");
    assert_eq!(
        refusal(insert(&mut tx, DATA, vec![record(0, 1, 1, None)]).await).0,
        "Stage"
    );
    assert_eq!(rows(&tx, DATA).await.len(), 3);
}

#[tokio::test]
async fn a_deregistered_table_is_not_listed_but_binds_empty() {
    let lake = lake().await;
    let mut tx = lake.begin().await;
    let listed = addresses(&tx, Relation::InlinedDataTables, equals(0, 7)).await;
    assert_eq!(
        delete(&mut tx, Relation::InlinedDataTables, listed)
            .await
            .unwrap(),
        1
    );
    assert!(drop(&mut tx, DATA).await.unwrap());
    assert!(rows(&tx, Relation::InlinedDataTables).await.is_empty());
    assert!(rows(&tx, DATA).await.is_empty());
    tx.commit().await.unwrap();
    let mut tx = lake.begin().await;
    assert!(describe(&tx, DATA).await.unwrap().is_some());
    assert!(
        !drop(
            &mut tx,
            Relation::InlinedData {
                table_id: 7,
                schema_version: 99
            }
        )
        .await
        .unwrap()
    );
}

#[tokio::test]
async fn registrations_name_their_table_once() {
    let lake = lake().await;
    let mut tx = lake.begin_snapshot().await;
    let register = |name: &str, version: i64| vec![row![7, name, version]];
    let outcome = insert(
        &mut tx,
        Relation::InlinedDataTables,
        register("ducklake_inlined_data_7_1", 1),
    )
    .await;
    assert_eq!(refusal(outcome).0, "Duplicate");
    let outcome = insert(&mut tx, Relation::InlinedDataTables, register("other", 2)).await;
    let (variant, text) = refusal(outcome);
    assert_eq!(variant, "Constraint");
    assert!(text.contains("ducklake_inlined_data_7_2"), "{text}");
    insert(
        &mut tx,
        Relation::InlinedDataTables,
        register("ducklake_inlined_data_7_2", 2),
    )
    .await
    .unwrap();
    let found = addresses(&tx, Relation::InlinedDataTables, equals(2, 2)).await;
    assert_eq!(
        delete(&mut tx, Relation::InlinedDataTables, found).await.unwrap(),
        1
    );
}

#[tokio::test]
async fn creating_takes_the_system_columns_or_leaves_them_out_and_refuses_nonsense() {
    let lake = lake().await;
    let mut tx = lake.begin_snapshot().await;
    let other = Relation::InlinedData {
        table_id: 7,
        schema_version: 2,
    };
    let bigint = |name: &str| Column::new(name, ColumnType::Int64);
    let mut with_system = vec![bigint("row_id"), bigint("begin_snapshot"), bigint("end_snapshot")];
    let bare = create(&mut tx, other, Some(with_system.clone()))
        .await
        .unwrap_err();
    assert!(bare.to_string().contains("at least one column"), "{bare}");
    with_system.extend(user_columns());
    create(&mut tx, other, Some(with_system)).await.unwrap();
    assert_eq!(
        describe(&tx, other).await.unwrap(),
        describe(&tx, DATA).await.unwrap()
    );
    assert!(
        create(&mut tx, other, Some(user_columns()))
            .await
            .unwrap_err()
            .to_string()
            .contains("already exists")
    );
    let third = Relation::InlinedData {
        table_id: 7,
        schema_version: 3,
    };
    assert!(create(&mut tx, third, None).await.is_err());
    assert!(
        create(&mut tx, third, Some(vec![bigint("id"), bigint("row_id")]))
            .await
            .is_err()
    );
    assert!(
        insert(&mut tx, third, vec![])
            .await
            .unwrap_err()
            .to_string()
            .contains("does not exist")
    );
}

#[tokio::test]
async fn deletions_from_files_are_kept_read_by_file_and_removed() {
    let lake = lake().await;
    let mut tx = lake.begin_snapshot().await;
    assert_eq!(describe(&tx, DELETES).await.unwrap(), None);
    create(&mut tx, DELETES, None).await.unwrap();
    let schema = describe(&tx, DELETES).await.unwrap().unwrap();
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["file_id", "row_id", "begin_snapshot"]);
    let deleted = vec![row![5, 9, 2], row![5, 1, 2], row![3, 4, 2]];
    insert(&mut tx, DELETES, deleted).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = lake.begin().await;
    assert_eq!(
        rows(&tx, DELETES).await,
        vec![row![3, 4, 2], row![5, 1, 2], row![5, 9, 2]]
    );
    let before = lake.store.reads();
    let some = Filter::only(Comparison::In {
        column: 0,
        values: vec![Value::Int64(3), Value::Int64(4)],
    });
    assert_eq!(
        rows_where(&tx, DELETES, and([some, compare(2, CompareOp::Le, 2)])).await,
        vec![row![3, 4, 2]]
    );
    assert!(
        lake.store.reads() - before <= 3,
        "the marker, and the deletions of files 3 and 4"
    );
    let found = addresses(&tx, DELETES, equals(1, 1)).await;
    let edit = vec![(found[0].clone(), vec![(2, Value::Int64(3))])];
    assert_eq!(refusal(update(&mut tx, DELETES, edit).await).0, "Unsupported");
    assert_eq!(delete(&mut tx, DELETES, found.clone()).await.unwrap(), 1);
    assert_eq!(delete(&mut tx, DELETES, found).await.unwrap(), 0);
    assert_eq!(
        refusal(insert(&mut tx, DELETES, vec![row![Null, 1, 1]]).await).0,
        "NotNull"
    );
    tx.commit().await.unwrap();
    let mut tx = lake.begin().await;
    assert_eq!(rows(&tx, DELETES).await, vec![row![3, 4, 2], row![5, 9, 2]]);
    assert!(drop(&mut tx, DELETES).await.unwrap());
    assert_eq!(describe(&tx, DELETES).await.unwrap(), None);
    assert!(!drop(&mut tx, DELETES).await.unwrap());
}

#[tokio::test]
async fn many_rows_are_read_window_by_window_in_order() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    create_table(&mut tx).await;
    let all: Vec<Vec<Value>> = (0..5000_i32)
        .map(|n| record(i64::from(n), 1, n, Some("x")))
        .collect();
    insert(&mut tx, DATA, all.iter().rev().cloned().collect())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let tx = lake.begin().await;
    let mut scan = scan(&tx, DATA, &[0, 3], &Filter::all()).await.unwrap();
    let mut next = 0;
    while let Some(batch) = scan.next_batch().await.unwrap() {
        assert!(batch.len() <= moraine_tables::SCAN_BATCH_ROWS);
        for row in batch {
            assert_eq!(row.values, row![i64::from(next), Value::Int32(next)]);
            next += 1;
        }
    }
    assert_eq!(next, 5000);
}

#[tokio::test]
async fn ending_one_row_reads_no_more_the_more_chunks_there_are() {
    let mut counts = Vec::new();
    for chunks in [100, 10_000] {
        let lake = Lake::new().await;
        let mut tx = lake.begin_snapshot().await;
        create_table(&mut tx).await;
        // Every second row id: a chunk for each row.
        let scattered = (0..chunks).map(|row| record(row * 2, 1, 0, None)).collect();
        insert(&mut tx, DATA, scattered).await.unwrap();
        tx.commit().await.unwrap();
        // Whoever reads first finds out that the directory is complete.
        assert_eq!(
            rows(&lake.begin().await, DATA).await.len(),
            usize::try_from(chunks).unwrap()
        );
        let before = lake.store.reads();
        let mut tx = lake.begin_snapshot().await;
        assert_eq!(end(&mut tx, equals(0, chunks), 2).await, 1);
        tx.commit().await.unwrap();
        counts.push(lake.store.reads() - before);
    }
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0] < 60, "{counts:?}");
}
