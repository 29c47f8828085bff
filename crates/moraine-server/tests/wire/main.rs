//! The server through its door: every test speaks the Postgres protocol to a server of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cancel;
mod client;
mod copy_in;
mod copy_out;
mod ctid;
mod extended;
mod introspection;
mod lakes;
mod literals;
mod paths;
mod psql;
mod queries;
mod races;
mod read_only;
mod refusals;
mod server;
mod transactions;
mod turns;
mod types;
mod updates;
mod vanished;
