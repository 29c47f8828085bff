//! Chunks of inlined rows: Arrow IPC without the schema, as the crate's DuckDB extension makes them.

use std::sync::Arc;

use anyhow::Context;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde_json::{Value, json};

/// The mark before a message of a stream, and the end of the stream.
const CONTINUATION: [u8; 4] = [0xff; 4];
const END: usize = 8;

/// A batch of (id, name), as a schema stream and a body.
pub(crate) struct Chunk {
    pub(crate) schema: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) rows: u64,
}

pub(crate) fn chunk(rows: &[(i64, Option<&str>)]) -> anyhow::Result<Chunk> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
    ]));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id)));
    let names: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|(_, name)| *name)));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![ids, names])?;
    let mut empty = StreamWriter::try_new(Vec::new(), &schema)?;
    empty.finish()?;
    let schema_stream = empty.into_inner()?;
    let mut whole = StreamWriter::try_new(Vec::new(), &schema)?;
    whole.write(&batch)?;
    whole.finish()?;
    let whole = whole.into_inner()?;
    let message = whole
        .get(schema_stream.len() - END..whole.len() - END)
        .and_then(|message| message.strip_prefix(&CONTINUATION))
        .context("a stream has a message after its schema")?;
    Ok(Chunk {
        body: message.to_vec(),
        schema: schema_stream,
        rows: rows.len() as u64,
    })
}

/// One row of a body.
pub(crate) fn row(schema: &[u8], body: &[u8], offset: u64) -> anyhow::Result<Vec<Value>> {
    let head = schema.get(..schema.len().saturating_sub(END)).context("a schema stream ends")?;
    let stream = [head, &CONTINUATION, body, &CONTINUATION, &[0; 4]].concat();
    let mut reader = StreamReader::try_new(stream.as_slice(), None)?;
    let batch = reader.next().context("a batch")??;
    let at = usize::try_from(offset)?;
    batch.columns().iter().map(|column| cell(column, at)).collect()
}

fn cell(column: &ArrayRef, at: usize) -> anyhow::Result<Value> {
    if column.is_null(at) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(at)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(at)),
        other => anyhow::bail!("a column of type {other}"),
    })
}
