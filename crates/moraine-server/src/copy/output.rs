//! Rows onto the wire, as `DataRow`s or as the data of a COPY. The binary COPY header never travels alone: DuckDB's reader
//! takes a message that holds nothing else for a broken one, so it goes with the first rows, or with the trailer.

use std::borrow::Cow;

use async_trait::async_trait;
use bytes::{BufMut, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::data::{DataRow, FieldDescription, RowDescription};
use pgwire::messages::response::CommandComplete;

use super::{BINARY_HEADER, csv};
use crate::bind::{CopyFormat, CopyTextOptions, Output};
use crate::execute::{Cell, RowSink};
use crate::tid;
use crate::values::{encode, types};
use crate::wire::{Failure, Wire};

/// Bytes of one COPY message; it ends at the first row boundary after as many.
const COPY_MESSAGE_BYTES: usize = 64 * 1024;

/// The form rows are sent in.
#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// `DataRow`s; for each field whether it is binary. `described` also sends the `RowDescription`.
    Rows { binary: Vec<bool>, described: bool },
    /// COPY … TO STDOUT.
    Copy(CopyFormat),
}

/// Sends the rows of one result.
pub(crate) struct RowWriter<'w> {
    wire: &'w mut dyn Wire,
    outputs: Cow<'w, [Output]>,
    form: Form,
    buffer: BytesMut,
    started: bool,
}

impl<'w> RowWriter<'w> {
    pub(crate) fn new(wire: &'w mut dyn Wire, outputs: &'w [Output], form: Form) -> RowWriter<'w> {
        RowWriter::over(wire, Cow::Borrowed(outputs), form)
    }

    /// A writer that keeps its columns.
    pub(crate) fn owning(wire: &'w mut dyn Wire, outputs: Vec<Output>, form: Form) -> RowWriter<'w> {
        RowWriter::over(wire, Cow::Owned(outputs), form)
    }

    fn over(wire: &'w mut dyn Wire, outputs: Cow<'w, [Output]>, form: Form) -> RowWriter<'w> {
        RowWriter {
            wire,
            outputs,
            form,
            buffer: BytesMut::new(),
            started: false,
        }
    }

    /// What precedes the first row. It waits for that row, so that a read that fails at once is only an error.
    async fn start(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let columns = i16::try_from(self.outputs.len()).unwrap_or(i16::MAX);
        match &self.form {
            Form::Rows {
                binary,
                described: true,
            } => {
                let fields = self
                    .outputs
                    .iter()
                    .enumerate()
                    .map(|(index, output)| describe(output, binary.get(index).copied().unwrap_or(false)));
                let description = RowDescription::new(fields.collect());
                self.wire
                    .feed(PgWireBackendMessage::RowDescription(description))
                    .await
            }
            Form::Rows { .. } => Ok(()),
            Form::Copy(format) => {
                let code = i8::from(*format == CopyFormat::Binary);
                let codes = self.outputs.iter().map(|_| i16::from(code)).collect();
                match format {
                    CopyFormat::Binary => self.buffer.put_slice(&BINARY_HEADER),
                    CopyFormat::Text(options) if options.header => {
                        let names: Vec<&str> =
                            self.outputs.iter().map(|output| output.name.as_str()).collect();
                        put_text_line(&mut self.buffer, names.into_iter().map(Some), options);
                    }
                    CopyFormat::Csv(options) if options.header => {
                        let names = self.outputs.iter().map(|output| output.name.as_str());
                        csv::put_record(
                            &mut self.buffer,
                            names.map(|name| (name, Some(name))),
                            options,
                            true,
                        );
                    }
                    CopyFormat::Text(_) | CopyFormat::Csv(_) => {}
                }
                let response = CopyOutResponse::new(code, columns, codes);
                self.wire
                    .feed(PgWireBackendMessage::CopyOutResponse(response))
                    .await
            }
        }
    }

    async fn row(&mut self, row: &[Cell]) -> Result<(), Failure> {
        let columns = i16::try_from(row.len()).unwrap_or(i16::MAX);
        match &self.form {
            Form::Rows { binary, .. } => {
                for (index, cell) in row.iter().enumerate() {
                    let binary = binary.get(index).copied().unwrap_or(false);
                    put_cell(&mut self.buffer, cell, binary, self.outputs.get(index));
                }
                let message = DataRow::new(self.buffer.split(), columns);
                self.wire.feed(PgWireBackendMessage::DataRow(message)).await
            }
            Form::Copy(format) => {
                match format {
                    CopyFormat::Binary => {
                        self.buffer.put_i16(columns);
                        for (index, cell) in row.iter().enumerate() {
                            put_cell(&mut self.buffer, cell, true, self.outputs.get(index));
                        }
                    }
                    CopyFormat::Text(options) => {
                        let texts: Vec<Option<String>> = row.iter().map(cell_text).collect();
                        put_text_line(&mut self.buffer, texts.iter().map(Option::as_deref), options);
                    }
                    CopyFormat::Csv(options) => {
                        let texts: Vec<Option<String>> = row.iter().map(cell_text).collect();
                        let names = self.outputs.iter().map(|output| output.name.as_str());
                        let fields = names.zip(texts.iter().map(Option::as_deref));
                        csv::put_record(&mut self.buffer, fields, options, false);
                    }
                }
                if self.buffer.len() < COPY_MESSAGE_BYTES {
                    return Ok(());
                }
                self.flush().await
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let data = self.buffer.split().freeze();
        self.wire
            .feed(PgWireBackendMessage::CopyData(CopyData::new(data)))
            .await
    }

    /// What follows the last row, and the command's completion.
    pub(crate) async fn finish(mut self, rows: u64) -> Result<(), Failure> {
        let command = self.trailer().await?;
        complete(self.wire, &format!("{command} {rows}")).await
    }

    /// What follows the last row of a command that is not a query, and its completion.
    pub(crate) async fn finish_as(mut self, tag: &str) -> Result<(), Failure> {
        self.trailer().await?;
        complete(self.wire, tag).await
    }

    async fn trailer(&mut self) -> Result<&'static str, Failure> {
        self.start().await?;
        let command = match &self.form {
            Form::Rows { .. } => "SELECT",
            Form::Copy(format) => {
                if *format == CopyFormat::Binary {
                    self.buffer.put_i16(-1);
                }
                if !self.buffer.is_empty() {
                    self.flush().await?;
                }
                self.wire
                    .feed(PgWireBackendMessage::CopyDone(CopyDone::new()))
                    .await?;
                "COPY"
            }
        };
        Ok(command)
    }
}

