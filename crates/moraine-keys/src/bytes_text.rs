//! Byte strings: as a key component with its own codec, and as hexadecimal text for people. Neither knows of any kind.

use std::fmt;
use std::io::{BufRead, Write};

use bytes::Bytes;
use storekey::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// A byte string as a key component.
///
/// Every `00` and `01` is preceded by an `01`, and one `00` ends the string, so that bytes keep their order whatever
/// component follows.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteString(pub Vec<u8>);

// By hand: a derive would go through storekey's sequence codec, whose reader takes the first byte of the component
// after the string for an escape when it is an 01.
impl<F> Encode<F> for ByteString {
    fn encode<W: Write>(&self, writer: &mut Writer<W>) -> Result<(), EncodeError> {
        writer.write_slice(&self.0)
    }
}

impl<F> Decode<F> for ByteString {
    fn decode<R: BufRead>(reader: &mut Reader<R>) -> Result<Self, DecodeError> {
        reader.read_vec().map(Self)
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for ByteString {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl AsRef<[u8]> for ByteString {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

/// Bytes that print as lowercase hexadecimal, for errors about bytes that are no key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HexBytes(pub Bytes);

impl From<&[u8]> for HexBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl fmt::Debug for HexBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for HexBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("(empty)")
        } else {
            write_hex(f, &self.0)
        }
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
