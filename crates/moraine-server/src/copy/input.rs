//! COPY … FROM STDIN: the client's bytes into typed rows. A message may end anywhere, so what is not yet a whole row waits.

use bytes::{Buf, BytesMut};
use moraine_tables::{Column, Value};

use super::{BINARY_SIGNATURE, csv};
use crate::bind::{CopyCsvOptions, CopyFormat, CopyIn, CopyTextOptions};
use crate::errors::{SqlError, state};
use crate::values::literal::{Target, read};
use crate::values::{decode, types};

/// Bytes one COPY may bring: as many as one commit may write, with room for the framing.
const COPY_IN_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes of a binary header up to its extension.
const HEADER_BYTES: usize = BINARY_SIGNATURE.len() + 8;

/// Rows on their way in.
#[derive(Debug)]
pub(crate) struct CopyReader {
    pub(crate) copy: CopyIn,
    buffer: BytesMut,
    received: usize,
    rows: Vec<Vec<Value>>,
    stage: Stage,
    /// The first thing that went wrong. What still arrives is thrown away; the client hears of it at the end.
    error: Option<SqlError>,
    now: i64,
    /// The line, or the row of a binary COPY, that is being read; counted from 1.
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the header of a binary COPY, or the header line of a text COPY.
    Header,
    Rows,
    /// After the trailer.
    End,
}

impl CopyReader {
    pub(crate) fn new(copy: CopyIn, now: i64) -> CopyReader {
        let stage = match &copy.format {
            CopyFormat::Text(options) if !options.header => Stage::Rows,
            CopyFormat::Csv(options) if !options.header => Stage::Rows,
            _ => Stage::Header,
        };
        CopyReader {
            copy,
            buffer: BytesMut::new(),
            received: 0,
            rows: Vec::new(),
            stage,
            error: None,
            now,
            line: 0,
        }
    }

