//! A plan whose subqueries that depend on a row have been taken out of its expressions and joins.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinType, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Case, Cast, Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::{conjunction, merge_schema};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Extension, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort,
    Subquery, lit,
};

use super::node::{Ask, Dependent, Wanted};
use super::references;
use crate::error::QueryError;
use crate::functions;

/// How the columns of answers are called, before their number.
const ANSWER: &str = "\u{1}answer";

/// The plan with its dependent subqueries as nodes of their own; `None` when it has none.
pub(super) fn rewritten(plan: &LogicalPlan, state: &Arc<SessionState>) -> Result<Option<LogicalPlan>> {
    let mut rewriter = Rewriter { state, answers: 0 };
    let rewritten = plan.clone().transform_down(|node| rewriter.node(node))?;
    if !rewritten.transformed {
        return Ok(None);
    }
    // Columns that come from a subquery may be NULL wherever they go.
    let plan = rewritten
        .data
        .transform_up(|node| node.recompute_schema().map(Transformed::yes))?;
    Ok(Some(plan.data))
}

/// The references of a subquery that mean the row of this schema.
fn references_to(around: &DFSchema, plan: &LogicalPlan) -> Result<Vec<Column>> {
    let free = references::of(plan)?.into_iter();
    Ok(free.filter(|column| around.has_column(column)).collect())
}

/// Whether an expression has a subquery that depends on the row.
fn has_dependent(expr: &Expr, around: &DFSchema) -> Result<bool> {
    expr.exists(|part| match references::subquery(part) {
        Some(subquery) => Ok(!references_to(around, &subquery.subquery)?.is_empty()),
        None => Ok(false),
    })
}

struct Rewriter<'a> {
    state: &'a Arc<SessionState>,
    answers: usize,
}

