//! Catalogs in SQLite files. Each scan reads on a connection of its own, on a thread of its own; while a catalog is read one
//! more connection holds a read transaction, which keeps a writer without a write-ahead log out, and shows whether one with
//! it has come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use moraine_tables::ColumnType;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};
use tokio::sync::mpsc;

use crate::lake::{
    BATCH_ROWS, BATCHES_AHEAD, LakeError, Query, Raw, Rows, Source, SourceColumn, TABLE_PREFIX, Target,
    TargetColumn, TargetTable, quoted,
};

/// A catalog that is read.
pub(crate) struct SqliteSource {
    name: String,
    path: PathBuf,
    tables: BTreeMap<String, Vec<SourceColumn>>,
    /// Holds the read transaction.
    guard: Arc<Mutex<Connection>>,
    /// What SQLite says about the file at the beginning; another number later says that somebody has written.
    version: i64,
}

impl SqliteSource {
    /// Opens the catalog in a file.
    pub(crate) async fn open(path: &Path) -> Result<SqliteSource, LakeError> {
        let name = format!("the SQLite file {}", path.display());
        let path = path.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let guard = reader(&name, &path)?;
            let failed = |error| LakeError::database(&name, "reading its tables", error);
            let tables = list(&guard).map_err(failed)?;
            guard.execute_batch("BEGIN").map_err(failed)?;
            // The transaction reads from its first query on.
            let version = version(&guard).map_err(failed)?;
            Ok(SqliteSource {
                guard: Arc::new(Mutex::new(guard)),
                name,
                path,
                tables,
                version,
            })
        });
        joined(opening.await)?
    }
}

fn reader(name: &str, path: &Path) -> Result<Connection, LakeError> {
    if !path.is_file() {
        return Err(LakeError::NotFound {
            catalog: name.to_owned(),
            detail: "there is no such file".to_owned(),
        });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(|error| LakeError::database(name, "opening it", error))
}

fn list(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Vec<SourceColumn>>> {
    let mut tables: BTreeMap<String, Vec<SourceColumn>> = BTreeMap::new();
    let mut statement = connection.prepare(
        "SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c \
         WHERE m.type = 'table' ORDER BY m.name, c.cid",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let table: String = row.get(0)?;
        if table.starts_with(TABLE_PREFIX) {
            tables.entry(table).or_default().push(SourceColumn {
                name: row.get(1)?,
                declared: row.get(2)?,
            });
        }
    }
    Ok(tables)
}

/// A number that changes with every commit of another connection; reading it begins the transaction.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| {
        row.get::<_, i64>(0)
    })?;
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}

fn joined<T>(outcome: Result<T, tokio::task::JoinError>) -> Result<T, LakeError> {
    outcome.map_err(|error| LakeError::Database {
        catalog: "SQLite".to_owned(),
        detail: format!("its thread ended early: {error}"),
    })
}

#[async_trait]
impl Source for SqliteSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn tables(&self) -> &BTreeMap<String, Vec<SourceColumn>> {
        &self.tables
    }

    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let (name, path, text, width) = (
            self.name.clone(),
            self.path.clone(),
            select(query),
            query.columns.len(),
        );
        let table = query.table.clone();
        // The thread ends when the rows do, or when nobody takes them any more.
        tokio::task::spawn_blocking(move || {
            let outcome = reader(&name, &path).and_then(|connection| {
                send(&connection, &text, width, &sender)
                    .map_err(|error| LakeError::database(&name, &format!("reading {table}"), error))
            });
            if let Err(error) = outcome {
                let _ = sender.blocking_send(Err(error));
            }
        });
        Ok(Box::new(ChannelRows { receiver }))
    }

    async fn count(&self, table: &str) -> Result<u64, LakeError> {
        let guard = Arc::clone(&self.guard);
        let (name, text) = (
            self.name.clone(),
            format!("SELECT count(*) FROM {}", quoted(table)),
        );
        let counting = tokio::task::spawn_blocking(move || {
            let guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
            let count: Result<i64, _> = guard.query_row(&text, [], |row| row.get(0));
            count.map_err(|error| LakeError::database(&name, "counting rows", error))
        });
        Ok(u64::try_from(joined(counting.await)??).unwrap_or_default())
    }

    async fn is_unchanged(&self) -> Result<bool, LakeError> {
        let guard = Arc::clone(&self.guard);
        let (name, before) = (self.name.clone(), self.version);
        let looking = tokio::task::spawn_blocking(move || {
            let guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
            // Only outside of a transaction are the commits of others seen.
            let now = guard
                .execute_batch("COMMIT; BEGIN")
                .and_then(|()| version(&guard));
            now.map(|now| now == before)
                .map_err(|error| LakeError::database(&name, "looking whether it has changed", error))
        });
        joined(looking.await)?
    }
}

