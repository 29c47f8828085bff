//! The statements to paste into DuckDB.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use moraine_store::StoreUrl;

/// The schema that DuckLake keeps its tables in when an ATTACH names none.
const SCHEMA: &str = "public";

/// What an ATTACH statement is made of.
pub(crate) struct Attach<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) database: &'a str,
    pub(crate) data_path: &'a str,
    pub(crate) read_only: bool,
}

impl Attach<'_> {
    /// The statements that load the extensions and attach the lake, one a line.
    pub(crate) fn statements(&self) -> String {
        let mut lines = vec![
            "INSTALL ducklake; INSTALL postgres;".to_owned(),
            "LOAD ducklake; LOAD postgres;".to_owned(),
        ];
        lines.extend(self.file_system().map(str::to_owned));
        let connection = format!(
            "ducklake:postgres:host={} port={} dbname={} user=moraine",
            self.address.ip(),
            self.address.port(),
            connection_value(self.database)
        );
        lines.push(format!(
            "ATTACH {} AS lake (DATA_PATH {}{});",
            literal(&connection),
            literal(self.data_path),
            if self.read_only { ", READ_ONLY" } else { "" }
        ));
        lines.join("\n")
    }

    /// What DuckDB needs besides to read and write the data path.
    fn file_system(&self) -> Option<&'static str> {
        let (scheme, _) = self.data_path.split_once("://")?;
        match scheme {
            "s3" => Some("INSTALL httpfs; LOAD httpfs; CREATE SECRET (TYPE s3, PROVIDER credential_chain);"),
            "gs" => {
                Some("INSTALL httpfs; LOAD httpfs; -- then CREATE SECRET (TYPE gcs, KEY_ID '…', SECRET '…');")
            }
            "az" => Some("INSTALL azure; LOAD azure; CREATE SECRET (TYPE azure, PROVIDER credential_chain);"),
            _ => None,
        }
    }
}

/// The data path of a lake for which none was chosen.
pub(crate) fn default_data_path(root: &StoreUrl, database: &str) -> anyhow::Result<String> {
    let place = root.join("data").join(database).join(SCHEMA);
    if let Some(folder) = place.is_local() {
        return absolute(&folder);
    }
    let text = place.to_string();
    anyhow::ensure!(
        !text.starts_with("memory:"),
        "a catalog in memory has no place for Parquet files: choose one with --data-path"
    );
    Ok(with_slash(text))
}

/// The data path that was chosen.
pub(crate) fn chosen_data_path(path: &str) -> anyhow::Result<String> {
    if path.contains("://") {
        return Ok(with_slash(path.to_owned()));
    }
    absolute(Path::new(path))
}

/// A folder as DuckDB has to be told it, wherever it runs.
fn absolute(folder: &Path) -> anyhow::Result<String> {
    let folder =
        std::path::absolute(folder).with_context(|| format!("cannot resolve {}", folder.display()))?;
    Ok(with_slash(folder.display().to_string()))
}

fn with_slash(path: String) -> String {
    if path.ends_with('/') { path } else { path + "/" }
}

/// A SQL string literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A value of a libpq connection string, quoted where it has to be.
fn connection_value(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(database: &str, data_path: &str) -> String {
        let address = "127.0.0.1:5433".parse().expect("an address");
        Attach {
            address,
            database,
            data_path,
            read_only: false,
        }
        .statements()
    }

    #[test]
    fn the_attach_statement_names_server_database_and_data_path() {
        assert!(statements("lake", "/srv/data/").ends_with(
            "ATTACH 'ducklake:postgres:host=127.0.0.1 port=5433 dbname=lake user=moraine' AS lake (DATA_PATH '/srv/data/');"
        ));
    }

    #[test]
    fn names_and_paths_with_apostrophes_are_quoted_for_both_languages() {
        let text = statements("ann's", "/srv/ann's/");
        assert!(text.contains(r"dbname=''ann\''s'' user"), "{text}");
        assert!(text.contains("(DATA_PATH '/srv/ann''s/')"), "{text}");
    }

    #[test]
    fn a_bucket_needs_one_more_extension() {
        assert!(statements("lake", "s3://b/data/").contains("LOAD httpfs;"));
        assert!(!statements("lake", "/data/").contains("httpfs"));
    }

    #[test]
    fn a_chosen_folder_is_told_absolutely_and_a_bucket_as_it_is() {
        let folder = chosen_data_path("data").expect("a folder");
        assert!(folder.starts_with('/') && folder.ends_with("/data/"), "{folder}");
        assert_eq!(chosen_data_path("s3://b/data").expect("a bucket"), "s3://b/data/");
    }

    #[test]
    fn the_default_data_path_lies_below_the_root() {
        let root: StoreUrl = "s3://bucket/prefix".parse().expect("a URL");
        let path = default_data_path(&root, "sales").expect("a path");
        assert_eq!(path, "s3://bucket/prefix/data/sales/public/");
        let memory: StoreUrl = "memory://m".parse().expect("a URL");
        let refused = default_data_path(&memory, "sales").expect_err("memory has no files");
        assert!(refused.to_string().contains("--data-path"));
    }
}
