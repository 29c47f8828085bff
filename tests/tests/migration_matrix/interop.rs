//! A lake that crate `moraine` 0.7.0 wrote, through its own interfaces, with every row of every table as that crate reports
//! it. The ordinary tests take the one in the repository; `cargo xtask interop` has the crate write another, and read what
//! was done to it here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use moraine_codec::Record;
use moraine_codec::proto::{DataFileValue, SchemaValue, SnapshotValue};
use moraine_commit::{Catalog, Change, CommitFailure, InlineChange, SnapshotChanges};
use moraine_keys::{
    ColumnKey, DataFileKey, HistoryKey, IndexDefinitionKey, Key, KeyRange, Kind, SchemaKey, TableKey,
    TableScoped,
};
use moraine_migrate::units::{MigrateOptions, Unobserved, migrate};
use moraine_store::{OpenOptions, ReadExt, StoreUrl, collect, open, open_reader};

use crate::fixtures::copy;
use crate::rows::{self, Rows};

/// The environment variable that names the program which crate 0.7.0 is built into (`interop` in the repository).
const PROGRAM: &str = "MORAINE_0_7_0";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/moraine-0.7.0")
}

/// Has the program write or read a lake, and returns what it reports.
fn run(program: &str, what: &str, folder: &Path) -> serde_json::Value {
    let output = Command::new(program).arg(what).arg(folder).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A lake of crate 0.7.0 that may be written to, and what the crate says of it.
fn lake() -> (tempfile::TempDir, serde_json::Value) {
    let scratch = tempfile::tempdir().unwrap();
    let report = match std::env::var(PROGRAM) {
        Ok(program) => run(&program, "write", scratch.path()),
        Err(_) => {
            copy(&repository().join("store"), scratch.path());
            let text = std::fs::read_to_string(repository().join("report.json")).unwrap();
            serde_json::from_str(&text).unwrap()
        }
    };
    (scratch, report)
}

fn url(folder: &Path) -> StoreUrl {
    folder.to_str().unwrap().parse().unwrap()
}

fn reported(report: &serde_json::Value) -> Rows {
    let relations = report["relations"].as_object().unwrap();
    let texts = |rows: &serde_json::Value| {
        let mut texts: Vec<String> = rows.as_array().unwrap().iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    };
    let mut rows: Rows = relations
        .iter()
        .map(|(name, rows)| (name.clone(), texts(rows)))
        .collect();
    // The one difference: every client of a Postgres catalog asks for the version of DuckLake's specification, so it is
    // served whether or not a lake says it. The crate's lakes do not: its clients have it from its DuckDB extension.
    let metadata = rows.entry("ducklake_metadata".to_owned()).or_default();
    metadata.push(r#"["version","1.0",null,null]"#.to_owned());
    metadata.sort();
    rows
}

/// Our rows, without the inlined tables that a flush has taken off the list: crate 0.7.0 reports none of those.
async fn ours(catalog: &Arc<Catalog>) -> Rows {
    let listed = rows::registered(catalog).await;
    let mut rows = rows::all(catalog).await;
    rows.retain(|name, _| {
        !name.starts_with("ducklake_inlined_data_")
            || name == "ducklake_inlined_data_tables"
            || listed.contains(name)
    });
    rows
}

async fn catalog(folder: &Path) -> Arc<Catalog> {
    Catalog::with_store(open(&url(folder), &OpenOptions::default()).await.unwrap())
}

/// Definitions and entries of indexes, as they lie there.
async fn index_records(folder: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let reader = open_reader(&url(folder), &OpenOptions::default()).await.unwrap();
    let records = collect(
        moraine_store::Read::scan(&*reader, KeyRange::all())
            .await
            .unwrap(),
    )
    .await
    .unwrap();
    reader.close().await.unwrap();
    let is_of_index = |key: &Key| match key {
        Key::Index(_) => true,
        Key::Current(_) | Key::History(HistoryKey { .. }) => key.kind_name().ends_with("/index"),
        _ => false,
    };
    records
        .into_iter()
        .filter(|(key, _)| is_of_index(&Key::decode(key).unwrap()))
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

#[tokio::test]
async fn a_lake_of_crate_0_7_0_reads_as_that_crate_says_before_and_after_a_migration() {
    let (scratch, report) = lake();
    let expected = reported(&report);
    let indexes = index_records(scratch.path()).await;
    assert!(indexes.len() > 50, "{} index records", indexes.len());

    let as_it_is = catalog(scratch.path()).await;
    assert_eq!(
        rows::difference(&ours(&as_it_is).await, &expected),
        None,
        "as it is"
    );
    as_it_is.close().await.unwrap();

    let migrated = migrate(&url(scratch.path()), &MigrateOptions::default(), &mut Unobserved)
        .await
        .unwrap();
    assert_eq!((migrated.from_format, migrated.to_format), (9, 12));
    let catalog = catalog(scratch.path()).await;
    assert_eq!(
        rows::difference(&ours(&catalog).await, &expected),
        None,
        "migrated"
    );
    catalog.close().await.unwrap();
    assert!(
        index_records(scratch.path()).await == indexes,
        "indexes stay as they are"
    );
}

/// The id of the table `indexed`, and the column that its unique index is on.
async fn indexed(catalog: &Arc<Catalog>) -> (u64, u64) {
    let tx = catalog.begin().await.unwrap();
    let indexes = tx
        .read()
        .records::<IndexDefinitionKey>(IndexDefinitionKey::scan())
        .await
        .unwrap();
    let (_, index) = indexes.iter().find(|(_, index)| index.unique).unwrap();
    (index.table_id, index.column_ids[0])
}

/// Commits changes in a snapshot that says it made `made`.
async fn commit(
    catalog: &Arc<Catalog>,
    made: &str,
    changes: Vec<Change>,
    inline: Option<InlineChange>,
) -> Result<(), CommitFailure> {
    let mut tx = catalog.begin().await.unwrap();
    let newest = tx.newest_snapshot_id().unwrap();
    let before = moraine_keys::SnapshotKey { snapshot_id: newest };
    let before = tx.read().value(&before).await.unwrap().unwrap();
    let snapshot = SnapshotValue {
        snapshot_id: newest + 1,
        changes_made: String::new(),
        author: None,
        commit_message: None,
        schema_changed_table_ids: Vec::new(),
        deleted_data_file_ids: Vec::new(),
        next_catalog_id: before.next_catalog_id + 1,
        next_file_id: before.next_file_id + 1,
        ..before
    };
    tx.insert_snapshot(snapshot).await.unwrap();
    let row = SnapshotChanges {
        snapshot_id: newest + 1,
        changes_made: Some(made.to_owned()),
        ..SnapshotChanges::default()
    };
    tx.set_snapshot_changes(row).await.unwrap();
    tx.stage(changes).await.unwrap();
    if let Some(inline) = inline {
        tx.inline(inline).await.unwrap();
    }
    tx.commit().await.map(|_| ())
}

fn file(table_id: u64, data_file_id: u64, begin_snapshot: u64) -> Change {
    let value = DataFileValue {
        table_id,
        data_file_id,
        begin_snapshot,
        path: "new.parquet".to_owned(),
        record_count: 5,
        ..DataFileValue::default()
    };
    let key = DataFileKey {
        table_id,
        data_file_id,
    };
    Change::Insert(Record::DataFile(key, value))
}

#[tokio::test]
async fn commits_that_would_leave_index_entries_stale_are_refused() {
    let (scratch, _) = lake();
    migrate(&url(scratch.path()), &MigrateOptions::default(), &mut Unobserved)
        .await
        .unwrap();
    let catalog = catalog(scratch.path()).await;
    let (table, column) = indexed(&catalog).await;
    let next = catalog.begin().await.unwrap().newest_snapshot_id().unwrap() + 1;
    let column_key = ColumnKey {
        table_id: table,
        column_id: column,
    };
    let read = catalog.begin().await.unwrap();
    let before = read.read().value(&column_key).await.unwrap().unwrap();
    drop(read);
    let dropped = {
        let mut ended = before.clone();
        ended.end_snapshot = Some(next);
        Change::Replace {
            old: column_key.to_key(),
            new: Record::Column(column_key.clone(), ended),
        }
    };
    let file_delete = InlineChange::InsertFileDeletes {
        table_id: table,
        rows: vec![(0, 3, next)],
    };
    let inserted = format!("inserted_into_table:{table}");
    let refused = [
        commit(&catalog, &inserted, vec![file(table, 9001, next)], None).await,
        commit(&catalog, &format!("altered_table:{table}"), vec![dropped], None).await,
        commit(
            &catalog,
            &format!("inlined_delete:{table}"),
            Vec::new(),
            Some(file_delete),
        )
        .await,
    ];
    for outcome in refused {
        let Err(CommitFailure::Constraint { detail }) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            detail.contains("by_id") && detail.contains("moraine drop-index"),
            "{detail}"
        );
    }
    // Rows that are only written elsewhere keep their ids, and other tables are free.
    let merged = vec![a_file_goes(&catalog, table).await, file(table, 9002, next - 1)];
    commit(&catalog, &format!("merge_adjacent:{table}"), merged, None)
        .await
        .unwrap();
    let other = another_table(&catalog, table).await;
    let next = next + 1;
    commit(
        &catalog,
        &format!("inserted_into_table:{other}"),
        vec![file(other, 9003, next)],
        None,
    )
    .await
    .unwrap();
    catalog.close().await.unwrap();
}

#[tokio::test]
async fn indexes_end_when_they_are_dropped_and_with_their_tables() {
    let (scratch, _) = lake();
    let catalog = catalog(scratch.path()).await;
    let (table, _) = indexed(&catalog).await;
    let inserted = format!("inserted_into_table:{table}");
    let no_such = catalog
        .drop_indexes(&BTreeSet::from(["by_nothing".to_owned()]))
        .await;
    assert!(no_such.unwrap_err().to_string().contains("'by_id' of table"));
    let dropped = catalog
        .drop_indexes(&BTreeSet::from(["by_id".to_owned()]))
        .await
        .unwrap();
    assert_eq!(dropped.entries, 50);
    let next = dropped.snapshot_id.unwrap() + 1;
    let again = commit(&catalog, &inserted, vec![file(table, 9004, next)], None).await;
    assert!(
        again.unwrap_err().to_string().contains("by_name"),
        "the other index is still there"
    );
    drop_table(&catalog, table).await;
    let tx = catalog.begin().await.unwrap();
    let left = tx
        .read()
        .records::<IndexDefinitionKey>(IndexDefinitionKey::scan())
        .await
        .unwrap();
    assert_eq!(left, [], "indexes end with their table");
    drop(tx);
    catalog.close().await.unwrap();
}

async fn a_file_goes(catalog: &Arc<Catalog>, table: u64) -> Change {
    let tx = catalog.begin().await.unwrap();
    let files = tx
        .read()
        .keys::<DataFileKey>(DataFileKey::scan_table(table))
        .await
        .unwrap();
    Change::Remove {
        key: files[0].to_key(),
    }
}

async fn another_table(catalog: &Arc<Catalog>, table: u64) -> u64 {
    let tx = catalog.begin().await.unwrap();
    let tables = tx.read().keys::<TableKey>(TableKey::scan()).await.unwrap();
    tables
        .iter()
        .map(|key| key.table_id)
        .find(|id| *id != table)
        .unwrap()
}

async fn drop_table(catalog: &Arc<Catalog>, table_id: u64) {
    let tx = catalog.begin().await.unwrap();
    let key = TableKey { table_id };
    let end = tx.newest_snapshot_id().unwrap() + 1;
    let mut value = tx.read().value(&key).await.unwrap().unwrap();
    drop(tx);
    value.end_snapshot = Some(end);
    let change = Change::Replace {
        old: key.to_key(),
        new: Record::Table(key, value),
    };
    commit(catalog, &format!("dropped_table:{table_id}"), vec![change], None)
        .await
        .unwrap();
}

#[tokio::test]
async fn crate_0_7_0_reads_what_was_done_to_its_lake_without_a_migration() {
    let Ok(program) = std::env::var(PROGRAM) else {
        return;
    };
    let (scratch, _) = lake();
    let catalog = catalog(scratch.path()).await;
    let (table, _) = indexed(&catalog).await;
    let other = another_table(&catalog, table).await;
    let next = catalog.begin().await.unwrap().newest_snapshot_id().unwrap() + 1;
    let schema = SchemaValue {
        schema_id: 9000,
        schema_uuid: "50000000-0000-4000-8000-000000000000".to_owned(),
        begin_snapshot: next,
        schema_name: "by another".to_owned(),
        path: "s/".to_owned(),
        path_is_relative: true,
        ..SchemaValue::default()
    };
    let changes = vec![
        Change::Insert(Record::Schema(SchemaKey { schema_id: 9000 }, schema)),
        file(other, 9001, next),
    ];
    let made = format!("created_schema:\"by another\",inserted_into_table:{other}");
    commit(&catalog, &made, changes, None).await.unwrap();
    let expected = ours(&catalog).await;
    catalog.close().await.unwrap();
    let found = reported(&run(&program, "dump", scratch.path()));
    assert_eq!(rows::difference(&found, &expected), None);
}
