//! Catalogs in PostgreSQL. What is read is one exported snapshot, each scan on a connection of its own through COPY; what is
//! written is one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use moraine_tables::ColumnType;
use tokio::sync::mpsc;
use tokio_postgres::{Client, CopyInSink, NoTls};

use crate::lake::postgres_text::{Lines, put_row, row};
use crate::lake::sqlite::ChannelRows;
use crate::lake::{
    BATCH_ROWS, BATCHES_AHEAD, CatalogLocation, LakeError, Query, QueryColumn, Raw, Rows, Source,
    SourceColumn, TABLE_PREFIX, Target, TargetTable, literal, quoted,
};

/// How every connection writes and reads values.
const SESSION: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1; \
     SET client_encoding = 'UTF8'";
/// Bytes of rows from which on they are sent.
const COPY_BYTES: usize = 256 * 1024;

/// A catalog that is read.
pub(crate) struct PostgresSource {
    name: String,
    connection: String,
    schema: String,
    tables: BTreeMap<String, Vec<SourceColumn>>,
    /// Holds the transaction whose snapshot the others read.
    guard: Client,
    snapshot: String,
}

impl PostgresSource {
    /// Opens the catalog in a schema.
    pub(crate) async fn open(connection: &str, schema: &str) -> Result<PostgresSource, LakeError> {
        let name = words(connection, schema);
        let guard = connect(&name, connection).await?;
        let failed = |error| failure(&name, "reading its tables", &error);
        let begin = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        guard.batch_execute(begin).await.map_err(failed)?;
        let exported = guard.query_one("SELECT pg_export_snapshot()", &[]).await;
        let snapshot = exported.and_then(|row| row.try_get(0)).map_err(failed)?;
        let tables = list(&guard, schema).await.map_err(failed)?;
        Ok(PostgresSource {
            name,
            connection: connection.to_owned(),
            schema: schema.to_owned(),
            tables,
            guard,
            snapshot,
        })
    }

    fn table(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(name))
    }
}

fn words(connection: &str, schema: &str) -> String {
    CatalogLocation::Postgres {
        connection: connection.to_owned(),
        schema: schema.to_owned(),
    }
    .to_string()
}

/// The text of an error with what the server said.
fn failure(name: &str, doing: &str, error: &tokio_postgres::Error) -> LakeError {
    let detail = error
        .as_db_error()
        .map_or_else(|| with_source(error), ToString::to_string);
    LakeError::database(name, doing, detail)
}

fn with_source(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

async fn connect(name: &str, connection: &str) -> Result<Client, LakeError> {
    let connected = tokio_postgres::connect(connection, NoTls).await;
    let (client, driver) = connected.map_err(|error| failure(name, "connecting", &error))?;
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    });
    let set = client.batch_execute(SESSION).await;
    set.map_err(|error| failure(name, "setting up the connection", &error))?;
    Ok(client)
}

async fn list(
    client: &Client,
    schema: &str,
) -> Result<BTreeMap<String, Vec<SourceColumn>>, tokio_postgres::Error> {
    let text = format!(
        "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
         WHERE n.nspname = {} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped \
         ORDER BY c.relname, a.attnum",
        literal(schema)
    );
    let mut tables: BTreeMap<String, Vec<SourceColumn>> = BTreeMap::new();
    for row in client.query(&text, &[]).await? {
        let table: String = row.try_get(0)?;
        if table.starts_with(TABLE_PREFIX) {
            tables.entry(table).or_default().push(SourceColumn {
                name: row.try_get(1)?,
                declared: row.try_get(2)?,
            });
        }
    }
    Ok(tables)
}

#[async_trait]
impl Source for PostgresSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn tables(&self) -> &BTreeMap<String, Vec<SourceColumn>> {
        &self.tables
    }

    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError> {
        let client = connect(&self.name, &self.connection).await?;
        let doing = format!("reading {}", query.table);
        let begin = format!(
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT {}",
            literal(&self.snapshot)
        );
        let begun = client.batch_execute(&begin).await;
        begun.map_err(|error| failure(&self.name, &doing, &error))?;
        let text = format!("COPY ({}) TO STDOUT", select(query, &self.table(&query.table)));
        let types: Vec<ColumnType> = query.columns.iter().map(|column| column.column_type).collect();
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let name = self.name.clone();
        tokio::spawn(async move {
            if let Err(error) = send(&client, &text, &types, &sender).await {
                let error = match error {
                    Sending::Database(error) => failure(&name, &doing, &error),
                    Sending::Text(detail) => LakeError::database(&name, &doing, detail),
                };
                let _ = sender.send(Err(error)).await;
            }
        });
        Ok(Box::new(ChannelRows { receiver }))
    }

    async fn count(&self, table: &str) -> Result<u64, LakeError> {
        let text = format!("SELECT count(*) FROM {}", self.table(table));
        let row = self.guard.query_one(&text, &[]).await;
        let count: Result<i64, _> = row.and_then(|row| row.try_get(0));
        let count = count.map_err(|error| failure(&self.name, "counting rows", &error))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// What an exported snapshot shows never changes.
    async fn is_unchanged(&self) -> Result<bool, LakeError> {
        Ok(true)
    }
}

fn select(query: &Query, table: &str) -> String {
    let columns: Vec<String> = query.columns.iter().map(expression).collect();
    let filter = query.not_null.as_ref();
    let filter = filter.map_or_else(String::new, |column| {
        format!(" WHERE {} IS NOT NULL", quoted(column))
    });
    let order: Vec<String> = query.order.iter().map(|column| quoted(column)).collect();
    let order = order.iter().map(String::as_str).chain(["ctid"]);
    format!(
        "SELECT {} FROM {table}{filter} ORDER BY {}",
        columns.join(", "),
        order.collect::<Vec<_>>().join(", ")
    )
}

