//! What the relations promise, tested through the crate's public functions over an in-memory store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bulk_statements;
mod column_tags;
mod comparisons;
mod data_file_statements;
mod duckdb_text;
mod every_relation;
mod filters;
mod inlined_columns;
mod inlined_rows;
mod lake_creation;
mod model;
mod names_and_columns;
mod null_fidelity;
mod options;
mod refusals;
mod row_order;
mod snapshots;
mod store_reads;
mod support;
