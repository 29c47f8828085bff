//! How a catalog is named on the command line: as DuckLake names it in an ATTACH, with the kind in front.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use moraine_store::StoreUrl;

use crate::lake::LakeError;

/// The schema of a Postgres catalog when none is named.
const POSTGRES_SCHEMA: &str = "public";
/// The schema of a DuckDB catalog when none is named.
const DUCKDB_SCHEMA: &str = "main";
/// What a SQLite file begins with.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
/// What a DuckDB file has at the ninth byte.
const DUCKDB_MAGIC: &[u8] = b"DUCK";

/// Where a catalog that is not moraine's is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogLocation {
    /// A schema of a PostgreSQL database.
    Postgres {
        /// A URL or a libpq connection string.
        connection: String,
        /// The schema that the `ducklake_*` tables are in.
        schema: String,
    },
    /// A SQLite file.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// A DuckDB file.
    DuckDb {
        /// The file.
        path: PathBuf,
        /// The schema that the `ducklake_*` tables are in.
        schema: String,
    },
    /// A RockLake store.
    RockLake {
        /// The store.
        url: StoreUrl,
    },
}

impl CatalogLocation {
    /// Reads `postgres:…`, `postgres://…`, `sqlite:…`, `duckdb:…` or `rocklake:…`, each with or without `ducklake:` in
    /// front; a path alone is told by what lies there. `schema` is what an ATTACH calls METADATA_SCHEMA.
    ///
    /// # Errors
    /// [`LakeError::Location`].
    pub fn parse(text: &str, schema: Option<&str>) -> Result<Self, LakeError> {
        let plain = text.strip_prefix("ducklake:").unwrap_or(text);
        let or = |default: &str| schema.unwrap_or(default).to_owned();
        if plain.starts_with("postgres://") || plain.starts_with("postgresql://") {
            return Ok(CatalogLocation::Postgres {
                connection: plain.to_owned(),
                schema: or(POSTGRES_SCHEMA),
            });
        }
        let (kind, rest) = match plain.split_once(':') {
            Some((kind, rest)) if ["postgres", "sqlite", "duckdb", "rocklake"].contains(&kind) => {
                (kind, rest)
            }
            _ => (kind_of_file(Path::new(plain), text)?, plain),
        };
        if rest.is_empty() && kind != "postgres" {
            return Err(refused(text, "there is nothing after its kind"));
        }
        if schema.is_some() && ["sqlite", "rocklake"].contains(&kind) {
            return Err(refused(text, "a catalog of this kind has no schemas"));
        }
        Ok(match kind {
            "postgres" => CatalogLocation::Postgres {
                connection: rest.to_owned(),
                schema: or(POSTGRES_SCHEMA),
            },
            "sqlite" => CatalogLocation::Sqlite { path: rest.into() },
            "duckdb" => CatalogLocation::DuckDb {
                path: rest.into(),
                schema: or(DUCKDB_SCHEMA),
            },
            _ => CatalogLocation::RockLake { url: rest.parse()? },
        })
    }
}

fn refused(text: &str, detail: &str) -> LakeError {
    LakeError::Location {
        text: text.to_owned(),
        detail: detail.to_owned(),
    }
}

fn kind_of_file(path: &Path, text: &str) -> Result<&'static str, LakeError> {
    let mut head = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) if path.is_file() => {
            let read = file.take(16).read_to_end(&mut head);
            read.map_err(|error| refused(text, &error.to_string()))?;
        }
        _ => {
            let detail = "it has no kind in front, and there is no file of this name";
            return Err(refused(text, detail));
        }
    }
    if head.starts_with(SQLITE_MAGIC) {
        return Ok("sqlite");
    }
    if head.get(8..12) == Some(DUCKDB_MAGIC) {
        return Ok("duckdb");
    }
    Err(refused(text, "the file is neither of SQLite nor of DuckDB"))
}

/// In words, without passwords.
impl fmt::Display for CatalogLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogLocation::Postgres { connection, schema } => {
                let place = connection.parse::<tokio_postgres::Config>().ok().map(|config| {
                    let hosts: Vec<String> = config
                        .get_hosts()
                        .iter()
                        .map(|host| match host {
                            tokio_postgres::config::Host::Tcp(name) => name.clone(),
                            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
                        })
                        .collect();
                    let database = config.get_dbname().unwrap_or("(default)");
                    format!("{database} at {}", hosts.join(","))
                });
                let place = place.unwrap_or_else(|| "(unreadable)".to_owned());
                write!(f, "the PostgreSQL database {place}, schema {schema}")
            }
            CatalogLocation::Sqlite { path } => write!(f, "the SQLite file {}", path.display()),
            CatalogLocation::DuckDb { path, schema } if schema == DUCKDB_SCHEMA => {
                write!(f, "the DuckDB file {}", path.display())
            }
            CatalogLocation::DuckDb { path, schema } => {
                write!(f, "the DuckDB file {}, schema {schema}", path.display())
            }
            CatalogLocation::RockLake { url } => write!(f, "the RockLake store {url}"),
        }
    }
}