fn select(query: &Query) -> String {
    let columns: Vec<String> = query.columns.iter().map(|column| quoted(&column.name)).collect();
    let filter = query.not_null.as_ref();
    let filter = filter.map_or_else(String::new, |column| {
        format!(" WHERE {} IS NOT NULL", quoted(column))
    });
    let order: Vec<String> = query.order.iter().map(|column| quoted(column)).collect();
    let order = order.iter().map(String::as_str).chain(["rowid"]);
    format!(
        "SELECT {} FROM {}{filter} ORDER BY {}",
        columns.join(", "),
        quoted(&query.table),
        order.collect::<Vec<_>>().join(", ")
    )
}

/// Reads a query and hands its rows over, until there are no more or nobody wants them.
fn send(
    connection: &Connection,
    text: &str,
    width: usize,
    sender: &mpsc::Sender<Result<Vec<Vec<Raw>>, LakeError>>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(text)?;
    let mut rows = statement.query([])?;
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(width);
        for column in 0..width {
            values.push(raw(row.get_ref(column)?));
        }
        batch.push(values);
        if batch.len() == BATCH_ROWS && sender.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = sender.blocking_send(Ok(batch));
    }
    Ok(())
}

fn raw(value: ValueRef<'_>) -> Raw {
    match value {
        ValueRef::Null => Raw::Null,
        ValueRef::Integer(number) => Raw::Int(number),
        ValueRef::Real(number) => Raw::Text(format!("{number:?}")),
        // Text that is not UTF-8 is no text of ours; as bytes it is refused where text is expected.
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Raw::Text(text.to_owned()),
            Err(_) => Raw::Bytes(Bytes::copy_from_slice(bytes)),
        },
        ValueRef::Blob(bytes) => Raw::Bytes(Bytes::copy_from_slice(bytes)),
    }
}

/// Rows that a thread or a task sends.
pub(crate) struct ChannelRows {
    pub(crate) receiver: mpsc::Receiver<Result<Vec<Vec<Raw>>, LakeError>>,
}

#[async_trait]
impl Rows for ChannelRows {
    async fn next(&mut self) -> Result<Option<Vec<Vec<Raw>>>, LakeError> {
        self.receiver.recv().await.transpose()
    }
}

/// A catalog that is written, in one transaction.
pub(crate) struct SqliteTarget {
    name: String,
    path: PathBuf,
    /// Whether the file was not there before.
    is_new: bool,
    connection: Arc<Mutex<Connection>>,
    table: Option<TargetTable>,
}

impl SqliteTarget {
    /// Begins the transaction in a file that has no lake.
    pub(crate) async fn open(path: &Path) -> Result<SqliteTarget, LakeError> {
        let name = format!("the SQLite file {}", path.display());
        let path = path.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let is_new = !path.exists();
            let failed = |error| LakeError::database(&name, "opening it", error);
            let connection = Connection::open(&path).map_err(failed)?;
            connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
            if let Some(table) = list(&connection).map_err(failed)?.into_keys().next() {
                return Err(LakeError::NotEmpty {
                    catalog: name,
                    detail: format!("it has a table {table}"),
                });
            }
            Ok(SqliteTarget {
                name,
                path,
                is_new,
                connection: Arc::new(Mutex::new(connection)),
                table: None,
            })
        });
        joined(opening.await)?
    }

    /// Runs `work` on the connection, on a thread that may wait.
    async fn with<T: Send + 'static>(
        &self,
        doing: &str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LakeError> {
        let connection = Arc::clone(&self.connection);
        let working = tokio::task::spawn_blocking(move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&connection)
        });
        joined(working.await)?.map_err(|error| LakeError::database(&self.name, doing, error))
    }
}

