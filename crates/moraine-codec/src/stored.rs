//! Which value belongs under which kind of key, and what a value must say to belong there.

use std::fmt::Debug;

use bytes::Bytes;
use moraine_keys::{
    ChangelogKey, ChunkLocatorKey, ChunkRangeKey, ColumnKey, DataFileKey, DeleteFileKey, DeleteTargetKey,
    FileColumnStatsKey, FileDeleteTableKey, FormatKey, GcFileKey, HeadKey, History, IndexDefinitionKey,
    InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey, Kind, MacroKey,
    MaintenanceStatusKey, MappingKey, MigrationKey, MultiIndexKey, NameKey, OptionKey, PartitionKey,
    RowTombstoneKey, SchemaDroppedKey, SchemaKey, SchemaVersionKey, SnapshotKey, SortKey,
    TableColumnStatsKey, TableKey, TableStatsKey, TagKey, UniqueIndexKey, Versioned, ViewKey,
};
use prost::Message;

use crate::error::{DecodeError, EncodeError};
use crate::frame::{frame, unframe};
use crate::proto;
use crate::version::Version;

/// A kind of key under which something is stored, and what that is.
pub trait Stored: Kind {
    /// What is stored under keys of this kind.
    type Value: Message + Default + Clone + PartialEq + Debug + Send + Sync + 'static;

    /// Whether the ids that `value` carries are those of the key.
    ///
    /// # Errors
    /// Says what the value has and what the key has.
    fn verify_ids(&self, value: &Self::Value) -> Result<(), String>;

    /// Whether `value` belongs under the key: its ids are the key's, and it does not contradict itself.
    ///
    /// # Errors
    /// Says what the value has and what it should have.
    fn verify(&self, value: &Self::Value) -> Result<(), String> {
        self.verify_ids(value)
    }

    /// The bytes of `value`, framed unless the kind's values are raw.
    fn value_to_bytes(value: &Self::Value) -> Bytes {
        frame(value)
    }

    /// The value whose bytes these are. Does not verify it.
    ///
    /// # Errors
    /// Every [`DecodeError`] about bytes.
    fn value_from_bytes(&self, bytes: &Bytes) -> Result<Self::Value, DecodeError> {
        unframe(self, bytes)
    }
}

/// The bytes to store under `key` for `value`.
///
/// # Errors
/// [`EncodeError::Mismatch`] when the value does not belong under the key, see [`Stored::verify`].
pub fn encode<K: Stored>(key: &K, value: &K::Value) -> Result<Bytes, EncodeError> {
    match key.verify(value) {
        Ok(()) => Ok(K::value_to_bytes(value)),
        Err(detail) => Err(EncodeError::Mismatch {
            key: key.to_string(),
            detail,
        }),
    }
}

/// The value that `bytes`, found under `key`, hold. Byte fields share their memory with `bytes`.
///
/// # Errors
/// [`DecodeError`], always naming the key.
pub fn decode<K: Stored>(key: &K, bytes: &Bytes) -> Result<K::Value, DecodeError> {
    let value = key.value_from_bytes(bytes)?;
    match key.verify(&value) {
        Ok(()) => Ok(value),
        Err(detail) => Err(DecodeError::Mismatch {
            key: key.to_string(),
            detail,
        }),
    }
}

/// Compares one component of a key with the value's field for it.
fn same(field: &str, value: u64, key: u64) -> Result<(), String> {
    if value == key {
        Ok(())
    } else {
        Err(format!("its {field} is {value}"))
    }
}

fn live(value: &impl Version) -> Result<(), String> {
    match value.end_snapshot() {
        None => Ok(()),
        Some(end) => Err(format!(
            "it ended at snapshot {end}, so it belongs to the history"
        )),
    }
}

fn ended(value: &impl Version, end_snapshot: u64) -> Result<(), String> {
    match value.end_snapshot() {
        Some(end) if end != end_snapshot => Err(format!("its end_snapshot is {end}")),
        Some(end) if end < value.begin_snapshot() => Err(format!(
            "it ends at snapshot {end} but begins at {}",
            value.begin_snapshot()
        )),
        Some(_) => Ok(()),
        None => Err("it has no end_snapshot".to_owned()),
    }
}

/// Pairs kinds with messages; the fields in braces are those that key and value both have.
macro_rules! stored {
    ($($key:ident => $value:ident { $($field:ident),* }),+ $(,)?) => { $(
        impl Stored for $key {
            type Value = proto::$value;

            fn verify_ids(&self, value: &Self::Value) -> Result<(), String> {
                $(same(stringify!($field), value.$field, self.$field)?;)*
                let _ = value;
                Ok(())
            }
        }
    )+ };
}

/// The same for kinds whose ended versions move to the history.
macro_rules! stored_versions {
    ($($key:ident => $value:ident { $($field:ident),* }),+ $(,)?) => { $(
        impl Stored for $key {
            type Value = proto::$value;

            fn verify_ids(&self, value: &Self::Value) -> Result<(), String> {
                $(same(stringify!($field), value.$field, self.$field)?;)*
                Ok(())
            }

            fn verify(&self, value: &Self::Value) -> Result<(), String> {
                self.verify_ids(value)?;
                live(value)
            }
        }
    )+ };
}

stored_versions! {
    SchemaKey => SchemaValue { schema_id },
    TableKey => TableValue { table_id },
    ViewKey => ViewValue { view_id },
    ColumnKey => ColumnValue { table_id, column_id },
    PartitionKey => PartitionValue { table_id, partition_id },
    DataFileKey => DataFileValue { table_id, data_file_id },
    DeleteFileKey => DeleteFileValue { table_id, delete_file_id },
    SortKey => SortValue { table_id, sort_id },
    MacroKey => MacroValue { macro_id },
    IndexDefinitionKey => IndexValue { table_id, index_id },
}

