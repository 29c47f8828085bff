//! How Parquet files are written: DuckLake's options of a table.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::error::InlineError;
use crate::flush::parquet_error;

/// Rows of a row group, as DuckDB writes them.
const ROW_GROUP_ROWS: usize = 122_880;
/// Bytes of encoded rows after which a row group ends early: the most a flush holds of what it writes.
const ROW_GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;
/// DuckLake's `target_file_size` where none is set.
const FILE_BYTES: u64 = 512 * 1024 * 1024;
/// Bounds are kept for longer values than DuckDB keeps them for, so that they can be shortened by its rule.
const STATISTICS_BYTES_MAX: usize = 1024;

/// DuckLake's options that say how files are written (`ducklake_metadata`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetOptions {
    compression: Compression,
    version: WriterVersion,
    row_group_rows: usize,
    row_group_bytes: usize,
    file_bytes: u64,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            compression: Compression::SNAPPY,
            version: WriterVersion::PARQUET_1_0,
            row_group_rows: ROW_GROUP_ROWS,
            row_group_bytes: ROW_GROUP_BYTES_MAX,
            file_bytes: FILE_BYTES,
        }
    }
}

impl ParquetOptions {
    /// The options that `option` finds by name, as DuckLake keeps them: `parquet_compression`, `parquet_compression_level`,
    /// `parquet_version`, `parquet_row_group_size` (rows), `parquet_row_group_size_bytes` and `target_file_size` (bytes). What is
    /// not set is as DuckDB has it. The name of an option with a value that cannot be followed, and the value, are the error.
    ///
    /// # Errors
    /// The option and its value.
    pub fn read(option: impl Fn(&str) -> Option<String>) -> Result<Self, (String, String)> {
        let mut options = Self::default();
        let number = |name: &str| {
            let Some(value) = option(name) else {
                return Ok(None);
            };
            let number = value.parse::<u64>().ok().filter(|number| *number > 0);
            number.map(Some).ok_or_else(|| (name.to_owned(), value))
        };
        if let Some(rows) = number("parquet_row_group_size")? {
            options.row_group_rows = usize::try_from(rows).unwrap_or(usize::MAX);
        }
        if let Some(bytes) = number("parquet_row_group_size_bytes")? {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            options.row_group_bytes = bytes.min(ROW_GROUP_BYTES_MAX);
        }
        if let Some(bytes) = number("target_file_size")? {
            options.file_bytes = bytes;
        }
        if let Some(version) = option("parquet_version") {
            options.version = match version.to_ascii_uppercase().as_str() {
                "V1" | "1" => WriterVersion::PARQUET_1_0,
                "V2" | "2" => WriterVersion::PARQUET_2_0,
                _ => return Err(("parquet_version".to_owned(), version)),
            };
        }
        let level = number("parquet_compression_level")?;
        if let Some(codec) = option("parquet_compression") {
            let compression = compression(&codec, level);
            options.compression = compression.ok_or_else(|| ("parquet_compression".to_owned(), codec))?;
        }
        Ok(options)
    }

    /// Bytes after which a file of an unpartitioned table ends.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of encoded rows after which a row group ends.
    pub(super) fn row_group_bytes(&self) -> usize {
        self.row_group_bytes
    }

    /// A writer of a file with these columns.
    pub(super) fn writer<W: Write + Send>(
        &self,
        out: W,
        schema: SchemaRef,
        types: Vec<Arc<Type>>,
    ) -> Result<ArrowWriter<W>, InlineError> {
        let root = Type::group_type_builder("duckdb_schema")
            .with_fields(types)
            .build();
        let descriptor = SchemaDescriptor::new(Arc::new(root.map_err(parquet_error)?));
        let properties = WriterProperties::builder()
            .set_compression(self.compression)
            .set_writer_version(self.version)
            .set_max_row_group_row_count(Some(self.row_group_rows))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_statistics_truncate_length(Some(STATISTICS_BYTES_MAX))
            // DuckDB reads none, and their places would have to change where a file is encrypted.
            .set_offset_index_disabled(true);
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(descriptor);
        ArrowWriter::try_new_with_options(out, schema, options).map_err(parquet_error)
    }
}

/// The codec of DuckLake's name; a level only where the codec has levels.
fn compression(codec: &str, level: Option<u64>) -> Option<Compression> {
    let level = level.map(|level| u32::try_from(level).unwrap_or(u32::MAX));
    Some(match codec.to_ascii_lowercase().as_str() {
        "uncompressed" => Compression::UNCOMPRESSED,
        "snappy" => Compression::SNAPPY,
        "gzip" => Compression::GZIP(level.map_or(Ok(GzipLevel::default()), GzipLevel::try_new).ok()?),
        "brotli" => Compression::BROTLI(
            level
                .map_or(Ok(BrotliLevel::default()), BrotliLevel::try_new)
                .ok()?,
        ),
        "zstd" => {
            let level = level.map_or(Ok(ZstdLevel::default()), |level| {
                ZstdLevel::try_new(i32::try_from(level).unwrap_or(i32::MAX))
            });
            Compression::ZSTD(level.ok()?)
        }
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        _ => return None,
    })
}
