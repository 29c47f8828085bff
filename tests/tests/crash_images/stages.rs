//! What takes several writes by design: StagedBuildInterrupted (a flush builds its files before it commits them),
//! ReclamationInterrupted, MigrationInterrupted.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use moraine_codec::Record;
use moraine_codec::proto::{GcFileValue, MigrationValue};
use moraine_commit::flush::FlushOptions;
use moraine_commit::lake::ColumnType;
use moraine_commit::verbs::{ColumnDefinition, TableDefinition};
use moraine_commit::{Catalog, Change, OpenError, views};
use moraine_keys::{DataFileKey, GcFileKey, History, InlineInsertKey, Kind, MigrationKey, SnapshotKey};
use moraine_store::{OpenOptions, ReadExt, SlateReader, SlateStore, Store};
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::lake::{self, COMMITS, Failure};
use crate::stopping_store::{Fault, StoppingStore};
use crate::sweep::{Progress, Story, open, sweep};

const ROWS: u64 = 7;

/// A table with inlined rows is flushed: its Parquet file is written first, outside of the store, and then registered in
/// the commit that removes the rows.
struct Flush {
    folder: tempfile::TempDir,
}

impl Flush {
    fn options(&self) -> FlushOptions {
        FlushOptions {
            tables: Vec::new(),
            data_path: Some(self.folder.path().display().to_string()),
        }
    }

    /// Every row is there once: inlined, or in a file that lies where the catalog says.
    async fn check_rows(&self, catalog: &Arc<Catalog>) -> Result<bool, Failure> {
        let transaction = catalog.begin().await?;
        let read = transaction.read();
        let newest = transaction.newest_snapshot_id().ok_or("no lake")?;
        let chunks = read.records::<InlineInsertKey>(InlineInsertKey::scan()).await?;
        let inlined: u64 = chunks.iter().map(|(_, chunk)| chunk.row_count).sum();
        let files = views::data_files_at(read, newest, 1).await?;
        let filed: u64 = files.iter().map(|(_, file)| file.record_count).sum();
        for (_, file) in &files {
            let place = self.folder.path().join("main/t").join(&file.path);
            let bytes = std::fs::metadata(&place)?.len();
            if bytes != file.file_size_bytes {
                return Err(format!("{} has {bytes} bytes", place.display()).into());
            }
        }
        match (inlined, filed) {
            (ROWS, 0) => Ok(false),
            (0, ROWS) => Ok(true),
            other => Err(format!("(inlined, in files) is {other:?} of {ROWS} rows").into()),
        }
    }
}

