//! A lake in memory and short ways to write rows and read them back.

use std::sync::Arc;

use moraine_commit::{Catalog, CatalogTransaction};
use moraine_store::{MemoryStore, Store};
use moraine_tables::{
    ColumnType, CompareOp, Comparison, Filter, Relation, RowAddress, TableError, Value, describe, insert,
    scan,
};

/// A lake with snapshot 0 and schema `main`.
pub(crate) struct Lake {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) store: Arc<MemoryStore>,
}

impl Lake {
    pub(crate) async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let lake = Self::over(store);
        lake.catalog.create(Some("data/"), false).await.unwrap();
        lake
    }

    pub(crate) fn over(store: Arc<MemoryStore>) -> Self {
        let catalog = Catalog::with_store(Arc::clone(&store) as Arc<dyn Store>);
        Self { catalog, store }
    }

    /// The same store, opened anew.
    pub(crate) fn reopen(&self) -> Self {
        Self::over(Arc::clone(&self.store))
    }

    pub(crate) async fn begin(&self) -> CatalogTransaction {
        self.catalog.begin().await.unwrap()
    }

    /// Begins a transaction that mints the next snapshot.
    pub(crate) async fn begin_snapshot(&self) -> CatalogTransaction {
        let mut tx = self.begin().await;
        let snapshot = i64::try_from(tx.newest_snapshot_id().unwrap()).unwrap() + 1;
        let row = vec![
            Value::Int64(snapshot),
            Value::TimestampTz(1_700_000_000_000_000 + snapshot),
            Value::Int64(snapshot),
            Value::Int64(1000),
            Value::Int64(1000),
        ];
        insert(&mut tx, Relation::Snapshot, vec![row]).await.unwrap();
        let changes = vec![
            Value::Int64(snapshot),
            Value::text("altered_table:1"),
            Value::Null,
            Value::Null,
            Value::Null,
        ];
        insert(&mut tx, Relation::SnapshotChanges, vec![changes])
            .await
            .unwrap();
        tx
    }

    /// Inserts rows of several relations in one snapshot.
    pub(crate) async fn write(&self, rows: impl IntoIterator<Item = (Relation, Vec<Vec<Value>>)>) {
        let mut tx = self.begin_snapshot().await;
        for (relation, rows) in rows {
            insert(&mut tx, relation, rows).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// All rows of a relation as a new transaction sees them.
    pub(crate) async fn rows(&self, relation: Relation) -> Vec<Vec<Value>> {
        rows(&self.begin().await, relation).await
    }
}

/// Inserts rows that fit.
pub(crate) async fn put(tx: &mut CatalogTransaction, relation: Relation, rows: Vec<Vec<Value>>) {
    insert(tx, relation, rows).await.unwrap();
}

pub(crate) async fn rows(tx: &CatalogTransaction, relation: Relation) -> Vec<Vec<Value>> {
    rows_where(tx, relation, Filter::all()).await
}

pub(crate) async fn rows_where(
    tx: &CatalogTransaction,
    relation: Relation,
    filter: Filter,
) -> Vec<Vec<Value>> {
    addressed(tx, relation, filter)
        .await
        .into_iter()
        .map(|(_, values)| values)
        .collect()
}

/// The rows that pass, whole, with their addresses.
pub(crate) async fn addressed(
    tx: &CatalogTransaction,
    relation: Relation,
    filter: Filter,
) -> Vec<(RowAddress, Vec<Value>)> {
    let schema = describe(tx, relation).await.unwrap().unwrap();
    let all: Vec<usize> = (0..schema.columns.len()).collect();
    let rows = scan(tx, relation, &all, &filter)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    rows.into_iter().map(|row| (row.address, row.values)).collect()
}

pub(crate) async fn addresses(
    tx: &CatalogTransaction,
    relation: Relation,
    filter: Filter,
) -> Vec<RowAddress> {
    addressed(tx, relation, filter)
        .await
        .into_iter()
        .map(|(address, _)| address)
        .collect()
}

pub(crate) fn compare(column: usize, op: CompareOp, value: impl Cell) -> Filter {
    Filter::only(Comparison::Compare {
        column,
        op,
        value: value.cell(),
    })
}

pub(crate) fn equals(column: usize, value: impl Cell) -> Filter {
    compare(column, CompareOp::Eq, value)
}

pub(crate) fn and(filters: impl IntoIterator<Item = Filter>) -> Filter {
    Filter {
        all_of: filters.into_iter().flat_map(|filter| filter.all_of).collect(),
    }
}

/// The error's text and its variant's name.
pub(crate) fn refusal(outcome: Result<u64, TableError>) -> (String, String) {
    let error = outcome.unwrap_err();
    let variant = format!("{error:?}");
    let variant = variant.split(['(', ' ', '{']).next().unwrap().to_owned();
    (variant, error.to_string())
}

/// Something that stands for a value in a test.
pub(crate) trait Cell {
    fn cell(self) -> Value;
}

impl Cell for Value {
    fn cell(self) -> Value {
        self
    }
}

impl Cell for i64 {
    fn cell(self) -> Value {
        Value::Int64(self)
    }
}

impl Cell for i32 {
    fn cell(self) -> Value {
        Value::Int64(i64::from(self))
    }
}

impl Cell for &str {
    fn cell(self) -> Value {
        Value::text(self)
    }
}

impl Cell for bool {
    fn cell(self) -> Value {
        Value::Bool(self)
    }
}

/// SQL NULL.
pub(crate) struct Null;

impl Cell for Null {
    fn cell(self) -> Value {
        Value::Null
    }
}

/// A UUID whose last byte is given.
pub(crate) fn uuid(last: u8) -> Value {
    let mut bytes = [0xab; 16];
    bytes[15] = last;
    Value::Uuid(bytes)
}

/// Some value of a type.
pub(crate) fn some_value(column_type: ColumnType) -> Value {
    match column_type {
        ColumnType::Int64 => Value::Int64(1),
        ColumnType::Text => Value::text("x"),
        ColumnType::Bool => Value::Bool(true),
        ColumnType::Uuid => uuid(1),
        ColumnType::TimestampTz => Value::TimestampTz(1),
        other => panic!("no value of {other:?} in these tests"),
    }
}

macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::support::Cell::cell($cell)),*] };
}

pub(crate) use row;
