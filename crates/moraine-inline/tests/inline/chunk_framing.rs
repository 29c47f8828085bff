//! The bytes of chunk bodies and schema streams: their framing, what they refuse, and what damage does to them.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Once};

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use moraine_inline::{FrameError, decode_body, decode_schema, encode_body, encode_schema};
use proptest::prelude::*;

/// One column of every shape a body can have, three rows, NULLs in most.
fn every_shape() -> RecordBatch {
    let mut list = ListBuilder::new(Int32Builder::new());
    list.append_value([Some(1), None, Some(3)]);
    list.append_null();
    list.append_value([]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("key");
    map.values().append_value(5);
    map.append(true).unwrap();
    map.append(true).unwrap();
    map.append(false).unwrap();
    let inner: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("z")]));
    let nested = StructArray::from(vec![
        (
            Arc::new(Field::new("f", DataType::Float64, true)),
            Arc::new(Float64Array::from(vec![0.5, f64::NAN, -0.0])) as ArrayRef,
        ),
        (Arc::new(Field::new("g", DataType::Utf8, true)), inner),
    ]);
    let uuids = FixedSizeBinaryArray::try_from_iter([[1_u8; 16], [2; 16], [3; 16]].into_iter()).unwrap();
    let long = "longer than the twelve bytes a view holds in itself";
    let arrays: Vec<(&str, ArrayRef)> = vec![
        ("int", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]))),
        (
            "text",
            Arc::new(StringArray::from(vec![Some("ä"), Some(""), None])),
        ),
        ("large", Arc::new(LargeStringArray::from(vec!["a", "b", "c"]))),
        (
            "view",
            Arc::new(StringViewArray::from(vec![Some(long), Some("s"), None])),
        ),
        (
            "bool",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        ),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from(vec![1, -2, 3])
                    .with_precision_and_scale(18, 3)
                    .unwrap(),
            ),
        ),
        (
            "stamp",
            Arc::new(TimestampMicrosecondArray::from(vec![0, 1, -1]).with_timezone("UTC")),
        ),
        (
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from(vec![None, None, None])),
        ),
        ("uuid", Arc::new(uuids)),
        ("list", Arc::new(list.finish())),
        ("map", Arc::new(map.finish())),
        ("struct", Arc::new(nested)),
        ("null", Arc::new(NullArray::new(3))),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn int_and_text() -> RecordBatch {
    let ints = Int64Array::from(vec![Some(1), None, Some(3)]);
    let texts = StringArray::from(vec![Some("a"), None, Some("cd")]);
    let columns: Vec<(&str, ArrayRef)> = vec![("c0", Arc::new(ints)), ("c1", Arc::new(texts))];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn round_trip(batch: &RecordBatch) -> RecordBatch {
    decode_body(
        &encode_body(batch).unwrap(),
        batch.schema(),
        batch.num_rows() as u64,
    )
    .unwrap()
}

#[test]
fn bodies_of_every_shape_round_trip() {
    let batch = every_shape();
    for batch in [
        batch.clone(),
        batch.slice(1, 2),
        batch.slice(2, 1),
        batch.slice(0, 0),
        int_and_text(),
    ] {
        assert_eq!(round_trip(&batch), batch);
    }
}

#[test]
fn schemas_of_every_shape_round_trip_with_their_metadata() {
    let extension = HashMap::from([
        ("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned()),
        ("ARROW:extension:metadata".to_owned(), String::new()),
    ]);
    let mut fields: Vec<Field> = every_shape()
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    fields.push(Field::new("uuid2", DataType::FixedSizeBinary(16), false).with_metadata(extension));
    let schema = Schema::new(fields);
    let bytes = encode_schema(&schema).unwrap();
    assert_eq!(*decode_schema(&bytes).unwrap(), schema);
    assert_eq!(encode_schema(&schema.clone()).unwrap(), bytes);
}

#[test]
fn a_body_is_a_length_a_message_and_a_data_block_and_nothing_else() {
    let batch = int_and_text();
    let body = encode_body(&batch).unwrap();
    let length = usize::try_from(u32::from_le_bytes(body[..4].try_into().unwrap())).unwrap();
    let message = arrow_ipc::root_as_message(&body[4..4 + length]).unwrap();
    assert_eq!(message.version(), arrow_ipc::MetadataVersion::V5);
    let header = message.header_as_record_batch().unwrap();
    assert_eq!(header.length(), 3);
    assert!(header.compression().is_none());
    let data_bytes = body.len() - 4 - length;
    assert_eq!(usize::try_from(message.bodyLength()).unwrap(), data_bytes);
    // Validity, values, validity, offsets, text, each padded to 8 bytes.
    let offsets: Vec<i64> = header
        .buffers()
        .unwrap()
        .iter()
        .map(|buffer| buffer.offset())
        .collect();
    assert_eq!(offsets, vec![0, 8, 32, 40, 56]);
    assert_eq!(data_bytes, 64);
}

#[test]
fn a_schema_stream_is_one_message_and_an_end_of_stream_marker() {
    let bytes = encode_schema(&int_and_text().schema()).unwrap();
    assert_eq!(bytes[..4], [0xff; 4]);
    let length = usize::try_from(u32::from_le_bytes(bytes[4..8].try_into().unwrap())).unwrap();
    assert_eq!(bytes[8 + length..], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let message = arrow_ipc::root_as_message(&bytes[8..8 + length]).unwrap();
    assert_eq!(message.version(), arrow_ipc::MetadataVersion::V5);
    assert!(message.header_as_schema().is_some());
}

#[test]
fn bodies_written_with_another_alignment_and_at_any_address_are_read() {
    let batch = every_shape();
    let options =
        arrow_ipc::writer::IpcWriteOptions::try_new(64, false, arrow_ipc::MetadataVersion::V5).unwrap();
    let mut tracker = arrow_ipc::writer::DictionaryTracker::new(true);
    let (_, encoded) = arrow_ipc::writer::IpcDataGenerator::default()
        .encode(&batch, &mut tracker, &options, &mut Default::default())
        .unwrap();
    let mut body = u32::try_from(encoded.ipc_message.len())
        .unwrap()
        .to_le_bytes()
        .to_vec();
    body.extend(encoded.ipc_message);
    body.extend(encoded.arrow_data);
    for shift in 0..9 {
        let shifted = [vec![0; shift], body.clone()].concat();
        let body = Bytes::from(shifted).slice(shift..);
        assert_eq!(decode_body(&body, batch.schema(), 3).unwrap(), batch);
    }
}

#[test]
fn dictionaries_are_refused_at_any_depth() {
    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    dictionary.append_value("a");
    let dictionary: ArrayRef = Arc::new(dictionary.finish());
    let field = Arc::new(Field::new("inner", dictionary.data_type().clone(), true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, dictionary.clone())]));
    for (array, path) in [(dictionary, "d"), (nested, "d.inner")] {
        let batch = RecordBatch::try_from_iter([("d", array)]).unwrap();
        for error in [
            encode_body(&batch).unwrap_err(),
            encode_schema(&batch.schema()).unwrap_err(),
        ] {
            assert!(
                matches!(&error, FrameError::Dictionary { column } if column == path),
                "{error}"
            );
        }
    }
}

#[test]
fn unions_and_run_end_encoding_are_refused_by_name() {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let values = Arc::new(Field::new("values", DataType::Utf8, true));
    let schema = Schema::new(vec![Field::new("r", DataType::RunEndEncoded(ends, values), true)]);
    let error = encode_schema(&schema).unwrap_err();
    assert!(
        matches!(&error, FrameError::Unsupported { column, .. } if column == "r"),
        "{error}"
    );
}

#[test]
fn a_body_with_another_row_count_than_its_record_is_refused() {
    let batch = int_and_text();
    let body = encode_body(&batch).unwrap();
    for rows in [0, 2, 4, u64::MAX] {
        let error = decode_body(&body, batch.schema(), rows).unwrap_err();
        assert!(matches!(error, FrameError::RowCount { found: 3, .. }), "{error}");
    }
}

#[test]
fn a_body_of_another_schema_is_refused() {
    let batch = int_and_text();
    let body = encode_body(&batch).unwrap();
    let swapped = Arc::new(batch.schema().project(&[1, 0]).unwrap());
    let fewer = Arc::new(batch.schema().project(&[0]).unwrap());
    let more = Arc::new(batch.schema().project(&[0, 1, 1]).unwrap());
    let required: Vec<Field> = batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(false))
        .collect();
    for schema in [swapped, fewer, more, Arc::new(Schema::new(required))] {
        let error = decode_body(&body, schema, 3).unwrap_err();
        assert!(matches!(error, FrameError::Body { .. }), "{error}");
    }
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let batch = int_and_text();
    let body = encode_body(&batch).unwrap().to_vec();
    let text = body.windows(3).rposition(|bytes| bytes == b"acd").unwrap();
    let mut broken = body.clone();
    broken[text] = 0xff;
    let error = decode_body(&Bytes::from(broken), batch.schema(), 3).unwrap_err();
    assert!(error.to_string().contains("UTF"), "{error}");
}