stored! {
    FormatKey => FormatValue {},
    HeadKey => HeadValue {},
    MigrationKey => MigrationValue {},
    MaintenanceStatusKey => MaintenanceStatusValue {},
    SnapshotKey => SnapshotValue { snapshot_id },
    FileColumnStatsKey => FileColumnStatsValue { table_id, data_file_id, column_id },
    TableStatsKey => TableStatsValue { table_id },
    TableColumnStatsKey => TableColumnStatsValue { table_id, column_id },
    TagKey => TagValue { object_id },
    OptionKey => OptionScopeValue {},
    MappingKey => MappingValue { table_id, mapping_id },
    GcFileKey => GcFileValue { data_file_id },
    InlineDeleteKey => InlineInlineDeleteValue {},
    InlineFileDeleteKey => InlineFileDeleteValue {},
    FileDeleteTableKey => InlineFileDeleteTableValue {},
    SchemaDroppedKey => InlineSchemaDroppedValue {},
    RowTombstoneKey => InlineInlineDeleteValue { end_snapshot },
    SchemaVersionKey => SchemaVersionValue {},
    ChangelogKey => ChangelogValue {},
}

impl<K> Stored for History<K>
where
    K: Versioned + Stored,
    K::Value: Version,
{
    type Value = K::Value;

    fn verify_ids(&self, value: &Self::Value) -> Result<(), String> {
        self.entity.verify_ids(value)
    }

    fn verify(&self, value: &Self::Value) -> Result<(), String> {
        self.verify_ids(value)?;
        ended(value, self.end_snapshot)
    }
}

impl Stored for InlineSchemaKey {
    type Value = proto::InlineSchemaValue;

    fn verify_ids(&self, _: &Self::Value) -> Result<(), String> {
        Ok(())
    }

    fn verify(&self, value: &Self::Value) -> Result<(), String> {
        match value.same_as_version {
            Some(version) if version == self.schema_version => Err("it refers to itself".to_owned()),
            Some(version) if !value.arrow_schema.is_empty() => {
                Err(format!("it refers to version {version} and holds a schema too"))
            }
            None if value.arrow_schema.is_empty() => Err("it holds no schema".to_owned()),
            Some(_) | None => Ok(()),
        }
    }
}

impl Stored for InlineInsertKey {
    type Value = proto::InlineChunkValue;

    fn verify_ids(&self, _: &Self::Value) -> Result<(), String> {
        Ok(())
    }

    fn verify(&self, value: &Self::Value) -> Result<(), String> {
        let (start, rows) = (value.row_id_start, value.row_count);
        let Some(after_first) = rows.checked_sub(1) else {
            return Err("it holds no rows".to_owned());
        };
        match start.checked_add(after_first) {
            Some(_) => Ok(()),
            None => Err(format!(
                "its {rows} rows from row id {start} on exceed the greatest row id"
            )),
        }
    }
}

impl Stored for ChunkRangeKey {
    type Value = proto::InlineChunkRangeValue;

    fn verify_ids(&self, _: &Self::Value) -> Result<(), String> {
        Ok(())
    }

    fn verify(&self, value: &Self::Value) -> Result<(), String> {
        begins_before_end(value.row_id_start, self.row_id_end)
    }
}

impl Stored for ChunkLocatorKey {
    type Value = proto::InlineChunkRangeValue;

    fn verify_ids(&self, value: &Self::Value) -> Result<(), String> {
        same("schema_version", value.schema_version, self.schema_version)?;
        same("begin_snapshot", value.begin_snapshot, self.begin_snapshot)?;
        same("chunk_seq", value.chunk_seq, self.chunk_seq)
    }

    fn verify(&self, value: &Self::Value) -> Result<(), String> {
        self.verify_ids(value)?;
        begins_before_end(value.row_id_start, self.row_id_end)
    }
}

fn begins_before_end(row_id_start: u64, row_id_end: u64) -> Result<(), String> {
    if row_id_start <= row_id_end {
        Ok(())
    } else {
        Err(format!("its row_id_start {row_id_start} is after its row_id_end"))
    }
}

/// Pairs the directories with no value: nothing is written, and what others wrote is not looked at.
macro_rules! stored_empty {
    ($($key:ident),+ $(,)?) => { $(
        impl Stored for $key {
            type Value = proto::EmptyValue;

            fn verify_ids(&self, _: &Self::Value) -> Result<(), String> {
                Ok(())
            }

            fn value_to_bytes(_: &Self::Value) -> Bytes {
                Bytes::new()
            }

            fn value_from_bytes(&self, _: &Bytes) -> Result<Self::Value, DecodeError> {
                Ok(proto::EmptyValue {})
            }
        }
    )+ };
}

stored_empty!(NameKey, DeleteTargetKey, MultiIndexKey);

impl Stored for UniqueIndexKey {
    /// The row id, eight big-endian bytes without a frame.
    type Value = u64;

    fn verify_ids(&self, _: &Self::Value) -> Result<(), String> {
        Ok(())
    }

    fn value_to_bytes(value: &Self::Value) -> Bytes {
        Bytes::copy_from_slice(&value.to_be_bytes())
    }

    fn value_from_bytes(&self, bytes: &Bytes) -> Result<Self::Value, DecodeError> {
        match <[u8; size_of::<u64>()]>::try_from(bytes.as_ref()) {
            Ok(row_id) => Ok(u64::from_be_bytes(row_id)),
            Err(_) => Err(DecodeError::Length {
                key: self.to_string(),
                expected: size_of::<u64>(),
                found: bytes.len(),
            }),
        }
    }
}
