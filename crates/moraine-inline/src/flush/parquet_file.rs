//! The Parquet files of a flush, as DuckLake writes and reads them: columns known by field id, row ids and begin snapshots in
//! columns of their own, ended rows in a delete file of positions.

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, TimestampSecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit as ArrowUnit};
use moraine_codec::format::{ROW_ID_FIELD_ID, SNAPSHOT_ID_FIELD_ID};
use moraine_store::Read;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit as ParquetUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::error::InlineError;
use crate::flush::row_multiset::RowMultiset;
use crate::flush::row_windows::{FlushWindow, InlinedRows};
use crate::flush::statistics::{self, ColumnStatistics};

/// Rows of a row group, as DuckDB writes them.
const ROW_GROUP_ROWS: usize = 122_880;
/// Bytes of encoded rows after which a row group ends early: the most a flush holds of what it writes.
const ROW_GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Source: Iceberg's reserved field ids, which DuckDB's Parquet writer gives to positional deletes.
const FILE_PATH_FIELD_ID: i32 = 2_147_483_646;
/// See [`FILE_PATH_FIELD_ID`].
const POSITION_FIELD_ID: i32 = 2_147_483_645;
const ROW_ID_COLUMN: &str = "_ducklake_internal_row_id";
const SNAPSHOT_ID_COLUMN: &str = "_ducklake_internal_snapshot_id";
/// The length of the footer and the magic number at the end of a Parquet file.
const TRAILER_BYTES: usize = 8;

/// A user column as `ducklake_column` has it, in the order of the inlined table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushColumn {
    /// Its name.
    pub name: String,
    /// Its column id, which is its field id in files.
    pub column_id: u64,
    /// Its type in DuckLake's words.
    pub ducklake_type: String,
}

/// A data file that a flush has written.
#[derive(Debug, Clone, Default)]
pub struct FlushedFile {
    /// Versions of rows in it.
    pub rows: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// The length of its footer in bytes.
    pub footer_bytes: u64,
    /// The row ids it holds.
    pub written: RowMultiset,
    /// The least row id.
    pub first_row_id: u64,
    /// The least and the greatest begin snapshot.
    pub begin_snapshots: Option<RangeInclusive<u64>>,
    /// Statistics of the user columns, in their order.
    pub columns: Vec<ColumnStatistics>,
    /// Rows that have ended: position in the file, end snapshot. Ascending.
    pub ended: Vec<(u64, u64)>,
}

/// What a column holds, beyond its physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Signed(i8),
    Unsigned(i8),
    Float,
    Double,
    Decimal { precision: u8, scale: u8 },
    Text,
    Json,
    Blob,
    Date,
    Time,
    Timestamp { unit: TimeUnit, utc: bool },
    Uuid,
}

/// Units that Parquet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// Writes all of `rows` as one Parquet file. `columns` describe the columns of the inlined table, in order.
///
/// # Errors
/// [`InlineError::FlushColumn`] for a column whose values cannot be written as DuckLake would, before anything is written;
/// [`InlineError::Parquet`]; [`moraine_store::ReadError::Corruption`] for damaged records.
pub async fn write_data_file(
    rows: &mut InlinedRows,
    read: &dyn Read,
    columns: &[FlushColumn],
    out: impl Write + Send,
) -> Result<FlushedFile, InlineError> {
    let kinds = kinds(rows.schema(), columns)?;
    let schema = file_schema(rows.schema(), columns);
    let user = columns.iter().zip(&kinds);
    let mut types = user
        .map(|(column, kind)| kind.parquet_type(&column.name, field_id(column.column_id)?))
        .collect::<Result<Vec<_>, InlineError>>()?;
    types.push(Kind::Signed(64).parquet_type(ROW_ID_COLUMN, field_id(ROW_ID_FIELD_ID)?)?);
    types.push(Kind::Signed(64).parquet_type(SNAPSHOT_ID_COLUMN, field_id(SNAPSHOT_ID_FIELD_ID)?)?);
    let mut file = Tail::new(out);
    let mut writer = writer(&mut file, Arc::clone(&schema), types)?;
    let mut flushed = FlushedFile::default();
    let mut has_nan = vec![false; columns.len()];
    while let Some(window) = rows.next_window(read).await? {
        let batch = file_batch(&schema, &window)?;
        for (column, has_nan) in batch.columns().iter().zip(&mut has_nan) {
            *has_nan |= contains_nan(column);
        }
        writer.write(&batch).map_err(parquet)?;
        if writer.in_progress_size() > ROW_GROUP_BYTES_MAX {
            writer.flush().map_err(parquet)?;
        }
        flushed.note(&window);
    }
    let metadata = writer.close().map_err(parquet)?;
    for (position, (kind, has_nan)) in kinds.iter().zip(has_nan).enumerate() {
        let chunks: Vec<_> = metadata
            .row_groups()
            .iter()
            .filter_map(|group| group.columns().get(position))
            .collect();
        flushed
            .columns
            .push(statistics::of_column(*kind, &chunks, has_nan));
    }
    (flushed.file_bytes, flushed.footer_bytes) = file.lengths();
    Ok(flushed)
}

