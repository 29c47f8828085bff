//! The columns of every relation, exactly as DuckLake's `CREATE TABLE` for Postgres declares them.

use crate::relation::Relation;
use crate::value::ColumnType;

/// One column of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name, as written in `CREATE TABLE`.
    pub name: String,
    /// The type at the door.
    pub column_type: ColumnType,
    /// Whether `NULL` is refused.
    pub not_null: bool,
}

impl Column {
    /// A column that may be `NULL`.
    #[must_use]
    pub fn new(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self {
            name: name.into(),
            column_type,
            not_null: false,
        }
    }
}

/// The columns of a relation and its primary key, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationSchema {
    /// The columns, in declaration order.
    pub columns: Vec<Column>,
    /// The position of the primary key column.
    pub primary_key: Option<usize>,
}

impl RelationSchema {
    /// The position of the column of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

type Declared = (&'static str, ColumnType);

const BIGINT: ColumnType = ColumnType::Int64;
const VARCHAR: ColumnType = ColumnType::Text;
const BOOLEAN: ColumnType = ColumnType::Bool;

/// The columns of a fixed relation (`ducklake_*`), or `None` for an inlined one, whose user columns are in its record.
#[must_use]
pub fn fixed_schema(relation: Relation) -> Option<RelationSchema> {
    let declared = declared_columns(relation)?;
    let primary_key = match relation {
        Relation::Snapshot
        | Relation::SnapshotChanges
        | Relation::Schema
        | Relation::DataFile
        | Relation::DeleteFile => Some(0),
        _ => None,
    };
    let columns = declared
        .iter()
        .enumerate()
        .map(|(position, (name, column_type))| Column {
            name: (*name).to_owned(),
            column_type: *column_type,
            not_null: primary_key == Some(position) || (relation == Relation::Metadata && position < 2),
        })
        .collect();
    Some(RelationSchema { columns, primary_key })
}

fn declared_columns(relation: Relation) -> Option<&'static [Declared]> {
    Some(match relation {
        Relation::Metadata => METADATA,
        Relation::Snapshot => SNAPSHOT,
        Relation::SnapshotChanges => SNAPSHOT_CHANGES,
        Relation::Schema => SCHEMA,
        Relation::Table => TABLE,
        Relation::View => VIEW,
        Relation::Tag => TAG,
        Relation::ColumnTag => COLUMN_TAG,
        Relation::DataFile => DATA_FILE,
        Relation::FileColumnStats => FILE_COLUMN_STATS,
        Relation::FileVariantStats => FILE_VARIANT_STATS,
        Relation::DeleteFile => DELETE_FILE,
        Relation::Column => COLUMN,
        Relation::TableStats => TABLE_STATS,
        Relation::TableColumnStats => TABLE_COLUMN_STATS,
        Relation::PartitionInfo => PARTITION_INFO,
        Relation::PartitionColumn => PARTITION_COLUMN,
        Relation::FilePartitionValue => FILE_PARTITION_VALUE,
        Relation::FilesScheduledForDeletion => FILES_SCHEDULED_FOR_DELETION,
        Relation::InlinedDataTables => INLINED_DATA_TABLES,
        Relation::ColumnMapping => COLUMN_MAPPING,
        Relation::NameMapping => NAME_MAPPING,
        Relation::SchemaVersions => SCHEMA_VERSIONS,
        Relation::Macro => MACRO,
        Relation::MacroImpl => MACRO_IMPL,
        Relation::MacroParameters => MACRO_PARAMETERS,
        Relation::SortInfo => SORT_INFO,
        Relation::SortExpression => SORT_EXPRESSION,
        Relation::InlinedData { .. } | Relation::InlinedDelete { .. } => return None,
    })
}

const METADATA: &[Declared] = &[
    ("key", VARCHAR),
    ("value", VARCHAR),
    ("scope", VARCHAR),
    ("scope_id", BIGINT),
];

const SNAPSHOT: &[Declared] = &[
    ("snapshot_id", BIGINT),
    ("snapshot_time", ColumnType::TimestampTz),
    ("schema_version", BIGINT),
    ("next_catalog_id", BIGINT),
    ("next_file_id", BIGINT),
];

const SNAPSHOT_CHANGES: &[Declared] = &[
    ("snapshot_id", BIGINT),
    ("changes_made", VARCHAR),
    ("author", VARCHAR),
    ("commit_message", VARCHAR),
    ("commit_extra_info", VARCHAR),
];

const SCHEMA: &[Declared] = &[
    ("schema_id", BIGINT),
    ("schema_uuid", ColumnType::Uuid),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("schema_name", VARCHAR),
    ("path", VARCHAR),
    ("path_is_relative", BOOLEAN),
];

const TABLE: &[Declared] = &[
    ("table_id", BIGINT),
    ("table_uuid", ColumnType::Uuid),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("schema_id", BIGINT),
    ("table_name", VARCHAR),
    ("path", VARCHAR),
    ("path_is_relative", BOOLEAN),
];

const VIEW: &[Declared] = &[
    ("view_id", BIGINT),
    ("view_uuid", ColumnType::Uuid),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("schema_id", BIGINT),
    ("view_name", VARCHAR),
    ("dialect", VARCHAR),
    ("sql", VARCHAR),
    ("column_aliases", VARCHAR),
];

const TAG: &[Declared] = &[
    ("object_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("key", VARCHAR),
    ("value", VARCHAR),
];

const COLUMN_TAG: &[Declared] = &[
    ("table_id", BIGINT),
    ("column_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("key", VARCHAR),
    ("value", VARCHAR),
];

const DATA_FILE: &[Declared] = &[
    ("data_file_id", BIGINT),
    ("table_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("file_order", BIGINT),
    ("path", VARCHAR),
    ("path_is_relative", BOOLEAN),
    ("file_format", VARCHAR),
    ("record_count", BIGINT),
    ("file_size_bytes", BIGINT),
    ("footer_size", BIGINT),
    ("row_id_start", BIGINT),
    ("partition_id", BIGINT),
    ("encryption_key", VARCHAR),
    ("mapping_id", BIGINT),
    ("partial_max", BIGINT),
];

const FILE_COLUMN_STATS: &[Declared] = &[
    ("data_file_id", BIGINT),
    ("table_id", BIGINT),
    ("column_id", BIGINT),
    ("column_size_bytes", BIGINT),
    ("value_count", BIGINT),
    ("null_count", BIGINT),
    ("min_value", VARCHAR),
    ("max_value", VARCHAR),
    ("contains_nan", BOOLEAN),
    ("extra_stats", VARCHAR),
];

const FILE_VARIANT_STATS: &[Declared] = &[
    ("data_file_id", BIGINT),
    ("table_id", BIGINT),
    ("column_id", BIGINT),
    ("variant_path", VARCHAR),
    ("shredded_type", VARCHAR),
    ("column_size_bytes", BIGINT),
    ("value_count", BIGINT),
    ("null_count", BIGINT),
    ("min_value", VARCHAR),
    ("max_value", VARCHAR),
    ("contains_nan", BOOLEAN),
    ("extra_stats", VARCHAR),
];

const DELETE_FILE: &[Declared] = &[
    ("delete_file_id", BIGINT),
    ("table_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("data_file_id", BIGINT),
    ("path", VARCHAR),
    ("path_is_relative", BOOLEAN),
    ("format", VARCHAR),
    ("delete_count", BIGINT),
    ("file_size_bytes", BIGINT),
    ("footer_size", BIGINT),
    ("encryption_key", VARCHAR),
    ("partial_max", BIGINT),
];

const COLUMN: &[Declared] = &[
    ("column_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
    ("table_id", BIGINT),
    ("column_order", BIGINT),
    ("column_name", VARCHAR),
    ("column_type", VARCHAR),
    ("initial_default", VARCHAR),
    ("default_value", VARCHAR),
    ("nulls_allowed", BOOLEAN),
    ("parent_column", BIGINT),
    ("default_value_type", VARCHAR),
    ("default_value_dialect", VARCHAR),
];

const TABLE_STATS: &[Declared] = &[
    ("table_id", BIGINT),
    ("record_count", BIGINT),
    ("next_row_id", BIGINT),
    ("file_size_bytes", BIGINT),
];

const TABLE_COLUMN_STATS: &[Declared] = &[
    ("table_id", BIGINT),
    ("column_id", BIGINT),
    ("contains_null", BOOLEAN),
    ("contains_nan", BOOLEAN),
    ("min_value", VARCHAR),
    ("max_value", VARCHAR),
    ("extra_stats", VARCHAR),
];

const PARTITION_INFO: &[Declared] = &[
    ("partition_id", BIGINT),
    ("table_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
];

const PARTITION_COLUMN: &[Declared] = &[
    ("partition_id", BIGINT),
    ("table_id", BIGINT),
    ("partition_key_index", BIGINT),
    ("column_id", BIGINT),
    ("transform", VARCHAR),
];

const FILE_PARTITION_VALUE: &[Declared] = &[
    ("data_file_id", BIGINT),
    ("table_id", BIGINT),
    ("partition_key_index", BIGINT),
    ("partition_value", VARCHAR),
];

const FILES_SCHEDULED_FOR_DELETION: &[Declared] = &[
    ("data_file_id", BIGINT),
    ("path", VARCHAR),
    ("path_is_relative", BOOLEAN),
    ("schedule_start", ColumnType::TimestampTz),
];

const INLINED_DATA_TABLES: &[Declared] = &[
    ("table_id", BIGINT),
    ("table_name", VARCHAR),
    ("schema_version", BIGINT),
];

const COLUMN_MAPPING: &[Declared] = &[("mapping_id", BIGINT), ("table_id", BIGINT), ("type", VARCHAR)];

const NAME_MAPPING: &[Declared] = &[
    ("mapping_id", BIGINT),
    ("column_id", BIGINT),
    ("source_name", VARCHAR),
    ("target_field_id", BIGINT),
    ("parent_column", BIGINT),
    ("is_partition", BOOLEAN),
];

const SCHEMA_VERSIONS: &[Declared] = &[
    ("begin_snapshot", BIGINT),
    ("schema_version", BIGINT),
    ("table_id", BIGINT),
];

const MACRO: &[Declared] = &[
    ("schema_id", BIGINT),
    ("macro_id", BIGINT),
    ("macro_name", VARCHAR),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
];

const MACRO_IMPL: &[Declared] = &[
    ("macro_id", BIGINT),
    ("impl_id", BIGINT),
    ("dialect", VARCHAR),
    ("sql", VARCHAR),
    ("type", VARCHAR),
];

const MACRO_PARAMETERS: &[Declared] = &[
    ("macro_id", BIGINT),
    ("impl_id", BIGINT),
    ("column_id", BIGINT),
    ("parameter_name", VARCHAR),
    ("parameter_type", VARCHAR),
    ("default_value", VARCHAR),
    ("default_value_type", VARCHAR),
];

const SORT_INFO: &[Declared] = &[
    ("sort_id", BIGINT),
    ("table_id", BIGINT),
    ("begin_snapshot", BIGINT),
    ("end_snapshot", BIGINT),
];

const SORT_EXPRESSION: &[Declared] = &[
    ("sort_id", BIGINT),
    ("table_id", BIGINT),
    ("sort_key_index", BIGINT),
    ("expression", VARCHAR),
    ("dialect", VARCHAR),
    ("sort_direction", VARCHAR),
    ("null_order", VARCHAR),
];
