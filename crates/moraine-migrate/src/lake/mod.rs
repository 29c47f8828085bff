//! Catalogs that are not moraine's: where they are, and how their tables are read and written, one kind a module. What the
//! rows mean is not known here; they travel as [`Raw`] values under the columns that a [`Query`] or a [`TargetTable`] names.

mod duckdb;
mod error;
mod location;
mod parquet_files;
mod postgres;
mod postgres_text;
mod raw;
mod rocklake;
mod rocklake_rows;
mod sqlite;

use std::collections::BTreeMap;

use async_trait::async_trait;
use moraine_tables::ColumnType;

pub use duckdb::DUCKDB_VARIABLE;
pub use error::LakeError;
pub use location::CatalogLocation;
pub use raw::{Raw, raw_of, value_of};

/// Rows that travel at once.
pub(crate) const BATCH_ROWS: usize = 1024;
/// Batches that are read ahead of whoever takes them.
pub(crate) const BATCHES_AHEAD: usize = 4;

/// What every table of a DuckLake catalog is called.
pub(crate) const TABLE_PREFIX: &str = "ducklake_";

/// A column of a table, as the catalog it is in declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumn {
    /// The column's name.
    pub name: String,
    /// Its type, in the words of the catalog's own database.
    pub declared: String,
}

/// A column that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueryColumn {
    /// The column's name.
    pub name: String,
    /// The type it is to come as: what DuckLake's Postgres catalog would declare.
    pub column_type: ColumnType,
}

/// All rows of a table, some columns of it, in an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Query {
    /// The table.
    pub table: String,
    /// The columns, in the order in which their values come.
    pub columns: Vec<QueryColumn>,
    /// The columns the rows are sorted by; those that are equal come in the order of their insertion, as far as the
    /// database knows it.
    pub order: Vec<String>,
    /// A column whose NULLs are passed over.
    pub not_null: Option<String>,
}

/// Rows on their way.
#[async_trait]
pub trait Rows: Send {
    /// The next rows, or `None` at the end.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn next(&mut self) -> Result<Option<Vec<Vec<Raw>>>, LakeError>;
}

/// A catalog that is read. All it gives is of one state.
#[async_trait]
pub trait Source: Send + Sync {
    /// The catalog in words, without secrets.
    fn name(&self) -> &str;

    /// The tables whose names begin with `ducklake_`, with their columns.
    fn tables(&self) -> &BTreeMap<String, Vec<SourceColumn>>;

    /// Says which queries will come, so that they can be answered together. Most sources answer each by itself.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn prepare(&mut self, _queries: &[Query]) -> Result<(), LakeError> {
        Ok(())
    }

    /// The rows of a query; several may be on their way at the same time.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError>;

    /// How many rows a table has.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn count(&self, table: &str) -> Result<u64, LakeError>;

    /// Values of nested columns as this database writes them, for comparisons: `texts` are values of the type
    /// `ducklake_type`. `None` where a text is kept as it came.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn normalised(
        &self,
        native_type: &str,
        texts: &[Option<String>],
    ) -> Result<Option<Vec<Option<String>>>, LakeError> {
        let _ = (native_type, texts);
        Ok(None)
    }

    /// Whether the state that was read is still the catalog's; where it cannot have changed, it is.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn is_unchanged(&self) -> Result<bool, LakeError>;
}

/// A column of a table that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetColumn {
    /// The column's name.
    pub name: String,
    /// The type its values come as.
    pub column_type: ColumnType,
    /// The DuckLake type of a user's column, nested ones spelt out as DuckDB spells them; `None` for columns of DuckLake's
    /// own tables and where it is not known.
    pub native_type: Option<String>,
    /// Whether NULL is refused.
    pub not_null: bool,
}

/// A table that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetTable {
    /// The table's name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<TargetColumn>,
    /// The position of its primary key.
    pub primary_key: Option<usize>,
}

/// A catalog that is written, all of it or nothing.
#[async_trait]
pub trait Target: Send {
    /// The catalog in words, without secrets.
    fn name(&self) -> &str;

    /// Makes a table. The rows that come next are its.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn create(&mut self, table: &TargetTable) -> Result<(), LakeError>;

    /// Adds rows to the table made last, each with a value for every column.
    ///
    /// # Errors
    /// See [`LakeError`].
    async fn write(&mut self, rows: Vec<Vec<Raw>>) -> Result<(), LakeError>;

    /// Makes all of it visible, at once.
    ///
    /// # Errors
    /// See [`LakeError`]; nothing is there then.
    async fn commit(self: Box<Self>) -> Result<(), LakeError>;

    /// Takes everything back.
    async fn abort(self: Box<Self>);
}

/// Opens a catalog for reading.
///
/// # Errors
/// See [`LakeError`].
pub async fn open_source(location: &CatalogLocation) -> Result<Box<dyn Source>, LakeError> {
    Ok(match location {
        CatalogLocation::Sqlite { path } => Box::new(sqlite::SqliteSource::open(path).await?),
        CatalogLocation::DuckDb { path, schema } => Box::new(duckdb::DuckDbSource::open(path, schema).await?),
        CatalogLocation::Postgres { connection, schema } => {
            Box::new(postgres::PostgresSource::open(connection, schema).await?)
        }
        CatalogLocation::RockLake { url } => Box::new(rocklake::RockLakeSource::open(url).await?),
    })
}

/// Opens a place for a catalog to be written to.
///
/// # Errors
/// [`LakeError::NotEmpty`] where there is a lake already; see [`LakeError`].
pub async fn open_target(location: &CatalogLocation) -> Result<Box<dyn Target>, LakeError> {
    Ok(match location {
        CatalogLocation::Sqlite { path } => Box::new(sqlite::SqliteTarget::open(path).await?),
        CatalogLocation::DuckDb { path, schema } => Box::new(duckdb::DuckDbTarget::open(path, schema).await?),
        CatalogLocation::Postgres { connection, schema } => {
            Box::new(postgres::PostgresTarget::open(connection, schema).await?)
        }
        CatalogLocation::RockLake { .. } => {
            return Err(LakeError::Unsupported {
                catalog: location.to_string(),
                detail: "a RockLake store can be imported from, not exported to".to_owned(),
            });
        }
    })
}

/// A name as SQL writes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL writes it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// An interval column as text in its three parts, in the SQL that DuckDB and PostgreSQL share.
pub(crate) fn raw_interval(column: &str) -> String {
    let part = |name: &str| format!("CAST(date_part('{name}', {column}) AS bigint)");
    let months = format!("({} * 12 + {})", part("year"), part("month"));
    let micros = format!(
        "({} * 3600000000 + {} * 60000000 + {})",
        part("hour"),
        part("minute"),
        part("microseconds")
    );
    format!(
        "{months} || ' months ' || {} || ' days ' || {micros} || ' microseconds'",
        part("day")
    )
}
