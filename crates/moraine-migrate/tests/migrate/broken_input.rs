//! A catalog that is broken is reported with table and row, leaves nothing, and is imported only where a repair is asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use moraine_commit::check::{Finding, check};
use moraine_migrate::import::{ImportError, ImportOptions, ImportReport, Problems};
use moraine_store::{MemoryStore, Store};

use crate::support::{export_to, import_from, lake, records, sqlite};

/// A whole catalog that was broken with SQL, whose import is refused.
struct Refused {
    _folder: tempfile::TempDir,
    path: PathBuf,
    store: Arc<MemoryStore>,
    problems: Problems,
}

impl Refused {
    async fn after(sql: &str) -> Refused {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lake.sqlite");
        let (_, catalog) = lake().await;
        export_to(&catalog, &sqlite(&path)).await;
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(sql).unwrap();
        drop(file);
        let store = Arc::new(MemoryStore::new());
        let refused = import_from(&sqlite(&path), &store, &ImportOptions::default()).await;
        let Err(ImportError::Broken { problems, .. }) = refused else {
            panic!("{sql}: {refused:?}");
        };
        Refused {
            _folder: folder,
            path,
            store,
            problems,
        }
    }

    fn tells(&self, table: &str, words: &str) -> bool {
        let mut found = self.problems.found.iter();
        found.any(|problem| problem.table == table && problem.to_string().contains(words))
    }

    async fn repaired(&self) -> Result<ImportReport, ImportError> {
        let options = ImportOptions {
            repair: true,
            ..ImportOptions::default()
        };
        import_from(&sqlite(&self.path), &self.store, &options).await
    }
}

/// Breaks a whole catalog with SQL: what is found then, and that a repair makes a lake.
async fn broken(sql: &str, expected: &[(&str, &str)]) {
    let refused = Refused::after(sql).await;
    let (problems, store) = (&refused.problems, &refused.store);
    for (table, words) in expected {
        assert!(
            refused.tells(table, words),
            "{sql}: {table}: {words} is not in\n{problems}"
        );
    }
    assert_eq!(records(store).await, BTreeMap::new(), "{sql}");
    let report = refused.repaired().await.unwrap();
    assert_eq!(report.problems.total, problems.total, "{sql}");
    let mut findings = Vec::new();
    let mut note = |finding: Finding| findings.push(format!("{finding:?}"));
    let checked = check(store.view().unwrap().as_ref(), &mut note).await.unwrap();
    assert!(checked.records > 0 && checked.is_sound(), "{sql}: {findings:#?}");
}

#[tokio::test]
async fn ids_that_are_given_twice() {
    broken(
        "CREATE TABLE twice AS SELECT * FROM ducklake_snapshot; INSERT INTO twice SELECT * FROM twice WHERE snapshot_id = 3; \
         DROP TABLE ducklake_snapshot; ALTER TABLE twice RENAME TO ducklake_snapshot",
        &[("ducklake_snapshot", "snapshot_id 3")],
    )
    .await;
    broken(
        "INSERT INTO ducklake_table SELECT * FROM ducklake_table; INSERT INTO ducklake_table_stats VALUES (1, 0, 20, 0)",
        &[("ducklake_table", "table_id 1"), ("ducklake_table_stats", "table_id 1")],
    )
    .await;
    broken(
        "INSERT INTO ducklake_inlined_data_1_2 SELECT * FROM ducklake_inlined_data_1_2 WHERE row_id = 10",
        &[("ducklake_inlined_data_1_2", "row_id 10")],
    )
    .await;
}

#[tokio::test]
async fn counters_that_are_missing_or_behind() {
    broken(
        "UPDATE ducklake_snapshot SET next_file_id = NULL, next_catalog_id = 2 WHERE snapshot_id = 6",
        &[
            ("ducklake_snapshot", "next_file_id is NULL"),
            ("ducklake_snapshot", "next_catalog_id is 2, but id 6 is taken"),
        ],
    )
    .await;
    broken(
        "UPDATE ducklake_snapshot SET next_catalog_id = 19 WHERE snapshot_id = 6",
        &[(
            "ducklake_snapshot",
            "next_catalog_id is 19, but an earlier snapshot has 20",
        )],
    )
    .await;
    broken(
        "DELETE FROM ducklake_table_stats",
        &[("ducklake_table_stats", "table_id 1")],
    )
    .await;
    broken(
        "UPDATE ducklake_table_stats SET next_row_id = 4",
        &[("ducklake_table_stats", "next_row_id is 4, but row id 13 is taken")],
    )
    .await;
}

