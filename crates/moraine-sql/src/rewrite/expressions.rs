//! One expression whose parts have been rewritten already.

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, Query, UnaryOperator, Value,
};

use super::scopes::Scope;
use super::subqueries::{quantification, quantified};
use super::{arrays, names, rows};
use crate::error::{InputError, QueryError};

/// Collations under which text compares by its bytes, as everything here does.
const BYTEWISE: &[&str] = &["c", "posix", "default", "ucs_basic", "c.utf8", "c.utf-8"];

/// Functions that SQL calls without parentheses and that the parser takes for columns.
const BARE: &[&str] = &["current_schema", "current_role", "localtime", "localtimestamp"];

/// The function that `ARRAY[…]` is.
const MAKE_ARRAY: &str = "make_array";

pub(super) fn rewrite(expr: &mut Expr, scope: &Scope) -> Result<(), QueryError> {
    match expr {
        Expr::Identifier(ident) if let Some(may_lack) = scope.table(&names::fold(ident)) => {
            *expr = rows::of_table(names::fold(ident), may_lack);
            Ok(())
        }
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
        Expr::BinaryOp { .. } => binary(expr),
        Expr::Function(function) => {
            if let Some(array) = array_of_subquery(function)? {
                *expr = array;
                return Ok(());
            }
            self::function(function);
            if let Some(row) = rows::constructed(function) {
                *expr = row;
                return Ok(());
            }
            rows::as_arguments(function, scope);
            if let Some(other) = other_form(function)? {
                *expr = other;
            }
            Ok(())
        }
        // The planner takes an array's elements for expressions that stand alone, without rows around them.
        Expr::Array(array) if !array.elem.is_empty() => {
            *expr = call(MAKE_ARRAY, std::mem::take(&mut array.elem));
            Ok(())
        }
        Expr::Between {
            expr: value,
            negated,
            low,
            high,
        } if let Some(bound) = symmetric_bound(low) => {
            *expr = between_symmetric(value, &bound, high, *negated);
            Ok(())
        }
        Expr::AnyOp { .. } | Expr::AllOp { .. } => {
            *expr = any_or_all(expr)?;
            Ok(())
        }
        other => rewrite_literal(other),
    }
}

/// An operator by its symbol, and those that are calls here or take rows apart.
fn binary(expr: &mut Expr) -> Result<(), QueryError> {
    let Expr::BinaryOp { left, op, right } = expr else {
        return Ok(());
    };
    if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
        if parts
            .first()
            .is_some_and(|schema| schema == crate::dialect::QUANTIFIED)
        {
            return Ok(());
        }
        *op = operator(parts.last().map(String::as_str).unwrap_or_default())?;
    }
    if matches!(op, BinaryOperator::PGOverlap) {
        *expr = call("array_has_any", vec![taken(left), taken(right)]);
        return Ok(());
    }
    let getter = match op {
        BinaryOperator::Arrow => Some("json_get"),
        BinaryOperator::LongArrow => Some("json_get_text"),
        _ => None,
    };
    if let Some(getter) = getter {
        *expr = call(getter, vec![taken(left), taken(right)]);
        return Ok(());
    }
    if let Some(rows) = rows::comparison(left, op, right)? {
        *expr = rows;
    }
    Ok(())
}

/// The lower bound of `BETWEEN SYMMETRIC`.
fn symmetric_bound(low: &Expr) -> Option<Expr> {
    match low {
        Expr::Function(function) if names::last(&function.name) == crate::syntax::SYMMETRIC => {
            arguments(function).pop()
        }
        _ => None,
    }
}

/// Between two bounds, whichever of them is the lower one.
fn between_symmetric(value: &Expr, one: &Expr, other: &Expr, negated: bool) -> Expr {
    let between = |low: &Expr, high: &Expr| {
        Box::new(Expr::Nested(Box::new(Expr::Between {
            expr: Box::new(value.clone()),
            negated: false,
            low: Box::new(low.clone()),
            high: Box::new(high.clone()),
        })))
    };
    let either = Expr::BinaryOp {
        left: between(one, other),
        op: BinaryOperator::Or,
        right: between(other, one),
    };
    if negated {
        not(either)
    } else {
        Expr::Nested(Box::new(either))
    }
}

