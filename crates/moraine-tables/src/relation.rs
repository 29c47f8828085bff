//! The names of the relations: the 28 fixed `ducklake_*` tables and the two kinds of inlined table. How a name is read
//! and written; nothing here knows columns or records.

use std::fmt;

macro_rules! relations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// One relation of a lake's catalog.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Relation {
            $($(#[$doc])* #[doc = concat!("`", $name, "`.")] $variant,)*
            /// `ducklake_inlined_data_<table_id>_<schema_version>`: the inlined rows of one table version.
            InlinedData {
                /// The table whose rows these are.
                table_id: u64,
                /// The schema version in which the relation was created.
                schema_version: u64,
            },
            /// `ducklake_inlined_delete_<table_id>`: deletions against Parquet files, kept in the catalog.
            InlinedDelete {
                /// The table whose files these rows belong to.
                table_id: u64,
            },
        }

        impl Relation {
            /// The fixed relations, in the order in which DuckLake creates them.
            pub const FIXED: [Self; 28] = [$(Self::$variant,)*];

            fn fixed_name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($name),)*
                    Self::InlinedData { .. } | Self::InlinedDelete { .. } => None,
                }
            }

            fn parse_fixed(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

relations! {
    Metadata = "ducklake_metadata",
    Snapshot = "ducklake_snapshot",
    SnapshotChanges = "ducklake_snapshot_changes",
    Schema = "ducklake_schema",
    Table = "ducklake_table",
    View = "ducklake_view",
    Tag = "ducklake_tag",
    ColumnTag = "ducklake_column_tag",
    DataFile = "ducklake_data_file",
    FileColumnStats = "ducklake_file_column_stats",
    FileVariantStats = "ducklake_file_variant_stats",
    DeleteFile = "ducklake_delete_file",
    Column = "ducklake_column",
    TableStats = "ducklake_table_stats",
    TableColumnStats = "ducklake_table_column_stats",
    PartitionInfo = "ducklake_partition_info",
    PartitionColumn = "ducklake_partition_column",
    FilePartitionValue = "ducklake_file_partition_value",
    FilesScheduledForDeletion = "ducklake_files_scheduled_for_deletion",
    InlinedDataTables = "ducklake_inlined_data_tables",
    ColumnMapping = "ducklake_column_mapping",
    NameMapping = "ducklake_name_mapping",
    SchemaVersions = "ducklake_schema_versions",
    Macro = "ducklake_macro",
    MacroImpl = "ducklake_macro_impl",
    MacroParameters = "ducklake_macro_parameters",
    SortInfo = "ducklake_sort_info",
    SortExpression = "ducklake_sort_expression",
}

const INLINED_DATA_PREFIX: &str = "ducklake_inlined_data_";
const INLINED_DELETE_PREFIX: &str = "ducklake_inlined_delete_";

impl Relation {
    /// The relation of this name, whether or not it exists in a lake; `None` for any other name. Ids are decimal,
    /// without sign or leading zeros.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(fixed) = Self::parse_fixed(name) {
            return Some(fixed);
        }
        if let Some(rest) = name.strip_prefix(INLINED_DELETE_PREFIX) {
            return Some(Self::InlinedDelete {
                table_id: parse_id(rest)?,
            });
        }
        let (table_id, version) = name.strip_prefix(INLINED_DATA_PREFIX)?.split_once('_')?;
        Some(Self::InlinedData {
            table_id: parse_id(table_id)?,
            schema_version: parse_id(version)?,
        })
    }

    /// The relation's name, without a schema.
    #[must_use]
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// Whether this is one of the 28 tables every lake has.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.fixed_name().is_some()
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InlinedData {
                table_id,
                schema_version,
            } => {
                write!(out, "{INLINED_DATA_PREFIX}{table_id}_{schema_version}")
            }
            Self::InlinedDelete { table_id } => write!(out, "{INLINED_DELETE_PREFIX}{table_id}"),
            fixed => out.write_str(fixed.fixed_name().unwrap_or_default()),
        }
    }
}

fn parse_id(text: &str) -> Option<u64> {
    let id: u64 = text.parse().ok()?;
    (id.to_string() == text).then_some(id)
}
