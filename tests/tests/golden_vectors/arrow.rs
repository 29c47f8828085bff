//! Vectors of inlined rows: Arrow schema streams and chunk bodies.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array,
    Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use moraine_inline::{decode_body, decode_schema, encode_body, encode_schema};

use crate::document::Document;

pub(crate) fn document() -> Document {
    let mut document = Document::new(
        "arrow.txt",
        "Inlined rows: the Arrow IPC stream of a schema, and the body of a chunk (message length, message, buffers).",
    );
    for (name, batch) in batches() {
        document.add(
            &format!("schema: {name}"),
            &encode_schema(batch.schema_ref()).unwrap(),
        );
        document.add(&format!("body: {name}"), &encode_body(&batch).unwrap());
    }
    document
}

/// A batch with columns `c0`, `c1`, … that all admit NULL, as DuckLake's do.
fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(position, column)| Field::new(format!("c{position}"), column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn batches() -> Vec<(&'static str, RecordBatch)> {
    [batches_of_numbers_and_text(), batches_of_other_types()].concat()
}

fn batches_of_numbers_and_text() -> Vec<(&'static str, RecordBatch)> {
    vec![
        (
            "Int64 and Utf8, 3 rows, a NULL in each",
            batch(vec![
                Arc::new(Int64Array::from(vec![Some(1), None, Some(-3)])),
                Arc::new(StringArray::from(vec![None, Some("ab"), Some("c")])),
            ]),
        ),
        (
            "Int64 and Utf8, 3 rows, no NULL",
            batch(vec![
                Arc::new(Int64Array::from(vec![i64::MIN, 0, i64::MAX])),
                Arc::new(StringArray::from(vec!["a", "ü", "語🪨"])),
            ]),
        ),
        (
            "Int64 and Utf8, 1 row, NULL only",
            batch(vec![
                Arc::new(Int64Array::from(vec![None])),
                Arc::new(StringArray::from(vec![None::<&str>])),
            ]),
        ),
        (
            "Utf8, 3 rows of length zero",
            batch(vec![Arc::new(StringArray::from(vec!["", "", ""]))]),
        ),
    ]
}

fn batches_of_other_types() -> Vec<(&'static str, RecordBatch)> {
    vec![
        (
            "Boolean, 9 rows, more than a byte of bits",
            batch(vec![Arc::new(BooleanArray::from(vec![
                Some(true),
                Some(false),
                None,
                Some(true),
                Some(true),
                Some(false),
                Some(false),
                None,
                Some(true),
            ]))]),
        ),
        (
            "Int16, Int32 and Float64, 3 rows",
            batch(vec![
                Arc::new(Int16Array::from(vec![i16::MIN, 0, i16::MAX])),
                Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
                Arc::new(Float64Array::from(vec![
                    -0.0,
                    f64::INFINITY,
                    f64::from_bits(0x7ff8_0000_0000_0000),
                ])),
            ]),
        ),
        (
            "Decimal128(38, 3), 3 rows",
            batch(vec![Arc::new(
                Decimal128Array::from(vec![Some(12_345), None, Some(-(10_i128.pow(38) - 1))])
                    .with_precision_and_scale(38, 3)
                    .unwrap(),
            )]),
        ),
        (
            "Date32, Time64, Timestamp and Timestamp with UTC, 2 rows",
            batch(vec![
                Arc::new(Date32Array::from(vec![Some(-1), None])),
                Arc::new(Time64MicrosecondArray::from(vec![Some(86_399_999_999), Some(0)])),
                Arc::new(TimestampMicrosecondArray::from(vec![
                    Some(1_767_225_600_000_000),
                    None,
                ])),
                Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN]).with_timezone("UTC")),
            ]),
        ),
        (
            "Binary and FixedSizeBinary(16), 3 rows, one of length zero",
            batch(vec![
                Arc::new(BinaryArray::from_opt_vec(vec![
                    Some(&[0x00, 0x01, 0xff]),
                    Some(&[]),
                    None,
                ])),
                Arc::new(
                    FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                        [Some([0x11; 16]), None, Some([0xee; 16])].into_iter(),
                        16,
                    )
                    .unwrap(),
                ),
            ]),
        ),
        ("List of Int64 and Struct, 3 rows", nested()),
    ]
}

fn nested() -> RecordBatch {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1), None, Some(3)]),
        None,
        Some(vec![]),
    ]);
    let fields = Fields::from(vec![
        Field::new("i", DataType::Int32, true),
        Field::new("s", DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(StringArray::from(vec![Some("x"), Some("y"), None])),
    ];
    let structs = StructArray::new(fields, columns, Some(vec![true, true, false].into()));
    batch(vec![Arc::new(lists), Arc::new(structs)])
}

/// The vectors are not only bytes that were once written: they read back as the rows they are of.
#[test]
fn the_vectors_of_inlined_rows_read_back() {
    for (name, batch) in batches() {
        let schema = decode_schema(&encode_schema(batch.schema_ref()).unwrap()).unwrap();
        assert_eq!(&schema, batch.schema_ref(), "{name}");
        let body: Bytes = encode_body(&batch).unwrap();
        let rows = u64::try_from(batch.num_rows()).unwrap();
        assert_eq!(
            decode_body(&body, schema, rows).unwrap().num_rows(),
            batch.num_rows(),
            "{name}"
        );
    }
}
