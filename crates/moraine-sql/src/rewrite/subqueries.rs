//! Subqueries where a plan has no join to make of them: `EXISTS` and `IN (SELECT …)` outside of WHERE become scalar
//! subqueries, which may stand anywhere.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, GroupByExpr, JoinConstraint, JoinOperator, OrderByKind, Query,
    Select, SelectItem, VisitMut, VisitorMut,
};

use super::arrays;
use super::expressions::{call, not, taken};
use crate::dialect::QUANTIFIED;
use crate::error::QueryError;

/// Rewrites the subqueries of a SELECT's clauses other than WHERE.
pub(super) fn outside_of_where(select: &mut Select) -> Result<(), QueryError> {
    let mut values = Values { depth: 0 };
    let mut flow = ControlFlow::Continue(());
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            flow = visited(flow, expr, &mut values);
        }
    }
    if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
        for expr in exprs {
            flow = visited(flow, expr, &mut values);
        }
    }
    if let Some(having) = &mut select.having {
        flow = visited(flow, having, &mut values);
    }
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        if let Some(condition) = on(&mut join.join_operator) {
            flow = visited(flow, condition, &mut values);
        }
    }
    done(flow)
}

/// Rewrites the subqueries of a query's ORDER BY.
pub(super) fn of_order(query: &mut Query) -> Result<(), QueryError> {
    let mut values = Values { depth: 0 };
    let mut flow = ControlFlow::Continue(());
    if let Some(order) = &mut query.order_by
        && let OrderByKind::Expressions(exprs) = &mut order.kind
    {
        super::rows::in_order(exprs);
        for ordered in exprs {
            flow = visited(flow, &mut ordered.expr, &mut values);
        }
    }
    done(flow)
}

fn visited(flow: ControlFlow<QueryError>, expr: &mut Expr, values: &mut Values) -> ControlFlow<QueryError> {
    match flow {
        ControlFlow::Continue(()) => expr.visit(values),
        stopped => stopped,
    }
}

fn done(flow: ControlFlow<QueryError>) -> Result<(), QueryError> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn on(operator: &mut JoinOperator) -> Option<&mut Expr> {
    match operator {
        JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition))
        | JoinOperator::Left(JoinConstraint::On(condition))
        | JoinOperator::LeftOuter(JoinConstraint::On(condition))
        | JoinOperator::Right(JoinConstraint::On(condition))
        | JoinOperator::RightOuter(JoinConstraint::On(condition))
        | JoinOperator::FullOuter(JoinConstraint::On(condition)) => Some(condition),
        _ => None,
    }
}

/// Gives subqueries that are truth values the form of scalar ones. Those of a subquery are its own SELECT's business.
struct Values {
    depth: usize,
}

impl VisitorMut for Values {
    type Break = QueryError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<QueryError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<QueryError> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<QueryError> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        super::flow(value(expr))
    }
}

fn value(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::Exists { subquery, negated } => {
            let count = Expr::Subquery(Box::new(arrays::counted(subquery)?));
            let zero = Expr::value(sqlparser::ast::Value::Number("0".to_owned(), false));
            let op = if *negated {
                BinaryOperator::Eq
            } else {
                BinaryOperator::Gt
            };
            // A correlated count over no rows is NULL where the plan has made a join of it.
            let counted = call("coalesce", vec![count, zero.clone()]);
            *expr = Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(counted),
                op,
                right: Box::new(zero),
            }));
            Ok(())
        }
        Expr::InSubquery {
            expr: needle,
            subquery,
            negated,
        } => {
            let any = quantified(needle, &BinaryOperator::Eq, true, arrays::of_rows(subquery)?)?;
            *expr = if *negated { not(any) } else { any };
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The parts of `left op ANY (right)`, and whether it is not ALL.
pub(super) fn quantification(
    expr: &mut Expr,
) -> Option<(&mut Box<Expr>, &mut BinaryOperator, &mut Box<Expr>, bool)> {
    match expr {
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => Some((left, compare_op, right, true)),
        Expr::AllOp {
            left,
            compare_op,
            right,
        } => Some((left, compare_op, right, false)),
        _ => None,
    }
}

/// `needle = ANY (subquery)` is `IN`, and with another operator it is about the array of the subquery's rows.
pub(super) fn any_or_all(expr: &mut Expr) {
    let Some((needle, op, right, any)) = quantification(expr) else {
        return;
    };
    let Expr::Subquery(subquery) = right.as_mut() else {
        return;
    };
    let negated = match (&*op, any) {
        (BinaryOperator::Eq, true) => false,
        (BinaryOperator::NotEq, false) => true,
        _ => {
            let mut array = call("array", Vec::new());
            if let Expr::Function(function) = &mut array {
                function.args = FunctionArguments::Subquery(subquery.clone());
            }
            **right = array;
            return;
        }
    };
    *expr = Expr::InSubquery {
        expr: Box::new(taken(needle)),
        subquery: subquery.clone(),
        negated,
    };
}

/// `needle op ANY (array)` or `needle op ALL (array)`, as an operator of its own that the planner is asked about.
pub(super) fn quantified(
    needle: &mut Expr,
    op: &BinaryOperator,
    any: bool,
    array: Expr,
) -> Result<Expr, QueryError> {
    let name = crate::functions::quantified_name(op, any)
        .ok_or_else(|| QueryError::unsupported(format!("{op} {}", if any { "ANY" } else { "ALL" })))?;
    Ok(Expr::BinaryOp {
        left: Box::new(taken(needle)),
        op: BinaryOperator::PGCustomBinaryOperator(vec![QUANTIFIED.to_owned(), name.to_owned()]),
        right: Box::new(array),
    })
}
