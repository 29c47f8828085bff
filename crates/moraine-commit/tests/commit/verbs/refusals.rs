//! Verbs that break a rule say which, change nothing, and leave their transaction usable.

// What a verb has answered is asked once.
#![allow(clippy::needless_pass_by_value)]

use moraine_commit::lake::{ColumnDefault, ColumnType, MacroKind, OptionScope, SortExpression, Transform};
use moraine_commit::verbs::{
    ColumnDefinition, CommitError, LakeTransaction, MacroDefinition, NewDataFile, NewDeleteFile, ObjectKind,
    PartitionField, TableDefinition, TagTarget, VerbError, ViewDefinition,
};

use super::{file, lake_with_table};
use crate::support::head;

fn columns() -> Vec<ColumnDefinition> {
    vec![ColumnDefinition::new("a", ColumnType::Int32)]
}

fn is_missing(outcome: Result<impl Sized, VerbError>, of: ObjectKind) -> bool {
    matches!(outcome, Err(VerbError::NotFound { kind, .. }) if kind == of)
}

fn is_taken(outcome: Result<impl Sized, VerbError>, of: ObjectKind) -> bool {
    matches!(outcome, Err(VerbError::AlreadyExists { kind, .. }) if kind == of)
}

fn is_refused(outcome: Result<impl Sized, VerbError>) -> bool {
    matches!(outcome, Err(VerbError::Refused { .. }))
}

/// Runs a closure whose verbs are all refused and asserts that its commit is none.
async fn changes_nothing<Fut>(closure: impl Fn(LakeTransaction) -> Fut)
where
    Fut: Future<Output = Result<(), VerbError>>,
{
    let (catalog, _store) = lake_with_table().await;
    let before = head(&catalog).await;
    let committed = catalog.commit(closure).await.unwrap();
    assert_eq!(committed.snapshot_id, None);
    assert_eq!(head(&catalog).await, before);
}