/// Writes the delete file of the rows at the positions `ended`, given with their end snapshots, of the data file that readers know
/// as `data_file_path`. Gives its length and that of its footer, in bytes.
///
/// # Errors
/// [`InlineError::Parquet`].
pub fn write_delete_file(
    data_file_path: &str,
    ended: &[(u64, u64)],
    out: impl Write + Send,
) -> Result<(u64, u64), InlineError> {
    let fields = [
        Field::new("file_path", DataType::Utf8, true),
        Field::new("pos", DataType::Int64, true),
        Field::new(SNAPSHOT_ID_COLUMN, DataType::Int64, true),
    ];
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let types = vec![
        Kind::Text.parquet_type("file_path", FILE_PATH_FIELD_ID)?,
        Kind::Signed(64).parquet_type("pos", POSITION_FIELD_ID)?,
        Kind::Signed(64).parquet_type(SNAPSHOT_ID_COLUMN, field_id(SNAPSHOT_ID_FIELD_ID)?)?,
    ];
    let mut file = Tail::new(out);
    let mut writer = writer(&mut file, Arc::clone(&schema), types)?;
    for part in ended.chunks(ROW_GROUP_ROWS) {
        let paths: StringArray = part.iter().map(|_| Some(data_file_path)).collect();
        let positions = bigints(part.iter().map(|(position, _)| *position));
        let snapshots = bigints(part.iter().map(|(_, end)| *end));
        let columns: Vec<ArrayRef> = vec![Arc::new(paths), positions, snapshots];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|source| InlineError::Assemble { source })?;
        writer.write(&batch).map_err(parquet)?;
    }
    writer.close().map_err(parquet)?;
    Ok(file.lengths())
}

impl FlushedFile {
    fn note(&mut self, window: &FlushWindow) {
        for row in &window.rows {
            if self.written.is_empty() {
                self.first_row_id = row.row_id;
            }
            self.written.add(&(row.row_id..=row.row_id));
            let begin = row.begin_snapshot;
            self.begin_snapshots = Some(match &self.begin_snapshots {
                Some(seen) => begin.min(*seen.start())..=begin.max(*seen.end()),
                None => begin..=begin,
            });
            self.ended.extend(row.end_snapshot.map(|end| (self.rows, end)));
            self.rows += 1;
        }
    }
}

impl Kind {
    /// What a column of this DuckLake type holds whose chunks are of this Arrow type; `None` when it cannot be written.
    fn of(ducklake_type: &str, stored: &DataType) -> Option<Self> {
        let lower = ducklake_type.to_ascii_lowercase();
        let timestamp = |unit, utc| Self::Timestamp { unit, utc };
        Some(match (lower.as_str(), stored) {
            ("boolean", DataType::Boolean) => Self::Boolean,
            ("int8", DataType::Int8) => Self::Signed(8),
            ("int16", DataType::Int16) => Self::Signed(16),
            ("int32", DataType::Int32) => Self::Signed(32),
            ("int64", DataType::Int64) => Self::Signed(64),
            ("uint8", DataType::UInt8) => Self::Unsigned(8),
            ("uint16", DataType::UInt16) => Self::Unsigned(16),
            ("uint32", DataType::UInt32) => Self::Unsigned(32),
            ("uint64", DataType::UInt64) => Self::Unsigned(64),
            ("float32", DataType::Float32) => Self::Float,
            ("float64", DataType::Float64) => Self::Double,
            ("varchar", DataType::Utf8) => Self::Text,
            ("json", DataType::Utf8) => Self::Json,
            ("blob", DataType::Binary) => Self::Blob,
            ("uuid", DataType::FixedSizeBinary(16)) => Self::Uuid,
            ("date", DataType::Date32) => Self::Date,
            ("time", DataType::Time64(ArrowUnit::Microsecond)) => Self::Time,
            ("timestamp_ms", DataType::Timestamp(ArrowUnit::Millisecond, None)) => {
                timestamp(TimeUnit::Millisecond, false)
            }
            // Parquet has no seconds; DuckDB writes microseconds too.
            ("timestamp_s", DataType::Timestamp(ArrowUnit::Second, None))
            | ("timestamp" | "timestamp_us", DataType::Timestamp(ArrowUnit::Microsecond, None)) => {
                timestamp(TimeUnit::Microsecond, false)
            }
            ("timestamp_ns", DataType::Timestamp(ArrowUnit::Nanosecond, None)) => {
                timestamp(TimeUnit::Nanosecond, false)
            }
            ("timestamptz", DataType::Timestamp(ArrowUnit::Microsecond, Some(_))) => {
                timestamp(TimeUnit::Microsecond, true)
            }
            (declared, DataType::Decimal128(precision, scale)) if declared.starts_with("decimal(") => {
                Self::Decimal {
                    precision: *precision,
                    scale: u8::try_from(*scale).ok()?,
                }
            }
            _ => return None,
        })
    }

