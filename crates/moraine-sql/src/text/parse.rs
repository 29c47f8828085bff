//! Text into a value of a column's type: Postgres's input functions for the types the tables have.

use bytes::Bytes;
use moraine_tables::{ColumnType, Value};

use super::numeric::{self, NumericError};
use super::temporal;

/// Why a text is no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Not of the type's form: 22P02.
    Syntax,
    /// Of the form, but beyond what the type holds: 22003.
    Range,
}

/// Reads the text of a value of the given type.
///
/// # Errors
/// [`ParseError::Syntax`] and [`ParseError::Range`].
pub fn parse(text: &str, column_type: ColumnType) -> Result<Value, ParseError> {
    let syntax = ParseError::Syntax;
    Ok(match column_type {
        ColumnType::Text => Value::Text(text.into()),
        ColumnType::Bool => Value::Bool(parse_bool(text).ok_or(syntax)?),
        ColumnType::Int16 => Value::Int16(narrow(parse_integer(text)?)?),
        ColumnType::Int32 => Value::Int32(narrow(parse_integer(text)?)?),
        ColumnType::Int64 => Value::Int64(narrow(parse_integer(text)?)?),
        ColumnType::Float32 => match parse_float::<f32>(text).ok_or(syntax)? {
            beyond if beyond.is_infinite() && !says_infinity(text) => return Err(ParseError::Range),
            value => Value::Float32(value),
        },
        ColumnType::Float64 => match parse_float::<f64>(text).ok_or(syntax)? {
            beyond if beyond.is_infinite() && !says_infinity(text) => return Err(ParseError::Range),
            value => Value::Float64(value),
        },
        ColumnType::Numeric { precision, scale } => {
            let value = numeric::parse(text, precision, scale).map_err(|error| match error {
                NumericError::Syntax => ParseError::Syntax,
                NumericError::Range => ParseError::Range,
            })?;
            Value::Numeric(value)
        }
        ColumnType::Bytes => Value::Bytes(parse_bytea(text).ok_or(syntax)?),
        ColumnType::Uuid => Value::Uuid(parse_uuid(text).ok_or(syntax)?),
        ColumnType::Date => Value::Date(temporal::parse_date(text).ok_or(syntax)?),
        ColumnType::Timestamp => Value::Timestamp(temporal::parse_timestamp(text).ok_or(syntax)?.0),
        ColumnType::TimestampTz => Value::TimestampTz(temporal::parse_timestamp_tz(text).ok_or(syntax)?),
        ColumnType::Time => Value::Time(temporal::parse_time(text).ok_or(syntax)?),
        ColumnType::TimeTz => {
            let (micros, offset_seconds) = temporal::parse_time_tz(text).ok_or(syntax)?;
            Value::TimeTz {
                micros,
                offset_seconds,
            }
        }
        ColumnType::Interval => {
            let (months, days, micros) = temporal::parse_interval(text).ok_or(syntax)?;
            Value::Interval { months, days, micros }
        }
    })
}

fn narrow<T: TryFrom<i128>>(value: i128) -> Result<T, ParseError> {
    T::try_from(value).map_err(|_| ParseError::Range)
}

fn parse_integer(text: &str) -> Result<i128, ParseError> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseError::Syntax);
    }
    text.strip_prefix('+')
        .unwrap_or(text)
        .parse()
        .map_err(|_| ParseError::Range)
}

/// Unique prefixes of the words Postgres accepts for a boolean.
fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    match text.as_str() {
        "" | "o" => None,
        "1" | "on" => Some(true),
        "0" => Some(false),
        word if "true".starts_with(word) || "yes".starts_with(word) => Some(true),
        word if "false".starts_with(word) || "no".starts_with(word) || "off".starts_with(word) => Some(false),
        _ => None,
    }
}

fn says_infinity(text: &str) -> bool {
    text.contains(['i', 'I'])
}

fn parse_float<F: std::str::FromStr>(text: &str) -> Option<F> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("nan") {
        return "NaN".parse().ok();
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let infinite = unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity");
    let numeric = unsigned
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit() || byte == b'.');
    if infinite || numeric {
        text.parse().ok()
    } else {
        None
    }
}

/// `\x` and hexadecimal digits, or the escape form (`\\`, `\ooo`, bytes).
fn parse_bytea(text: &str) -> Option<Bytes> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let mut out = Vec::with_capacity(hex.len() / 2);
        let mut nibbles = hex.bytes().filter(|byte| !byte.is_ascii_whitespace());
        while let Some(high) = nibbles.next() {
            out.push(hex_digit(high)? << 4 | hex_digit(nibbles.next()?)?);
        }
        return Some(out.into());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next()? {
            b'\\' => out.push(b'\\'),
            first @ b'0'..=b'3' => {
                let mut value = first - b'0';
                for _ in 0..2 {
                    let digit = bytes.next().filter(|digit| (b'0'..=b'7').contains(digit))?;
                    value = value << 3 | (digit - b'0');
                }
                out.push(value);
            }
            _ => return None,
        }
    }
    Some(out.into())
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim();
    let text = text
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
        .unwrap_or(text);
    let mut out = [0u8; 16];
    let mut nibbles = text.bytes().filter(|byte| *byte != b'-');
    for slot in &mut out {
        *slot = hex_digit(nibbles.next()?)? << 4 | hex_digit(nibbles.next()?)?;
    }
    nibbles.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytea_is_read_in_both_forms() {
        assert_eq!(parse_bytea("\\x68656C6c6f").unwrap().as_ref(), b"hello");
        assert_eq!(parse_bytea("a\\\\b\\000").unwrap().as_ref(), b"a\\b\0");
        assert_eq!(parse_bytea("\\x6"), None);
        assert_eq!(parse_bytea("\\q"), None);
    }

    #[test]
    fn integers_refuse_what_is_not_one_and_what_does_not_fit() {
        assert_eq!(parse("-1", ColumnType::Int64), Ok(Value::Int64(-1)));
        assert_eq!(parse("1.5", ColumnType::Int64), Err(ParseError::Syntax));
        assert_eq!(
            parse("9223372036854775808", ColumnType::Int64),
            Err(ParseError::Range)
        );
        assert_eq!(parse("40000", ColumnType::Int16), Err(ParseError::Range));
    }

    #[test]
    fn floats_read_their_specials() {
        assert!(matches!(parse("NaN", ColumnType::Float64), Ok(Value::Float64(v)) if v.is_nan()));
        assert_eq!(
            parse("-infinity", ColumnType::Float32),
            Ok(Value::Float32(f32::NEG_INFINITY))
        );
        assert_eq!(parse("nano", ColumnType::Float32), Err(ParseError::Syntax));
    }
}