/// `x op ANY (…)` and `x op ALL (…)` over a list or an array.
fn any_or_all(expr: &mut Expr) -> Result<Expr, QueryError> {
    let Some((left, op, right, any)) = quantification(expr) else {
        return Ok(taken(expr));
    };
    let in_list_of = match (&*op, any) {
        (BinaryOperator::Eq, true) => Some(false),
        (BinaryOperator::NotEq, false) => Some(true),
        _ => None,
    };
    if let Some(negated) = in_list_of
        && let Some(list) = elements(right)?
        && !list.is_empty()
    {
        return Ok(in_list(left, list, negated));
    }
    if let Some(op) = custom_operator(op)? {
        return quantified(left, &op, any, array_of(right)?);
    }
    quantified(left, op, any, array_of(right)?)
}

fn array_of(right: &mut Expr) -> Result<Expr, QueryError> {
    match right {
        Expr::Nested(inner) => array_of(inner),
        array => Ok(taken(array)),
    }
}

fn custom_operator(op: &BinaryOperator) -> Result<Option<BinaryOperator>, QueryError> {
    match op {
        BinaryOperator::PGCustomBinaryOperator(parts) => {
            operator(parts.last().map(String::as_str).unwrap_or_default()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Literals and casts.
fn rewrite_literal(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::Value(value) => {
            if let Value::UnicodeStringLiteral(text) = &value.value {
                value.value = Value::SingleQuotedString(text.clone());
            }
            if let Value::Number(digits, _) = &mut value.value
                && let Some(plain) = without_exponent(digits)
            {
                *digits = plain;
            }
            Ok(())
        }
        Expr::Cast {
            expr: inner,
            data_type,
            ..
        } if let Some(cut) = cut_text(data_type) => {
            let text = cast(taken(inner), DataType::Text);
            *expr = match cut {
                Cut::Varying(length) => call("left", vec![text, number(&length.to_string())]),
                Cut::Filled(length) => call(&crate::functions::character_name(length), vec![text]),
            };
            Ok(())
        }
        Expr::SimilarTo {
            negated,
            expr: text,
            pattern,
            escape_char,
        } => {
            let (pattern, escape) = similar(pattern, escape_char.as_ref())?;
            let pattern = crate::functions::of_similar(&pattern, escape);
            let matches = Expr::BinaryOp {
                left: Box::new(taken(text)),
                op: if *negated {
                    BinaryOperator::PGRegexNotMatch
                } else {
                    BinaryOperator::PGRegexMatch
                },
                right: Box::new(Expr::value(Value::SingleQuotedString(pattern))),
            };
            *expr = Expr::Nested(Box::new(matches));
            Ok(())
        }
        Expr::Substring {
            expr: text,
            substring_from: Some(pattern),
            substring_for: None,
            ..
        } if is_text(pattern) => {
            let matched = call("regexp_match", vec![taken(text), taken(pattern)]);
            *expr = call("first_element", vec![matched]);
            Ok(())
        }
        // As text it has no digits to lose on the way.
        Expr::Cast { expr, .. } => {
            if let Expr::Value(value) = expr.as_mut()
                && let Value::Number(digits, _) = &value.value
                && digits.contains(['e', 'E'])
            {
                value.value = Value::SingleQuotedString(digits.clone());
            }
            Ok(())
        }
        other => rewrite_pattern(other),
    }
}

/// Patterns that text is compared with.
fn rewrite_pattern(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::Like {
            any: true,
            negated,
            expr: text,
            pattern,
            escape_char: None,
        } => {
            let op = if *negated {
                BinaryOperator::PGNotLikeMatch
            } else {
                BinaryOperator::PGLikeMatch
            };
            let array = array_of(pattern)?;
            *expr = quantified(text, &op, true, array)?;
            Ok(())
        }
        Expr::Like {
            any: false,
            negated,
            expr: text,
            pattern,
            escape_char: Some(escape),
        } => {
            *expr = with_escape("like_with_escape", *negated, text, pattern, escape);
            Ok(())
        }
        Expr::ILike {
            any: false,
            negated,
            expr: text,
            pattern,
            escape_char: Some(escape),
        } => {
            *expr = with_escape("ilike_with_escape", *negated, text, pattern, escape);
            Ok(())
        }
        other => rewrite_row_part_or_subquery(other),
    }
}

fn rewrite_row_part_or_subquery(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::InList {
            expr: row,
            list,
            negated,
        } if matches!(row.as_ref(), Expr::Tuple(_)) => {
            let any = rows::in_list(row, list)?;
            *expr = if *negated { not(any) } else { any };
            Ok(())
        }
        Expr::InSubquery {
            expr: row,
            subquery,
            negated,
        } if let Expr::Tuple(parts) = row.as_ref() => {
            *expr = rows::member(parts, subquery, *negated)?;
            Ok(())
        }
        Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => {
            if let Some(whole) = rows::as_whole(expr)? {
                *expr = whole;
            }
            rows::tested(expr);
            Ok(())
        }
        Expr::Interval(interval) if interval.leading_field.is_none() && is_text(&interval.value) => {
            *expr = cast(
                taken(&mut interval.value),
                DataType::Interval {
                    fields: None,
                    precision: None,
                },
            );
            Ok(())
        }
        Expr::UnaryOp { op, expr: operand } => {
            if let Some(other) = unary(*op, operand) {
                *expr = other;
            }
            Ok(())
        }
        Expr::Subquery(query) => {
            if let Some(single) = arrays::single(query) {
                *expr = single;
            }
            Ok(())
        }
        Expr::Extract {
            field, expr: moment, ..
        } => {
            let part = crate::functions::part_function(&field.to_string(), true);
            let part = part.ok_or_else(|| QueryError::unsupported(format!("EXTRACT({field} …)")))?;
            *expr = call(&part, vec![taken(moment)]);
            Ok(())
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            *expr = call("timezone", vec![taken(time_zone), taken(timestamp)]);
            Ok(())
        }
        _ => Ok(()),
    }
}

pub(super) fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, null())
}

