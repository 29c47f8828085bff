//! What `moraine-migrate` promises of lakes that move, seen through its public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod broken_input;
mod interrupted_imports;
mod rocklake_stores;
mod round_trips;
mod support;
