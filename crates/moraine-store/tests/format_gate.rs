//! What is refused at opening, by which error, and that a refused store stays as it was.

use std::sync::Arc;

use moraine_codec::proto::{FormatValue, MigrationValue, SchemaValue};
use moraine_keys::{FormatKey, Kind, MigrationKey, NameKey, SchemaKey};
use moraine_store::{
    Bytes, FormatState, MemoryStore, OpenError, OpenOptions, Store, StoreUrl, check_format, open, open_reader,
};

use crate::support::lake::{Records, genesis, key, newest, put};

async fn gate(records: &[(Bytes, Bytes)]) -> Result<FormatState, OpenError> {
    let store = MemoryStore::new();
    put(&store, records).await.unwrap();
    check_format(store.view().unwrap().as_ref()).await
}

fn with(mut records: Records, key: Bytes, value: Bytes) -> Records {
    records.retain(|(existing, _)| *existing != key);
    records.push((key, value));
    records
}

#[tokio::test]
async fn an_empty_store_and_a_current_lake_pass() {
    assert_eq!(gate(&[]).await, Ok(FormatState::Empty));
    assert_eq!(gate(&genesis(12)).await, Ok(FormatState::Ready));
}

#[tokio::test]
async fn newer_and_older_formats_are_named() {
    for format in [13, 255] {
        let refused = gate(&genesis(format)).await.unwrap_err();
        assert!(
            matches!(refused, OpenError::Newer { found, newest: 12, .. } if found == format),
            "{refused:?}"
        );
    }
    for format in 0..9 {
        let refused = gate(&genesis(format)).await.unwrap_err();
        assert!(
            matches!(refused, OpenError::Older { found, oldest: 9, .. } if found == format),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("moraine test"), "{refused}");
    }
}

#[tokio::test]
async fn formats_without_directories_pass_as_they_are() {
    for format in 9..12 {
        assert_eq!(
            gate(&genesis(format)).await,
            Ok(FormatState::Ready),
            "format {format}"
        );
    }
    // The name directory is looked at only where the format has one.
    let without_names = |format| genesis(format)[..3].to_vec();
    assert_eq!(gate(&without_names(10)).await, Ok(FormatState::Ready));
    let refused = gate(&without_names(11)).await;
    assert!(matches!(refused, Err(OpenError::Foreign { .. })), "{refused:?}");
}

#[tokio::test]
async fn what_is_refused_names_the_command_that_helps() {
    let url: StoreUrl = "memory://gate/command".parse().unwrap();
    let owner = open(&url, &OpenOptions::create()).await.unwrap();
    let refusal = || async {
        let opened = open_reader(&url, &OpenOptions::default()).await;
        opened.map(|_| ()).unwrap_err().to_string()
    };
    put(owner.as_ref(), &genesis(8)).await.unwrap();
    let command = "`moraine migrate memory://gate/command`";
    let older = refusal().await;
    assert!(older.contains(command) && older.contains("format 8"), "{older}");
    let marker = MigrationValue {
        from_format: 8,
        to_format: 9,
        ..MigrationValue::default()
    };
    let marker = moraine_codec::encode(&MigrationKey, &marker).unwrap();
    put(owner.as_ref(), &[(MigrationKey.encode(), marker)])
        .await
        .unwrap();
    let half = refusal().await;
    assert!(
        half.contains(command) && half.contains("from format 8 to 9"),
        "{half}"
    );
}

