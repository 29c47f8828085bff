//! The set operations that count how often each row is there.

use sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, TableWithJoins,
};

use super::expressions::parse;
use super::names;
use crate::error::QueryError;

fn quoted(name: &str) -> String {
    Ident::with_quote('"', name.replace('"', "\"\"")).to_string()
}

/// `INTERSECT ALL` and `EXCEPT ALL`: equal rows are numbered, so that they differ, and the numbers are taken away again.
pub(super) fn counted(body: &mut SetExpr) -> Result<(), QueryError> {
    let SetExpr::SetOperation {
        op,
        set_quantifier,
        left,
        right,
    } = body
    else {
        return Ok(());
    };
    counted(left)?;
    counted(right)?;
    let counts = matches!(op, SetOperator::Intersect | SetOperator::Except);
    if !counts || *set_quantifier != SetQuantifier::All {
        return Ok(());
    }
    let names =
        columns(left).ok_or_else(|| QueryError::unsupported(format!("{op} ALL of * or of VALUES")))?;
    let parts: Vec<String> = (0..names.len())
        .map(|index| format!("\"\u{1}{index}\""))
        .collect();
    let parts = parts.join(", ");
    let numbered = format!(
        "SELECT {parts}, row_number() OVER (PARTITION BY {parts}) FROM (SELECT 1) AS \"\u{1}side\"({parts})"
    );
    let shown = names.iter().enumerate();
    let shown = shown.map(|(index, name)| format!("\"\u{1}{index}\" AS {}", quoted(name)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let mut query = parse(&format!(
        "SELECT {shown} FROM ({numbered} {op} {numbered}) AS \"\u{1}both\"({parts}, \"\u{1}number\")"
    ))?;
    if let Some(both) = derived(&mut query.body)
        && let SetExpr::SetOperation {
            left: one,
            right: other,
            ..
        } = both.body.as_mut()
        && let (Some(one), Some(other)) = (derived(one), derived(other))
    {
        std::mem::swap(&mut one.body, left);
        std::mem::swap(&mut other.body, right);
    }
    *body = *query.body;
    Ok(())
}

/// The query in a SELECT's FROM.
fn derived(body: &mut SetExpr) -> Option<&mut Query> {
    let SetExpr::Select(select) = body else {
        return None;
    };
    match select.from.first_mut() {
        Some(TableWithJoins {
            relation: TableFactor::Derived { subquery, .. },
            ..
        }) => Some(subquery),
        _ => None,
    }
}

/// The names of a query's columns, as far as they can be told from its text.
fn columns(body: &SetExpr) -> Option<Vec<String>> {
    match body {
        SetExpr::Query(query) => columns(&query.body),
        SetExpr::SetOperation { left, .. } => columns(left),
        SetExpr::Select(select) => {
            let name = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(names::fold(alias)),
                SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(names::fold(ident)),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(names::fold),
                _ => None,
            };
            select.projection.iter().map(name).collect()
        }
        _ => None,
    }
}
