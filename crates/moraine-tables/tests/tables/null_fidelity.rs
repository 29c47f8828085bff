//! `NULL` in any column that a record can do without comes back as `NULL`, and a default does not become `NULL`.

use moraine_tables::{ColumnType, Relation, Value, fixed_schema, insert};

use crate::support::{Lake, row, rows};

/// Columns that name a record and so cannot be `NULL`, and their values; parents of each relation come before it.
fn keys() -> Vec<(Relation, Vec<(usize, i64)>)> {
    vec![
        (Relation::Schema, vec![(0, 5)]),
        (Relation::Table, vec![(0, 7)]),
        (Relation::View, vec![(0, 9)]),
        (Relation::Column, vec![(0, 1), (3, 7)]),
        (Relation::ColumnTag, vec![(0, 7), (1, 1)]),
        (Relation::Tag, vec![(0, 7)]),
        (Relation::Macro, vec![(1, 11)]),
        (Relation::MacroImpl, vec![(0, 11), (1, 0)]),
        (Relation::MacroParameters, vec![(0, 11), (1, 0)]),
        (Relation::DataFile, vec![(0, 1), (1, 7)]),
        (Relation::FilePartitionValue, vec![(0, 1), (1, 7)]),
        (Relation::DeleteFile, vec![(0, 2), (1, 7)]),
        (Relation::FileColumnStats, vec![(0, 1), (1, 7), (2, 1)]),
        (Relation::FileVariantStats, vec![(0, 1), (1, 7), (2, 1)]),
        (Relation::FilesScheduledForDeletion, vec![(0, 90)]),
        (Relation::TableStats, vec![(0, 7)]),
        (Relation::TableColumnStats, vec![(0, 7), (1, 1)]),
        (Relation::PartitionInfo, vec![(0, 12), (1, 7)]),
        (Relation::PartitionColumn, vec![(0, 12), (1, 7)]),
        (Relation::SortInfo, vec![(0, 14), (1, 7)]),
        (Relation::SortExpression, vec![(0, 14), (1, 7)]),
        (Relation::ColumnMapping, vec![(0, 3), (1, 7)]),
        (Relation::NameMapping, vec![(0, 3)]),
        (Relation::SchemaVersions, vec![(0, 1), (2, 7)]),
    ]
}

fn filled(relation: Relation, keys: &[(usize, i64)], fill: impl Fn(ColumnType) -> Value) -> Vec<Value> {
    let columns = fixed_schema(relation).unwrap().columns;
    let value = |(position, column): (usize, &moraine_tables::Column)| {
        let key = keys.iter().find(|(key, _)| *key == position);
        key.map_or_else(|| fill(column.column_type), |(_, id)| Value::Int64(*id))
    };
    columns.iter().enumerate().map(value).collect()
}

fn default_of(column_type: ColumnType) -> Value {
    match column_type {
        ColumnType::Int64 => Value::Int64(0),
        ColumnType::Text => Value::text(""),
        ColumnType::Bool => Value::Bool(false),
        ColumnType::Uuid => Value::Uuid([0; 16]),
        ColumnType::TimestampTz => Value::TimestampTz(0),
        other => panic!("no fixed relation has a column of {other:?}"),
    }
}

#[tokio::test]
async fn null_in_every_column_that_names_no_record_comes_back_as_null() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    for (relation, keys) in keys() {
        let row = filled(relation, &keys, |_| Value::Null);
        insert(&mut tx, relation, vec![row.clone()])
            .await
            .unwrap_or_else(|e| panic!("{relation}: {e}"));
        assert!(
            rows(&tx, relation).await.contains(&row),
            "{relation}: {:?}",
            rows(&tx, relation).await
        );
    }
}

#[tokio::test]
async fn zero_empty_and_false_do_not_become_null() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    for (relation, keys) in keys() {
        let mut row = filled(relation, &keys, default_of);
        // An end makes it another record; every other column has its default.
        let columns = fixed_schema(relation).unwrap();
        if let Some(end) = columns.position("end_snapshot")
            && !matches!(relation, Relation::Tag | Relation::ColumnTag)
        {
            row[end] = Value::Null;
        }
        insert(&mut tx, relation, vec![row.clone()])
            .await
            .unwrap_or_else(|e| panic!("{relation}: {e}"));
        assert!(
            rows(&tx, relation).await.contains(&row),
            "{relation}: {:?}",
            rows(&tx, relation).await
        );
    }
}

#[tokio::test]
async fn null_survives_the_commit_and_being_set_and_unset() {
    let lake = Lake::new().await;
    let file = |size: Value| {
        row![
            1,
            7,
            1,
            crate::support::Null,
            0,
            "p",
            true,
            "parquet",
            1,
            1,
            size,
            0,
            1,
            "k",
            1,
            1
        ]
    };
    lake.write([
        (
            Relation::Table,
            vec![row![
                7,
                crate::support::uuid(7),
                1,
                crate::support::Null,
                0,
                "t",
                "t/",
                true
            ]],
        ),
        (Relation::DataFile, vec![file(Value::Null)]),
    ])
    .await;
    assert_eq!(
        lake.reopen().rows(Relation::DataFile).await,
        vec![file(Value::Null)]
    );
    for value in [Value::Int64(0), Value::Null, Value::Int64(5)] {
        let mut tx = lake.begin_snapshot().await;
        let all = crate::support::addresses(&tx, Relation::DataFile, moraine_tables::Filter::all()).await;
        let edits = all
            .into_iter()
            .map(|address| (address, vec![(10, value.clone())]))
            .collect();
        moraine_tables::update(&mut tx, Relation::DataFile, edits)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(lake.reopen().rows(Relation::DataFile).await, vec![file(value)]);
    }
}
