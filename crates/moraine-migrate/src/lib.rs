//! How a moraine store becomes one of a newer format, and how a lake moves in from, and out to, other DuckLake catalogs.
//!
//! [`units`] holds the chain of format units: what each step of it changes is frozen, so that a store of any format ever
//! written becomes the same store of today's. Import, export and their verification have modules of their own beside it.
//! The wire and SQL text are not known here, and neither is how a store is served.

pub mod units;
