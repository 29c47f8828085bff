//! The COPY sub-protocol: rows out in 64 KiB messages, rows in from whatever pieces the client cuts.

mod csv;
pub(crate) mod input;
pub(crate) mod output;

/// What a binary COPY begins with: the signature, no flags, no extension. Source: PostgreSQL, COPY, "Binary Format".
pub(crate) const BINARY_HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The signature alone.
pub(crate) const BINARY_SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";
