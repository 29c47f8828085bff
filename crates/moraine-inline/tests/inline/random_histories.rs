//! Random histories of one table against a plain list of rows, compared at every snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use moraine_inline::{
    Directories, DirectoriesAt, RowPredicate, create_table, drop_version, end_rows, insert, remove_rows,
    select, versions,
};
use moraine_keys::{ChunkLocatorKey, InlineInsertKey, RowTombstoneKey};
use moraine_store::{MemoryStore, Read, Staging};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::{TABLE, columns, commit, keys, numbers, rows, run, staging};

const VERSIONS: u64 = 3;

#[derive(Debug, Clone)]
enum Step {
    /// New rows with fresh ids: runs of a length each, a gap of one id between runs.
    Insert {
        version: u64,
        runs: Vec<u8>,
    },
    /// Live rows end, and go on under their ids in `version`.
    Update {
        version: u64,
        rows: Vec<Index>,
    },
    /// Rows whose last version ended come back (they lived in Parquet meanwhile).
    Return {
        version: u64,
        rows: Vec<Index>,
    },
    End {
        rows: Vec<Index>,
    },
    /// Some versions go for good.
    Remove {
        version: u64,
        rows: Vec<Index>,
    },
    /// Everything begun by a snapshot that many steps back goes for good.
    Flush {
        version: u64,
        back: u64,
    },
    Drop {
        version: u64,
    },
    /// The staged changes are committed, and a new snapshot begins.
    Commit,
    /// A new snapshot begins within the same transaction.
    Advance,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let version = || 0..VERSIONS;
    let some_rows = || prop::collection::vec(any::<Index>(), 1..5);
    let step = prop_oneof![
        5 => (version(), prop::collection::vec(1_u8..6, 1..4)).prop_map(|(version, runs)| Step::Insert { version, runs }),
        4 => (version(), some_rows()).prop_map(|(version, rows)| Step::Update { version, rows }),
        2 => (version(), some_rows()).prop_map(|(version, rows)| Step::Return { version, rows }),
        3 => some_rows().prop_map(|rows| Step::End { rows }),
        3 => (version(), some_rows()).prop_map(|(version, rows)| Step::Remove { version, rows }),
        1 => (version(), 0_u64..3).prop_map(|(version, back)| Step::Flush { version, back }),
        1 => version().prop_map(|version| Step::Drop { version }),
        4 => Just(Step::Commit),
        3 => Just(Step::Advance),
    ];
    prop::collection::vec(step, 1..30)
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    row_id: u64,
    begin: u64,
    version: u64,
    end: Option<u64>,
    value: i64,
}

/// The table as a SQL catalog would hold it: one list of rows with their ends beside them.
#[derive(Debug, Default)]
struct Model {
    rows: Vec<Row>,
    next_row: u64,
    next_value: i64,
    snapshot: u64,
    listed: BTreeSet<u64>,
    /// What the lake remembers all along.
    directories: Arc<Directories>,
    batches: u64,
}

impl Model {
    fn memory(&self) -> DirectoriesAt {
        self.directories.at(self.batches)
    }

    fn add(&mut self, version: u64, row_ids: &[u64]) -> Vec<i64> {
        let mut values = Vec::new();
        for row_id in row_ids {
            self.next_value += 1;
            values.push(self.next_value);
            let (begin, value) = (self.snapshot, self.next_value);
            self.rows.push(Row {
                row_id: *row_id,
                begin,
                version,
                end: None,
                value,
            });
        }
        values
    }

    /// Ends the picked live rows that an earlier snapshot began, and returns them.
    fn end(&mut self, picks: &[Index]) -> Vec<(u64, u64)> {
        let snapshot = self.snapshot;
        let mut live: Vec<&mut Row> = self
            .rows
            .iter_mut()
            .filter(|row| row.end.is_none() && row.begin < snapshot)
            .collect();
        let mut ended = Vec::new();
        for pick in picks {
            if live.is_empty() {
                break;
            }
            let row = live.swap_remove(pick.index(live.len()));
            row.end = Some(snapshot);
            ended.push((row.row_id, row.begin));
        }
        ended
    }

