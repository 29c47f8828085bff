//! The tree itself: nested enums whose order of declaration is the format, and the way to bytes and back.
//! New variants go at the end of their enum; nothing is ever reordered, removed or given other components.

use std::fmt;
use std::io::{self, Write};

use bytes::Bytes;
use storekey::{Decode, DecodeError, Encode};

use crate::bytes_text::HexBytes;
use crate::error::KeyError;
use crate::kind::{Entity, Kind, write_key};
use crate::kinds::directory::{DeleteTargetKey, NameKey};
use crate::kinds::entity::{
    ColumnKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, IndexDefinitionKey, MacroKey,
    MappingKey, OptionKey, PartitionKey, SchemaKey, SortKey, TableColumnStatsKey, TableKey, TableStatsKey,
    TagKey, ViewKey,
};
use crate::kinds::index::{MultiIndexKey, UniqueIndexKey};
use crate::kinds::inline::{
    ChunkLocatorKey, ChunkRangeKey, FileDeleteTableKey, InlineDeleteKey, InlineFileDeleteKey,
    InlineInsertKey, InlineSchemaKey, RowTombstoneKey, SchemaDroppedKey,
};
use crate::kinds::system::{
    ChangelogKey, FormatKey, HeadKey, MaintenanceStatusKey, MigrationKey, SchemaVersionKey, SnapshotKey,
};
use crate::subspace::Subspace;

/// Enough for every key without a string, so that encoding allocates once.
const KEY_CAPACITY_BYTES: usize = 48;

/// A key of the store (RFC 0002). Keys compare as their bytes do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Key {
    /// Format stamp, head, migration marker, maintenance status.
    System(SystemKey),
    /// A snapshot.
    Snapshot(SnapshotKey),
    /// The live version of an entity, or a file scheduled for deletion.
    Current(CurrentKey),
    /// An ended version of an entity.
    History(HistoryKey),
    /// Inlined rows and what belongs to them.
    Inline(InlineKey),
    /// An entry of an index.
    Index(IndexKey),
    /// A schema version of a table.
    SchemaVersion(SchemaVersionKey),
    /// The keys that one commit wrote.
    Changelog(ChangelogKey),
    /// A directory entry from name to schema or table. Since format 11.
    Name(NameKey),
    /// A directory entry from data file to delete file. Since format 12.
    DeleteTarget(DeleteTargetKey),
}

/// Keys of subspace `system`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum SystemKey {
    /// The format stamp.
    Format(FormatKey),
    /// The head.
    Head(HeadKey),
    /// The marker of a migration under way.
    Migration(MigrationKey),
    /// The log of maintenance passes.
    MaintenanceStatus(MaintenanceStatusKey),
}

/// Keys of subspace `current`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum CurrentKey {
    /// The live version of an entity.
    Entity(EntityKey),
    /// A file scheduled for deletion.
    GcFile(GcFileKey),
}

/// Keys of subspace `history`: an entity, and the snapshot at which this version of it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub struct HistoryKey {
    /// The entity. Only kinds that are [`crate::Versioned`] are ever written.
    pub entity: EntityKey,
    /// The first snapshot at which the version is no longer seen.
    pub end_snapshot: u64,
}

/// The sixteen kinds of entities.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum EntityKey {
    /// `ducklake_schema`
    Schema(SchemaKey),
    /// `ducklake_table`
    Table(TableKey),
    /// `ducklake_view`
    View(ViewKey),
    /// `ducklake_column`, with its `ducklake_column_tag` rows
    Column(ColumnKey),
    /// `ducklake_partition_info`, with its `ducklake_partition_column` rows
    Partition(PartitionKey),
    /// `ducklake_data_file`, with its `ducklake_file_partition_value` rows
    DataFile(DataFileKey),
    /// `ducklake_delete_file`
    DeleteFile(DeleteFileKey),
    /// `ducklake_file_column_stats`, with its `ducklake_file_variant_stats` rows. Not versioned.
    FileColumnStats(FileColumnStatsKey),
    /// `ducklake_table_stats`. Not versioned.
    TableStats(TableStatsKey),
    /// `ducklake_table_column_stats`. Not versioned.
    TableColumnStats(TableColumnStatsKey),
    /// All `ducklake_tag` rows of one object. Not versioned.
    Tag(TagKey),
    /// All `ducklake_metadata` rows of one scope. Not versioned.
    Option(OptionKey),
    /// `ducklake_sort_info`, with its `ducklake_sort_expression` rows
    Sort(SortKey),
    /// `ducklake_macro`, with its `ducklake_macro_impl` and `ducklake_macro_parameters` rows
    Macro(MacroKey),
    /// `ducklake_column_mapping`, with its `ducklake_name_mapping` rows. Not versioned.
    Mapping(MappingKey),
    /// An index definition
    Index(IndexDefinitionKey),
}