#[async_trait]
impl Target for SqliteTarget {
    fn name(&self) -> &str {
        &self.name
    }

    async fn create(&mut self, table: &TargetTable) -> Result<(), LakeError> {
        let text = create_table(table);
        let doing = format!("creating {}", table.name);
        self.table = Some(table.clone());
        self.with(&doing, move |connection| connection.execute_batch(&text))
            .await
    }

    async fn write(&mut self, rows: Vec<Vec<Raw>>) -> Result<(), LakeError> {
        let Some(table) = self.table.clone() else {
            return Ok(());
        };
        let doing = format!("writing {}", table.name);
        let places = vec!["?"; table.columns.len()].join(", ");
        let text = format!("INSERT INTO {} VALUES ({places})", quoted(&table.name));
        let work = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(&text)?;
            for row in &rows {
                let cells = row
                    .iter()
                    .zip(&table.columns)
                    .map(|(raw, column)| Cell { raw, column });
                statement.execute(rusqlite::params_from_iter(cells))?;
            }
            Ok(())
        };
        self.with(&doing, work).await
    }

    async fn commit(self: Box<Self>) -> Result<(), LakeError> {
        self.with("committing", |connection| connection.execute_batch("COMMIT"))
            .await
    }

    async fn abort(self: Box<Self>) {
        let rolled_back = self
            .with("rolling back", |connection| connection.execute_batch("ROLLBACK"))
            .await;
        if let Err(error) = rolled_back {
            tracing::warn!(%error, "rolling back");
        }
        if self.is_new
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "removing a file without a lake");
        }
    }
}

/// The kinds of columns that DuckDB's sqlite extension makes.
fn sqlite_type(column: &TargetColumn) -> &'static str {
    match column.column_type {
        ColumnType::Bool | ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => "BIGINT",
        ColumnType::Bytes if !is_text(column) => "BLOB",
        _ => "VARCHAR",
    }
}

/// Whether bytes at the door are text to DuckLake.
fn is_text(column: &TargetColumn) -> bool {
    column
        .native_type
        .as_deref()
        .is_some_and(|native| matches!(native, "VARCHAR" | "JSON"))
}

fn create_table(table: &TargetTable) -> String {
    let column = |(position, column): (usize, &TargetColumn)| {
        let suffix = match (table.primary_key == Some(position), column.not_null) {
            (true, _) => " PRIMARY KEY",
            (false, true) => " NOT NULL",
            (false, false) => "",
        };
        format!("{} {}{suffix}", quoted(&column.name), sqlite_type(column))
    };
    let columns: Vec<String> = table.columns.iter().enumerate().map(column).collect();
    format!("CREATE TABLE {}({})", quoted(&table.name), columns.join(", "))
}

/// A value as SQLite keeps it for DuckDB.
struct Cell<'a> {
    raw: &'a Raw,
    column: &'a TargetColumn,
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = match (self.raw, self.column.column_type) {
            (Raw::Null, _) => ValueRef::Null,
            (Raw::Int(number), _) => ValueRef::Integer(*number),
            (Raw::Text(text), ColumnType::Bool) => ValueRef::Integer(i64::from(text == "true")),
            (Raw::Text(text), _) => ValueRef::Text(text.as_bytes()),
            (Raw::Bytes(bytes), _) if is_text(self.column) => ValueRef::Text(bytes),
            (Raw::Bytes(bytes), _) => ValueRef::Blob(bytes),
        };
        Ok(ToSqlOutput::Borrowed(borrowed))
    }
}
