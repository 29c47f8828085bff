//! What is refused before any message is looked at: four kinds of damage, four errors, each naming the key.

use bytes::Bytes;
use moraine_codec::{DecodeError, decode, decode_record};
use moraine_keys::{ColumnKey, HeadKey, HexBytes, Kind, NameKey, UniqueIndexKey};

fn column() -> ColumnKey {
    ColumnKey {
        table_id: 7,
        column_id: 3,
    }
}

const COLUMN: &str = "current/column{table_id=7, column_id=3}";

fn error_of(bytes: &'static [u8]) -> DecodeError {
    decode(&column(), &Bytes::from_static(bytes)).unwrap_err()
}

#[test]
fn a_value_shorter_than_the_header_is_truncated() {
    for bytes in [&b""[..], b"M", b"MRNE"] {
        let error = error_of(bytes);
        assert_eq!(
            error,
            DecodeError::Truncated {
                key: COLUMN.to_owned(),
                len: bytes.len()
            }
        );
        assert!(error.to_string().contains(COLUMN));
    }
}

#[test]
fn a_value_with_another_magic_is_refused() {
    let error = error_of(b"MRNF\0");
    let found = HexBytes(Bytes::from_static(b"MRNF"));
    assert_eq!(
        error,
        DecodeError::Magic {
            key: COLUMN.to_owned(),
            found
        }
    );
    assert!(
        error.to_string().contains(COLUMN) && error.to_string().contains("4d524e46"),
        "{error}"
    );
}

#[test]
fn a_value_of_a_newer_encoding_is_refused() {
    let error = error_of(b"MRNE\x01");
    assert_eq!(
        error,
        DecodeError::Version {
            key: COLUMN.to_owned(),
            found: 1,
            newest: 0
        }
    );
    assert!(
        error.to_string().contains(COLUMN) && error.to_string().contains("newer"),
        "{error}"
    );
}

#[test]
fn a_payload_that_is_no_message_is_refused() {
    let error = error_of(b"MRNE\0\xff");
    assert!(
        matches!(&error, DecodeError::Payload { key, .. } if key == COLUMN),
        "{error:?}"
    );
    assert!(error.to_string().contains(COLUMN), "{error}");
}

#[test]
fn damage_to_the_key_is_told_apart_from_damage_to_the_value() {
    let error = decode_record(&[0x02, 0x09], &Bytes::from_static(b"MRNE\0")).unwrap_err();
    assert!(matches!(error, DecodeError::Key(_)), "{error:?}");
}

#[test]
fn nothing_is_stored_under_kinds_that_are_never_written() {
    let archived = moraine_keys::ArchivedInsertKey::default();
    let stats = moraine_keys::TableStatsKey { table_id: 7 };
    let ended_stats = moraine_keys::Key::History(moraine_keys::HistoryKey {
        entity: moraine_keys::EntityKey::TableStats(stats),
        end_snapshot: 9,
    });
    for key in [archived.to_key(), ended_stats] {
        let error = decode_record(&key.encode(), &Bytes::from_static(b"MRNE\0")).unwrap_err();
        assert_eq!(error, DecodeError::Unwritten { key: key.to_string() });
    }
}

#[test]
fn directory_values_are_written_as_nothing_and_read_as_anything() {
    let key = NameKey::schema("main", 0);
    assert!(
        moraine_codec::encode(&key, &moraine_codec::proto::EmptyValue {})
            .unwrap()
            .is_empty()
    );
    for bytes in [&b""[..], b"MRNE\0", b"anything"] {
        assert!(decode(&key, &Bytes::from_static(bytes)).is_ok());
    }
}

#[test]
fn a_unique_index_entry_is_eight_raw_bytes() {
    let key = UniqueIndexKey {
        index_id: 1,
        canonical: vec![0].into(),
    };
    assert_eq!(
        moraine_codec::encode(&key, &7).unwrap().as_ref(),
        [0, 0, 0, 0, 0, 0, 0, 7]
    );
    let error = decode(&key, &Bytes::from_static(b"MRNE\0")).unwrap_err();
    assert_eq!(
        error,
        DecodeError::Length {
            key: key.to_string(),
            expected: 8,
            found: 5
        }
    );
}

#[test]
fn an_empty_message_is_the_bare_header() {
    let head = moraine_codec::encode(&HeadKey, &moraine_codec::proto::HeadValue::default()).unwrap();
    assert_eq!(head.as_ref(), [0x4d, 0x52, 0x4e, 0x45, 0x00]);
}