/// Keys of subspace `inline` (RFC 0005).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum InlineKey {
    /// The Arrow schema of the rows inlined under one schema version of a table.
    Schema(InlineSchemaKey),
    /// A chunk of rows, or a deletion.
    Live(InlineOperation),
    /// Never written.
    Archived(InlineOperation),
    /// Marks that the table's `ducklake_inlined_delete_<t>` exists.
    FileDeleteTable(FileDeleteTableKey),
    /// Legacy directory entry of a chunk, before format 8.
    ChunkRange(ChunkRangeKey),
    /// Marks that a `ducklake_inlined_data_<t>_<v>` no longer exists.
    SchemaDropped(SchemaDroppedKey),
    /// Directory entry of a chunk.
    ChunkLocator(ChunkLocatorKey),
    /// The end of an inlined row.
    RowTombstone(RowTombstoneKey),
}

/// What an entry of `inline/live` records.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum InlineOperation {
    /// A chunk of rows.
    Insert(InlineInsertKey),
    /// Legacy tombstone of an inlined row, before format 9.
    Delete(InlineDeleteKey),
    /// The deletion of one row of a data file.
    FileDelete(InlineFileDeleteKey),
}

/// Keys of subspace `index` (RFC 0016).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum IndexKey {
    /// An entry of a unique index.
    Unique(UniqueIndexKey),
    /// An entry of an index that admits duplicates.
    Multi(MultiIndexKey),
}

/// Runs `$body` with `$key` bound to the kind of an entity key.
macro_rules! each_entity {
    ($entity:expr, $key:ident => $body:expr) => {
        match $entity {
            EntityKey::Schema($key) => $body,
            EntityKey::Table($key) => $body,
            EntityKey::View($key) => $body,
            EntityKey::Column($key) => $body,
            EntityKey::Partition($key) => $body,
            EntityKey::DataFile($key) => $body,
            EntityKey::DeleteFile($key) => $body,
            EntityKey::FileColumnStats($key) => $body,
            EntityKey::TableStats($key) => $body,
            EntityKey::TableColumnStats($key) => $body,
            EntityKey::Tag($key) => $body,
            EntityKey::Option($key) => $body,
            EntityKey::Sort($key) => $body,
            EntityKey::Macro($key) => $body,
            EntityKey::Mapping($key) => $body,
            EntityKey::Index($key) => $body,
        }
    };
}

