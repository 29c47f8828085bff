//! DuckLake reads without `ORDER BY` and relies on rows coming in the order they were inserted.

use moraine_tables::{Comparison, Filter, Relation, Value, update};

use crate::support::{Lake, Null, addresses, put, row, rows, uuid};

/// The values of one column, in the order of rows.
fn ids(rows: &[Vec<Value>], column: usize) -> Vec<i64> {
    rows.iter()
        .map(|row| match row[column] {
            Value::Int64(id) => id,
            ref other => panic!("{other:?} is not an id"),
        })
        .collect()
}

/// Ends everything of a relation that is live.
async fn end_all(tx: &mut moraine_commit::CatalogTransaction, relation: Relation, end: usize, snapshot: i64) {
    let live = addresses(tx, relation, Filter::only(Comparison::IsNull { column: end })).await;
    let ends = live
        .into_iter()
        .map(|address| (address, vec![(end, Value::Int64(snapshot))]))
        .collect();
    update(tx, relation, ends).await.unwrap();
}

/// A relation, where its `end_snapshot` and its id are, and a row of it from id and begin snapshot.
type Versioned = (Relation, usize, usize, fn(i64, i64) -> Vec<Value>);

#[tokio::test]
async fn versions_come_by_begin_snapshot_then_id_whether_ended_or_not() {
    let cases: [Versioned; 6] = [
        (Relation::Table, 3, 0, |id, begin| {
            row![id, uuid(1), begin, Null, 0, "t", "t/", true]
        }),
        (Relation::View, 3, 0, |id, begin| {
            row![id, uuid(1), begin, Null, 0, "v", "duckdb", "SELECT 1", Null]
        }),
        (Relation::Macro, 4, 1, |id, begin| row![0, id, "m", begin, Null]),
        (Relation::Column, 2, 0, |id, begin| {
            row![
                id, begin, Null, 1, id, "c", "int32", Null, Null, true, Null, Null, Null
            ]
        }),
        (Relation::PartitionInfo, 3, 0, |id, begin| {
            row![id, 1, begin, Null]
        }),
        (Relation::SortInfo, 3, 0, |id, begin| row![id, 1, begin, Null]),
    ];
    for (relation, end, id_column, make) in cases {
        let lake = Lake::new().await;
        let mut tx = lake.begin_snapshot().await;
        put(&mut tx, relation, vec![make(30, 1), make(20, 1)]).await;
        end_all(&mut tx, relation, end, 5).await;
        put(&mut tx, relation, vec![make(25, 5), make(20, 5), make(10, 5)]).await;
        end_all(&mut tx, relation, end, 9).await;
        put(&mut tx, relation, vec![make(5, 9)]).await;
        assert_eq!(
            ids(&rows(&tx, relation).await, id_column),
            [20, 30, 10, 20, 25, 5],
            "{relation}"
        );
    }
}

#[tokio::test]
async fn schemas_come_by_begin_snapshot_after_main() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let schema = |id: i64, begin: i64| row![id, uuid(1), begin, Null, "s", "s/", true];
    put(&mut tx, Relation::Schema, vec![schema(3, 2), schema(9, 1)]).await;
    assert_eq!(ids(&rows(&tx, Relation::Schema).await, 0), [0, 9, 3]);
}

#[tokio::test]
async fn files_come_by_id_across_tables_and_versions() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let file = |id: i64, table: i64| {
        row![
            id, table, 1, Null, Null, "p", true, "parquet", 1, 1, 1, 0, Null, Null, Null, Null
        ]
    };
    put(&mut tx, Relation::DataFile, vec![file(8, 1), file(2, 2)]).await;
    end_all(&mut tx, Relation::DataFile, 3, 4).await;
    put(
        &mut tx,
        Relation::DataFile,
        vec![file(5, 1), file(1, 3), file(9, 1)],
    )
    .await;
    assert_eq!(ids(&rows(&tx, Relation::DataFile).await, 0), [1, 2, 5, 8, 9]);
    let values = vec![
        row![8, 1, 1, "b"],
        row![5, 1, 0, "x"],
        row![8, 1, 0, "a"],
        row![2, 2, 0, "c"],
    ];
    put(&mut tx, Relation::FilePartitionValue, values).await;
    let expected = vec![
        row![2, 2, 0, "c"],
        row![5, 1, 0, "x"],
        row![8, 1, 1, "b"],
        row![8, 1, 0, "a"],
    ];
    assert_eq!(rows(&tx, Relation::FilePartitionValue).await, expected);

    let delete_file =
        |id: i64, table: i64| row![id, table, 1, Null, 8, "d", true, "parquet", 1, 1, 1, Null, Null];
    put(
        &mut tx,
        Relation::DeleteFile,
        vec![delete_file(7, 1), delete_file(3, 2)],
    )
    .await;
    end_all(&mut tx, Relation::DeleteFile, 3, 4).await;
    put(&mut tx, Relation::DeleteFile, vec![delete_file(4, 1)]).await;
    assert_eq!(ids(&rows(&tx, Relation::DeleteFile).await, 0), [3, 4, 7]);

    let gone = |id: i64| row![id, "p", true, Value::TimestampTz(0)];
    put(
        &mut tx,
        Relation::FilesScheduledForDeletion,
        vec![gone(9), gone(4)],
    )
    .await;
    assert_eq!(
        ids(&rows(&tx, Relation::FilesScheduledForDeletion).await, 0),
        [4, 9]
    );
}