#[async_trait]
impl RowSink for RowWriter<'_> {
    async fn rows(&mut self, rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
        self.start().await?;
        for row in &rows {
            self.row(row).await?;
        }
        Ok(())
    }
}

/// The completion of a command.
pub(crate) async fn complete(wire: &mut dyn Wire, tag: &str) -> Result<(), Failure> {
    wire.feed(PgWireBackendMessage::CommandComplete(CommandComplete::new(
        tag.to_owned(),
    )))
    .await
}

/// A result column as the client is told of it.
pub(crate) fn describe(output: &Output, binary: bool) -> FieldDescription {
    FieldDescription::new(
        output.name.clone(),
        0,
        0,
        output.wire_type.oid(),
        types::type_size(&output.wire_type),
        output.type_modifier,
        i16::from(binary),
    )
}

fn put_cell(out: &mut BytesMut, cell: &Cell, binary: bool, output: Option<&Output>) {
    match (cell, output) {
        (Cell::Value(value), Some(output)) if binary => {
            encode::put_binary_as(out, value, &output.wire_type);
        }
        (Cell::Value(value), _) => encode::put_field(out, value, binary),
        (Cell::Tid(number), _) if binary => {
            let (page, item) = tid::split(*number);
            out.put_i32(6);
            out.put_u32(page);
            out.put_u16(item);
        }
        (Cell::Tid(number), _) => encode::put_text_field(out, Some(&tid::format(*number))),
    }
}

fn cell_text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Value(value) => encode::text(value),
        Cell::Tid(number) => Some(tid::format(*number)),
    }
}

/// One line of the text form.
fn put_text_line<'t>(
    out: &mut BytesMut,
    fields: impl Iterator<Item = Option<&'t str>>,
    options: &CopyTextOptions,
) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.put_u8(options.delimiter);
        }
        let Some(text) = field else {
            out.put_slice(options.null.as_bytes());
            continue;
        };
        for byte in text.bytes() {
            let escaped = match byte {
                b'\\' => b'\\',
                b'\x08' => b'b',
                b'\x0c' => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                b'\x0b' => b'v',
                byte if byte == options.delimiter => byte,
                plain => {
                    out.put_u8(plain);
                    continue;
                }
            };
            out.put_slice(&[b'\\', escaped]);
        }
    }
    out.put_u8(b'\n');
}