impl Key {
    /// The bytes of the key.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(KEY_CAPACITY_BYTES);
        let written = storekey::encode(&mut bytes, self);
        debug_assert!(written.is_ok(), "writing into memory does not fail");
        Bytes::from(bytes)
    }

    /// The key whose bytes these are.
    ///
    /// Bytes and keys are one to one: what decodes encodes to the same bytes again.
    ///
    /// # Errors
    /// Every variant of [`KeyError`] but [`KeyError::WrongKind`].
    pub fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.is_empty() {
            return Err(KeyError::Empty);
        }
        let mut rest = bytes;
        let key = match <Self as Decode<()>>::decode(&mut storekey::Reader::new(&mut rest)) {
            Ok(key) => key,
            Err(error) => return Err(undecodable(bytes, rest.len(), &error)),
        };
        let mut comparison = Comparison {
            expected: bytes,
            offset: 0,
        };
        if storekey::encode(&mut comparison, &key).is_err() {
            let offset = comparison.offset;
            return Err(KeyError::NonCanonical {
                key: bytes.into(),
                found: key.to_string(),
                offset,
            });
        }
        if !rest.is_empty() {
            return Err(KeyError::TrailingBytes {
                key: bytes.into(),
                found: key.to_string(),
                expected_len: bytes.len() - rest.len(),
                len: bytes.len(),
            });
        }
        Ok(key)
    }

    /// The subspace of the key.
    #[must_use]
    pub fn subspace(&self) -> Subspace {
        match self {
            Self::System(_) => Subspace::System,
            Self::Snapshot(_) => Subspace::Snapshot,
            Self::Current(_) => Subspace::Current,
            Self::History(_) => Subspace::History,
            Self::Inline(_) => Subspace::Inline,
            Self::Index(_) => Subspace::Index,
            Self::SchemaVersion(_) => Subspace::SchemaVersion,
            Self::Changelog(_) => Subspace::Changelog,
            Self::Name(_) => Subspace::Name,
            Self::DeleteTarget(_) => Subspace::DeleteTarget,
        }
    }

    /// The name of the key's kind, such as `current/table`: what the kind's [`Kind::NAME`] says.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Current(CurrentKey::Entity(entity)) => entity.kind_name(),
            Self::History(history) => each_entity!(&history.entity, key => history_name(key)),
            Self::Inline(InlineKey::Archived(operation)) => match operation {
                InlineOperation::Insert(key) => archived_name(key),
                InlineOperation::Delete(key) => archived_name(key),
                InlineOperation::FileDelete(key) => archived_name(key),
            },
            other => other.with_kind(&mut |name, _| name),
        }
    }

    /// The id of the table that the key belongs to, when its first component is a table id.
    #[must_use]
    pub fn table_id(&self) -> Option<u64> {
        match self {
            Self::Current(CurrentKey::Entity(entity)) => entity.table_id(),
            Self::History(history) => history.entity.table_id(),
            Self::Inline(InlineKey::Live(operation) | InlineKey::Archived(operation)) => {
                Some(match operation {
                    InlineOperation::Insert(key) => key.table_id,
                    InlineOperation::Delete(key) => key.table_id,
                    InlineOperation::FileDelete(key) => key.table_id,
                })
            }
            Self::Inline(InlineKey::Schema(key)) => Some(key.table_id),
            Self::Inline(InlineKey::FileDeleteTable(key)) => Some(key.table_id),
            Self::Inline(InlineKey::ChunkRange(key)) => Some(key.table_id),
            Self::Inline(InlineKey::SchemaDropped(key)) => Some(key.table_id),
            Self::Inline(InlineKey::ChunkLocator(key)) => Some(key.table_id),
            Self::Inline(InlineKey::RowTombstone(key)) => Some(key.table_id),
            Self::SchemaVersion(key) => Some(key.table_id),
            Self::DeleteTarget(key) => Some(key.table_id),
            Self::System(_)
            | Self::Snapshot(_)
            | Self::Current(CurrentKey::GcFile(_))
            | Self::Index(_)
            | Self::Changelog(_)
            | Self::Name(_) => None,
        }
    }

    /// Calls `then` with the kind's name and its components, for every key that is not history or archived.
    fn with_kind<T>(&self, then: &mut dyn FnMut(&'static str, &dyn crate::kind::Components) -> T) -> T {
        match self {
            Self::System(SystemKey::Format(key)) => then(FormatKey::NAME, key),
            Self::System(SystemKey::Head(key)) => then(HeadKey::NAME, key),
            Self::System(SystemKey::Migration(key)) => then(MigrationKey::NAME, key),
            Self::System(SystemKey::MaintenanceStatus(key)) => then(MaintenanceStatusKey::NAME, key),
            Self::Snapshot(key) => then(SnapshotKey::NAME, key),
            Self::Current(CurrentKey::Entity(entity)) => {
                each_entity!(entity, key => then(kind_name(key), key))
            }
            Self::Current(CurrentKey::GcFile(key)) => then(GcFileKey::NAME, key),
            Self::History(history) => each_entity!(&history.entity, key => then(history_name(key), key)),
            Self::Inline(InlineKey::Schema(key)) => then(InlineSchemaKey::NAME, key),
            Self::Inline(InlineKey::Live(operation) | InlineKey::Archived(operation)) => match operation {
                InlineOperation::Insert(key) => then(InlineInsertKey::NAME, key),
                InlineOperation::Delete(key) => then(InlineDeleteKey::NAME, key),
                InlineOperation::FileDelete(key) => then(InlineFileDeleteKey::NAME, key),
            },
            Self::Inline(InlineKey::FileDeleteTable(key)) => then(FileDeleteTableKey::NAME, key),
            Self::Inline(InlineKey::ChunkRange(key)) => then(ChunkRangeKey::NAME, key),
            Self::Inline(InlineKey::SchemaDropped(key)) => then(SchemaDroppedKey::NAME, key),
            Self::Inline(InlineKey::ChunkLocator(key)) => then(ChunkLocatorKey::NAME, key),
            Self::Inline(InlineKey::RowTombstone(key)) => then(RowTombstoneKey::NAME, key),
            Self::Index(IndexKey::Unique(key)) => then(UniqueIndexKey::NAME, key),
            Self::Index(IndexKey::Multi(key)) => then(MultiIndexKey::NAME, key),
            Self::SchemaVersion(key) => then(SchemaVersionKey::NAME, key),
            Self::Changelog(key) => then(ChangelogKey::NAME, key),
            Self::Name(key) => then(NameKey::NAME, key),
            Self::DeleteTarget(key) => then(DeleteTargetKey::NAME, key),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end_snapshot = match self {
            Self::History(history) => Some(history.end_snapshot),
            _ => None,
        };
        let name = self.kind_name();
        self.with_kind(&mut |_, components| write_key(f, name, components, end_snapshot))
    }
}

impl EntityKey {
    /// The name of the kind in subspace `current`, such as `current/table`.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        each_entity!(self, key => kind_name(key))
    }

    /// The id of the table that the entity belongs to (or is); `None` for schemas, views, tags, options and macros.
    #[must_use]
    pub fn table_id(&self) -> Option<u64> {
        match self {
            Self::Schema(_) | Self::View(_) | Self::Tag(_) | Self::Option(_) | Self::Macro(_) => None,
            Self::Table(key) => Some(key.table_id),
            Self::Column(key) => Some(key.table_id),
            Self::Partition(key) => Some(key.table_id),
            Self::DataFile(key) => Some(key.table_id),
            Self::DeleteFile(key) => Some(key.table_id),
            Self::FileColumnStats(key) => Some(key.table_id),
            Self::TableStats(key) => Some(key.table_id),
            Self::TableColumnStats(key) => Some(key.table_id),
            Self::Sort(key) => Some(key.table_id),
            Self::Mapping(key) => Some(key.table_id),
            Self::Index(key) => Some(key.table_id),
        }
    }
}

impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each_entity!(self, key => write_key(f, kind_name(key), key, None))
    }
}

fn kind_name<K: Kind>(_: &K) -> &'static str {
    K::NAME
}

fn history_name<K: Entity>(_: &K) -> &'static str {
    K::HISTORY_NAME
}

fn archived_name<K: crate::kind::Live>(_: &K) -> &'static str {
    K::ARCHIVED_NAME
}

/// What storekey's error means for `bytes`, of which `left` were not read.
fn undecodable(bytes: &[u8], left: usize, error: &DecodeError) -> KeyError {
    let key = HexBytes::from(bytes);
    match error {
        DecodeError::Utf8 => KeyError::InvalidUtf8 { key },
        // Only discriminants have values that mean nothing, and the reader stands right behind the one it refused.
        DecodeError::InvalidFormat => {
            let offset = bytes.len().saturating_sub(left).saturating_sub(1);
            let byte = bytes.get(offset).copied().unwrap_or_default();
            KeyError::UnknownDiscriminant { key, offset, byte }
        }
        _ => KeyError::Truncated {
            key,
            len: bytes.len(),
        },
    }
}

/// A writer that keeps nothing and fails at the first byte that differs from what is expected.
struct Comparison<'a> {
    expected: &'a [u8],
    offset: usize,
}

impl Write for Comparison<'_> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        for byte in written {
            if self.expected.get(self.offset) != Some(byte) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.offset += 1;
        }
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
