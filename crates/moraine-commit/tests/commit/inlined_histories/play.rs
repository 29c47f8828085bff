//! Plays actions on a lake and on the model, and compares them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use moraine_commit::Catalog;
use moraine_commit::check::check;
use moraine_commit::flush::FlushOptions;
use moraine_commit::lake::{ColumnDefault, ColumnType};
use moraine_commit::verbs::{ColumnDefinition, TableDefinition};
use moraine_store::{MemoryStore, Store};
use tempfile::TempDir;

use super::model::{Column, Model, Row, Table};
use super::read::{self, Place, SeenRow};

const ROWS_MAX: u16 = 6;
const TABLES_MAX: usize = 3;
const COLUMNS_MAX: usize = 5;

/// What is done in one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    CreateTable,
    DropTable,
    AddColumn,
    DropColumn,
    Insert,
    /// Of inlined rows.
    Update,
    /// Of inlined rows.
    Delete,
    /// Without a delete file.
    DeleteFromFile,
    /// Of all tables.
    Flush,
    FlushTable,
    Expire,
}

/// A lake, the folder of its files, and the model of both.
pub struct Game {
    catalog: Arc<Catalog>,
    store: MemoryStore,
    folder: TempDir,
    model: Model,
    /// Names and values are never given twice.
    counter: i64,
}

impl Game {
    pub async fn new() -> Game {
        let store = MemoryStore::new();
        let catalog = Catalog::with_store(Arc::new(store.clone()));
        catalog.create(Some("data/"), false).await.unwrap();
        let mut game = Game {
            catalog,
            store,
            folder: tempfile::tempdir().unwrap(),
            model: Model::default(),
            counter: 0,
        };
        game.model.snapshots.insert(0);
        game.create_table("t0").await;
        game
    }

    pub async fn play(&mut self, action: Action, pick: u16) {
        let live = self.model.live_tables();
        let table = (!live.is_empty()).then(|| live[usize::from(pick) % live.len()]);
        match (action, table) {
            (Action::CreateTable, _) if live.len() < TABLES_MAX => self.create_free_table().await,
            (Action::Flush, _) => self.flush(Vec::new()).await,
            (Action::Expire, _) => self.expire(pick).await,
            (Action::DropTable, Some(at)) => self.drop_table(at).await,
            (Action::AddColumn, Some(at)) => self.add_column(at, pick).await,
            (Action::DropColumn, Some(at)) => self.drop_column(at, pick).await,
            (Action::Insert, Some(at)) => self.insert(at, pick).await,
            (Action::Update, Some(at)) => self.update(at, pick).await,
            (Action::Delete, Some(at)) => self.delete(at, pick).await,
            (Action::DeleteFromFile, Some(at)) => self.delete_from_file(at, pick).await,
            (Action::FlushTable, Some(at)) => {
                let name = self.model.tables[at].name.clone();
                self.flush(vec![name]).await;
            }
            _ => return,
        }
        self.compare().await;
    }

    fn next(&mut self) -> i64 {
        self.counter += 1;
        self.counter
    }

    fn committed(&mut self, snapshot_id: Option<u64>) -> u64 {
        let snapshot_id = snapshot_id.unwrap();
        self.model.snapshots.insert(snapshot_id);
        snapshot_id
    }

    /// A table whose name is free, which an earlier one may have had.
    async fn create_free_table(&mut self) {
        let is_taken = |name: &String| {
            let mut tables = self.model.tables.iter();
            tables.any(|table| table.end.is_none() && table.name == *name)
        };
        let name = (0..)
            .map(|at| format!("t{at}"))
            .find(|name| !is_taken(name))
            .unwrap();
        self.create_table(&name).await;
    }

    async fn create_table(&mut self, name: &str) {
        let column = format!("c{}", self.next());
        let columns = vec![ColumnDefinition::new(&column, ColumnType::Int64)];
        let definition = TableDefinition::new(name, columns);
        let create = |tx: moraine_commit::verbs::LakeTransaction| {
            let definition = definition.clone();
            async move { tx.create_table("main", definition).await }
        };
        let commit = self.catalog.commit(create).await.unwrap();
        let begin = self.committed(commit.snapshot_id);
        let column = Column {
            column_id: 1,
            name: column,
            begin,
            end: None,
            default: None,
        };
        self.model.tables.push(Table {
            table_id: commit.value,
            name: name.to_owned(),
            begin,
            end: None,
            columns: vec![column],
            rows: Vec::new(),
        });
    }

    async fn drop_table(&mut self, at: usize) {
        let table_id = self.model.tables[at].table_id;
        let commit = self
            .catalog
            .commit(|tx| async move { tx.drop_table(table_id).await })
            .await
            .unwrap();
        let end = self.committed(commit.snapshot_id);
        self.model.tables[at].end = Some(end);
    }

