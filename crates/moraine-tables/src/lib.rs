//! Not a SQL engine and not a server: this crate knows no statement text and no wire. It is the `ducklake_*` tables as
//! relations over a moraine catalog: their columns, how a record becomes rows and how a changed row becomes a staged change.
//!
//! - [`Relation`] names the 28 tables of every lake and the inlined ones; [`describe`] and [`list`] give their columns as
//!   DuckLake's `CREATE TABLE` for Postgres declares them.
//! - [`scan`] reads one relation under a [`Filter`]. Conditions on ids become key ranges, the rest is evaluated on the way;
//!   rows come in the order that DuckLake, which never says `ORDER BY`, relies on.
//! - [`insert`], [`update`] and [`delete`] stage changes in a [`moraine_commit::CatalogTransaction`], each all or nothing;
//!   later scans of the transaction see them. A row is found again by its [`RowAddress`].
//! - Values are [`Value`]s and compare as Postgres compares. What the door carries as text or bytes is stored as the column
//!   type DuckLake declared, and only if it comes back as it went in ([`text`]).

mod cell;
mod dump;
mod error;
mod filter;
mod inlined;
mod numeric;
mod plan;
mod relation;
mod relations;
mod row;
mod scan;
mod schema;
mod statements;
mod value;

pub use dump::{RowDump, dump};
pub use error::TableError;
pub use filter::{CompareOp, Comparison, Filter};
pub use inlined::{DOOR_TYPE_METADATA_KEY, door_type, inlined_schema};
pub use moraine_inline::text;
pub use relation::Relation;
pub use row::{Row, RowAddress};
pub use scan::{RowScan, SCAN_BATCH_ROWS};
pub use schema::{Column, RelationSchema, fixed_schema};
pub use statements::{create, delete, describe, drop, insert, insert_borrowed, list, scan, update};
pub use value::{ColumnType, Numeric, Value};
