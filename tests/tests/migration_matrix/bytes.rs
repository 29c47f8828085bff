//! Keys and values as bytes, by hand: a writer that follows the code it tests would find nothing.

use std::collections::BTreeMap;

/// Records by key.
pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key: discriminants, then integers.
pub(crate) fn key(kind: &[u8], ids: &[u64]) -> Vec<u8> {
    let mut bytes = kind.to_vec();
    for id in ids {
        bytes.extend_from_slice(&id.to_be_bytes());
    }
    bytes
}

/// A key with a text or a byte string between integers.
pub(crate) fn key_with_bytes(kind: &[u8], ids: &[u64], text: &[u8], after: &[u64]) -> Vec<u8> {
    let mut bytes = key(kind, ids);
    for byte in text {
        if *byte <= 1 {
            bytes.push(1);
        }
        bytes.push(*byte);
    }
    bytes.push(0);
    key(&bytes, after)
}

/// A protobuf message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message(Vec<u8>);

pub(crate) fn message() -> Message {
    Message::default()
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// An integer without presence: 0 is left out.
    pub(crate) fn u(self, field: u64, value: u64) -> Self {
        if value == 0 {
            self
        } else {
            self.ou(field, Some(value))
        }
    }

    /// An integer with presence.
    pub(crate) fn ou(mut self, field: u64, value: Option<u64>) -> Self {
        if let Some(value) = value {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    pub(crate) fn flag(self, field: u64, value: bool) -> Self {
        self.u(field, u64::from(value))
    }

    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A text without presence: an empty one is left out.
    pub(crate) fn s(self, field: u64, value: &str) -> Self {
        if value.is_empty() {
            self
        } else {
            self.bytes(field, value.as_bytes())
        }
    }

    /// A text with presence.
    pub(crate) fn os(self, field: u64, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.bytes(field, value.as_bytes()),
            None => self,
        }
    }

    pub(crate) fn m(self, field: u64, value: Message) -> Self {
        self.bytes(field, &value.0)
    }

    /// Integers, packed.
    pub(crate) fn packed(self, field: u64, values: &[u64]) -> Self {
        let mut packed = message();
        values.iter().for_each(|value| packed.varint(*value));
        if values.is_empty() {
            self
        } else {
            self.m(field, packed)
        }
    }

    /// The message in its frame.
    pub(crate) fn framed(self) -> Vec<u8> {
        [b"MRNE\0".as_slice(), &self.0].concat()
    }
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(digit).collect()
}
