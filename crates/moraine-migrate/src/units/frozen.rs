//! What the steps know of bytes: the frame, as much protobuf as it takes to find a field, and keys as a prefix with
//! integers. Written once and never edited: what a step does to a store of an old format must not follow later changes of
//! the live codec.

use bytes::Bytes;

/// What a framed value begins with: `MRNE` and the encoding version 0.
const FRAME: [u8; 5] = *b"MRNE\0";
const ID_BYTES: usize = 8;

/// What is wrong with a record, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damage(pub(crate) String);

fn damage<T>(text: impl Into<String>) -> Result<T, Damage> {
    Err(Damage(text.into()))
}

/// The `N` integers that follow `prefix` and end the key.
pub(crate) fn ids<const N: usize>(key: &[u8], prefix: &[u8]) -> Result<[u64; N], Damage> {
    let rest = key.strip_prefix(prefix).unwrap_or_default();
    if rest.len() != N * ID_BYTES {
        return damage(format!(
            "its key has {} bytes after the kind, not {}",
            rest.len(),
            N * ID_BYTES
        ));
    }
    let mut ids = [0; N];
    for (id, bytes) in ids.iter_mut().zip(rest.as_chunks::<ID_BYTES>().0) {
        *id = u64::from_be_bytes(*bytes);
    }
    Ok(ids)
}

/// The key of `prefix` and integers.
pub(crate) fn key(prefix: &[u8], ids: &[u64]) -> Bytes {
    let mut bytes = Vec::with_capacity(prefix.len() + ids.len() * ID_BYTES);
    bytes.extend_from_slice(prefix);
    ids.iter()
        .for_each(|id| bytes.extend_from_slice(&id.to_be_bytes()));
    bytes.into()
}

/// The key of `prefix`, integers, a text and one more integer. The bytes 0 and 1 of the text are escaped by a 1, and a 0
/// ends it.
pub(crate) fn key_with_text(prefix: &[u8], ids: &[u64], text: &str, last: u64) -> Bytes {
    let mut bytes = key(prefix, ids).to_vec();
    for byte in text.bytes() {
        if byte <= 1 {
            bytes.push(1);
        }
        bytes.push(byte);
    }
    bytes.push(0);
    bytes.extend_from_slice(&last.to_be_bytes());
    bytes.into()
}

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// The fields of a framed message, by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message<'a> {
    fields: Vec<(u64, Field<'a>)>,
}

impl<'a> Message<'a> {
    /// The message in the frame `value`. Every field is walked, none is interpreted.
    pub(crate) fn read(value: &'a [u8]) -> Result<Self, Damage> {
        let Some(mut rest) = value.strip_prefix(&FRAME) else {
            return damage("its value does not begin with the bytes MRNE and the version 0");
        };
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let tag = varint(&mut rest)?;
            let field = match tag & 7 {
                0 => Field::Integer(varint(&mut rest)?),
                1 => skip(&mut rest, 8).map(|_| Field::Fixed)?,
                2 => {
                    let length = varint(&mut rest)?;
                    Field::Bytes(skip(&mut rest, usize::try_from(length).unwrap_or(usize::MAX))?)
                }
                5 => skip(&mut rest, 4).map(|_| Field::Fixed)?,
                other => return damage(format!("its value has a field of wire type {other}")),
            };
            fields.push((tag >> 3, field));
        }
        Ok(Message { fields })
    }

    /// Whether a field is there at all.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.fields.iter().any(|(found, _)| *found == number)
    }

    /// An integer field; 0 where it is absent.
    pub(crate) fn integer(&self, number: u64) -> Result<u64, Damage> {
        match self.last(number) {
            None => Ok(0),
            Some(Field::Integer(value)) => Ok(value),
            Some(_) => damage(format!("field {number} of its value is no integer")),
        }
    }

    /// A text field; empty where it is absent.
    pub(crate) fn text(&self, number: u64) -> Result<&'a str, Damage> {
        match self.last(number) {
            None => Ok(""),
            Some(Field::Bytes(bytes)) => std::str::from_utf8(bytes)
                .map_err(|error| Damage(format!("field {number} of its value is no text: {error}"))),
            Some(_) => damage(format!("field {number} of its value is no text")),
        }
    }

    /// A repeated integer field, packed or not.
    pub(crate) fn integers(&self, number: u64) -> Result<Vec<u64>, Damage> {
        let mut integers = Vec::new();
        for (_, field) in self.fields.iter().filter(|(found, _)| *found == number) {
            match field {
                Field::Integer(value) => integers.push(*value),
                Field::Bytes(bytes) => {
                    let mut packed = *bytes;
                    while !packed.is_empty() {
                        integers.push(varint(&mut packed)?);
                    }
                }
                Field::Fixed => return damage(format!("field {number} of its value is no integer")),
            }
        }
        Ok(integers)
    }

    /// Checks that the integer field `number` is `id`, as the key says.
    pub(crate) fn expect(&self, number: u64, name: &str, id: u64) -> Result<(), Damage> {
        let found = self.integer(number)?;
        if found == id {
            return Ok(());
        }
        damage(format!("its {name} is {found}, and that of its key {id}"))
    }

    fn last(&self, number: u64) -> Option<Field<'a>> {
        let found = self.fields.iter().rev().find(|(found, _)| *found == number);
        found.map(|(_, field)| *field)
    }
}

