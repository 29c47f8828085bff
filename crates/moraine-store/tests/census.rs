//! What the census and the listing of stores report.

use moraine_keys::Subspace;
use moraine_store::census::take;
use moraine_store::{Bytes, OpenError, OpenOptions, Store, StoreUrl, list_stores, open, open_reader};

use crate::support::lake::{genesis, key, put};

#[tokio::test]
async fn every_record_is_counted_once_and_unknown_ones_are_shown() {
    let url: StoreUrl = "memory://census/counts".parse().unwrap();
    let store = open(&url, &OpenOptions::create()).await.unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    let unknown: Vec<_> = (0..10)
        .map(|id| (key(200, id), Bytes::from_static(b"12345")))
        .collect();
    put(store.as_ref(), &unknown).await.unwrap();

    let reader = open_reader(&url, &OpenOptions::default()).await.unwrap();
    let census = take(reader.as_ref()).await.unwrap();
    assert_eq!(census, take(store.view().unwrap().as_ref()).await.unwrap());
    assert_eq!(
        census.format.as_ref().map(|format| format.format_version),
        Some(12)
    );
    assert_eq!(census.head.as_ref().map(|head| head.snapshot_id), Some(0));
    assert_eq!(census.migration, None);
    let kinds: Vec<_> = census
        .kinds
        .iter()
        .map(|(kind, tally)| (*kind, tally.records))
        .collect();
    assert_eq!(kinds.iter().map(|(_, records)| records).sum::<u64>(), 4);
    assert!(kinds.contains(&("current/schema", 1)), "{kinds:?}");
    assert_eq!(
        census.subspaces.get(&Subspace::System).map(|tally| tally.records),
        Some(2)
    );
    assert_eq!(
        (
            census.unknown.records,
            census.unknown.key_bytes,
            census.unknown.value_bytes
        ),
        (10, 90, 50)
    );
    assert_eq!(
        census.unknown_keys,
        (0..8).map(|id| key(200, id)).collect::<Vec<_>>()
    );

    put(store.as_ref(), &[(key(201, 0), Bytes::new())]).await.unwrap();
    reader.close().await.unwrap();
}

#[tokio::test]
async fn sizes_come_from_the_manifest_by_subspace() {
    let objects: std::sync::Arc<dyn object_store::ObjectStore> =
        std::sync::Arc::new(object_store::memory::InMemory::new());
    let store = moraine_store::SlateStore::open_on(objects.clone(), "lake", &OpenOptions::create())
        .await
        .unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    assert_eq!(store.storage_size().subspaces, [], "nothing has left the log yet");
    store.close().await.unwrap();
    crate::damaged_bytes::flush_memtable(objects.clone(), "lake").await;

    let reader = moraine_store::SlateReader::open_on(objects, "lake", &OpenOptions::default())
        .await
        .unwrap();
    let size = reader.storage_size();
    let subspaces: Vec<_> = size
        .subspaces
        .iter()
        .map(|part| (part.subspace, part.ssts))
        .collect();
    let expected = [Subspace::System, Subspace::Current, Subspace::Name].map(|subspace| (Some(subspace), 1));
    assert_eq!(subspaces, expected);
    assert!(size.subspaces.iter().all(|part| part.bytes > 0), "{size:?}");
    assert_eq!(size.writer_epoch, 2);
}

#[tokio::test]
async fn stores_below_a_root_are_listed_in_order_and_not_deeper_than_asked() {
    let folder = tempfile::tempdir().unwrap();
    let root: StoreUrl = folder.path().to_str().unwrap().parse().unwrap();
    for lake in [
        "catalog/b/main",
        "catalog/a/other",
        "catalog/a/main",
        "deep/er/and/deeper",
    ] {
        open(&root.join(lake), &OpenOptions::create())
            .await
            .unwrap()
            .close()
            .await
            .unwrap();
    }
    std::fs::create_dir_all(folder.path().join("data/a/main")).unwrap();
    let names = |stores: Vec<StoreUrl>| {
        let root = format!("{root}/");
        stores
            .iter()
            .map(|url| url.to_string().replace(&root, ""))
            .collect::<Vec<_>>()
    };
    let options = OpenOptions::default();
    let found = names(list_stores(&root, 3, &options).await.unwrap());
    assert_eq!(found, ["catalog/a/main", "catalog/a/other", "catalog/b/main"]);
    assert_eq!(
        names(list_stores(&root, 2, &options).await.unwrap()),
        Vec::<String>::new()
    );
    let itself = root.join("catalog/b/main");
    assert_eq!(list_stores(&itself, 0, &options).await.unwrap(), [itself]);
    let missing = list_stores(&root.join("missing"), 3, &options).await;
    assert!(matches!(missing, Err(OpenError::NotFound { .. })), "{missing:?}");
}