#[tokio::test]
async fn references_to_nothing() {
    for (sql, table, words) in [
        (
            "UPDATE ducklake_column SET parent_column = 77 WHERE column_id = 2 AND end_snapshot IS NULL",
            "ducklake_column",
            "column 77",
        ),
        (
            "UPDATE ducklake_partition_column SET column_id = 77 WHERE partition_key_index = 0",
            "ducklake_partition_info",
            "column 77",
        ),
        (
            "UPDATE ducklake_data_file SET partition_id = 77 WHERE data_file_id = 0",
            "ducklake_data_file",
            "ducklake_partition_info has no row of its partition_id 77",
        ),
        (
            "UPDATE ducklake_data_file SET mapping_id = 77 WHERE data_file_id = 0",
            "ducklake_data_file",
            "ducklake_column_mapping has no row of its mapping_id 77",
        ),
        (
            "DELETE FROM ducklake_file_partition_value WHERE data_file_id = 0 AND partition_key_index = 1",
            "ducklake_data_file",
            "1 partition values, and partitioning 3 has 2 columns",
        ),
        (
            "UPDATE ducklake_file_column_stats SET data_file_id = 8 WHERE data_file_id = 1",
            "ducklake_file_column_stats",
            "data file 8",
        ),
        (
            "UPDATE ducklake_file_variant_stats SET data_file_id = 8",
            "ducklake_file_variant_stats",
            "data file 8",
        ),
        (
            "INSERT INTO ducklake_table_stats VALUES (9, 0, 0, 0)",
            "ducklake_table_stats",
            "table 9",
        ),
        (
            "UPDATE ducklake_table_column_stats SET table_id = 9",
            "ducklake_table_column_stats",
            "table 9",
        ),
        (
            "UPDATE ducklake_column_mapping SET table_id = 9",
            "ducklake_column_mapping",
            "table 9",
        ),
        (
            "CREATE TABLE ducklake_inlined_data_9_1 AS SELECT * FROM ducklake_inlined_data_1_2; \
             INSERT INTO ducklake_inlined_data_tables VALUES (9, 'ducklake_inlined_data_9_1', 1)",
            "ducklake_inlined_data_9_1",
            "table 9",
        ),
        (
            "CREATE TABLE ducklake_inlined_delete_9 AS SELECT * FROM ducklake_inlined_delete_1",
            "ducklake_inlined_delete_9",
            "table 9",
        ),
    ] {
        broken(sql, &[(table, words)]).await;
    }
}

#[tokio::test]
async fn rows_without_what_they_are_part_of() {
    for (sql, table, words) in [
        (
            "UPDATE ducklake_table SET schema_id = 77",
            "ducklake_table",
            "schema 77",
        ),
        (
            "UPDATE ducklake_view SET schema_id = 77",
            "ducklake_view",
            "schema 77",
        ),
        (
            "UPDATE ducklake_column SET table_id = 8 WHERE column_id = 1",
            "ducklake_column",
            "table 8",
        ),
        (
            "UPDATE ducklake_delete_file SET data_file_id = 8",
            "ducklake_delete_file",
            "data file 8",
        ),
        (
            "UPDATE ducklake_file_partition_value SET data_file_id = 8",
            "ducklake_file_partition_value",
            "data_file_id 8",
        ),
        (
            "UPDATE ducklake_macro_parameters SET impl_id = 4",
            "ducklake_macro_parameters",
            "impl_id 4",
        ),
        (
            "DELETE FROM ducklake_macro_impl",
            "ducklake_macro_parameters",
            "impl_id 0",
        ),
        (
            "DELETE FROM ducklake_column_mapping",
            "ducklake_name_mapping",
            "mapping_id 2",
        ),
    ] {
        broken(sql, &[(table, words)]).await;
    }
}

#[tokio::test]
async fn snapshots_and_inlined_tables_that_are_not_there() {
    for (sql, table, words) in [
        (
            "DELETE FROM ducklake_snapshot_changes WHERE snapshot_id = 2",
            "ducklake_snapshot_changes",
            "snapshot_id 2",
        ),
        (
            "DELETE FROM ducklake_snapshot WHERE snapshot_id = 2",
            "ducklake_snapshot_changes",
            "snapshot_id 2",
        ),
        (
            "UPDATE ducklake_data_file SET begin_snapshot = 50 WHERE data_file_id = 0",
            "ducklake_data_file",
            "after the newest",
        ),
        (
            "DROP TABLE ducklake_inlined_data_1_2",
            "ducklake_inlined_data_tables",
            "which is not there",
        ),
        (
            "DELETE FROM ducklake_inlined_data_tables",
            "ducklake_inlined_data_1_2",
            "does not list it",
        ),
    ] {
        broken(sql, &[(table, words)]).await;
    }
}

