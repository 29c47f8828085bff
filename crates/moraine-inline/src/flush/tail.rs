//! The end of a Parquet file on its way out, where the file says how long its footer is.

use std::io::Write;

use crate::error::InlineError;

/// The length of the footer and the magic number at the end of a Parquet file.
const TRAILER_BYTES: usize = 8;

/// Counts what goes through and keeps the end of it.
pub(super) struct Tail<W> {
    out: W,
    bytes: u64,
    tail: Vec<u8>,
}

impl<W> Tail<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            bytes: 0,
            tail: Vec::new(),
        }
    }
}

impl<W: Write> Tail<W> {
    /// The length of the file and of its footer, once all of it is out.
    pub(super) fn finish(&mut self) -> Result<(u64, u64), InlineError> {
        self.out.flush().map_err(|source| InlineError::Spool { source })?;
        let footer = self
            .tail
            .first_chunk::<4>()
            .map_or(0, |length| u32::from_le_bytes(*length));
        Ok((self.bytes, footer.into()))
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
