//! The words of error messages that DuckLake acts on. Its client looks at nothing but the text: it tries a commit again
//! when the message contains one of [`RETRY_WORDS`], and gives up otherwise. So the messages that ask for another try are
//! written here, and everything that quotes somebody else's text passes through [`permanent`]. Which outcome an error
//! is, is decided by its type, never here.

use std::fmt;

/// DuckLake tries a commit again when the message of the failure contains one of these, in any case of letters.
pub const RETRY_WORDS: [&str; 4] = ["primary key", "unique", "conflict", "concurrent"];

/// What each of [`RETRY_WORDS`] becomes in a message that must not be retried, in the same order.
const PLAIN_WORDS: [&str; 4] = ["main key", "distinct", "clash", "simultaneous"];

/// A lost race for a snapshot id, in the words PostgreSQL says it (SQLSTATE 23505).
pub const LOST_RACE: &str = "duplicate key value violates unique constraint \"ducklake_snapshot_pkey\"";

/// A conflict found at COMMIT, in the words PostgreSQL says it (SQLSTATE 40001).
pub const CONFLICT: &str = "could not serialize access due to concurrent update";

/// Rows that another open transaction removes, in the words of DuckDB and of PostgreSQL (SQLSTATE 40001).
pub const CLAIMED: &str = "Conflict on delete: could not serialize access due to concurrent delete";

/// Whether DuckLake tries a commit again after a failure with this message.
///
/// ```
/// use moraine_commit::words;
/// assert!(words::invites_retry(words::LOST_RACE));
/// assert!(!words::invites_retry("the object store is unavailable"));
/// ```
#[must_use]
pub fn invites_retry(message: &str) -> bool {
    let message = message.to_lowercase();
    RETRY_WORDS.iter().any(|word| message.contains(word))
}

/// The text of `message` without any of [`RETRY_WORDS`]: for failures that another try cannot cure, and that may quote
/// an object store, an engine or a name.
///
/// ```
/// use moraine_commit::words;
/// let text = words::permanent("HTTP 409: Conflict");
/// assert_eq!(text, "HTTP 409: clash");
/// ```
#[must_use]
pub fn permanent(message: impl fmt::Display) -> String {
    let mut text = message.to_string();
    for (word, plain) in RETRY_WORDS.iter().zip(PLAIN_WORDS) {
        text = replace_any_case(&text, word, plain);
    }
    text
}

/// Replaces `word` (ASCII, lower case) in any case of letters by `plain`.
fn replace_any_case(text: &str, word: &str, plain: &str) -> String {
    // ASCII folding keeps byte offsets, unlike `to_lowercase`.
    let folded = text.to_ascii_lowercase();
    let mut result = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in folded.match_indices(word) {
        result.push_str(text.get(from..at).unwrap_or_default());
        result.push_str(plain);
        from = at + found.len();
    }
    result.push_str(text.get(from..).unwrap_or_default());
    result
}
