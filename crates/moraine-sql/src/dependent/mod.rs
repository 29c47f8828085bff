//! Subqueries that depend on the row around them. DataFusion makes joins of those that compare by `=` and refuses the
//! others; here such a subquery is run for each different row, with the row's values in the place of its references, so
//! it may be anything. Rows that need no answer (another branch of a CASE decides) are not asked about.
//!
//! [`planned`] is the way in: DataFusion is asked first. `references` knows which columns of which row a subquery means,
//! `rewrite` takes subqueries out of a plan's expressions, `node` is what stands in the plan for them, and `run` runs them:
//! by a plan that `prepared` makes once for all rows, in which `current` is the row at hand.

mod current;
mod node;
mod prepared;
mod references;
mod rewrite;
mod run;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use current::is_of_run;
pub(crate) use node::Planner;

/// The way to run a plan.
pub(crate) async fn planned(state: &Arc<SessionState>, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let refused = match state.create_physical_plan(plan).await {
        Ok(physical) => return Ok(physical),
        Err(refused) => refused,
    };
    match rewrite::rewritten(plan, state)? {
        Some(rewritten) => state.create_physical_plan(&rewritten).await,
        None => Err(refused),
    }
}
