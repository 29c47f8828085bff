//! Crash images: an object store that stops taking writes after its k-th, for every k that an act makes. Whatever is
//! left must open as a lake at a whole commit: all that was acknowledged is there, of the rest each commit is there whole
//! or not at all, and the next commit succeeds.
//!
//! A write that fails may have arrived all the same (the answer was lost), so every k is tried both ways; and once more
//! with a store that goes on after it, which nobody must notice.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

mod commits;
mod drops;
mod geneses;
mod lake;
mod life;
mod stages;
mod stopping_store;
mod sweep;
mod takeovers;
