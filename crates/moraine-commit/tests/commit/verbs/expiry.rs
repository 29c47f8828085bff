//! Expired snapshots, and what goes with them.

use moraine_commit::lake::OptionScope;
use moraine_keys::{ColumnKey, DataFileKey, FileColumnStatsKey, History, SchemaVersionKey, TableKey};

use super::{create_table, file, lake_with_table};
use crate::support::keys;

#[tokio::test]
async fn what_only_expired_snapshots_saw_goes_and_its_files_are_scheduled() {
    let (catalog, _store) = lake_with_table().await;
    create_table(&catalog, "stays").await;
    let added = catalog.commit(|tx| async move {
        tx.add_data_files(1, vec![file("a.parquet", 1, (1, 1))]).await?;
        tx.add_data_files(("main", "stays"), vec![file("b.parquet", 1, (1, 1))])
            .await?;
        tx.set_option(OptionScope::Table(1), "x", "y").await
    });
    added.await.unwrap();
    let dropped = catalog.commit(|tx| async move {
        tx.drop_table(1).await?;
        tx.drop_data_files(("main", "stays"), &[1]).await
    });
    dropped.await.unwrap();
    let expired = catalog.commit(|tx| async move { tx.expire_snapshots(&[1, 2]).await });
    assert_eq!(expired.await.unwrap().snapshot_id, None);
    assert_eq!(
        keys::<History<DataFileKey>>(&catalog).await.len(),
        2,
        "snapshot 3 sees both files"
    );
    let expired = catalog.commit(|tx| async move { tx.expire_snapshots(&[3]).await });
    expired.await.unwrap();
    assert!(keys::<History<DataFileKey>>(&catalog).await.is_empty());
    assert!(keys::<FileColumnStatsKey>(&catalog).await.is_empty());
    assert!(keys::<History<TableKey>>(&catalog).await.is_empty());
    assert!(keys::<History<ColumnKey>>(&catalog).await.is_empty());
    let versions = keys::<SchemaVersionKey>(&catalog).await;
    assert!(
        versions.iter().all(|key| key.table_id == 2),
        "those of the dead table are gone"
    );
    let newest = catalog.snapshot().await.unwrap();
    let scheduled = newest.scheduled_files().await.unwrap();
    let paths: Vec<&str> = scheduled.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["main/t/a.parquet", "main/stays/b.parquet"]);
    let ids: Vec<u64> = catalog
        .snapshots()
        .await
        .unwrap()
        .iter()
        .map(|info| info.snapshot_id)
        .collect();
    assert_eq!(ids, [0, 4]);
}
