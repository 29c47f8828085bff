//! Delete files: positions of deleted rows of one data file, with the snapshots that deleted them; written as DuckLake's flush does,
//! and read as DuckLake reads them, deletion vectors too.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use moraine_codec::format::SNAPSHOT_ID_FIELD_ID;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Repetition;
use parquet::encryption::decrypt::FileDecryptionProperties;
use roaring::RoaringTreemap;

use crate::error::InlineError;
use crate::flush::column::{Kind, field_id};
use crate::flush::convert::bigints;
use crate::flush::data_file::SNAPSHOT_ID_COLUMN;
use crate::flush::encrypted::{ParquetOutput, SealedFooter};
use crate::flush::parquet_error;
use crate::flush::parquet_options::ParquetOptions;

/// Source: Iceberg's reserved field ids, which DuckDB's Parquet writer gives to positional deletes.
const FILE_PATH_FIELD_ID: i32 = 2_147_483_646;
/// See [`FILE_PATH_FIELD_ID`].
const POSITION_FIELD_ID: i32 = 2_147_483_645;
const POSITION_COLUMN: &str = "pos";
/// Positions written at once.
const BATCH_ROWS: usize = 65_536;
/// Source: the Puffin specification, blob type `deletion-vector-v1`.
const VECTOR_MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// What a delete file is kept in (`ducklake_delete_file.format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteFileFormat {
    /// Positions as rows of a Parquet file.
    Parquet,
    /// A deletion vector.
    Puffin,
}

/// Writes the delete file of the rows at the positions `ended`, given with their end snapshots, of the data file that readers know
/// as `data_file_path`, encrypted with `key` if there is one. Gives its length and that of its footer, in bytes.
///
/// # Errors
/// [`InlineError::Parquet`].
pub fn write_delete_file(
    data_file_path: &str,
    ended: &[(u64, u64)],
    key: Option<&[u8]>,
    out: impl Write + Send,
) -> Result<(u64, u64), InlineError> {
    let fields = [
        Field::new("file_path", DataType::Utf8, true),
        Field::new(POSITION_COLUMN, DataType::Int64, true),
        Field::new(SNAPSHOT_ID_COLUMN, DataType::Int64, true),
    ];
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let optional = Repetition::OPTIONAL;
    let snapshot_id = Some(field_id(SNAPSHOT_ID_FIELD_ID)?);
    let types = vec![
        Kind::Text.parquet_type("file_path", optional, Some(FILE_PATH_FIELD_ID))?,
        Kind::Signed(64).parquet_type(POSITION_COLUMN, optional, Some(POSITION_FIELD_ID))?,
        Kind::Signed(64).parquet_type(SNAPSHOT_ID_COLUMN, optional, snapshot_id)?,
    ];
    let mut file = ParquetOutput::new(out, key)?;
    let mut writer = ParquetOptions::default().writer(&mut file, Arc::clone(&schema), types)?;
    for part in ended.chunks(BATCH_ROWS) {
        let paths: StringArray = part.iter().map(|_| Some(data_file_path)).collect();
        let positions = bigints(part.iter().map(|(position, _)| *position));
        let snapshots = bigints(part.iter().map(|(_, end)| *end));
        let columns: Vec<ArrayRef> = vec![Arc::new(paths), positions, snapshots];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|source| InlineError::Assemble { source })?;
        writer.write(&batch).map_err(parquet_error)?;
    }
    let metadata = ParquetOutput::close(writer)?;
    let written = file.finish(metadata)?;
    Ok((written.file_bytes, written.footer_bytes))
}

/// Reads a delete file: positions, and the snapshots that deleted the rows there where the file says it.
///
/// # Errors
/// [`InlineError::Parquet`] for what is no such file.
pub fn read_delete_file(
    content: Bytes,
    format: DeleteFileFormat,
    key: Option<&[u8]>,
) -> Result<Vec<(u64, Option<u64>)>, InlineError> {
    match format {
        DeleteFileFormat::Parquet => read_parquet(content, key),
        DeleteFileFormat::Puffin => {
            let positions = read_vector(&content).ok_or_else(|| invalid("no valid deletion vector"))?;
            Ok(positions.iter().map(|position| (position, None)).collect())
        }
    }
}

fn read_parquet(content: Bytes, key: Option<&[u8]>) -> Result<Vec<(u64, Option<u64>)>, InlineError> {
    let sealed = key.map(|key| SealedFooter::open(&content, key)).transpose()?;
    let builder = if let Some(sealed) = sealed.flatten() {
        let (metadata, plain) = sealed.file(&content)?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(plain, metadata)
    } else {
        let options = reader_options(key)?;
        ParquetRecordBatchReaderBuilder::try_new_with_options(content, options).map_err(parquet_error)?
    };
    let reader = builder.build().map_err(parquet_error)?;
    let mut found = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|source| InlineError::Assemble { source })?;
        let column = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int64Type>()
        };
        let positions = column(POSITION_COLUMN).ok_or_else(|| invalid("no column of positions"))?;
        let snapshots = column(SNAPSHOT_ID_COLUMN);
        for row in 0..batch.num_rows() {
            let position = positions
                .is_valid(row)
                .then(|| u64::try_from(positions.value(row)).ok());
            let position = position
                .flatten()
                .ok_or_else(|| invalid("a position that is none"))?;
            let snapshot = snapshots.filter(|snapshots| snapshots.is_valid(row));
            let snapshot = snapshot.and_then(|snapshots| u64::try_from(snapshots.value(row)).ok());
            found.push((position, snapshot));
        }
    }
    Ok(found)
}

/// How to read a Parquet file that may be encrypted as Parquet's specification says.
pub(super) fn reader_options(key: Option<&[u8]>) -> Result<ArrowReaderOptions, InlineError> {
    let mut options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    if let Some(key) = key {
        let decryption = FileDecryptionProperties::builder(key.to_vec()).build();
        options = options.with_file_decryption_properties(decryption.map_err(parquet_error)?);
    }
    Ok(options)
}

/// The positions of a deletion vector: its length, a magic number, bitmaps by the upper half of the position, a checksum.
fn read_vector(content: &[u8]) -> Option<RoaringTreemap> {
    let (length, rest) = content.split_first_chunk::<4>()?;
    let (body, checksum) = rest.split_last_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    if length != body.len() || crc32(body) != u32::from_be_bytes(*checksum) {
        return None;
    }
    let bitmaps = body.strip_prefix(&VECTOR_MAGIC)?;
    RoaringTreemap::deserialize_from(bitmaps).ok()
}

/// The checksum of ISO 3309, as zip and Puffin use it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 == 1 {
            (crc >> 1) ^ 0xedb8_8320
        } else {
            crc >> 1
        }
    };
    let folded = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc))
    });
    !folded
}

fn invalid(what: &str) -> InlineError {
    InlineError::Parquet {
        detail: format!("a delete file holds {what}"),
    }
}
