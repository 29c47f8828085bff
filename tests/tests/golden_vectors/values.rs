//! Vectors of values: every message with all fields set, with extremes in all fields, and with no field set.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use moraine_codec::{frame, proto};

use crate::document::Document;

/// What the fields of a message are filled with.
#[derive(Clone, Copy)]
enum Filling {
    /// Values that differ from the default and from each other.
    Set,
    /// The greatest number, the least signed one, texts that are hard to write, optional fields present with their
    /// default.
    Extreme,
}

trait Fill: Sized {
    /// A value for the field of that name, the `position`-th of its message.
    fn fill(filling: Filling, name: &str, position: u64) -> Self;
}

impl Fill for u64 {
    fn fill(filling: Filling, _: &str, position: u64) -> Self {
        match filling {
            Filling::Set => position * 1001,
            Filling::Extreme => Self::MAX,
        }
    }
}

impl Fill for u32 {
    fn fill(filling: Filling, _: &str, position: u64) -> Self {
        match filling {
            Filling::Set => Self::try_from(position).expect("few fields"),
            Filling::Extreme => Self::MAX,
        }
    }
}

impl Fill for i64 {
    fn fill(filling: Filling, _: &str, position: u64) -> Self {
        match filling {
            Filling::Set => 1_767_225_600_000_000 + position.cast_signed(),
            Filling::Extreme => Self::MIN,
        }
    }
}

impl Fill for bool {
    fn fill(_: Filling, _: &str, _: u64) -> Self {
        true
    }
}

impl Fill for String {
    fn fill(filling: Filling, name: &str, _: u64) -> Self {
        match filling {
            Filling::Set => name.to_owned(),
            Filling::Extreme => "a\0\u{1}\"'ü 語 🪨".to_owned(),
        }
    }
}

impl Fill for Bytes {
    fn fill(filling: Filling, name: &str, _: u64) -> Self {
        match filling {
            Filling::Set => Self::copy_from_slice(name.as_bytes()),
            Filling::Extreme => Self::from_static(&[0x00, 0x01, 0xff]),
        }
    }
}

impl<T: Fill + Default> Fill for Option<T> {
    fn fill(filling: Filling, name: &str, position: u64) -> Self {
        match filling {
            Filling::Set => Some(T::fill(filling, name, position)),
            Filling::Extreme => Some(T::default()),
        }
    }
}

impl<T: Fill + Default> Fill for Vec<T> {
    fn fill(filling: Filling, name: &str, position: u64) -> Self {
        match filling {
            Filling::Set => vec![
                T::fill(filling, name, position),
                T::fill(filling, name, position + 1),
            ],
            Filling::Extreme => vec![T::default(), T::fill(filling, name, position)],
        }
    }
}

impl Fill for BTreeMap<String, String> {
    fn fill(filling: Filling, name: &str, position: u64) -> Self {
        match filling {
            Filling::Set => ["data_path", "encrypted"]
                .map(|name| (name.to_owned(), "value".to_owned()))
                .into(),
            Filling::Extreme => [(String::new(), String::fill(filling, name, position))].into(),
        }
    }
}

/// Fills every message field by field, in the order of the fields; one that is missing here does not compile.
macro_rules! messages {
    ($($message:ident { $($field:ident),* }),+ $(,)?) => {
        $(
            impl Fill for proto::$message {
                fn fill(filling: Filling, _: &str, _: u64) -> Self {
                    let mut position = 0;
                    let mut next = || {
                        position += 1;
                        position
                    };
                    let _ = (&mut next, filling);
                    Self { $($field: Fill::fill(filling, stringify!($field), next())),* }
                }
            }
        )+

        fn add_all(document: &mut Document) {
            $( add::<proto::$message>(document, stringify!($message)); )+
        }
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

fn add<M: prost::Message + Default + PartialEq + Debug + Fill>(document: &mut Document, name: &str) {
    let set = M::fill(Filling::Set, name, 0);
    // Messages without fields have one vector only.
    if set != M::default() {
        document.add_described(&format!("{name}, all fields set"), &set, &frame(&set));
        let extreme = M::fill(Filling::Extreme, name, 0);
        document.add_described(&format!("{name}, extremes"), &extreme, &frame(&extreme));
    }
    document.add(&format!("{name}, all fields unset"), &frame(&M::default()));
}

pub(crate) fn document() -> Document {
    let mut document = Document::new("values.txt", "Values of every message, each in its frame.");
    add_all(&mut document);
    document
}

/// Finds the messages in the definitions, not by listing.
#[test]
fn every_message_has_vectors() {
    let text = document().text().to_owned();
    let definitions = ["entity", "commit", "system", "inline"].map(|area| {
        let path = format!(
            "{}/../crates/moraine-codec/proto/{area}.proto",
            env!("CARGO_MANIFEST_DIR")
        );
        std::fs::read_to_string(path).unwrap()
    });
    let messages: Vec<&str> = definitions
        .iter()
        .flat_map(|definition| definition.lines())
        .filter_map(|line| line.strip_prefix("message ")?.split_whitespace().next())
        .collect();
    assert!(messages.len() > 40, "{messages:?}");
    for message in messages {
        let name = format!("{message}, all fields unset");
        assert!(text.lines().any(|line| line == name), "{message} has no vector");
    }
}
