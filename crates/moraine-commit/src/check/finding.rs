//! What can be found: the invariants by name, how bad it is when one does not hold, and what mends it.

use std::fmt;

/// One record that breaks one invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The invariant that does not hold.
    pub invariant: Invariant,
    /// The key of the record, as [`moraine_keys::Key`] prints it; in hexadecimal where it is none.
    pub key: String,
    /// What the record says, and what it should say.
    pub detail: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Harmless: it costs space or time, and goes by itself or with maintenance.
    Leftover,
    /// Readers can be given wrong answers or errors, or a writer can go wrong because of it.
    Violation,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Leftover => "leftover",
            Severity::Violation => "violation",
        })
    }
}

macro_rules! invariants {
    ($($(#[$doc:meta])* $variant:ident, $severity:ident, $name:literal, $repair:literal;)+) => {
        /// What holds on every sound store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Invariant {
            $($(#[$doc])* $variant,)+
        }

        impl Invariant {
            /// Every invariant, in the order of the checks.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in reports: lower case, with hyphens.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What mends a store on which it does not hold.
            #[must_use]
            pub fn repair(self) -> &'static str {
                match self { $(Self::$variant => $repair),+ }
            }

            /// How bad it is when it does not hold.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),+ }
            }
        }
    };
}

invariants! {
    /// Every key is one of the tree (RFC 0002).
    KeyOfTheTree, Violation, "key-of-the-tree",
        "a newer moraine may have written it: look with that version; otherwise restore from a checkpoint";
    /// Every value decodes, and carries the ids of its key.
    ValueOfTheKey, Violation, "value-of-the-key", "restore the record from a checkpoint or a copy of the bucket";
    /// No record of a kind that this format has replaced is left.
    NoReplacedKind, Leftover, "no-replaced-kind", "flush the table's inlined rows; the flush sweeps them";
    /// A store with records has a format stamp and a head, and no migration is under way.
    StampedAndWhole, Violation, "stamped-and-whole",
        "finish a migration with `moraine migrate`; otherwise restore from a checkpoint";
    /// The head names the newest snapshot.
    HeadIsNewestSnapshot, Violation, "head-is-newest-snapshot", "restore from a checkpoint";
    /// From snapshot to snapshot, time rises and no counter falls.
    SnapshotsInOrder, Violation, "snapshots-in-order",
        "times are for people and need no repair; where a counter fell, export the lake and import it anew";
    /// The changelog speaks of snapshots within its window, in keys of the current subspace, sorted and each once.
    ChangelogInWindow, Leftover, "changelog-in-window", "none needed: readers that cannot use it read the catalog anew";
    /// No version begins or ends after the newest snapshot.
    VersionsWithinHead, Violation, "versions-within-head", "restore from a checkpoint";
    /// Of one entity no two versions are seen at one snapshot.
    VersionsApart, Violation, "versions-apart", "restore from a checkpoint, or export the lake and import it anew";
    /// Every record that belongs to another has it: columns a table, tables a schema, delete files a data file.
    ParentExists, Violation, "parent-exists", "restore from a checkpoint, or delete the record through SQL";
    /// Tags, options and schema versions speak of objects that are there.
    ObjectExists, Leftover, "object-exists", "none needed; they can be deleted through SQL";
    /// Ids lie below the counters that the next ones come from.
    IdsBelowCounters, Violation, "ids-below-counters",
        "export the lake and import it anew: an id would be given twice otherwise";
    /// Row ids of files and inlined rows lie below their table's next row id.
    RowIdsBelowCounter, Violation, "row-ids-below-counter",
        "raise next_row_id in ducklake_table_stats through SQL";
    /// Each live schema and table has its entry in the name directory (format 11).
    NamesComplete, Violation, "names-complete", "export the lake and import it anew";
    /// The name directory has no other entries.
    NamesExact, Violation, "names-exact", "export the lake and import it anew";
    /// Each live delete file has its entry in the delete-target directory (format 12).
    DeleteTargetsComplete, Violation, "delete-targets-complete", "export the lake and import it anew";
    /// The delete-target directory has no other entries.
    DeleteTargetsExact, Violation, "delete-targets-exact", "export the lake and import it anew";
    /// A data file has at most one live delete file.
    OneDeleteFile, Violation, "one-delete-file", "run ducklake_rewrite_data_files on the table";
    /// A delete file deletes no more rows than its data file has.
    DeletesWithinFile, Violation, "deletes-within-file", "restore from a checkpoint";
    /// A data file has one value for each column of the partitioning it was written under.
    PartitionValuesComplete, Violation, "partition-values-complete",
        "export the lake, mend ducklake_file_partition_value, import it anew";
    /// Statistics do not contradict each other: what a file has, the table's statistics admit.
    StatisticsAgree, Violation, "statistics-agree",
        "correct ducklake_table_column_stats through SQL: scans skip what the statistics exclude";
    /// No file that is scheduled for deletion is in use.
    ScheduledFilesUnused, Violation, "scheduled-files-unused",
        "delete the row of ducklake_files_scheduled_for_deletion through SQL before the next clean-up";
    /// Chunks and references of inlined tables have a schema record, at most one reference away.
    InlineSchemaExists, Violation, "inline-schema-exists", "restore from a checkpoint";
    /// The rows of a chunk decode under its schema.
    ChunkDecodes, Violation, "chunk-decodes", "restore from a checkpoint";
    /// Each chunk has a locator that says where it lies.
    ChunksLocated, Leftover, "chunks-located", "flush the table's inlined rows: until then reads go through the chunks";
    /// Each locator is that of a chunk.
    LocatorsOfChunks, Leftover, "locators-of-chunks",
        "flush the table's inlined rows: until then reads go through the chunks";
    /// No inlined row is seen twice at one snapshot.
    RowsSeenOnce, Violation, "rows-seen-once", "delete one of the two through SQL";
    /// Each tombstone ends an inlined row.
    TombstonesEndRows, Leftover, "tombstones-end-rows", "none needed";
    /// Inlined deletions are from rows that their data files have.
    FileDeletesOfFiles, Violation, "file-deletes-of-files", "flush the table's inlined rows, or delete them through SQL";
    /// Inlined deletions are from data files that are there. DuckLake leaves those of files that have expired.
    FileDeletesOfPresentFiles, Leftover, "file-deletes-of-present-files", "none needed: nothing reads them";
    /// Each index entry belongs to an index.
    IndexEntriesOfIndexes, Leftover, "index-entries-of-indexes", "none needed: nothing reads them";
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
