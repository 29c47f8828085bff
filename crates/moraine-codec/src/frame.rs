//! The frame around every message: magic, version, protobuf. What the message means is not known here.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use moraine_keys::HexBytes;
use prost::Message;

use crate::error::DecodeError;

/// The bytes that every framed value begins with.
pub const MAGIC: [u8; 4] = *b"MRNE";
/// The version of the encoding, the byte after the magic.
pub const ENCODING_VERSION: u8 = 0;
/// Length of the frame's header: the magic and the version.
pub const HEADER_BYTES: usize = MAGIC.len() + 1;

/// `message` in its frame. A message of defaults only is the bare header.
#[must_use]
pub fn frame<M: Message>(message: &M) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + message.encoded_len());
    bytes.put_slice(&MAGIC);
    bytes.put_u8(ENCODING_VERSION);
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// The message of type `M` in the frame `bytes`, sharing its byte fields with them. `key` is named in errors.
///
/// # Errors
/// [`DecodeError::Truncated`], [`DecodeError::Magic`], [`DecodeError::Version`] or [`DecodeError::Payload`].
pub fn unframe<M: Message + Default>(key: &dyn fmt::Display, bytes: &Bytes) -> Result<M, DecodeError> {
    let payload = payload(key, bytes)?;
    M::decode(payload).map_err(|source| DecodeError::Payload {
        key: key.to_string(),
        source,
    })
}

/// What follows the header of the frame `bytes`.
pub(crate) fn payload(key: &dyn fmt::Display, bytes: &Bytes) -> Result<Bytes, DecodeError> {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(DecodeError::Truncated {
            key: key.to_string(),
            len: bytes.len(),
        });
    };
    let [magic @ .., version] = header;
    if *magic != MAGIC {
        return Err(DecodeError::Magic {
            key: key.to_string(),
            found: HexBytes::from(magic.as_slice()),
        });
    }
    if *version > ENCODING_VERSION {
        return Err(DecodeError::Version {
            key: key.to_string(),
            found: *version,
            newest: ENCODING_VERSION,
        });
    }
    Ok(bytes.slice(HEADER_BYTES..))
}
