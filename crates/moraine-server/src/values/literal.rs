//! What a literal of SQL means for a column: an untyped (quoted) literal takes the column's type, a number keeps all its
//! digits until the type is known, a cast is done before the assignment. Each literal is coerced once.

use std::sync::Arc;

use moraine_tables::{ColumnType, Value};

use super::parameters::Parameters;
use super::parse::{self, ParseError};
use super::types::sql_name;
use super::{encode, numeric};
use crate::errors::{SqlError, state};

/// A constant as the statement wrote it, before a type is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    /// The digits of an unquoted number, with its sign.
    Number(String),
    /// A quoted literal: of unknown type until a column gives it one.
    Quoted(String),
    /// `CAST(x AS t)` or `x::t` of a constant.
    Cast(Box<Literal>, ColumnType),
    /// `NOW()` and its synonyms: the start of the transaction.
    Now,
    /// An already typed value: a column of a row.
    Typed(Value),
    /// `$n` of a prepared statement, counted from 0.
    Parameter(usize, Arc<Parameters>),
}

/// What a coercion needs to know beside the literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The column the value is for; named in errors.
    pub(crate) column: &'a str,
    pub(crate) column_type: ColumnType,
    /// Microseconds since 1970 at which the transaction began.
    pub(crate) now: i64,
}

impl Literal {
    /// The value of this literal in the column, as an assignment: 22P02, 22003 or 42804 when it is none.
    pub(crate) fn coerce(&self, target: Target<'_>) -> Result<Value, SqlError> {
        match self {
            Literal::Null => Ok(Value::Null),
            Literal::Quoted(text) => read(text, target),
            Literal::Number(digits) => number(digits, target),
            Literal::Bool(value) => assign(Value::Bool(*value), target),
            Literal::Now => assign(Value::TimestampTz(target.now), target),
            Literal::Typed(value) => assign(value.clone(), target),
            Literal::Parameter(index, parameters) => parameters.value(*index, target),
            Literal::Cast(inner, column_type) => {
                let inner = inner.coerce_explicit(Target {
                    column_type: *column_type,
                    ..target
                })?;
                assign(inner, target)
            }
        }
    }

    /// The value of this literal under an explicit cast, which may also read text and write anything as text.
    pub(crate) fn coerce_explicit(&self, target: Target<'_>) -> Result<Value, SqlError> {
        match self {
            Literal::Typed(Value::Text(text)) => read(text, target),
            Literal::Cast(inner, column_type) => {
                match inner.coerce_explicit(Target {
                    column_type: *column_type,
                    ..target
                })? {
                    Value::Text(text) => read(&text, target),
                    value => assign(value, target),
                }
            }
            Literal::Number(digits) if target.column_type == ColumnType::Bool => match digits.as_str() {
                "0" => Ok(Value::Bool(false)),
                digits if digits.parse::<i64>().is_ok() => Ok(Value::Bool(true)),
                _ => Err(mismatch(target, "numeric")),
            },
            other => other.coerce(target),
        }
    }

    /// The type the literal has where no column gives it one.
    pub(crate) fn natural_type(&self) -> ColumnType {
        match self {
            Literal::Null | Literal::Quoted(_) | Literal::Parameter(..) => ColumnType::Text,
            Literal::Bool(_) => ColumnType::Bool,
            Literal::Number(digits) => match number_type(digits) {
                "integer" => ColumnType::Int32,
                "bigint" => ColumnType::Int64,
                _ => {
                    let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                    ColumnType::Numeric {
                        precision: 38,
                        scale: i8::try_from(scale.min(38)).unwrap_or(38),
                    }
                }
            },
            Literal::Cast(_, column_type) => *column_type,
            Literal::Now => ColumnType::TimestampTz,
            Literal::Typed(value) => natural_type_of(value),
        }
    }

    /// The literal with a minus in front; only numbers have one.
    pub(crate) fn negated(self) -> Option<Literal> {
        match self {
            Literal::Number(digits) => Some(Literal::Number(match digits.strip_prefix('-') {
                Some(positive) => positive.to_owned(),
                None => format!("-{digits}"),
            })),
            Literal::Cast(inner, column_type) => Some(Literal::Cast(Box::new(inner.negated()?), column_type)),
            _ => None,
        }
    }
}