    async fn add_column(&mut self, at: usize, pick: u16) {
        if self.model.tables[at].live_columns().len() >= COLUMNS_MAX {
            return;
        }
        let table_id = self.model.tables[at].table_id;
        let name = format!("c{}", self.next());
        let default = (pick.is_multiple_of(2)).then(|| i64::from(pick));
        let mut definition = ColumnDefinition::new(&name, ColumnType::Int64);
        if let Some(default) = default {
            definition = definition.with_default(ColumnDefault::Literal(default.to_string()));
        }
        let add = |tx: moraine_commit::verbs::LakeTransaction| {
            let definition = definition.clone();
            async move { tx.add_column(table_id, definition).await }
        };
        let commit = self.catalog.commit(add).await.unwrap();
        let begin = self.committed(commit.snapshot_id);
        self.model.tables[at].columns.push(Column {
            column_id: commit.value,
            name,
            begin,
            end: None,
            default,
        });
    }

    async fn drop_column(&mut self, at: usize, pick: u16) {
        let table = &self.model.tables[at];
        let live = table.live_columns();
        if live.len() < 2 {
            return;
        }
        let dropped = live[usize::from(pick) % live.len()];
        let (table_id, column_id, name) = (table.table_id, dropped.column_id, dropped.name.clone());
        let drop = |tx: moraine_commit::verbs::LakeTransaction| {
            let name = name.clone();
            async move { tx.drop_column(table_id, name.as_str()).await }
        };
        let commit = self.catalog.commit(drop).await.unwrap();
        let end = self.committed(commit.snapshot_id);
        let columns = self.model.tables[at].columns.iter_mut();
        for column in columns.filter(|column| column.column_id == column_id) {
            column.end = Some(end);
        }
    }

