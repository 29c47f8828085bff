//! The bytes of schema records and chunk bodies: Arrow IPC, framed as moraine stores do it. Which records they belong to is not
//! here.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::writer::{
    DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, StreamWriter,
};
use arrow_ipc::{MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use bytes::Bytes;

use crate::{column_type, layout, schema_message};

/// Buffers start on this boundary: small chunks are what inlining is for, and 64 bytes per buffer would outweigh their rows.
const BUFFER_ALIGNMENT_BYTES: usize = 8;
/// Arrow's marker before every message of a stream.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Arrow's end of a stream: a continuation marker and a message of no bytes.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Width of the length before a message, in streams and in chunk bodies.
const LENGTH_BYTES: usize = 4;

/// Why Arrow bytes could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A dictionary needs a message of its own, and a chunk body holds one message only.
    #[error(
        "column `{column}` is dictionary-encoded, which an inlined chunk cannot hold; store it as its value type"
    )]
    Dictionary {
        /// The column, with the path to it when it is nested.
        column: String,
    },
    /// A type that inlined columns do not have.
    #[error(
        "column `{column}` has type {data_type}, which cannot be inlined; write its rows to Parquet instead"
    )]
    Unsupported {
        /// The column, with the path to it when it is nested.
        column: String,
        /// Arrow's name of the type.
        data_type: String,
    },
    /// Arrow refused to write the batch or the schema.
    #[error("cannot encode as Arrow IPC: {source}")]
    Write {
        /// Arrow's reason.
        source: ArrowError,
    },
    /// The bytes of a schema stream are not one.
    #[error("damaged Arrow schema stream: {detail}")]
    Schema {
        /// What is wrong with them.
        detail: String,
    },
    /// The bytes of a chunk body are not one, or do not fit the schema.
    #[error("damaged chunk body: {detail}")]
    Body {
        /// What is wrong with them.
        detail: String,
    },
    /// The body holds another number of rows than its record says.
    #[error("chunk body holds {found} rows, its record says {expected}")]
    RowCount {
        /// Rows according to the record.
        expected: u64,
        /// Rows according to the body.
        found: i64,
    },
}

/// The Arrow IPC stream of `schema` alone: its schema message and the end-of-stream marker, metadata version 5 (RFC 0005,
/// `inline/schema`). Equal schemas give equal bytes.
///
/// # Errors
/// [`FrameError::Dictionary`] and [`FrameError::Unsupported`] for columns that cannot be inlined.
pub fn encode_schema(schema: &Schema) -> Result<Bytes, FrameError> {
    column_type::check_schema(schema)?;
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), schema, write_options()?).map_err(write_error)?;
    writer.finish().map_err(write_error)?;
    writer.into_inner().map(Bytes::from).map_err(write_error)
}

/// The schema in the bytes of an `inline/schema` record.
///
/// # Errors
/// [`FrameError::Schema`] for anything that is not a whole schema stream; never a panic.
pub fn decode_schema(bytes: &Bytes) -> Result<SchemaRef, FrameError> {
    let stream = bytes
        .strip_prefix(&CONTINUATION)
        .ok_or_else(|| schema_error("no continuation marker"))?;
    let (message, rest) = split_message(stream).ok_or_else(|| schema_error("the message is truncated"))?;
    if rest != END_OF_STREAM {
        return Err(schema_error("no end-of-stream marker after the schema message"));
    }
    let message = root_as_message(message).map_err(|error| schema_error(error.to_string()))?;
    if message.version() != MetadataVersion::V5 {
        return Err(schema_error(format!(
            "metadata version {:?}, expected V5",
            message.version()
        )));
    }
    let header = message
        .header_as_schema()
        .ok_or_else(|| schema_error("the message is not a schema"))?;
    schema_message::check(header).map_err(schema_error)?;
    let schema = catch_unwind(AssertUnwindSafe(|| fb_to_schema(header)))
        .map_err(|_| schema_error("a column's type has impossible parameters"))?;
    column_type::check_schema(&schema).map_err(|error| schema_error(error.to_string()))?;
    Ok(Arc::new(schema))
}