thread_local! {
    /// Panics that Arrow raised inside a decode on this thread; `None` while nobody counts.
    static PANICS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `decode`, which must not let a panic out, and returns how many were raised inside.
fn panics_inside(decode: impl FnOnce()) -> usize {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match PANICS.get() {
            Some(count) => PANICS.set(Some(count + 1)),
            None => usual(info),
        }));
    });
    PANICS.set(Some(0));
    decode();
    PANICS.replace(None).unwrap_or_default()
}

/// Decoding damaged bytes gives an error or a batch that holds together.
fn is_sound(body: Vec<u8>, batch: &RecordBatch) -> bool {
    match decode_body(&Bytes::from(body), batch.schema(), batch.num_rows() as u64) {
        Ok(decoded) => {
            decoded.num_rows() == batch.num_rows()
                && decoded.schema() == batch.schema()
                && decoded
                    .columns()
                    .iter()
                    .all(|column| column.to_data().validate_full().is_ok())
        }
        Err(_) => true,
    }
}

#[test]
fn every_flipped_byte_and_every_truncation_of_a_body_gives_an_error_or_a_valid_batch() {
    let batch = every_shape();
    let body = encode_body(&batch).unwrap().to_vec();
    for position in 0..body.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = body.clone();
            damaged[position] ^= flip;
            let mut sound = false;
            let panics = panics_inside(|| sound = is_sound(damaged, &batch));
            assert!(sound, "byte {position} flipped by {flip:#x}");
            // The bounds are checked first, so Arrow has no reason to.
            assert_eq!(panics, 0, "byte {position} flipped by {flip:#x}");
        }
        let truncated = Bytes::from(body[..position].to_vec());
        assert!(
            decode_body(&truncated, batch.schema(), 3).is_err(),
            "truncated to {position}"
        );
    }
}

#[test]
fn every_flipped_byte_and_every_truncation_of_a_schema_stream_gives_an_error_or_a_schema() {
    let bytes = encode_schema(&every_shape().schema()).unwrap().to_vec();
    for position in 0..bytes.len() {
        for flip in [0x01, 0x02, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[position] ^= flip;
            let mut decoded = None;
            let panics = panics_inside(|| decoded = decode_schema(&Bytes::from(damaged)).ok());
            assert_eq!(panics, 0, "byte {position} flipped by {flip:#x}");
            if let Some(schema) = decoded {
                encode_schema(&schema).unwrap();
            }
        }
        assert!(
            decode_schema(&Bytes::from(bytes[..position].to_vec())).is_err(),
            "truncated to {position}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn bodies_damaged_anywhere_never_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let batch = every_shape();
        let mut body = encode_body(&batch).unwrap().to_vec();
        for (index, byte) in damage {
            let position = index.index(body.len());
            body[position] = byte;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        prop_assert!(is_sound(body, &batch));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(is_sound(bytes.clone(), &int_and_text()));
        let _ = decode_schema(&Bytes::from(bytes.clone()));
        let framed = [&[0xff; 4][..], &bytes].concat();
        let _ = decode_schema(&Bytes::from(framed));
    }
}
