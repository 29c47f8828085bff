//! Asking for snapshots: by id, by time, read only; and what a lookup costs.

use std::time::{Duration, SystemTime};

use moraine_commit::lake::{LakeError, OptionScope, ReadOnlyLake, SnapshotAt};
use moraine_commit::verbs::VerbError;
use moraine_commit::{Catalog, CatalogOptions, OpenOptions, ReadPoint, StoreUrl};
use moraine_store::{MemoryStore, Store};

use super::{create_table, file, lake_with_table};

#[tokio::test]
async fn a_snapshot_is_found_by_id_and_by_time() {
    let (catalog, _store) = lake_with_table().await;
    for name in ["a", "b", "c"] {
        create_table(&catalog, name).await;
    }
    let snapshots = catalog.snapshots().await.unwrap();
    let ids: Vec<u64> = snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert!(snapshots.is_sorted_by(|left, right| left.time_micros < right.time_micros));
    for snapshot in &snapshots {
        let at = SnapshotAt::TimeMicros(snapshot.time_micros);
        assert_eq!(catalog.snapshot_at(at).await.unwrap().info(), snapshot);
        assert_eq!(
            catalog.snapshot_at(snapshot.snapshot_id).await.unwrap().info(),
            snapshot
        );
    }
    let later = SystemTime::now() + Duration::from_secs(60);
    assert_eq!(catalog.snapshot_at(later).await.unwrap().id(), 4);
    let at_the_beginning = catalog.snapshot_at(SystemTime::UNIX_EPOCH).await;
    assert!(matches!(at_the_beginning, Err(LakeError::NothingAtTime { .. })));
    let to_come = catalog.snapshot_at(5).await;
    assert!(matches!(
        to_come,
        Err(LakeError::NoSuchSnapshot { newest: 4, .. })
    ));
    let expired = catalog.commit(|tx| async move { tx.expire_snapshots(&[2, 3]).await });
    expired.await.unwrap();
    assert!(matches!(
        catalog.snapshot_at(3).await,
        Err(LakeError::SnapshotExpired { snapshot_id: 3 })
    ));
    let between = SnapshotAt::TimeMicros(snapshots[3].time_micros);
    assert_eq!(catalog.snapshot_at(between).await.unwrap().id(), 1);
}

#[tokio::test]
async fn a_snapshot_does_not_change() {
    let (catalog, _store) = lake_with_table().await;
    let reader = catalog.read_only();
    let before = reader.snapshot().await.unwrap();
    let changed = catalog.commit(|tx| async move {
        tx.rename_table(1, "u").await?;
        tx.drop_column(1, "name").await?;
        tx.add_data_files(1, vec![file("f.parquet", 1, (1, 1))]).await
    });
    changed.await.unwrap();
    assert_eq!(before.table("main", "t").await.unwrap().unwrap().table_id, 1);
    assert_eq!(before.columns(1).await.unwrap().len(), 2);
    assert!(
        before
            .data_files(1)
            .await
            .unwrap()
            .next()
            .await
            .unwrap()
            .is_none()
    );
    let again = reader.snapshot_at(before.id()).await.unwrap();
    assert_eq!(again.table("main", "t").await.unwrap().unwrap().name, "t");
    assert_eq!(again.columns(1).await.unwrap().len(), 2);
    let after = reader.snapshot().await.unwrap();
    assert!(after.table("main", "t").await.unwrap().is_none());
    assert_eq!(after.columns(1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_table_is_found_by_name_without_reading_the_others() {
    let (catalog, store) = lake_with_table().await;
    let lookup = async |name: &str| {
        let snapshot = catalog.snapshot().await.unwrap();
        let before = store.reads();
        assert!(snapshot.table("main", name).await.unwrap().is_some());
        store.reads() - before
    };
    let alone = lookup("t").await;
    for number in 0..20 {
        create_table(&catalog, &format!("table{number}")).await;
    }
    // What has been read whole before is not read at all.
    assert!(lookup("t").await <= alone);
    assert!(lookup("table19").await <= alone);
}

#[tokio::test]
async fn a_commit_reads_no_more_after_a_long_history() {
    let (catalog, store) = lake_with_table().await;
    let commit = async |number: u64| {
        let path = &format!("{number}.parquet");
        let before = store.reads();
        let added =
            catalog.commit(|tx| async move { tx.add_data_files(1, vec![file(path, 1, (1, 1))]).await });
        added.await.unwrap();
        store.reads() - before
    };
    commit(0).await;
    let early = commit(1).await;
    for number in 2..100 {
        commit(number).await;
    }
    let later = commit(100).await;
    for number in 101..200 {
        commit(number).await;
    }
    assert_eq!(commit(200).await, later);
    assert!(later < early, "what every commit reads is kept after a while");
    // The head where it begins, where it takes its snapshot, and where it is written; the newest snapshot; and that there is no
    // record yet of its own snapshot, its file, and the statistics of that file's column.
    assert_eq!(later, 7);
}

#[tokio::test]
async fn options_hold_in_the_narrowest_scope() {
    let (catalog, _store) = lake_with_table().await;
    let set = catalog.commit(|tx| async move {
        tx.set_option(OptionScope::Global, "target_file_size", "1")
            .await?;
        tx.set_option(OptionScope::Schema(0), "target_file_size", "2")
            .await?;
        tx.set_option(OptionScope::Table(1), "target_file_size", "3")
            .await
    });
    assert_eq!(set.await.unwrap().snapshot_id, None, "options make no snapshot");
    let held = async || {
        let newest = catalog.snapshot().await.unwrap();
        newest.table_option(1, "target_file_size").await.unwrap()
    };
    assert_eq!(held().await.as_deref(), Some("3"));
    let unset =
        catalog.commit(|tx| async move { tx.unset_option(OptionScope::Table(1), "target_file_size").await });
    unset.await.unwrap();
    assert_eq!(held().await.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_read_only_handle_shuts_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let url: StoreUrl = folder.path().to_str().unwrap().parse().unwrap();
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let writer = Catalog::open(&url, &options).await.unwrap();
    writer.create(Some("data/"), false).await.unwrap();
    create_table(&writer, "t").await;
    let newest = ReadPoint::Newest {
        poll_interval: Duration::from_secs(60),
    };
    let reader = ReadOnlyLake::open(&url, newest, &CatalogOptions::default())
        .await
        .unwrap();
    let seen = reader.snapshot().await.unwrap();
    assert!(seen.table("main", "t").await.unwrap().is_some());
    create_table(&writer, "u").await;
    assert!(seen.table("main", "u").await.unwrap().is_none());
    assert_eq!(writer.snapshot().await.unwrap().id(), 2);
    writer.close().await.unwrap();
}

#[tokio::test]
async fn a_store_without_a_lake_says_so() {
    let catalog = Catalog::with_store(std::sync::Arc::new(MemoryStore::new()));
    assert!(matches!(catalog.snapshot().await, Err(LakeError::NoLake)));
    let committed = catalog
        .commit(|tx| async move { tx.create_schema("s").await })
        .await;
    let Err(moraine_commit::verbs::CommitError::Refused(VerbError::NotFound { .. })) = committed else {
        panic!("{committed:?}");
    };
}
