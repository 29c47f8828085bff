//! What is measured.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use futures::SinkExt;
use moraine_codec::proto::DeleteFileValue;
use moraine_keys::{DeleteFileKey, DeleteTargetKey, KeyRange, Kind};
use moraine_migrate::Silent;
use moraine_migrate::import::{ImportOptions, import};
use moraine_migrate::lake::{CatalogLocation, open_source};
use moraine_migrate::units::{MigrateOptions, Progress, migrate};
use moraine_store::{OpenOptions, Store, open};
use moraine_tables::{ColumnType, Relation, fixed_schema};
use rusqlite::types::ValueRef;

/// Records per batch of the work that is compared with.
pub(crate) const BATCH_RECORDS: usize = 2048;
/// Bytes of rows that are sent to PostgreSQL at once.
const COPY_BYTES: usize = 1 << 20;
/// Where PostgreSQL keeps the copied rows.
const SCHEMA: &str = "moraine_bench_migrate";

/// How the command opens a store that it writes as a whole, and thus what it is compared with, too.
fn bulk(create: bool) -> OpenOptions {
    OpenOptions {
        create,
        bulk: true,
        ..OpenOptions::default()
    }
}

/// Imports the lake in a SQLite file; how many rows it has.
pub(crate) async fn import_lake(sqlite: &Path, store: &str) -> anyhow::Result<u64> {
    let store = open(&store.parse()?, &bulk(true)).await?;
    let location = CatalogLocation::Sqlite {
        path: sqlite.to_owned(),
    };
    let mut source = open_source(&location).await?;
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let report = import(source.as_mut(), shared, &ImportOptions::default(), &Silent).await?;
    store.close().await?;
    Ok(report.rows.values().sum())
}

/// Migrates a store; how long it only looked.
pub(crate) async fn migrate_lake(store: &str) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut looking = Duration::ZERO;
    let mut observer = |progress: &Progress| {
        if progress.total.is_none() {
            looking = started.elapsed();
        }
        ControlFlow::Continue(())
    };
    migrate(&store.parse()?, &MigrateOptions::default(), &mut observer).await?;
    Ok(looking)
}

/// Reads what the migration reads and writes what it writes of files, and nothing else.
pub(crate) async fn same_reads_and_writes(store: &str) -> anyhow::Result<u64> {
    let store = open(&store.parse()?, &bulk(false)).await?;
    let view = store.view()?;
    let mut records = 0;
    let mut all = view.scan(KeyRange::all()).await?;
    while all.next().await?.is_some() {
        records += 1;
    }
    let mut scan = view.scan(DeleteFileKey::scan()).await?;
    let mut batch = Vec::new();
    while let Some((key, value)) = scan.next().await? {
        let key = DeleteFileKey::decode(&key)?;
        let value: DeleteFileValue = moraine_codec::decode(&key, &value)?;
        let target = DeleteTargetKey {
            table_id: key.table_id,
            data_file_id: value.data_file_id,
            delete_file_id: key.delete_file_id,
        };
        batch.push((target.encode(), Bytes::new()));
        if batch.len() == BATCH_RECORDS {
            put(store.as_ref(), std::mem::take(&mut batch)).await?;
        }
    }
    put(store.as_ref(), batch).await?;
    store.close().await?;
    Ok(records)
}

/// Reads every record and writes it again.
pub(crate) async fn rewrite(store: &str) -> anyhow::Result<u64> {
    let store = open(&store.parse()?, &bulk(false)).await?;
    let view = store.view()?;
    let mut scan = view.scan(KeyRange::all()).await?;
    let (mut batch, mut records) = (Vec::new(), 0);
    while let Some(record) = scan.next().await? {
        records += 1;
        batch.push(record);
        if batch.len() == BATCH_RECORDS {
            put(store.as_ref(), std::mem::take(&mut batch)).await?;
        }
    }
    put(store.as_ref(), batch).await?;
    store.close().await?;
    Ok(records)
}

/// Writes one batch, and waits until it is durable.
pub(crate) async fn put(store: &dyn Store, records: Vec<(Bytes, Bytes)>) -> anyhow::Result<()> {
    let mut transaction = store.begin()?;
    for (key, value) in records {
        transaction.put(key, value)?;
    }
    Ok(transaction.commit().await?.durable().await?)
}

/// Copies the rows of the catalog in a SQLite file into tables of a schema of their own as DuckLake declares them, in one
/// transaction; the schema is dropped before and afterwards.
pub(crate) async fn copy(sqlite: &Path, postgres: &str) -> anyhow::Result<u64> {
    let (mut client, driver) = tokio_postgres::connect(postgres, tokio_postgres::NoTls).await?;
    tokio::spawn(driver);
    let database = rusqlite::Connection::open(sqlite)?;
    let drop = format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE");
    client.batch_execute(&drop).await?;
    let transaction = client.transaction().await?;
    transaction
        .batch_execute(&format!("CREATE SCHEMA {SCHEMA}"))
        .await?;
    let mut copied = 0;
    for relation in Relation::FIXED {
        copied += copy_table(&database, &transaction, relation).await?;
    }
    transaction.commit().await?;
    client.batch_execute(&drop).await?;
    Ok(copied)
}

async fn copy_table(
    database: &rusqlite::Connection,
    transaction: &tokio_postgres::Transaction<'_>,
    relation: Relation,
) -> anyhow::Result<u64> {
    let schema = fixed_schema(relation).context("a table without a schema")?;
    let columns: Vec<String> = schema
        .columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let key = if schema.primary_key == Some(position) {
                " PRIMARY KEY"
            } else {
                ""
            };
            format!("\"{}\" {}{key}", column.name, column.column_type.sql_name())
        })
        .collect();
    let create = format!("CREATE TABLE {SCHEMA}.{relation}({})", columns.join(", "));
    transaction.batch_execute(&create).await?;
    let copy = format!("COPY {SCHEMA}.{relation} FROM STDIN");
    let mut sink = Box::pin(transaction.copy_in::<_, Bytes>(&copy).await?);
    let mut statement = database.prepare(&format!("SELECT * FROM {relation}"))?;
    let mut rows = statement.query([])?;
    let (mut bytes, mut copied) = (Vec::with_capacity(COPY_BYTES), 0);
    while let Some(row) = rows.next()? {
        for (position, column) in schema.columns.iter().enumerate() {
            if position > 0 {
                bytes.push(b'\t');
            }
            match (row.get_ref(position)?, column.column_type) {
                (ValueRef::Integer(number), ColumnType::Bool) => {
                    bytes.extend_from_slice(if number == 0 { b"f" } else { b"t" });
                }
                (ValueRef::Integer(number), _) => bytes.extend(number.to_string().bytes()),
                (ValueRef::Text(text), _) => bytes.extend(text),
                _ => bytes.extend(b"\\N"),
            }
        }
        bytes.push(b'\n');
        copied += 1;
        if bytes.len() >= COPY_BYTES {
            sink.send(std::mem::take(&mut bytes).into()).await?;
        }
    }
    sink.send(bytes.into()).await?;
    sink.as_mut().finish().await?;
    Ok(copied)
}
