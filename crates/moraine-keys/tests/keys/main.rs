//! Tests of the key tree through the public interface.

// The lints' own exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bounds;
mod bytes_of_every_kind;
mod compile_fail;
mod damaged_bytes;
mod order;
mod samples;
mod text;
mod written_keys;
