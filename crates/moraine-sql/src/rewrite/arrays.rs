//! The rows of a subquery as one value: an array of them, or their number. A subquery that refers to the row around it keeps
//! its conditions where the plan can make a join of them, so the aggregate goes into the subquery itself wherever it may.

use sqlparser::ast::{
    Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, OneOrManyWithParens, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, TableFactor, TableWithJoins, Value,
};

use super::expressions::{call, parse};
use super::names;
use crate::error::QueryError;

/// Aggregates under the names that Postgres has for them; a subquery that has one already cannot take another.
const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "avg_of",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "json_agg",
    "max",
    "min",
    "stddev",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// The values of a subquery of one column as an array. Of no rows it is empty.
pub(super) fn of_rows(query: &Query) -> Result<Expr, QueryError> {
    if let Some(array) = over_elements(query) {
        return Ok(call("array_or_empty", vec![array]));
    }
    let mut rows = query.clone();
    let named = |select: &&mut Select| {
        !matches!(
            select.projection.as_slice(),
            [SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)]
        )
    };
    let collected = match plain(&mut rows).filter(named) {
        Some(select) => {
            let item = select.projection.pop();
            let expr = item.and_then(of_item).ok_or_else(no_single_column)?;
            let mut aggregate = call("array_agg", vec![expr]);
            let order = std::mem::take(&mut rows.order_by);
            if let Some(order) = order
                && let OrderByKind::Expressions(order) = order.kind
            {
                order_within(&mut aggregate, order)?;
            }
            if let SetExpr::Select(select) = rows.body.as_mut() {
                select.projection.push(SelectItem::UnnamedExpr(aggregate));
            }
            rows
        }
        None => over_derived("SELECT array_agg(\"v\") FROM (SELECT 1) AS \"e\"(\"v\")", query)?,
    };
    Ok(call("array_or_empty", vec![Expr::Subquery(Box::new(collected))]))
}

/// The number of a subquery's rows, as a query.
pub(super) fn counted(query: &Query) -> Result<Query, QueryError> {
    let mut rows = query.clone();
    if let Some(select) = plain(&mut rows) {
        let star = parse("SELECT count(*)")?;
        if let SetExpr::Select(counting) = *star.body {
            select.projection = counting.projection;
        }
        rows.order_by = None;
        return Ok(rows);
    }
    over_derived("SELECT count(*) FROM (SELECT 1) AS \"e\"", query)
}

fn no_single_column() -> QueryError {
    QueryError::Invalid {
        detail: "subquery must return only one column".to_owned(),
    }
}

fn of_item(item: SelectItem) -> Option<Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// A template whose one derived table becomes the query.
fn over_derived(template: &str, query: &Query) -> Result<Query, QueryError> {
    let mut outer = parse(template)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableWithJoins {
            relation: TableFactor::Derived { subquery, .. },
            ..
        }) = select.from.first_mut()
    {
        **subquery = query.clone();
    }
    Ok(outer)
}

/// The SELECT of a query whose rows are what its FROM and WHERE give, one for one.
fn plain(query: &mut Query) -> Option<&mut Select> {
    let whole = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let aggregated = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => aggregates(expr),
        _ => false,
    });
    let one_for_one = select.distinct.is_none() && !grouped && select.having.is_none() && !aggregated;
    (whole && one_for_one).then_some(select.as_mut())
}

/// Whether an expression may be more or less than one value for each row.
fn aggregates(expr: &Expr) -> bool {
    use std::ops::ControlFlow;
    let found = sqlparser::ast::visit_expressions(expr, |inner| match inner {
        Expr::Function(function) => {
            let name = names::last(&function.name);
            let sets = matches!(
                name.as_str(),
                "unnest" | "generate_series" | "generate_subscripts"
            );
            if sets || function.over.is_some() || AGGREGATES.contains(&name.as_str()) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Orders the rows that an aggregate takes. An ordinal is the aggregated value itself.
fn order_within(aggregate: &mut Expr, order: Vec<OrderByExpr>) -> Result<(), QueryError> {
    let Expr::Function(Function {
        args: FunctionArguments::List(list),
        ..
    }) = aggregate
    else {
        return Ok(());
    };
    let value = list.args.first().and_then(|argument| match argument {
        sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(expr)) => {
            Some(expr.clone())
        }
        _ => None,
    });
    let value = value.ok_or_else(no_single_column)?;
    let order = order.into_iter().map(|mut ordered| {
        if matches!(&ordered.expr, Expr::Value(number) if matches!(number.value, Value::Number(..))) {
            ordered.expr = value.clone();
        }
        ordered
    });
    list.clauses
        .push(FunctionArgumentClause::OrderBy(order.collect()));
    Ok(())
}

/// `SELECT f(x) FROM unnest(array) x` goes over the elements of an array of the row around it.
fn over_elements(query: &Query) -> Option<Expr> {
    if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let ([from], [item]) = (select.from.as_slice(), select.projection.as_slice()) else {
        return None;
    };
    if !from.joins.is_empty() || select.selection.is_some() || select.distinct.is_some() {
        return None;
    }
    let TableFactor::UNNEST {
        alias: Some(alias),
        array_exprs,
        with_offset: false,
        with_ordinality: false,
        ..
    } = &from.relation
    else {
        return None;
    };
    let ([array], [column]) = (array_exprs.as_slice(), alias.columns.as_slice()) else {
        return None;
    };
    let element = column.name.clone();
    let body = match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
        _ => return None,
    };
    if aggregates(&body) || aggregates(array) {
        return None;
    }
    let lambda = Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::One(LambdaFunctionParameter {
            name: Ident::with_quote('"', element.value.clone()),
            data_type: None,
        }),
        body: Box::new(body),
        syntax: LambdaSyntax::Arrow,
    });
    Some(call("array_transform", vec![array.clone(), lambda]))
}
