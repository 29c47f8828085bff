//! Tests of the codec through the public interface.

// The lints' own exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic)]

mod compile_fail;
mod formats;
mod framing;
mod messages;
mod null_fields;
mod pairing;
mod records;
mod round_trip;