    fn parquet_type(self, name: &str, field_id: i32) -> Result<Arc<Type>, InlineError> {
        let integer = |bits, signed| Some(LogicalType::integer(bits, signed));
        let mut length = 0;
        let (physical, logical) = match self {
            Self::Boolean => (Physical::BOOLEAN, None),
            Self::Signed(64) => (Physical::INT64, integer(64, true)),
            Self::Signed(bits) => (Physical::INT32, integer(bits, true)),
            Self::Unsigned(64) => (Physical::INT64, integer(64, false)),
            Self::Unsigned(bits) => (Physical::INT32, integer(bits, false)),
            Self::Float => (Physical::FLOAT, None),
            Self::Double => (Physical::DOUBLE, None),
            Self::Decimal { precision, scale } => {
                let logical = LogicalType::decimal(scale.into(), precision.into());
                length = decimal_bytes(precision);
                let physical = match precision {
                    ..=9 => Physical::INT32,
                    10..=18 => Physical::INT64,
                    _ => Physical::FIXED_LEN_BYTE_ARRAY,
                };
                (physical, Some(logical))
            }
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            Self::Blob => (Physical::BYTE_ARRAY, None),
            Self::Date => (Physical::INT32, Some(LogicalType::Date)),
            Self::Time => (
                Physical::INT64,
                Some(LogicalType::time(false, ParquetUnit::MICROS)),
            ),
            Self::Timestamp { unit, utc } => {
                (Physical::INT64, Some(LogicalType::timestamp(utc, unit.parquet())))
            }
            Self::Uuid => {
                length = 16;
                (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid))
            }
        };
        let mut builder = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .with_id(Some(field_id));
        if physical == Physical::FIXED_LEN_BYTE_ARRAY {
            builder = builder.with_length(length);
        }
        if let Self::Decimal { precision, scale } = self {
            builder = builder.with_precision(precision.into()).with_scale(scale.into());
        }
        builder.build().map(Arc::new).map_err(parquet)
    }
}

impl TimeUnit {
    fn parquet(self) -> ParquetUnit {
        match self {
            Self::Millisecond => ParquetUnit::MILLIS,
            Self::Microsecond => ParquetUnit::MICROS,
            Self::Nanosecond => ParquetUnit::NANOS,
        }
    }
}

/// Bytes that hold every decimal of so many digits; Arrow's writer gives wide decimals exactly as many.
fn decimal_bytes(precision: u8) -> i32 {
    let greatest = 10_u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    let bits = u128::BITS - greatest.leading_zeros() + 1;
    i32::try_from(bits.div_ceil(8)).unwrap_or(16)
}

fn kinds(schema: &SchemaRef, columns: &[FlushColumn]) -> Result<Vec<Kind>, InlineError> {
    if schema.fields().len() != columns.len() {
        let detail = format!(
            "the inlined table has {} columns, ducklake_column {} at its schema version",
            schema.fields().len(),
            columns.len()
        );
        return Err(InlineError::Parquet { detail });
    }
    let pairs = schema.fields().iter().zip(columns);
    pairs
        .map(|(field, column)| {
            Kind::of(&column.ducklake_type, field.data_type()).ok_or_else(|| InlineError::FlushColumn {
                column: column.name.clone(),
                ducklake_type: column.ducklake_type.clone(),
                stored: field.data_type().to_string(),
            })
        })
        .collect()
}

