//! What goes out and comes in again is what it was, record by record.

use std::sync::Arc;

use moraine_codec::{Record, decode_record};
use moraine_commit::Catalog;
use moraine_migrate::Silent;
use moraine_migrate::export::{ExportError, ExportOptions, export};
use moraine_migrate::import::{ImportError, ImportOptions};
use moraine_migrate::lake::{LakeError, open_source, open_target};
use moraine_migrate::verify::{VerifyOptions, verify};
use moraine_store::{FormatState, MemoryStore, Store, check_format};

use crate::support::{export_to, import_from, lake, records, sqlite};

#[tokio::test]
async fn an_imported_lake_has_the_records_of_one_that_was_made_commit_by_commit() {
    let folder = tempfile::tempdir().unwrap();
    let location = sqlite(&folder.path().join("lake.sqlite"));
    let (made, catalog) = lake().await;
    export_to(&catalog, &location).await;
    let imported = Arc::new(MemoryStore::new());
    let report = import_from(&location, &imported, &ImportOptions::default())
        .await
        .unwrap();
    assert_eq!(report.snapshot_id, 6);
    assert!(report.problems.is_empty(), "{}", report.problems);
    assert_eq!(
        check_format(imported.view().unwrap().as_ref()).await,
        Ok(FormatState::Ready)
    );

    let mut findings = Vec::new();
    let view = imported.view().unwrap();
    let mut note = |finding: moraine_commit::check::Finding| findings.push(format!("{finding:?}"));
    let checked = moraine_commit::check::check(view.as_ref(), &mut note)
        .await
        .unwrap();
    assert!(checked.is_sound(), "{findings:#?}");

    let (expected, found) = (records(&made).await, records(&imported).await);
    let names = |records: &std::collections::BTreeMap<bytes::Bytes, bytes::Bytes>| -> Vec<String> {
        let key = |bytes: &bytes::Bytes| moraine_keys::Key::decode(bytes).unwrap().to_string();
        records
            .keys()
            .map(key)
            .filter(|name| !name.starts_with("changelog"))
            .collect()
    };
    assert_eq!(names(&found), names(&expected));
    for (key, value) in &expected {
        let record = decode_record(key, value).unwrap();
        if matches!(
            record,
            Record::Head(..) | Record::Format(..) | Record::Changelog(..)
        ) {
            continue;
        }
        let other = decode_record(key, found.get(key).unwrap()).unwrap();
        assert_eq!(without_what_is_lost(other), without_what_is_lost(record));
    }
}

/// An ended version of a table or a column once knew what is told of the live one by now.
fn without_what_is_lost(record: Record) -> Record {
    match record {
        Record::HistoryColumn(key, mut value) => {
            value.tags.iter_mut().for_each(|tag| tag.end_snapshot = None);
            Record::HistoryColumn(key, value)
        }
        other => other,
    }
}

#[tokio::test]
async fn both_sides_are_compared_and_a_difference_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lake.sqlite");
    let location = sqlite(&path);
    let (_, catalog) = lake().await;
    export_to(&catalog, &location).await;
    let compared = |catalog: Arc<Catalog>| {
        let location = location.clone();
        async move {
            let mut source = open_source(&location).await.unwrap();
            let compared = verify(&catalog, source.as_mut(), &VerifyOptions::default(), &Silent).await;
            let different = compared.unwrap().into_iter().filter(|of| !of.is_equal());
            different.map(|of| of.table).collect::<Vec<_>>()
        }
    };
    assert_eq!(compared(Arc::clone(&catalog)).await, Vec::<String>::new());
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch(
            "UPDATE ducklake_view SET sql = 'SELECT 2'; DELETE FROM ducklake_inlined_delete_1; \
             UPDATE ducklake_inlined_data_1_2 SET end_snapshot = 6 WHERE row_id = 10",
        )
        .unwrap();
    let expected = [
        "ducklake_view",
        "ducklake_inlined_data_1_2",
        "ducklake_inlined_delete_1",
    ];
    assert_eq!(compared(catalog).await, expected);
}

#[tokio::test]
async fn a_place_with_a_lake_is_refused_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let location = sqlite(&folder.path().join("lake.sqlite"));
    let (made, catalog) = lake().await;
    export_to(&catalog, &location).await;
    let refused = open_target(&location).await.map(|_| ());
    assert!(matches!(refused, Err(LakeError::NotEmpty { .. })), "{refused:?}");
    let before = records(&made).await;
    let refused = import_from(&location, &made, &ImportOptions::default()).await;
    assert!(matches!(&refused, Err(ImportError::Bulk(_))), "{refused:?}");
    assert_eq!(records(&made).await, before);
}

#[tokio::test]
async fn an_export_of_nothing_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lake.sqlite");
    let empty = Catalog::with_store(Arc::new(MemoryStore::new()) as Arc<dyn Store>);
    let target = open_target(&sqlite(&path)).await.unwrap();
    let refused = export(&empty, target, &ExportOptions::default(), &Silent).await;
    assert!(matches!(refused, Err(ExportError::NoLake)), "{refused:?}");
    assert!(!path.exists());
}

#[tokio::test]
async fn the_data_path_is_recorded_as_it_was_or_as_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let location = sqlite(&folder.path().join("lake.sqlite"));
    let (_, catalog) = lake().await;
    export_to(&catalog, &location).await;
    let moved = Arc::new(MemoryStore::new());
    let options = ImportOptions {
        data_path: Some("s3://elsewhere/".to_owned()),
        ..ImportOptions::default()
    };
    import_from(&location, &moved, &options).await.unwrap();
    let moved = Catalog::with_store(moved as Arc<dyn Store>);
    let mut source = open_source(&location).await.unwrap();
    let compare = |ignore_data_path| VerifyOptions { ignore_data_path };
    let strictly = verify(&moved, source.as_mut(), &compare(false), &Silent)
        .await
        .unwrap();
    let different: Vec<&str> = strictly
        .iter()
        .filter(|of| !of.is_equal())
        .map(|of| of.table.as_str())
        .collect();
    assert_eq!(different, ["ducklake_metadata"]);
    let loosely = verify(&moved, source.as_mut(), &compare(true), &Silent)
        .await
        .unwrap();
    assert!(loosely.iter().all(|of| of.is_equal()));
}