#[tokio::test]
async fn values_that_cannot_be() {
    for (sql, table, words) in [
        (
            "UPDATE ducklake_view SET view_name = NULL",
            "ducklake_view",
            "view_name is NULL",
        ),
        (
            "UPDATE ducklake_data_file SET path = NULL WHERE data_file_id = 0",
            "ducklake_data_file",
            "path is NULL",
        ),
        (
            "UPDATE ducklake_column SET column_order = 'first'",
            "ducklake_column",
            "column_order: 'first' is not a bigint",
        ),
        (
            "UPDATE ducklake_snapshot SET snapshot_time = 'noon' WHERE snapshot_id = 2",
            "ducklake_snapshot",
            "snapshot_time: 'noon'",
        ),
        (
            "UPDATE ducklake_table SET begin_snapshot = -1",
            "ducklake_table",
            "begin_snapshot",
        ),
        (
            "UPDATE ducklake_inlined_data_1_2 SET a = 'x' WHERE row_id = 10",
            "ducklake_inlined_data_1_2",
            "a: 'x' is not",
        ),
        (
            "UPDATE ducklake_inlined_data_1_2 SET end_snapshot = 3 WHERE row_id = 10",
            "ducklake_inlined_data_1_2",
            "row_id 10",
        ),
        (
            "ALTER TABLE ducklake_table ADD COLUMN colour VARCHAR",
            "ducklake_table",
            "no column colour",
        ),
        (
            "CREATE TABLE ducklake_weather(a BIGINT)",
            "ducklake_weather",
            "no such table",
        ),
    ] {
        broken(sql, &[(table, words)]).await;
    }
}

#[tokio::test]
async fn other_versions_of_the_specification_are_refused_by_name() {
    for (version, words) in [
        ("'0.1'", "AUTOMATIC_MIGRATION"),
        ("'0.3'", "AUTOMATIC_MIGRATION"),
        ("'0.4'", "AUTOMATIC_MIGRATION"),
        ("'1.1'", "version 1.1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lake.sqlite");
        let (_, catalog) = lake().await;
        export_to(&catalog, &sqlite(&path)).await;
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(&format!(
            "UPDATE ducklake_metadata SET value = {version} WHERE key = 'version'"
        ))
        .unwrap();
        let store = Arc::new(MemoryStore::new());
        let options = ImportOptions {
            repair: true,
            ..ImportOptions::default()
        };
        let refused = import_from(&sqlite(&path), &store, &options)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(words), "{refused}");
        assert_eq!(records(&store).await, BTreeMap::new());
    }
}

