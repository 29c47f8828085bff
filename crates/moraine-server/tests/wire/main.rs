//! The server through its door: every test speaks the Postgres protocol to a server of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cancel;
mod client;
mod copy_csv;
mod copy_in;
mod copy_out;
mod ctid;
mod cursors;
mod extended;
mod introspection;
mod lakes;
mod literals;
mod parameters;
mod paths;
mod pipelines;
mod psql;
mod queries;
mod races;
mod read_only;
mod refusals;
mod savepoints;
mod server;
mod sessions;
mod transactions;
mod turns;
mod types;
mod updates;
mod vanished;
