//! Arbitrary messages of every type and arbitrary records of every kind, drawn from bytes so that they shrink to
//! defaults.

use std::collections::BTreeMap;

use bytes::Bytes;
use moraine_codec::{Record, Stored, Version, proto};
use moraine_keys::*;
use proptest::prelude::*;

/// Bytes to draw from; zeros when they are used up.
pub(crate) struct Entropy<'a>(&'a [u8]);

impl<'a> Entropy<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }
}

/// Runs `check` with much entropy, many times.
pub(crate) fn check(check: impl Fn(&mut Entropy<'_>) -> Result<(), TestCaseError>) {
    check_all(&prop::collection::vec(any::<u8>(), 0..400), |bytes| {
        check(&mut Entropy::new(&bytes))
    });
}

/// Runs `check` on many values of `strategy`.
pub(crate) fn check_all<S: Strategy>(strategy: &S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    if let Err(error) = runner.run(strategy, check) {
        panic!("{error}");
    }
}

/// What can be drawn.
pub(crate) trait Draw: Sized {
    fn draw(entropy: &mut Entropy<'_>) -> Self;
}

impl Draw for bool {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        entropy.byte() % 2 == 1
    }
}

impl Draw for u64 {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        match entropy.byte() {
            small @ 0..200 => Self::from(small),
            200..220 => Self::MAX,
            _ => Self::from_le_bytes([0; 8].map(|_: u8| entropy.byte())),
        }
    }
}

impl Draw for i64 {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        u64::draw(entropy).cast_signed()
    }
}

impl Draw for u32 {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        Self::from(entropy.byte())
    }
}

impl Draw for String {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        let characters = ['a', 'Z', '\0', '\u{1}', 'ü', '"', '\'', '語', '🪨'];
        (0..entropy.byte() % 8)
            .map(|_| characters[usize::from(entropy.byte()) % characters.len()])
            .collect()
    }
}

impl Draw for Bytes {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        (0..entropy.byte() % 16).map(|_| entropy.byte()).collect()
    }
}

impl Draw for ByteString {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        Self(Bytes::draw(entropy).to_vec())
    }
}

impl<T: Draw> Draw for Option<T> {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        bool::draw(entropy).then(|| T::draw(entropy))
    }
}

impl<T: Draw> Draw for Vec<T> {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        (0..entropy.byte() % 3).map(|_| T::draw(entropy)).collect()
    }
}

impl Draw for BTreeMap<String, String> {
    fn draw(entropy: &mut Entropy<'_>) -> Self {
        (0..entropy.byte() % 4)
            .map(|_| (String::draw(entropy), String::draw(entropy)))
            .collect()
    }
}

/// Draws every field; a field that is missing here does not compile. `$check` runs once for each message.
macro_rules! messages {
    ($($message:ident { $($field:ident),* }),+ $(,)?) => {
        $(
            impl Draw for proto::$message {
                fn draw(entropy: &mut Entropy<'_>) -> Self {
                    let _ = &entropy;
                    Self { $($field: Draw::draw(entropy)),* }
                }
            }
        )+

        macro_rules! for_every_message {
            ($check:ident) => {{ $( $check::<moraine_codec::proto::$message>(); )+ }};
        }
        pub(crate) use for_every_message;
    };
}

