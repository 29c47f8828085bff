//! The names Postgres gives to result columns that the query does not name.

use sqlparser::ast::{Expr, Function, Ident, ObjectName, SelectItem};

/// What Postgres calls a column it has no name for.
const ANONYMOUS: &str = "?column?";
/// Separates a name from what makes it unique inside a plan. It never leaves the engine.
const UNIQUE: char = '\u{1}';

/// An identifier as Postgres reads it.
pub(crate) fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}

/// The name as the client sees it.
pub(crate) fn shown(name: &str) -> &str {
    name.split(UNIQUE).next().unwrap_or_default()
}

/// The last part of a name, folded.
pub(crate) fn last(name: &ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(fold)
        .unwrap_or_default()
}

/// Gives every unnamed item of a projection the name Postgres gives it, and makes equal names unique.
pub(super) fn name_items(items: &mut [SelectItem]) {
    let wildcards = items
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut seen: Vec<String> = Vec::with_capacity(items.len());
    for (index, item) in items.iter_mut().enumerate() {
        let (expr, name, explicit) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = implicit(expr).0;
                (expr.clone(), name, false)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = fold(alias);
                (expr.clone(), name, true)
            }
            _ => continue,
        };
        let is_column = is_column(&expr);
        let repeated = seen.contains(&name) || (wildcards && !explicit);
        seen.push(name.clone());
        if !repeated && (explicit || is_column) {
            continue;
        }
        let name = if repeated {
            format!("{name}{UNIQUE}{index}")
        } else {
            name
        };
        *item = SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', name),
        };
    }
}

/// Whether an expression is nothing but a column.
pub(super) fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// The name of an unnamed expression, and how much it counts against the name of a cast around it. Source: PostgreSQL,
/// `FigureColname`.
fn implicit(expr: &Expr) -> (String, u8) {
    let named = |name: &str, strength: u8| (name.to_owned(), strength);
    match expr {
        Expr::Identifier(ident) => (fold(ident), 2),
        Expr::CompoundIdentifier(idents) => (idents.last().map(fold).unwrap_or_default(), 2),
        Expr::Function(function) => (of_function(function), 2),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => implicit(inner),
        Expr::Cast { expr, data_type, .. } => match implicit(expr) {
            (name, strength) if strength > 1 => (name, strength),
            _ => (type_name(&data_type.to_string()), 1),
        },
        Expr::TypedString(typed) => (type_name(&typed.data_type.to_string()), 1),
        Expr::Case { else_result, .. } => match else_result.as_deref().map(implicit) {
            Some((name, strength)) if strength > 1 => (name, strength),
            _ => named("case", 1),
        },
        Expr::Exists { .. } => named("exists", 2),
        Expr::Array(_) => named("array", 2),
        Expr::Tuple(_) => named("row", 2),
        Expr::BinaryOp {
            op: sqlparser::ast::BinaryOperator::Overlaps,
            ..
        } => named("overlaps", 2),
        Expr::Extract { .. } => named("extract", 2),
        Expr::Substring { .. } => named("substring", 2),
        Expr::Position { .. } => named("position", 2),
        Expr::Trim { .. } => named("btrim", 2),
        Expr::Overlay { .. } => named("overlay", 2),
        Expr::Floor { .. } => named("floor", 2),
        Expr::Ceil { .. } => named("ceil", 2),
        Expr::AtTimeZone { .. } => named("timezone", 2),
        Expr::Interval(_) => named("interval", 1),
        Expr::Value(value) => match value.value {
            sqlparser::ast::Value::Boolean(_) => named("bool", 1),
            _ => named(ANONYMOUS, 0),
        },
        Expr::Subquery(query) => match query.body.as_ref() {
            sqlparser::ast::SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => implicit(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => (shown(&fold(alias)).to_owned(), 2),
                _ => named(ANONYMOUS, 0),
            },
            _ => named(ANONYMOUS, 0),
        },
        _ => named(ANONYMOUS, 0),
    }
}

fn of_function(function: &Function) -> String {
    last(&function.name)
}

/// The name `pg_type` has for a type of a cast.
fn type_name(written: &str) -> String {
    let lower = written.to_lowercase();
    let bare = lower.split('(').next().unwrap_or_default().trim();
    match bare {
        "boolean" => "bool",
        "smallint" => "int2",
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" | "float" => "float8",
        "decimal" | "dec" => "numeric",
        "character varying" => "varchar",
        "char" | "character" if !written.contains('"') => "bpchar",
        "timestamp with time zone" => "timestamptz",
        "timestamp without time zone" => "timestamp",
        "time with time zone" => "timetz",
        other => other.rsplit('.').next().unwrap_or(other),
    }
    .trim_matches('"')
    .to_owned()
}
