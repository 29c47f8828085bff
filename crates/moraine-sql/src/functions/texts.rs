//! Text from values and values from text as Postgres does it, quoting, and the few conversions whose rounding or zone
//! differs from DataFusion's.

use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};

use super::row::{function, whole};
use super::session::SessionFacts;
use crate::error::{InputError, QueryError};
use crate::text;
use crate::text::parse::ParseError;
use crate::types::SqlType;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let text_type = ColumnType::Text;
    vec![
        timezone(ColumnType::Timestamp),
        // Where the type is known the planner has put it in the place of the call.
        function("pg_typeof", SqlType::RegType, (1, 1), |_| Ok(Value::Null)),
        function("format", text_type, (1, 100), formatted),
        like_with_escape("like_with_escape", false),
        like_with_escape("ilike_with_escape", true),
        function("quote_ident", text_type, (1, 1), |arguments| {
            quoted(arguments, quote_ident)
        }),
        function("quote_literal", text_type, (1, 1), |arguments| {
            quoted(arguments, quote_literal)
        }),
        function("quote_nullable", text_type, (1, 1), |arguments| {
            match arguments.first().and_then(text::format) {
                Some(value) => Ok(Value::text(quote_literal(&value))),
                None => Ok(Value::text("NULL")),
            }
        }),
        function("format_type", text_type, (2, 2), |arguments| {
            let named = whole(arguments.first()).map(|oid| format_type(oid, whole(arguments.get(1))));
            Ok(named.map_or(Value::Null, Value::text))
        }),
    ]
}

/// `text LIKE pattern ESCAPE escape`.
fn like_with_escape(name: &str, folded: bool) -> Arc<ScalarUDF> {
    function(name, ColumnType::Bool, (3, 3), move |arguments| {
        let [Value::Text(text), Value::Text(pattern), Value::Text(escape)] = arguments else {
            return Ok(Value::Null);
        };
        let mut signs = escape.chars();
        let escape = signs.next();
        if signs.next().is_some() {
            return Err(QueryError::Invalid {
                detail: "invalid escape string: it must be empty or one character".to_owned(),
            });
        }
        Ok(Value::Bool(match folded {
            true => super::quantified::like_with(&text.to_lowercase(), &pattern.to_lowercase(), escape),
            false => super::quantified::like_with(text, pattern, escape),
        }))
    })
}

fn quoted(arguments: &[Value], quote: fn(&str) -> String) -> Result<Value, QueryError> {
    Ok(arguments
        .first()
        .and_then(text::format)
        .map_or(Value::Null, |value| Value::text(quote(&value))))
}

pub(super) fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn quote_literal(value: &str) -> String {
    let escaped = value.replace('\'', "''");
    if escaped.contains('\\') {
        format!("E'{}'", escaped.replace('\\', "\\\\"))
    } else {
        format!("'{escaped}'")
    }
}

/// Reads the text of a value.
pub(crate) fn read(value: &str, column_type: ColumnType) -> Result<Value, InputError> {
    text::parse::parse(value, column_type).map_err(|error| match error {
        ParseError::Syntax => InputError::Syntax {
            type_name: SqlType::Column(column_type).sql_name(),
            text: value.to_owned(),
        },
        ParseError::Range => InputError::Range {
            type_name: SqlType::Column(column_type).sql_name(),
            text: value.to_owned(),
        },
    })
}

/// `x::text` for everything that DataFusion would write otherwise.
pub(crate) fn text_of() -> Arc<ScalarUDF> {
    function("text", ColumnType::Text, (1, 1), |arguments| {
        Ok(match arguments.first() {
            Some(Value::Bool(value)) => Value::text(if *value { "true" } else { "false" }),
            Some(value) => text::format(value).map_or(Value::Null, Value::text),
            None => Value::Null,
        })
    })
}

/// A value as a client sees it, where `x::text` is another word for it.
pub(crate) fn output_text() -> Arc<ScalarUDF> {
    function("output_text", ColumnType::Text, (1, 1), |arguments| {
        Ok(arguments
            .first()
            .and_then(text::format)
            .map_or(Value::Null, Value::text))
    })
}