/// A framed message of integer fields; those that are 0 are left out.
pub(crate) fn integers_message(fields: &[(u64, u64)]) -> Bytes {
    let mut bytes = FRAME.to_vec();
    for (number, value) in fields.iter().filter(|(_, value)| *value != 0) {
        push_varint(&mut bytes, number << 3);
        push_varint(&mut bytes, *value);
    }
    bytes.into()
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn varint(rest: &mut &[u8]) -> Result<u64, Damage> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let Some((byte, after)) = rest.split_first() else {
            return damage("its value ends within a number");
        };
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    damage("its value has a number of more than ten bytes")
}

fn skip<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Damage> {
    let Some((skipped, after)) = rest.split_at_checked(length) else {
        return damage("its value ends within a field");
    };
    *rest = after;
    Ok(skipped)
}

#[cfg(test)]
mod tests {
    use super::{Message, ids, integers_message, key, key_with_text};

    #[test]
    fn keys_have_the_bytes_of_the_format() {
        let tombstone = key(&[6, 9], &[7, 9, 12]);
        assert_eq!(
            tombstone.as_ref(),
            [
                &[6, 9][..],
                &[
                    0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 12
                ]
            ]
            .concat()
        );
        assert_eq!(ids::<3>(&tombstone, &[6, 9]).unwrap(), [7, 9, 12]);
        assert!(ids::<2>(&tombstone, &[6, 9]).is_err());
        let name = key_with_text(&[10], &[1, 0], "a\u{0}\u{1}b", 1 << 56);
        assert_eq!(
            name.as_ref().split_at(17).1,
            [b'a', 1, 0, 1, 1, b'b', 0, 1, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn messages_are_read_field_by_field_and_damage_is_an_error() {
        let bytes = integers_message(&[(1, 300), (2, 0), (4, u64::MAX)]);
        let message = Message::read(&bytes).unwrap();
        assert_eq!(message.integer(1).unwrap(), 300);
        assert_eq!(message.integer(4).unwrap(), u64::MAX);
        assert!(!message.has(2) && message.integer(2).unwrap() == 0);
        assert!(message.text(1).is_err());
        let packed = [b"MRNE\0".as_slice(), &[0x5a, 3, 1, 0x80, 1, 0x58, 9]].concat();
        assert_eq!(Message::read(&packed).unwrap().integers(11).unwrap(), [1, 128, 9]);
        for cut in 0..bytes.len() {
            // A message may end after any field, so not every cut is damage; none may panic.
            let _ = Message::read(&bytes[..cut]);
        }
        for damaged in [
            &b"MRNX\0"[..],
            b"MRNE\x01",
            b"MRNE\0\x0a\x7f",
            b"MRNE\0\x08",
            b"MRNE\0\x0b",
        ] {
            assert!(Message::read(damaged).is_err(), "{damaged:?}");
        }
    }
}