fn natural_type_of(value: &Value) -> ColumnType {
    match value {
        Value::Null | Value::Text(_) => ColumnType::Text,
        Value::Bool(_) => ColumnType::Bool,
        Value::Int16(_) => ColumnType::Int16,
        Value::Int32(_) => ColumnType::Int32,
        Value::Int64(_) => ColumnType::Int64,
        Value::Float32(_) => ColumnType::Float32,
        Value::Float64(_) => ColumnType::Float64,
        Value::Numeric(decimal) => ColumnType::Numeric {
            precision: 38,
            scale: decimal.scale,
        },
        Value::Bytes(_) => ColumnType::Bytes,
        Value::Uuid(_) => ColumnType::Uuid,
        Value::Date(_) => ColumnType::Date,
        Value::Timestamp(_) => ColumnType::Timestamp,
        Value::TimestampTz(_) => ColumnType::TimestampTz,
        Value::Time(_) => ColumnType::Time,
        Value::TimeTz { .. } => ColumnType::TimeTz,
        Value::Interval { .. } => ColumnType::Interval,
    }
}

/// Reads quoted text as the target's type.
pub(crate) fn read(text: &str, target: Target<'_>) -> Result<Value, SqlError> {
    parse::parse(text, target.column_type).map_err(|error| match error {
        ParseError::Syntax => SqlError::new(
            state::INVALID_TEXT,
            format!(
                "invalid input syntax for type {}: \"{}\" (column \"{}\")",
                sql_name(target.column_type),
                shortened(text),
                target.column
            ),
        ),
        ParseError::Range => out_of_range(text, target),
    })
}

fn out_of_range(text: &str, target: Target<'_>) -> SqlError {
    SqlError::new(
        state::NUMERIC_OUT_OF_RANGE,
        format!(
            "value \"{}\" is out of range for type {} (column \"{}\")",
            shortened(text),
            sql_name(target.column_type),
            target.column
        ),
    )
}

/// Literals may be megabytes; an error quotes the beginning.
fn shortened(text: &str) -> String {
    const QUOTED_CHARS_MAX: usize = 120;
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn mismatch(target: Target<'_>, found: &str) -> SqlError {
    SqlError::mismatch(target.column, &sql_name(target.column_type), found)
}

/// An unquoted number for a column: exact for integers and decimals, verbatim for text.
fn number(digits: &str, target: Target<'_>) -> Result<Value, SqlError> {
    match target.column_type {
        ColumnType::Text => Ok(Value::Text(digits.into())),
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => {
            let whole = numeric::parse(digits, 38, 0).map_err(|_| out_of_range(digits, target))?;
            integer(whole.unscaled, target).ok_or_else(|| out_of_range(digits, target))
        }
        ColumnType::Float32 | ColumnType::Float64 | ColumnType::Numeric { .. } => read(digits, target),
        _ => Err(mismatch(target, number_type(digits))),
    }
}

/// The type Postgres gives an unquoted number.
pub(crate) fn number_type(digits: &str) -> &'static str {
    if digits.parse::<i32>().is_ok() {
        "integer"
    } else if digits.parse::<i64>().is_ok() {
        "bigint"
    } else {
        "numeric"
    }
}

fn integer(value: i128, target: Target<'_>) -> Option<Value> {
    Some(match target.column_type {
        ColumnType::Int16 => Value::Int16(i16::try_from(value).ok()?),
        ColumnType::Int32 => Value::Int32(i32::try_from(value).ok()?),
        ColumnType::Int64 => Value::Int64(i64::try_from(value).ok()?),
        _ => return None,
    })
}

