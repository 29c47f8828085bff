//! Statements of very many rows take time in proportion to them.

use std::time::{Duration, Instant};

use moraine_tables::{Relation, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, equals, row, rows};

/// Far above what proportional work takes, far below what a pass over all rows for each row would.
const BOUND: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_hundred_thousand_statistics_in_one_insert() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let stats = |n: i64| row![n / 10, 1, n % 10, 1, 1, 0, "a", "b", Null, Null];
    let started = Instant::now();
    assert_eq!(
        insert(
            &mut tx,
            Relation::FileColumnStats,
            (0..100_000).map(stats).collect()
        )
        .await
        .unwrap(),
        100_000
    );
    assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
}

#[tokio::test]
async fn ten_thousand_partition_values_of_as_many_files() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let file = |id: i64| {
        row![
            id, 1, 1, Null, Null, "p", true, "parquet", 1, 1, 1, 0, Null, Null, Null, Null
        ]
    };
    insert(&mut tx, Relation::DataFile, (0..10_000).map(file).collect())
        .await
        .unwrap();
    let started = Instant::now();
    let values = (0..10_000_i64).map(|id| row![id, 1, 0, "v"]).collect();
    insert(&mut tx, Relation::FilePartitionValue, values)
        .await
        .unwrap();
    assert_eq!(rows(&tx, Relation::FilePartitionValue).await.len(), 10_000);
    let all = addresses(&tx, Relation::DataFile, equals(1, 1)).await;
    let ends = all
        .into_iter()
        .map(|address| (address, vec![(3, Value::Int64(9))]))
        .collect();
    assert_eq!(update(&mut tx, Relation::DataFile, ends).await.unwrap(), 10_000);
    let all = addresses(&tx, Relation::DataFile, equals(1, 1)).await;
    assert_eq!(delete(&mut tx, Relation::DataFile, all).await.unwrap(), 10_000);
    assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
}

#[tokio::test]
async fn ten_thousand_tags_of_one_object_deleted_a_few_at_a_time() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let tag = |n: i64| row![1, 1, Null, n.to_string().as_str(), "v"];
    insert(&mut tx, Relation::Tag, (0..10_000).map(tag).collect())
        .await
        .unwrap();
    let started = Instant::now();
    let all = addresses(&tx, Relation::Tag, equals(0, 1)).await;
    // Addresses stay good although earlier deletions move the rows after them.
    let mut removed = 0;
    for some in all.chunks(500) {
        removed += delete(&mut tx, Relation::Tag, some.to_vec()).await.unwrap();
    }
    assert_eq!(removed, 10_000);
    assert!(rows(&tx, Relation::Tag).await.is_empty());
    assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
}
