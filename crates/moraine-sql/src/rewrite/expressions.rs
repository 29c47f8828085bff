//! One expression whose parts have been rewritten already.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, Query, UnaryOperator, Value,
};

use super::names;
use crate::error::QueryError;

/// Collations under which text compares by its bytes, as everything here does.
const BYTEWISE: &[&str] = &["c", "posix", "default", "ucs_basic", "c.utf8", "c.utf-8"];

/// Functions that SQL calls without parentheses and that the parser takes for columns.
const BARE: &[&str] = &["current_schema", "current_role", "localtime", "localtimestamp"];

pub(super) fn rewrite(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::Identifier(ident) if ident.quote_style.is_none() => {
            let name = names::fold(ident);
            if BARE.contains(&name.as_str()) {
                *expr = call(&name, Vec::new());
            }
            Ok(())
        }
        Expr::Collate {
            expr: inner,
            collation,
        } => {
            let name = names::last(collation).to_lowercase();
            if !BYTEWISE.contains(&name.as_str()) {
                return Err(QueryError::unsupported(format!("collation {collation}")));
            }
            *expr = taken(inner);
            Ok(())
        }
        Expr::BinaryOp { left, op, right } => {
            if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
                *op = operator(parts.last().map(String::as_str).unwrap_or_default())?;
            }
            if let Some(rows) = row_comparison(left, op, right)? {
                *expr = rows;
            }
            Ok(())
        }
        Expr::Function(function) => {
            if let Some(array) = array_of_subquery(function)? {
                *expr = array;
                return Ok(());
            }
            self::function(function);
            Ok(())
        }
        Expr::AnyOp {
            left,
            compare_op: BinaryOperator::Eq,
            right,
            ..
        } => {
            if let Some(list) = elements(right)? {
                *expr = in_list(left, list, false);
            }
            Ok(())
        }
        Expr::AllOp {
            left,
            compare_op: BinaryOperator::NotEq,
            right,
        } => {
            if let Some(list) = elements(right)? {
                *expr = in_list(left, list, true);
            }
            Ok(())
        }
        other => rewrite_row_list_or_zone(other),
    }
}

fn rewrite_row_list_or_zone(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::InList {
            expr: row,
            list,
            negated,
        } if matches!(row.as_ref(), Expr::Tuple(_)) => {
            let any = row_in_list(row, list)?;
            *expr = if *negated { not(any) } else { any };
            Ok(())
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            *expr = call("timezone", vec![taken(time_zone), taken(timestamp)]);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, null())
}

fn null() -> Expr {
    Expr::value(Value::Null)
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    Expr::Function(Function {
        name: ObjectName::from(Ident::new(name)),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(Expr::Nested(Box::new(expr))),
    }
}

fn in_list(left: &mut Expr, list: Vec<Expr>, negated: bool) -> Expr {
    Expr::InList {
        expr: Box::new(taken(left)),
        list,
        negated,
    }
}

/// An operator by its symbol, as `OPERATOR(pg_catalog.~)` writes it.
fn operator(symbol: &str) -> Result<BinaryOperator, QueryError> {
    Ok(match symbol {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        other => return Err(QueryError::unsupported(format!("operator {other}"))),
    })
}

/// A function's schema says nothing here: there is one function of a name.
fn function(function: &mut Function) {
    let name = names::last(&function.name);
    // Postgres's names for functions that DataFusion has under others.
    let name = match name.as_str() {
        "char_length" | "character_length" => "length".to_owned(),
        "every" => "bool_and".to_owned(),
        "substring" => "substr".to_owned(),
        "random" | "now" => name,
        _ => name,
    };
    function.name = ObjectName::from(Ident::with_quote('"', name));
}

/// `ARRAY(SELECT …)` is the aggregate of the subquery's rows.
fn array_of_subquery(function: &mut Function) -> Result<Option<Expr>, QueryError> {
    if !names::last(&function.name).eq_ignore_ascii_case("array") {
        return Ok(None);
    }
    let FunctionArguments::Subquery(query) = &mut function.args else {
        return Ok(None);
    };
    let text = format!("SELECT array_agg(element) FROM ({query}) AS elements(element)");
    Ok(Some(Expr::Subquery(Box::new(parse(&text)?))))
}

fn parse(text: &str) -> Result<Query, QueryError> {
    let parsed = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_query());
    parsed.map(|query| *query).map_err(|error| QueryError::Internal {
        detail: error.to_string(),
    })
}

/// The elements of an array that the query spells out.
fn elements(array: &mut Expr) -> Result<Option<Vec<Expr>>, QueryError> {
    match array {
        Expr::Nested(inner) => elements(inner),
        Expr::Array(array) => Ok(Some(std::mem::take(&mut array.elem))),
        Expr::Cast { expr, .. } if is_text(expr) => elements(expr),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => {
                let inner = text
                    .trim()
                    .strip_prefix('{')
                    .and_then(|rest| rest.strip_suffix('}'));
                let Some(inner) = inner else {
                    return Ok(None);
                };
                if inner.contains(['"', '\\', '{']) {
                    return Err(QueryError::unsupported(format!(
                        "the array {text}; write ARRAY[…]"
                    )));
                }
                let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
                let literal = |item: &str| match item.eq_ignore_ascii_case("null") {
                    true => null(),
                    false => Expr::value(Value::SingleQuotedString(item.to_owned())),
                };
                Ok(Some(items.map(literal).collect()))
            }
            Value::Placeholder(_) => Err(QueryError::unsupported("a parameter of an array type")),
            _ => Ok(None),
        },
        Expr::Subquery(_) | Expr::Function(_) => Ok(None),
        _ => Ok(None),
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Placeholder(_)))
}

/// `(a, b) = (c, d)` part by part. Of the other operators only `<>` is as simple.
fn row_comparison(
    left: &mut Expr,
    op: &BinaryOperator,
    right: &mut Expr,
) -> Result<Option<Expr>, QueryError> {
    let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (&*left, &*right) else {
        return Ok(None);
    };
    let equal = all_equal(lefts, rights)?;
    match op {
        BinaryOperator::Eq => Ok(Some(equal)),
        BinaryOperator::NotEq => Ok(Some(not(equal))),
        other => Err(QueryError::unsupported(format!("rows compared by {other}"))),
    }
}

fn all_equal(lefts: &[Expr], rights: &[Expr]) -> Result<Expr, QueryError> {
    if lefts.len() != rights.len() {
        return Err(QueryError::Invalid {
            detail: "unequal number of entries in row expressions".to_owned(),
        });
    }
    let pairs = lefts.iter().zip(rights).map(|(left, right)| Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(left.clone()))),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::Nested(Box::new(right.clone()))),
    });
    Ok(Expr::Nested(Box::new(joined(pairs, &BinaryOperator::And))))
}

fn joined(parts: impl Iterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    parts
        .reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: op.clone(),
            right: Box::new(right),
        })
        .unwrap_or_else(|| Expr::value(Value::Boolean(matches!(op, BinaryOperator::And))))
}

fn row_in_list(row: &Expr, list: &[Expr]) -> Result<Expr, QueryError> {
    let Expr::Tuple(lefts) = row else {
        return Err(QueryError::unsupported("this row"));
    };
    let mut rows = Vec::with_capacity(list.len());
    for item in list {
        match item {
            Expr::Tuple(rights) => rows.push(all_equal(lefts, rights)?),
            other => return Err(QueryError::unsupported(format!("a row compared with {other}"))),
        }
    }
    Ok(Expr::Nested(Box::new(joined(
        rows.into_iter(),
        &BinaryOperator::Or,
    ))))
}