/// `format(template, …)`: `%s`, `%I` and `%L`, each of the next argument or of the one that is numbered.
fn formatted(arguments: &[Value]) -> Result<Value, QueryError> {
    let Some(Value::Text(template)) = arguments.first() else {
        return Ok(Value::Null);
    };
    let invalid = |detail: String| QueryError::Invalid { detail };
    let mut out = String::new();
    let mut signs = template.chars().peekable();
    let mut next = 1;
    while let Some(sign) = signs.next() {
        if sign != '%' {
            out.push(sign);
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = signs.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        if signs.next_if_eq(&'$').is_some() {
            next = digits.parse().unwrap_or(usize::MAX);
        } else if !digits.is_empty() {
            return Err(QueryError::unsupported("format with a width"));
        }
        let kind = signs
            .next()
            .ok_or_else(|| invalid("unterminated format() type specifier".to_owned()))?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let argument = arguments
            .get(next)
            .ok_or_else(|| invalid("too few arguments for format()".to_owned()))?;
        next += 1;
        let written = text::format(argument);
        out.push_str(&match (kind, written) {
            ('s', written) => written.unwrap_or_default(),
            ('I', Some(written)) => quote_ident(&written),
            ('I', None) => {
                return Err(invalid(
                    "null values cannot be formatted as an SQL identifier".to_owned(),
                ));
            }
            ('L', written) => written.map_or_else(|| "NULL".to_owned(), |written| quote_literal(&written)),
            (other, _) => {
                return Err(invalid(format!(
                    "unrecognized format() type specifier \"{other}\""
                )));
            }
        });
    }
    Ok(Value::text(out))
}

/// `x::text` of a row's number.
fn tid_text(number: i64) -> String {
    format!(
        "({},{})",
        number >> crate::TID_ITEM_BITS,
        number & ((1 << crate::TID_ITEM_BITS) - 1)
    )
}

/// `x::type` of a text.
pub(crate) fn parse(sql_type: SqlType) -> Arc<ScalarUDF> {
    let name = format!("parse_{}", sql_type.sql_name());
    function(name, sql_type, (1, 1), move |arguments| {
        let Some(Value::Text(value)) = arguments.first() else {
            return Ok(Value::Null);
        };
        parsed(value, sql_type)
    })
}

/// The value a text is as an input of a type.
pub(crate) fn parsed(value: &str, sql_type: SqlType) -> Result<Value, QueryError> {
    match sql_type {
        SqlType::RegProc if value.parse::<u32>().is_err() => {
            Ok(Value::Int64(i64::from(super::procedure_oid(value))))
        }
        SqlType::Tid => {
            let inner = value.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            let parts = inner.and_then(|(inner, _)| inner.split_once(','));
            let number = parts.and_then(|(page, item)| {
                let page: i64 = page.trim().parse::<u32>().ok()?.into();
                let item: i64 = item.trim().parse::<u16>().ok()?.into();
                Some(page << crate::TID_ITEM_BITS | item)
            });
            number.map(Value::Int64).ok_or_else(|| {
                InputError::Syntax {
                    type_name: "tid".to_owned(),
                    text: value.to_owned(),
                }
                .into()
            })
        }
        SqlType::Array(_) | SqlType::Vector(_) => Ok(Value::text(value)),
        SqlType::Json | SqlType::Jsonb => super::json::read(value, sql_type == SqlType::Jsonb),
        SqlType::Numeric => {
            let scale = value
                .split_once('.')
                .map_or(0, |(_, fraction)| fraction.trim_end().len());
            let scale = i8::try_from(scale).unwrap_or(i8::MAX).min(36);
            Ok(read(value, ColumnType::Numeric { precision: 38, scale })?)
        }
        other => Ok(read(value, other.column_type())?),
    }
}

/// `x::integer type` of a number with a fraction: floats round half to even, decimals half away from zero.
pub(crate) fn to_integer(column_type: ColumnType) -> Arc<ScalarUDF> {
    let name = format!("round_to_{}", column_type.sql_name());
    function(name, column_type, (1, 1), move |arguments| {
        let rounded = match arguments.first() {
            Some(Value::Float32(value)) => format!("{:.0}", f64::from(*value).round_ties_even()),
            Some(Value::Float64(value)) => format!("{:.0}", value.round_ties_even()),
            Some(Value::Numeric(value)) => {
                let whole = text::numeric::rescale(*value, 38, 0);
                whole.map_or_else(|| value.to_string(), |whole| whole.to_string())
            }
            _ => return Ok(Value::Null),
        };
        let digits = rounded
            .strip_prefix("-0")
            .filter(|rest| rest.is_empty())
            .map_or(rounded.as_str(), |_| "0");
        let value = text::parse::parse(digits, column_type);
        value.map_err(|_| {
            InputError::Range {
                type_name: column_type.sql_name(),
                text: digits.to_owned(),
            }
            .into()
        })
    })
}

/// `round` of a float: half goes to the even neighbour.
pub(crate) fn round_even() -> Arc<ScalarUDF> {
    function("round_even", ColumnType::Float64, (1, 1), |arguments| {
        Ok(match arguments.first() {
            Some(Value::Float64(value)) => Value::Float64(value.round_ties_even()),
            Some(Value::Float32(value)) => Value::Float64(f64::from(value.round_ties_even())),
            _ => Value::Null,
        })
    })
}

/// `x AT TIME ZONE 'UTC'`, the one zone there is.
pub(crate) fn timezone(result: ColumnType) -> Arc<ScalarUDF> {
    let name = match result {
        ColumnType::TimestampTz => "timezone_of_local",
        _ => "timezone",
    };
    function(name, result, (2, 2), move |arguments| {
        if let Some(Value::Text(zone)) = arguments.first()
            && !["utc", "gmt", "z", "zulu", "etc/utc", "+00", "0"].contains(&zone.to_lowercase().as_str())
        {
            return Err(QueryError::unsupported(format!(
                "the time zone {zone}; use 'UTC'"
            )));
        }
        Ok(match arguments.get(1) {
            Some(Value::TimestampTz(micros)) => Value::Timestamp(*micros),
            Some(Value::Timestamp(micros)) => Value::TimestampTz(*micros),
            _ => Value::Null,
        })
    })
}

/// `'name'::regclass`.
pub(crate) fn regclass_of_text(facts: &Arc<SessionFacts>) -> Arc<ScalarUDF> {
    let facts = Arc::clone(facts);
    function("regclass_in", SqlType::RegClass, (1, 1), move |arguments| {
        let Some(Value::Text(name)) = arguments.first() else {
            return Ok(Value::Null);
        };
        if let Ok(oid) = name.parse::<u32>() {
            return Ok(Value::Int64(i64::from(oid)));
        }
        let found = facts
            .relation(name)
            .map(|relation| Value::Int64(i64::from(relation.oid)));
        found.ok_or_else(|| {
            InputError::Relation {
                name: name.to_string(),
            }
            .into()
        })
    })
}

/// `oid::regclass::text`.
pub(crate) fn regclass_text(facts: &Arc<SessionFacts>) -> Arc<ScalarUDF> {
    let facts = Arc::clone(facts);
    function("regclass_out", ColumnType::Text, (1, 1), move |arguments| {
        let Some(oid) = whole(arguments.first()) else {
            return Ok(Value::Null);
        };
        let found = facts
            .relations
            .iter()
            .find(|relation| i64::from(relation.oid) == oid);
        Ok(match found {
            Some(relation) if facts.is_searched(&relation.schema) => Value::text(quote_ident(&relation.name)),
            Some(relation) => Value::text(format!(
                "{}.{}",
                quote_ident(&relation.schema),
                quote_ident(&relation.name)
            )),
            None if oid == 0 => Value::text("-"),
            None => Value::text(oid.to_string()),
        })
    })
}

/// `'name'::regtype`.
pub(crate) fn regtype_of_text() -> Arc<ScalarUDF> {
    function("regtype_in", SqlType::RegType, (1, 1), |arguments| {
        let Some(Value::Text(name)) = arguments.first() else {
            return Ok(Value::Null);
        };
        type_named(name).ok_or_else(|| QueryError::unsupported(format!("type {name}")))
    })
}

/// `to_regtype('name')`: NULL where there is no such type.
pub(crate) fn to_regtype() -> Arc<ScalarUDF> {
    function("to_regtype", SqlType::RegType, (1, 1), |arguments| {
        Ok(match arguments.first() {
            Some(Value::Text(name)) => type_named(name).unwrap_or(Value::Null),
            _ => Value::Null,
        })
    })
}

/// `to_regprocedure('name(types)')`: NULL where PostgreSQL 15 has no such function. Functions have no object ids here, so
/// one that it has is refused.
pub(crate) fn to_regprocedure() -> Arc<ScalarUDF> {
    function("to_regprocedure", SqlType::RegProc, (1, 1), |arguments| {
        let Some(Value::Text(signature)) = arguments.first() else {
            return Ok(Value::Null);
        };
        let name = signature.split('(').next().unwrap_or_default();
        let name = name.trim().trim_start_matches("pg_catalog.").to_lowercase();
        if super::is_of_postgres(&name) {
            return Err(QueryError::unsupported(format!(
                "the object id of function {name}"
            )));
        }
        Ok(Value::Null)
    })
}

fn type_named(name: &str) -> Option<Value> {
    let bare = name
        .trim()
        .trim_start_matches("pg_catalog.")
        .trim_matches('"')
        .to_lowercase();
    let (bare, is_array) = match bare.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (bare.as_str(), false),
    };
    let found = TYPES
        .iter()
        .find(|(_, long, short, _)| *long == bare || *short == bare)?;
    let (oid, _, _, array) = found;
    Some(Value::Int64(if is_array { *array } else { *oid }))
}

