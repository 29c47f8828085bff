//! What a snapshot shows of a table's files and their statistics, as plain values; and reading them one at a time.

use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, FileColumnStatsValue, FileVariantStats, GcFileValue,
    TableColumnStatsValue, TableStatsValue,
};
use moraine_codec::{Nullable, Stored, Version};
use moraine_keys::{DataFileKey, DeleteFileKey, History, Versioned};
use moraine_store::{ReadError, RecordScan};

/// Field numbers whose SQL NULL is kept in `null_fields`.
pub(crate) const FOOTER_SIZE_FIELD: u32 = 11;
pub(crate) const PARTITION_VALUE_FIELD: u32 = 2;
pub(crate) const STATS_VALUE_COUNT_FIELD: u32 = 5;
pub(crate) const STATS_NULL_COUNT_FIELD: u32 = 6;
pub(crate) const VARIANT_VALUE_COUNT_FIELD: u32 = 4;
pub(crate) const VARIANT_NULL_COUNT_FIELD: u32 = 5;

/// A Parquet file with rows of a table: a row of `ducklake_data_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataFile {
    /// The file.
    pub data_file_id: u64,
    /// The table.
    pub table_id: u64,
    /// The first snapshot that sees it.
    pub begin_snapshot: u64,
    /// The first snapshot that no longer sees it; `None` while it is live.
    pub end_snapshot: Option<u64>,
    /// Where it is.
    pub path: String,
    /// Whether the path is below the table's folder.
    pub path_is_relative: bool,
    /// Rows in it, deleted ones included.
    pub record_count: u64,
    /// Its size in bytes.
    pub file_size_bytes: u64,
    /// The size of its Parquet footer in bytes, if known.
    pub footer_size: Option<u64>,
    /// The row id of its first row; `None` where the file says itself.
    pub row_id_start: Option<u64>,
    /// The partitioning it was written under.
    pub partition_id: Option<u64>,
    /// Its place in that partitioning: for each key column, in order, the value as text, or NULL.
    pub partition_values: Vec<Option<String>>,
    /// Its key, in base64, in an encrypted lake.
    pub encryption_key: Option<String>,
    /// The mapping to read it with, where DuckLake has not written it.
    pub mapping_id: Option<u64>,
    /// The greatest snapshot that any of its rows began at, where it holds rows of several. Each row then says its own.
    pub partial_max: Option<u64>,
}

/// A file that says which rows of a data file are deleted: a row of `ducklake_delete_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteFile {
    /// The delete file.
    pub delete_file_id: u64,
    /// The table.
    pub table_id: u64,
    /// The data file whose rows it deletes.
    pub data_file_id: u64,
    /// The first snapshot that sees it.
    pub begin_snapshot: u64,
    /// The first snapshot that no longer sees it; `None` while it is live.
    pub end_snapshot: Option<u64>,
    /// Where it is.
    pub path: String,
    /// Whether the path is below the table's folder.
    pub path_is_relative: bool,
    /// `parquet`, or `puffin` for a deletion vector.
    pub format: String,
    /// Rows it deletes.
    pub delete_count: u64,
    /// Its size in bytes.
    pub file_size_bytes: u64,
    /// The size of its footer in bytes.
    pub footer_size: u64,
    /// Its key, in base64, in an encrypted lake.
    pub encryption_key: Option<String>,
    /// The greatest snapshot of its deletions, where they are of several.
    pub partial_max: Option<u64>,
}

/// What is known of the values of a column in a data file: a row of `ducklake_file_column_stats`. Values are as DuckDB
/// casts them to text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnStats {
    /// The column's bytes in the file.
    pub column_size_bytes: u64,
    /// Values that are not NULL, if known.
    pub value_count: Option<u64>,
    /// NULLs, if known.
    pub null_count: Option<u64>,
    /// The least value, if known.
    pub min_value: Option<String>,
    /// The greatest value, if known.
    pub max_value: Option<String>,
    /// Whether there is a NaN; `None` for types without, or where it is not known.
    pub contains_nan: Option<bool>,
    /// Statistics of other kinds (geometry, variant), in DuckLake's JSON.
    pub extra_stats: Option<String>,
    /// The shredded fields of a variant.
    pub variant_fields: Vec<VariantFieldStats>,
}