    /// Takes the next piece.
    pub(crate) fn add(&mut self, data: &[u8]) {
        if self.error.is_some() {
            return;
        }
        self.received = self.received.saturating_add(data.len());
        if self.received > COPY_IN_BYTES_MAX {
            let message = format!("a COPY may bring {COPY_IN_BYTES_MAX} bytes; split it");
            self.fail(SqlError::new(state::LIMIT_EXCEEDED, message));
            return;
        }
        self.buffer.extend_from_slice(data);
        if let Err(error) = self.read() {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: SqlError) {
        self.error = Some(error);
        self.buffer.clear();
        self.rows.clear();
    }

    fn read(&mut self) -> Result<(), SqlError> {
        match self.copy.format.clone() {
            CopyFormat::Binary => self.read_binary(),
            CopyFormat::Text(options) => self.read_lines(&Lines::Text(&options), false),
            CopyFormat::Csv(options) => self.read_lines(&Lines::Csv(&options), false),
        }
    }

    /// All rows, once the client has said that there are no more.
    pub(crate) fn finish(mut self) -> Result<(CopyIn, Vec<Vec<Value>>), SqlError> {
        if self.error.is_none() {
            let outcome = match self.copy.format.clone() {
                CopyFormat::Binary if self.stage == Stage::End => Ok(()),
                CopyFormat::Binary => Err(bad_format("unexpected EOF in COPY data")),
                CopyFormat::Text(options) => self.read_lines(&Lines::Text(&options), true),
                CopyFormat::Csv(options) => self.read_lines(&Lines::Csv(&options), true),
            };
            self.error = outcome.err();
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.copy, self.rows)),
        }
    }

    fn read_binary(&mut self) -> Result<(), SqlError> {
        if self.stage == Stage::Header {
            if !self.take_header()? {
                return Ok(());
            }
            self.stage = Stage::Rows;
        }
        while self.stage == Stage::Rows {
            self.line = self.rows.len() + 1;
            let Some((row, used)) = self.binary_row()? else {
                return Ok(());
            };
            self.buffer.advance(used);
            match row {
                Some(row) => self.rows.push(row),
                None => self.stage = Stage::End,
            }
        }
        if self.buffer.is_empty() {
            Ok(())
        } else {
            Err(bad_format("received copy data after EOF marker"))
        }
    }

    /// Takes the header off the buffer once it is whole.
    fn take_header(&mut self) -> Result<bool, SqlError> {
        let seen = self.buffer.len().min(BINARY_SIGNATURE.len());
        if self.buffer.get(..seen) != BINARY_SIGNATURE.get(..seen) {
            return Err(bad_format("COPY file signature not recognized"));
        }
        let Some(mut fields) = self.buffer.get(BINARY_SIGNATURE.len()..HEADER_BYTES) else {
            return Ok(false);
        };
        let flags = fields.get_u32();
        let extension =
            usize::try_from(fields.get_i32()).map_err(|_| bad_format("invalid COPY file header"))?;
        // The upper half of the flags is critical: nobody may go on who does not know them.
        if flags >> 16 != 0 {
            return Err(bad_format("unrecognized critical flags in COPY file header"));
        }
        if self.buffer.len() < HEADER_BYTES + extension {
            return Ok(false);
        }
        self.buffer.advance(HEADER_BYTES + extension);
        Ok(true)
    }

    /// The next row of the buffer and its length; the inner `None` is the trailer, the outer one an unfinished row.
    #[allow(clippy::type_complexity)]
    fn binary_row(&self) -> Result<Option<(Option<Vec<Value>>, usize)>, SqlError> {
        let mut rest: &[u8] = &self.buffer;
        if rest.len() < 2 {
            return Ok(None);
        }
        let count = rest.get_i16();
        if count == -1 {
            return Ok(Some((None, 2)));
        }
        if usize::try_from(count) != Ok(self.copy.columns.len()) {
            let message = format!("row field count is {count}, expected {}", self.copy.columns.len());
            return Err(bad_format(&message));
        }
        let mut row = vec![Value::Null; self.copy.target.columns().len()];
        for position in &self.copy.columns {
            if rest.len() < 4 {
                return Ok(None);
            }
            let length = rest.get_i32();
            if length == -1 {
                continue;
            }
            let length = usize::try_from(length).map_err(|_| bad_format("invalid field size"))?;
            let Some(bytes) = rest.get(..length) else {
                return Ok(None);
            };
            rest.advance(length);
            let column = self.column(*position)?;
            let value = decode::binary(bytes, column.column_type)
                .ok_or_else(|| incorrect(column, length).within(self.place(Some((column, None)), None)))?;
            set(&mut row, *position, value);
        }
        Ok(Some((Some(row), self.buffer.len() - rest.len())))
    }

    fn column(&self, position: usize) -> Result<&Column, SqlError> {
        let column = self.copy.target.columns().get(position);
        column.ok_or_else(|| SqlError::internal("a COPY into a column beyond the table"))
    }

    fn read_lines(&mut self, lines: &Lines<'_>, at_end: bool) -> Result<(), SqlError> {
        loop {
            let line = match lines.end(&self.buffer) {
                Some(end) => {
                    let line = self.buffer.split_to(end);
                    self.buffer.advance(1);
                    line
                }
                None if at_end && !self.buffer.is_empty() => self.buffer.split(),
                None => return Ok(()),
            };
            self.line += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if self.stage == Stage::End {
                return Err(bad_format("received copy data after EOF marker").within(self.place(None, None)));
            }
            if line == b"\\." {
                self.stage = Stage::End;
                continue;
            }
            if self.stage == Stage::Header {
                self.stage = Stage::Rows;
                continue;
            }
            let fields = match lines {
                Lines::Text(options) => Ok(split_fields(line, options.delimiter)
                    .into_iter()
                    .map(Raw::Escaped)
                    .collect::<Vec<_>>()),
                Lines::Csv(options) => {
                    csv::fields(line, options).map(|fields| fields.into_iter().map(Raw::Csv).collect())
                }
            };
            let row = fields.and_then(|fields| self.row(&fields, lines));
            let row = row.map_err(|error| error.within(self.place(None, Some(line))))?;
            self.rows.push(row);
            // A field may hold lines of its own.
            self.line += line.iter().filter(|byte| **byte == b'\n').count();
        }
    }

    /// Where in the data something is, as PostgreSQL says it.
    fn place(&self, column: Option<(&Column, Option<&str>)>, line: Option<&[u8]>) -> String {
        let table = self.copy.target.name();
        let place = format!("COPY {table}, line {}", self.line);
        match (column, line) {
            (Some((column, Some(text))), _) => {
                format!("{place}, column {}: \"{}\"", column.name, shortened(text))
            }
            (Some((column, None)), _) => format!("{place}, column {}", column.name),
            (None, Some(line)) => format!("{place}: \"{}\"", shortened(&String::from_utf8_lossy(line))),
            (None, None) => place,
        }
    }

    fn row(&self, fields: &[Raw<'_>], lines: &Lines<'_>) -> Result<Vec<Value>, SqlError> {
        if fields.len() > self.copy.columns.len() {
            return Err(bad_format("extra data after last expected column"));
        }
        let mut row = vec![Value::Null; self.copy.target.columns().len()];
        for (index, position) in self.copy.columns.iter().enumerate() {
            let column = self.column(*position)?;
            let Some(raw) = fields.get(index) else {
                return Err(bad_format(&format!(
                    "missing data for column \"{}\"",
                    column.name
                )));
            };
            let Some(bytes) = raw.bytes(&column.name, lines)? else {
                continue;
            };
            let text = String::from_utf8(bytes).map_err(|_| {
                let message = format!(
                    "invalid byte sequence for encoding UTF8 (column \"{}\")",
                    column.name
                );
                SqlError::new(state::INVALID_ENCODING, message)
            })?;
            let target = Target {
                column: &column.name,
                column_type: column.column_type,
                now: self.now,
            };
            let value = read(&text, target)
                .map_err(|error| error.within(self.place(Some((column, Some(&text))), None)))?;
            set(&mut row, *position, value);
        }
        Ok(row)
    }
}