/// A number that is written with an exponent, as the digits it stands for; `None` for one that has none, or too many digits.
fn without_exponent(digits: &str) -> Option<String> {
    let (mantissa, exponent) = digits.split_once(['e', 'E'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let length = i32::try_from(fraction.len()).ok()?;
    let scale = i8::try_from((length - exponent).max(0)).ok()?;
    let number = crate::text::numeric::parse(&format!("{whole}.{fraction}e{exponent}"), 38, scale).ok()?;
    Some(number.to_string())
}

/// The pattern of `SIMILAR TO` and its escape character, both written out.
fn similar(
    pattern: &Expr,
    escape: Option<&sqlparser::ast::ValueWithSpan>,
) -> Result<(String, Option<char>), QueryError> {
    let Expr::Value(pattern) = pattern else {
        return Err(QueryError::unsupported(
            "SIMILAR TO a pattern that is not written out",
        ));
    };
    let Value::SingleQuotedString(pattern) = &pattern.value else {
        return Err(QueryError::unsupported("SIMILAR TO anything but text"));
    };
    let escape = match escape.map(|escape| &escape.value) {
        None => Some('\\'),
        Some(Value::SingleQuotedString(escape)) => {
            let mut signs = escape.chars();
            let sign = signs.next();
            if signs.next().is_some() {
                return Err(QueryError::Invalid {
                    detail: "invalid escape string: it must be empty or one character".to_owned(),
                });
            }
            sign
        }
        Some(_) => return Err(QueryError::unsupported("this ESCAPE")),
    };
    Ok((pattern.clone(), escape))
}

/// How a cast cuts text.
enum Cut {
    /// To as many characters.
    Varying(u64),
    /// To as many characters, of which blanks at the end do not count.
    Filled(u32),
}

/// How a cast to a type cuts text; `None` for a type of no length.
fn cut_text(data_type: &DataType) -> Option<Cut> {
    use sqlparser::ast::CharacterLength;
    match data_type {
        DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::CharVarying(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::CharacterVarying(Some(CharacterLength::IntegerLength { length, .. })) => {
            Some(Cut::Varying(*length))
        }
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Character(Some(CharacterLength::IntegerLength { length, .. })) => {
            u32::try_from(*length).ok().map(Cut::Filled)
        }
        DataType::Char(None) | DataType::Character(None) => Some(Cut::Filled(1)),
        _ => None,
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

pub(super) fn null() -> Expr {
    Expr::value(Value::Null)
}

pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
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

pub(super) fn not(expr: Expr) -> Expr {
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
        "variance" => "var_samp".to_owned(),
        "array_remove" => "array_remove_all".to_owned(),
        "array_replace" => "array_replace_all".to_owned(),
        "random" | "now" => name,
        _ => name,
    };
    function.name = ObjectName::from(Ident::with_quote('"', name));
}

/// The form a call takes that has the same meaning here; `None` for one that stays as it is.
fn other_form(function: &Function) -> Result<Option<Expr>, QueryError> {
    let name = names::last(&function.name);
    Ok(match name.as_str() {
        "avg" => Some(average(function)),
        "date_part" => date_part(function)?,
        "mod" | "div" | "sign" => arithmetic(&name, arguments(function)),
        "generate_series" | "generate_subscripts" => {
            let array = renamed(function, &format!("{name}_array"));
            Some(call("unnest", vec![array]))
        }
        "regexp_split_to_table" => Some(call("unnest", vec![renamed(function, "regexp_split_to_array")])),
        "json_agg" | "jsonb_agg" => Some(collected(function, &format!("{name}_of"), "json_element")),
        "json_object_agg" | "jsonb_object_agg" => {
            Some(collected(function, &format!("{name}_of"), "json_pair"))
        }
        _ => None,
    })
}

/// The sign binds closer than a power, and what is not a bit of a number is all bits but those.
fn unary(op: UnaryOperator, operand: &mut Expr) -> Option<Expr> {
    match (op, operand) {
        (
            UnaryOperator::Minus,
            Expr::BinaryOp {
                left,
                op: op @ BinaryOperator::PGExp,
                right,
            },
        ) => {
            let base = Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(taken(left)),
            };
            Some(Expr::BinaryOp {
                left: Box::new(base),
                op: op.clone(),
                right: Box::new(taken(right)),
            })
        }
        (UnaryOperator::BitwiseNot, operand) => Some(Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(number("-1")),
            op: BinaryOperator::Minus,
            right: Box::new(Expr::Nested(Box::new(taken(operand)))),
        }))),
        _ => None,
    }
}

