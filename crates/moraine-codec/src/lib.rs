//! Framed protobuf values of a moraine store, each paired with the key kind it belongs to.
//!
//! [`proto`] holds the messages, [`Stored`] says which of them belongs under which kind of key, and [`encode`] and
//! [`decode`] go between a message and the bytes of a store: `MRNE`, one version byte, protobuf. Protobuf alone reads
//! one message as another without complaint, so both also check what the value says about itself against its key.
//! Where bytes come from, and what the records mean together, is not here.

mod error;
pub mod format;
mod frame;
mod nullable;
mod record;
mod stored;
mod version;

pub use error::{DecodeError, EncodeError};
pub use format::format_value_has_unknown_fields;
pub use frame::{ENCODING_VERSION, HEADER_BYTES, MAGIC, frame, unframe};
pub use nullable::Nullable;
pub use record::{Record, decode_record, encode_record};
pub use stored::{Stored, decode, encode};
pub use version::Version;

/// The messages that values hold, generated from the crate's `.proto` files.
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/moraine.store.rs"));
}
