//! Each of the 28 relations: insert, read back, reopen, read back, update, delete.

use moraine_tables::{Filter, Relation, Value, delete, insert, update};

use crate::support::{Lake, Null, addresses, row, rows, uuid};

/// Rows of every relation that is inserted like any other, parents before what belongs to them.
fn samples() -> Samples {
    let mut samples = entity_samples();
    samples.extend(macro_and_tag_samples());
    samples.extend(file_samples());
    samples.extend(file_detail_samples());
    samples.extend(detail_samples());
    samples
}

type Samples = Vec<(Relation, Vec<Vec<Value>>)>;

fn entity_samples() -> Samples {
    vec![
        (
            Relation::Schema,
            vec![row![5, uuid(5), 1, Null, "s \"q\" ü", "s/", true]],
        ),
        (
            Relation::Table,
            vec![
                row![7, uuid(7), 1, Null, 0, "orders", "orders/", true],
                row![8, uuid(8), 1, Null, 5, "Orders", "/abs/path", false],
            ],
        ),
        (
            Relation::View,
            vec![
                row![9, uuid(9), 1, Null, 0, "v", "duckdb", "SELECT 'a''b'", "[\"x\"]"],
                row![10, uuid(10), 1, Null, 0, "w", "duckdb", "SELECT 1", Null],
            ],
        ),
        (
            Relation::Column,
            vec![
                row![
                    1, 1, Null, 7, 1, "id", "int64", Null, "42", false, Null, "literal", "duckdb"
                ],
                row![
                    2, 1, Null, 7, 2, "s", "struct", Null, Null, true, Null, Null, Null
                ],
                row![
                    3,
                    1,
                    Null,
                    7,
                    1,
                    "f",
                    "varchar",
                    "",
                    "",
                    true,
                    2,
                    "expression",
                    Null
                ],
            ],
        ),
    ]
}

fn macro_and_tag_samples() -> Samples {
    vec![
        (Relation::Macro, vec![row![0, 11, "m", 1, Null]]),
        (
            Relation::MacroImpl,
            vec![
                row![11, 0, "duckdb", "a + b", "scalar"],
                row![11, 1, "duckdb", "a", "scalar"],
            ],
        ),
        (
            Relation::MacroParameters,
            vec![
                row![11, 0, 0, "a", "unknown", Null, "unknown"],
                row![11, 0, 1, "b", "int32", "5", "literal"],
                row![11, 1, 0, "a", "unknown", Null, "unknown"],
            ],
        ),
        (
            Relation::Tag,
            vec![
                row![7, 1, Null, "comment", "first"],
                row![7, 1, Null, "other", ""],
                row![9, 1, 2, "comment", "v"],
            ],
        ),
        (
            Relation::ColumnTag,
            vec![
                row![7, 1, 1, Null, "comment", "the id"],
                row![7, 3, 1, 2, "x", "y"],
            ],
        ),
    ]
}

fn file_samples() -> Samples {
    vec![
        (
            Relation::DataFile,
            vec![
                row![
                    1,
                    7,
                    1,
                    Null,
                    0,
                    "a.parquet",
                    true,
                    "parquet",
                    10,
                    100,
                    20,
                    0,
                    12,
                    "a2V5",
                    3,
                    1
                ],
                row![
                    2,
                    7,
                    1,
                    Null,
                    Null,
                    "b.parquet",
                    true,
                    "parquet",
                    10,
                    100,
                    Null,
                    Null,
                    Null,
                    Null,
                    Null,
                    Null
                ],
            ],
        ),
        (
            Relation::FilePartitionValue,
            vec![row![1, 7, 0, "2024"], row![1, 7, 1, Null], row![2, 7, 0, ""]],
        ),
    ]
}

