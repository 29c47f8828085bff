//! The text of values as Postgres reads and writes it, for every type the tables have. No SQL and no wire framing.

pub mod array;
mod format;
pub mod json;
pub mod numeric;
pub mod parse;
pub mod temporal;

pub use format::format;
