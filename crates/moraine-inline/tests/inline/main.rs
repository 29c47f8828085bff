//! Behaviour of inlined rows through the crate's public API, on the in-memory store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chunk_framing;
mod directory_memory;
mod directory_repair;
mod encrypted_files;
mod file_deletions;
mod flushed_types;
mod random_histories;
mod records_on_write;
mod row_lifetimes;
mod row_removal;
mod schema_records;
mod support;