#[async_trait]
impl Story for Flush {
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.create(Some("data/"), false).await?;
        let values = (0..ROWS).map(|row| i64::try_from(row).ok());
        let column: ArrayRef = Arc::new(Int64Array::from_iter(values));
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![column])?;
        let columns = vec![ColumnDefinition::new("n", ColumnType::Int64)];
        let table = TableDefinition::new("t", columns);
        let made = catalog.commit(|tx| {
            let (table, rows) = (table.clone(), rows.clone());
            async move {
                let table = tx.create_table("main", table).await?;
                tx.insert_inlined(table, rows).await
            }
        });
        made.await?;
        Ok(catalog.close().await?)
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.flush(&self.options()).await?;
        progress.reached(1);
        Ok(catalog.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let catalog = open(left).await?;
        let landed = self.check_rows(&catalog).await?;
        let again = catalog.flush(&self.options()).await?;
        if again.snapshot_id.is_some() == landed || !self.check_rows(&catalog).await? {
            return Err(format!("flushed: {landed}, and then {again:?}").into());
        }
        catalog.close().await?;
        Ok(u64::from(landed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_build_interrupted_keeps_every_row_once_and_can_be_done_again() {
    for fault in [Fault::Stops, Fault::StopsUnheard] {
        let folder = tempfile::tempdir().expect("a folder");
        sweep(Flush { folder }, fault).await;
    }
}

/// Snapshots are expired one by one, each with the file that only it saw; then the files that were scheduled are done.
struct Reclamation;

/// The file that ended at the snapshot after `n`.
fn ended_file(n: u64) -> History<DataFileKey> {
    History {
        entity: lake::file_key(n),
        end_snapshot: n + 1,
    }
}

async fn expire(catalog: &Arc<Catalog>, n: u64) -> Result<(), Failure> {
    let mut transaction = catalog.begin().await?;
    let key = GcFileKey { data_file_id: n };
    let scheduled = GcFileValue {
        data_file_id: n,
        path: format!("file-{n}.parquet"),
        ..GcFileValue::default()
    };
    transaction
        .stage(vec![
            Change::Remove {
                key: SnapshotKey { snapshot_id: n }.to_key(),
            },
            Change::Remove {
                key: ended_file(n).to_key(),
            },
            Change::Insert(Record::GcFile(key, scheduled)),
        ])
        .await?;
    transaction.commit().await?;
    Ok(())
}

/// Expires what is left to expire.
async fn reclaim(catalog: &Arc<Catalog>, progress: &Progress) -> Result<(), Failure> {
    for n in 1..COMMITS {
        let snapshot = catalog
            .begin()
            .await?
            .read()
            .value(&SnapshotKey { snapshot_id: n })
            .await?;
        if snapshot.is_some() {
            expire(catalog, n).await?;
        }
        progress.reached(n);
    }
    Ok(())
}

/// How many of the first snapshots are expired; an error where one of them is by halves, or out of order.
async fn reclaimed(catalog: &Arc<Catalog>) -> Result<u64, Failure> {
    let transaction = catalog.begin().await?;
    let mut done = 0;
    for n in 1..COMMITS {
        let read = transaction.read();
        let snapshot = read.value(&SnapshotKey { snapshot_id: n }).await?.is_some();
        let file = read.value(&ended_file(n)).await?.is_some();
        let scheduled = read.value(&GcFileKey { data_file_id: n }).await?.is_some();
        match (snapshot, file, scheduled) {
            (false, false, true) if done == n - 1 => done = n,
            (true, true, false) => {}
            parts => return Err(format!("snapshot {n} is (there, its file, scheduled): {parts:?}").into()),
        }
    }
    Ok(done)
}

#[async_trait]
impl Story for Reclamation {
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.create(Some("data/"), false).await?;
        for n in 1..=COMMITS {
            lake::commit(&catalog, n).await?;
        }
        Ok(catalog.close().await?)
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let catalog = open(store).await?;
        reclaim(&catalog, progress).await?;
        Ok(catalog.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let catalog = open(left).await?;
        let landed = reclaimed(&catalog).await?;
        reclaim(&catalog, &Progress::default()).await?;
        let after = reclaimed(&catalog).await?;
        catalog.close().await?;
        match after {
            after if after == COMMITS - 1 => Ok(landed),
            after => Err(format!("begun again after {landed}, it ends at {after}").into()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reclamation_interrupted_keeps_what_is_done_and_ends_the_same_when_begun_again() {
    for crash in sweep(Reclamation, Fault::Stops).await {
        assert_eq!(crash.landed, crash.acknowledged);
    }
    sweep(Reclamation, Fault::StopsUnheard).await;
}

/// A migration as every migration goes: a marker, batches of records with a cursor, and the marker's end with the last.
struct Migration;

const MIGRATED: u64 = 3;

async fn put_marker(store: &Arc<SlateStore>, marker: Option<MigrationValue>) -> Result<(), Failure> {
    let mut transaction = store.begin()?;
    let key = MigrationKey.encode();
    match marker {
        Some(marker) => transaction.put(key, moraine_codec::encode(&MigrationKey, &marker)?)?,
        None => transaction.delete(key)?,
    }
    transaction.commit().await?.durable().await?;
    Ok(())
}

#[async_trait]
impl Story for Migration {
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure> {
        let catalog = open(store).await?;
        catalog.create(Some("data/"), false).await?;
        Ok(catalog.close().await?)
    }

    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure> {
        let store = SlateStore::open_on(store, "lake", &OpenOptions::default()).await?;
        for step in 1..=MIGRATED {
            let marker = MigrationValue {
                from_format: 11,
                to_format: 12,
                cursor: SnapshotKey { snapshot_id: step }.encode(),
            };
            put_marker(&store, Some(marker)).await?;
            progress.reached(step);
        }
        put_marker(&store, None).await?;
        progress.reached(MIGRATED + 1);
        Ok(store.close().await?)
    }

    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure> {
        let counted = Arc::new(StoppingStore::new(left, u64::MAX, Fault::Stops));
        let store = Arc::clone(&counted) as Arc<dyn ObjectStore>;
        let read = SlateReader::open_on(Arc::clone(&store), "lake", &OpenOptions::default()).await;
        match SlateStore::open_on(store, "lake", &OpenOptions::default()).await {
            Err(OpenError::MidMigration { from: 11, to: 12, .. }) => {
                if !matches!(read, Err(OpenError::MidMigration { from: 11, to: 12, .. })) {
                    return Err("a reader is let in".into());
                }
                match counted.writes() {
                    0 => Ok(1),
                    writes => Err(format!("a refused store was written to {writes} times").into()),
                }
            }
            Err(error) => Err(error.into()),
            Ok(store) => {
                store.close().await?;
                // Before the first marker, and after the last, there is none.
                Ok(0)
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_interrupted_is_refused_by_name_and_left_as_it_is() {
    for fault in [Fault::Stops, Fault::StopsUnheard] {
        let markers = migrated(fault).await;
        // No marker, then a marker at every cut, then none: in this order.
        let mut runs = markers.clone();
        runs.dedup();
        assert_eq!(runs, [false, true, false], "{markers:?}");
    }
}

/// Whether a marker is there, for each cut.
async fn migrated(fault: Fault) -> Vec<bool> {
    let image = Arc::new(InMemory::new());
    Migration.before(Arc::clone(&image) as _).await.expect("a lake");
    let counting = Arc::new(StoppingStore::new(Arc::new(image.fork()), u64::MAX, Fault::Stops));
    let whole = Migration
        .act(Arc::clone(&counting) as _, &Progress::default())
        .await;
    whole.expect("nothing stops");
    let cuts = (0..=counting.writes()).map(|stop| cut_off(image.fork(), stop, fault));
    futures::future::join_all(cuts).await
}

async fn cut_off(left: InMemory, stop: u64, fault: Fault) -> bool {
    let left = Arc::new(left);
    let stopping = Arc::new(StoppingStore::new(Arc::clone(&left) as _, stop, fault));
    let progress = Progress::default();
    tokio::select! {
        _ = Migration.act(Arc::clone(&stopping) as _, &progress) => {}
        () = stopping.silence() => {}
    }
    Migration.check(left).await.expect("whole") == 1
}
