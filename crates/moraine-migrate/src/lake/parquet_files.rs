//! Rows in Parquet files, which is how they go to a DuckDB and come from one. Numbers, text and bytes are all there is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tokio::sync::mpsc;

use crate::lake::sqlite::ChannelRows;
use crate::lake::{BATCH_ROWS, BATCHES_AHEAD, LakeError, Raw};

/// Rows of one row group.
const ROW_GROUP_ROWS: usize = 65_536;

/// What a column of a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    /// Whole numbers.
    Ints,
    /// Text.
    Texts,
    /// Bytes.
    Blobs,
}

/// A file that is being written.
pub(crate) struct RowFile {
    schema: SchemaRef,
    cells: Vec<Cells>,
    writer: ArrowWriter<File>,
}

impl RowFile {
    /// Begins a file with columns `c0`, `c1`, and so on.
    pub(crate) fn create(path: &Path, cells: &[Cells]) -> Result<RowFile, LakeError> {
        let field = |(position, cells): (usize, &Cells)| {
            let data_type = match cells {
                Cells::Ints => DataType::Int64,
                Cells::Texts => DataType::Utf8,
                Cells::Blobs => DataType::Binary,
            };
            Field::new(format!("c{position}"), data_type, true)
        };
        let fields: Vec<Field> = cells.iter().enumerate().map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_dictionary_enabled(false)
            .build();
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        Ok(RowFile {
            schema,
            cells: cells.to_vec(),
            writer: writer.map_err(|error| failed(path, &error))?,
        })
    }

    /// Adds rows.
    pub(crate) fn write(&mut self, rows: &[Vec<Raw>]) -> Result<(), LakeError> {
        if rows.is_empty() {
            return Ok(());
        }
        let column = |(position, cells): (usize, &Cells)| column(rows, position, *cells);
        let columns: Result<Vec<ArrayRef>, String> = self.cells.iter().enumerate().map(column).collect();
        let columns = columns.map_err(|detail| failed(Path::new("rows"), &detail))?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let batch = batch.map_err(|error| failed(Path::new("rows"), &error))?;
        self.writer
            .write(&batch)
            .map_err(|error| failed(Path::new("rows"), &error))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<(), LakeError> {
        let closed = self.writer.close();
        closed
            .map(|_| ())
            .map_err(|error| failed(Path::new("rows"), &error))
    }
}

fn column(rows: &[Vec<Raw>], position: usize, cells: Cells) -> Result<ArrayRef, String> {
    let values = rows.iter().map(|row| row.get(position).unwrap_or(&Raw::Null));
    let wrong = |raw: &Raw| format!("{} does not go into a column of {cells:?}", raw.shown());
    Ok(match cells {
        Cells::Ints => Arc::new(
            values
                .map(|raw| match raw {
                    Raw::Null => Ok(None),
                    Raw::Int(number) => Ok(Some(*number)),
                    other => Err(wrong(other)),
                })
                .collect::<Result<Int64Array, _>>()?,
        ),
        Cells::Texts => Arc::new(
            values
                .map(|raw| match raw {
                    Raw::Null => Ok(None),
                    Raw::Int(number) => Ok(Some(number.to_string())),
                    Raw::Text(text) => Ok(Some(text.clone())),
                    Raw::Bytes(bytes) => match std::str::from_utf8(bytes) {
                        Ok(text) => Ok(Some(text.to_owned())),
                        Err(_) => Err(wrong(raw)),
                    },
                })
                .collect::<Result<StringArray, _>>()?,
        ),
        Cells::Blobs => {
            let bytes = values
                .map(|raw| match raw {
                    Raw::Null => Ok(None),
                    Raw::Text(text) => Ok(Some(text.as_bytes())),
                    Raw::Bytes(bytes) => Ok(Some(bytes.as_ref())),
                    other => Err(wrong(other)),
                })
                .collect::<Result<Vec<Option<&[u8]>>, _>>()?;
            Arc::new(BinaryArray::from(bytes))
        }
    })
}

fn failed(path: &Path, error: &impl ToString) -> LakeError {
    LakeError::Database {
        catalog: path.display().to_string(),
        detail: error.to_string(),
    }
}

/// The rows of a file, read on a thread of their own.
pub(crate) fn read(path: PathBuf) -> ChannelRows {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = send(&path, &sender) {
            let _ = sender.blocking_send(Err(error));
        }
    });
    ChannelRows { receiver }
}

fn send(path: &Path, sender: &mpsc::Sender<Result<Vec<Vec<Raw>>, LakeError>>) -> Result<(), LakeError> {
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build());
    for batch in reader.map_err(|error| failed(path, &error))? {
        let batch = batch.map_err(|error| failed(path, &error))?;
        let rows = rows(&batch).map_err(|detail| failed(path, &detail))?;
        if sender.blocking_send(Ok(rows)).is_err() {
            break;
        }
    }
    Ok(())
}

fn rows(batch: &RecordBatch) -> Result<Vec<Vec<Raw>>, String> {
    let width = batch.num_columns();
    let mut rows: Vec<Vec<Raw>> = (0..batch.num_rows()).map(|_| Vec::with_capacity(width)).collect();
    for array in batch.columns() {
        for (index, row) in rows.iter_mut().enumerate() {
            row.push(cell(array.as_ref(), index)?);
        }
    }
    Ok(rows)
}

fn cell(array: &dyn Array, index: usize) -> Result<Raw, String> {
    if array.is_null(index) {
        return Ok(Raw::Null);
    }
    if let Some(numbers) = array.as_primitive_opt::<Int64Type>() {
        return Ok(Raw::Int(numbers.value(index)));
    }
    if let Some(texts) = array.as_string_opt::<i32>() {
        return Ok(Raw::Text(texts.value(index).to_owned()));
    }
    if let Some(blobs) = array.as_binary_opt::<i32>() {
        return Ok(Raw::Bytes(Bytes::copy_from_slice(blobs.value(index))));
    }
    Err(format!("a column is of type {}", array.data_type()))
}
