//! Queries over lakes in memory, answered through the crate's public API.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arithmetic;
mod constructs;
mod corpus;
mod direct_path;
mod errors;
mod functions;
mod parameters;
mod store_reads;
mod subqueries;
mod support;
mod system_catalogs;
mod types;
