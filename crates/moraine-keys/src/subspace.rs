//! The ten subspaces: the first level of the key tree, and the segments that a store keeps apart.

use std::fmt;

use crate::key::{CurrentKey, HistoryKey, IndexKey, InlineKey, Key, SystemKey};
use crate::range::KeyRange;

/// A subspace: the first level of the key tree, one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subspace {
    /// Format stamp, head, migration marker, maintenance status. Overwritten in place.
    System,
    /// One record per snapshot (`ducklake_snapshot` and `ducklake_snapshot_changes`). Appended; deleted by expiry.
    Snapshot,
    /// The live version of every entity, and files scheduled for deletion.
    Current,
    /// The ended versions of entities. Appended; pruned by expiry.
    History,
    /// Inlined rows, their schemas, tombstones and directory.
    Inline,
    /// Entries of equality and range indexes.
    Index,
    /// The schema versions of each table (`ducklake_schema_versions`).
    SchemaVersion,
    /// Which current keys the last commits wrote.
    Changelog,
    /// Directory from name to schema or table.
    Name,
    /// Directory from data file to its live delete files.
    DeleteTarget,
}

impl Subspace {
    /// All subspaces in the order of their bytes.
    pub const ALL: [Self; 10] = [
        Self::System,
        Self::Snapshot,
        Self::Current,
        Self::History,
        Self::Inline,
        Self::Index,
        Self::SchemaVersion,
        Self::Changelog,
        Self::Name,
        Self::DeleteTarget,
    ];

    /// The name that key texts start with, such as `current`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Snapshot => "snapshot",
            Self::Current => "current",
            Self::History => "history",
            Self::Inline => "inline",
            Self::Index => "index",
            Self::SchemaVersion => "schema_version",
            Self::Changelog => "changelog",
            Self::Name => "name",
            Self::DeleteTarget => "delete_target",
        }
    }

    /// The byte that every key of the subspace starts with.
    #[must_use]
    pub fn byte(self) -> u8 {
        self.sample_key().encode().first().copied().unwrap_or_default()
    }

    /// The subspace whose keys start with `byte`, if one does.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|subspace| subspace.byte() == byte)
    }

    /// All keys of the subspace.
    #[must_use]
    pub fn scan(self) -> KeyRange {
        KeyRange::prefix(&[self.byte()])
    }

    fn sample_key(self) -> Key {
        match self {
            Self::System => Key::System(SystemKey::Format(crate::FormatKey)),
            Self::Snapshot => Key::Snapshot(crate::SnapshotKey::default()),
            Self::Current => Key::Current(CurrentKey::GcFile(crate::GcFileKey::default())),
            Self::History => Key::History(HistoryKey {
                entity: crate::EntityKey::Schema(crate::SchemaKey::default()),
                end_snapshot: 0,
            }),
            Self::Inline => Key::Inline(InlineKey::Schema(crate::InlineSchemaKey::default())),
            Self::Index => Key::Index(IndexKey::Unique(crate::UniqueIndexKey::default())),
            Self::SchemaVersion => Key::SchemaVersion(crate::SchemaVersionKey::default()),
            Self::Changelog => Key::Changelog(crate::ChangelogKey::default()),
            Self::Name => Key::Name(crate::NameKey::default()),
            Self::DeleteTarget => Key::DeleteTarget(crate::DeleteTargetKey::default()),
        }
    }
}

impl fmt::Display for Subspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
