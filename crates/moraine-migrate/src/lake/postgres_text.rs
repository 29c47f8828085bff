//! The text form of PostgreSQL's COPY: one row a line, columns between tabs, `\N` for NULL, and what would be mistaken for
//! either escaped.

use bytes::Bytes;
use moraine_tables::ColumnType;

use crate::lake::Raw;

/// Takes lines out of the pieces in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Adds a piece, and calls `each` with every line that it completes.
    pub(crate) fn push<E>(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = piece;
        while let Some(end) = left.iter().position(|byte| *byte == b'\n') {
            let (line, after) = left.split_at(end);
            if self.rest.is_empty() {
                each(line)?;
            } else {
                self.rest.extend_from_slice(line);
                let line = std::mem::take(&mut self.rest);
                each(&line)?;
            }
            left = after.get(1..).unwrap_or_default();
        }
        self.rest.extend_from_slice(left);
        Ok(())
    }
}

/// The values of a line, as columns of these types.
pub(crate) fn row(line: &[u8], types: &[ColumnType]) -> Result<Vec<Raw>, String> {
    let mut values = Vec::with_capacity(types.len());
    let mut fields = line.split(|byte| *byte == b'\t');
    for column_type in types {
        let field = fields.next().ok_or("a line has too few columns")?;
        values.push(value(field, *column_type)?);
    }
    match fields.next() {
        None => Ok(values),
        Some(_) => Err("a line has too many columns".to_owned()),
    }
}

fn value(field: &[u8], column_type: ColumnType) -> Result<Raw, String> {
    if field == b"\\N" {
        return Ok(Raw::Null);
    }
    let text = String::from_utf8(unescaped(field)).map_err(|error| error.to_string())?;
    Ok(match column_type {
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => {
            text.parse().map_or_else(|_| Raw::Text(text), Raw::Int)
        }
        ColumnType::Bytes => match text.strip_prefix("\\x").and_then(from_hex) {
            Some(bytes) => Raw::Bytes(bytes),
            None => Raw::Text(text),
        },
        _ => Raw::Text(text),
    })
}

fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'b') => out.push(0x08),
            Some(b'f') => out.push(0x0c),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'v') => out.push(0x0b),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// The bytes of pairs of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Bytes> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for pair in text.as_bytes().chunks_exact(2) {
        let [high, low] = pair else { return None };
        bytes.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(bytes.into())
}

/// Appends a row as a line; an error says which text PostgreSQL cannot hold.
pub(crate) fn put_row(out: &mut Vec<u8>, row: &[Raw]) -> Result<(), String> {
    for (position, raw) in row.iter().enumerate() {
        if position > 0 {
            out.push(b'\t');
        }
        match raw {
            Raw::Null => out.extend_from_slice(b"\\N"),
            Raw::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Raw::Text(text) => put_text(out, text)?,
            Raw::Bytes(bytes) => {
                out.extend_from_slice(b"\\\\x");
                for byte in bytes {
                    out.extend_from_slice(&hex(*byte));
                }
            }
        }
    }
    out.push(b'\n');
    Ok(())
}

fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    [digit(byte >> 4), digit(byte & 15)]
}

fn put_text(out: &mut Vec<u8>, text: &str) -> Result<(), String> {
    for byte in text.bytes() {
        match byte {
            0 => return Err(format!("PostgreSQL cannot hold the NUL in {text:?}")),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => out.push(other),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Lines, put_row, row};
    use crate::lake::Raw;
    use bytes::Bytes;
    use moraine_tables::ColumnType::{Bytes as Bytea, Int64, Text};

    #[test]
    fn rows_come_back_as_they_went_however_they_are_cut() {
        let types = [Int64, Text, Bytea, Text];
        let rows = vec![
            vec![
                Raw::Int(-7),
                Raw::Text("tab\t, line\n, back\\slash, \\N".into()),
                Raw::Bytes(Bytes::from_static(&[0, 255, b'\\'])),
                Raw::Null,
            ],
            vec![
                Raw::Null,
                Raw::Text(String::new()),
                Raw::Bytes(Bytes::new()),
                Raw::Text("ü".into()),
            ],
        ];
        let mut bytes = Vec::new();
        for row in &rows {
            put_row(&mut bytes, row).unwrap();
        }
        for piece in 1..bytes.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for part in bytes.chunks(piece) {
                lines
                    .push(part, |line| row(line, &types).map(|values| found.push(values)))
                    .unwrap();
            }
            assert_eq!(found, rows);
        }
        assert!(put_row(&mut bytes, &[Raw::Text("a\0b".into())]).is_err());
    }
}
