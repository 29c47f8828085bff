//! How a moraine store becomes one of a newer format, and how a lake moves in from, and out to, other DuckLake catalogs.
//!
//! [`units`] holds the chain of format units: what each step of it changes is frozen, so that a store of any format ever
//! written becomes the same store of today's. Import, export and their verification have modules of their own beside it.
//! The wire and SQL text are not known here, and neither is how a store is served.

mod column_types;
pub mod export;
pub mod import;
mod inlined_tables;
pub mod lake;
mod progress;
pub mod units;
pub mod verify;

pub use progress::{Progress, Silent};