fn file_detail_samples() -> Samples {
    vec![
        (
            Relation::DeleteFile,
            vec![
                row![
                    4,
                    7,
                    1,
                    Null,
                    1,
                    "d.parquet",
                    true,
                    "parquet",
                    3,
                    50,
                    10,
                    "a2V5",
                    Null
                ],
                row![5, 7, 1, 3, 2, "e.puffin", false, "puffin", 3, 50, 10, Null, 1],
            ],
        ),
        (
            Relation::FileColumnStats,
            vec![
                row![1, 7, 1, 80, 10, 0, "1", "10", Null, Null],
                row![1, 7, 3, Null, Null, Null, Null, Null, true, "{}"],
                row![2, 7, 1, 80, 10, 10, "", "", false, Null],
            ],
        ),
        (
            Relation::FileVariantStats,
            vec![
                row![1, 7, 3, "a.b", "int64", 8, 1, 0, "1", "1", false, Null],
                row![1, 7, 3, "a.c", "varchar", Null, Null, Null, Null, Null, Null, "x"],
            ],
        ),
        (
            Relation::FilesScheduledForDeletion,
            vec![
                row![90, "old.parquet", true, Value::TimestampTz(-1)],
                row![91, "/x", false, Value::TimestampTz(7)],
            ],
        ),
        (Relation::ColumnMapping, vec![row![3, 7, "map_by_name"]]),
        (
            Relation::NameMapping,
            vec![row![3, 0, "id", 1, Null, false], row![3, 1, "f", 3, 0, true]],
        ),
    ]
}

fn detail_samples() -> Samples {
    vec![
        (Relation::TableStats, vec![row![7, 20, 20, 200], row![8, 0, 0, 0]]),
        (
            Relation::TableColumnStats,
            vec![
                row![7, 1, false, false, "1", "10", Null],
                row![7, 3, Null, Null, Null, Null, "{}"],
            ],
        ),
        (
            Relation::PartitionInfo,
            vec![row![12, 7, 1, Null], row![13, 8, 1, 2]],
        ),
        (
            Relation::PartitionColumn,
            vec![
                row![12, 7, 0, 1, "identity"],
                row![12, 7, 1, 3, "bucket(8)"],
                row![13, 8, 0, 1, "year"],
            ],
        ),
        (Relation::SortInfo, vec![row![14, 7, 1, Null]]),
        (
            Relation::SortExpression,
            vec![
                row![14, 7, 0, "id", "duckdb", "ASC", "NULLS_LAST"],
                row![14, 7, 1, "f", "duckdb", "DESC", "NULLS_FIRST"],
            ],
        ),
        (Relation::SchemaVersions, vec![row![1, 1, 7], row![1, 1, 8]]),
        (
            Relation::Metadata,
            vec![
                row!["target_file_size", "1MB", "schema", 5],
                row!["compression", "zstd", "table", 7],
            ],
        ),
    ]
}

/// The sample rows among the rows read, in the order read.
fn only_samples(read: Vec<Vec<Value>>, samples: &[Vec<Value>]) -> Vec<Vec<Value>> {
    read.into_iter().filter(|found| samples.contains(found)).collect()
}

#[tokio::test]
async fn rows_read_back_as_inserted_in_the_transaction_after_it_and_after_reopening() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    for (relation, rows) in samples() {
        let count = insert(&mut tx, relation, rows.clone()).await.unwrap();
        assert_eq!(count, rows.len() as u64, "{relation}");
    }
    for (relation, expected) in samples() {
        assert_eq!(
            only_samples(rows(&tx, relation).await, &expected),
            expected,
            "{relation} in the transaction"
        );
    }
    tx.commit().await.unwrap();
    for (relation, expected) in samples() {
        assert_eq!(
            only_samples(lake.rows(relation).await, &expected),
            expected,
            "{relation} after commit"
        );
        assert_eq!(
            only_samples(lake.reopen().rows(relation).await, &expected),
            expected,
            "{relation} reopened"
        );
    }
}