#[tokio::test]
async fn what_outlives_its_parent() {
    broken(
        "UPDATE ducklake_table SET end_snapshot = 5",
        &[
            (
                "ducklake_column",
                "table 1, which it belongs to, ended at snapshot 5",
            ),
            ("ducklake_partition_info", "table 1"),
            ("ducklake_sort_info", "table 1"),
            ("ducklake_data_file", "table 1"),
            ("ducklake_delete_file", "table 1"),
        ],
    )
    .await;
    broken(
        "UPDATE ducklake_schema SET end_snapshot = 5",
        &[
            (
                "ducklake_table",
                "schema 0, which it belongs to, ended at snapshot 5",
            ),
            ("ducklake_view", "schema 0"),
            ("ducklake_macro", "schema 0"),
            ("ducklake_column", "table 1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn row_ids_of_files_above_their_counter() {
    broken(
        "UPDATE ducklake_data_file SET row_id_start = 12 WHERE data_file_id = 0",
        &[(
            "ducklake_table_stats",
            "next_row_id is 14, but row id 16 is taken",
        )],
    )
    .await;
}

/// SQL that adds rows of a table again, changed; the table loses its primary key, as other catalogs have none.
fn again(table: &str, rows: &str, change: &str) -> String {
    format!(
        "CREATE TEMP TABLE changed AS SELECT * FROM {table} WHERE {rows}; UPDATE changed SET {change}; \
         CREATE TABLE both AS SELECT * FROM {table}; INSERT INTO both SELECT * FROM changed; DROP TABLE {table}; \
         ALTER TABLE both RENAME TO {table}; DROP TABLE changed"
    )
}

#[tokio::test]
async fn versions_of_one_thing_that_are_there_at_the_same_snapshot() {
    for (table, rows) in [
        ("ducklake_schema", "schema_id = 0"),
        ("ducklake_table", "table_id = 1"),
        ("ducklake_view", "view_id = 5"),
        ("ducklake_macro", "macro_id = 6"),
        ("ducklake_tag", "object_id = 1"),
        ("ducklake_column", "column_id = 2 AND end_snapshot IS NULL"),
        ("ducklake_column_tag", "column_id = 2 AND end_snapshot IS NULL"),
        ("ducklake_partition_info", "partition_id = 3"),
        ("ducklake_sort_info", "sort_id = 4"),
        ("ducklake_data_file", "data_file_id = 0"),
        ("ducklake_delete_file", "delete_file_id = 3"),
    ] {
        for (change, words) in [
            (
                "begin_snapshot = 5",
                "it lives from snapshot 5 on, and another version of it lives from",
            ),
            (
                "begin_snapshot = 4, end_snapshot = 5",
                "it lives from snapshot 4 to 5, and another version of it lives from",
            ),
        ] {
            broken(&again(table, rows, change), &[(table, words)]).await;
        }
    }
    broken(
        "UPDATE ducklake_column SET end_snapshot = 4 WHERE column_id = 2 AND end_snapshot = 2",
        &[(
            "ducklake_column",
            "it lives from snapshot 2 on, and another version of it lives from snapshot 1 to 4",
        )],
    )
    .await;
    let ended = "UPDATE ducklake_partition_info SET end_snapshot = 5;";
    let later = again(
        "ducklake_partition_info",
        "partition_id = 3",
        "begin_snapshot = 4, end_snapshot = NULL",
    );
    broken(
        &format!("{ended} {later}"),
        &[("ducklake_partition_info", "lives from snapshot 1 to 5")],
    )
    .await;
}

#[tokio::test]
async fn live_files_that_wait_to_be_deleted() {
    for (table, id) in [
        ("ducklake_data_file", "data_file_id"),
        ("ducklake_delete_file", "delete_file_id"),
    ] {
        broken(
            &format!(
                "INSERT INTO ducklake_files_scheduled_for_deletion \
                 SELECT {id}, path, path_is_relative, '2026-01-01 00:00:00+00' FROM {table} WHERE end_snapshot IS NULL"
            ),
            &[(
                "ducklake_files_scheduled_for_deletion",
                &format!("{table} has a row of it that lives, of table 1"),
            )],
        )
        .await;
    }
}

#[tokio::test]
async fn counters_and_schema_versions_that_fall() {
    for (change, words) in [
        (
            "next_file_id = 30 WHERE snapshot_id = 3",
            "next_file_id is 20, but an earlier snapshot has 30",
        ),
        (
            "next_catalog_id = 5 WHERE snapshot_id = 3",
            "next_catalog_id is 5, but an earlier snapshot has 20",
        ),
        (
            "next_catalog_id = NULL WHERE snapshot_id = 3",
            "next_catalog_id is NULL",
        ),
        (
            "schema_version = 1 WHERE snapshot_id = 5",
            "schema_version is 1, but an earlier snapshot has 2",
        ),
        (
            "schema_version = 3 WHERE snapshot_id = 5",
            "schema_version is 2, but an earlier snapshot has 3",
        ),
    ] {
        let sql = format!("UPDATE ducklake_snapshot SET {change}");
        broken(&sql, &[("ducklake_snapshot", words)]).await;
    }
}

#[tokio::test]
async fn what_no_repair_can_make_good_is_refused_by_name() {
    let other_file = again(
        "ducklake_data_file",
        "data_file_id = 0",
        "begin_snapshot = 5, path = 'g.parquet'",
    );
    for (sql, table, words) in [
        (
            other_file.as_str(),
            "ducklake_data_file",
            "it lives from snapshot 5 on, and another version of it lives from snapshot 3 on",
        ),
        (
            "UPDATE ducklake_snapshot SET schema_version = 7 WHERE snapshot_id = 1",
            "ducklake_snapshot",
            "schema_version is 2, but an earlier snapshot has 7",
        ),
        (
            "UPDATE ducklake_inlined_data_1_2 SET end_snapshot = NULL WHERE row_id = 11",
            "ducklake_inlined_data_1_*",
            "it begins while another version of the row is there",
        ),
    ] {
        let refused = Refused::after(sql).await;
        assert!(refused.tells(table, words), "{sql}: {}", refused.problems);
        let hopeless = refused.repaired().await;
        let Err(error @ ImportError::Hopeless { .. }) = hopeless else {
            panic!("{sql}: {hopeless:?}");
        };
        let error = error.to_string();
        assert!(error.contains(table) && error.contains(words), "{sql}: {error}");
        assert_eq!(records(&refused.store).await, BTreeMap::new(), "{sql}");
    }
}