impl Rewriter<'_> {
    fn node(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Sort(sort) = &node
            && let LogicalPlan::Projection(projection) = sort.input.as_ref()
            && let Some(sorted) = self.sort(sort, projection)?
        {
            return Ok(Transformed::yes(sorted));
        }
        let around = merge_schema(&node.inputs());
        let mut depends = false;
        for expr in node.expressions() {
            depends |= has_dependent(&expr, &around)?;
        }
        match node {
            LogicalPlan::Join(join) => {
                let lateral = !references_to(join.left.schema(), &join.right)?.is_empty();
                if !depends && !lateral {
                    return Ok(Transformed::no(LogicalPlan::Join(join)));
                }
                Ok(Transformed::yes(self.join(&join)?))
            }
            node if !depends => Ok(Transformed::no(node)),
            node => Ok(Transformed::yes(self.over_input(node, &around)?)),
        }
    }

    /// A node whose expressions find the answers in its input.
    fn over_input(&mut self, node: LogicalPlan, around: &DFSchema) -> Result<LogicalPlan> {
        let columns = node.schema().columns();
        let same_columns = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
        let preserver = NamePreserver::new(&node);
        let mut asks = Vec::new();
        let node = node.map_expressions(|expr| {
            let name = preserver.save(&expr);
            let expr = self.expression(expr, around, None, &mut asks)?;
            Ok(Transformed::yes(name.restore(expr)))
        })?;
        let node = node.data.map_children(|input| {
            let dependent = Dependent::new(input, std::mem::take(&mut asks), Arc::clone(self.state))?;
            Ok(Transformed::yes(LogicalPlan::Extension(Extension {
                node: Arc::new(dependent),
            })))
        })?;
        let node = node.data.recompute_schema()?;
        if same_columns {
            return Ok(node);
        }
        LogicalPlanBuilder::from(node)
            .project(columns.into_iter().map(Expr::Column))?
            .build()
    }

    /// Rows in the order of answers about what the projection below does not keep; `None` when it keeps everything.
    fn sort(&mut self, sort: &Sort, projection: &Projection) -> Result<Option<LogicalPlan>> {
        let (around, kept) = (projection.input.schema(), sort.input.schema());
        let mut hidden = false;
        for ordered in &sort.expr {
            hidden |= ordered.expr.exists(|part| match references::subquery(part) {
                Some(subquery) => {
                    let references = references_to(around, &subquery.subquery)?;
                    Ok(references.iter().any(|column| !kept.has_column(column)))
                }
                None => Ok(false),
            })?;
        }
        if !hidden {
            return Ok(None);
        }
        let mut asks = Vec::new();
        let mut order = Vec::with_capacity(sort.expr.len());
        for ordered in &sort.expr {
            let expr = self.expression(ordered.expr.clone(), around, None, &mut asks)?;
            order.push(ordered.with_expr(expr));
        }
        for ask in &mut asks {
            // What the projection makes is not there yet when its input is asked about.
            let there = |guard: &Expr| guard.column_refs().iter().all(|column| around.has_column(column));
            ask.guard = ask.guard.take().filter(there);
        }
        let answers = asks
            .iter()
            .flat_map(|ask| ask.columns.columns())
            .map(Expr::Column);
        let exprs: Vec<Expr> = projection.expr.iter().cloned().chain(answers).collect();
        let dependent = Dependent::new(projection.input.as_ref().clone(), asks, Arc::clone(self.state))?;
        let dependent = LogicalPlan::Extension(Extension {
            node: Arc::new(dependent),
        });
        let sorted = LogicalPlan::Sort(Sort {
            expr: order,
            input: Arc::new(LogicalPlanBuilder::from(dependent).project(exprs)?.build()?),
            fetch: sort.fetch,
        });
        let columns = kept.columns().into_iter().map(Expr::Column);
        LogicalPlanBuilder::from(sorted)
            .project(columns)?
            .build()
            .map(Some)
    }

    /// A join whose right side depends on the left one, or becomes so by its condition.
    fn join(&mut self, join: &Join) -> Result<LogicalPlan> {
        if join.join_type == JoinType::Right {
            let turned = Join {
                left: Arc::clone(&join.right),
                right: Arc::clone(&join.left),
                on: join
                    .on
                    .iter()
                    .cloned()
                    .map(|(left, right)| (right, left))
                    .collect(),
                join_type: JoinType::Left,
                ..join.clone()
            };
            let columns = join.schema.columns().into_iter().map(Expr::Column);
            return LogicalPlanBuilder::from(self.join(&turned)?)
                .project(columns)?
                .build();
        }
        let keep = match join.join_type {
            JoinType::Inner => false,
            JoinType::Left => true,
            other => {
                let construct = format!("a {other} join on a subquery that depends on its rows");
                return Err(QueryError::unsupported(construct).wrapped());
            }
        };
        let left = join.left.schema();
        let keys = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let condition = conjunction(keys.chain(join.filter.clone()));
        let mut right = join.right.as_ref().clone();
        if let Some(condition) = condition {
            let condition = condition.transform_up(|part| match part {
                Expr::Column(column) if left.has_column(&column) => {
                    let (_, field) = left.qualified_field_from_column(&column)?;
                    Ok(Transformed::yes(Expr::OuterReferenceColumn(
                        Arc::clone(field),
                        column,
                    )))
                }
                part => Ok(Transformed::no(part)),
            })?;
            right = LogicalPlan::Filter(Filter::try_new(condition.data, Arc::new(right))?);
        }
        let right = without_marks(right)?;
        let fields = right.schema().iter().map(|(qualifier, field)| {
            let field = field.as_ref().clone().with_nullable(true);
            (qualifier.cloned(), Arc::new(field))
        });
        let columns = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        let columns = Arc::new(columns);
        let ask = ask(Wanted::Rows { keep }, right, left, columns)?;
        let dependent = Dependent::new(join.left.as_ref().clone(), vec![ask], Arc::clone(self.state))?;
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(dependent),
        }))
    }

    /// An expression with columns in the place of its dependent subqueries, which are asked where `guard` holds.
    fn expression(
        &mut self,
        expr: Expr,
        around: &DFSchema,
        guard: Option<&Expr>,
        asks: &mut Vec<Ask>,
    ) -> Result<Expr> {
        if !has_dependent(&expr, around)? {
            return Ok(expr);
        }
        match expr {
            Expr::Case(case) => self.case(case, around, guard, asks),
            Expr::ScalarSubquery(subquery) => {
                let field = subquery.subquery.schema().field(0).as_ref().clone();
                self.answer(Wanted::Value, field, &subquery, around, guard, asks)
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let field = Field::new("", DataType::Boolean, true);
                let exists = self.answer(Wanted::Existence, field, &subquery, around, guard, asks)?;
                Ok(if negated { !exists } else { exists })
            }
            Expr::InSubquery(InSubquery {
                expr,
                subquery,
                negated,
            }) if !references_to(around, &subquery.subquery)?.is_empty() => {
                let needle = self.expression(*expr, around, guard, asks)?;
                let member = self.member(needle, &subquery, around, guard, asks)?;
                Ok(if negated { !member } else { member })
            }
            other => {
                let mapped = other.map_children(|child| {
                    self.expression(child, around, guard, asks).map(Transformed::yes)
                })?;
                Ok(mapped.data)
            }
        }
    }

    /// `needle IN (subquery)`, by the array of what the subquery gives.
    fn member(
        &mut self,
        needle: Expr,
        subquery: &Subquery,
        around: &DFSchema,
        guard: Option<&Expr>,
        asks: &mut Vec<Ask>,
    ) -> Result<Expr> {
        let of_rows = subquery.subquery.schema().field(0).data_type().clone();
        // The needle may be an answer by now, which the input does not have yet.
        let mut all = around.clone();
        for ask in asks.iter() {
            all.merge(&ask.columns);
        }
        let of_needle = needle.get_type(&all)?;
        let common = comparison_coercion(&of_needle, &of_rows).unwrap_or_else(|| of_rows.clone());
        let elements = Field::new_list("", Field::new_list_field(common.clone(), true), true);
        let array = self.answer(Wanted::Elements, elements, subquery, around, guard, asks)?;
        let needle = if of_needle == common {
            needle
        } else {
            Expr::Cast(Cast::new(Box::new(needle), common))
        };
        let any = functions::quantified("any_eq").ok_or_else(|| {
            QueryError::Internal {
                detail: "no comparison with the elements of an array".to_owned(),
            }
            .wrapped()
        })?;
        Ok(any.call(vec![needle, array]))
    }

    /// The column with a subquery's answer.
    fn answer(
        &mut self,
        wanted: Wanted,
        field: Field,
        subquery: &Subquery,
        around: &DFSchema,
        guard: Option<&Expr>,
        asks: &mut Vec<Ask>,
    ) -> Result<Expr> {
        self.answers += 1;
        let name = format!("{ANSWER}{}", self.answers);
        let field = Arc::new(field.with_name(&name).with_nullable(true));
        let columns = DFSchema::from_unqualified_fields(vec![field].into(), HashMap::new())?;
        let mut ask = ask(
            wanted,
            subquery.subquery.as_ref().clone(),
            around,
            Arc::new(columns),
        )?;
        ask.guard = guard.cloned();
        asks.push(ask);
        Ok(Expr::Column(Column::new_unqualified(name)))
    }

    /// A branch's subqueries are asked where the conditions lead to that branch.
    fn case(
        &mut self,
        case: Case,
        around: &DFSchema,
        guard: Option<&Expr>,
        asks: &mut Vec<Ask>,
    ) -> Result<Expr> {
        let mut leads = Vec::with_capacity(case.when_then_expr.len());
        let mut whens = Vec::with_capacity(case.when_then_expr.len());
        let operand = case.expr.clone();
        for (when, then) in case.when_then_expr {
            let here = leading(operand.as_deref(), &leads, Some(&when), guard);
            let then = self.expression(*then, around, here.as_ref(), asks)?;
            leads.push(when.as_ref().clone());
            let when = self.expression(*when, around, guard, asks)?;
            whens.push((Box::new(when), Box::new(then)));
        }
        let otherwise = match case.else_expr {
            Some(otherwise) => {
                let here = leading(operand.as_deref(), &leads, None, guard);
                Some(Box::new(self.expression(
                    *otherwise,
                    around,
                    here.as_ref(),
                    asks,
                )?))
            }
            None => None,
        };
        let operand = match case.expr {
            Some(operand) => Some(Box::new(self.expression(*operand, around, guard, asks)?)),
            None => None,
        };
        Ok(Expr::Case(Case::new(operand, whens, otherwise)))
    }
}