/// A column of each relation to change, and its new value.
fn edits() -> Vec<(Relation, usize, Value)> {
    vec![
        (Relation::Schema, 4, Value::text("renamed")),
        (Relation::Table, 3, Value::Int64(2)),
        (Relation::View, 8, Value::text("[]")),
        (Relation::Column, 8, Value::Null),
        (Relation::Macro, 4, Value::Int64(2)),
        (Relation::MacroImpl, 3, Value::text("b + a")),
        (Relation::MacroParameters, 5, Value::text("9")),
        (Relation::Tag, 2, Value::Int64(2)),
        (Relation::ColumnTag, 3, Value::Int64(2)),
        (Relation::DataFile, 3, Value::Int64(2)),
        (Relation::FilePartitionValue, 3, Value::text("2025")),
        (Relation::DeleteFile, 3, Value::Int64(2)),
        (Relation::FileColumnStats, 5, Value::Null),
        (Relation::FileVariantStats, 8, Value::text("0")),
        (Relation::FilesScheduledForDeletion, 3, Value::TimestampTz(99)),
        (Relation::TableStats, 1, Value::Int64(21)),
        (Relation::TableColumnStats, 4, Value::text("0")),
        (Relation::PartitionInfo, 3, Value::Int64(2)),
        (Relation::PartitionColumn, 4, Value::text("month")),
        (Relation::SortInfo, 3, Value::Int64(2)),
        (Relation::SortExpression, 5, Value::text("DESC")),
        (Relation::SchemaVersions, 1, Value::Int64(4)),
        (Relation::Metadata, 1, Value::text("2MB")),
    ]
}

#[tokio::test]
async fn an_update_changes_its_row_and_no_other() {
    let lake = Lake::new().await;
    lake.write(samples()).await;
    let mut tx = lake.begin_snapshot().await;
    for (relation, column, value) in edits() {
        let sample = samples()
            .into_iter()
            .find(|(found, _)| *found == relation)
            .unwrap()
            .1
            .remove(0);
        let before = rows(&tx, relation).await;
        let position = before.iter().position(|found| *found == sample).unwrap();
        let address = addresses(&tx, relation, Filter::all()).await.remove(position);
        let changed = update(&mut tx, relation, vec![(address, vec![(column, value.clone())])])
            .await
            .unwrap();
        assert_eq!(changed, 1, "{relation}");
        let mut expected = before.clone();
        expected[position][column] = value;
        let after = rows(&tx, relation).await;
        assert_eq!(after.len(), expected.len(), "{relation}");
        assert!(
            expected.iter().all(|row| after.contains(row)),
            "{relation}: {after:?}"
        );
    }
    let expected = all_rows(&tx).await;
    tx.commit().await.unwrap();
    assert_eq!(all_rows(&lake.reopen().begin().await).await, expected);
}

async fn all_rows(tx: &moraine_commit::CatalogTransaction) -> Vec<(Relation, Vec<Vec<Value>>)> {
    let mut all = Vec::new();
    for relation in Relation::FIXED {
        all.push((relation, rows(tx, relation).await));
    }
    all
}

#[tokio::test]
async fn a_deleted_row_is_gone_and_the_others_stay() {
    // Names of a committed mapping never change; they go with it.
    for (relation, mut sample_rows) in samples()
        .into_iter()
        .filter(|(found, _)| *found != Relation::NameMapping)
    {
        let lake = Lake::new().await;
        lake.write(samples()).await;
        let sample = sample_rows.remove(0);
        let mut tx = lake.begin_snapshot().await;
        let before = rows(&tx, relation).await;
        let position = before.iter().position(|found| *found == sample).unwrap();
        let address = addresses(&tx, relation, Filter::all()).await.remove(position);
        assert_eq!(
            delete(&mut tx, relation, vec![address.clone()]).await.unwrap(),
            1,
            "{relation}"
        );
        let mut expected = before;
        expected.remove(position);
        assert_eq!(rows(&tx, relation).await, expected, "{relation}");
        assert_eq!(
            delete(&mut tx, relation, vec![address]).await.unwrap(),
            0,
            "{relation}: deleted twice"
        );
    }
}

