use std::sync::Arc;

use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, MappingValue, SnapshotValue, TableColumnStatsValue,
};
use moraine_commit::{Catalog, CatalogTransaction, Change, CommitFailure, InlineChange, StageError};
use moraine_keys::{Kind, TableColumnStatsKey};
use moraine_store::MemoryStore;

use super::client::{
    Stats, TYPES, TableAppend, append, inlined, rebasing_lake, seen_snapshot, stage, with_tables,
};
use crate::support::{changes, data_file, delete_file, insert, table, value};

fn rows(table_id: u64) -> TableAppend {
    TableAppend {
        table_id,
        files: vec![vec![[Some(7); TYPES.len()]]],
        inlined: Vec::new(),
    }
}

/// Commits a snapshot with this text of changes and these records, on the newest head.
async fn meanwhile(catalog: &Arc<Catalog>, made: &str, records: Vec<Change>) {
    let mut transaction = catalog.begin().await.unwrap();
    let mut row = seen_snapshot(&transaction).await;
    row.snapshot_id += 1;
    row.changes_made = String::new();
    let snapshot_id = row.snapshot_id;
    transaction.insert_snapshot(row).await.unwrap();
    transaction.stage(records).await.unwrap();
    transaction
        .set_snapshot_changes(changes(snapshot_id, made))
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

fn assert_lost(outcome: &Result<u64, StageError>) {
    assert!(matches!(outcome, Err(StageError::LostRace { .. })), "{outcome:?}");
}

#[tokio::test]
async fn what_the_matrix_excludes_is_refused_and_what_it_does_not_is_shifted() {
    for (made, is_refused) in [
        ("inserted_into_table:1", false),
        ("inlined_insert:1", false),
        ("inline_flush:1", false),
        ("merge_adjacent:1", false),
        ("deleted_from_table:1", true),
        ("inlined_delete:1", true),
        ("altered_table:1", true),
        ("dropped_table:1", true),
        ("something_new:1", true),
        ("altered_table:2", false),
        ("dropped_table:2", false),
        ("created_schema:\"x\"", false),
    ] {
        let (catalog, _) = rebasing_lake().await;
        let late = catalog.begin().await.unwrap();
        meanwhile(&catalog, made, Vec::new()).await;
        let outcome = append(late, &[rows(1)], "late").await;
        assert_eq!(outcome.is_err(), is_refused, "{made}: {outcome:?}");
        if is_refused {
            assert_lost(&outcome);
        } else {
            assert_eq!(outcome.unwrap(), 3, "{made}");
        }
    }
}

#[tokio::test]
async fn without_being_asked_nothing_is_shifted() {
    let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
    catalog.create(None, false).await.unwrap();
    with_tables(&catalog).await;
    let late = catalog.begin().await.unwrap();
    append(catalog.begin().await.unwrap(), &[rows(1)], "first")
        .await
        .unwrap();
    assert_lost(&append(late, &[rows(2)], "late").await);
}

/// A transaction that began before another append, with its snapshot inserted.
async fn overtaken(catalog: &Arc<Catalog>) -> (CatalogTransaction, u64) {
    let mut late = catalog.begin().await.unwrap();
    append(catalog.begin().await.unwrap(), &[rows(1)], "first")
        .await
        .unwrap();
    let mut row = seen_snapshot(&late).await;
    row.snapshot_id += 1;
    row.changes_made = String::new();
    let asked = row.snapshot_id;
    late.insert_snapshot(row).await.unwrap();
    (late, asked)
}

async fn assert_not_shifted(made: &str, records: Vec<Change>, inline: Vec<InlineChange>) {
    let (catalog, _) = rebasing_lake().await;
    append(catalog.begin().await.unwrap(), &[rows(2)], "before")
        .await
        .unwrap();
    let (mut late, asked) = overtaken(&catalog).await;
    late.stage(records).await.unwrap();
    for change in inline {
        late.inline(change).await.unwrap();
    }
    let outcome = late.set_snapshot_changes(changes(asked, made)).await;
    assert!(
        matches!(outcome, Err(StageError::LostRace { .. })),
        "{made}: {outcome:?}"
    );
    assert!(late.has_lost() && !late.is_append(), "{made}");
}

fn file(begin_snapshot: u64) -> (moraine_keys::DataFileKey, DataFileValue) {
    let (key, mut value) = data_file(2, 1, begin_snapshot);
    value.row_id_start = Some(1);
    (key, value)
}

#[tokio::test]
async fn what_does_more_than_add_rows_is_not_shifted() {
    let inserted = "inserted_into_table:2";
    assert_not_shifted(
        "created_table:\"main\".\"x\"",
        vec![insert(table(3, 3, "x"))],
        Vec::new(),
    )
    .await;
    assert_not_shifted(
        "inserted_into_table:2,altered_table:2",
        vec![insert(file(3))],
        Vec::new(),
    )
    .await;
    assert_not_shifted("", Vec::new(), Vec::new()).await;
    let deletion: (_, DeleteFileValue) = delete_file(2, 2, 0, 3);
    assert_not_shifted(inserted, vec![insert(file(3)), insert(deletion)], Vec::new()).await;
    // Of a table that the entries do not name.
    assert_not_shifted("inserted_into_table:1", vec![insert(file(3))], Vec::new()).await;
    let mapping = MappingValue {
        mapping_id: 5,
        table_id: 2,
        ..MappingValue::default()
    };
    let mapping = insert((
        moraine_keys::MappingKey {
            table_id: 2,
            mapping_id: 5,
        },
        mapping,
    ));
    assert_not_shifted(inserted, vec![mapping], Vec::new()).await;
}

/// What is an append by its kinds of records, but not by what they say.
async fn assert_refused(records: Vec<Change>, inline: Vec<InlineChange>) {
    let (catalog, _) = rebasing_lake().await;
    append(catalog.begin().await.unwrap(), &[rows(2)], "before")
        .await
        .unwrap();
    let (mut late, asked) = overtaken(&catalog).await;
    late.stage(records).await.unwrap();
    for change in inline {
        late.inline(change).await.unwrap();
    }
    let made = "inserted_into_table:2,inlined_insert:2";
    let outcome = late.set_snapshot_changes(changes(asked, made)).await;
    assert!(matches!(outcome, Err(StageError::LostRace { .. })), "{outcome:?}");
    assert!(late.has_lost());
}

#[tokio::test]
async fn files_and_rows_that_are_not_new_are_refused() {
    let (key, value) = file(3);
    // One that a flush has written: older, with rows of several snapshots.
    assert_refused(vec![insert(file(2))], Vec::new()).await;
    let flushed = DataFileValue {
        partial_max: Some(2),
        ..value.clone()
    };
    assert_refused(vec![insert((key.clone(), flushed))], Vec::new()).await;
    let with_row_ids = DataFileValue {
        row_id_start: None,
        ..value.clone()
    };
    assert_refused(vec![insert((key.clone(), with_row_ids))], Vec::new()).await;
    let of_old_rows = DataFileValue {
        row_id_start: Some(0),
        ..value.clone()
    };
    assert_refused(vec![insert((key, of_old_rows))], Vec::new()).await;
    // Rows that an update writes anew under the ids they had.
    let row = [[Some(1); TYPES.len()]];
    assert_refused(Vec::new(), vec![inlined(2, 3, 0, &row)]).await;
    assert_refused(Vec::new(), vec![inlined(2, 2, 1, &row)]).await;
}

#[tokio::test]
async fn a_schema_version_that_moves_is_no_append() {
    let (catalog, _) = rebasing_lake().await;
    let mut late = catalog.begin().await.unwrap();
    append(catalog.begin().await.unwrap(), &[rows(1)], "first")
        .await
        .unwrap();
    let seen = seen_snapshot(&late).await;
    let row = SnapshotValue {
        snapshot_id: 2,
        schema_version: seen.schema_version + 1,
        changes_made: String::new(),
        ..seen
    };
    late.insert_snapshot(row).await.unwrap();
    let outcome = late
        .set_snapshot_changes(changes(2, "inserted_into_table:2"))
        .await;
    assert!(matches!(outcome, Err(StageError::LostRace { .. })), "{outcome:?}");
}

/// The statistics of column 1 of table 1 become these meanwhile; whether an append with value 7 is shifted, and to what.
async fn merged_with(change: impl Fn(&mut TableColumnStatsValue)) -> Option<TableColumnStatsValue> {
    let (catalog, _) = rebasing_lake().await;
    append(catalog.begin().await.unwrap(), &[rows(1)], "before")
        .await
        .unwrap();
    let late = catalog.begin().await.unwrap();
    let key = TableColumnStatsKey {
        table_id: 1,
        column_id: 1,
    };
    let mut stats = value(&catalog, &key).await.unwrap();
    change(&mut stats);
    let replaced = Change::Replace {
        old: key.to_key(),
        new: (key.clone(), stats).into(),
    };
    meanwhile(&catalog, "merge_adjacent:1", vec![replaced]).await;
    let outcome = append(late, &[rows(1)], "late").await;
    match outcome {
        Ok(_) => Some(value(&catalog, &key).await.unwrap()),
        Err(_) => {
            assert_lost(&outcome);
            None
        }
    }
}

#[tokio::test]
async fn statistics_are_merged_where_that_is_sure_and_refused_where_it_is_not() {
    let bounds = |stats: TableColumnStatsValue| (stats.min_value, stats.max_value, stats.contains_null);
    let some = |text: &str| Some(text.to_owned());
    let wider = merged_with(|stats| {
        stats.min_value = Some("-20".to_owned());
        stats.max_value = Some("100".to_owned());
        stats.contains_null = Some(true);
    });
    assert_eq!(
        wider.await.map(bounds),
        Some((some("-20"), some("100"), Some(true)))
    );
    let not_known = merged_with(|stats| stats.contains_null = None);
    assert_eq!(not_known.await.map(bounds), Some((some("7"), some("7"), None)));

    assert_eq!(
        merged_with(|stats| stats.min_value = Some("8".to_owned())).await,
        None,
        "narrower"
    );
    assert_eq!(merged_with(|stats| stats.min_value = None).await, None, "in part");
    assert_eq!(
        merged_with(|stats| stats.max_value = Some("many".to_owned())).await,
        None,
        "no number"
    );
    let gone = |stats: &mut TableColumnStatsValue| {
        stats.min_value = None;
        stats.max_value = None;
    };
    assert_eq!(merged_with(gone).await, None, "no bounds any more");
    assert_eq!(
        merged_with(|stats| stats.extra_stats = Some("{}".to_owned())).await,
        None,
        "of another kind"
    );
}

#[tokio::test]
async fn after_it_was_shifted_a_transaction_can_only_commit() {
    let (catalog, _) = rebasing_lake().await;
    let mut late = catalog.begin().await.unwrap();
    let before = late.savepoint();
    append(catalog.begin().await.unwrap(), &[rows(1)], "first")
        .await
        .unwrap();
    let (asked, made) = stage(&mut late, &[rows(2)], "late").await.unwrap();
    late.set_snapshot_changes(changes(asked, &made)).await.unwrap();
    let more = late.stage(vec![insert(file(2))]).await;
    assert!(matches!(more, Err(StageError::LostRace { .. })), "{more:?}");
    let stats = Stats::seen(&late, 2).await;
    assert_eq!(stats.table.record_count, 1);
    late.rollback_to(before);
    let outcome = late.commit().await;
    assert!(
        matches!(outcome, Err(CommitFailure::Conflict { .. })),
        "{outcome:?}"
    );
    // Nothing was written, and the slot is free.
    assert_eq!(
        append(catalog.begin().await.unwrap(), &[rows(2)], "next")
            .await
            .unwrap(),
        3
    );
}
