//! The migration matrix: a lake of each format with records of all kinds, migrated to the newest and compared with the
//! same lake written as the newest, whatever interrupts it on the way. The ordinary tests run it on small lakes;
//! `cargo xtask migrate-test` sets [`WHOLE`] and runs all of it on large ones.

// A test fails by panicking, and so may its helpers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value
)]

mod as_they_are;
mod bytes;
mod damages;
mod fixtures;
mod interop;
mod lake;
mod readers;
mod rows;
#[allow(dead_code)]
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

/// The environment variable that asks for the whole matrix.
const WHOLE: &str = "MORAINE_WHOLE_MIGRATION_MATRIX";

/// Whether the whole matrix is asked for.
pub(crate) fn whole() -> bool {
    std::env::var_os(WHOLE).is_some()
}

#[tokio::test]
async fn a_lake_of_any_format_becomes_the_same_lake_of_the_newest() {
    migrate_all(if whole() { LARGE } else { SMALL }).await;
}
