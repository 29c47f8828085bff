//! Why a value is not what its key says.

use moraine_keys::{HexBytes, KeyError};

/// Why bytes do not decode to the value that belongs under their key.
///
/// All but [`DecodeError::Version`] mean a damaged or a foreign store.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Fewer bytes than the frame's header has.
    #[error("value of {key} has {len} bytes, fewer than the {header} of the header: the store is damaged", header = crate::HEADER_BYTES)]
    Truncated {
        /// The key, as text.
        key: String,
        /// Length of the value in bytes.
        len: usize,
    },
    /// The frame does not begin with `MRNE`.
    #[error(
        "value of {key} begins with {found} instead of the bytes MRNE: \
         the store is damaged, or was not written by moraine"
    )]
    Magic {
        /// The key, as text.
        key: String,
        /// The first four bytes.
        found: HexBytes,
    },
    /// The frame's version is newer than any this software knows.
    #[error(
        "value of {key} has encoding version {found}, and this moraine reads up to {newest}: \
         open the store with a newer moraine"
    )]
    Version {
        /// The key, as text.
        key: String,
        /// The version found.
        found: u8,
        /// The newest version known.
        newest: u8,
    },
    /// What follows the header is not the protobuf message that belongs under the key.
    #[error("value of {key} does not decode: {source}: the store is damaged")]
    Payload {
        /// The key, as text.
        key: String,
        /// What protobuf found.
        source: prost::DecodeError,
    },
    /// An unframed value of fixed length has another length.
    #[error("value of {key} has {found} bytes instead of {expected}: the store is damaged")]
    Length {
        /// The key, as text.
        key: String,
        /// The length in bytes that such values have.
        expected: usize,
        /// The length in bytes found.
        found: usize,
    },
    /// The value contradicts its key or itself.
    #[error("value of {key} does not belong there: {detail}: the store is damaged")]
    Mismatch {
        /// The key, as text.
        key: String,
        /// What the value says, and what the key says.
        detail: String,
    },
    /// No version of the format stores anything under such a key.
    #[error(
        "{key} has a value, but nothing is ever stored under such keys: the store was not written by moraine"
    )]
    Unwritten {
        /// The key, as text.
        key: String,
    },
    /// The key itself does not decode.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Why a value may not be stored under a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The value contradicts the key or itself.
    #[error("refused to store a value under {key} that does not belong there: {detail}")]
    Mismatch {
        /// The key, as text.
        key: String,
        /// What the value says, and what the key says.
        detail: String,
    },
}
