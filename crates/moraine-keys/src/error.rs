//! Why bytes are not a key, or not a key of the expected kind.

use crate::bytes_text::HexBytes;

/// Why bytes do not decode to the key that was asked for.
///
/// Keys that a store holds were written by this crate or by one that agrees with it byte for byte, so apart from
/// [`KeyError::WrongKind`] each of these means a damaged or a foreign store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No bytes at all.
    #[error("an empty key: a key has at least the byte of its subspace")]
    Empty,
    /// The bytes end inside a component or before a discriminant.
    #[error(
        "key {key} ends after {len} bytes, inside a component: the store is damaged, or was not written by moraine"
    )]
    Truncated {
        /// The bytes.
        key: HexBytes,
        /// How many there are.
        len: usize,
    },
    /// A whole key is followed by more bytes.
    #[error(
        "key {key} is {found}, which takes {expected_len} bytes, but has {len}: \
         the store is damaged, or was not written by moraine"
    )]
    TrailingBytes {
        /// The bytes.
        key: HexBytes,
        /// The key that the leading bytes hold.
        found: String,
        /// How many bytes that key takes.
        expected_len: usize,
        /// How many bytes there are.
        len: usize,
    },
    /// A byte that names a subspace, a kind or an operation has no meaning.
    #[error(
        "key {key} has byte {byte:02x} at offset {offset}, which names no subspace or kind: \
         the store is damaged, or was written by a newer moraine"
    )]
    UnknownDiscriminant {
        /// The bytes.
        key: HexBytes,
        /// Offset of the byte from the start of the key.
        offset: usize,
        /// The byte.
        byte: u8,
    },
    /// A string escapes a byte that must stand as it is, so that two byte strings would name one key.
    #[error(
        "key {key} reads as {found}, but that key is written differently from offset {offset} on: \
         the store is damaged, or was not written by moraine"
    )]
    NonCanonical {
        /// The bytes.
        key: HexBytes,
        /// The key that the bytes would read as.
        found: String,
        /// Offset of the first byte that differs from that key's encoding.
        offset: usize,
    },
    /// A name is not UTF-8.
    #[error("key {key} holds a name that is not UTF-8: the store is damaged, or was not written by moraine")]
    InvalidUtf8 {
        /// The bytes.
        key: HexBytes,
    },
    /// A sound key, but of another kind than was asked for.
    #[error("expected a key of kind {expected}, found {found}")]
    WrongKind {
        /// Name of the kind that was asked for, see [`crate::Kind::NAME`].
        expected: &'static str,
        /// The key that was found.
        found: String,
    },
}
