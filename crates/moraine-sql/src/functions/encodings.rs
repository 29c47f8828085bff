//! Bytes as text and back, their digest and their bits.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};

use super::row::function;
use crate::error::{InputError, QueryError};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of one line of base64. Source: PostgreSQL, `encode.c`.
const BASE64_LINE: usize = 76;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        function("encode", ColumnType::Text, (2, 2), |arguments| {
            let [Value::Bytes(bytes), Value::Text(encoding)] = arguments else {
                return Ok(Value::Null);
            };
            match encoding.to_lowercase().as_str() {
                "hex" => Ok(Value::text(
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                )),
                "base64" => Ok(Value::text(base64(bytes))),
                other => Err(unknown(other)),
            }
        }),
        function("decode", ColumnType::Bytes, (2, 2), |arguments| {
            let [Value::Text(text), Value::Text(encoding)] = arguments else {
                return Ok(Value::Null);
            };
            let decoded = match encoding.to_lowercase().as_str() {
                "hex" => of_hex(text),
                "base64" => of_base64(text),
                other => return Err(unknown(other)),
            };
            decoded.map(|bytes| Value::Bytes(bytes.into())).ok_or_else(|| {
                InputError::Syntax {
                    type_name: encoding.to_string(),
                    text: text.to_string(),
                }
                .into()
            })
        }),
        function("md5", ColumnType::Text, (1, 1), |arguments| {
            match arguments.first() {
                Some(Value::Text(text)) => Ok(Value::text(format!("{:x}", md5::compute(text.as_bytes())))),
                Some(Value::Bytes(bytes)) => Ok(Value::text(format!("{:x}", md5::compute(bytes)))),
                Some(Value::Null) | None => Ok(Value::Null),
                Some(_) => Err(QueryError::UndefinedFunction {
                    name: "md5 of neither text nor bytes".to_owned(),
                }),
            }
        }),
        function(
            "bit_count",
            ColumnType::Int64,
            (1, 1),
            |arguments| match arguments.first() {
                Some(Value::Bytes(bytes)) => {
                    let bits = bytes.iter().map(|byte| i64::from(byte.count_ones()));
                    Ok(Value::Int64(bits.sum()))
                }
                Some(Value::Null) | None => Ok(Value::Null),
                Some(_) => Err(QueryError::UndefinedFunction {
                    name: "bit_count of anything but bytes".to_owned(),
                }),
            },
        ),
    ]
}

fn unknown(encoding: &str) -> QueryError {
    QueryError::unsupported(format!("the encoding {encoding}"))
}

fn base64(bytes: &[u8]) -> String {
    let sign = |group: u32, place: u32| {
        let index = usize::try_from(group >> (18 - 6 * place) & 63).unwrap_or_default();
        BASE64.get(index).copied().map_or('=', char::from)
    };
    let mut out = String::new();
    for (index, chunk) in bytes.chunks(3).enumerate() {
        if index > 0 && (index * 4).is_multiple_of(BASE64_LINE) {
            out.push('\n');
        }
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let there = usize::try_from(place).unwrap_or_default() <= chunk.len();
            out.push(if there { sign(group, place) } else { '=' });
        }
    }
    out
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|sign| !sign.is_whitespace())
        .map(|sign| sign.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(high << 4 | low),
        _ => None,
    });
    pairs.collect()
}

fn of_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut group, mut bits) = (0u32, 0u32);
    let mut ended = false;
    for sign in text.bytes().filter(|sign| !sign.is_ascii_whitespace()) {
        if sign == b'=' {
            ended = true;
            continue;
        }
        let value = BASE64
            .iter()
            .position(|known| *known == sign)
            .filter(|_| !ended)?;
        group = (group << 6 | u32::try_from(value).ok()?) & 0x00ff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(group >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}
