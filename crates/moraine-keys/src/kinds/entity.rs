//! Kinds of subspace `current`: the sixteen entities and the files scheduled for deletion.

use crate::error::KeyError;
use crate::key::{CurrentKey, EntityKey, Key};
use crate::kind::{Entity, TableChild, Versioned, kind, leading_id, table_scoped, wrong_kind};
use crate::range::KeyRange;

/// Declares a kind of `current/entity`.
macro_rules! entity {
    ($(#[$meta:meta])* $name:ident, $variant:ident, $text:literal, { $($fields:tt)* }) => {
        kind! {
            $(#[$meta])*
            $name, concat!("current/", $text), { $($fields)* },
            key => Key::Current(CurrentKey::Entity(EntityKey::$variant(key)))
        }

        impl Entity for $name {
            const HISTORY_NAME: &'static str = concat!("history/", $text);

            fn to_entity(&self) -> EntityKey {
                EntityKey::$variant(self.clone())
            }

            fn from_entity(entity: EntityKey) -> Result<Self, KeyError> {
                match entity {
                    EntityKey::$variant(key) => Ok(key),
                    other => Err(wrong_kind(<Self as crate::kind::Kind>::NAME, &other)),
                }
            }
        }
    };
}

entity! {
    /// A schema (`ducklake_schema`).
    SchemaKey, Schema, "schema", {
        /// The schema.
        schema_id: u64,
    }
}

entity! {
    /// A table (`ducklake_table`).
    TableKey, Table, "table", {
        /// The table.
        table_id: u64,
    }
}

entity! {
    /// A view (`ducklake_view`).
    ViewKey, View, "view", {
        /// The view.
        view_id: u64,
    }
}

entity! {
    /// A column (`ducklake_column`) with its tags; nested fields are columns of their own.
    ColumnKey, Column, "column", {
        /// The table.
        table_id: u64,
        /// The column: its field id, unique within the table.
        column_id: u64,
    }
}

entity! {
    /// A partitioning of a table (`ducklake_partition_info`) with its columns.
    PartitionKey, Partition, "partition", {
        /// The table.
        table_id: u64,
        /// The partitioning.
        partition_id: u64,
    }
}

entity! {
    /// A data file (`ducklake_data_file`) with its partition values.
    DataFileKey, DataFile, "data_file", {
        /// The table.
        table_id: u64,
        /// The file.
        data_file_id: u64,
    }
}

entity! {
    /// A delete file (`ducklake_delete_file`).
    DeleteFileKey, DeleteFile, "delete_file", {
        /// The table.
        table_id: u64,
        /// The delete file.
        delete_file_id: u64,
    }
}

entity! {
    /// The statistics of one column in one data file (`ducklake_file_column_stats`) with their variant statistics.
    FileColumnStatsKey, FileColumnStats, "file_column_stats", {
        /// The table.
        table_id: u64,
        /// The file.
        data_file_id: u64,
        /// The column.
        column_id: u64,
    }
}

entity! {
    /// The statistics of a table (`ducklake_table_stats`).
    TableStatsKey, TableStats, "table_stats", {
        /// The table.
        table_id: u64,
    }
}

entity! {
    /// The statistics of a column over all of a table (`ducklake_table_column_stats`).
    TableColumnStatsKey, TableColumnStats, "table_column_stats", {
        /// The table.
        table_id: u64,
        /// The column.
        column_id: u64,
    }
}

entity! {
    /// All tags of one object, ended ones included (`ducklake_tag`).
    TagKey, Tag, "tag", {
        /// The schema, table, view or macro.
        object_id: u64,
    }
}

entity! {
    /// All options of one scope (`ducklake_metadata`).
    OptionKey, Option, "option", {
        /// Kind of the scope: [`OptionKey::GLOBAL`], [`OptionKey::SCHEMA`] or [`OptionKey::TABLE`].
        scope_kind: u64,
        /// The schema or table; 0 in the global scope.
        scope_id: u64,
    }
}

entity! {
    /// A sort order of a table (`ducklake_sort_info`) with its expressions.
    SortKey, Sort, "sort", {
        /// The table.
        table_id: u64,
        /// The sort order.
        sort_id: u64,
    }
}

entity! {
    /// A macro (`ducklake_macro`) with its implementations and their parameters.
    MacroKey, Macro, "macro", {
        /// The macro.
        macro_id: u64,
    }
}

entity! {
    /// A column mapping (`ducklake_column_mapping`) with its name mappings.
    MappingKey, Mapping, "mapping", {
        /// The table.
        table_id: u64,
        /// The mapping.
        mapping_id: u64,
    }
}

entity! {
    /// The definition of an equality or range index (RFC 0016).
    IndexDefinitionKey, Index, "index", {
        /// The table.
        table_id: u64,
        /// The index.
        index_id: u64,
    }
}

kind! {
    /// A file that waits to be deleted (`ducklake_files_scheduled_for_deletion`).
    GcFileKey, "current/gcfile", {
        /// The data or delete file; ids are unique across both.
        data_file_id: u64,
    }, key => Key::Current(CurrentKey::GcFile(key))
}

leading_id!(
    SchemaKey.schema_id,
    ViewKey.view_id,
    TagKey.object_id,
    MacroKey.macro_id,
    GcFileKey.data_file_id
);
table_scoped!(
    TableKey,
    ColumnKey.column_id,
    PartitionKey.partition_id,
    DataFileKey.data_file_id,
    DeleteFileKey.delete_file_id,
    FileColumnStatsKey.data_file_id,
    TableStatsKey,
    TableColumnStatsKey.column_id,
    SortKey.sort_id,
    MappingKey.mapping_id,
    IndexDefinitionKey.index_id,
);

impl Versioned for SchemaKey {}
impl Versioned for TableKey {}
impl Versioned for ViewKey {}
impl Versioned for ColumnKey {}
impl Versioned for PartitionKey {}
impl Versioned for DataFileKey {}
impl Versioned for DeleteFileKey {}
impl Versioned for SortKey {}
impl Versioned for MacroKey {}
impl Versioned for IndexDefinitionKey {}

impl OptionKey {
    /// Scope of the whole lake.
    pub const GLOBAL: u64 = 0;
    /// Scope of one schema.
    pub const SCHEMA: u64 = 1;
    /// Scope of one table.
    pub const TABLE: u64 = 2;

    /// The options of the whole lake.
    #[must_use]
    pub fn global() -> Self {
        Self {
            scope_kind: Self::GLOBAL,
            scope_id: 0,
        }
    }

    /// The options of one schema.
    #[must_use]
    pub fn schema(schema_id: u64) -> Self {
        Self {
            scope_kind: Self::SCHEMA,
            scope_id: schema_id,
        }
    }

    /// The options of one table.
    #[must_use]
    pub fn table(table_id: u64) -> Self {
        Self {
            scope_kind: Self::TABLE,
            scope_id: table_id,
        }
    }
}

impl FileColumnStatsKey {
    /// The statistics of all columns of one data file.
    #[must_use]
    pub fn scan_file(table_id: u64, data_file_id: u64) -> KeyRange {
        Self::scan_table_ids(table_id, data_file_id..=data_file_id)
    }
}
