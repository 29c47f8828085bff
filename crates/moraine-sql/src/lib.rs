//! Not a server and not a store: this crate answers any SELECT as Postgres would, over relations that somebody else has,
//! through DataFusion. It knows no wire and no key.
//!
//! - [`Relations`] is what it asks of whoever has the data: columns by name, rows under a filter. Conditions that the
//!   tables evaluate themselves are handed to them as [`moraine_tables::Filter`], so ids become key ranges.
//!   [`CatalogRelations`] are the `ducklake_*` relations of one catalog transaction.
//! - [`Engine::plan`] turns a parsed query into a [`Plan`]: the columns and parameters with their types. [`Plan::run`] gives
//!   its [`Rows`] as they come; the scans run in the task that pulls them, so the transaction is only lent.
//! - Postgres's dialect is met in four places: a rewrite of the parsed query, the types of literals and parameters that have
//!   none of their own, casts and functions.
//! - [`text`] is the text of values as Postgres reads and writes it.
//!
//! What it does not do as Postgres does: `FOR UPDATE` is accepted and locks nothing, because transactions read at a pinned view
//! and conflicts are found at commit. Text compares by its bytes, as under collation C, and its case is that of Unicode. Exact
//! numbers of one column show as many digits after the point as any of them may have, and a quotient may show four zeros fewer;
//! a root or a power shows about sixteen digits, whatever its operands have. A whole row compares and leaves as its text, has no
//! order, and no binary form.

mod calls;
mod catalog;
mod coerce;
mod dependent;
mod dialect;
mod emptiness;
mod engine;
mod error;
mod functions;
mod kept;
mod plan;
mod provider;
mod pushdown;
mod quotient;
mod relations;
mod rewrite;
mod run;
mod significance;
mod syntax;
pub mod text;
mod ties;
mod types;
mod values;

pub use catalog::{CatalogRelations, relation_columns};
pub use engine::{Engine, QUERY_MEMORY_BYTES_MAX};
pub use error::{InputError, QueryError, RelationError};
pub use functions::{NamedRelation, SessionFacts, procedure_oid, type_name};
pub use plan::Plan;
pub use relations::{RelationName, Relations, Resolved, ScanRequest, ScanSink, ScannedRow, SqlColumn};
pub use rewrite::{names_objects, relation_names};
pub use run::Rows;
pub use syntax::parse_statements;
pub use types::{Element, SqlType};

/// Bits of a row's number that are the item of a `tid`; the others are the page.
pub const TID_ITEM_BITS: u32 = 15;