fn number(digits: &str) -> Expr {
    Expr::value(Value::Number(digits.to_owned(), false))
}

fn with_escape(
    function: &str,
    negated: bool,
    text: &mut Expr,
    pattern: &mut Expr,
    escape: &sqlparser::ast::ValueWithSpan,
) -> Expr {
    let escape = Expr::value(escape.value.clone());
    let matches = call(function, vec![taken(text), taken(pattern), escape]);
    if negated { not(matches) } else { matches }
}

/// The plain arguments of a call.
fn arguments(function: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    let plain = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    plain.collect()
}

/// Functions that are operators.
fn arithmetic(name: &str, mut arguments: Vec<Expr>) -> Option<Expr> {
    let binary = |left: Expr, op: BinaryOperator, right: Expr| Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(left))),
        op,
        right: Box::new(Expr::Nested(Box::new(right))),
    };
    let last = arguments.pop()?;
    match (name, arguments.pop()) {
        ("mod", Some(first)) => Some(binary(first, BinaryOperator::Modulo, last)),
        ("div", Some(first)) => {
            let numeric = |expr| cast(expr, DataType::Numeric(sqlparser::ast::ExactNumberInfo::None));
            let quotient = binary(numeric(first), BinaryOperator::Divide, numeric(last));
            Some(call("trunc", vec![quotient]))
        }
        ("sign", None) => {
            let when = |op, result: &str| sqlparser::ast::CaseWhen {
                condition: binary(last.clone(), op, number("0")),
                result: number(result),
            };
            Some(Expr::Case {
                case_token: sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
                end_token: sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
                operand: None,
                conditions: vec![
                    when(BinaryOperator::Gt, "1"),
                    when(BinaryOperator::Lt, "-1"),
                    when(BinaryOperator::Eq, "0"),
                ],
                else_result: None,
            })
        }
        _ => None,
    }
}