/// The column as text that is the same whatever the session.
fn expression(column: &QueryColumn) -> String {
    let name = quoted(&column.name);
    match column.column_type {
        ColumnType::Interval => crate::lake::raw_interval(&name),
        _ => name,
    }
}

enum Sending {
    Database(tokio_postgres::Error),
    Text(String),
}

impl From<tokio_postgres::Error> for Sending {
    fn from(error: tokio_postgres::Error) -> Self {
        Sending::Database(error)
    }
}

/// Reads a COPY and hands its rows over, until there are no more or nobody wants them.
async fn send(
    client: &Client,
    text: &str,
    types: &[ColumnType],
    sender: &mpsc::Sender<Result<Vec<Vec<Raw>>, LakeError>>,
) -> Result<(), Sending> {
    let mut stream = Box::pin(client.copy_out(text).await?);
    let mut lines = Lines::default();
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    while let Some(piece) = stream.try_next().await? {
        lines.push(&piece, |line| {
            batch.push(row(line, types).map_err(Sending::Text)?);
            Ok::<(), Sending>(())
        })?;
        if batch.len() >= BATCH_ROWS && sender.send(Ok(std::mem::take(&mut batch))).await.is_err() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = sender.send(Ok(batch)).await;
    }
    Ok(())
}

/// A catalog that is written, in one transaction.
pub(crate) struct PostgresTarget {
    name: String,
    schema: String,
    client: Arc<Client>,
    copy: Option<(std::pin::Pin<Box<CopyInSink<Bytes>>>, String)>,
}

impl PostgresTarget {
    /// Begins the transaction in a schema that has no lake, making the schema if it is not there.
    pub(crate) async fn open(connection: &str, schema: &str) -> Result<PostgresTarget, LakeError> {
        let name = words(connection, schema);
        let client = connect(&name, connection).await?;
        let failed = |error| failure(&name, "beginning", &error);
        client.batch_execute("BEGIN").await.map_err(failed)?;
        if let Some(table) = list(&client, schema).await.map_err(failed)?.into_keys().next() {
            return Err(LakeError::NotEmpty {
                catalog: name,
                detail: format!("it has a table {table}"),
            });
        }
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema));
        client.batch_execute(&create).await.map_err(failed)?;
        Ok(PostgresTarget {
            name,
            schema: schema.to_owned(),
            client: Arc::new(client),
            copy: None,
        })
    }

    async fn finish_copy(&mut self) -> Result<(), LakeError> {
        if let Some((mut sink, table)) = self.copy.take() {
            let finished = sink.as_mut().finish().await;
            finished.map_err(|error| failure(&self.name, &format!("writing {table}"), &error))?;
        }
        Ok(())
    }
}

#[async_trait]
impl Target for PostgresTarget {
    fn name(&self) -> &str {
        &self.name
    }

    async fn create(&mut self, table: &TargetTable) -> Result<(), LakeError> {
        self.finish_copy().await?;
        let place = format!("{}.{}", quoted(&self.schema), quoted(&table.name));
        let columns: Vec<String> = table
            .columns
            .iter()
            .enumerate()
            .map(|(position, column)| {
                let suffix = match (table.primary_key == Some(position), column.not_null) {
                    (true, _) => " PRIMARY KEY",
                    (false, true) => " NOT NULL",
                    (false, false) => "",
                };
                let name = quoted(&column.name);
                format!("{name} {}{suffix}", column.column_type.sql_name())
            })
            .collect();
        let doing = format!("creating {}", table.name);
        let create = format!("CREATE TABLE {place}({})", columns.join(", "));
        let created = self.client.batch_execute(&create).await;
        created.map_err(|error| failure(&self.name, &doing, &error))?;
        let copy = self.client.copy_in(&format!("COPY {place} FROM STDIN")).await;
        let sink = copy.map_err(|error| failure(&self.name, &doing, &error))?;
        self.copy = Some((Box::pin(sink), table.name.clone()));
        Ok(())
    }

    async fn write(&mut self, rows: Vec<Vec<Raw>>) -> Result<(), LakeError> {
        let Some((sink, table)) = &mut self.copy else {
            return Ok(());
        };
        let doing = format!("writing {table}");
        let mut bytes = Vec::new();
        for row in &rows {
            put_row(&mut bytes, row).map_err(|detail| LakeError::database(&self.name, &doing, detail))?;
            if bytes.len() >= COPY_BYTES {
                let sent = sink.send(std::mem::take(&mut bytes).into()).await;
                sent.map_err(|error| failure(&self.name, &doing, &error))?;
            }
        }
        let sent = sink.send(bytes.into()).await;
        sent.map_err(|error| failure(&self.name, &doing, &error))
    }

    async fn commit(mut self: Box<Self>) -> Result<(), LakeError> {
        self.finish_copy().await?;
        let committed = self.client.batch_execute("COMMIT").await;
        committed.map_err(|error| failure(&self.name, "committing", &error))
    }

    async fn abort(mut self: Box<Self>) {
        // Dropping a COPY that is not finished ends it with an error, as is meant here.
        self.copy = None;
        if let Err(error) = self.client.batch_execute("ROLLBACK").await {
            tracing::warn!(%error, "rolling back");
        }
    }
}
