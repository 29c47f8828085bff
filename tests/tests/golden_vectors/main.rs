//! The golden vectors in `tests/golden`: bytes that must never change, because stores hold them.
//!
//! `cargo xtask golden` writes the files and `cargo xtask golden --check` compares them; both come here. A difference means
//! that the format changed: a key with other bytes is not found in the stores that exist, a value with other bytes is
//! misread.

// The lints' own exception for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrow;
mod document;
mod frames;
mod keys;
mod values;

use document::Document;

/// Set to `write`, it makes the test write the files instead of comparing them.
const MODE_VARIABLE: &str = "MORAINE_GOLDEN";

fn documents() -> Vec<Document> {
    vec![
        keys::document(),
        values::document(),
        frames::document(),
        arrow::document(),
    ]
}

#[test]
fn the_bytes_of_the_format_are_those_in_the_repository() {
    let write = std::env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "write");
    for document in documents() {
        if write {
            document.write();
        } else if let Err(difference) = document.compare() {
            panic!("{difference}");
        }
    }
}
