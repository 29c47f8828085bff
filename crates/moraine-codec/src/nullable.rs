//! SQL NULL in columns whose protobuf field cannot be absent.

use crate::proto;

/// A message that stands for a row, any of whose columns may be NULL.
///
/// Fields that DuckLake fills always have no presence in the format, so a NULL that a client writes there is recorded
/// by the field's number. The field itself then has its default.
pub trait Nullable {
    /// Numbers of the fields without presence whose value is NULL, ascending.
    fn null_fields(&self) -> &[u32];

    /// Records whether the field of that number is NULL. Does not touch the field.
    fn set_null(&mut self, field: u32, null: bool);

    /// Whether the field of that number is recorded as NULL.
    fn is_null(&self, field: u32) -> bool {
        self.null_fields().contains(&field)
    }
}

macro_rules! nullable {
    ($($message:ident),+ $(,)?) => { $(
        impl Nullable for proto::$message {
            fn null_fields(&self) -> &[u32] {
                &self.null_fields
            }

            fn set_null(&mut self, field: u32, null: bool) {
                match (self.null_fields.binary_search(&field), null) {
                    (Err(place), true) => self.null_fields.insert(place, field),
                    (Ok(place), false) => {
                        self.null_fields.remove(place);
                    }
                    (Ok(_), true) | (Err(_), false) => {}
                }
            }
        }
    )+ };
}

nullable!(
    SchemaValue,
    TableValue,
    ViewValue,
    MacroValue,
    MacroImplementation,
    MacroParameter,
    ColumnValue,
    ColumnTag,
    PartitionValue,
    PartitionColumn,
    SortValue,
    SortExpression,
    DataFileValue,
    FilePartitionValue,
    DeleteFileValue,
    MappingValue,
    NameMapping,
    FileColumnStatsValue,
    FileVariantStats,
    TableStatsValue,
    TableColumnStatsValue,
    TagEntry,
    SnapshotValue,
    SchemaVersionValue,
    GcFileValue,
);
