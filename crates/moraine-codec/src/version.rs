//! The lifetime that versioned rows carry.

use crate::proto;

/// A message that stands for one version of something: seen from `begin_snapshot` on, up to and without
/// `end_snapshot`.
pub trait Version {
    /// The first snapshot that sees the version.
    fn begin_snapshot(&self) -> u64;
    /// The first snapshot that no longer sees the version; `None` while it is live.
    fn end_snapshot(&self) -> Option<u64>;
    /// Sets the first snapshot that sees the version.
    fn set_begin_snapshot(&mut self, begin_snapshot: u64);
    /// Sets, or with `None` clears, the first snapshot that no longer sees the version.
    fn set_end_snapshot(&mut self, end_snapshot: Option<u64>);

    /// Whether a reader at `snapshot_id` sees the version.
    fn is_visible_at(&self, snapshot_id: u64) -> bool {
        self.begin_snapshot() <= snapshot_id && self.end_snapshot().is_none_or(|end| snapshot_id < end)
    }
}

macro_rules! version {
    ($($message:ident),+ $(,)?) => { $(
        impl Version for proto::$message {
            fn begin_snapshot(&self) -> u64 {
                self.begin_snapshot
            }

            fn end_snapshot(&self) -> Option<u64> {
                self.end_snapshot
            }

            fn set_begin_snapshot(&mut self, begin_snapshot: u64) {
                self.begin_snapshot = begin_snapshot;
            }

            fn set_end_snapshot(&mut self, end_snapshot: Option<u64>) {
                self.end_snapshot = end_snapshot;
            }
        }
    )+ };
}

version!(
    SchemaValue,
    TableValue,
    ViewValue,
    MacroValue,
    ColumnValue,
    ColumnTag,
    PartitionValue,
    SortValue,
    DataFileValue,
    DeleteFileValue,
    TagEntry,
    IndexValue,
);
