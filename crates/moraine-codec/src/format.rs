//! The versions of the store format and the numbers that are part of it. No other crate repeats them.

use bytes::Bytes;
use moraine_keys::FormatKey;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::error::DecodeError;
use crate::frame::payload;

/// The format that this software writes.
pub const CURRENT: u64 = Format::DeleteTargetDirectory.number();
/// The oldest format that this software knows of.
pub const OLDEST_KNOWN: u64 = Format::Base.number();
/// The oldest format that this software opens. Older ones have to be migrated first; in formats from here to
/// [`CURRENT`] what a directory would answer is found by scanning.
pub const OLDEST_OPENABLE: u64 = Format::RowTombstones.number();

/// Identity of the segment extractor, which takes the first byte of a key. The store keeps it and refuses another.
pub const SEGMENT_EXTRACTOR: &str = "moraine-tag-v1";

/// Field id of the row id column that data files embed.
pub const ROW_ID_FIELD_ID: u64 = 2_147_483_540;
/// Field id of the snapshot id column that data files of several snapshots embed.
pub const SNAPSHOT_ID_FIELD_ID: u64 = 2_147_483_539;

/// How many snapshots back the changelog goes.
pub const CHANGELOG_SNAPSHOTS_MAX: u64 = 64;
/// The most keys that a commit records in the changelog; a greater one has no record there.
pub const CHANGELOG_KEYS_MAX: usize = 4096;
/// The most passes that the maintenance status keeps.
pub const MAINTENANCE_PASSES_MAX: usize = 16;

/// A version of the store format: what it introduced. Versions only ever rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Format {
    /// 1: subspaces system, snapshot, current, history, inline.
    Base = 1,
    /// 2: equality indexes. Additive: stamped with their first use.
    Indexes = 2,
    /// 3: index builds in stages. Additive.
    StagedIndexBuilds = 3,
    /// 4: indexes maintained after the commit. Additive.
    DeferredIndexes = 4,
    /// 5: the maintenance status. Additive.
    MaintenanceStatus = 5,
    /// 6: the directory of inlined chunks by their last row. Additive.
    ChunkRanges = 6,
    /// 7: inline schemas that refer to an equal one. Additive.
    SchemaReferences = 7,
    /// 8: directory entries that identify their chunk. Additive.
    ChunkLocators = 8,
    /// 9: several ends per inlined row. Structural: older tombstones are moved by a migration.
    RowTombstones = 9,
    /// 10: catalogs with a commit log. Additive.
    CommitLog = 10,
    /// 11: the name directory. Structural: complete before the stamp.
    NameDirectory = 11,
    /// 12: the directory of delete files by data file. Structural: complete before the stamp.
    DeleteTargetDirectory = 12,
}

impl Format {
    /// Every version, ascending.
    pub const ALL: [Self; 12] = [
        Self::Base,
        Self::Indexes,
        Self::StagedIndexBuilds,
        Self::DeferredIndexes,
        Self::MaintenanceStatus,
        Self::ChunkRanges,
        Self::SchemaReferences,
        Self::ChunkLocators,
        Self::RowTombstones,
        Self::CommitLog,
        Self::NameDirectory,
        Self::DeleteTargetDirectory,
    ];

    /// The number that the stamp holds.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// The version of that number, if it is known.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.number() == number)
    }

    /// What the version introduced, in a few words.
    #[must_use]
    pub fn introduced(self) -> &'static str {
        match self {
            Self::Base => "the base layout",
            Self::Indexes => "equality indexes",
            Self::StagedIndexBuilds => "index builds in stages",
            Self::DeferredIndexes => "indexes maintained after the commit",
            Self::MaintenanceStatus => "the maintenance status",
            Self::ChunkRanges => "the directory of inlined chunks",
            Self::SchemaReferences => "references between inline schemas",
            Self::ChunkLocators => "chunk directory entries that identify their chunk",
            Self::RowTombstones => "several ends per inlined row",
            Self::CommitLog => "catalogs with a commit log",
            Self::NameDirectory => "the name directory",
            Self::DeleteTargetDirectory => "the directory of delete files by data file",
        }
    }
}

/// Whether the framed format stamp `bytes` has fields that this software does not know.
///
/// From format 10 on such a field may mark a catalog whose commits go through a log, which must not be written to
/// directly.
///
/// # Errors
/// [`DecodeError`] about the frame or the payload, naming the key.
pub fn format_value_has_unknown_fields(bytes: &Bytes) -> Result<bool, DecodeError> {
    let mut rest = payload(&FormatKey, bytes)?;
    let undecodable = |source| DecodeError::Payload {
        key: FormatKey.to_string(),
        source,
    };
    let mut unknown = false;
    while !rest.is_empty() {
        let (field, wire_type) = decode_key(&mut rest).map_err(undecodable)?;
        unknown |= field > FORMAT_VALUE_FIELDS;
        skip_field(wire_type, field, &mut rest, DecodeContext::default()).map_err(undecodable)?;
    }
    Ok(unknown)
}

/// The greatest field number of `FormatValue`; there are no gaps below it.
const FORMAT_VALUE_FIELDS: u32 = 2;
