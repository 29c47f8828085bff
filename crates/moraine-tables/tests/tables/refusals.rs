//! What a relation cannot hold is refused by name, and a statement that fails half way leaves nothing behind.

use moraine_tables::{ColumnType, Filter, Relation, Value, fixed_schema, insert, update};

use crate::support::{Lake, Null, addresses, equals, refusal, row, rows, some_value, uuid};

fn table(id: i64) -> Vec<Value> {
    row![id, uuid(1), 1, Null, 0, "t", "t/", true]
}

#[tokio::test]
async fn a_row_of_the_wrong_shape_is_refused_in_every_relation() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    for relation in Relation::FIXED {
        let columns = fixed_schema(relation).unwrap().columns;
        let good: Vec<Value> = columns
            .iter()
            .map(|column| some_value(column.column_type))
            .collect();
        let short = good[1..].to_vec();
        assert_eq!(
            refusal(insert(&mut tx, relation, vec![short]).await).0,
            "Width",
            "{relation}"
        );
        for (position, column) in columns.iter().enumerate() {
            let mut wrong = good.clone();
            wrong[position] = match column.column_type {
                ColumnType::Bool => Value::text("true"),
                _ => Value::Bool(true),
            };
            let (variant, text) = refusal(insert(&mut tx, relation, vec![wrong]).await);
            assert_eq!(variant, "Type", "{relation}: {text}");
            assert!(
                text.contains(&column.name) && text.contains(&relation.name()),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn negative_ids_and_counts_are_refused_by_column_and_value() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let mut row = table(7);
    row[2] = Value::Int64(-5);
    let (variant, text) = refusal(insert(&mut tx, Relation::Table, vec![row]).await);
    assert_eq!(variant, "OutOfRange");
    assert!(
        text.contains("-5") && text.contains("begin_snapshot") && text.contains("ducklake_table"),
        "{text}"
    );
    let stats = row![1, -1, 1, 1];
    let (variant, text) = refusal(insert(&mut tx, Relation::TableStats, vec![stats]).await);
    assert_eq!(variant, "OutOfRange");
    assert!(text.contains("record_count"), "{text}");
}

#[tokio::test]
async fn null_where_the_record_is_named_is_refused() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let mut row = table(7);
    row[0] = Value::Null;
    let (variant, text) = refusal(insert(&mut tx, Relation::Table, vec![row]).await);
    assert_eq!(variant, "NotNull");
    assert!(text.contains("table_id"), "{text}");
}

#[tokio::test]
async fn a_row_without_its_parent_is_refused_and_the_error_names_the_parent() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let orphans = [
        (
            Relation::ColumnTag,
            row![7, 3, 1, Null, "k", "v"],
            "the row of ducklake_table with table_id 7,",
        ),
        (
            Relation::FilePartitionValue,
            row![5, 7, 0, "v"],
            "ducklake_data_file with table_id 7, data_file_id 5",
        ),
        (
            Relation::FileVariantStats,
            row![5, 7, 2, "p", "int64", 1, 1, 1, Null, Null, Null, Null],
            "ducklake_file_column_stats with table_id 7, data_file_id 5, column_id 2",
        ),
        (
            Relation::PartitionColumn,
            row![4, 7, 0, 1, "identity"],
            "ducklake_partition_info",
        ),
        (
            Relation::SortExpression,
            row![4, 7, 0, "e", "duckdb", "ASC", "NULLS_LAST"],
            "ducklake_sort_info",
        ),
        (
            Relation::MacroImpl,
            row![4, 0, "duckdb", "1", "scalar"],
            "ducklake_macro with macro_id 4",
        ),
        (
            Relation::MacroParameters,
            row![4, 0, 0, "p", "unknown", Null, "unknown"],
            "ducklake_macro",
        ),
        (
            Relation::NameMapping,
            row![4, 0, "n", 1, Null, false],
            "ducklake_column_mapping with mapping_id 4",
        ),
    ];
    for (relation, orphan, parent) in orphans {
        let (variant, text) = refusal(insert(&mut tx, relation, vec![orphan]).await);
        assert_eq!(variant, "NoParent", "{relation}");
        assert!(
            text.contains(parent) && text.contains("insert that row first"),
            "{text}"
        );
    }
    insert(&mut tx, Relation::Macro, vec![row![0, 4, "m", 1, Null]])
        .await
        .unwrap();
    let parameter = row![4, 2, 0, "p", "unknown", Null, "unknown"];
    let (variant, text) = refusal(insert(&mut tx, Relation::MacroParameters, vec![parameter]).await);
    assert_eq!(variant, "NoParent");
    assert!(text.contains("impl_id 2 of macro_id 4"), "{text}");
}