#[tokio::test]
async fn statistics_come_by_their_ids() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let stats = |file: i64, table: i64, column: i64| row![file, table, column, 1, 1, 0, "a", "b", Null, Null];
    let inserted = vec![stats(4, 1, 2), stats(4, 1, 1), stats(2, 1, 9), stats(3, 2, 1)];
    put(&mut tx, Relation::FileColumnStats, inserted).await;
    let expected = vec![stats(2, 1, 9), stats(4, 1, 1), stats(4, 1, 2), stats(3, 2, 1)];
    assert_eq!(rows(&tx, Relation::FileColumnStats).await, expected);
    let variant = |file: i64, path: &str| row![file, 1, 1, path, "int64", 1, 1, 1, "1", "1", Null, Null];
    put(&mut tx, Relation::FileColumnStats, vec![stats(1, 1, 1)]).await;
    put(
        &mut tx,
        Relation::FileVariantStats,
        vec![variant(4, "z"), variant(4, "a"), variant(1, "m")],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::FileVariantStats).await,
        vec![variant(1, "m"), variant(4, "z"), variant(4, "a")]
    );

    put(
        &mut tx,
        Relation::TableStats,
        vec![row![3, 1, 1, 1], row![1, 1, 1, 1]],
    )
    .await;
    assert_eq!(ids(&rows(&tx, Relation::TableStats).await, 0), [1, 3]);
    let column = |table: i64, column: i64| row![table, column, true, Null, "a", "b", Null];
    put(
        &mut tx,
        Relation::TableColumnStats,
        vec![column(2, 1), column(1, 9), column(1, 2)],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::TableColumnStats).await,
        vec![column(1, 2), column(1, 9), column(2, 1)]
    );
}

#[tokio::test]
async fn parts_of_macros_come_as_stored_under_the_order_of_their_macros() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    put(
        &mut tx,
        Relation::Macro,
        vec![row![0, 4, "n", 1, Null], row![0, 3, "m", 2, Null]],
    )
    .await;
    let implementation = |id: i64, number: i64| row![id, number, "duckdb", "1", "scalar"];
    put(
        &mut tx,
        Relation::MacroImpl,
        vec![implementation(3, 0), implementation(4, 1), implementation(4, 0)],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::MacroImpl).await,
        vec![implementation(4, 1), implementation(4, 0), implementation(3, 0)]
    );
    let parameter = |id: i64, number: i64, column: i64, name: &str| {
        row![id, number, column, name, "unknown", Null, "unknown"]
    };
    let inserted = vec![
        parameter(3, 0, 0, "z"),
        parameter(3, 0, 1, "a"),
        parameter(4, 0, 0, "y"),
        parameter(4, 1, 0, "x"),
    ];
    put(&mut tx, Relation::MacroParameters, inserted).await;
    let expected = vec![
        parameter(4, 1, 0, "x"),
        parameter(4, 0, 0, "y"),
        parameter(3, 0, 0, "z"),
        parameter(3, 0, 1, "a"),
    ];
    assert_eq!(rows(&tx, Relation::MacroParameters).await, expected);
}

#[tokio::test]
async fn parts_of_layouts_and_mappings_come_as_stored_under_the_order_of_their_records() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    put(
        &mut tx,
        Relation::PartitionInfo,
        vec![row![6, 1, 2, Null], row![7, 1, 1, 2]],
    )
    .await;
    let column = |id: i64, key: i64| row![id, 1, key, 1, "identity"];
    put(
        &mut tx,
        Relation::PartitionColumn,
        vec![column(6, 1), column(6, 0), column(7, 0)],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::PartitionColumn).await,
        vec![column(7, 0), column(6, 1), column(6, 0)]
    );

    put(
        &mut tx,
        Relation::SortInfo,
        vec![row![9, 1, 2, Null], row![8, 1, 1, 2]],
    )
    .await;
    let expression = |id: i64, key: i64| row![id, 1, key, "e", "duckdb", "ASC", "NULLS_LAST"];
    put(
        &mut tx,
        Relation::SortExpression,
        vec![expression(9, 1), expression(9, 0), expression(8, 0)],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::SortExpression).await,
        vec![expression(8, 0), expression(9, 1), expression(9, 0)]
    );

    put(
        &mut tx,
        Relation::ColumnMapping,
        vec![row![5, 1, "map_by_name"], row![2, 9, "map_by_name"]],
    )
    .await;
    assert_eq!(ids(&rows(&tx, Relation::ColumnMapping).await, 0), [2, 5]);
    let name = |id: i64, column: i64| row![id, column, "n", 1, Null, false];
    put(
        &mut tx,
        Relation::NameMapping,
        vec![name(5, 1), name(5, 0), name(2, 0)],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::NameMapping).await,
        vec![name(2, 0), name(5, 1), name(5, 0)]
    );
}