/// `date_part('year', x)` with the part written out.
fn date_part(function: &Function) -> Result<Option<Expr>, QueryError> {
    let FunctionArguments::List(list) = &function.args else {
        return Ok(None);
    };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(part))),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(moment)),
    ] = list.args.as_slice()
    else {
        return Err(QueryError::unsupported(
            "date_part of a part that is not written out",
        ));
    };
    let Value::SingleQuotedString(part) = &part.value else {
        return Ok(None);
    };
    let name = crate::functions::part_function(part, false);
    let name = name.ok_or_else(|| QueryError::unsupported(format!("date_part('{part}', …)")))?;
    Ok(Some(call(&name, vec![moment.clone()])))
}

fn renamed(function: &Function, name: &str) -> Expr {
    let mut function = function.clone();
    function.name = ObjectName::from(Ident::new(name));
    Expr::Function(function)
}

/// An aggregate that gives its values one form, collects them, and gives the whole another.
fn collected(function: &Function, whole: &str, each: &str) -> Expr {
    let mut aggregate = function.clone();
    aggregate.name = ObjectName::from(Ident::new("array_agg"));
    if let FunctionArguments::List(list) = &mut aggregate.args {
        let taken = std::mem::take(&mut list.args);
        let exprs = taken.into_iter().filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        });
        let element = call(each, exprs.collect());
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(element))];
    }
    call(whole, vec![Expr::Function(aggregate)])
}

/// `avg(x)` is `sum(x) / count(x)`, whose types are Postgres's.
fn average(avg: &Function) -> Expr {
    call("avg_of", vec![renamed(avg, "sum"), renamed(avg, "count")])
}

/// `ARRAY(SELECT …)` is the aggregate of the subquery's rows; of no rows it is empty.
fn array_of_subquery(function: &mut Function) -> Result<Option<Expr>, QueryError> {
    if !names::last(&function.name).eq_ignore_ascii_case("array") {
        return Ok(None);
    }
    match &mut function.args {
        FunctionArguments::Subquery(query) => arrays::of_rows(query).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn parse(text: &str) -> Result<Query, QueryError> {
    let parsed = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_query());
    parsed.map(|query| *query).map_err(|error| QueryError::Internal {
        detail: error.to_string(),
    })
}

fn is_array(function: &Function) -> bool {
    names::last(&function.name) == MAKE_ARRAY
}

/// The elements of an array that the query spells out; `None` for any other array.
fn elements(array: &mut Expr) -> Result<Option<Vec<Expr>>, QueryError> {
    match array {
        Expr::Nested(inner) => elements(inner),
        Expr::Array(_) => Ok(Some(Vec::new())),
        Expr::Function(function) if is_array(function) => {
            let items = arguments(function);
            let nested = items
                .iter()
                .any(|item| matches!(item, Expr::Function(inner) if is_array(inner)));
            Ok((!nested).then_some(items))
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => of_literal(text).map(Some),
            _ => Ok(None),
        },
        Expr::Cast { expr, data_type, .. } => {
            let DataType::Array(of) = data_type else {
                return Ok(None);
            };
            let element = match of {
                ArrayElemTypeDef::SquareBracket(element, _)
                | ArrayElemTypeDef::AngleBracket(element)
                | ArrayElemTypeDef::Parenthesis(element) => element.as_ref().clone(),
                ArrayElemTypeDef::None => return Ok(None),
            };
            let Some(items) = elements(expr)? else {
                return Ok(None);
            };
            Ok(Some(
                items
                    .into_iter()
                    .map(|item| cast(item, element.clone()))
                    .collect(),
            ))
        }
        _ => Ok(None),
    }
}

/// The elements of an array in Postgres's text form, as literals.
fn of_literal(text: &str) -> Result<Vec<Expr>, QueryError> {
    let items = crate::text::array::elements(text).ok_or_else(|| InputError::Syntax {
        type_name: "array".to_owned(),
        text: text.to_owned(),
    })?;
    let literal = |item: Option<String>| match item {
        None => null(),
        Some(item) => Expr::value(Value::SingleQuotedString(item)),
    };
    Ok(items.into_iter().map(literal).collect())
}

pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}
