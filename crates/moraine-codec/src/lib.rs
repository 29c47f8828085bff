//! Framed protobuf values of a moraine store, each paired with the key kind it belongs to.
//!
//! [`proto`] holds the messages, [`Stored`] says which of them belongs under which kind of key, and [`encode`] and
//! [`decode`] go between a message and the bytes of a store: `MRNE`, one version byte, protobuf. Protobuf alone reads
//! one message as another without complaint, so both also check what the value says about itself against its key.
//! Where bytes come from, and what the records mean together, is not here.
//!
//! ```
//! use moraine_codec::{decode, encode, proto::TableValue};
//! use moraine_keys::TableKey;
//!
//! let key = TableKey { table_id: 7 };
//! let table = TableValue { table_id: 7, table_name: "orders".to_owned(), ..Default::default() };
//! let bytes = encode(&key, &table).unwrap();
//! assert_eq!(decode(&key, &bytes), Ok(table));
//!
//! let error = decode(&TableKey { table_id: 8 }, &bytes).unwrap_err().to_string();
//! assert!(error.contains("current/table{table_id=8}") && error.contains("its table_id is 7"));
//! ```

mod error;
pub mod format;
mod frame;
mod import_marker;
#[cfg(feature = "json")]
mod json;
mod nullable;
mod record;
mod stored;
mod version;

pub use error::{DecodeError, EncodeError};
pub use format::format_value_has_unknown_fields;
pub use frame::{ENCODING_VERSION, HEADER_BYTES, MAGIC, frame, unframe};
pub use import_marker::ImportMarker;
#[cfg(feature = "json")]
pub use json::{JsonError, to_json};
pub use nullable::Nullable;
pub use record::{Record, decode_record, encode_record};
pub use stored::{Stored, decode, encode};
pub use version::Version;

/// The messages that values hold, generated from the crate's `.proto` files.
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/moraine.store.rs"));
}