/// The Arrow side of the file: user columns under DuckLake's names, then row id and begin snapshot.
fn file_schema(stored: &SchemaRef, columns: &[FlushColumn]) -> SchemaRef {
    let user = stored.fields().iter().zip(columns).map(|(field, column)| {
        let written = match field.data_type() {
            DataType::Timestamp(ArrowUnit::Second, zone) => {
                DataType::Timestamp(ArrowUnit::Microsecond, zone.clone())
            }
            other => other.clone(),
        };
        Field::new(&column.name, written, true)
    });
    let own = [ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN].map(|name| Field::new(name, DataType::Int64, true));
    Arc::new(Schema::new(user.chain(own).collect::<Vec<_>>()))
}

fn file_batch(schema: &SchemaRef, window: &FlushWindow) -> Result<RecordBatch, InlineError> {
    let mut columns = Vec::with_capacity(schema.fields().len());
    for column in window.columns.columns() {
        columns.push(as_written(column)?);
    }
    columns.push(bigints(window.rows.iter().map(|row| row.row_id)));
    columns.push(bigints(window.rows.iter().map(|row| row.begin_snapshot)));
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|source| InlineError::Assemble { source })
}

fn as_written(column: &ArrayRef) -> Result<ArrayRef, InlineError> {
    let Some(seconds) = column.as_primitive_opt::<TimestampSecondType>() else {
        return Ok(Arc::clone(column));
    };
    let micros = |second: i64| {
        second.checked_mul(1_000_000).ok_or_else(|| InlineError::Parquet {
            detail: format!("{second} seconds since 1970 are out of the range of microseconds"),
        })
    };
    let micros = seconds
        .iter()
        .map(|second| second.map(micros).transpose())
        .collect::<Result<TimestampMicrosecondArray, InlineError>>()?;
    Ok(Arc::new(micros))
}

/// Ids and snapshots as BIGINT; those beyond it are refused when they are inlined.
fn bigints(ids: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(ids.map(|id| i64::try_from(id).ok()).collect::<Int64Array>())
}

fn contains_nan(column: &ArrayRef) -> bool {
    if let Some(floats) = column.as_primitive_opt::<Float32Type>() {
        return floats.iter().flatten().any(f32::is_nan);
    }
    let doubles = column.as_primitive_opt::<Float64Type>();
    doubles.is_some_and(|doubles| doubles.iter().flatten().any(f64::is_nan))
}

fn writer<W: Write + Send>(
    out: W,
    schema: SchemaRef,
    types: Vec<Arc<Type>>,
) -> Result<ArrowWriter<W>, InlineError> {
    let root = Type::group_type_builder("duckdb_schema")
        .with_fields(types)
        .build();
    let descriptor = SchemaDescriptor::new(Arc::new(root.map_err(parquet)?));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_statistics_truncate_length(None)
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(descriptor);
    ArrowWriter::try_new_with_options(out, schema, options).map_err(parquet)
}

fn field_id(column_id: u64) -> Result<i32, InlineError> {
    i32::try_from(column_id).map_err(|_| InlineError::Parquet {
        detail: format!("column id {column_id} is above the greatest field id"),
    })
}

fn parquet(error: ParquetError) -> InlineError {
    let ParquetError::External(source) = error else {
        return InlineError::Parquet {
            detail: error.to_string(),
        };
    };
    InlineError::Parquet {
        detail: source.to_string(),
    }
}

/// Counts what goes through and keeps the end of it, where Parquet says how long its footer is.
struct Tail<W> {
    out: W,
    bytes: u64,
    tail: Vec<u8>,
}

impl<W> Tail<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            bytes: 0,
            tail: Vec::new(),
        }
    }

    /// The length of the file and of its footer.
    fn lengths(&self) -> (u64, u64) {
        let footer = self
            .tail
            .first_chunk::<4>()
            .map_or(0, |length| u32::from_le_bytes(*length));
        (self.bytes, footer.into())
    }
}

impl<W: Write> Write for Tail<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        let end = bytes.get(..written).unwrap_or_default();
        let end = end
            .get(end.len().saturating_sub(TRAILER_BYTES)..)
            .unwrap_or_default();
        self.tail.extend_from_slice(end);
        let surplus = self.tail.len().saturating_sub(TRAILER_BYTES);
        self.tail.drain(..surplus);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