/// What is known of one shredded field of a variant column in a data file: a row of `ducklake_file_variant_stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariantFieldStats {
    /// The field's path within the variant.
    pub path: String,
    /// The type it was shredded as, in DuckLake's text.
    pub shredded_type: String,
    /// What is known of its values.
    pub stats: ColumnStats,
}

/// The size of a table: a row of `ducklake_table_stats`. Kept for the newest state only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// Rows inserted, less those that went with their files. Rows that delete files delete are counted.
    pub record_count: u64,
    /// The next row id.
    pub next_row_id: u64,
    /// Bytes of all data files.
    pub file_size_bytes: u64,
}

/// What is known of the values of a column over all of its table: a row of `ducklake_table_column_stats`. Kept for the
/// newest state only, and never narrowed by deletions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableColumnStats {
    /// Whether there is a NULL, if known.
    pub contains_null: Option<bool>,
    /// Whether there is a NaN, if known.
    pub contains_nan: Option<bool>,
    /// The least value, if known.
    pub min_value: Option<String>,
    /// The greatest value, if known.
    pub max_value: Option<String>,
    /// Statistics of other kinds, in DuckLake's JSON.
    pub extra_stats: Option<String>,
}

/// A file that waits to be deleted: a row of `ducklake_files_scheduled_for_deletion`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduledFile {
    /// The data or delete file it was.
    pub file_id: u64,
    /// Where it is.
    pub path: String,
    /// Whether the path is below the lake's data path.
    pub path_is_relative: bool,
    /// When it was scheduled, in microseconds since 1970-01-01 UTC.
    pub scheduled_micros: i64,
}

/// Data files of a table, one at a time: live ones by id, then ended ones that the snapshot still sees.
pub struct DataFileScan {
    scan: VersionScan<DataFileKey>,
}

/// Delete files of a table, one at a time: live ones by id, then ended ones that the snapshot still sees.
pub struct DeleteFileScan {
    scan: VersionScan<DeleteFileKey>,
}

/// The versions of one kind of record that a snapshot sees.
pub(crate) struct VersionScan<K> {
    pub(crate) current: Option<RecordScan<K>>,
    /// `None` where the snapshot is the newest, which sees nothing that has ended.
    pub(crate) ended: Option<RecordScan<History<K>>>,
    pub(crate) snapshot_id: u64,
}

impl<K> VersionScan<K>
where
    K: Versioned + Stored,
    K::Value: Version,
{
    pub(crate) async fn next(&mut self) -> Result<Option<K::Value>, ReadError> {
        if let Some(scan) = &mut self.current {
            while let Some((_, value)) = scan.next().await? {
                if value.is_visible_at(self.snapshot_id) {
                    return Ok(Some(value));
                }
            }
            self.current = None;
        }
        if let Some(scan) = &mut self.ended {
            while let Some((_, value)) = scan.next().await? {
                if value.is_visible_at(self.snapshot_id) {
                    return Ok(Some(value));
                }
            }
            self.ended = None;
        }
        Ok(None)
    }

    pub(crate) async fn all(mut self) -> Result<Vec<K::Value>, ReadError> {
        let mut values = Vec::new();
        while let Some(value) = self.next().await? {
            values.push(value);
        }
        Ok(values)
    }
}

impl DataFileScan {
    pub(crate) fn new(scan: VersionScan<DataFileKey>) -> Self {
        DataFileScan { scan }
    }

    /// The next file, or `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn next(&mut self) -> Result<Option<DataFile>, ReadError> {
        Ok(self.scan.next().await?.map(DataFile::of))
    }
}

impl DeleteFileScan {
    pub(crate) fn new(scan: VersionScan<DeleteFileKey>) -> Self {
        DeleteFileScan { scan }
    }

    /// The next file, or `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn next(&mut self) -> Result<Option<DeleteFile>, ReadError> {
        Ok(self.scan.next().await?.map(DeleteFile::of))
    }
}

