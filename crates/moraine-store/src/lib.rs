//! The store a moraine catalog lives in: pinned views, ordered scans, optimistic transactions and commit outcomes as
//! one [`Store`] trait, implemented by SlateDB ([`slate`]) and in memory ([`memory`]) and held to one set of
//! [`conformance`] functions; opening by URL for writing or for reading only, the format gate, [`checkpoints`], and the
//! census of what a store holds. What the records
//! mean to DuckLake is not known here.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod census;
pub mod checkpoints;
pub mod conformance;
mod data_files;
mod error;
mod gate;
mod location;
pub mod memory;
mod observed;
mod open;
mod pending;
mod read;
pub mod slate;
mod staging;
mod store;
mod write_set;

pub use data_files::DataFiles;
pub use error::{CommitError, ReadError};
pub use gate::{FormatState, check_format};
pub use location::StoreUrl;
pub use memory::MemoryStore;
pub use open::{
    OpenError, OpenOptions, ReadPoint, list_stores, open, open_foreign_reader, open_read_only, open_reader,
    open_reader_ungated, open_ungated,
};
pub use pending::Pending;
pub use read::{Read, ReadExt, RecordScan, Scan, collect};
pub use slate::{ReadOnlyStore, SlateReader, SlateStore};
pub use staging::{Savepoint, Staging};
pub use store::{Store, Transaction, View};
pub use write_set::{WriteSet, lay_over};

pub use bytes::Bytes;
pub use moraine_keys::KeyRange;
