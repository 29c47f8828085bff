//! A lake with one of everything, made commit by commit, and short ways to move it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use moraine_commit::{Catalog, CatalogTransaction};
use moraine_keys::KeyRange;
use moraine_migrate::Silent;
use moraine_migrate::export::{ExportOptions, export};
use moraine_migrate::import::{ImportError, ImportOptions, ImportReport, import};
use moraine_migrate::lake::{CatalogLocation, open_source, open_target};
use moraine_store::{MemoryStore, Store, collect};
use moraine_tables::{Column, ColumnType, Filter, Relation, RowAddress, Value, create, insert, scan, update};

pub(crate) fn n(number: i64) -> Value {
    Value::Int64(number)
}

pub(crate) fn s(text: &str) -> Value {
    Value::text(text)
}

pub(crate) const NULL: Value = Value::Null;

fn uuid(byte: u8) -> Value {
    Value::Uuid([byte; 16])
}

/// One transaction with the snapshot it mints.
struct Commit {
    tx: CatalogTransaction,
    snapshot: i64,
}

impl Commit {
    async fn begin(catalog: &Arc<Catalog>, snapshot: i64, version: i64, changes: &str) -> Self {
        let mut tx = catalog.begin().await.unwrap();
        let time = Value::TimestampTz(1_700_000_000_000_000 + snapshot);
        let row = vec![n(snapshot), time, n(version), n(20), n(20)];
        insert(&mut tx, Relation::Snapshot, vec![row]).await.unwrap();
        let row = vec![n(snapshot), s(changes), s("author"), NULL, NULL];
        insert(&mut tx, Relation::SnapshotChanges, vec![row])
            .await
            .unwrap();
        Commit { tx, snapshot }
    }

    async fn add(&mut self, relation: Relation, rows: Vec<Vec<Value>>) {
        insert(&mut self.tx, relation, rows).await.unwrap();
    }

    /// Ends the live row of a relation whose column holds a value.
    async fn end(&mut self, relation: Relation, column: usize, value: i64, end: usize) {
        let ends = vec![(end, n(self.snapshot))];
        let all = Filter::default();
        let rows = scan(&self.tx, relation, &[column, end], &all).await.unwrap();
        let rows = rows.collect().await.unwrap();
        let found: Vec<(RowAddress, Vec<(usize, Value)>)> = rows
            .into_iter()
            .filter(|row| row.values == [n(value), NULL])
            .map(|row| (row.address, ends.clone()))
            .collect();
        assert_eq!(update(&mut self.tx, relation, found).await.unwrap(), 1);
    }

    async fn done(self) {
        self.tx.commit().await.unwrap();
    }
}

fn column(id: i64, begin: i64, name: &str, kind: &str) -> Vec<Value> {
    let mut row = vec![
        n(id),
        n(begin),
        NULL,
        n(1),
        n(id),
        s(name),
        s(kind),
        NULL,
        s("NULL"),
    ];
    row.extend([Value::Bool(true), NULL, s("literal"), s("duckdb")]);
    row
}

fn data_file(id: i64, begin: i64, row_id_start: i64) -> Vec<Value> {
    let mut row = vec![
        n(id),
        n(1),
        n(begin),
        NULL,
        NULL,
        s("f.parquet"),
        Value::Bool(true),
        s("parquet"),
    ];
    row.extend([n(5), n(500), n(50), n(row_id_start), n(3), NULL, NULL, NULL]);
    row
}

/// A lake with rows in every table, some of them ended.
pub(crate) async fn lake() -> (Arc<MemoryStore>, Arc<Catalog>) {
    let store = Arc::new(MemoryStore::new());
    let catalog = Catalog::with_store(Arc::clone(&store) as Arc<dyn Store>);
    catalog.create(Some("/data/"), false).await.unwrap();
    definitions(&catalog).await;
    files(&catalog).await;
    inlined(&catalog).await;
    (store, catalog)
}

