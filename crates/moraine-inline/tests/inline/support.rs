//! Shared by the tests: a table with two columns, and short ways to write and read it.

use std::future::Future;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_codec::Stored;
use moraine_inline::{DirectoriesAt, InlineError, RowPredicate, Selection, create_table};
use moraine_keys::{KeyRange, Kind};
use moraine_store::{MemoryStore, Read, ReadError, ReadExt, Staging, Store};

pub(crate) const TABLE: u64 = 7;
pub(crate) const VERSION: u64 = 3;

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn columns() -> SchemaRef {
    let columns = vec![
        Field::new("n", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ];
    Arc::new(Schema::new(columns))
}

/// Rows whose first column is `values` and whose second column spells it.
pub(crate) fn rows(values: &[i64]) -> RecordBatch {
    let numbers = Int64Array::from(values.to_vec());
    let texts: StringArray = values
        .iter()
        .map(|value| (value % 3 != 0).then(|| format!("v{value}")))
        .collect();
    RecordBatch::try_new(columns(), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

pub(crate) fn staging(store: &MemoryStore) -> Staging {
    Staging::new(store.view().unwrap())
}

/// A staging on an empty store with table 7 at version 3.
pub(crate) async fn fresh() -> Staging {
    let mut staging = staging(&MemoryStore::new());
    create_table(&mut staging, TABLE, VERSION, &columns(), true)
        .await
        .unwrap();
    staging
}

pub(crate) async fn commit(store: &MemoryStore, staging: &Staging) {
    let mut transaction = store.begin().unwrap();
    staging.writes().apply(transaction.as_mut()).unwrap();
    transaction.commit().await.unwrap().durable().await.unwrap();
}

pub(crate) async fn insert(
    staging: &mut Staging,
    table_id: u64,
    version: u64,
    begin: u64,
    row_ids: &[u64],
    batch: &RecordBatch,
) -> Result<(), InlineError> {
    let unknown = DirectoriesAt::unknown();
    moraine_inline::insert(staging, &unknown, table_id, version, begin, row_ids, batch).await
}

/// A selection by somebody who remembers nothing of the directory.
pub(crate) async fn select(
    staging: &Staging,
    table_id: u64,
    version: u64,
    predicate: &RowPredicate,
) -> Result<Selection, InlineError> {
    moraine_inline::select(staging, &DirectoriesAt::unknown(), table_id, version, predicate).await
}

pub(crate) async fn remove_rows(
    staging: &mut Staging,
    table_id: u64,
    version: u64,
    rows: &[(u64, u64)],
) -> Result<(), InlineError> {
    moraine_inline::remove_rows(staging, &DirectoriesAt::unknown(), table_id, version, rows).await
}

pub(crate) async fn drop_version(
    staging: &mut Staging,
    table_id: u64,
    version: u64,
) -> Result<(), InlineError> {
    moraine_inline::drop_version(staging, &DirectoriesAt::unknown(), table_id, version).await
}

/// What is staged, as the committed state of a store of its own: directories are judged by what is committed.
pub(crate) async fn committed(staged: &Staging) -> Staging {
    let store = MemoryStore::new();
    commit(&store, staged).await;
    staging(&store)
}

/// Inserts rows whose values are their row ids.
pub(crate) async fn put(staging: &mut Staging, version: u64, begin: u64, row_ids: &[u64]) {
    let values: Vec<i64> = row_ids
        .iter()
        .map(|row_id| i64::try_from(*row_id).unwrap())
        .collect();
    insert(staging, TABLE, version, begin, row_ids, &rows(&values))
        .await
        .unwrap();
}

/// (row id, begin, end) of what `predicate` selects.
pub(crate) async fn lifetimes(
    read: &Staging,
    version: u64,
    predicate: &RowPredicate,
) -> Vec<(u64, u64, Option<u64>)> {
    let selection = select(read, TABLE, version, predicate).await.unwrap();
    selection
        .rows()
        .iter()
        .map(|row| (row.row_id, row.begin_snapshot, row.end_snapshot))
        .collect()
}

/// (row id, value of the first column) of what is visible at `snapshot`.
pub(crate) async fn visible(read: &Staging, version: u64, snapshot: u64) -> Vec<(u64, i64)> {
    let selection = select(read, TABLE, version, &RowPredicate::visible_at(snapshot))
        .await
        .unwrap();
    let batch = selection
        .window(read, 0..selection.rows().len(), &[0, 1])
        .await
        .unwrap();
    let values = numbers(&batch);
    selection
        .rows()
        .iter()
        .map(|row| row.row_id)
        .zip(values)
        .collect()
}

pub(crate) fn numbers(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

pub(crate) async fn keys<K: Kind>(read: &dyn Read) -> Vec<K> {
    read.keys(K::scan()).await.unwrap()
}

/// Stages a record that the codec would refuse to write.
pub(crate) fn put_unverified<K: Stored>(staging: &mut Staging, key: &K, value: &K::Value) {
    staging.put_raw(key.encode(), moraine_codec::frame(value));
}

/// Every key and value, to see that a refused operation staged nothing.
pub(crate) async fn everything(read: &dyn Read) -> Vec<(bytes::Bytes, bytes::Bytes)> {
    moraine_store::collect(read.scan(KeyRange::all()).await.unwrap())
        .await
        .unwrap()
}

pub(crate) fn is_corruption_at(error: &InlineError, key: &impl ToString) -> bool {
    matches!(error, InlineError::Read(ReadError::Corruption { at, .. }) if *at == key.to_string())
}
