//! `SELECT set_config(name, value, is_local)`: a query that is a SET.

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr,
    TableFactor, TableWithJoins, Value as SqlValue,
};

use crate::errors::SqlError;

/// What the call sets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SetConfig {
    /// The setting's name.
    pub(super) name: String,
    /// Its new value; `None` for its default.
    pub(super) value: Option<String>,
    /// Whether nothing is set, and no row comes back, when there is no such setting.
    pub(super) if_known: bool,
}

/// The call a query is; `None` for any other query.
///
/// # Errors
/// 0A000 for a call among others, or with arguments that are not written out, or for the transaction only.
pub(super) fn of(query: &Query) -> Result<Option<SetConfig>, SqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Ok(None);
    };
    let calls: Vec<_> = select.projection.iter().filter_map(call).collect();
    let Some(arguments) = calls.first() else {
        return Ok(None);
    };
    if select.projection.len() > 1 {
        return Err(SqlError::unsupported("set_config beside anything else"));
    }
    let name = match (select.from.as_slice(), &select.selection) {
        ([], None) => arguments.first().and_then(literal),
        // `SELECT set_config(name, …) FROM pg_settings WHERE name = '…'` sets what there is.
        ([from], Some(condition)) if is_settings(from) && arguments.first().is_some_and(is_name) => {
            named(condition).map(Some)
        }
        _ => return Err(SqlError::unsupported("set_config in a query like this")),
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
    if local.as_deref() == Some("true") {
        return Err(SqlError::unsupported("set_config for one transaction"));
    }
    Ok(Some(SetConfig {
        name,
        value,
        if_known: !select.from.is_empty(),
    }))
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