/// The object id of a type.
pub(crate) fn type_oid(sql_type: SqlType) -> Option<i64> {
    let name = sql_type.sql_name();
    let digits = name.find('(').unwrap_or(name.len());
    let array = if name.ends_with("[]") { "[]" } else { "" };
    let bare = format!("{}{array}", name.get(..digits)?.trim_end_matches("[]"));
    match type_named(&bare)? {
        Value::Int64(oid) => Some(oid),
        _ => None,
    }
}

/// `'name'::regproc`.
pub(crate) fn regproc_of_text() -> Arc<ScalarUDF> {
    function("regproc_in", SqlType::RegProc, (1, 1), |arguments| {
        let Some(Value::Text(name)) = arguments.first() else {
            return Ok(Value::Null);
        };
        let number = name.parse::<u32>().unwrap_or_else(|_| super::procedure_oid(name));
        Ok(Value::Int64(i64::from(number)))
    })
}

/// `oid::regtype::text`.
pub(crate) fn regtype_text() -> Arc<ScalarUDF> {
    function("regtype_out", ColumnType::Text, (1, 1), |arguments| {
        Ok(match arguments.first() {
            _ if whole(arguments.first()).is_none() => Value::Null,
            _ => Value::text(format_type(whole(arguments.first()).unwrap_or_default(), None)),
        })
    })
}

