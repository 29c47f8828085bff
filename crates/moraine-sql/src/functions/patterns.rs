//! Texts taken apart at what a regular expression matches, and `SIMILAR TO` as such an expression.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};
use regex::{Regex, RegexBuilder};

use super::row::function;
use crate::error::QueryError;
use crate::text;
use crate::types::{Element, SqlType};

/// Expressions that a call keeps ready; a query seldom has more than one.
const READY_MAX: usize = 16;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let ready: Mutex<HashMap<(String, String), Regex>> = Mutex::new(HashMap::new());
    let texts = SqlType::Array(Element::Column(ColumnType::Text));
    vec![function(
        "regexp_split_to_array",
        texts,
        (2, 3),
        move |arguments| {
            let [Value::Text(text), Value::Text(pattern), flags @ ..] = arguments else {
                return Ok(Value::Null);
            };
            let flags = match flags {
                [] => "",
                [Value::Text(flags)] => flags,
                _ => return Ok(Value::Null),
            };
            let key = (pattern.to_string(), flags.to_owned());
            let mut ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
            if ready.len() >= READY_MAX {
                ready.clear();
            }
            let regex = match ready.get(&key) {
                Some(regex) => regex,
                None => {
                    let regex = compiled(pattern, flags)?;
                    ready.entry(key).or_insert(regex)
                }
            };
            let parts = split(regex, text);
            Ok(Value::text(text::array::text(parts.into_iter().map(Some))))
        },
    )]
}

fn compiled(pattern: &str, flags: &str) -> Result<Regex, QueryError> {
    let mut builder = RegexBuilder::new(pattern);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            'x' => builder.ignore_whitespace(true),
            other => {
                return Err(QueryError::unsupported(format!(
                    "the flag {other} of a regular expression"
                )));
            }
        };
    }
    builder.build().map_err(|error| QueryError::Invalid {
        detail: format!("invalid regular expression: {error}"),
    })
}

/// The parts between matches. A match of nothing counts inside of a part only.
fn split<'t>(regex: &Regex, text: &'t str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for found in regex.find_iter(text) {
        let splits = !found.is_empty() || (found.start() > from && found.start() < text.len());
        if splits {
            parts.extend(text.get(from..found.start()));
            from = found.end();
        }
    }
    parts.extend(text.get(from..));
    parts
}

/// The regular expression that matches what `SIMILAR TO` does. Source: PostgreSQL, `similar_escape`.
pub(crate) fn of_similar(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::from("^(?:");
    let mut signs = pattern.chars();
    let mut in_class = false;
    while let Some(sign) = signs.next() {
        match sign {
            sign if Some(sign) == escape => {
                if let Some(literal) = signs.next() {
                    out.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
                }
            }
            sign if in_class => {
                in_class = sign != ']';
                if sign == '\\' {
                    out.push('\\');
                }
                out.push(sign);
            }
            '[' => {
                in_class = true;
                out.push(sign);
            }
            '%' => out.push_str("(?s:.)*"),
            '_' => out.push_str("(?s:.)"),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' | '\\' => {
                out.push('\\');
                out.push(sign);
            }
            sign => out.push(sign),
        }
    }
    out.push_str(")$");
    out
}
