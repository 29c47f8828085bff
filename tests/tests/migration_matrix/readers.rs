//! Readers that are there while a lake is migrated: at every moment they are refused, or see all of a whole lake.

use std::ops::ControlFlow;
use std::sync::Arc;

use moraine_commit::{Catalog, CatalogError};
use moraine_keys::{FormatKey, HeadKey};
use moraine_migrate::units::{MigrateOptions, Progress, migrate_on, migrate_store};
use moraine_store::{
    FormatState, KeyRange, OpenError, OpenOptions, Read, ReadExt, SlateReader, check_format,
};
use object_store::memory::InMemory;
use tokio::runtime::Handle;

use crate::bytes::Records;
use crate::lake::{self, SMALL, TINY};
use crate::stores::{PREFIX, in_memory, in_object_store};
use crate::{FORMATS, NEWEST, whole};

/// What one look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Refused,
    Whole,
    /// The writer moved on meanwhile; a reader looks again.
    Moved,
}

async fn count(read: &dyn Read, prefix: &[u8]) -> usize {
    let mut scan = read.scan(KeyRange::all()).await.unwrap();
    let mut count = 0;
    while let Some((key, _)) = scan.next().await.unwrap() {
        count += usize::from(key.starts_with(prefix));
    }
    count
}

fn expected(records: &Records, prefix: &[u8]) -> usize {
    records.keys().filter(|key| key.starts_with(prefix)).count()
}

/// Looks as a reader does: the head, the gate, what the format says there is, the head again.
async fn look(read: &dyn Read, migrated: &Records) -> Look {
    let before = read.value(&HeadKey).await.unwrap();
    match check_format(read).await {
        Err(OpenError::MidMigration { .. } | OpenError::Older { .. }) => return Look::Refused,
        Ok(FormatState::Ready) => {}
        // Between two states of the store the gate may see neither.
        Err(OpenError::Foreign { .. }) if read.value(&HeadKey).await.unwrap() != before => {
            return Look::Moved;
        }
        other => panic!("{other:?}"),
    }
    let format = read.value(&FormatKey).await.unwrap().unwrap().format_version;
    let mut found = vec![(9, count(read, &[6, 9]).await, expected(migrated, &[6, 9]))];
    if format >= 11 {
        found.push((11, count(read, &[10]).await, expected(migrated, &[10])));
    }
    if format >= NEWEST {
        found.push((12, count(read, &[11]).await, expected(migrated, &[11])));
    }
    if read.value(&HeadKey).await.unwrap() != before {
        return Look::Moved;
    }
    for (since, found, expected) in found {
        assert_eq!(
            found, expected,
            "a hole at format {format}, in what there is since format {since}"
        );
    }
    Look::Whole
}

/// A lake's own process, with a migration beside it: it is told to wait, never shown a hole.
async fn catalog_beside(format: u64) {
    let store = Arc::new(in_memory(&lake::records(format, format, SMALL)).await);
    let catalog = Catalog::with_store(Arc::clone(&store) as _);
    let migrated = lake::records(format, NEWEST, SMALL);
    let options = MigrateOptions {
        batch_records: 16,
        ..MigrateOptions::default()
    };
    let mut refused = 0;
    let mut observer = |progress: &Progress| {
        if progress.total.is_some() {
            tokio::task::block_in_place(|| {
                Handle::current().block_on(async {
                    match catalog.begin().await {
                        Err(CatalogError::MidMigration { .. }) => refused += 1,
                        Ok(tx) if format >= 9 => {
                            assert_eq!(look(tx.read(), &migrated).await, Look::Whole);
                        }
                        Ok(_) => {}
                        Err(error) => panic!("{error}"),
                    }
                });
            });
        }
        ControlFlow::Continue(())
    };
    migrate_store(store.as_ref(), &options, &mut observer)
        .await
        .unwrap();
    assert!(refused > 5, "{refused} refusals");
    let tx = catalog.begin().await.unwrap();
    assert_eq!(look(tx.read(), &migrated).await, Look::Whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_during_a_migration_are_refused_or_see_a_whole_lake() {
    for format in [8, 9, 11] {
        catalog_beside(format).await;
    }
}

/// A reader in another process, that follows the writer within about a second.
async fn reader_beside(format: u64) {
    let image = Arc::new(InMemory::new());
    in_object_store(Arc::clone(&image) as _, &lake::records(format, format, TINY)).await;
    let open = OpenOptions::default();
    let reader = SlateReader::open_ungated_on(Arc::clone(&image) as _, PREFIX, &open)
        .await
        .unwrap();
    let migrated = lake::records(format, NEWEST, TINY);
    let options = MigrateOptions {
        batch_records: 40,
        ..MigrateOptions::default()
    };
    let mut looks = Vec::new();
    let mut seen = reader.value(&HeadKey).await.unwrap();
    let mut observer = |progress: &Progress| {
        if progress.total.is_some() {
            tokio::task::block_in_place(|| {
                Handle::current().block_on(async {
                    // The reader learns of the batch when it next asks the object store.
                    while reader.value(&HeadKey).await.unwrap() == seen {
                        tokio::task::yield_now().await;
                    }
                    seen = reader.value(&HeadKey).await.unwrap();
                    looks.push(look(&*reader, &migrated).await);
                });
            });
        }
        ControlFlow::Continue(())
    };
    migrate_on(image, PREFIX, &options, &mut observer).await.unwrap();
    assert!(looks.contains(&Look::Refused), "{looks:?}");
    reader.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_elsewhere_are_refused_or_see_a_whole_lake() {
    let formats: Vec<u64> = if whole() { FORMATS.collect() } else { vec![11] };
    let readers = formats
        .into_iter()
        .map(|format| tokio::spawn(reader_beside(format)));
    for reader in futures::future::join_all(readers).await {
        reader.unwrap();
    }
}