#[tokio::test]
async fn tags_come_by_begin_snapshot_then_object() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let tag = |object: i64, begin: i64, key: &str| row![object, begin, Null, key, "v"];
    put(
        &mut tx,
        Relation::Tag,
        vec![tag(9, 1, "b"), tag(9, 1, "a"), tag(2, 3, "c"), tag(2, 1, "d")],
    )
    .await;
    let expected = vec![tag(2, 1, "d"), tag(9, 1, "b"), tag(9, 1, "a"), tag(2, 3, "c")];
    assert_eq!(rows(&tx, Relation::Tag).await, expected);
    let column = |id: i64| {
        row![
            id, 1, Null, 1, id, "c", "int32", Null, Null, true, Null, Null, Null
        ]
    };
    put(&mut tx, Relation::Column, vec![column(1), column(2)]).await;
    let tag = |column: i64, begin: i64| row![1, column, begin, Null, "comment", "v"];
    put(
        &mut tx,
        Relation::ColumnTag,
        vec![tag(2, 1), tag(1, 4), tag(1, 1)],
    )
    .await;
    assert_eq!(
        rows(&tx, Relation::ColumnTag).await,
        vec![tag(1, 1), tag(2, 1), tag(1, 4)]
    );
}

#[tokio::test]
async fn snapshots_and_schema_versions_come_in_time() {
    let lake = Lake::new().await;
    for _ in 0..3 {
        lake.write([]).await;
    }
    assert_eq!(ids(&lake.rows(Relation::Snapshot).await, 0), [0, 1, 2, 3]);
    assert_eq!(ids(&lake.rows(Relation::SnapshotChanges).await, 0), [0, 1, 2, 3]);
    let mut tx = lake.begin_snapshot().await;
    let version = |begin: i64, table: i64| row![begin, begin, table];
    put(
        &mut tx,
        Relation::SchemaVersions,
        vec![version(5, 1), version(2, 9), version(2, 3), version(1, 9)],
    )
    .await;
    let expected = vec![version(1, 9), version(2, 3), version(2, 9), version(5, 1)];
    assert_eq!(rows(&tx, Relation::SchemaVersions).await, expected);
}

#[tokio::test]
async fn options_come_by_scope_then_name() {
    let lake = Lake::new().await;
    let inserted = vec![
        row!["b", "1", "table", 2],
        row!["z", "1", "schema", 9],
        row!["a", "1", "table", 2],
        row!["c", "1", "table", 1],
        row!["zz", "1", Null, Null],
    ];
    lake.write([(Relation::Metadata, inserted)]).await;
    let names: Vec<Value> = lake
        .rows(Relation::Metadata)
        .await
        .into_iter()
        .map(|mut row| row.remove(0))
        .collect();
    let names: Vec<String> = names
        .into_iter()
        .map(|name| match name {
            Value::Text(text) => text.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        names,
        [
            "created_by",
            "data_path",
            "encrypted",
            "version",
            "zz",
            "z",
            "c",
            "a",
            "b"
        ]
    );
}

#[tokio::test]
async fn registrations_come_by_table_then_schema_version_whether_their_table_exists_or_not() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let registration = |table: i64, version: i64| {
        row![
            table,
            format!("ducklake_inlined_data_{table}_{version}").as_str(),
            version
        ]
    };
    let inserted = vec![registration(9, 1), registration(2, 7), registration(2, 3)];
    put(&mut tx, Relation::InlinedDataTables, inserted).await;
    let columns = vec![moraine_tables::Column::new(
        "c",
        moraine_tables::ColumnType::Int32,
    )];
    let created = Relation::InlinedData {
        table_id: 2,
        schema_version: 7,
    };
    moraine_tables::create(&mut tx, created, Some(columns))
        .await
        .unwrap();
    let expected = vec![registration(2, 3), registration(2, 7), registration(9, 1)];
    assert_eq!(rows(&tx, Relation::InlinedDataTables).await, expected);
}