    /// Rows for the live columns of a table, and what they hold by column id; every seventh value is NULL.
    fn new_rows(&mut self, at: usize, count: usize) -> (RecordBatch, Vec<BTreeMap<u64, Option<i64>>>) {
        let columns: Vec<(u64, String)> = self.model.tables[at]
            .live_columns()
            .iter()
            .map(|column| (column.column_id, column.name.clone()))
            .collect();
        let mut rows = vec![BTreeMap::new(); count];
        let mut arrays: Vec<arrow_array::ArrayRef> = Vec::new();
        for (column_id, _) in &columns {
            let values: Vec<Option<i64>> = (0..count)
                .map(|_| {
                    let value = self.next();
                    (value % 7 != 0).then_some(value)
                })
                .collect();
            for (row, value) in rows.iter_mut().zip(&values) {
                row.insert(*column_id, *value);
            }
            arrays.push(Arc::new(Int64Array::from(values)));
        }
        let fields: Vec<Field> = columns
            .iter()
            .map(|(_, name)| Field::new(name, DataType::Int64, true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        (batch, rows)
    }

    fn add_rows(&mut self, at: usize, begin: u64, row_ids: &[u64], rows: Vec<BTreeMap<u64, Option<i64>>>) {
        for (row_id, values) in row_ids.iter().zip(rows) {
            self.model.tables[at].rows.push(Row {
                row_id: *row_id,
                begin,
                end: None,
                values,
            });
        }
    }

    fn end_rows(&mut self, at: usize, end: u64, row_ids: &[u64]) {
        let rows = self.model.tables[at].rows.iter_mut();
        for row in rows.filter(|row| row.end.is_none() && row_ids.contains(&row.row_id)) {
            row.end = Some(end);
        }
    }

    async fn insert(&mut self, at: usize, pick: u16) {
        let table_id = self.model.tables[at].table_id;
        let (batch, rows) = self.new_rows(at, usize::from(pick % ROWS_MAX) + 1);
        let insert = |tx: moraine_commit::verbs::LakeTransaction| {
            let batch = batch.clone();
            async move { tx.insert_inlined(table_id, batch).await }
        };
        let commit = self.catalog.commit(insert).await.unwrap();
        let begin = self.committed(commit.snapshot_id);
        let row_ids: Vec<u64> = commit.value.collect();
        self.add_rows(at, begin, &row_ids, rows);
    }

    /// The rows of a table that the newest snapshot shows.
    async fn newest_rows(&self, at: usize) -> Vec<SeenRow> {
        let snapshot = self.catalog.snapshot().await.unwrap();
        let table_id = self.model.tables[at].table_id;
        let table = snapshot.table_by_id(table_id).await.unwrap().unwrap();
        read::rows(&snapshot, &table, self.folder.path()).await
    }

    /// Some of the inlined rows.
    async fn some_inlined(&self, at: usize, pick: u16) -> Vec<u64> {
        let rows = self.newest_rows(at).await;
        let inlined = rows.iter().filter(|row| row.place == Place::Inlined);
        let row_ids = inlined.map(|row| row.row_id);
        let every = usize::from(pick % 3) + 1;
        row_ids.skip(usize::from(pick) % every).step_by(every).collect()
    }

    async fn update(&mut self, at: usize, pick: u16) {
        let row_ids = self.some_inlined(at, pick).await;
        if row_ids.is_empty() {
            return;
        }
        let table_id = self.model.tables[at].table_id;
        let (batch, rows) = self.new_rows(at, row_ids.len());
        let update = |tx: moraine_commit::verbs::LakeTransaction| {
            let (batch, row_ids) = (batch.clone(), row_ids.clone());
            async move { tx.update_inlined(table_id, &row_ids, batch).await }
        };
        let commit = self.catalog.commit(update).await.unwrap();
        let begin = self.committed(commit.snapshot_id);
        self.end_rows(at, begin, &row_ids);
        self.add_rows(at, begin, &row_ids, rows);
    }

    async fn delete(&mut self, at: usize, pick: u16) {
        let row_ids = self.some_inlined(at, pick).await;
        if row_ids.is_empty() {
            return;
        }
        let table_id = self.model.tables[at].table_id;
        let delete = |tx: moraine_commit::verbs::LakeTransaction| {
            let row_ids = row_ids.clone();
            async move { tx.delete_inlined(table_id, &row_ids).await }
        };
        let commit = self.catalog.commit(delete).await.unwrap();
        let end = self.committed(commit.snapshot_id);
        self.end_rows(at, end, &row_ids);
    }

    async fn delete_from_file(&mut self, at: usize, pick: u16) {
        let rows = self.newest_rows(at).await;
        let filed: Vec<(u64, u64, u64)> = rows
            .iter()
            .filter_map(|row| match row.place {
                Place::Inlined => None,
                Place::File {
                    data_file_id,
                    position,
                } => Some((data_file_id, position, row.row_id)),
            })
            .collect();
        let Some((data_file_id, ..)) = filed.get(usize::from(pick) % filed.len().max(1)).copied() else {
            return;
        };
        let of_file = filed.iter().filter(|(file, ..)| *file == data_file_id);
        let some: Vec<(u64, u64)> = of_file
            .step_by(usize::from(pick % 3) + 1)
            .map(|(_, position, row_id)| (*position, *row_id))
            .collect();
        let (positions, row_ids): (Vec<u64>, Vec<u64>) = some.into_iter().unzip();
        let table_id = self.model.tables[at].table_id;
        let delete = |tx: moraine_commit::verbs::LakeTransaction| {
            let positions = positions.clone();
            async move {
                tx.delete_from_file_inlined(table_id, data_file_id, &positions)
                    .await
            }
        };
        let commit = self.catalog.commit(delete).await.unwrap();
        let end = self.committed(commit.snapshot_id);
        self.end_rows(at, end, &row_ids);
    }

    async fn flush(&mut self, tables: Vec<String>) {
        let options = FlushOptions {
            tables,
            data_path: Some(self.folder.path().display().to_string()),
        };
        let report = self.catalog.flush(&options).await.unwrap();
        if let Some(snapshot_id) = report.snapshot_id {
            self.model.snapshots.insert(snapshot_id);
        }
    }

    async fn expire(&mut self, pick: u16) {
        let newest = self.model.newest();
        let every = usize::from(pick % 4) + 1;
        let expired: Vec<u64> = self
            .model
            .snapshots
            .iter()
            .copied()
            .filter(|id| *id != newest)
            .skip(usize::from(pick) % every)
            .step_by(every)
            .collect();
        if expired.is_empty() {
            return;
        }
        let expire = |tx: moraine_commit::verbs::LakeTransaction| {
            let expired = expired.clone();
            async move { tx.expire_snapshots(&expired).await }
        };
        self.catalog.commit(expire).await.unwrap();
        self.model.snapshots.retain(|id| !expired.contains(id));
    }

    async fn compare(&self) {
        let left = self.catalog.snapshots().await.unwrap();
        let left: Vec<u64> = left.iter().map(|snapshot| snapshot.snapshot_id).collect();
        assert!(left.iter().eq(&self.model.snapshots), "{left:?}");
        for snapshot_id in left {
            let snapshot = self.catalog.snapshot_at(snapshot_id).await.unwrap();
            let shown = read::shown(&snapshot, self.folder.path()).await;
            assert_eq!(
                shown,
                self.model.shown_at(snapshot_id),
                "at snapshot {snapshot_id}"
            );
        }
    }

    pub async fn check_invariants(&self) {
        let mut found = Vec::new();
        let view = self.store.view().unwrap();
        check(view.as_ref(), &mut |finding| found.push(finding))
            .await
            .unwrap();
        assert_eq!(found, []);
    }
}
