//! The store a moraine catalog lives in: pinned views, ordered scans, optimistic transactions and commit outcomes as
//! one [`Store`] trait, implemented by SlateDB ([`slate`]) and in memory ([`memory`]) and held to one set of
//! [`conformance`] functions; opening by URL, the format gate, and the census of what a store holds. What the records
//! mean to DuckLake is not known here.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod error;
pub mod memory;
mod pending;
mod read;
mod staging;
mod store;
mod write_set;

pub use error::{CommitError, ReadError};
pub use memory::MemoryStore;
pub use pending::Pending;
pub use read::{Read, ReadExt, RecordScan, Scan, collect};
pub use staging::{Savepoint, Staging};
pub use store::{Store, Transaction, View};
pub use write_set::WriteSet;

pub use bytes::Bytes;
pub use moraine_keys::KeyRange;