messages! {
    SchemaValue { schema_id, schema_uuid, begin_snapshot, end_snapshot, schema_name, path, path_is_relative, null_fields },
    TableValue { table_id, table_uuid, begin_snapshot, end_snapshot, schema_id, table_name, path, path_is_relative, next_column_id, null_fields, stray_column_tags },
    StrayColumnTag { column_id, tag },
    ViewValue { view_id, view_uuid, begin_snapshot, end_snapshot, schema_id, view_name, dialect, sql, column_aliases, null_fields },
    MacroValue { macro_id, begin_snapshot, end_snapshot, schema_id, macro_name, implementations, null_fields },
    MacroImplementation { impl_id, dialect, sql, macro_type, parameters, null_fields },
    MacroParameter { column_id, parameter_name, parameter_type, default_value, default_value_type, null_fields },
    ColumnValue { column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name, column_type, initial_default, default_value, nulls_allowed, parent_column, default_value_type, default_value_dialect, tags, null_fields },
    ColumnTag { begin_snapshot, end_snapshot, key, value, null_fields },
    PartitionValue { partition_id, table_id, begin_snapshot, end_snapshot, columns, null_fields },
    PartitionColumn { partition_key_index, column_id, transform, null_fields },
    SortValue { sort_id, table_id, begin_snapshot, end_snapshot, expressions, null_fields },
    SortExpression { sort_key_index, expression, dialect, sort_direction, null_order, null_fields },
    DataFileValue { data_file_id, table_id, begin_snapshot, end_snapshot, file_order, path, path_is_relative, file_format, record_count, file_size_bytes, footer_size, row_id_start, partition_id, encryption_key, mapping_id, partial_max, partition_values, null_fields },
    FilePartitionValue { partition_key_index, partition_value, null_fields },
    DeleteFileValue { delete_file_id, table_id, begin_snapshot, end_snapshot, data_file_id, path, path_is_relative, format, delete_count, file_size_bytes, footer_size, encryption_key, partial_max, null_fields },
    MappingValue { mapping_id, table_id, map_type, name_mappings, null_fields },
    NameMapping { column_id, source_name, target_field_id, parent_column, is_partition, null_fields },
    FileColumnStatsValue { data_file_id, table_id, column_id, column_size_bytes, value_count, null_count, min_value, max_value, contains_nan, extra_stats, variant_stats, null_fields },
    FileVariantStats { variant_path, shredded_type, column_size_bytes, value_count, null_count, min_value, max_value, contains_nan, extra_stats, null_fields },
    TableStatsValue { table_id, record_count, next_row_id, file_size_bytes, null_fields },
    TableColumnStatsValue { table_id, column_id, contains_null, contains_nan, min_value, max_value, extra_stats, null_fields },
    TagValue { object_id, entries },
    TagEntry { begin_snapshot, end_snapshot, key, value, null_fields },
    OptionScopeValue { options },
    IndexValue { index_id, table_id, begin_snapshot, end_snapshot, index_name, column_ids, unique, build_state, build_cursor_file, build_cursor_row_id, build_deletes_scanned, poisoned, ducklake_index_id, column_descending, column_nulls_first, build_cursor_position, deferred_maintenance, build_inline_cursor },
    InlineBuildCursorValue { schema_version, begin_snapshot, chunk_seq, next_position, chunk_finished, complete, covered_snapshot },
    SnapshotValue { snapshot_id, snapshot_time_micros, schema_version, next_catalog_id, next_file_id, changes_made, author, commit_message, commit_extra_info, schema_changed_table_ids, deleted_data_file_ids, deletes_untargeted_files, null_fields, changes_only },
    ChangelogValue { keys },
    SchemaVersionValue { schema_version, null_fields },
    GcFileValue { data_file_id, path, path_is_relative, schedule_start_micros, null_fields },
    EmptyValue {},
    FormatValue { format_version, writer_version },
    HeadValue { snapshot_id, batch_seq },
    MigrationValue { from_format, to_format, cursor },
    MaintenanceStatusValue { passes },
    MaintenanceStatusPassValue { started_at_micros, trigger, steps },
    MaintenanceStatusStepValue { step, status, detail },
    InlineSchemaValue { arrow_schema, same_as_version },
    InlineChunkValue { body, row_id_start, row_count, data_file_id },
    InlineChunkRangeValue { row_id_start, schema_version, begin_snapshot, chunk_seq },
    InlineInlineDeleteValue { end_snapshot },
    InlineFileDeleteValue { begin_snapshot },
    InlineFileDeleteTableValue {},
    InlineSchemaDroppedValue {},
}

/// A kind of which records can be drawn: a key, and a value that belongs under it.
pub(crate) trait DrawRecord: Stored {
    fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value);
}

/// Draws the components of the key; those in the second braces are copied to the value's fields of the same name.
macro_rules! records {
    ($($key:ident { $($component:ident),* } => { $($field:ident),* }),+ $(,)?) => { $(
        impl DrawRecord for $key {
            fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
                let key = $key { $($component: Draw::draw(entropy)),* };
                let mut value = <Self as Stored>::Value::draw(entropy);
                $(value.$field = key.$field;)*
                let _ = &mut value;
                (key, value)
            }
        }
    )+ };
}

records! {
    SnapshotKey { snapshot_id } => { snapshot_id },
    FileColumnStatsKey { table_id, data_file_id, column_id } => { table_id, data_file_id, column_id },
    TableStatsKey { table_id } => { table_id },
    TableColumnStatsKey { table_id, column_id } => { table_id, column_id },
    TagKey { object_id } => { object_id },
    OptionKey { scope_kind, scope_id } => {},
    MappingKey { table_id, mapping_id } => { table_id, mapping_id },
    GcFileKey { data_file_id } => { data_file_id },
    InlineDeleteKey { table_id, row_id } => {},
    InlineFileDeleteKey { table_id, data_file_id, row_id } => {},
    FileDeleteTableKey { table_id } => {},
    SchemaDroppedKey { table_id, schema_version } => {},
    RowTombstoneKey { table_id, row_id, end_snapshot } => { end_snapshot },
    SchemaVersionKey { table_id, begin_snapshot } => {},
    ChangelogKey { snapshot_id } => {},
    NameKey { kind, parent_id, name, entity_id } => {},
    DeleteTargetKey { table_id, data_file_id, delete_file_id } => {},
    UniqueIndexKey { index_id, canonical } => {},
    MultiIndexKey { index_id, canonical, row_id } => {},
}

macro_rules! system_records {
    ($($key:ident),+ $(,)?) => { $(
        impl DrawRecord for $key {
            fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
                ($key, Draw::draw(entropy))
            }
        }
    )+ };
}

system_records!(FormatKey, HeadKey, MigrationKey, MaintenanceStatusKey);

