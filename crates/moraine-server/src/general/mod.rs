//! What the direct path does not do: queries through `moraine-sql`, and the changes that need one to find or make their
//! rows. The binder has said which statements these are; nothing here looks at a statement's text.

mod change;
mod errors;
mod outputs;
mod relations;

use std::sync::{Arc, OnceLock};

use moraine_sql::{Engine, Plan, RelationName, SessionFacts, SqlColumn, SqlType};
use moraine_tables::Value;
use sqlparser::ast::Query;

use crate::bind::Output;
use crate::errors::SqlError;
use crate::execute::RowSink;
use crate::session::TemporaryTables;
use crate::transaction::Transaction;
use crate::values::literal::Target;
use crate::values::parameters::Parameters;
use crate::wire::Failure;

pub(crate) use change::{Change, change, describe as describe_change};
pub(crate) use outputs::wire_type;
use relations::SessionRelations;

/// The engine all sessions share.
fn engine() -> Result<Arc<Engine>, SqlError> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    if let Some(engine) = ENGINE.get() {
        return Ok(Arc::clone(engine));
    }
    let made = Arc::new(Engine::new().map_err(errors::convert)?);
    Ok(Arc::clone(ENGINE.get_or_init(|| made)))
}

/// What a query is answered from, beside the lakes.
pub(crate) struct Surroundings<'s> {
    pub(crate) temporary: &'s TemporaryTables,
    /// The schema of unqualified names.
    pub(crate) schema: String,
    pub(crate) user: String,
    pub(crate) pid: i32,
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// What a query takes and gives.
pub(crate) struct Described {
    pub(crate) outputs: Vec<Output>,
    pub(crate) parameters: Vec<SqlType>,
}

/// Describes a query without running it.
pub(crate) async fn describe(
    query: &Query,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
    parameters: &Parameters,
) -> Result<Described, SqlError> {
    let (plan, _, _) = plan(query, transaction, surroundings, parameters, Vec::new()).await?;
    Ok(Described {
        outputs: outputs::of(&plan),
        parameters: plan.parameters().to_vec(),
    })
}

async fn plan<'t>(
    query: &Query,
    transaction: &'t mut Transaction,
    surroundings: &Surroundings<'_>,
    parameters: &Parameters,
    extra: Extra,
) -> Result<(Plan, SessionRelations<'t>, Arc<SessionFacts>), SqlError> {
    let facts = Arc::new(relations::facts(query, transaction, surroundings).await?);
    let mut relations = SessionRelations::prepare(query, transaction, surroundings).await?;
    for (name, columns, rows) in extra {
        relations.add(name, columns, rows);
    }
    let declared = outputs::declared(parameters);
    let engine = engine()?;
    let plan = engine.plan(query, &mut relations, &facts, &declared);
    let plan = Box::pin(plan).await.map_err(errors::convert)?;
    Ok((plan, relations, facts))
}

/// Pins the lakes a query reads, so that a frozen transaction sees what this one does.
pub(crate) async fn pin(
    query: &Query,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
) -> Result<(), SqlError> {
    SessionRelations::prepare(query, transaction, surroundings).await?;
    Ok(())
}

/// Relations that are there for one query only: their names, columns and rows.
type Extra = Vec<(RelationName, Vec<SqlColumn>, Vec<Vec<Value>>)>;

/// Runs a query and gives its rows to the sink; the number of rows.
pub(crate) async fn run(
    query: &Query,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
    parameters: &Parameters,
    sink: &mut dyn QuerySink,
) -> Result<u64, Failure> {
    run_over(query, transaction, surroundings, parameters, Vec::new(), sink).await
}

async fn run_over(
    query: &Query,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
    parameters: &Parameters,
    extra: Extra,
    sink: &mut dyn QuerySink,
) -> Result<u64, Failure> {
    let now = transaction.started;
    let (plan, relations, facts) = plan(query, transaction, surroundings, parameters, extra).await?;
    let shown = outputs::of(&plan);
    let values = bound(&plan, parameters, now)?;
    let mut rows = Box::pin(plan.run(&values, &relations))
        .await
        .map_err(errors::convert)?;
    let kinds: Vec<SqlType> = plan.columns().iter().map(|column| column.sql_type).collect();
    let sink = sink.begin(shown)?;
    let mut count = 0;
    while let Some(batch) = rows.next_batch().await.map_err(errors::convert)? {
        count += u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let cells = batch.into_iter().map(|row| outputs::cells(row, &kinds, &facts));
        sink.rows(cells.collect()).await?;
        tokio::task::yield_now().await;
    }
    Ok(count)
}

/// Takes the rows of a query once its columns are known.
pub(crate) trait QuerySink: Send {
    /// Where the rows go.
    fn begin(&mut self, outputs: Vec<Output>) -> Result<&mut dyn RowSink, Failure>;
}

/// The values of the parameters, read as the types the plan gives them.
fn bound(plan: &Plan, parameters: &Parameters, now: i64) -> Result<Vec<Value>, SqlError> {
    let mut values = Vec::with_capacity(plan.parameters().len());
    for (index, sql_type) in plan.parameters().iter().enumerate() {
        let target = Target {
            column: "parameter",
            column_type: sql_type.column_type(),
            now,
        };
        values.push(parameters.value(index, target)?);
    }
    Ok(values)
}
