//! Any key together with its value, for code that goes over records of every kind.

use bytes::Bytes;
use moraine_keys::{
    ChangelogKey, ChunkLocatorKey, ChunkRangeKey, ColumnKey, DataFileKey, DeleteFileKey, DeleteTargetKey,
    FileColumnStatsKey, FileDeleteTableKey, FormatKey, GcFileKey, HeadKey, History, IndexDefinitionKey,
    InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey, Key, Kind, MacroKey,
    MaintenanceStatusKey, MappingKey, MigrationKey, MultiIndexKey, NameKey, OptionKey, PartitionKey,
    RowTombstoneKey, SchemaDroppedKey, SchemaKey, SchemaVersionKey, SnapshotKey, SortKey,
    TableColumnStatsKey, TableKey, TableStatsKey, TagKey, UniqueIndexKey, ViewKey,
};

use crate::error::{DecodeError, EncodeError};
use crate::proto;
use crate::stored;

macro_rules! records {
    ($($(#[$doc:meta])* $variant:ident($key:ty, $value:ty)),+ $(,)?) => {
        /// A key and the value under it, of any kind that is ever stored.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Record {
            $($(#[$doc])* $variant($key, $value)),+
        }

        impl Record {
            /// The key.
            #[must_use]
            pub fn key(&self) -> Key {
                match self { $(Self::$variant(key, _) => key.to_key()),+ }
            }

            /// The name of the message that the value is, and its bytes.
            #[cfg(feature = "json")]
            pub(crate) fn message(&self) -> (String, Vec<u8>) {
                match self {
                    $(Self::$variant(_, value) => {
                        (<$value as prost::Name>::full_name(), prost::Message::encode_to_vec(value))
                    })+
                }
            }
        }

        $(
            impl From<($key, $value)> for Record {
                fn from((key, value): ($key, $value)) -> Self {
                    Self::$variant(key, value)
                }
            }
        )+

        /// The record that a key and the bytes under it hold.
        ///
        /// # Errors
        /// [`DecodeError::Key`] for what is no key, [`DecodeError::Unwritten`] for a key under which nothing is ever
        /// stored, and whatever [`stored::decode`] finds.
        pub fn decode_record(key: &[u8], value: &Bytes) -> Result<Record, DecodeError> {
            let key = Key::decode(key)?;
            match key.kind_name() {
                $(<$key as Kind>::NAME => {
                    let key = <$key as Kind>::from_key(key)?;
                    let value = stored::decode(&key, value)?;
                    Ok(Record::$variant(key, value))
                })+
                _ => Err(DecodeError::Unwritten { key: key.to_string() }),
            }
        }

        /// The bytes of a record: those of its key, and those to store under it.
        ///
        /// # Errors
        /// [`EncodeError::Mismatch`] when the value does not belong under the key.
        pub fn encode_record(record: &Record) -> Result<(Bytes, Bytes), EncodeError> {
            match record {
                $(Record::$variant(key, value) => Ok((key.encode(), stored::encode(key, value)?))),+
            }
        }
    };
}

records! {
    /// `system/format`
    Format(FormatKey, proto::FormatValue),
    /// `system/head`
    Head(HeadKey, proto::HeadValue),
    /// `system/migration`
    Migration(MigrationKey, proto::MigrationValue),
    /// `system/maintenance_status`
    MaintenanceStatus(MaintenanceStatusKey, proto::MaintenanceStatusValue),
    /// `snapshot`
    Snapshot(SnapshotKey, proto::SnapshotValue),
    /// `current/schema`
    Schema(SchemaKey, proto::SchemaValue),
    /// `current/table`
    Table(TableKey, proto::TableValue),
    /// `current/view`
    View(ViewKey, proto::ViewValue),
    /// `current/column`
    Column(ColumnKey, proto::ColumnValue),
    /// `current/partition`
    Partition(PartitionKey, proto::PartitionValue),
    /// `current/data_file`
    DataFile(DataFileKey, proto::DataFileValue),
    /// `current/delete_file`
    DeleteFile(DeleteFileKey, proto::DeleteFileValue),
    /// `current/file_column_stats`
    FileColumnStats(FileColumnStatsKey, proto::FileColumnStatsValue),
    /// `current/table_stats`
    TableStats(TableStatsKey, proto::TableStatsValue),
    /// `current/table_column_stats`
    TableColumnStats(TableColumnStatsKey, proto::TableColumnStatsValue),
    /// `current/tag`
    Tag(TagKey, proto::TagValue),
    /// `current/option`
    Option(OptionKey, proto::OptionScopeValue),
    /// `current/sort`
    Sort(SortKey, proto::SortValue),
    /// `current/macro`
    Macro(MacroKey, proto::MacroValue),
    /// `current/mapping`
    Mapping(MappingKey, proto::MappingValue),
    /// `current/index`
    IndexDefinition(IndexDefinitionKey, proto::IndexValue),
    /// `current/gcfile`
    GcFile(GcFileKey, proto::GcFileValue),
    /// `history/schema`
    HistorySchema(History<SchemaKey>, proto::SchemaValue),
    /// `history/table`
    HistoryTable(History<TableKey>, proto::TableValue),
    /// `history/view`
    HistoryView(History<ViewKey>, proto::ViewValue),
    /// `history/column`
    HistoryColumn(History<ColumnKey>, proto::ColumnValue),
    /// `history/partition`
    HistoryPartition(History<PartitionKey>, proto::PartitionValue),
    /// `history/data_file`
    HistoryDataFile(History<DataFileKey>, proto::DataFileValue),
    /// `history/delete_file`
    HistoryDeleteFile(History<DeleteFileKey>, proto::DeleteFileValue),
    /// `history/sort`
    HistorySort(History<SortKey>, proto::SortValue),
    /// `history/macro`
    HistoryMacro(History<MacroKey>, proto::MacroValue),
    /// `history/index`
    HistoryIndexDefinition(History<IndexDefinitionKey>, proto::IndexValue),
    /// `inline/schema`
    InlineSchema(InlineSchemaKey, proto::InlineSchemaValue),
    /// `inline/live/insert`
    InlineInsert(InlineInsertKey, proto::InlineChunkValue),
    /// `inline/live/delete`, legacy
    InlineDelete(InlineDeleteKey, proto::InlineInlineDeleteValue),
    /// `inline/live/file_delete`
    InlineFileDelete(InlineFileDeleteKey, proto::InlineFileDeleteValue),
    /// `inline/file_delete_table`
    FileDeleteTable(FileDeleteTableKey, proto::InlineFileDeleteTableValue),
    /// `inline/chunk_range`, legacy
    ChunkRange(ChunkRangeKey, proto::InlineChunkRangeValue),
    /// `inline/schema_dropped`
    SchemaDropped(SchemaDroppedKey, proto::InlineSchemaDroppedValue),
    /// `inline/chunk_locator`
    ChunkLocator(ChunkLocatorKey, proto::InlineChunkRangeValue),
    /// `inline/row_tombstone`
    RowTombstone(RowTombstoneKey, proto::InlineInlineDeleteValue),
    /// `index/unique`
    UniqueIndex(UniqueIndexKey, u64),
    /// `index/multi`
    MultiIndex(MultiIndexKey, proto::EmptyValue),
    /// `schema_version`
    SchemaVersion(SchemaVersionKey, proto::SchemaVersionValue),
    /// `changelog`
    Changelog(ChangelogKey, proto::ChangelogValue),
    /// `name`
    Name(NameKey, proto::EmptyValue),
    /// `delete_target`
    DeleteTarget(DeleteTargetKey, proto::EmptyValue),
}