    /// Ids of rows that have versions, none of them live or begun at this snapshot.
    fn absent(&self, picks: &[Index]) -> Vec<u64> {
        let mut ids: BTreeSet<u64> = self.rows.iter().map(|row| row.row_id).collect();
        for row in self
            .rows
            .iter()
            .filter(|row| row.end.is_none() || row.begin == self.snapshot)
        {
            ids.remove(&row.row_id);
        }
        let ids: Vec<u64> = ids.into_iter().collect();
        let picked: BTreeSet<u64> = picks
            .iter()
            .filter(|_| !ids.is_empty())
            .map(|pick| ids[pick.index(ids.len())])
            .collect();
        picked.into_iter().collect()
    }

    fn take(&mut self, mut gone: impl FnMut(&Row) -> bool) -> Vec<(u64, u64)> {
        let taken = self
            .rows
            .iter()
            .filter(|row| gone(row))
            .map(|row| (row.row_id, row.begin))
            .collect();
        self.rows.retain(|row| !gone(row));
        taken
    }

    fn pick(&self, version: u64, picks: &[Index]) -> BTreeSet<(u64, u64)> {
        let held: Vec<&Row> = self.rows.iter().filter(|row| row.version == version).collect();
        let picked = picks
            .iter()
            .filter(|_| !held.is_empty())
            .map(|pick| held[pick.index(held.len())]);
        picked.map(|row| (row.row_id, row.begin)).collect()
    }

    fn select(&self, version: u64, keep: impl Fn(&Row) -> bool) -> Vec<(u64, u64, Option<u64>, i64)> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.version == version && keep(row))
            .map(|row| (row.row_id, row.begin, row.end, row.value))
            .collect();
        rows.sort_unstable();
        rows
    }
}

async fn write(staging: &mut Staging, model: &mut Model, version: u64, row_ids: &[u64]) {
    if row_ids.is_empty() {
        return;
    }
    let values = model.add(version, row_ids);
    model.listed.insert(version);
    insert(
        staging,
        &model.memory(),
        TABLE,
        version,
        model.snapshot,
        row_ids,
        &rows(&values),
    )
    .await
    .unwrap();
}

async fn apply(store: &MemoryStore, staged: &mut Staging, model: &mut Model, step: Step) {
    match step {
        Step::Insert { version, runs } => {
            let mut row_ids = Vec::new();
            for run in runs {
                row_ids.extend(model.next_row..model.next_row + u64::from(run));
                model.next_row += u64::from(run) + 1;
            }
            write(staged, model, version, &row_ids).await;
        }
        Step::Update { version, rows } => {
            let ended = model.end(&rows);
            end_rows(staged, TABLE, &ended, model.snapshot).await.unwrap();
            let row_ids: Vec<u64> = ended.iter().map(|(row_id, _)| *row_id).collect();
            write(staged, model, version, &row_ids).await;
        }
        Step::Return { version, rows } => {
            let row_ids = model.absent(&rows);
            write(staged, model, version, &row_ids).await;
        }
        Step::End { rows } => {
            let ended = model.end(&rows);
            end_rows(staged, TABLE, &ended, model.snapshot).await.unwrap();
        }
        Step::Remove { version, rows } => {
            let picked = model.pick(version, &rows);
            let gone = model.take(|row| row.version == version && picked.contains(&(row.row_id, row.begin)));
            remove_rows(staged, &model.memory(), TABLE, version, &gone)
                .await
                .unwrap();
        }
        Step::Flush { version, back } => {
            let until = model.snapshot.saturating_sub(back);
            let gone = model.take(|row| row.version == version && row.begin <= until);
            remove_rows(staged, &model.memory(), TABLE, version, &gone)
                .await
                .unwrap();
        }
        Step::Drop { version } => {
            model.take(|row| row.version == version);
            model.listed.remove(&version);
            drop_version(staged, &model.memory(), TABLE, version)
                .await
                .unwrap();
        }
        Step::Commit => {
            commit(store, staged).await;
            *staged = staging(store);
            model.batches += 1;
            model.snapshot += 1;
        }
        Step::Advance => model.snapshot += 1,
    }
}