#[tokio::test]
async fn rows_embedded_in_a_record_go_with_it() {
    let lake = Lake::new().await;
    lake.write(samples()).await;
    let mut tx = lake.begin_snapshot().await;
    let families = [
        (
            Relation::Macro,
            vec![Relation::MacroImpl, Relation::MacroParameters],
        ),
        (Relation::DataFile, vec![Relation::FilePartitionValue]),
        (Relation::FileColumnStats, vec![Relation::FileVariantStats]),
        (Relation::PartitionInfo, vec![Relation::PartitionColumn]),
        (Relation::SortInfo, vec![Relation::SortExpression]),
        (Relation::ColumnMapping, vec![Relation::NameMapping]),
        (Relation::Column, vec![Relation::ColumnTag]),
    ];
    for (parent, children) in families {
        let all = addresses(&tx, parent, Filter::all()).await;
        assert!(delete(&mut tx, parent, all).await.unwrap() > 0);
        for child in children {
            assert!(rows(&tx, child).await.is_empty(), "{child}");
        }
    }
}

#[tokio::test]
async fn embedded_rows_stay_with_their_record_when_its_version_ends() {
    let lake = Lake::new().await;
    lake.write(samples()).await;
    let mut tx = lake.begin_snapshot().await;
    let relations = [
        (Relation::Macro, 4, Relation::MacroParameters),
        (Relation::DataFile, 3, Relation::FilePartitionValue),
        (Relation::PartitionInfo, 3, Relation::PartitionColumn),
        (Relation::SortInfo, 3, Relation::SortExpression),
        (Relation::Column, 2, Relation::ColumnTag),
    ];
    for (parent, end, child) in relations {
        let before = rows(&tx, child).await;
        let live = addresses(
            &tx,
            parent,
            Filter::only(moraine_tables::Comparison::IsNull { column: end }),
        )
        .await;
        let ends = live
            .into_iter()
            .map(|address| (address, vec![(end, Value::Int64(2))]))
            .collect();
        assert!(update(&mut tx, parent, ends).await.unwrap() > 0);
        assert_eq!(rows(&tx, child).await, before, "{child}");
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn an_address_finds_its_row_and_only_that() {
    let lake = Lake::new().await;
    lake.write(samples()).await;
    let mut tx = lake.begin_snapshot().await;
    let data = Relation::InlinedData {
        table_id: 7,
        schema_version: 1,
    };
    let deletes = Relation::InlinedDelete { table_id: 7 };
    let columns = vec![moraine_tables::Column::new(
        "id",
        moraine_tables::ColumnType::Int64,
    )];
    moraine_tables::create(&mut tx, data, Some(columns))
        .await
        .unwrap();
    moraine_tables::create(&mut tx, deletes, None).await.unwrap();
    insert(
        &mut tx,
        Relation::InlinedDataTables,
        vec![row![7, data.name().as_str(), 1]],
    )
    .await
    .unwrap();
    insert(
        &mut tx,
        data,
        vec![row![0, 2, Null, 5], row![0, 3, Null, 6], row![1, 2, Null, 7]],
    )
    .await
    .unwrap();
    insert(
        &mut tx,
        deletes,
        vec![row![1, 0, 2], row![1, 1, 2], row![2, 0, 2]],
    )
    .await
    .unwrap();
    for relation in Relation::FIXED.into_iter().chain([data, deletes]) {
        let all = crate::support::addressed(&tx, relation, Filter::all()).await;
        assert!(!all.is_empty(), "{relation}");
        for (address, row) in &all {
            let only = Filter::only(moraine_tables::Comparison::Address(vec![address.clone()]));
            let found = crate::support::addressed(&tx, relation, only).await;
            assert_eq!(found, vec![(address.clone(), row.clone())], "{relation}");
        }
        let none = Filter::only(moraine_tables::Comparison::Address(vec![]));
        assert!(
            crate::support::addressed(&tx, relation, none).await.is_empty(),
            "{relation}"
        );
    }
}