#[tokio::test]
async fn a_statement_that_fails_at_its_last_row_leaves_nothing() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    insert(&mut tx, Relation::Table, vec![table(3)]).await.unwrap();
    let before = rows(&tx, Relation::Table).await;
    let (variant, _) = refusal(insert(&mut tx, Relation::Table, vec![table(1), table(2), table(3)]).await);
    assert_eq!(variant, "Stage");
    assert_eq!(rows(&tx, Relation::Table).await, before);
    let tags = vec![row![1, 1, Null, "k", "v"], row![1, -1, Null, "k", "v"]];
    assert_eq!(
        refusal(insert(&mut tx, Relation::Tag, tags).await).0,
        "OutOfRange"
    );
    assert!(rows(&tx, Relation::Tag).await.is_empty());
    let all = addresses(&tx, Relation::Table, Filter::all()).await;
    let edits = vec![(
        all[0].clone(),
        vec![(5, Value::text("renamed")), (2, Value::Int64(-1))],
    )];
    assert_eq!(
        refusal(update(&mut tx, Relation::Table, edits).await).0,
        "OutOfRange"
    );
    assert_eq!(rows(&tx, Relation::Table).await, before);
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn an_embedded_row_does_not_move_to_another_record() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    insert(&mut tx, Relation::Tag, vec![row![1, 1, Null, "k", "v"]])
        .await
        .unwrap();
    let found = addresses(&tx, Relation::Tag, equals(0, 1)).await;
    let edit = vec![(found[0].clone(), vec![(0, Value::Int64(2))])];
    let (variant, text) = refusal(update(&mut tx, Relation::Tag, edit).await);
    assert_eq!(variant, "Unsupported");
    assert!(text.contains("object_id"), "{text}");
}

#[tokio::test]
async fn a_record_whose_uuid_is_none_is_named() {
    use moraine_codec::{Record, proto::SchemaValue};
    use moraine_commit::Change;
    use moraine_keys::SchemaKey;

    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    let damaged = SchemaValue {
        schema_id: 4,
        begin_snapshot: 1,
        schema_uuid: "no uuid".into(),
        ..Default::default()
    };
    tx.stage(vec![Change::Insert(Record::Schema(
        SchemaKey { schema_id: 4 },
        damaged,
    ))])
    .await
    .unwrap();
    let outcome = moraine_tables::scan(&tx, Relation::Schema, &[1], &Filter::all())
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        outcome.to_string().contains("no uuid") && outcome.to_string().contains("schema_uuid"),
        "{outcome}"
    );
}

#[tokio::test]
async fn an_old_address_finds_nothing() {
    let lake = Lake::new().await;
    let mut tx = lake.begin_snapshot().await;
    insert(&mut tx, Relation::Table, vec![table(3)]).await.unwrap();
    let old = addresses(&tx, Relation::Table, Filter::all()).await;
    let end = |address: &moraine_tables::RowAddress| vec![(address.clone(), vec![(3, Value::Int64(2))])];
    assert_eq!(update(&mut tx, Relation::Table, end(&old[0])).await.unwrap(), 1);
    assert_eq!(update(&mut tx, Relation::Table, end(&old[0])).await.unwrap(), 0);
    let twice = vec![end(&addresses(&tx, Relation::Table, Filter::all()).await[0]).remove(0); 2];
    assert_eq!(update(&mut tx, Relation::Table, twice).await.unwrap(), 1);
}
