//! The behaviour of commits, through the crate's public interface.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

mod append_rebase;
mod cancelled_commits;
mod changes_grammar;
mod check_invariants;
mod column_identity;
mod column_tags;
mod conflict_matrix;
mod directories;
mod flush_counts;
mod flush_races;
mod genesis;
mod history_against_rows;
mod inlined_histories;
mod inlined_tables;
mod maintenance_batches;
mod native_flush;
mod read_only;
mod retry_words;
mod snapshot_races;
mod snapshot_records;
mod snapshot_times;
mod staged_records;
mod support;
mod turns;
mod verbs;
