//! Tests of the store through its public API.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation
)]

mod support {
    pub(crate) mod lake;
    pub(crate) mod mini_s3;
    pub(crate) mod stopping_store;
}

mod census;
mod crash_and_reopen;
mod damaged_bytes;
mod format_gate;
mod held_durability;
mod implementations;
mod random_histories;
mod read_only;
mod s3_faults;
mod stopped_writes;
mod urls;