async fn definitions(catalog: &Arc<Catalog>) {
    let mut one = Commit::begin(catalog, 1, 1, r#"created_table:"main"."t""#).await;
    one.add(
        Relation::Table,
        vec![vec![
            n(1),
            uuid(1),
            n(1),
            NULL,
            n(0),
            s("t"),
            s("t/"),
            Value::Bool(true),
        ]],
    )
    .await;
    let columns = vec![column(1, 1, "a", "int32"), column(2, 1, "b", "varchar")];
    one.add(Relation::Column, columns).await;
    one.add(Relation::SchemaVersions, vec![vec![n(1), n(1), n(1)]])
        .await;
    one.add(Relation::TableStats, vec![vec![n(1), n(0), n(0), n(0)]])
        .await;
    one.add(Relation::PartitionInfo, vec![vec![n(3), n(1), n(1), NULL]])
        .await;
    let parts = vec![
        vec![n(3), n(1), n(0), n(1), s("identity")],
        vec![n(3), n(1), n(1), n(2), s("bucket(4)")],
    ];
    one.add(Relation::PartitionColumn, parts).await;
    one.add(Relation::SortInfo, vec![vec![n(4), n(1), n(1), NULL]])
        .await;
    let sort = vec![n(4), n(1), n(0), s("a"), s("duckdb"), s("ASC"), s("NULLS_LAST")];
    one.add(Relation::SortExpression, vec![sort]).await;
    one.add(
        Relation::ColumnTag,
        vec![vec![n(1), n(2), n(1), NULL, s("comment"), s("first")]],
    )
    .await;
    one.done().await;
    more_definitions(catalog).await;
}

async fn more_definitions(catalog: &Arc<Catalog>) {
    let mut two = Commit::begin(catalog, 2, 2, r#"created_view:"main"."v",altered_table:1"#).await;
    let view = vec![
        n(5),
        uuid(5),
        n(2),
        NULL,
        n(0),
        s("v"),
        s("duckdb"),
        s("SELECT 1"),
        NULL,
    ];
    two.add(Relation::View, vec![view]).await;
    two.add(Relation::Macro, vec![vec![n(0), n(6), s("m"), n(2), NULL]])
        .await;
    two.add(
        Relation::MacroImpl,
        vec![vec![n(6), n(0), s("duckdb"), s("x + y"), s("scalar")]],
    )
    .await;
    let parameters = vec![
        vec![n(6), n(0), n(0), s("x"), s("unknown"), NULL, s("unknown")],
        vec![n(6), n(0), n(1), s("y"), s("int32"), s("5"), s("int32")],
    ];
    two.add(Relation::MacroParameters, parameters).await;
    two.add(
        Relation::Tag,
        vec![vec![n(1), n(2), NULL, s("comment"), s("a table")]],
    )
    .await;
    two.end(Relation::Column, 0, 2, 2).await;
    two.add(Relation::Column, vec![column(2, 2, "label", "varchar")])
        .await;
    two.end(Relation::ColumnTag, 1, 2, 3).await;
    two.add(
        Relation::ColumnTag,
        vec![vec![n(1), n(2), n(2), NULL, s("comment"), s("second")]],
    )
    .await;
    two.add(Relation::SchemaVersions, vec![vec![n(2), n(2), n(1)]])
        .await;
    let option = vec![s("parquet_compression"), s("zstd"), s("table"), n(1)];
    two.add(Relation::Metadata, vec![option]).await;
    two.done().await;
}

async fn files(catalog: &Arc<Catalog>) {
    let mut three = Commit::begin(catalog, 3, 2, "inserted_into_table:1").await;
    three
        .add(Relation::DataFile, vec![data_file(0, 3, 0), data_file(1, 3, 5)])
        .await;
    let values = (0..2).flat_map(|file| [vec![n(file), n(1), n(0), s("1")], vec![n(file), n(1), n(1), NULL]]);
    three.add(Relation::FilePartitionValue, values.collect()).await;
    let stats = |file| vec![n(file), n(1), n(1), n(9), n(5), n(0), s("1"), s("5"), NULL, NULL];
    three
        .add(Relation::FileColumnStats, vec![stats(0), stats(1)])
        .await;
    let mut variant = vec![n(0), n(1), n(1), s("p"), s("int64"), n(1), n(1), n(0), NULL, NULL];
    variant.extend([NULL, NULL]);
    three.add(Relation::FileVariantStats, vec![variant]).await;
    three
        .add(Relation::ColumnMapping, vec![vec![n(2), n(1), s("map_by_name")]])
        .await;
    let name = vec![n(2), n(0), s("A"), n(1), NULL, Value::Bool(false)];
    three.add(Relation::NameMapping, vec![name]).await;
    let stats = vec![n(1), n(1), Value::Bool(false), NULL, s("1"), s("5"), NULL];
    three.add(Relation::TableColumnStats, vec![stats]).await;
    three.done().await;

    let mut four = Commit::begin(catalog, 4, 2, "deleted_from_table:1").await;
    let mut delete = vec![
        n(3),
        n(1),
        n(4),
        NULL,
        n(0),
        s("d.parquet"),
        Value::Bool(true),
        s("parquet"),
    ];
    delete.extend([n(1), n(40), n(4), NULL, NULL]);
    four.add(Relation::DeleteFile, vec![delete]).await;
    four.end(Relation::DataFile, 0, 1, 3).await;
    let gone = vec![n(9), s("old.parquet"), Value::Bool(true), Value::TimestampTz(7)];
    four.add(Relation::FilesScheduledForDeletion, vec![gone]).await;
    four.done().await;
}

async fn inlined(catalog: &Arc<Catalog>) {
    let table = Relation::InlinedData {
        table_id: 1,
        schema_version: 2,
    };
    let mut five = Commit::begin(catalog, 5, 2, "inlined_insert:1").await;
    let columns = vec![
        Column::new("a", ColumnType::Int32),
        Column::new("label", ColumnType::Bytes),
    ];
    create(&mut five.tx, table, Some(columns)).await.unwrap();
    five.add(
        Relation::InlinedDataTables,
        vec![vec![n(1), s(&table.name()), n(2)]],
    )
    .await;
    let row = |id: i64, begin: i64, text: &str| {
        let label = Value::Bytes(Bytes::copy_from_slice(text.as_bytes()));
        vec![n(id), n(begin), NULL, Value::Int32(7), label]
    };
    five.add(table, vec![row(10, 5, "a\0b"), row(11, 5, "ü"), row(13, 5, "")])
        .await;
    five.done().await;

    let mut six = Commit::begin(catalog, 6, 2, "inlined_insert:1,inlined_delete:1").await;
    six.end(table, 0, 11, 2).await;
    six.add(table, vec![row(11, 6, "again")]).await;
    let deletes = Relation::InlinedDelete { table_id: 1 };
    create(&mut six.tx, deletes, None).await.unwrap();
    six.add(deletes, vec![vec![n(0), n(2), n(6)]]).await;
    six.done().await;

    // The counter of row ids, as the last insert has left it.
    let mut tx = catalog.begin().await.unwrap();
    let rows = scan(&tx, Relation::TableStats, &[0], &Filter::default())
        .await
        .unwrap();
    let row = rows.collect().await.unwrap().pop().unwrap();
    let counted = vec![(row.address, vec![(1, n(9)), (2, n(14)), (3, n(1000))])];
    update(&mut tx, Relation::TableStats, counted).await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) fn sqlite(path: &Path) -> CatalogLocation {
    CatalogLocation::Sqlite {
        path: path.to_owned(),
    }
}

pub(crate) async fn export_to(catalog: &Arc<Catalog>, location: &CatalogLocation) {
    let target = open_target(location).await.unwrap();
    export(catalog, target, &ExportOptions::default(), &Silent)
        .await
        .unwrap();
}

pub(crate) async fn import_from(
    location: &CatalogLocation,
    store: &Arc<MemoryStore>,
    options: &ImportOptions,
) -> Result<ImportReport, ImportError> {
    let mut source = open_source(location).await.unwrap();
    let store = Arc::clone(store) as Arc<dyn Store>;
    import(source.as_mut(), store, options, &Silent).await
}

/// All records of a store.
pub(crate) async fn records(store: &MemoryStore) -> BTreeMap<Bytes, Bytes> {
    let view = store.view().unwrap();
    let scan = view.scan(KeyRange::all()).await.unwrap();
    collect(scan).await.unwrap().into_iter().collect()
}
