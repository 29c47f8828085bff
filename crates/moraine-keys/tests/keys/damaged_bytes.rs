//! Bytes that are no key: each kind of damage has an error of its own, and none makes the decoder panic.

use moraine_keys::{HexBytes, Key, KeyError, Kind, NameKey, SnapshotKey, TableKey};
use proptest::prelude::*;

use crate::samples::{check, keys};

fn key_of(bytes: &[u8]) -> HexBytes {
    HexBytes::from(bytes)
}

#[test]
fn no_bytes_are_no_key() {
    assert_eq!(Key::decode(&[]), Err(KeyError::Empty));
}

#[test]
fn a_key_cut_short_is_truncated() {
    let bytes = TableKey { table_id: 7 }.encode();
    for len in 1..bytes.len() {
        let cut = &bytes[..len];
        assert_eq!(
            Key::decode(cut),
            Err(KeyError::Truncated {
                key: key_of(cut),
                len
            })
        );
    }
    let name = NameKey::schema("main", 0).encode();
    let inside_the_name = &name[..20];
    assert_eq!(
        Key::decode(inside_the_name),
        Err(KeyError::Truncated {
            key: key_of(inside_the_name),
            len: 20
        })
    );
}

#[test]
fn bytes_behind_a_key_are_trailing() {
    let bytes = [SnapshotKey { snapshot_id: 42 }.encode().as_ref(), &[0, 1]].concat();
    let expected = KeyError::TrailingBytes {
        key: key_of(&bytes),
        found: "snapshot{snapshot_id=42}".to_owned(),
        expected_len: 9,
        len: 11,
    };
    assert_eq!(Key::decode(&bytes), Err(expected));
}

#[test]
fn bytes_without_meaning_are_unknown_discriminants() {
    for (bytes, offset, byte) in [
        (vec![0x0c], 0, 0x0c),
        (vec![0x01], 0, 0x01),
        (vec![0x02, 0x06], 1, 0x06),
        (vec![0x04, 0x04], 1, 0x04),
        (vec![0x04, 0x02, 0x12, 0, 0], 2, 0x12),
        (vec![0x06, 0x03, 0x05], 2, 0x05),
        (vec![0x07, 0x00], 1, 0x00),
    ] {
        let expected = KeyError::UnknownDiscriminant {
            key: key_of(&bytes),
            offset,
            byte,
        };
        assert_eq!(Key::decode(&bytes), Err(expected));
    }
}

#[test]
fn an_escape_that_was_not_needed_is_not_canonical() {
    let mut bytes = NameKey::schema("A", 0).encode().to_vec();
    assert_eq!(bytes[17], b'A');
    bytes.insert(17, 0x01);
    let expected = KeyError::NonCanonical {
        key: key_of(&bytes),
        found: NameKey::schema("A", 0).to_string(),
        offset: 17,
    };
    assert_eq!(Key::decode(&bytes), Err(expected));
}

#[test]
fn a_name_that_is_not_utf8_is_refused() {
    let mut bytes = NameKey::schema("A", 0).encode().to_vec();
    bytes[17] = 0xff;
    assert_eq!(
        Key::decode(&bytes),
        Err(KeyError::InvalidUtf8 { key: key_of(&bytes) })
    );
}

#[test]
fn a_key_of_another_kind_names_both_kinds() {
    let error = TableKey::decode(&SnapshotKey { snapshot_id: 42 }.encode()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a key of kind current/table, found snapshot{snapshot_id=42}"
    );
}

/// Whatever decodes is exactly the key that has these bytes.
fn is_refused_or_exact(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(key) = Key::decode(bytes) {
        prop_assert_eq!(key.encode().to_vec(), bytes);
    }
    Ok(())
}

#[test]
fn no_key_begins_another() {
    check(
        &(keys(), prop::collection::vec(any::<u8>(), 1..4)),
        |(key, tail)| {
            let bytes = key.encode();
            for len in 0..bytes.len() {
                prop_assert!(Key::decode(&bytes[..len]).is_err());
            }
            prop_assert!(Key::decode(&[bytes.as_ref(), &tail].concat()).is_err());
            Ok(())
        },
    );
}

#[test]
fn a_flipped_bit_gives_an_error_or_the_key_of_those_bytes() {
    check(&keys(), |key| {
        let bytes = key.encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            is_refused_or_exact(&flipped)?;
        }
        Ok(())
    });
}

#[test]
fn arbitrary_bytes_give_an_error_or_the_key_of_those_bytes() {
    let byte = prop_oneof![3 => 0..20u8, 1 => any::<u8>()];
    check(&prop::collection::vec(byte, 0..64), |bytes| {
        is_refused_or_exact(&bytes)
    });
}
