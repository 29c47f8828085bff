//! Why a lake was not imported, and what was found to be wrong with one that was, or was not.

use std::fmt;

use moraine_commit::bulk::BulkError;
use moraine_commit::{CommitFailure, StageError};
use moraine_tables::TableError;

use crate::lake::LakeError;

/// Findings that are kept; more are counted.
const PROBLEMS_KEPT_MAX: usize = 200;
/// Findings that an error shows.
const PROBLEMS_SHOWN_MAX: usize = 20;

/// Something in the source that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The table.
    pub table: String,
    /// The row, by its first columns; empty where it is not one row.
    pub row: String,
    /// What is wrong.
    pub detail: String,
    /// What a repair does about it.
    pub repair: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table)?;
        if !self.row.is_empty() {
            write!(f, " ({})", self.row)?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// Everything that was found to be broken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first of them.
    pub found: Vec<Problem>,
    /// How many there are in all.
    pub total: u64,
}

impl Problems {
    /// Notes one more.
    pub(crate) fn add(&mut self, problem: Problem) {
        self.total += 1;
        if self.found.len() < PROBLEMS_KEPT_MAX {
            self.found.push(problem);
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.found.iter().take(PROBLEMS_SHOWN_MAX) {
            writeln!(f, "  {problem}\n    repair: {}", problem.repair)?;
        }
        let shown = self.found.len().min(PROBLEMS_SHOWN_MAX) as u64;
        if self.total > shown {
            writeln!(f, "  and {} more", self.total - shown)?;
        }
        Ok(())
    }
}

/// Why a lake was not imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The catalog is of a version of the specification before 1.0.
    #[error(
        "{catalog} has version {found} of the DuckLake specification, and version 1.0 is imported; attach it once with \
         DuckDB 1.5.2 or later and the option AUTOMATIC_MIGRATION true, which brings it to 1.0"
    )]
    OldVersion {
        /// The catalog.
        catalog: String,
        /// The version it says it has.
        found: String,
    },
    /// The catalog is of a version of the specification that this moraine does not know.
    #[error(
        "{catalog} says it has version {found} of the DuckLake specification, and version 1.0 is imported"
    )]
    UnknownVersion {
        /// The catalog.
        catalog: String,
        /// The version it says it has.
        found: String,
    },
    /// There is no lake there.
    #[error("{catalog} holds no lake: it has no table {table}")]
    NoLake {
        /// The catalog.
        catalog: String,
        /// The table that was looked for.
        table: String,
    },
    /// The catalog is broken, and nobody has asked for a repair.
    #[error(
        "{catalog} is broken, and nothing was imported:\n{problems}with --repair it is imported as each line says"
    )]
    Broken {
        /// The catalog.
        catalog: String,
        /// What is broken.
        problems: Problems,
    },
    /// Something is broken that no repair can make good.
    #[error("{catalog} cannot be imported: {detail}")]
    Hopeless {
        /// The catalog.
        catalog: String,
        /// What is broken.
        detail: String,
    },
    /// The source could not be read.
    #[error(transparent)]
    Lake(#[from] LakeError),
    /// The store could not be written.
    #[error(transparent)]
    Bulk(#[from] BulkError),
    /// Part of the work did not come to its end.
    #[error("the import stopped: {detail}")]
    Interrupted {
        /// What became of it.
        detail: String,
    },
    /// A record could not be made.
    #[error("the import stopped: {0}")]
    Table(#[from] TableError),
    /// A record could not be made.
    #[error("the import stopped: {0}")]
    Stage(#[from] StageError),
    /// A record could not be made.
    #[error("the import stopped: {0}")]
    Commit(#[from] CommitFailure),
}