/// How the data is cut into lines and fields.
enum Lines<'o> {
    Text(&'o CopyTextOptions),
    Csv(&'o CopyCsvOptions),
}

impl Lines<'_> {
    /// The position of the newline that ends the first line.
    fn end(&self, buffer: &[u8]) -> Option<usize> {
        match self {
            Lines::Text(_) => line_end(buffer),
            Lines::Csv(options) => csv::record_end(buffer, options),
        }
    }
}

/// A field as it stands in its line.
enum Raw<'l> {
    Escaped(&'l [u8]),
    Csv(csv::Field),
}

impl Raw<'_> {
    /// The bytes of the value; `None` for NULL.
    fn bytes(&self, column: &str, lines: &Lines<'_>) -> Result<Option<Vec<u8>>, SqlError> {
        match (self, lines) {
            // The mark of NULL is compared before escapes are undone, so that a text that looks like it can be sent.
            (Raw::Escaped(raw), Lines::Text(options)) if *raw == options.null.as_bytes() => Ok(None),
            (Raw::Escaped(raw), _) => unescape(raw).map(Some),
            (Raw::Csv(field), Lines::Csv(options)) if field.is_null(column, options) => Ok(None),
            (Raw::Csv(field), _) => Ok(Some(field.bytes.clone())),
        }
    }
}

