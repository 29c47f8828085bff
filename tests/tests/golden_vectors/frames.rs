//! Vectors of frames: the bytes around a message, values without a frame, and what is refused.

use bytes::Bytes;
use moraine_codec::proto::{EmptyValue, HeadValue};
use moraine_codec::{DecodeError, decode, encode};
use moraine_keys::{DeleteTargetKey, HeadKey, MultiIndexKey, NameKey, UniqueIndexKey};

use crate::document::Document;

pub(crate) fn document() -> Document {
    let mut document = Document::new(
        "frames.txt",
        "Frames: magic MRNE, version 0, protobuf; raw values; what is refused.",
    );
    for head in [
        HeadValue {
            snapshot_id: 0,
            batch_seq: 0,
        },
        HeadValue {
            snapshot_id: 42,
            batch_seq: 300,
        },
        HeadValue {
            snapshot_id: u64::MAX,
            batch_seq: u64::MAX,
        },
    ] {
        let bytes = encode(&HeadKey, &head).unwrap();
        document.add(&format!("accepted: {head:?}"), &bytes);
    }
    let unique = UniqueIndexKey {
        index_id: 1,
        canonical: vec![0].into(),
    };
    document.add(
        &"raw: row id 258 of a unique index entry",
        &encode(&unique, &258).unwrap(),
    );
    let multi = MultiIndexKey {
        index_id: 1,
        canonical: vec![0].into(),
        row_id: 3,
    };
    document.add(
        &"raw: index entry that admits duplicates",
        &encode(&multi, &EmptyValue {}).unwrap(),
    );
    document.add(
        &"raw: name",
        &encode(&NameKey::schema("main", 0), &EmptyValue {}).unwrap(),
    );
    document.add(
        &"raw: delete target",
        &encode(&DeleteTargetKey::default(), &EmptyValue {}).unwrap(),
    );
    for bytes in [
        &b""[..],
        b"MRNE",
        b"MRNF\0",
        b"mrne\0\x08\x2a",
        b"MRNE\x01",
        b"MRNE\xff\x08\x2a",
        b"MRNE\0\x08",
        b"MRNE\0\x0a\x7f",
        b"MRNE\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        document.add(&format!("refused: {}", refusal(bytes)), bytes);
    }
    // Fields of later versions are skipped.
    let later = b"MRNE\0\x08\x2a\x10\x07\x9a\x06\x03abc";
    document.add(
        &format!("accepted: {:?}, and field 99", head_of(later).unwrap()),
        later,
    );
    document
}

fn head_of(bytes: &'static [u8]) -> Result<HeadValue, DecodeError> {
    decode(&HeadKey, &Bytes::from_static(bytes))
}

fn refusal(bytes: &'static [u8]) -> &'static str {
    match head_of(bytes) {
        Err(DecodeError::Truncated { .. }) => "truncated",
        Err(DecodeError::Magic { .. }) => "another magic",
        Err(DecodeError::Version { .. }) => "newer version",
        Err(DecodeError::Payload { .. }) => "no protobuf",
        other => panic!("{bytes:02x?} gives {other:?}"),
    }
}
