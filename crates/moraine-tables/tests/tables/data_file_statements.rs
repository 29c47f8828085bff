//! What DuckLake's compactions and expiries do to files, statement by statement.

use moraine_tables::{CompareOp, Comparison, Filter, Relation, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, and, compare, equals, row, rows_where};

fn file(id: i64, begin: i64) -> Vec<Value> {
    row![
        id, 7, begin, Null, Null, "p", true, "parquet", 10, 100, 20, 0, 12, Null, Null, Null
    ]
}

fn stats(id: i64) -> Vec<Value> {
    row![id, 7, 1, 80, 10, 0, "1", "10", Null, Null]
}

async fn lake() -> Lake {
    let lake = Lake::new().await;
    lake.write([
        (Relation::DataFile, vec![file(1, 1), file(2, 1)]),
        (
            Relation::FilePartitionValue,
            vec![row![1, 7, 0, "a"], row![2, 7, 0, "a"]],
        ),
        (Relation::FileColumnStats, vec![stats(1), stats(2)]),
        (
            Relation::DeleteFile,
            vec![row![3, 7, 1, Null, 1, "d", true, "parquet", 1, 1, 1, Null, Null]],
        ),
    ])
    .await;
    lake
}

fn among(ids: &[i64]) -> Filter {
    Filter::only(Comparison::In {
        column: 0,
        values: ids.iter().map(|id| Value::Int64(*id)).collect(),
    })
}

#[tokio::test]
async fn a_rewrite_ends_the_source_and_moves_the_begin_of_the_new_file() {
    let lake = lake().await;
    let mut tx = lake.begin_snapshot().await;
    insert(&mut tx, Relation::DataFile, vec![file(5, 1)])
        .await
        .unwrap();
    insert(&mut tx, Relation::FilePartitionValue, vec![row![5, 7, 0, "a"]])
        .await
        .unwrap();
    for (relation, id, column, value) in [
        (Relation::DataFile, 1, 3, 2),
        (Relation::DeleteFile, 3, 3, 2),
        (Relation::DataFile, 5, 2, 2),
    ] {
        let found = addresses(&tx, relation, equals(0, id)).await;
        let edits = found
            .into_iter()
            .map(|address| (address, vec![(column, Value::Int64(value))]))
            .collect();
        assert_eq!(update(&mut tx, relation, edits).await.unwrap(), 1);
    }
    tx.commit().await.unwrap();
    let tx = lake.begin().await;
    let live = Filter::only(Comparison::IsNull { column: 3 });
    assert_eq!(
        rows_where(&tx, Relation::DataFile, live).await,
        vec![file(2, 1), file(5, 2)]
    );
    let mut ended = file(1, 1);
    ended[3] = Value::Int64(2);
    assert_eq!(
        rows_where(&tx, Relation::DataFile, compare(3, CompareOp::Ge, 2)).await,
        vec![ended]
    );
    let values = rows_where(&tx, Relation::FilePartitionValue, equals(3, "a")).await;
    assert_eq!(
        values,
        vec![row![1, 7, 0, "a"], row![2, 7, 0, "a"], row![5, 7, 0, "a"]]
    );
}

#[tokio::test]
async fn a_merge_deletes_its_sources_by_id_alone_parents_before_children_or_after() {
    let family = [
        Relation::DataFile,
        Relation::FileColumnStats,
        Relation::FileVariantStats,
        Relation::FilePartitionValue,
    ];
    for reverse in [false, true] {
        let lake = lake().await;
        let mut tx = lake.begin_snapshot().await;
        let mut order = family;
        if reverse {
            order.reverse();
        }
        for relation in order {
            let found = addresses(&tx, relation, among(&[1, 2])).await;
            delete(&mut tx, relation, found).await.unwrap();
        }
        let scheduled = vec![
            row![1, "p", true, Value::TimestampTz(5)],
            row![2, "p", true, Value::TimestampTz(5)],
        ];
        insert(&mut tx, Relation::FilesScheduledForDeletion, scheduled)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        for relation in family {
            assert!(lake.rows(relation).await.is_empty(), "{relation}");
        }
        let old = compare(3, CompareOp::Lt, Value::TimestampTz(6));
        let tx = lake.begin().await;
        assert_eq!(
            rows_where(&tx, Relation::FilesScheduledForDeletion, old)
                .await
                .len(),
            2
        );
    }
}

#[tokio::test]
async fn statistics_of_a_table_are_overwritten_in_place() {
    let lake = Lake::new().await;
    lake.write([(Relation::TableStats, vec![row![7, 1, 1, 1], row![8, 2, 2, 2]])])
        .await;
    let mut tx = lake.begin_snapshot().await;
    let found = addresses(&tx, Relation::TableStats, equals(0, 7)).await;
    let set = vec![
        (1, Value::Int64(26)),
        (3, Value::Int64(99)),
        (2, Value::Int64(30)),
    ];
    update(&mut tx, Relation::TableStats, vec![(found[0].clone(), set)])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        lake.rows(Relation::TableStats).await,
        vec![row![7, 26, 30, 99], row![8, 2, 2, 2]]
    );
}

#[tokio::test]
async fn files_are_found_by_size_and_partition() {
    let lake = lake().await;
    let tx = lake.begin().await;
    let small = and([
        equals(1, 7),
        compare(9, CompareOp::Ge, 1),
        compare(9, CompareOp::Lt, 101),
    ]);
    assert_eq!(rows_where(&tx, Relation::DataFile, small).await.len(), 2);
    let partition = and([equals(1, 7), equals(2, 0), equals(3, "a")]);
    assert_eq!(
        rows_where(&tx, Relation::FilePartitionValue, partition)
            .await
            .len(),
        2
    );
    assert!(
        rows_where(&tx, Relation::FilePartitionValue, equals(3, "A"))
            .await
            .is_empty()
    );
}
