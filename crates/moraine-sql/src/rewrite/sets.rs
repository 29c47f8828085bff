//! The set operations that count how often each row is there, and the command that is all rows of a table.

use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, Table,
    TableFactor, TableWithJoins,
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

/// The tables of the TABLE commands in a query's body.
pub(super) fn tables(body: &SetExpr) -> Vec<ObjectName> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            let mut tables = self::tables(left);
            tables.extend(self::tables(right));
            tables
        }
        SetExpr::Table(table) => vec![named(table)],
        _ => Vec::new(),
    }
}

/// The parser keeps no quotes; a name without capitals needs none.
fn named(table: &Table) -> ObjectName {
    let parts = [&table.schema_name, &table.table_name].into_iter().flatten();
    let parts = parts.map(|part| ObjectNamePart::Identifier(Ident::new(part)));
    ObjectName(parts.collect())
}

/// `TABLE t` is `SELECT * FROM t`.
pub(super) fn spelled_out(body: &mut SetExpr) -> Result<(), QueryError> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            spelled_out(left)?;
            spelled_out(right)
        }
        SetExpr::Table(table) => {
            let wanted = named(table);
            let mut query = parse("SELECT * FROM t")?;
            if let SetExpr::Select(select) = query.body.as_mut()
                && let Some(TableFactor::Table { name, .. }) =
                    select.from.first_mut().map(|from| &mut from.relation)
            {
                *name = wanted;
            }
            *body = *query.body;
            Ok(())
        }
        _ => Ok(()),
    }
}
