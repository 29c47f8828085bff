//! What stands in a plan for subqueries that depend on the rows of its input.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Column, DFSchemaRef, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::run::{DependentExec, Question};

/// What is wanted of a subquery's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Wanted {
    /// The value of the only row; NULL without one.
    Value,
    /// Whether there are any.
    Existence,
    /// The values of all, as an array.
    Elements,
    /// All of them, each beside the row it depends on. A row without any stays if `keep` is set.
    Rows { keep: bool },
}

/// A subquery, and what it needs to know of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ask {
    pub(super) wanted: Wanted,
    pub(super) plan: Arc<LogicalPlan>,
    /// What the subquery refers to.
    pub(super) references: Vec<Column>,
    /// The same as expressions over the input, one for each reference.
    pub(super) values: Vec<Expr>,
    /// For which rows there is something to ask; for all without one.
    pub(super) guard: Option<Expr>,
    /// The columns that hold the answer; any may be NULL.
    pub(super) columns: DFSchemaRef,
}

/// The input's rows with the answers of subqueries in further columns.
#[derive(Clone)]
pub(super) struct Dependent {
    pub(super) input: LogicalPlan,
    pub(super) asks: Vec<Ask>,
    pub(super) state: Arc<SessionState>,
    schema: DFSchemaRef,
}

impl Dependent {
    pub(super) fn new(input: LogicalPlan, asks: Vec<Ask>, state: Arc<SessionState>) -> Result<Self> {
        let mut schema = input.schema().as_ref().clone();
        for ask in &asks {
            schema = schema.join(&ask.columns)?;
        }
        Ok(Self {
            input,
            asks,
            state,
            schema: Arc::new(schema),
        })
    }
}

impl fmt::Debug for Dependent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Dependent")
            .field("asks", &self.asks)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Dependent {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input && self.asks == other.asks
    }
}

impl Eq for Dependent {}

impl Hash for Dependent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.asks.hash(state);
    }
}

impl PartialOrd for Dependent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Dependent {
    fn name(&self) -> &str {
        "Dependent"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let of_ask = |ask: &Ask| ask.values.iter().chain(&ask.guard).cloned().collect::<Vec<_>>();
        self.asks.iter().flat_map(of_ask).collect()
    }

    // A condition on what comes from below may as well be met there.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let columns = self.asks.iter().flat_map(|ask| ask.columns.columns());
        columns.map(|column| column.name).collect()
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<Wanted> = self.asks.iter().map(|ask| ask.wanted).collect();
        write!(out, "Dependent: {wanted:?}")
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut exprs = exprs.into_iter();
        let mut asks = self.asks.clone();
        for ask in &mut asks {
            ask.values = exprs.by_ref().take(ask.references.len()).collect();
            if ask.guard.is_some() {
                ask.guard = exprs.next();
            }
        }
        let input = inputs.pop().unwrap_or_else(|| self.input.clone());
        Self::new(input, asks, Arc::clone(&self.state))
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let own = self.input.schema().fields().len();
        Some(vec![
            output_columns
                .iter()
                .copied()
                .filter(|column| *column < own)
                .collect(),
        ])
    }
}

/// Plans as DataFusion does, and [`Dependent`] besides.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Planner)]);
        planner.create_physical_plan(plan, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), Some(input)) = (node.as_any().downcast_ref::<Dependent>(), physical_inputs.first())
        else {
            return Ok(None);
        };
        let schema = node.input.schema();
        let physical = |expr: &Expr| planner.create_physical_expr(expr, schema, session, context);
        let question = |ask: &Ask| {
            Ok(Question {
                wanted: ask.wanted,
                plan: Arc::clone(&ask.plan),
                references: ask.references.clone(),
                values: ask.values.iter().map(physical).collect::<Result<_>>()?,
                guard: ask.guard.as_ref().map(physical).transpose()?,
                columns: Arc::clone(ask.columns.inner()),
            })
        };
        let questions = node.asks.iter().map(question).collect::<Result<_>>()?;
        let exec = DependentExec::new(Arc::clone(input), questions, Arc::clone(&node.state));
        Ok(Some(Arc::new(exec)))
    }
}
