//! `FETCH FIRST n ROWS WITH TIES`: the rows whose rank in the query's order is at most n, without the first ones that an
//! OFFSET leaves out.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::functions_window::rank::rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort,
    WindowFunctionDefinition, WindowUDF, lit,
};

use crate::error::QueryError;

/// The function that marks a number of rows. No query can write it.
pub(crate) const WITH_TIES: &str = "\u{1}with_ties";
const RANK: &str = "\u{1}rank";
const NUMBER: &str = "\u{1}number";

/// The plan with the rows that its marked limits mean.
pub(crate) fn with_ties(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Limit(limit) => match marked(limit) {
            Some(count) => Ok(Transformed::yes(ranked(limit, count)?)),
            None => Ok(Transformed::no(node)),
        },
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

fn marked(limit: &Limit) -> Option<Expr> {
    match limit.fetch.as_deref() {
        Some(Expr::ScalarFunction(function)) if function.func.name() == WITH_TIES => {
            function.args.first().cloned()
        }
        _ => None,
    }
}

fn ranked(limit: &Limit, count: Expr) -> Result<LogicalPlan> {
    match limit.input.as_ref() {
        LogicalPlan::Sort(sort) => of_sort(sort, limit.skip.as_deref(), count),
        // What the rows are sorted by and the result does not have is left out again here.
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Sort(sort) => {
                let sorted = of_sort(sort, limit.skip.as_deref(), count)?;
                let exprs = projection.expr.clone();
                Ok(LogicalPlan::Projection(Projection::try_new(
                    exprs,
                    Arc::new(sorted),
                )?))
            }
            _ => Err(without_order()),
        },
        _ => Err(without_order()),
    }
}

fn without_order() -> datafusion::error::DataFusionError {
    QueryError::unsupported("FETCH … WITH TIES in this place").wrapped()
}

fn of_sort(sort: &Sort, skip: Option<&Expr>, count: Expr) -> Result<LogicalPlan> {
    let skipped = || skip.cloned().unwrap_or_else(|| lit(0_i64));
    let window = |function: Arc<WindowUDF>, name: &str| {
        let function = WindowFunction::new(WindowFunctionDefinition::WindowUDF(function), Vec::new());
        Ok::<_, datafusion::error::DataFusionError>(
            Expr::from(function)
                .order_by(sort.expr.clone())
                .build()?
                .alias(name),
        )
    };
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let number = |expr: Expr| {
        Expr::Cast(datafusion::logical_expr::Cast::new(
            Box::new(expr),
            arrow_schema::DataType::Int64,
        ))
    };
    let kept = number(column(RANK)).lt_eq(skipped() + count);
    let kept = match skip {
        Some(_) => kept.and(number(column(NUMBER)).gt(skipped())),
        None => kept,
    };
    let columns = sort.input.schema().columns().into_iter().map(Expr::Column);
    let windows = [window(rank_udwf(), RANK)?, window(row_number_udwf(), NUMBER)?];
    let all: Vec<Expr> = columns.clone().chain(windows.iter().cloned()).collect();
    let plain: Vec<Expr> = windows.into_iter().map(Expr::unalias).collect();
    LogicalPlanBuilder::from(sort.input.as_ref().clone())
        .window(plain)?
        .project(all.into_iter().map(|expr| match expr {
            Expr::Alias(alias) => {
                let name = alias.expr.schema_name().to_string();
                column(&name).alias(alias.name)
            }
            expr => expr,
        }))?
        .filter(kept)?
        .sort(sort.expr.clone())?
        .project(columns)?
        .build()
}
