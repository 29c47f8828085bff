//! A lake that is opened for reading only, beside its writer.

use std::sync::Arc;
use std::time::Duration;

use moraine_codec::format;
use moraine_codec::proto::{FormatValue, HeadValue};
use moraine_commit::lake::ReadOnlyLake;
use moraine_commit::{
    Access, Catalog, CatalogError, CatalogOptions, CommitFailure, OpenError, OpenOptions, ReadError,
    ReadPoint, StageError, StoreUrl,
};
use moraine_keys::{FormatKey, HeadKey, Kind};

use crate::support::{begin_snapshot, commit, head, insert, insert_snapshot, table};

async fn writer(url: &StoreUrl) -> Arc<Catalog> {
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let catalog = Catalog::open(url, &options).await.unwrap();
    catalog.create(Some("data/"), false).await.unwrap();
    catalog
}

fn following() -> ReadPoint {
    ReadPoint::Newest {
        poll_interval: Duration::from_millis(10),
    }
}

async fn reader(url: &StoreUrl) -> Arc<Catalog> {
    let options = CatalogOptions {
        access: Access::Read(following()),
        ..CatalogOptions::default()
    };
    Catalog::open(url, &options).await.unwrap()
}

/// Waits until the reader is at a snapshot or fails.
async fn until(reader: &Arc<Catalog>, snapshot_id: u64) -> Result<(), CatalogError> {
    let reached = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if reader.begin().await?.newest_snapshot_id() == Some(snapshot_id) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    reached.await.unwrap()
}

#[tokio::test]
async fn what_would_write_is_refused_by_type() {
    let url: StoreUrl = "memory://commit-read-only".parse().unwrap();
    let writer = writer(&url).await;
    commit(&writer, "", vec![insert(table(1, 1, "t"))]).await;
    let reader = reader(&url).await;
    until(&reader, 1).await.unwrap();
    let mut transaction = reader.begin().await.unwrap();
    insert_snapshot(&mut transaction, 2, "").await.unwrap();
    transaction.stage(vec![insert(table(2, 2, "u"))]).await.unwrap();
    let refused = transaction.commit().await.unwrap_err();
    assert!(
        matches!(
            &refused,
            CommitFailure::Abandoned(StageError::Read(ReadError::ReadOnly))
        ),
        "{refused:?}"
    );
    assert_eq!(head(&writer).await.snapshot_id, 1);
    commit(&writer, "", vec![insert(table(2, 2, "u"))]).await;
    until(&reader, 2).await.unwrap();
}

#[tokio::test]
async fn a_handle_that_cannot_write_shows_snapshots_as_they_come() {
    let url: StoreUrl = "memory://commit-read-only-lake".parse().unwrap();
    let missing = ReadOnlyLake::open(&url, following(), &CatalogOptions::default())
        .await
        .map(|_| ());
    assert!(matches!(missing, Err(OpenError::NotFound { .. })), "{missing:?}");
    let writer = writer(&url).await;
    commit(&writer, "", vec![insert(table(1, 1, "t"))]).await;
    let lake = ReadOnlyLake::open(&url, following(), &CatalogOptions::default())
        .await
        .unwrap();
    let first = lake.snapshot().await.unwrap();
    commit(&writer, "", vec![insert(table(2, 2, "u"))]).await;
    let seen = tokio::time::timeout(Duration::from_secs(30), async {
        while lake.snapshot().await.unwrap().id() != 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    seen.await.unwrap();
    assert_eq!(first.tables().await.unwrap().len(), 1);
    assert_eq!(lake.snapshot().await.unwrap().tables().await.unwrap().len(), 2);
    assert_eq!(
        lake.snapshot_at(1).await.unwrap().tables().await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn a_store_that_a_newer_version_has_migrated_is_refused_by_number() {
    let url: StoreUrl = "memory://commit-read-only-newer".parse().unwrap();
    let writer = writer(&url).await;
    let reader = reader(&url).await;
    until(&reader, 0).await.unwrap();
    drop(begin_snapshot(&writer, "").await);
    let mut migration = writer.store().begin().unwrap();
    let newer = FormatValue {
        format_version: format::CURRENT + 1,
        writer_version: "a newer one".to_owned(),
    };
    let moved = HeadValue {
        snapshot_id: 0,
        batch_seq: 1,
    };
    let stamp = moraine_codec::encode(&FormatKey, &newer).unwrap();
    migration.put(FormatKey.encode(), stamp).unwrap();
    let stamp = moraine_codec::encode(&HeadKey, &moved).unwrap();
    migration.put(HeadKey.encode(), stamp).unwrap();
    migration.commit().await.unwrap().durable().await.unwrap();
    let refused = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if let Err(refused) = reader.begin().await {
                return refused;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let refused = refused.await.unwrap();
    assert!(
        matches!(refused, CatalogError::NewerFormat { found, .. } if found == format::CURRENT + 1),
        "{refused:?}"
    );
}