/// The types of PostgreSQL 15 that are no arrays: object id, the name SQL has for it, its short name, the object id of
/// arrays of it. Source: PostgreSQL, `pg_type`.
static TYPES: LazyLock<Vec<(i64, &str, &str, i64)>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut parts = line.split('|');
        let oid = parts.next()?.parse().ok()?;
        let (long, short) = (parts.next()?, parts.next()?);
        Some((oid, long, short, parts.next()?.parse().ok()?))
    };
    include_str!("postgres_types.txt")
        .lines()
        .filter_map(line)
        .collect()
});

/// The name SQL has for a type, by its object id; `-` for none and `???` for one that PostgreSQL 15 does not have.
#[must_use]
pub fn type_name(oid: i64) -> String {
    format_type(oid, None)
}

/// The name of a type by its number; a numeric's digits are in its modifier.
fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let name = TYPES
        .iter()
        .find(|(known, ..)| *known == oid)
        .map(|(_, long, ..)| *long);
    let element = TYPES.iter().find(|(.., array)| *array == oid && oid != 0);
    if let Some((_, element, ..)) = element {
        return format!("{element}[]");
    }
    match (name, modifier) {
        (Some("numeric"), Some(modifier)) if modifier >= 4 => {
            format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0x7ff)
        }
        (Some(name), _) => name.to_owned(),
        (None, _) if oid == 0 => "-".to_owned(),
        (None, _) => "???".to_owned(),
    }
}

/// `ctid::text`.
pub(crate) fn tid_text_function() -> Arc<ScalarUDF> {
    function("tid_out", ColumnType::Text, (1, 1), |arguments| {
        Ok(match arguments.first() {
            Some(Value::Int64(number)) => Value::text(tid_text(*number)),
            _ => Value::Null,
        })
    })
}
