//! Flushes that race with inserts, updates and deletions of whatever rows there are: nothing is lost and nothing doubled. A plain
//! model gets every commit that succeeded with its snapshot; in the end the lake shows at each snapshot what the model shows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use moraine_commit::Catalog;
use moraine_commit::check::check;
use moraine_commit::flush::FlushOptions;
use moraine_commit::lake::ColumnType;
use moraine_commit::verbs::{
    ColumnDefinition, CommitError, CommitOptions, LakeTransaction, TableDefinition, VerbError,
};
use moraine_store::{MemoryStore, Store};

use crate::inlined_histories::read::{self, Place, SeenRow};

/// For how long there are to be races, in seconds; without it, one.
const SECONDS: &str = "MORAINE_RACE_SECONDS";
const WRITERS: u64 = 3;
/// What each writer tries on one lake.
const TRIES: u64 = 60;
const ROWS_MAX: u64 = 5;

/// What one commit did to the rows, by row id.
#[derive(Debug, Default)]
struct Done {
    set: Vec<(u64, i64)>,
    gone: Vec<u64>,
}

/// The commits that succeeded, by snapshot, and how many did each kind of thing.
#[derive(Debug, Default)]
struct Model {
    done: BTreeMap<u64, Done>,
    inserts: u64,
    updates: u64,
    deletions: u64,
    file_deletions: u64,
    refused: u64,
}

struct Lake {
    catalog: Arc<Catalog>,
    table_id: u64,
    folder: tempfile::TempDir,
    /// Gives every value once, and is what chance there is.
    counter: AtomicU64,
    model: tokio::sync::Mutex<Model>,
}

fn values(values: &[i64]) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
}

/// Whether somebody else came first: with the same rows, or with a flush that has moved them.
fn is_lost_race(error: &CommitError) -> bool {
    match error {
        CommitError::Conflicted { .. } => true,
        CommitError::Refused(refused) => {
            matches!(
                refused,
                VerbError::Refused { .. }
                    | VerbError::Inline(_)
                    | VerbError::NotFound { .. }
                    | VerbError::Stage(_)
            )
        }
        _ => false,
    }
}