#[tokio::test]
async fn names_that_are_missing_are_named() {
    changes_nothing(|tx| async move {
        assert!(is_missing(tx.drop_schema("x").await, ObjectKind::Schema));
        assert!(is_missing(tx.drop_table(("main", "x")).await, ObjectKind::Table));
        assert!(is_missing(tx.drop_table(99).await, ObjectKind::Table));
        assert!(is_missing(tx.drop_table(("x", "t")).await, ObjectKind::Schema));
        assert!(is_missing(tx.drop_view("main", "x").await, ObjectKind::View));
        assert!(is_missing(
            tx.drop_macro("main", "x", MacroKind::Scalar).await,
            ObjectKind::ScalarMacro
        ));
        assert!(is_missing(tx.drop_column(1, "x").await, ObjectKind::Column));
        assert!(is_missing(
            tx.drop_column(1, ["id", "x"]).await,
            ObjectKind::Column
        ));
        assert!(is_missing(
            tx.drop_data_files(1, &[7]).await,
            ObjectKind::DataFile
        ));
        let delete_file = NewDeleteFile::new(7, "d.parquet", 1, 1);
        assert!(is_missing(
            tx.add_delete_files(1, vec![delete_file]).await,
            ObjectKind::DataFile
        ));
        assert!(is_missing(
            tx.remove_tag(TagTarget::Table(1.into()), "x").await,
            ObjectKind::Tag
        ));
        assert!(is_missing(
            tx.unset_option(OptionScope::Global, "x").await,
            ObjectKind::Option
        ));
        assert!(is_missing(
            tx.set_option(OptionScope::Table(9), "x", "1").await,
            ObjectKind::Table
        ));
        assert!(is_missing(tx.expire_snapshots(&[9]).await, ObjectKind::Snapshot));
        assert!(is_missing(
            tx.forget_scheduled_files(&[9]).await,
            ObjectKind::ScheduledFile
        ));
        let unmapped = NewDataFile {
            mapping_id: Some(9),
            ..file("f.parquet", 1, (1, 1))
        };
        assert!(is_missing(
            tx.add_data_files(1, vec![unmapped]).await,
            ObjectKind::Mapping
        ));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn names_that_are_taken_are_refused_in_any_case_of_letters() {
    let (catalog, _store) = lake_with_table().await;
    let setup = catalog.commit(|tx| async move {
        tx.create_view("main", ViewDefinition::new("v", "SELECT 1"))
            .await?;
        tx.create_schema("s").await
    });
    setup.await.unwrap();
    let checked = catalog.commit(|tx| async move {
        assert!(is_taken(tx.create_schema("S").await, ObjectKind::Schema));
        let table = |name: &str| TableDefinition::new(name, columns());
        assert!(is_taken(
            tx.create_table("main", table("T")).await,
            ObjectKind::Table
        ));
        assert!(is_taken(
            tx.create_table("main", table("V")).await,
            ObjectKind::View
        ));
        let view = ViewDefinition::new("T", "SELECT 1");
        assert!(is_taken(tx.create_view("main", view).await, ObjectKind::Table));
        assert!(is_taken(tx.rename_table(1, "v").await, ObjectKind::View));
        assert!(is_taken(tx.rename_table(1, "t").await, ObjectKind::Table));
        assert!(is_taken(
            tx.rename_view("main", "v", "t").await,
            ObjectKind::Table
        ));
        let column = ColumnDefinition::new("NAME", ColumnType::Int32);
        assert!(is_taken(tx.add_column(1, column).await, ObjectKind::Column));
        assert!(is_taken(
            tx.rename_column(1, "id", "Name").await,
            ObjectKind::Column
        ));
        tx.rename_table(1, "T").await
    });
    checked.await.unwrap();
    let newest = catalog.snapshot().await.unwrap();
    assert_eq!(newest.table("main", "t").await.unwrap().unwrap().name, "T");
}

#[tokio::test]
async fn what_no_name_can_be_is_refused() {
    changes_nothing(|tx| async move {
        let invalid = |outcome: Result<u64, VerbError>| matches!(outcome, Err(VerbError::InvalidName { .. }));
        assert!(invalid(tx.create_schema("").await));
        assert!(invalid(
            tx.create_table("main", TableDefinition::new("a\0b", columns()))
                .await
        ));
        let reserved = ColumnDefinition::new("ROW_ID", ColumnType::Int32);
        assert!(invalid(tx.add_column(1, reserved).await));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_definition_must_have_is_asked_for() {
    changes_nothing(|tx| async move {
        assert!(is_refused(
            tx.create_table("main", TableDefinition::new("x", Vec::new()))
                .await
        ));
        let none = MacroDefinition {
            name: "m".into(),
            kind: MacroKind::Scalar,
            implementations: Vec::new(),
        };
        assert!(is_refused(tx.create_macro("main", none).await));
        assert!(is_refused(
            tx.create_view("main", ViewDefinition::new("x", " ")).await
        ));
        let unknown = ColumnDefinition::new("x", ColumnType::Unknown("money".into()));
        assert!(is_refused(tx.add_column(1, unknown).await));
        let computed = ColumnDefinition::new("x", ColumnType::Int32)
            .with_default(ColumnDefault::Expression("1 + 1".into()));
        assert!(is_refused(tx.add_column(1, computed).await));
        let nested = ColumnType::List(Box::new(ColumnType::Int32));
        let nested = ColumnDefinition::new("x", nested).with_default(ColumnDefault::Literal("[]".into()));
        assert!(is_refused(tx.add_column(1, nested).await));
        assert!(is_refused(tx.set_partition(1, Vec::new()).await));
        assert!(is_refused(
            tx.set_partition(1, vec![PartitionField::new("id", Transform::Bucket(0))])
                .await
        ));
        assert!(is_refused(tx.set_sort(1, Vec::new()).await));
        assert!(is_refused(tx.add_mapping(1, Vec::new()).await));
        assert!(is_refused(tx.drop_schema("main").await));
        assert!(is_refused(
            tx.set_option(OptionScope::Global, "encrypted", "true").await
        ));
        assert!(is_refused(tx.expire_snapshots(&[1]).await));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_is_in_use_stays() {
    let (catalog, _store) = lake_with_table().await;
    let setup = catalog.commit(|tx| async move {
        tx.set_partition(1, vec![PartitionField::new("id", Transform::Identity)])
            .await?;
        tx.set_sort(1, vec![SortExpression::ascending("lower(Name)")])
            .await?;
        tx.create_schema("s").await?;
        tx.create_table("s", TableDefinition::new("inner", columns()))
            .await
    });
    setup.await.unwrap();
    let checked = catalog.commit(|tx| async move {
        let in_use = |outcome: Result<(), VerbError>| matches!(outcome, Err(VerbError::InUse { .. }));
        assert!(in_use(tx.drop_column(1, "id").await));
        assert!(in_use(tx.drop_column(1, "name").await));
        assert!(in_use(tx.drop_schema("s").await));
        assert!(is_refused(tx.drop_column(("s", "inner"), "a").await));
        assert!(is_refused(
            tx.add_data_files(1, vec![file("f.parquet", 1, (1, 1))]).await
        ));
        Ok(())
    });
    checked.await.unwrap();
}

#[tokio::test]
async fn a_column_changes_to_wider_types_only() {
    changes_nothing(|tx| async move {
        let narrowed = tx.set_column_type(1, "id", ColumnType::Int32).await;
        assert!(matches!(narrowed, Err(VerbError::TypeChange { .. })));
        let nested = ColumnType::List(Box::new(ColumnType::Int64));
        let nested = tx.set_column_type(1, "id", nested).await;
        assert!(matches!(nested, Err(VerbError::TypeChange { .. })));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn null_is_forbidden_only_where_statistics_exclude_it() {
    let (catalog, _store) = lake_with_table().await;
    let added =
        catalog.commit(|tx| async move { tx.add_data_files(1, vec![file("f.parquet", 3, (1, 3))]).await });
    added.await.unwrap();
    let changed = catalog.commit(|tx| async move {
        assert!(
            is_refused(tx.set_not_null(1, "name").await),
            "nothing is known of the names"
        );
        tx.set_not_null(1, "id").await?;
        assert!(is_refused(tx.set_not_null(1, "id").await));
        tx.set_not_null_unchecked(1, "name").await?;
        tx.drop_not_null(1, "name").await?;
        assert!(is_refused(tx.drop_not_null(1, "name").await));
        Ok(())
    });
    changed.await.unwrap();
    let columns = catalog.snapshot().await.unwrap().columns(1).await.unwrap();
    let allowed: Vec<bool> = columns.iter().map(|column| column.nulls_allowed).collect();
    assert_eq!(allowed, [false, true]);
}

#[tokio::test]
async fn a_transaction_whose_closure_gives_up_commits_nothing() {
    let (catalog, _store) = lake_with_table().await;
    let before = head(&catalog).await;
    let given_up = catalog
        .commit(|tx| async move {
            tx.create_schema("s").await?;
            Err::<(), _>(VerbError::other("changed my mind"))
        })
        .await;
    assert!(matches!(given_up, Err(CommitError::Refused(VerbError::Other(_)))));
    assert_eq!(head(&catalog).await, before);
}

#[tokio::test]
async fn a_handle_serves_only_within_its_closure() {
    let (catalog, _store) = lake_with_table().await;
    let committed = catalog
        .commit(|tx| async move {
            tx.create_schema("s").await?;
            Ok(tx)
        })
        .await
        .unwrap();
    assert!(matches!(
        committed.value.create_schema("late").await,
        Err(VerbError::Over)
    ));
}

#[tokio::test]
async fn a_commit_either_changes_or_compacts() {
    let (catalog, _store) = lake_with_table().await;
    let added = catalog.commit(|tx| async move {
        tx.add_data_files(
            1,
            vec![file("a.parquet", 1, (1, 1)), file("b.parquet", 1, (2, 2))],
        )
        .await
    });
    let ids = added.await.unwrap().value;
    let ids = &ids;
    let both = catalog
        .commit(|tx| async move {
            tx.merge_adjacent_files(1, ids, file("ab.parquet", 2, (1, 2)))
                .await?;
            tx.create_schema("s").await
        })
        .await;
    assert!(matches!(
        both,
        Err(CommitError::Refused(VerbError::Refused { .. }))
    ));
}
