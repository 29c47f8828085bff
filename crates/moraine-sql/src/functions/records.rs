//! Rows as values, text of a fixed length, and periods that meet.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};

use super::row::function;
use crate::error::QueryError;
use crate::text;
use crate::types::SqlType;

/// What a row as a value is made with. No query can write it.
pub(crate) const RECORD: &str = "\u{1}record";
const RECORD_OR_NULL: &str = "\u{1}record_or_null";
/// What text is cut and marked with, before its length.
const CHARACTER: &str = "\u{1}character_";

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let overlaps = function("overlaps", ColumnType::Bool, (4, 4), |arguments| {
        let [from, until, other_from, other_until] = arguments else {
            return Ok(Value::Null);
        };
        Ok(overlap((from, until), (other_from, other_until)).map_or(Value::Null, Value::Bool))
    });
    // Taken out again before a plan is run.
    let ties = function(crate::ties::WITH_TIES, ColumnType::Int64, (1, 1), |arguments| {
        Ok(arguments.first().cloned().unwrap_or(Value::Null))
    });
    vec![record(false), overlaps, ties]
}

/// A row of values in the form that Postgres writes it. `may_lack` says that a join may give none.
pub(crate) fn record(may_lack: bool) -> Arc<ScalarUDF> {
    let name = if may_lack { RECORD_OR_NULL } else { RECORD };
    function(name, SqlType::Record, (0, usize::MAX), move |arguments| {
        if may_lack && arguments.iter().all(Value::is_null) {
            return Ok(Value::Null);
        }
        let parts = arguments.iter().map(|part| match text::format(part) {
            Some(part) => quoted(&part),
            None => String::new(),
        });
        Ok(Value::text(format!("({})", parts.collect::<Vec<_>>().join(","))))
    })
}

/// A part of a row. Source: PostgreSQL, `rowtypes.c` (`record_out`).
fn quoted(part: &str) -> String {
    let plain = |sign: char| !matches!(sign, '"' | '\\' | '(' | ')' | ',') && !sign.is_ascii_whitespace();
    if !part.is_empty() && part.chars().all(plain) {
        return part.to_owned();
    }
    format!("\"{}\"", part.replace('\\', "\\\\").replace('"', "\"\""))
}

/// The name of the function that makes text a `character` of this length.
pub(crate) fn character_name(length: u32) -> String {
    format!("{CHARACTER}{length}")
}

/// The function of such a name.
pub(crate) fn character(name: &str) -> Option<Arc<ScalarUDF>> {
    let length: u32 = name.strip_prefix(CHARACTER)?.parse().ok()?;
    let kept = usize::try_from(length).ok()?;
    Some(function(
        name,
        SqlType::Character(length),
        (1, 1),
        move |arguments| {
            let Some(Value::Text(text)) = arguments.first() else {
                return Ok(Value::Null);
            };
            let cut: String = text.chars().take(kept).collect();
            Ok(Value::text(cut.trim_end_matches(' ')))
        },
    ))
}

/// Whether two periods have a moment in common. Source: PostgreSQL, `timestamp.c` (`overlaps_timestamp`).
fn overlap(one: (&Value, &Value), other: (&Value, &Value)) -> Option<bool> {
    let (from, until) = in_order(one)?;
    let (other_from, other_until) = in_order(other)?;
    let before = |one: &Value, other: &Value| one.compare(other) == Some(Ordering::Less);
    match from.compare(other_from)? {
        Ordering::Greater => {
            if before(from, other_until?) {
                return Some(true);
            }
            until.map(|_| false)
        }
        Ordering::Less => {
            if before(other_from, until?) {
                return Some(true);
            }
            other_until.map(|_| false)
        }
        Ordering::Equal => {
            until?;
            other_until?;
            Some(true)
        }
    }
}

/// The lesser end that is known, and the other one; `None` for a period of which nothing is known.
fn in_order<'a>((from, until): (&'a Value, &'a Value)) -> Option<(&'a Value, Option<&'a Value>)> {
    match (from.is_null(), until.is_null()) {
        (true, true) => None,
        (true, false) => Some((until, None)),
        (false, true) => Some((from, None)),
        (false, false) if from.compare(until) == Some(Ordering::Greater) => Some((until, Some(from))),
        (false, false) => Some((from, Some(until))),
    }
}

/// A row has no order of its own here.
pub(crate) fn refuse_order(sql_type: SqlType) -> Result<(), QueryError> {
    if sql_type == SqlType::Record {
        return Err(QueryError::unsupported(
            "the order of rows that are not written out",
        ));
    }
    Ok(())
}
