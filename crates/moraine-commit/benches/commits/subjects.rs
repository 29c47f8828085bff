//! What is measured: lakes and bare stores, on object stores whose writes take no time or a known one.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use moraine_commit::Catalog;
use moraine_commit::lake::{ColumnStats, ColumnType};
use moraine_commit::verbs::{ColumnDefinition, NewDataFile, TableDefinition};
use moraine_store::{OpenOptions, SlateStore};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::throttle::{ThrottleConfig, ThrottledStore};

/// How long a write to a slow store takes.
pub const WRITE: Duration = Duration::from_millis(30);

/// An object store in memory, whose writes take some time.
pub fn objects(write: Duration) -> Arc<dyn ObjectStore> {
    if write.is_zero() {
        return Arc::new(InMemory::new());
    }
    let config = ThrottleConfig {
        wait_put_per_call: write,
        ..ThrottleConfig::default()
    };
    Arc::new(ThrottledStore::new(InMemory::new(), config))
}

pub async fn store(objects: &Arc<dyn ObjectStore>) -> Arc<SlateStore> {
    let options = OpenOptions::create();
    SlateStore::open_on(Arc::clone(objects), "lake", &options)
        .await
        .unwrap()
}

/// A lake with a table `t` of two columns, id 1.
pub async fn lake(objects: &Arc<dyn ObjectStore>) -> Arc<Catalog> {
    let catalog = Catalog::with_store(store(objects).await);
    catalog.create(Some("data/"), false).await.unwrap();
    let created = catalog.commit(|tx| async move {
        let columns = vec![
            ColumnDefinition::new("id", ColumnType::Int64),
            ColumnDefinition::new("name", ColumnType::Varchar),
        ];
        tx.create_table("main", TableDefinition::new("t", columns)).await
    });
    created.await.unwrap();
    catalog
}

/// Objects in the write-ahead log of a store: the flushes it has made.
pub async fn flushes(objects: &Arc<dyn ObjectStore>, store: &str) -> usize {
    let folder = Path::from(format!("{store}/wal"));
    let found: Vec<_> = objects.list(Some(&folder)).try_collect().await.unwrap();
    found.len()
}

/// The work of one commit: a file of 1,000 rows with statistics.
pub async fn append(catalog: &Arc<Catalog>, number: u64) {
    let appended = catalog.commit(|tx| async move {
        let stats = |min: &str, max: &str| ColumnStats {
            column_size_bytes: 4_000,
            value_count: Some(1_000),
            null_count: Some(0),
            min_value: Some(min.to_owned()),
            max_value: Some(max.to_owned()),
            ..ColumnStats::default()
        };
        let file = NewDataFile::new(format!("{number}.parquet"), 1_000, 10_000)
            .with_stats(vec![(1, stats("1", "1000")), (2, stats("a", "z"))]);
        tx.add_data_files(1, vec![file]).await
    });
    appended.await.unwrap();
}

/// The value at a share of sorted ones.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    let at = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[at]
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