impl Lake {
    fn next(&self) -> i64 {
        i64::try_from(self.counter.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    fn chance(&self) -> u64 {
        let next = self.counter.fetch_add(1, Ordering::Relaxed);
        next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
    }

    /// The rows that the newest snapshot shows, and which snapshot that is.
    async fn rows(&self) -> (Vec<SeenRow>, u64) {
        let snapshot = self.catalog.snapshot().await.unwrap();
        let table = snapshot.table_by_id(self.table_id).await.unwrap().unwrap();
        let rows = read::rows(&snapshot, &table, self.folder.path()).await;
        (rows, snapshot.id())
    }

    async fn insert(&self) {
        let (table_id, count) = (self.table_id, self.chance() % ROWS_MAX + 1);
        let new: Vec<i64> = (0..count).map(|_| self.next()).collect();
        let batch = values(&new);
        let insert = |tx: LakeTransaction| {
            let batch = batch.clone();
            async move { tx.insert_inlined(table_id, batch).await }
        };
        let outcome = self.catalog.commit(insert).await;
        let mut model = self.model.lock().await;
        match outcome {
            Ok(commit) => {
                let set = commit.value.zip(new).collect();
                model.inserts += 1;
                model.note(
                    commit.snapshot_id,
                    Done {
                        set,
                        gone: Vec::new(),
                    },
                );
            }
            Err(error) => model.refuse(&error),
        }
    }

    /// Some of the rows that are inlined, as far as a look tells.
    async fn some_inlined(&self) -> Vec<u64> {
        let (rows, _) = self.rows().await;
        let inlined: Vec<u64> = rows
            .iter()
            .filter(|row| row.place == Place::Inlined)
            .map(|row| row.row_id)
            .collect();
        let every = usize::try_from(self.chance() % 3 + 1).unwrap();
        inlined.into_iter().step_by(every).collect()
    }

    async fn update(&self) {
        let (table_id, row_ids) = (self.table_id, self.some_inlined().await);
        if row_ids.is_empty() {
            return;
        }
        let new: Vec<i64> = row_ids.iter().map(|_| self.next()).collect();
        let batch = values(&new);
        let update = |tx: LakeTransaction| {
            let (batch, row_ids) = (batch.clone(), row_ids.clone());
            async move { tx.update_inlined(table_id, &row_ids, batch).await }
        };
        let outcome = self.catalog.commit(update).await;
        let mut model = self.model.lock().await;
        match outcome {
            Ok(commit) => {
                let set = row_ids.into_iter().zip(new).collect();
                model.updates += 1;
                model.note(
                    commit.snapshot_id,
                    Done {
                        set,
                        gone: Vec::new(),
                    },
                );
            }
            Err(error) => model.refuse(&error),
        }
    }

    async fn delete(&self) {
        let (table_id, gone) = (self.table_id, self.some_inlined().await);
        if gone.is_empty() {
            return;
        }
        let delete = |tx: LakeTransaction| {
            let row_ids = gone.clone();
            async move { tx.delete_inlined(table_id, &row_ids).await }
        };
        let outcome = self.catalog.commit(delete).await;
        let mut model = self.model.lock().await;
        match outcome {
            Ok(commit) => {
                model.deletions += 1;
                model.note_deletion(commit.snapshot_id, gone);
            }
            Err(error) => model.refuse(&error),
        }
    }

    /// Of rows that a flush has moved to a file.
    async fn delete_from_file(&self) {
        let table_id = self.table_id;
        let (rows, seen) = self.rows().await;
        let mut by_file: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for row in rows {
            if let Place::File {
                data_file_id,
                position,
            } = row.place
            {
                by_file
                    .entry(data_file_id)
                    .or_default()
                    .push((position, row.row_id));
            }
        }
        let nth = usize::try_from(self.chance()).unwrap() % by_file.len().max(1);
        let Some((data_file_id, rows)) = by_file.into_iter().nth(nth) else {
            return;
        };
        let (positions, gone): (Vec<u64>, Vec<u64>) = rows.into_iter().step_by(2).unzip();
        let delete = |tx: LakeTransaction| {
            let positions = positions.clone();
            async move {
                tx.delete_from_file_inlined(table_id, data_file_id, &positions)
                    .await
            }
        };
        // What lies in a file nobody looks at again, so whoever has deleted from it since must be found out.
        let options = CommitOptions {
            based_on: Some(seen),
            ..CommitOptions::default()
        };
        let outcome = self.catalog.commit_with(&options, delete).await;
        let mut model = self.model.lock().await;
        match outcome {
            Ok(commit) => {
                model.file_deletions += 1;
                model.note_deletion(commit.snapshot_id, gone);
            }
            Err(error) => model.refuse(&error),
        }
    }

    async fn write(&self) {
        for _ in 0..TRIES {
            match self.chance() % 10 {
                0..=4 => self.insert().await,
                5..=6 => self.update().await,
                7 => self.delete().await,
                _ => self.delete_from_file().await,
            }
            tokio::task::yield_now().await;
        }
    }

    async fn flush(&self) -> bool {
        let options = FlushOptions {
            tables: Vec::new(),
            data_path: Some(self.folder.path().display().to_string()),
        };
        // Whoever else commits all the while, its turn comes.
        let report = self.catalog.flush(&options).await.unwrap();
        report.snapshot_id.is_some()
    }
}

impl Model {
    fn note(&mut self, snapshot_id: Option<u64>, done: Done) {
        assert!(self.done.insert(snapshot_id.unwrap(), done).is_none());
    }

    fn note_deletion(&mut self, snapshot_id: Option<u64>, gone: Vec<u64>) {
        let set = Vec::new();
        self.note(snapshot_id, Done { set, gone });
    }

    fn refuse(&mut self, error: &CommitError) {
        assert!(is_lost_race(error), "{error:?}");
        self.refused += 1;
    }
}

async fn lake(store: &MemoryStore) -> Arc<Lake> {
    let catalog = Catalog::with_store(Arc::new(store.clone()));
    catalog.create(Some("data/"), false).await.unwrap();
    let definition = TableDefinition::new("t", vec![ColumnDefinition::new("n", ColumnType::Int64)]);
    let create = |tx: LakeTransaction| {
        let definition = definition.clone();
        async move { tx.create_table("main", definition).await }
    };
    let table_id = catalog.commit(create).await.unwrap().value;
    Arc::new(Lake {
        catalog,
        table_id,
        folder: tempfile::tempdir().unwrap(),
        counter: AtomicU64::new(1),
        model: tokio::sync::Mutex::default(),
    })
}

/// The lake shows at each snapshot what the model does, counted and added up.
async fn compare(lake: &Lake, model: &Model) {
    let mut expected: BTreeMap<u64, i64> = BTreeMap::new();
    for snapshot in lake.catalog.snapshots().await.unwrap() {
        if let Some(done) = model.done.get(&snapshot.snapshot_id) {
            expected.extend(done.set.iter().copied());
            done.gone.iter().for_each(|row_id| {
                expected.remove(row_id);
            });
        }
        let at = lake.catalog.snapshot_at(snapshot.snapshot_id).await.unwrap();
        let shown = shown(&at, lake.folder.path()).await;
        let total: i64 = shown.iter().map(|(_, value)| value).sum();
        let of_model = (expected.len(), expected.values().sum::<i64>());
        assert_eq!(
            (shown.len(), total),
            of_model,
            "at snapshot {}",
            snapshot.snapshot_id
        );
        assert!(
            shown.into_iter().eq(expected.clone()),
            "at snapshot {}",
            snapshot.snapshot_id
        );
    }
}

async fn shown(snapshot: &moraine_commit::lake::Snapshot, folder: &Path) -> Vec<(u64, i64)> {
    let tables = read::shown(snapshot, folder).await;
    let rows = tables.into_values().flatten();
    rows.map(|(row_id, values)| (row_id, values[0].unwrap()))
        .collect()
}

/// What did not commit has left no data file behind.
async fn compare_files(lake: &Lake) {
    let mut known = 0;
    let snapshot = lake.catalog.snapshot().await.unwrap();
    let mut files = snapshot.data_files(lake.table_id).await.unwrap();
    while files.next().await.unwrap().is_some() {
        known += 1;
    }
    let names = std::fs::read_dir(lake.folder.path().join("main/t")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| !name.contains("-delete")).count(), known);
}

/// Races on a lake of their own; the model they leave, and how often there was something to flush.
async fn round() -> (Model, u64) {
    let store = MemoryStore::new();
    let lake = lake(&store).await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let lake = Arc::clone(&lake);
        writers.spawn(async move { lake.write().await });
    }
    let mut flushes = 0;
    while !writers.is_empty() {
        flushes += u64::from(lake.flush().await);
        while let Some(ended) = writers.try_join_next() {
            ended.unwrap();
        }
        tokio::task::yield_now().await;
    }
    flushes += u64::from(lake.flush().await);
    let model = std::mem::take(&mut *lake.model.lock().await);
    compare(&lake, &model).await;
    compare_files(&lake).await;
    let mut found = Vec::new();
    check(store.view().unwrap().as_ref(), &mut |finding| found.push(finding))
        .await
        .unwrap();
    assert_eq!(found, []);
    (model, flushes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn flushes_that_race_with_inserts_updates_and_deletions_lose_and_double_nothing() {
    let seconds = std::env::var(SECONDS).map_or(1, |seconds| seconds.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut all, mut rounds, mut flushes) = (Model::default(), 0, 0);
    // What there may be by chance in one round has to come sooner or later.
    let is_whole =
        |all: &Model, flushes| all.inserts * all.updates * all.deletions * all.file_deletions * flushes > 0;
    while Instant::now() < end || !is_whole(&all, flushes) {
        let (model, flushed) = round().await;
        all.inserts += model.inserts;
        all.updates += model.updates;
        all.deletions += model.deletions;
        all.file_deletions += model.file_deletions;
        all.refused += model.refused;
        (rounds, flushes) = (rounds + 1, flushes + flushed);
    }
    println!(
        "{rounds} lakes: {} inserts, {} updates, {} deletions, {} deletions from files, {} lost races, {flushes} flushes",
        all.inserts, all.updates, all.deletions, all.file_deletions, all.refused
    );
}