/// The condition under which a CASE comes to a branch: that of `when`, or the last one. `None` when it cannot be told
/// beforehand, because it takes a subquery.
fn leading(
    operand: Option<&Expr>,
    before: &[Expr],
    when: Option<&Expr>,
    guard: Option<&Expr>,
) -> Option<Expr> {
    let mut parts = before.iter().chain(when).chain(operand);
    let asks = |expr: &Expr| {
        expr.exists(|part| Ok(references::subquery(part).is_some()))
            .unwrap_or(true)
    };
    if parts.any(asks) {
        return guard.cloned();
    }
    let branch = |when: &Expr, leads: bool| (Box::new(when.clone()), Box::new(lit(leads)));
    let whens = before.iter().map(|earlier| branch(earlier, false));
    let whens: Vec<_> = whens.chain(when.map(|when| branch(when, true))).collect();
    let operand = operand.cloned().map(Box::new);
    let here = Expr::Case(Case::new(operand, whens, Some(Box::new(lit(when.is_none())))));
    Some(match guard {
        Some(guard) => Expr::Case(Case::new(
            None,
            vec![(Box::new(guard.clone()), Box::new(here))],
            Some(Box::new(lit(false))),
        )),
        None => here,
    })
}

fn ask(wanted: Wanted, plan: LogicalPlan, around: &DFSchema, columns: DFSchemaRef) -> Result<Ask> {
    let references = references_to(around, &plan)?;
    Ok(Ask {
        wanted,
        plan: Arc::new(plan),
        values: references.iter().cloned().map(Expr::Column).collect(),
        references,
        guard: None,
        columns,
    })
}

/// A plan without the nodes that only say that what is below them depends on something.
fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up(|node| match node {
        LogicalPlan::Subquery(subquery) => Ok(Transformed::yes(subquery.subquery.as_ref().clone())),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}
