//! `set_config(name, value, is_local)` in a SELECT without a table: a query that is a SET.

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SelectItem, SetExpr,
    TableFactor, TableWithJoins, Value as SqlValue,
};

use crate::errors::SqlError;

/// What a call sets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SetConfig {
    /// The setting's name.
    pub(super) name: String,
    /// Its new value; `None` for its default.
    pub(super) value: Option<String>,
    /// Whether nothing is set, and no row comes back, when there is no such setting.
    pub(super) if_known: bool,
    /// Whether for the present transaction only.
    pub(super) is_local: bool,
}

/// The calls in a query, and the query with the values they give in their places; `None` for any other query.
///
/// # Errors
/// 0A000 for a call with arguments that are not written out, or in a query of tables.
pub(super) fn of(query: &Query) -> Result<Option<(Vec<SetConfig>, Query)>, SqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Ok(None);
    };
    if select.projection.iter().all(|item| call(item).is_none()) {
        return Ok(None);
    }
    // `SELECT set_config(name, …) FROM pg_settings WHERE name = '…'` sets what there is.
    let of_settings = match (select.from.as_slice(), &select.selection) {
        ([], None) => None,
        ([from], Some(condition)) if is_settings(from) => named(condition),
        _ => return Err(SqlError::unsupported("set_config in a query like this")),
    };
    if !select.from.is_empty() && of_settings.is_none() {
        return Err(SqlError::unsupported("set_config in a query like this"));
    }
    let mut calls = Vec::new();
    let mut answered = select.clone();
    for item in &mut answered.projection {
        let Some(arguments) = call(item) else { continue };
        let set = set(&arguments, of_settings.as_ref())?;
        let alias = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            _ => Ident::new("set_config"),
        };
        let value = match &set.value {
            Some(value) => SqlValue::SingleQuotedString(value.clone()),
            None => SqlValue::Null,
        };
        *item = SelectItem::ExprWithAlias {
            expr: Expr::value(value),
            alias,
        };
        calls.push(set);
    }
    let mut query = query.clone();
    query.body = Box::new(SetExpr::Select(answered));
    Ok(Some((calls, query)))
}

fn set(arguments: &[&Expr], of_settings: Option<&String>) -> Result<SetConfig, SqlError> {
    let name = match of_settings {
        Some(name) if arguments.first().is_some_and(is_name) => Some(Some(name.clone())),
        Some(_) => None,
        None => arguments.first().and_then(literal),
    };
    let (Some(Some(name)), Some(value), Some(local)) = (
        name,
        arguments.get(1).and_then(literal),
        arguments.get(2).and_then(literal),
    ) else {
        return Err(SqlError::unsupported(
            "set_config with arguments that are not written out",
        ));
    };
    Ok(SetConfig {
        name,
        value,
        is_local: local.as_deref() == Some("true"),
        if_known: of_settings.is_some(),
    })
}

fn is_settings(from: &TableWithJoins) -> bool {
    let TableFactor::Table { name, .. } = &from.relation else {
        return false;
    };
    let name = name.to_string().to_lowercase();
    from.joins.is_empty() && name.strip_prefix("pg_catalog.").unwrap_or(&name) == "pg_settings"
}

fn is_name(expr: &&Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.value.eq_ignore_ascii_case("name"))
}

/// The name that a condition `name = '…'` asks for.
fn named(condition: &Expr) -> Option<String> {
    match condition {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } if is_name(&left.as_ref()) => literal(&right.as_ref()).flatten(),
        _ => None,
    }
}

fn call(item: &SelectItem) -> Option<Vec<&Expr>> {
    let (SelectItem::UnnamedExpr(Expr::Function(function))
    | SelectItem::ExprWithAlias {
        expr: Expr::Function(function),
        ..
    }) = item
    else {
        return None;
    };
    let name = function.name.to_string().to_lowercase();
    if name.strip_prefix("pg_catalog.").unwrap_or(&name) != "set_config" {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else {
        return Some(Vec::new());
    };
    let exprs = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some(exprs.collect())
}

/// The text of a literal; an inner `None` is NULL.
fn literal(expr: &&Expr) -> Option<Option<String>> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        SqlValue::SingleQuotedString(text) => Some(Some(text.clone())),
        SqlValue::Number(digits, _) => Some(Some(digits.clone())),
        SqlValue::Boolean(value) => Some(Some(value.to_string())),
        SqlValue::Null => Some(None),
        _ => None,
    }
}