#[tokio::test]
async fn an_unfinished_migration_comes_before_everything_else() {
    let marker = MigrationValue {
        from_format: 8,
        to_format: 9,
        ..MigrationValue::default()
    };
    let marker = (
        MigrationKey.encode(),
        moraine_codec::encode(&MigrationKey, &marker).unwrap(),
    );
    for lake in [genesis(12), genesis(8), genesis(99), Vec::new()] {
        let refused = gate(&with(lake, marker.0.clone(), marker.1.clone()))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, OpenError::MidMigration { from: 8, to: 9, .. }),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn foreign_records_are_refused() {
    let cases: [(&str, Records); 7] = [
        (
            "a format record of something else",
            with(genesis(12), FormatKey.encode(), Bytes::from_static(b"v1")),
        ),
        ("a format record with a field this version does not know", {
            let mut bytes = genesis(12)[0].1.to_vec();
            bytes.extend([0x1a, 1, b'x']);
            with(genesis(12), FormatKey.encode(), bytes.into())
        }),
        (
            "a system record of a kind this version does not know",
            with(
                genesis(12),
                Bytes::from_static(&[2, 6]),
                Bytes::from_static(b"MRNE\0"),
            ),
        ),
        ("records without a format", vec![(key(4, 1), Bytes::new())]),
        ("a format without a head", vec![genesis(12).remove(0)]),
        ("a name directory without the schema", genesis(12)[..3].to_vec()),
        ("a name directory laid out with one byte for the kind", {
            let mut lake = genesis(12);
            let (name, value) = lake.pop().unwrap();
            let narrow = [&name[..1], &name[8..]].concat();
            with(lake, narrow.into(), value)
        }),
    ];
    for (case, records) in cases {
        let refused = gate(&records).await;
        assert!(
            matches!(refused, Err(OpenError::Foreign { .. })),
            "{case}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_renamed_first_schema_passes() {
    let schema = SchemaKey { schema_id: 3 };
    let value = SchemaValue {
        schema_id: 3,
        schema_name: "été \u{0}".to_owned(),
        ..SchemaValue::default()
    };
    let name = NameKey {
        kind: NameKey::SCHEMA,
        parent_id: 0,
        name: value.schema_name.clone(),
        entity_id: 3,
    };
    let mut lake = genesis(12)[..2].to_vec();
    lake.push((schema.encode(), moraine_codec::encode(&schema, &value).unwrap()));
    lake.push((name.encode(), Bytes::from_static(b"ignored")));
    assert_eq!(gate(&lake).await, Ok(FormatState::Ready));
}

#[tokio::test]
async fn a_refused_store_keeps_its_running_owner() {
    let url: StoreUrl = "memory://gate/owner".parse().unwrap();
    let owner = open(&url, &OpenOptions::create()).await.unwrap();
    put(owner.as_ref(), &genesis(13)).await.unwrap();
    for refused in [
        open(&url, &OpenOptions::create()).await.map(|_| ()),
        open_reader(&url, &OpenOptions::default()).await.map(|_| ()),
    ] {
        assert!(
            matches!(refused, Err(OpenError::Newer { found: 13, .. })),
            "{refused:?}"
        );
    }
    put(owner.as_ref(), &[(key(4, 1), Bytes::new())]).await.unwrap();
}

#[tokio::test]
async fn a_format_that_changes_under_a_reader_is_still_read() {
    let url: StoreUrl = "memory://gate/reader".parse().unwrap();
    let owner = open(&url, &OpenOptions::create()).await.unwrap();
    put(owner.as_ref(), &genesis(12)).await.unwrap();
    let reader = open_reader(&url, &OpenOptions::default()).await.unwrap();
    assert_eq!(check_format(reader.as_ref()).await, Ok(FormatState::Ready));
    put(owner.as_ref(), &[(key(4, 1), Bytes::new())]).await.unwrap();
    assert_eq!(newest(&owner).await.unwrap().len(), 5);
    reader.close().await.unwrap();
}

#[tokio::test]
async fn databases_of_others_are_foreign() {
    let objects: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let plain = slatedb::Db::open("plain", Arc::clone(&objects)).await.unwrap();
    plain.put(b"k", b"v").await.unwrap();
    plain.close().await.unwrap();
    let refused = moraine_store::SlateStore::open_on(objects, "plain", &OpenOptions::create())
        .await
        .map(|_| ());
    assert!(
        matches!(&refused, Err(OpenError::Foreign { detail, .. }) if detail.contains("none")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn missing_and_occupied_places_are_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .parse::<StoreUrl>()
            .unwrap()
    };
    std::fs::create_dir_all(folder.path().join("empty")).unwrap();
    std::fs::create_dir_all(folder.path().join("occupied")).unwrap();
    std::fs::write(folder.path().join("occupied/photo.jpg"), b"jpg").unwrap();
    std::fs::write(folder.path().join("file"), b"text").unwrap();
    std::fs::create_dir_all(folder.path().join("hollow/manifest")).unwrap();

    for name in ["missing", "empty"] {
        let refused = open(&at(name), &OpenOptions::default())
            .await
            .map(|_| ())
            .unwrap_err();
        assert!(matches!(refused, OpenError::NotFound { .. }), "{refused:?}");
    }
    assert!(!folder.path().join("missing").exists());
    for (name, named) in [
        ("occupied", "photo.jpg"),
        ("file", "is a file"),
        ("hollow", "without a manifest"),
    ] {
        let refused = open(&at(name), &OpenOptions::create())
            .await
            .map(|_| ())
            .unwrap_err();
        assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused:?}");
        assert!(refused.to_string().contains(named), "{refused}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path().join("occupied")).unwrap().count(),
        1
    );
    open(&at("empty"), &OpenOptions::create())
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    open(&at("new/deep"), &OpenOptions::create())
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_format_value_is_read_whatever_its_writer() {
    let format = FormatValue {
        format_version: 8,
        writer_version: String::new(),
    };
    let records = with(
        genesis(12),
        FormatKey.encode(),
        moraine_codec::encode(&FormatKey, &format).unwrap(),
    );
    let refused = gate(&records).await.unwrap_err().to_string();
    assert!(
        refused.contains("format 8") && refused.contains("not recorded"),
        "{refused}"
    );
}
