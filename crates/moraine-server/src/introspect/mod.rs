//! Queries of the system catalogs: what a client asks to learn which schemas, tables and columns there are, and queries
//! without any table. They are evaluated from the parsed statement over small tables in memory, so a question that was
//! never foreseen is answered rightly or refused by name; the tables of a lake themselves are not readable here.

mod catalog;
mod columns;
mod engine;
mod evaluate;
mod functions;
mod information;
mod objects;
mod scan_names;

use moraine_tables::Value;
use postgres_types::Type;
use sqlparser::ast::Query;

use crate::errors::{SqlError, state};
use crate::transaction::Transaction;

pub(crate) use catalog::relations;
pub(crate) use columns::VirtualTable;
pub(crate) use functions::version;
pub(crate) use scan_names::{is_about_the_system, system_name};

/// A whole result in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResultSet {
    pub(crate) columns: Vec<(String, Type)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// What system functions tell about the session.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) user: &'a str,
    /// The schema of unqualified names.
    pub(crate) schema: &'a str,
    pub(crate) pid: i32,
    pub(crate) settings: &'a [(&'static str, String)],
}

/// Answers a query of the system catalogs.
pub(crate) async fn run(
    query: &Query,
    transaction: &mut Transaction,
    context: &Context<'_>,
) -> Result<ResultSet, SqlError> {
    engine::Engine { transaction, context }
        .query(query, &engine::Outer::none())
        .await
}

/// A system relation with the rows for all tables of the database; `None` for one that is not offered.
pub(crate) async fn system_table(
    transaction: &mut Transaction,
    schema: &str,
    name: &str,
    settings: &[(&'static str, String)],
) -> Result<Option<VirtualTable>, SqlError> {
    let everything = scan_names::Hint::default();
    match catalog::table(transaction, schema, name, &everything, settings).await {
        Ok(table) => Ok(Some(table)),
        Err(error) if error.state == state::UNDEFINED_TABLE => Ok(None),
        Err(error) => Err(error),
    }
}
