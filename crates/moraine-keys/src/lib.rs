//! The ordered key tree of a moraine store: subspaces, kinds, components and scan bounds.
//!
//! A key is one value of [`Key`], a tree of nested enums that storekey writes as ordered bytes: one byte per enum level
//! (declaration index + 2), then the components of the kind, every integer as eight big-endian bytes. The order of
//! declaration *is* the format. Every kind is also a struct of its own ([`TableKey`], [`History`]`<TableKey>`, …) that
//! implements [`Kind`], and every scan bound is derived from those types. What a key maps to, and how a store is
//! reached, is not here.
//!
//! ```
//! use moraine_keys::{ColumnKey, History, Kind, TableKey, TableScoped};
//!
//! let column = ColumnKey { table_id: 7, column_id: 3 };
//! assert_eq!(column.to_string(), "current/column{table_id=7, column_id=3}");
//! assert_eq!(ColumnKey::decode(&column.encode()), Ok(column.clone()));
//!
//! // The columns of table 7, and those it once had: only kinds that begin with a table id have such bounds.
//! assert!(ColumnKey::scan_table(7).contains(&column.encode()));
//! let ended = History { entity: column, end_snapshot: 9 };
//! assert!(History::<ColumnKey>::scan_table(7).contains(&ended.encode()));
//! assert!(!ColumnKey::scan_table(7).contains(&TableKey { table_id: 7 }.encode()));
//! ```

mod bytes_text;
mod error;
mod key;
mod kind;
mod kinds;
mod range;
mod subspace;
mod text;

pub use bytes_text::{ByteString, HexBytes};
pub use error::KeyError;
pub use key::{CurrentKey, EntityKey, HistoryKey, IndexKey, InlineKey, InlineOperation, Key, SystemKey};
pub use kind::{Archived, Entity, History, Kind, LeadingId, Live, TableChild, TableScoped, Versioned};
pub use kinds::directory::{DeleteTargetKey, NameKey};
pub use kinds::entity::{
    ColumnKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, IndexDefinitionKey, MacroKey,
    MappingKey, OptionKey, PartitionKey, SchemaKey, SortKey, TableColumnStatsKey, TableKey, TableStatsKey,
    TagKey, ViewKey,
};
pub use kinds::index::{MultiIndexKey, UniqueIndexKey};
pub use kinds::inline::{
    ChunkLocatorKey, ChunkRangeKey, FileDeleteTableKey, InlineDeleteKey, InlineFileDeleteKey,
    InlineInsertKey, InlineSchemaKey, RowTombstoneKey, SchemaDroppedKey,
};
pub use kinds::system::{
    ChangelogKey, FormatKey, HeadKey, MaintenanceStatusKey, MigrationKey, SchemaVersionKey, SnapshotKey,
};
pub use range::KeyRange;
pub use subspace::Subspace;
pub use text::KeyTextError;

/// Key of one inlined insert chunk under `inline/archived`, which no version of the format writes.
pub type ArchivedInsertKey = Archived<InlineInsertKey>;
/// Key of one legacy tombstone under `inline/archived`, which no version of the format writes.
pub type ArchivedDeleteKey = Archived<InlineDeleteKey>;
/// Key of one inlined file deletion under `inline/archived`, which no version of the format writes.
pub type ArchivedFileDeleteKey = Archived<InlineFileDeleteKey>;
