//! Why a store was not migrated, and the way out.

use moraine_store::{CommitError, OpenError, ReadError};

/// How many damaged records an error names.
pub(crate) const DAMAGES_SHOWN_MAX: usize = 8;

/// Why a store was not migrated. Unless the variant says otherwise, nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The store could not be opened, or is not one that this version may write.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A server has the store open.
    #[error(
        "a server has {url} open, and a migration would shut it out: end it first; --take-over migrates all the same"
    )]
    Served {
        /// The store.
        url: String,
    },
    /// There is a store without a lake in it.
    #[error(
        "there is no lake in this store yet, so there is nothing to migrate; `moraine serve` makes lakes of the newest format"
    )]
    NoLake,
    /// The format is none that any version has written.
    #[error(
        "the store says that it has format {found}, which no version of moraine has written; it is damaged, or not a \
         moraine store"
    )]
    UnknownFormat {
        /// The number in the stamp.
        found: u64,
    },
    /// An import into the store has not finished.
    #[error("an import into this store was interrupted; finish it with `moraine import`, or begin it anew")]
    MidImport,
    /// The stamp and the marker of a migration cannot both be true.
    #[error(
        "the store has format {stamped}, but the marker of a migration from format {from} to {to}; the two are written \
         together, so the store is damaged: restore it from a checkpoint or a copy of the bucket"
    )]
    Contradiction {
        /// The format in the stamp.
        stamped: u64,
        /// The format the marker starts from.
        from: u64,
        /// The format the marker leads to.
        to: u64,
    },
    /// The marker is of a migration that this version does not know.
    #[error(
        "a migration from format {from} to {to} was interrupted, and this version has no such migration; finish it with \
         the program that began it"
    )]
    UnknownUnit {
        /// The format the marker starts from.
        from: u64,
        /// The format the marker leads to.
        to: u64,
    },
    /// The marker says that the migration has come to a record that it does not look at.
    #[error(
        "the marker of the migration from format {from} to {to} says that it has come to {cursor}, which this version's \
         migration never looks at; finish it with the program that began it"
    )]
    ForeignCursor {
        /// The format the marker starts from.
        from: u64,
        /// The format the marker leads to.
        to: u64,
        /// The key in the marker.
        cursor: String,
    },
    /// Records are not what they should be.
    #[error("the store is damaged, and was left as it is: {}", damages(.found, *.count))]
    Damaged {
        /// The first damaged records, each with its key and what is wrong with it.
        found: Vec<String>,
        /// How many there are.
        count: u64,
    },
    /// A record went bad between the look at all records and the step that rewrites it. What was written before it stays,
    /// and the store is refused until the migration is finished.
    #[error(
        "{key} is damaged: {detail}; the migration stopped before it, restore the record and run it again"
    )]
    DamagedOnTheWay {
        /// The key.
        key: String,
        /// What is wrong.
        detail: String,
    },
    /// Somebody else has written to the store meanwhile. What was written before stays; running it again resumes.
    #[error(
        "another process wrote to the store during the migration ({detail}); stop it, then run the migration again"
    )]
    Interfered {
        /// What was found.
        detail: String,
    },
    /// A read failed. What was written before stays; running it again resumes.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A batch failed. What was written before stays; running it again resumes.
    #[error(
        "a batch of the migration was not written: {0}; run the migration again, it goes on where it stopped"
    )]
    Commit(#[from] CommitError),
    /// The caller asked to stop. Everything reported as done is durable; running it again resumes.
    #[error("the migration was stopped at format {format}; run it again, it goes on where it stopped")]
    Stopped {
        /// The format in the stamp.
        format: u64,
    },
}

fn damages(found: &[String], count: u64) -> String {
    let mut text = found.join("; ");
    let hidden = count.saturating_sub(found.len() as u64);
    if hidden > 0 {
        text.push_str(&format!("; and {hidden} more"));
    }
    text.push_str("; restore the store from a checkpoint or a copy of the bucket");
    text
}