/// The body of an `inline/insert` record: the little-endian length of the record batch message, the message, the data block.
/// No continuation marker, no schema, no end of stream, no compression; buffers start on 8-byte boundaries (RFC 0005).
///
/// # Errors
/// [`FrameError::Dictionary`] and [`FrameError::Unsupported`] for columns that cannot be inlined, [`FrameError::Write`] when Arrow
/// refuses.
pub fn encode_body(batch: &RecordBatch) -> Result<Bytes, FrameError> {
    column_type::check_schema(batch.schema_ref())?;
    let options = write_options()?;
    let mut dictionaries = DictionaryTracker::new(true);
    let (_, encoded) = IpcDataGenerator::default()
        .encode(
            batch,
            &mut dictionaries,
            &options,
            &mut IpcWriteContext::default(),
        )
        .map_err(write_error)?;
    let too_long = |_| {
        write_error(ArrowError::IpcError(
            "the message is longer than 4 GiB".to_owned(),
        ))
    };
    let length = u32::try_from(encoded.ipc_message.len()).map_err(too_long)?;
    let mut body = Vec::with_capacity(LENGTH_BYTES + encoded.ipc_message.len() + encoded.arrow_data.len());
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(&encoded.ipc_message);
    body.extend_from_slice(&encoded.arrow_data);
    Ok(Bytes::from(body))
}

/// The rows in the body of an `inline/insert` record whose schema is `schema` and whose record says it has `rows` rows. Buffers of
/// any alignment are read; those that fit are shared with `bytes`, not copied.
///
/// # Errors
/// [`FrameError::Body`] or [`FrameError::RowCount`] for anything that is not exactly that; never a panic.
pub fn decode_body(bytes: &Bytes, schema: SchemaRef, rows: u64) -> Result<RecordBatch, FrameError> {
    decode_body_columns(bytes, schema, rows, None)
}

/// [`decode_body`], of the columns at the given positions of `schema` only, in that order.
pub(crate) fn decode_body_columns(
    bytes: &Bytes,
    schema: SchemaRef,
    rows: u64,
    projection: Option<&[usize]>,
) -> Result<RecordBatch, FrameError> {
    let (message_bytes, data) = split_message(bytes).ok_or_else(|| body_error("the message is truncated"))?;
    let header = record_batch_message(message_bytes, data.len())?;
    if u64::try_from(header.length()) != Ok(rows) {
        return Err(FrameError::RowCount {
            expected: rows,
            found: header.length(),
        });
    }
    column_type::check_schema(&schema).map_err(|error| body_error(error.to_string()))?;
    layout::check(header, &schema, rows, data.len()).map_err(body_error)?;
    let data = Buffer::from(bytes.slice_ref(data));
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        RecordBatchDecoder::try_new(&data, header, schema, &HashMap::new(), &MetadataVersion::V5)?
            .with_projection(projection)
            .read_record_batch()
    }));
    match decoded {
        Ok(batch) => batch.map_err(|error| body_error(error.to_string())),
        Err(_) => Err(body_error("Arrow could not read its buffers")),
    }
}

/// How many rows the message of a body claims, without reading the data block.
pub(crate) fn body_rows(bytes: &Bytes) -> Result<i64, FrameError> {
    let (message, data) = split_message(bytes).ok_or_else(|| body_error("the message is truncated"))?;
    record_batch_message(message, data.len()).map(|header| header.length())
}

fn record_batch_message(message: &[u8], data_bytes: usize) -> Result<arrow_ipc::RecordBatch<'_>, FrameError> {
    let message = root_as_message(message).map_err(|error| body_error(error.to_string()))?;
    if message.version() != MetadataVersion::V5 || message.header_type() != MessageHeader::RecordBatch {
        let found = (message.version(), message.header_type());
        return Err(body_error(format!(
            "expected a V5 record batch message, found {found:?}"
        )));
    }
    if usize::try_from(message.bodyLength()) != Ok(data_bytes) {
        let claimed = message.bodyLength();
        return Err(body_error(format!(
            "the message claims {claimed} bytes of data, {data_bytes} follow it"
        )));
    }
    message
        .header_as_record_batch()
        .ok_or_else(|| body_error("the message has no record batch"))
}

/// Splits a length-prefixed message from what follows it; `None` when the bytes end before the message does.
fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

fn write_options() -> Result<IpcWriteOptions, FrameError> {
    IpcWriteOptions::try_new(BUFFER_ALIGNMENT_BYTES, false, MetadataVersion::V5).map_err(write_error)
}

fn write_error(source: ArrowError) -> FrameError {
    FrameError::Write { source }
}

fn schema_error(detail: impl Into<String>) -> FrameError {
    FrameError::Schema {
        detail: detail.into(),
    }
}

fn body_error(detail: impl Into<String>) -> FrameError {
    FrameError::Body {
        detail: detail.into(),
    }
}
