//! What is left of a plan whose tables have no rows. Clients that describe a table ask the catalogs about many kinds of
//! things that no lake has, in subqueries that no join can be made of; over no rows they are known without one.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, JoinType, Result, ScalarValue};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Subquery};

/// The plan without what depends on tables that have no rows.
pub(crate) fn without_empty_tables(plan: LogicalPlan) -> Result<LogicalPlan> {
    let pruned = plan.transform_up_with_subqueries(|node| {
        let node = known_subqueries(node)?;
        Ok(Transformed::yes(emptied(node)?))
    })?;
    Ok(pruned.data)
}

fn nothing(schema: DFSchemaRef) -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation {
        produce_one_row: false,
        schema,
    })
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(relation) if !relation.produce_one_row)
}

/// A node over inputs that have been looked at already.
fn emptied(node: LogicalPlan) -> Result<LogicalPlan> {
    let rows = match &node {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let provider: &dyn Any = provider.as_ref();
            !provider.is::<EmptyTable>()
        }
        LogicalPlan::Filter(filter) => {
            let never = matches!(
                &filter.predicate,
                Expr::Literal(ScalarValue::Boolean(Some(false)), _)
            );
            !never && !is_empty(&filter.input)
        }
        LogicalPlan::Projection(projection) => !is_empty(&projection.input),
        LogicalPlan::Sort(sort) => !is_empty(&sort.input),
        LogicalPlan::Limit(limit) => !is_empty(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => !is_empty(&alias.input),
        LogicalPlan::Window(window) => !is_empty(&window.input),
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner => !is_empty(&join.left) && !is_empty(&join.right),
            JoinType::Left => !is_empty(&join.left),
            JoinType::Right => !is_empty(&join.right),
            _ => true,
        },
        LogicalPlan::Aggregate(aggregate) if is_empty(&aggregate.input) => {
            if !aggregate.group_expr.is_empty() {
                return Ok(nothing(Arc::clone(&aggregate.schema)));
            }
            return of_nothing(aggregate);
        }
        _ => true,
    };
    if rows {
        return Ok(node);
    }
    Ok(nothing(Arc::clone(node.schema())))
}

/// Aggregates over no rows: counts are zero, everything else is NULL.
fn of_nothing(aggregate: &Aggregate) -> Result<LogicalPlan> {
    let one_row = LogicalPlanBuilder::empty(true);
    let mut values = Vec::with_capacity(aggregate.aggr_expr.len());
    for (expr, (qualifier, field)) in aggregate.aggr_expr.iter().zip(aggregate.schema.iter()) {
        let counts = match expr.clone().unalias() {
            Expr::AggregateFunction(function) => function.func.name() == "count",
            _ => false,
        };
        let value = if counts {
            ScalarValue::Int64(Some(0))
        } else {
            ScalarValue::try_from(field.data_type())?
        };
        values.push(Expr::Literal(value, None).alias_qualified(qualifier.cloned(), field.name()));
    }
    one_row.project(values)?.build()
}

/// Subqueries whose answer is known, and what the others still refer to.
fn known_subqueries(node: LogicalPlan) -> Result<LogicalPlan> {
    let preserver = NamePreserver::new(&node);
    let node = node.map_expressions(|expr| {
        let name = preserver.save(&expr);
        let known = expr.transform_up(|expr| {
            Ok(match expr {
                Expr::ScalarSubquery(subquery) if is_empty(&subquery.subquery) => {
                    let field = subquery.subquery.schema().field(0).clone();
                    Transformed::yes(Expr::Literal(ScalarValue::try_from(field.data_type())?, None))
                }
                Expr::ScalarSubquery(subquery) => Transformed::yes(Expr::ScalarSubquery(own(subquery)?)),
                Expr::Exists(Exists { subquery, negated }) if is_empty(&subquery.subquery) => {
                    Transformed::yes(Expr::Literal(ScalarValue::Boolean(Some(negated)), None))
                }
                Expr::InSubquery(InSubquery {
                    subquery, negated, ..
                }) if is_empty(&subquery.subquery) => {
                    Transformed::yes(Expr::Literal(ScalarValue::Boolean(Some(negated)), None))
                }
                expr => Transformed::no(expr),
            })
        })?;
        Ok(if known.transformed {
            Transformed::yes(name.restore(known.data))
        } else {
            Transformed::no(known.data)
        })
    })?;
    if node.transformed {
        return node.data.recompute_schema();
    }
    Ok(node.data)
}

/// A subquery that no longer refers to the row around it says so.
fn own(mut subquery: Subquery) -> Result<Subquery> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(subquery);
    }
    let mut refers = false;
    subquery.subquery.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            refers |= expr.exists(|inner| Ok(matches!(inner, Expr::OuterReferenceColumn(..))))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if !refers {
        subquery.outer_ref_columns.clear();
    }
    Ok(subquery)
}