impl std::fmt::Debug for DataFileScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFileScan").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for DeleteFileScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeleteFileScan").finish_non_exhaustive()
    }
}

impl DataFile {
    pub(crate) fn of(value: DataFileValue) -> Self {
        let mut places = value.partition_values.clone();
        places.sort_by_key(|place| place.partition_key_index);
        let partition_values = places
            .into_iter()
            .map(|place| (!place.is_null(PARTITION_VALUE_FIELD)).then_some(place.partition_value))
            .collect();
        DataFile {
            footer_size: (!value.is_null(FOOTER_SIZE_FIELD)).then_some(value.footer_size),
            data_file_id: value.data_file_id,
            table_id: value.table_id,
            begin_snapshot: value.begin_snapshot,
            end_snapshot: value.end_snapshot,
            path: value.path,
            path_is_relative: value.path_is_relative,
            record_count: value.record_count,
            file_size_bytes: value.file_size_bytes,
            row_id_start: value.row_id_start,
            partition_id: value.partition_id,
            partition_values,
            encryption_key: value.encryption_key,
            mapping_id: value.mapping_id,
            partial_max: value.partial_max,
        }
    }
}

impl DeleteFile {
    pub(crate) fn of(value: DeleteFileValue) -> Self {
        DeleteFile {
            delete_file_id: value.delete_file_id,
            table_id: value.table_id,
            data_file_id: value.data_file_id,
            begin_snapshot: value.begin_snapshot,
            end_snapshot: value.end_snapshot,
            path: value.path,
            path_is_relative: value.path_is_relative,
            format: value.format,
            delete_count: value.delete_count,
            file_size_bytes: value.file_size_bytes,
            footer_size: value.footer_size,
            encryption_key: value.encryption_key,
            partial_max: value.partial_max,
        }
    }
}

impl ColumnStats {
    pub(crate) fn of(value: FileColumnStatsValue) -> Self {
        ColumnStats {
            column_size_bytes: value.column_size_bytes,
            value_count: (!value.is_null(STATS_VALUE_COUNT_FIELD)).then_some(value.value_count),
            null_count: (!value.is_null(STATS_NULL_COUNT_FIELD)).then_some(value.null_count),
            min_value: value.min_value,
            max_value: value.max_value,
            contains_nan: value.contains_nan,
            extra_stats: value.extra_stats,
            variant_fields: value
                .variant_stats
                .into_iter()
                .map(VariantFieldStats::of)
                .collect(),
        }
    }
}

impl VariantFieldStats {
    pub(crate) fn of(value: FileVariantStats) -> Self {
        VariantFieldStats {
            stats: ColumnStats {
                column_size_bytes: value.column_size_bytes,
                value_count: (!value.is_null(VARIANT_VALUE_COUNT_FIELD)).then_some(value.value_count),
                null_count: (!value.is_null(VARIANT_NULL_COUNT_FIELD)).then_some(value.null_count),
                min_value: value.min_value,
                max_value: value.max_value,
                contains_nan: value.contains_nan,
                extra_stats: value.extra_stats,
                variant_fields: Vec::new(),
            },
            path: value.variant_path,
            shredded_type: value.shredded_type,
        }
    }
}

impl TableStats {
    pub(crate) fn of(value: &TableStatsValue) -> Self {
        TableStats {
            record_count: value.record_count,
            next_row_id: value.next_row_id,
            file_size_bytes: value.file_size_bytes,
        }
    }
}

impl TableColumnStats {
    pub(crate) fn of(value: TableColumnStatsValue) -> Self {
        TableColumnStats {
            contains_null: value.contains_null,
            contains_nan: value.contains_nan,
            min_value: value.min_value,
            max_value: value.max_value,
            extra_stats: value.extra_stats,
        }
    }
}

impl ScheduledFile {
    pub(crate) fn of(value: GcFileValue) -> Self {
        ScheduledFile {
            file_id: value.data_file_id,
            path: value.path,
            path_is_relative: value.path_is_relative,
            scheduled_micros: value.schedule_start_micros,
        }
    }
}
