//! A file on its way: Parquet is written to a temporary file first, because its length is known at its end only.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;

use crate::flush::FlushError;

/// A temporary file, gone with this.
pub(super) struct Spool {
    path: PathBuf,
}

impl Spool {
    pub(super) fn new() -> Result<Self, FlushError> {
        let path = std::env::temp_dir().join(format!("moraine-flush-{}", uuid::Uuid::new_v4()));
        let spool = Spool { path };
        let created = OpenOptions::new().write(true).create_new(true).open(&spool.path);
        created.map_err(|source| spool.error(source))?;
        Ok(spool)
    }

    pub(super) fn writer(&self) -> Result<BufWriter<File>, FlushError> {
        let opened = OpenOptions::new().write(true).open(&self.path);
        opened.map(BufWriter::new).map_err(|source| self.error(source))
    }

    pub(super) fn reader(&self) -> Result<BufReader<File>, FlushError> {
        File::open(&self.path)
            .map(BufReader::new)
            .map_err(|source| self.error(source))
    }

    fn error(&self, source: std::io::Error) -> FlushError {
        FlushError::Spool {
            folder: self
                .path
                .parent()
                .map(|folder| folder.display().to_string())
                .unwrap_or_default(),
            source,
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "a temporary file is left");
        }
    }
}
