//! The migration matrix: a lake of each format with records of all kinds, migrated to the newest and compared with the
//! same lake written as the newest, whatever interrupts it on the way. The ordinary tests run a part of it; the rest is
//! ignored by them and run by `cargo xtask migrate-test`.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bytes;
mod damages;
mod lake;
#[path = "../crash_images/stopping_store.rs"]
mod stopping_store;
mod stops;
mod stores;

use moraine_migrate::units::{MigrateOptions, Unobserved, migrate_store};

use crate::lake::{LARGE, SMALL, Size};
use crate::stores::{check_migrated, in_memory};

/// Every format that there is something to migrate from.
pub(crate) const FORMATS: std::ops::RangeInclusive<u64> = 1..=11;
/// The format that is migrated to.
pub(crate) const NEWEST: u64 = 12;

async fn migrate_all(size: Size) {
    for format in FORMATS {
        let store = in_memory(&lake::records(format, format, size)).await;
        let options = MigrateOptions::default();
        let report = migrate_store(&store, &options, &mut Unobserved).await.unwrap();
        assert_eq!((report.from_format, report.to_format), (format, NEWEST));
        assert!(!report.resumed);
        check_migrated(&store, format, size).await.unwrap();

        let before = stores::records_of(&store).await;
        let report = migrate_store(&store, &options, &mut Unobserved).await.unwrap();
        assert_eq!((report.from_format, report.to_format), (NEWEST, NEWEST));
        assert!(report.units.is_empty(), "a second run does nothing");
        assert!(
            stores::records_of(&store).await == before,
            "a second run writes nothing"
        );
    }
}

#[tokio::test]
async fn a_lake_of_any_format_becomes_the_same_lake_of_the_newest() {
    migrate_all(SMALL).await;
}

#[tokio::test]
#[ignore = "some minutes; cargo xtask migrate-test"]
async fn a_large_lake_of_any_format_becomes_the_same_lake_of_the_newest() {
    migrate_all(LARGE).await;
}
