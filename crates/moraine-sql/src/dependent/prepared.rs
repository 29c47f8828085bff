//! The plan of a subquery that is run for one row after the other: made once, and in one of two forms. In the first the
//! tables look for the values of the row, which is best where these are a narrow range of keys. In the second the tables
//! are read once, kept, and gone through for each row. Which one is right shows in how long the first takes; the answers
//! are the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;

use super::current::CurrentRow;
use super::node::Wanted;
use super::planned;
use super::references::{self, Replacement};
use super::run::Question;
use crate::error::QueryError;
use crate::provider::RelationExec;

/// Runs that are left to the tables' own search: reading everything is not worth it for fewer.
const SEARCHES_MIN: u32 = 4;
/// What the search may take in all before the tables are read once instead.
const SEARCHING_MAX: Duration = Duration::from_millis(20);
/// What one such run may take on average and go on: reading narrow ranges is as good as going through kept rows.
const NARROW_MAX: Duration = Duration::from_micros(150);
/// Runs over kept rows before they are compared with the search.
const KEPT_RUNS_MIN: u32 = 16;

/// How a subquery is run.
pub(super) enum Prepared {
    /// Its plan is the same for all rows.
    Once(Box<Forms>),
    /// Its plan needs the values themselves.
    Anew,
}

/// A plan for all rows.
pub(super) struct Reusable {
    row: Arc<CurrentRow>,
    physical: Arc<dyn ExecutionPlan>,
    runs: u32,
    spent: Duration,
}

impl Reusable {
    /// The plan for the row of these values.
    fn of(&self, values: Arc<[ScalarValue]>) -> Result<Arc<dyn ExecutionPlan>> {
        self.row.set(values);
        reset_plan_states(Arc::clone(&self.physical))
    }

    fn average(&self) -> Duration {
        self.spent / self.runs.max(1)
    }
}

/// Both forms of a plan, of which one is in use.
pub(super) struct Forms {
    searching: Option<Reusable>,
    keeping: Option<Reusable>,
    keeps: bool,
    is_settled: bool,
}

impl Prepared {
    /// Finds out how a question's subquery is run.
    pub(super) async fn of(question: &Question, state: &Arc<SessionState>) -> Self {
        // What a recursive query has found so far stays in its plan.
        let mut recurs = false;
        let walked = question.plan.apply_with_subqueries(|node| {
            recurs |= matches!(node, LogicalPlan::RecursiveQuery(_));
            Ok(TreeNodeRecursion::Continue)
        });
        if recurs || walked.is_err() {
            return Self::Anew;
        }
        // Some parts of a plan have to be known beforehand, such as the number of rows of a LIMIT.
        let Ok(searching) = reusable(question, state, true).await else {
            return Self::Anew;
        };
        let searches = depends_on_run(&searching.physical);
        Self::Once(Box::new(Forms {
            searching: Some(searching),
            keeping: None,
            keeps: false,
            is_settled: !searches,
        }))
    }

    /// The plan for the row of these values.
    pub(super) async fn plan(
        &mut self,
        question: &Question,
        state: &Arc<SessionState>,
        values: Arc<[ScalarValue]>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Self::Once(forms) = self else {
            let pairs = question.references.iter().cloned().zip(values.iter().cloned());
            let values = pairs.map(|(column, value)| (column, Replacement::Value(value)));
            let plan = references::bound(question.plan.as_ref().clone(), &values.collect())?;
            return planned(state, &limited(plan, question.wanted)?).await;
        };
        if forms.keeps && forms.keeping.is_none() {
            forms.keeping = Some(reusable(question, state, false).await?);
        }
        let used = if forms.keeps {
            &forms.keeping
        } else {
            &forms.searching
        };
        let used = used.as_ref().ok_or_else(|| {
            let detail = "a subquery without a plan".to_owned();
            QueryError::Internal { detail }.wrapped()
        })?;
        used.of(values)
    }

    /// Notes how long a run took. `fits` is false when there was too much to be kept.
    pub(super) fn ran(&mut self, started: Instant, fits: bool) {
        if let Self::Once(forms) = self
            && !forms.is_settled
        {
            forms.ran(started.elapsed(), fits);
        }
    }
}

impl Forms {
    fn ran(&mut self, spent: Duration, fits: bool) {
        let used = if self.keeps {
            &mut self.keeping
        } else {
            &mut self.searching
        };
        let Some(used) = used else { return };
        used.runs += 1;
        // The first run over kept rows reads them.
        if !self.keeps || used.runs > 1 {
            used.spent += spent;
        }
        let average = used.average();
        if !self.keeps {
            let enough = used.runs >= SEARCHES_MIN && used.spent > SEARCHING_MAX;
            self.keeps = enough && average > NARROW_MAX;
            return;
        }
        let is_measured = used.runs > KEPT_RUNS_MIN;
        let searching = self.searching.as_ref().map_or(Duration::ZERO, Reusable::average);
        if !fits || (is_measured && average > searching) {
            self.keeps = false;
            self.keeping = None;
        }
        self.is_settled = !fits || is_measured;
    }
}

async fn reusable(question: &Question, state: &Arc<SessionState>, searches: bool) -> Result<Reusable> {
    let row = CurrentRow::new();
    let replacements = row.replacements(&question.references, searches);
    let plan = references::bound(question.plan.as_ref().clone(), &replacements)?;
    let physical = planned(state, &limited(plan, question.wanted)?).await?;
    let physical = physical.transform_up(|node| {
        Ok(match node.downcast_ref::<RelationExec>() {
            Some(scan) if !scan.depends_on_run() => {
                let kept: Arc<dyn ExecutionPlan> = Arc::new(scan.kept());
                Transformed::yes(kept)
            }
            _ => Transformed::no(node),
        })
    })?;
    Ok(Reusable {
        row,
        physical: physical.data,
        runs: 0,
        spent: Duration::ZERO,
    })
}

/// Whether the tables look for values of the row.
fn depends_on_run(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let depends = plan.exists(|node| {
        Ok(node
            .downcast_ref::<RelationExec>()
            .is_some_and(RelationExec::depends_on_run))
    });
    depends.unwrap_or(true)
}

/// No more rows than matter.
fn limited(plan: LogicalPlan, wanted: Wanted) -> Result<LogicalPlan> {
    let rows = match wanted {
        Wanted::Existence => 1,
        // One more than there may be.
        Wanted::Value => 2,
        Wanted::Elements | Wanted::Rows { .. } => return Ok(plan),
    };
    LogicalPlanBuilder::from(plan).limit(0, Some(rows))?.build()
}
