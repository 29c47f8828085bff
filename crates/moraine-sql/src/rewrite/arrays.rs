//! The rows of a subquery as one value: an array of them, or their number. A subquery that refers to the row around it keeps
//! its conditions where the plan can make a join of them, so the aggregate goes into the subquery itself wherever it may.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, LimitClause, OneOrManyWithParens, OrderByExpr, OrderByKind, Query,
    Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value, Visit, Visitor,
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

/// Whether an expression may be more or less than one value for each row. What a subquery in it does is its own.
fn aggregates(expr: &Expr) -> bool {
    let mut found = Aggregates { depth: 0 };
    expr.visit(&mut found).is_break()
}

struct Aggregates {
    depth: usize,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && self.depth == 0
        {
            let name = names::last(&function.name);
            let sets = matches!(
                name.as_str(),
                "unnest" | "generate_series" | "generate_subscripts" | "regexp_split_to_table"
            );
            if sets || function.over.is_some() || AGGREGATES.contains(&name.as_str()) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// A scalar subquery that refers to the row around it as the aggregate that the plan can make a join of: the one value of
/// an array, which fails for more than one. `None` for one that needs no other form.
pub(super) fn single(query: &Query) -> Option<Expr> {
    if !refers_outside(query) {
        return None;
    }
    if let Some(array) = over_elements(query) {
        return Some(call("only_element", vec![array]));
    }
    let mut rows = query.clone();
    let first_only = matches!(
        &rows.limit_clause,
        Some(LimitClause::LimitOffset { limit: Some(Expr::Value(limit)), offset: None, .. })
            if matches!(&limit.value, Value::Number(digits, _) if digits == "1")
    );
    if first_only {
        rows.limit_clause = None;
    }
    let select = plain(&mut rows)?;
    if !matches!(
        select.projection.as_slice(),
        [SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }]
    ) {
        return None;
    }
    let value = of_item(select.projection.pop()?)?;
    let mut aggregate = call("array_agg", vec![value]);
    if let Some(order) = rows.order_by.take()
        && let OrderByKind::Expressions(order) = order.kind
    {
        order_within(&mut aggregate, order).ok()?;
    }
    let function = if first_only {
        "first_element"
    } else {
        "only_element"
    };
    if let SetExpr::Select(select) = rows.body.as_mut() {
        select.projection.push(SelectItem::UnnamedExpr(aggregate));
    }
    Some(call(function, vec![Expr::Subquery(Box::new(rows))]))
}

/// Whether a subquery names a column of a table that is not in its own FROM, or may do so with a name in its WHERE that
/// says no table.
fn refers_outside(query: &Query) -> bool {
    let mut names = Qualifiers::default();
    let _ = query.visit(&mut names);
    let unqualified = match query.body.as_ref() {
        SetExpr::Select(select) => select.selection.as_ref().is_some_and(|condition| {
            let plain = |expr: &Expr| match expr {
                Expr::Identifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            sqlparser::ast::visit_expressions(condition, plain).is_break()
        }),
        _ => false,
    };
    unqualified || names.used.iter().any(|used| !names.given.contains(used))
}

#[derive(Default)]
struct Qualifiers {
    given: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl Visitor for Qualifiers {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { alias, name, .. } => {
                if alias.is_none() {
                    self.given.insert(names::last(name));
                }
                alias
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => alias,
            _ => &None,
        };
        self.given
            .extend(alias.iter().map(|alias| names::fold(&alias.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [.., qualifier, _] = parts.as_slice()
        {
            self.used.insert(names::fold(qualifier));
        }
        ControlFlow::Continue(())
    }
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
    if !from.joins.is_empty() || select.distinct.is_some() {
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
    let over = |function: &str, array: Expr, body: Expr| {
        let lambda = Expr::Lambda(LambdaFunction {
            params: OneOrManyWithParens::One(LambdaFunctionParameter {
                name: Ident::with_quote('"', element.value.clone()),
                data_type: None,
            }),
            body: Box::new(body),
            syntax: LambdaSyntax::Arrow,
        });
        call(function, vec![array, lambda])
    };
    let kept = match &select.selection {
        Some(condition) if aggregates(condition) => return None,
        Some(condition) => over("array_filter", array.clone(), condition.clone()),
        None => array.clone(),
    };
    Some(over("array_transform", kept, body))
}
