//! Arrays on the wire. Inside the server an array is its text; here are Postgres's binary form of it and the types of
//! arrays by those of their elements. Source: PostgreSQL, `arrayfuncs.c` (`array_recv`, `array_send`).

use bytes::{Buf, BufMut, BytesMut};
use moraine_sql::text::array;
use postgres_types::{Kind, Type};

use super::encode;
use super::parameters::Parameter;
use crate::errors::{SqlError, state};

/// The type of the elements of an array type.
pub(crate) fn element(array: &Type) -> Option<&Type> {
    match array.kind() {
        Kind::Array(element) => Some(element),
        _ => None,
    }
}

/// The array type with such elements; text where there is none.
pub(crate) fn of(element: &Type) -> Type {
    match *element {
        Type::BOOL => Type::BOOL_ARRAY,
        Type::INT2 => Type::INT2_ARRAY,
        Type::INT4 => Type::INT4_ARRAY,
        Type::INT8 => Type::INT8_ARRAY,
        Type::FLOAT4 => Type::FLOAT4_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::NUMERIC => Type::NUMERIC_ARRAY,
        Type::VARCHAR => Type::VARCHAR_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        Type::UUID => Type::UUID_ARRAY,
        Type::DATE => Type::DATE_ARRAY,
        Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
        Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
        Type::TIME => Type::TIME_ARRAY,
        Type::TIMETZ => Type::TIMETZ_ARRAY,
        Type::INTERVAL => Type::INTERVAL_ARRAY,
        Type::OID => Type::OID_ARRAY,
        _ => Type::TEXT_ARRAY,
    }
}

/// The elements of an array of `element`s in its binary form.
pub(crate) fn parameters(mut bytes: &[u8], element: &Type) -> Result<Vec<Parameter>, SqlError> {
    let invalid = || SqlError::new(state::INVALID_BINARY, "the binary form of an array is damaged");
    if bytes.len() < 12 {
        return Err(invalid());
    }
    let dimensions = bytes.get_i32();
    let _has_nulls = bytes.get_i32();
    let sent = Type::from_oid(bytes.get_u32()).unwrap_or_else(|| element.clone());
    match dimensions {
        0 => return Ok(Vec::new()),
        1 => {}
        _ => return Err(SqlError::unsupported("an array of several dimensions")),
    }
    if bytes.len() < 8 {
        return Err(invalid());
    }
    let count = usize::try_from(bytes.get_i32()).map_err(|_| invalid())?;
    let _lower_bound = bytes.get_i32();
    // Each element has a length at least: a count beyond that is damage, and no reason to ask for memory.
    if count > bytes.len() / 4 {
        return Err(invalid());
    }
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        if bytes.len() < 4 {
            return Err(invalid());
        }
        let length = bytes.get_i32();
        if length == -1 {
            found.push(Parameter::sent(None, true, sent.clone()));
            continue;
        }
        let length = usize::try_from(length).map_err(|_| invalid())?;
        let item = bytes.get(..length).ok_or_else(invalid)?;
        let item = bytes::Bytes::copy_from_slice(item);
        bytes.advance(length);
        found.push(Parameter::sent(Some(item), true, sent.clone()));
    }
    if bytes.is_empty() {
        Ok(found)
    } else {
        Err(invalid())
    }
}

/// The elements of an array's text, for a parameter.
pub(crate) fn text_parameters(text: &str, element: &Type) -> Result<Vec<Parameter>, SqlError> {
    let malformed = || {
        SqlError::new(
            state::INVALID_TEXT,
            format!("malformed array literal: \"{text}\""),
        )
    };
    let items = array::elements(text).ok_or_else(malformed)?;
    let item = |item: Option<String>| Parameter::sent(item.map(bytes::Bytes::from), false, element.clone());
    Ok(items.into_iter().map(item).collect())
}

/// The text of an array of these texts.
pub(crate) fn format(items: &[Option<String>]) -> String {
    array::text(items.iter().map(Option::as_deref))
}

/// Appends the binary form of an array's text, without the length in front. Text that is no array, which no value of an
/// array type is, leaves as an array of nothing.
pub(crate) fn put_binary(out: &mut BytesMut, text: &str, element: &Type) {
    // The vectors of the system catalogs are written with spaces.
    let spaced = || {
        text.split_whitespace()
            .map(|item| Some(item.to_owned()))
            .collect()
    };
    let items: Vec<Option<String>> = match text.starts_with('{') {
        true => array::elements(text).unwrap_or_default(),
        false => spaced(),
    };
    out.put_i32(i32::from(!items.is_empty()));
    out.put_i32(i32::from(items.iter().any(Option::is_none)));
    out.put_u32(element.oid());
    if items.is_empty() {
        return;
    }
    out.put_i32(i32::try_from(items.len()).unwrap_or(i32::MAX));
    out.put_i32(1);
    for item in &items {
        encode::put_text_as(out, item.as_deref(), element);
    }
}
