//! What can go wrong with a catalog that is not moraine's.

use moraine_store::{OpenError, ReadError};

/// A catalog that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LakeError {
    /// The text names no catalog.
    #[error(
        "{text:?} names no catalog: {detail}; use postgres:dbname=lake host=…, postgres://…, sqlite:meta.sqlite, \
         duckdb:meta.ducklake or rocklake:s3://bucket/prefix"
    )]
    Location {
        /// The text as given, without passwords.
        text: String,
        /// What is wrong with it.
        detail: String,
    },
    /// There is no catalog there.
    #[error("there is no DuckLake catalog in {catalog}: {detail}")]
    NotFound {
        /// The catalog.
        catalog: String,
        /// What was looked for.
        detail: String,
    },
    /// There is a lake already.
    #[error(
        "there is a lake in {catalog} already ({detail}); export to an empty place, or remove that one first"
    )]
    NotEmpty {
        /// The catalog.
        catalog: String,
        /// What is there.
        detail: String,
    },
    /// The kind of catalog cannot do that.
    #[error("{catalog}: {detail}")]
    Unsupported {
        /// The catalog.
        catalog: String,
        /// What cannot be done, and what to do instead.
        detail: String,
    },
    /// DuckDB is needed and could not be found or installed.
    #[error(
        "a DuckDB file is read and written by DuckDB, and none was found: {detail}; install the duckdb command or the \
         Python package duckdb, or set MORAINE_DUCKDB to the path of either's program"
    )]
    NoDuckDb {
        /// What was tried.
        detail: String,
    },
    /// The catalog's own database reported an error.
    #[error("{catalog}: {detail}")]
    Database {
        /// The catalog.
        catalog: String,
        /// What was being done, and what was reported.
        detail: String,
    },
    /// The catalog has changed while it was read.
    #[error("{catalog} has changed while it was read; stop its writers, then try again")]
    Changed {
        /// The catalog.
        catalog: String,
    },
    /// A RockLake store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A RockLake store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl LakeError {
    /// What a database reported while something was done.
    pub(crate) fn database(catalog: &str, doing: &str, error: impl std::fmt::Display) -> Self {
        LakeError::Database {
            catalog: catalog.to_owned(),
            detail: format!("{doing}: {error}"),
        }
    }
}
