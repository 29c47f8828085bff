//! The CSV form of COPY. A quoted empty field and an unquoted one are not the same there, and a quote may begin in the
//! middle of a field, so it has a reader of its own. Source: PostgreSQL, COPY, "CSV Format" and `copyfromparse.c`.

use bytes::{BufMut, BytesMut};

use crate::bind::{CopyCsvOptions, ForceQuote};
use crate::errors::{SqlError, state};

/// One field as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) bytes: Vec<u8>,
    /// Whether any of it was quoted.
    pub(super) quoted: bool,
}

impl Field {
    /// Whether the field of a column stands for NULL.
    pub(super) fn is_null(&self, column: &str, options: &CopyCsvOptions) -> bool {
        let forced = |columns: &[String]| columns.iter().any(|forced| forced == column);
        if self.bytes != options.null.as_bytes() {
            return false;
        }
        match self.quoted {
            true => forced(&options.force_null),
            false => !forced(&options.force_not_null),
        }
    }
}

/// Where the first record of a buffer ends: the position of its newline, which is none inside of quotes.
pub(super) fn record_end(buffer: &[u8], options: &CopyCsvOptions) -> Option<usize> {
    // Where one byte is both, two of them are a quote that ends and begins again.
    let escape = (options.escape != options.quote).then_some(options.escape);
    let mut in_quotes = false;
    let mut escaped = false;
    buffer.iter().position(|byte| {
        if in_quotes && Some(*byte) == escape {
            escaped = !escaped;
        }
        if *byte == options.quote && !escaped {
            in_quotes = !in_quotes;
        }
        if Some(*byte) != escape {
            escaped = false;
        }
        *byte == b'\n' && !in_quotes
    })
}

/// The fields of a record without its newline.
pub(super) fn fields(record: &[u8], options: &CopyCsvOptions) -> Result<Vec<Field>, SqlError> {
    let malformed = |message: &str| SqlError::new(state::BAD_COPY_FORMAT, message);
    let mut fields = Vec::new();
    let mut bytes = record.iter().copied().peekable();
    let mut field = Field {
        bytes: Vec::new(),
        quoted: false,
    };
    while let Some(byte) = bytes.next() {
        if byte == options.delimiter {
            let next = Field {
                bytes: Vec::new(),
                quoted: false,
            };
            fields.push(std::mem::replace(&mut field, next));
            continue;
        }
        if byte == b'\r' {
            return Err(malformed("unquoted carriage return found in data")
                .hint("Use quoted CSV field to represent carriage return."));
        }
        if byte != options.quote {
            field.bytes.push(byte);
            continue;
        }
        field.quoted = true;
        loop {
            let inner = bytes
                .next()
                .ok_or_else(|| malformed("unterminated CSV quoted field"))?;
            let escapes = inner == options.escape
                && bytes
                    .peek()
                    .is_some_and(|next| *next == options.escape || *next == options.quote);
            if escapes {
                field.bytes.extend(bytes.next());
            } else if inner == options.quote {
                break;
            } else {
                field.bytes.push(inner);
            }
        }
    }
    fields.push(field);
    Ok(fields)
}

/// Appends one record: fields by the names of their columns, `None` for NULL. Names of a header are quoted only where they
/// must be.
pub(super) fn put_record<'t>(
    out: &mut BytesMut,
    fields: impl Iterator<Item = (&'t str, Option<&'t str>)>,
    options: &CopyCsvOptions,
    is_header: bool,
) {
    let mut count = 0usize;
    let start = out.len();
    for (column, field) in fields {
        if count > 0 {
            out.put_u8(options.delimiter);
        }
        count += 1;
        let Some(text) = field else {
            out.put_slice(options.null.as_bytes());
            continue;
        };
        let forced = !is_header
            && match &options.force_quote {
                ForceQuote::All => true,
                ForceQuote::Columns(columns) => columns.iter().any(|forced| forced == column),
            };
        let special =
            |byte: u8| byte == options.delimiter || byte == options.quote || matches!(byte, b'\n' | b'\r');
        if !forced && text != options.null && !text.bytes().any(special) {
            out.put_slice(text.as_bytes());
            continue;
        }
        out.put_u8(options.quote);
        for byte in text.bytes() {
            if byte == options.quote || byte == options.escape {
                out.put_u8(options.escape);
            }
            out.put_u8(byte);
        }
        out.put_u8(options.quote);
    }
    // Alone on its line it would be the end of the data.
    if count == 1 && out.get(start..) == Some(b"\\.") {
        out.truncate(start);
        out.put_slice(&[options.quote, b'\\', b'.', options.quote]);
    }
    out.put_u8(b'\n');
}