/// The same for versioned kinds, live and ended.
macro_rules! version_records {
    ($($key:ident { $($component:ident),* }),+ $(,)?) => { $(
        impl DrawRecord for $key {
            fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
                let key = $key { $($component: Draw::draw(entropy)),* };
                let mut value = <Self as Stored>::Value::draw(entropy);
                $(value.$component = key.$component;)*
                value.set_end_snapshot(None);
                (key, value)
            }
        }

        impl DrawRecord for History<$key> {
            fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
                let (entity, mut value) = $key::draw_record(entropy);
                let end_snapshot = u64::draw(entropy).max(value.begin_snapshot());
                value.set_end_snapshot(Some(end_snapshot));
                (History { entity, end_snapshot }, value)
            }
        }
    )+ };
}

version_records! {
    SchemaKey { schema_id },
    TableKey { table_id },
    ViewKey { view_id },
    ColumnKey { table_id, column_id },
    PartitionKey { table_id, partition_id },
    DataFileKey { table_id, data_file_id },
    DeleteFileKey { table_id, delete_file_id },
    SortKey { table_id, sort_id },
    MacroKey { macro_id },
    IndexDefinitionKey { table_id, index_id },
}

impl DrawRecord for InlineSchemaKey {
    fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
        let key = Self {
            table_id: Draw::draw(entropy),
            schema_version: Draw::draw(entropy),
        };
        let other = Option::<u64>::draw(entropy).filter(|version| *version != key.schema_version);
        let value = match other {
            Some(version) => proto::InlineSchemaValue {
                same_as_version: Some(version),
                ..Default::default()
            },
            None => proto::InlineSchemaValue {
                arrow_schema: Bytes::from_static(b"schema"),
                ..Default::default()
            },
        };
        (key, value)
    }
}

impl DrawRecord for InlineInsertKey {
    fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
        let key = Self {
            table_id: Draw::draw(entropy),
            schema_version: Draw::draw(entropy),
            begin_snapshot: Draw::draw(entropy),
            chunk_seq: Draw::draw(entropy),
        };
        let mut value = proto::InlineChunkValue::draw(entropy);
        value.row_count = value.row_count.clamp(1, 2048);
        value.row_id_start = value.row_id_start.min(u64::MAX - 2048);
        (key, value)
    }
}

impl DrawRecord for ChunkRangeKey {
    fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
        let key = Self {
            table_id: Draw::draw(entropy),
            row_id_end: Draw::draw(entropy),
        };
        let mut value = proto::InlineChunkRangeValue::draw(entropy);
        value.row_id_start = value.row_id_start.min(key.row_id_end);
        (key, value)
    }
}

impl DrawRecord for ChunkLocatorKey {
    fn draw_record(entropy: &mut Entropy<'_>) -> (Self, Self::Value) {
        let key = Self {
            table_id: Draw::draw(entropy),
            row_id_end: Draw::draw(entropy),
            schema_version: Draw::draw(entropy),
            begin_snapshot: Draw::draw(entropy),
            chunk_seq: Draw::draw(entropy),
        };
        let value = proto::InlineChunkRangeValue {
            row_id_start: u64::draw(entropy).min(key.row_id_end),
            schema_version: key.schema_version,
            begin_snapshot: key.begin_snapshot,
            chunk_seq: key.chunk_seq,
        };
        (key, value)
    }
}

/// Calls the generic function `$check` once for each kind under which something is stored.
macro_rules! for_every_stored_kind {
    ($check:ident) => {
        $crate::messages::for_every_stored_kind!(@ $check:
            FormatKey, HeadKey, MigrationKey, MaintenanceStatusKey, SnapshotKey, SchemaKey, TableKey, ViewKey,
            ColumnKey, PartitionKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, TableStatsKey,
            TableColumnStatsKey, TagKey, OptionKey, SortKey, MacroKey, MappingKey, IndexDefinitionKey, GcFileKey,
            History<SchemaKey>, History<TableKey>, History<ViewKey>, History<ColumnKey>, History<PartitionKey>,
            History<DataFileKey>, History<DeleteFileKey>, History<SortKey>, History<MacroKey>,
            History<IndexDefinitionKey>, InlineSchemaKey, InlineInsertKey, InlineDeleteKey, InlineFileDeleteKey,
            FileDeleteTableKey, ChunkRangeKey, SchemaDroppedKey, ChunkLocatorKey, RowTombstoneKey,
            UniqueIndexKey, MultiIndexKey, SchemaVersionKey, ChangelogKey, NameKey, DeleteTargetKey
        )
    };
    (@ $check:ident: $($kind:ty),+) => {{
        #[allow(unused_imports, clippy::wildcard_imports)]
        use moraine_keys::*;
        $( $check::<$kind>(); )+
    }};
}
pub(crate) use for_every_stored_kind;

/// A record drawn as kind `K`.
pub(crate) fn record<K: DrawRecord>(entropy: &mut Entropy<'_>) -> Record
where
    Record: From<(K, K::Value)>,
{
    Record::from(K::draw_record(entropy))
}