async fn selected(
    read: &Staging,
    directories: &DirectoriesAt,
    version: u64,
    predicate: &RowPredicate,
) -> Vec<(u64, u64, Option<u64>, i64)> {
    let selection = select(read, directories, TABLE, version, predicate)
        .await
        .unwrap();
    let mut values = Vec::new();
    for start in (0..selection.rows().len()).step_by(4) {
        let end = selection.rows().len().min(start + 4);
        values.extend(numbers(&selection.window(read, start..end, &[0]).await.unwrap()));
    }
    let rows = selection.rows().iter().zip(values);
    rows.map(|(row, value)| (row.row_id, row.begin_snapshot, row.end_snapshot, value))
        .collect()
}

async fn compare(read: &Staging, model: &Model) {
    let memory = &model.memory();
    for version in 0..VERSIONS {
        let all = selected(read, memory, version, &RowPredicate::default()).await;
        assert_eq!(all, model.select(version, |_| true), "all of version {version}");
        for snapshot in 0..=model.snapshot {
            let seen = selected(read, memory, version, &RowPredicate::visible_at(snapshot)).await;
            let expected = model.select(version, |row| {
                row.begin <= snapshot && row.end.is_none_or(|end| snapshot < end)
            });
            assert_eq!(seen, expected, "version {version} at snapshot {snapshot}");
        }
        let middle = model.snapshot / 2..=model.snapshot;
        for row in &model.rows {
            let one = RowPredicate {
                row_ids: [row.row_id].into_iter().collect(),
                ..RowPredicate::default()
            };
            let found = selected(read, memory, version, &one).await;
            assert_eq!(
                found,
                model.select(version, |other| other.row_id == row.row_id),
                "row {}",
                row.row_id
            );
        }
        let inserted = selected(read, memory, version, &RowPredicate::inserted_in(middle.clone())).await;
        assert_eq!(inserted, model.select(version, |row| middle.contains(&row.begin)));
        let deleted = selected(read, memory, version, &RowPredicate::deleted_in(middle.clone())).await;
        assert_eq!(
            deleted,
            model.select(version, |row| row.end.is_some_and(|end| middle.contains(&end)))
        );
    }
    let listed = versions(read, Some(TABLE)).await.unwrap();
    let expected: Vec<_> = (0..VERSIONS)
        .map(|version| (TABLE, version, model.listed.contains(&version)))
        .collect();
    assert_eq!(listed, expected);
    check_records(read, model).await;
}

/// One locator for each chunk, and no tombstone that ends nothing.
async fn check_records(read: &dyn Read, model: &Model) {
    let chunks: BTreeSet<_> = keys::<InlineInsertKey>(read)
        .await
        .into_iter()
        .map(|key| (key.schema_version, key.begin_snapshot, key.chunk_seq))
        .collect();
    let locators = keys::<ChunkLocatorKey>(read).await;
    let located: BTreeSet<_> = locators
        .iter()
        .map(|key| (key.schema_version, key.begin_snapshot, key.chunk_seq))
        .collect();
    assert_eq!((located.len(), &located), (locators.len(), &chunks));
    let tombstones: BTreeSet<(u64, u64)> = keys::<RowTombstoneKey>(read)
        .await
        .iter()
        .map(|key| (key.row_id, key.end_snapshot))
        .collect();
    let ends: BTreeSet<(u64, u64)> = model
        .rows
        .iter()
        .filter_map(|row| row.end.map(|end| (row.row_id, end)))
        .collect();
    assert_eq!(tombstones, ends);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn histories_read_like_a_list_of_rows_at_every_snapshot(steps in steps()) {
        run(async {
            let store = MemoryStore::new();
            let mut staged = staging(&store);
            let mut model = Model { snapshot: 1, ..Model::default() };
            for version in 0..VERSIONS {
                create_table(&mut staged, TABLE, version, &columns(), true).await.unwrap();
                model.listed.insert(version);
            }
            for step in steps {
                apply(&store, &mut staged, &mut model, step).await;
                compare(&staged, &model).await;
            }
            commit(&store, &staged).await;
            model.batches += 1;
            compare(&staging(&store), &model).await;
        });
    }
}