/// Lines may be megabytes; an error quotes the beginning.
fn shortened(text: &str) -> String {
    const QUOTED_CHARS_MAX: usize = 100;
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn set(row: &mut [Value], position: usize, value: Value) {
    if let Some(slot) = row.get_mut(position) {
        *slot = value;
    }
}

fn bad_format(message: &str) -> SqlError {
    SqlError::new(state::BAD_COPY_FORMAT, message)
}

fn incorrect(column: &Column, length: usize) -> SqlError {
    SqlError::new(
        state::INVALID_BINARY,
        format!(
            "incorrect binary data format: {length} bytes are no {} (column \"{}\")",
            types::sql_name(column.column_type),
            column.name
        ),
    )
}

/// The position of the newline that ends the first line; one behind a backslash belongs to the text.
fn line_end(buffer: &[u8]) -> Option<usize> {
    let mut escaped = false;
    buffer.iter().position(|byte| {
        let ends = *byte == b'\n' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

fn split_fields(line: &[u8], delimiter: u8) -> Vec<&[u8]> {
    let mut escaped = false;
    line.split(|byte| {
        let ends = *byte == delimiter && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
    .collect()
}

/// Undoes the escapes of the text form. Source: PostgreSQL, COPY, "Text Format".
fn unescape(raw: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'b') => out.push(b'\x08'),
            Some(b'f') => out.push(b'\x0c'),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'v') => out.push(b'\x0b'),
            Some(first @ b'0'..=b'7') => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    match bytes.peek() {
                        Some(digit @ b'0'..=b'7') => {
                            value = value << 3 | u32::from(digit - b'0');
                            bytes.next();
                        }
                        _ => break,
                    }
                }
                out.push(u8::try_from(value & 0xff).unwrap_or(0));
            }
            Some(b'x') => match bytes.peek().and_then(|digit| char::from(*digit).to_digit(16)) {
                Some(high) => {
                    bytes.next();
                    let mut value = high;
                    if let Some(low) = bytes.peek().and_then(|digit| char::from(*digit).to_digit(16)) {
                        bytes.next();
                        value = value << 4 | low;
                    }
                    out.push(u8::try_from(value).unwrap_or(0));
                }
                None => out.push(b'x'),
            },
            Some(other) => out.push(other),
            None => return Err(bad_format("a backslash at the end of a field")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use moraine_tables::ColumnType;

    use super::*;
    use crate::bind::Source;
    use crate::temporary::TemporaryTable;

    fn reader(format: CopyFormat) -> CopyReader {
        let columns = vec![
            Column::new("n", ColumnType::Int64),
            Column::new("t", ColumnType::Text),
        ];
        let table = TemporaryTable {
            name: "x".into(),
            columns,
            rows: Vec::new(),
            drop_on_commit: true,
        };
        let target = Source::Temporary(Arc::new(table));
        CopyReader::new(
            CopyIn {
                target,
                columns: vec![0, 1],
                format,
            },
            0,
        )
    }

    fn binary() -> Vec<u8> {
        let mut data = crate::copy::BINARY_HEADER.to_vec();
        data.extend([0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, b'h', b'i']);
        data.extend([0, 2, 255, 255, 255, 255, 0, 0, 0, 0]);
        data.extend([255, 255]);
        data
    }

    #[test]
    fn binary_rows_survive_any_cut() {
        let data = binary();
        for size in 1..=data.len() {
            let mut reader = reader(CopyFormat::Binary);
            data.chunks(size).for_each(|piece| reader.add(piece));
            let (_, rows) = reader.finish().unwrap();
            assert_eq!(
                rows,
                [
                    [Value::Int64(7), Value::text("hi")],
                    [Value::Null, Value::text("")]
                ],
                "{size}"
            );
        }
    }

    #[test]
    fn a_binary_copy_without_its_end_is_an_error() {
        let data = binary();
        for end in 0..data.len() {
            let mut reader = reader(CopyFormat::Binary);
            reader.add(&data[..end]);
            assert_eq!(reader.finish().unwrap_err().state, "22P04", "{end}");
        }
    }

    #[test]
    fn text_rows_know_null_from_the_text_that_looks_like_it() {
        let options = CopyTextOptions {
            null: "\u{8}".to_owned(),
            ..CopyTextOptions::default()
        };
        let data = b"1\t\x08\n2\t\\b\n\x08\ta\\tb\\\\\\n\\x41\\101\n\\.\n";
        for size in 1..=data.len() {
            let mut reader = reader(CopyFormat::Text(options.clone()));
            data.chunks(size).for_each(|piece| reader.add(piece));
            let (_, rows) = reader.finish().unwrap();
            let expected = [
                [Value::Int64(1), Value::Null],
                [Value::Int64(2), Value::text("\u{8}")],
                [Value::Null, Value::text("a\tb\\\nAA")],
            ];
            assert_eq!(rows, expected, "{size}");
        }
    }

    #[test]
    fn a_bad_row_is_told_at_the_end() {
        for (data, state) in [
            (&b"x\ty\n"[..], "22P02"),
            (b"1\n", "22P04"),
            (b"1\ta\tb\n", "22P04"),
            (b"1\t\xff\n", "22021"),
        ] {
            let mut reader = reader(CopyFormat::Text(CopyTextOptions::default()));
            reader.add(data);
            reader.add(b"3\tgood\n");
            assert_eq!(reader.finish().unwrap_err().state, state);
        }
    }
}