/// A typed value into a column, with the casts Postgres makes on assignment: within numbers, and anything to text.
pub(crate) fn assign(value: Value, target: Target<'_>) -> Result<Value, SqlError> {
    if value.has_type(target.column_type) && !matches!(value, Value::Numeric(_)) {
        return Ok(value);
    }
    let found = value.type_name();
    match (&value, target.column_type) {
        // Its output is a letter, and its cast a word.
        (Value::Bool(value), ColumnType::Text) => Ok(Value::text(value.to_string())),
        (_, ColumnType::Text) => {
            Ok(encode::text(&value).map_or(Value::Null, |text| Value::Text(text.into())))
        }
        (Value::Int16(_) | Value::Int32(_) | Value::Int64(_), _) => {
            let text = encode::text(&value).unwrap_or_default();
            number(&text, target)
        }
        (Value::Numeric(decimal), ColumnType::Numeric { precision, scale }) => {
            let rescaled = numeric::rescale(*decimal, precision, scale);
            rescaled
                .map(Value::Numeric)
                .ok_or_else(|| out_of_range(&decimal.to_string(), target))
        }
        (Value::Numeric(decimal), _) => number(&decimal.to_string(), target),
        (Value::Float32(float), ColumnType::Float64) => Ok(Value::Float64(f64::from(*float))),
        (Value::Float64(_), ColumnType::Float32) => read(&encode::text(&value).unwrap_or_default(), target),
        (Value::Float32(_) | Value::Float64(_), ColumnType::Numeric { .. }) => {
            read(&encode::text(&value).unwrap_or_default(), target)
        }
        (
            Value::Float32(_) | Value::Float64(_),
            ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64,
        ) => {
            let text = encode::text(&value).unwrap_or_default();
            number(&text, target)
        }
        (Value::Timestamp(micros), ColumnType::TimestampTz) => Ok(Value::TimestampTz(*micros)),
        (Value::TimestampTz(micros), ColumnType::Timestamp) => Ok(Value::Timestamp(*micros)),
        (Value::Date(_), ColumnType::Timestamp | ColumnType::TimestampTz) => {
            read(&encode::text(&value).unwrap_or_default(), target)
        }
        _ => Err(mismatch(target, found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coerced(literal: &Literal, column_type: ColumnType) -> Result<Value, &'static str> {
        literal
            .coerce(Target {
                column: "c",
                column_type,
                now: 7,
            })
            .map_err(|error| error.state)
    }

    #[test]
    fn a_quoted_literal_takes_the_type_of_the_column() {
        let quoted = |text: &str| Literal::Quoted(text.to_owned());
        assert_eq!(coerced(&quoted("12"), ColumnType::Int64), Ok(Value::Int64(12)));
        assert_eq!(coerced(&quoted("12"), ColumnType::Text), Ok(Value::text("12")));
        assert_eq!(coerced(&quoted("x"), ColumnType::Int64), Err("22P02"));
        assert_eq!(coerced(&quoted("1e40"), ColumnType::Int64), Err("22P02"));
        assert_eq!(
            coerced(&quoted("99999999999999999999"), ColumnType::Int64),
            Err("22003")
        );
    }

    #[test]
    fn numbers_keep_all_digits() {
        let digits = "170141183460469231731687303715884105727";
        assert_eq!(
            coerced(&Literal::Number(digits.into()), ColumnType::Text),
            Ok(Value::text(digits))
        );
        let decimal = Literal::Number("1234567890123456789012345678.0123456789".into());
        let Ok(Value::Numeric(value)) = coerced(
            &decimal,
            ColumnType::Numeric {
                precision: 38,
                scale: 10,
            },
        ) else {
            panic!("a decimal");
        };
        assert_eq!(value.to_string(), "1234567890123456789012345678.0123456789");
        assert_eq!(
            coerced(&Literal::Number("1".into()), ColumnType::Bool),
            Err("42804")
        );
    }

    #[test]
    fn a_cast_reads_text_and_an_assignment_does_not() {
        let cast = Literal::Cast(Box::new(Literal::Quoted("nan".into())), ColumnType::Float32);
        assert!(matches!(coerced(&cast, ColumnType::Float32), Ok(Value::Float32(v)) if v.is_nan()));
        let text = Literal::Cast(Box::new(Literal::Quoted("5".into())), ColumnType::Text);
        assert_eq!(coerced(&text, ColumnType::Int64), Err("42804"));
        let twice = Literal::Cast(Box::new(text), ColumnType::Int64);
        assert_eq!(coerced(&twice, ColumnType::Int64), Ok(Value::Int64(5)));
    }
}
