//! Not a database and not a SQL engine: this crate is the door through which Postgres clients, DuckDB first, reach the
//! DuckLake catalogs that moraine keeps. It knows the protocol, the sessions, and the small SQL those clients speak: reads
//! and changes of one `ducklake_*` relation at a time, COPY in both directions, and the questions of the system catalogs.
//! Every other query, and every change that needs one, goes through `moraine-sql`. What neither can express is refused by
//! name.
//!
//! - [`Server::bind`] takes an address, [`Server::run`] serves until it is asked to stop, and drains.
//! - One server serves many lakes: the catalog of database `d`, schema `s` is the store at `catalog/d/s` below the root,
//!   opened at first use and created by the first attach.
//! - A transaction reads at one pinned view per lake, with its own changes on top; what it changes is one lake's. A
//!   connection that goes away takes its transaction with it.

mod bind;
mod cancel;
mod copy;
mod errors;
mod execute;
mod general;
mod handler;
mod insert_values;
mod introspect;
mod lakes;
mod lexer;
mod parse;
mod parsed;
mod server;
mod session;
mod temporary;
mod tid;
mod transaction;
mod turns;
mod values;
mod wire;

pub use moraine_commit::{Access, CatalogOptions, ReadPoint, StoreUrl};
pub use server::{
    CONNECTIONS_MAX, DRAIN_SECONDS, IDLE_CLOSE_SECONDS, ServeError, Server, ServerOptions, serve,
};
