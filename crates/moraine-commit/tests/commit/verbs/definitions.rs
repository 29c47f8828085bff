//! What verbs of definitions leave, as snapshots show it.

use moraine_commit::lake::{
    ColumnDefault, ColumnType, MacroImplementation, MacroKind, MacroParameter, SortExpression, Transform,
};
use moraine_commit::verbs::{
    ColumnDefinition, MacroDefinition, PartitionField, TableDefinition, TagTarget, ViewDefinition,
};

use super::lake_with_table;

#[tokio::test]
async fn a_transaction_sees_what_it_has_done() {
    let (catalog, _store) = lake_with_table().await;
    let committed = catalog.commit(|tx| async move {
        tx.create_schema("s").await?;
        let columns = vec![ColumnDefinition::new("a", ColumnType::Int32)];
        let table = tx.create_table("S", TableDefinition::new("x", columns)).await?;
        tx.rename_table(("s", "X"), "y").await?;
        assert!(tx.table(("s", "x")).await?.is_none());
        assert_eq!(tx.table(("s", "y")).await?.unwrap().table_id, table);
        tx.add_column(table, ColumnDefinition::new("b", ColumnType::Int32))
            .await?;
        tx.drop_column(table, "b").await?;
        let added = tx
            .add_column(table, ColumnDefinition::new("c", ColumnType::Int32))
            .await?;
        assert_eq!(added, 3, "an id is never given twice");
        tx.drop_table(table).await?;
        assert!(tx.table(("s", "y")).await?.is_none());
        tx.drop_schema("s").await
    });
    let snapshot_id = committed.await.unwrap().snapshot_id;
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(Some(newest.id()), snapshot_id);
    assert!(
        newest.info().changes.entries.is_empty(),
        "what came and went was never there"
    );
    assert!(newest.schema("s").await.unwrap().is_none());
}

#[tokio::test]
async fn nested_columns_are_shown_as_trees() {
    let (catalog, _store) = lake_with_table().await;
    let spot = ColumnType::Struct(vec![
        ("x".into(), ColumnType::Int32),
        ("tags".into(), ColumnType::List(Box::new(ColumnType::Varchar))),
    ]);
    let spot = &spot;
    let changed = catalog.commit(|tx| async move {
        tx.add_column(1, ColumnDefinition::new("spot", spot.clone()))
            .await?;
        tx.add_field(1, "spot", ColumnDefinition::new("z", ColumnType::Date))
            .await?;
        tx.rename_column(1, ["spot", "x"], "lon").await?;
        tx.set_column_type(1, ["spot", "lon"], ColumnType::Int64).await?;
        tx.set_comment(TagTarget::Column(1.into(), ["spot", "z"].into()), Some("depth"))
            .await
    });
    changed.await.unwrap();
    let columns = catalog.snapshot().await.unwrap().columns(1).await.unwrap();
    let spot = &columns[2];
    let names: Vec<&str> = spot.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["lon", "tags", "z"]);
    assert_eq!(spot.field(&["tags", "element"]).unwrap().column_id, 6);
    assert_eq!(spot.field(&["LON"]).unwrap().column_type, ColumnType::Int64);
    assert_eq!(
        spot.field(&["z"]).unwrap().tags[0].value.as_deref(),
        Some("depth")
    );
    let dropped = catalog.commit(|tx| async move { tx.drop_column(1, ["spot", "tags"]).await });
    dropped.await.unwrap();
    let columns = catalog.snapshot().await.unwrap().columns(1).await.unwrap();
    assert!(columns[2].field(&["tags"]).is_none());
    let before = catalog.snapshot_at(2).await.unwrap().columns(1).await.unwrap();
    assert!(before[2].field(&["tags", "element"]).is_some());
}

#[tokio::test]
async fn views_macros_layouts_and_tags_are_shown_as_given() {
    let (catalog, _store) = lake_with_table().await;
    let created = catalog.commit(|tx| async move {
        let mut view = ViewDefinition::new("v", "SELECT id, name FROM {DUCKLAKE_CATALOG}.main.t");
        view.column_aliases = vec!["a".into(), "b \"c\"".into()];
        tx.create_view("main", view).await?;
        let plus = MacroImplementation {
            dialect: "duckdb".into(),
            sql: "(a + b)".into(),
            parameters: vec![
                MacroParameter {
                    name: "a".into(),
                    parameter_type: None,
                    default: None,
                },
                MacroParameter {
                    name: "b".into(),
                    parameter_type: Some(ColumnType::Int32),
                    default: Some(("5".into(), ColumnType::Int32)),
                },
            ],
        };
        let definition = MacroDefinition {
            name: "plus".into(),
            kind: MacroKind::Scalar,
            implementations: vec![plus.clone()],
        };
        let macro_id = tx.create_macro("main", definition).await?;
        tx.set_partition(1, vec![PartitionField::new("id", Transform::Bucket(8))])
            .await?;
        let sort = SortExpression {
            nulls_first: true,
            ..SortExpression::descending("name")
        };
        tx.set_sort(1, vec![sort]).await?;
        tx.rename_column(1, "name", "Title").await?;
        tx.set_tag(
            TagTarget::Macro("main".into(), "plus".into()),
            "team",
            Some("core"),
        )
        .await?;
        tx.set_column_default(1, "id", ColumnDefault::Literal("0".into()))
            .await?;
        Ok((macro_id, plus))
    });
    let (macro_id, plus) = created.await.unwrap().value;
    let newest = catalog.snapshot().await.unwrap();
    let view = newest.view("main", "V").await.unwrap().unwrap();
    assert_eq!(view.column_aliases, ["a", "b \"c\""]);
    let found = newest.macro_by_id(macro_id).await.unwrap().unwrap();
    assert_eq!(found.implementations, [plus]);
    assert_eq!(
        newest.tags(macro_id).await.unwrap()[0].value.as_deref(),
        Some("core")
    );
    let partition = newest.partition(1).await.unwrap().unwrap();
    assert_eq!(partition.columns[0].transform, "bucket(8)");
    let sort = newest.sort(1).await.unwrap().unwrap();
    assert_eq!(sort.expressions[0].expression, "\"Title\"");
    assert!(sort.expressions[0].descending && sort.expressions[0].nulls_first);
    let columns = newest.columns(1).await.unwrap();
    assert_eq!(columns[0].default, ColumnDefault::Literal("0".into()));
    assert_eq!(columns[0].initial_default, None);
}

#[tokio::test]
async fn a_schema_that_is_dropped_with_its_contents_is_there_before() {
    let (catalog, _store) = lake_with_table().await;
    let created = catalog.commit(|tx| async move {
        tx.create_schema("s").await?;
        let columns = vec![ColumnDefinition::new("a", ColumnType::Int32)];
        tx.create_table("s", TableDefinition::new("x", columns).with_comment("c"))
            .await
    });
    let table = created.await.unwrap().value;
    let dropped = catalog.commit(|tx| async move { tx.drop_schema_cascade("s").await });
    dropped.await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert!(newest.table_by_id(table).await.unwrap().is_none());
    assert!(newest.tags(table).await.unwrap().is_empty());
    assert_eq!(
        newest.info().changes.to_string(),
        format!("dropped_schema:2,dropped_table:{table}")
    );
    let before = catalog.snapshot_at(2).await.unwrap();
    assert_eq!(before.table("s", "x").await.unwrap().unwrap().table_id, table);
    assert_eq!(before.tags(table).await.unwrap()[0].value.as_deref(), Some("c"));
}
