//! Every Arrow type that DuckDB hands over natively: inserted, selected, and flushed to Parquet, where it is what it was.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, Int32Builder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTime, IntervalDayTimeType, IntervalMonthDayNano,
    IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Int64Array, LargeListArray,
    LargeStringArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use moraine_inline::{
    DataFileStream, DirectoriesAt, FlushColumn, FlushLayout, FlushedFile, InlineError, RowPredicate,
    create_table, flushable_rows,
};
use moraine_store::{MemoryStore, Staging};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{insert, run, select, staging};

fn column(column_id: u64, name: &str, ducklake_type: &str, children: Vec<FlushColumn>) -> FlushColumn {
    FlushColumn {
        name: name.to_owned(),
        column_id,
        ducklake_type: ducklake_type.to_owned(),
        children,
    }
}

/// DuckLake's type, what a chunk holds, what is in the file where that is something else.
type Column = (&'static str, ArrayRef, Option<ArrayRef>);

/// A value and NULL.
fn two<T: ArrowPrimitiveType>(value: T::Native) -> PrimitiveArray<T> {
    [Some(value), None].into_iter().collect()
}

fn array<T: ArrowPrimitiveType>(value: T::Native) -> ArrayRef {
    Arc::new(two::<T>(value))
}

fn decimal(value: i128, precision: u8, scale: i8) -> ArrayRef {
    Arc::new(
        two::<Decimal128Type>(value)
            .with_precision_and_scale(precision, scale)
            .unwrap(),
    )
}

fn numbers() -> Vec<Column> {
    let wide = two::<Decimal256Type>(i256::from_i128(i128::from(u64::MAX) * 3));
    let wide = Arc::new(wide.with_precision_and_scale(39, 0).unwrap());
    let short = two::<Decimal64Type>(-150).with_precision_and_scale(9, 2).unwrap();
    let greatest = 10_i128.pow(38) - 1;
    vec![
        (
            "boolean",
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            None,
        ),
        ("int8", array::<Int8Type>(i8::MIN), None),
        ("int16", array::<Int16Type>(i16::MIN), None),
        ("int32", array::<Int32Type>(i32::MIN), None),
        ("int64", array::<Int64Type>(i64::MIN), None),
        ("uint8", array::<UInt8Type>(u8::MAX), None),
        ("uint16", array::<UInt16Type>(u16::MAX), None),
        ("uint32", array::<UInt32Type>(u32::MAX), None),
        ("uint64", array::<UInt64Type>(u64::MAX), None),
        ("int128", decimal(-greatest, 38, 0), None),
        ("uint128", wide, Some(decimal(i128::from(u64::MAX) * 3, 38, 0))),
        ("float32", array::<Float32Type>(f32::MIN_POSITIVE), None),
        ("float64", array::<Float64Type>(f64::NEG_INFINITY), None),
        ("decimal(9,2)", Arc::new(short), Some(decimal(-150, 9, 2))),
        ("decimal(38,10)", decimal(-150, 38, 10), None),
    ]
}

fn texts() -> Vec<Column> {
    let text = [Some("snöw"), None];
    let plain: ArrayRef = Arc::new(StringArray::from(text.to_vec()));
    let blob = [Some(&b"\x00\xff"[..]), None];
    let bytes: ArrayRef = Arc::new(BinaryArray::from(blob.to_vec()));
    let mut uuids = FixedSizeBinaryBuilder::new(16);
    uuids.append_value([7; 16]).unwrap();
    uuids.append_null();
    vec![
        ("varchar", Arc::clone(&plain), None),
        (
            "varchar",
            Arc::new(LargeStringArray::from(text.to_vec())),
            Some(Arc::clone(&plain)),
        ),
        (
            "json",
            Arc::new(StringViewArray::from(text.to_vec())),
            Some(plain),
        ),
        ("blob", Arc::clone(&bytes), None),
        (
            "geometry",
            Arc::new(BinaryViewArray::from(blob.to_vec())),
            Some(bytes),
        ),
        ("uuid", Arc::new(uuids.finish()), None),
    ]
}

fn times() -> Vec<Column> {
    // 12:34:56+02 as DuckDB packs it.
    let packed = (45_296_000_000_u64 << 24) | (57_599 - 7_200);
    let interval = IntervalMonthDayNano::new(14, 3, 5_000_000);
    // Arrow's reader leaves Parquet's months out.
    let read = array::<IntervalDayTimeType>(IntervalDayTime::new(3, 5));
    let utc = two::<TimestampMicrosecondType>(-1).with_timezone("UTC");
    vec![
        ("date", array::<Date32Type>(i32::MAX), None),
        ("time", array::<Time64MicrosecondType>(86_400_000_000), None),
        (
            "timetz",
            array::<UInt64Type>(packed),
            Some(array::<Time64MicrosecondType>(38_096_000_000)),
        ),
        (
            "timestamp_s",
            array::<TimestampSecondType>(5),
            Some(array::<TimestampMicrosecondType>(5_000_000)),
        ),
        ("timestamp_ms", array::<TimestampMillisecondType>(-1), None),
        ("timestamp", array::<TimestampMicrosecondType>(i64::MAX), None),
        ("timestamp_ns", array::<TimestampNanosecondType>(-1), None),
        ("timestamptz", Arc::new(utc), None),
        (
            "interval",
            array::<IntervalMonthDayNanoType>(interval),
            Some(read),
        ),
    ]
}

/// Creates a table, inserts the rows, checks that a selection gives them back, and flushes them.
fn flush(arrays: &[ArrayRef], columns: Vec<FlushColumn>) -> Result<(FlushedFile, RecordBatch), InlineError> {
    let fields = arrays.iter().zip(&columns);
    let fields = fields.map(|(array, column)| Field::new(&column.name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema.clone(), arrays.to_vec()).unwrap();
    run(async {
        let mut staged: Staging = staging(&MemoryStore::new());
        create_table(&mut staged, 1, 1, &schema, true).await.unwrap();
        let row_ids: Vec<u64> = (10..).take(batch.num_rows()).collect();
        insert(&mut staged, 1, 1, 4, &row_ids, &batch).await.unwrap();
        let selected = select(&staged, 1, 1, &RowPredicate::visible_at(4)).await.unwrap();
        let all: Vec<usize> = (0..arrays.len()).collect();
        let window = selected.window(&staged, 0..row_ids.len(), &all).await.unwrap();
        assert_eq!(window.columns(), batch.columns());
        let layout = FlushLayout {
            columns,
            ..FlushLayout::default()
        };
        let rows = flushable_rows(&staged, &DirectoriesAt::unknown(), 1, 1, 4)
            .await
            .unwrap();
        let mut stream = DataFileStream::new(rows, layout)?;
        let mut content = Vec::new();
        let flushed = stream.next_file(&staged, &mut content).await?.unwrap();
        assert_eq!(flushed.file_bytes, content.len() as u64);
        assert!(stream.next_file(&staged, Vec::new()).await?.is_none());
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(content)).unwrap();
        let read = reader.build().unwrap().next().unwrap().unwrap();
        Ok((flushed, read))
    })
}

#[test]
fn every_scalar_type_is_in_the_file_as_it_was() {
    let scalars: Vec<Column> = [numbers(), texts(), times()].concat();
    let columns = scalars.iter().zip(1..);
    let columns = columns.map(|((kind, _, _), id)| column(id, &format!("c{id}"), kind, Vec::new()));
    let arrays: Vec<ArrayRef> = scalars.iter().map(|(_, stored, _)| Arc::clone(stored)).collect();
    let (flushed, read) = flush(&arrays, columns.collect()).unwrap();
    for (position, (kind, stored, expected)) in scalars.iter().enumerate() {
        let expected = expected.as_ref().unwrap_or(stored);
        let found = read.column(position);
        assert_eq!(found, expected, "{kind}");
        let (column_id, statistics) = &flushed.columns[position];
        assert_eq!(*column_id, position as u64 + 1);
        assert_eq!((statistics.value_count, statistics.null_count), (1, 1), "{kind}");
    }
    assert_eq!((flushed.rows, flushed.first_row_id), (2, 10));
}

/// A list of lists, a long list, a map, a variant and a struct, each in a row and NULL or empty in the next.
fn nested() -> Vec<ArrayRef> {
    let mut lists = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    lists.values().append_value([Some(1), None]);
    lists.values().append_null();
    lists.append(true);
    lists.append_null();
    let lists: ArrayRef = Arc::new(lists.finish());
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let texts = Arc::new(StringArray::from(vec![Some("a"), None]));
    let long = LargeListArray::new(item, OffsetBuffer::from_lengths([2, 0]), texts, None);
    let names = ["key_value", "key", "value"].map(str::to_owned);
    let [entry, key, value] = names;
    let names = MapFieldNames { entry, key, value };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("k");
    maps.values().append_null();
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    let binary = |bytes: Vec<&[u8]>| Arc::new(BinaryArray::from_vec(bytes)) as ArrayRef;
    let parts = [("metadata", false), ("value", true)];
    let parts = parts.map(|(name, nullable)| Field::new(name, DataType::Binary, nullable));
    let second = || Some(NullBuffer::from(vec![true, false]));
    // The number 5 of the variant encoding.
    let five = vec![binary(vec![b"\x11\x00\x00"; 2]), binary(vec![b"\x0c\x05"; 2])];
    let variants = StructArray::new(parts.to_vec().into(), five, second());
    let inner = Field::new("l", lists.data_type().clone(), true);
    let fields = vec![Field::new("x", DataType::Int64, true), inner];
    let numbers = Arc::new(Int64Array::from(vec![Some(1), None]));
    let structs = StructArray::new(fields.into(), vec![numbers, Arc::clone(&lists)], second());
    vec![
        lists,
        Arc::new(long),
        Arc::new(maps.finish()),
        Arc::new(variants),
        Arc::new(structs),
    ]
}

fn nested_columns() -> Vec<FlushColumn> {
    let scalar = |column_id, name, kind| column(column_id, name, kind, Vec::new());
    let lists = |first: u64| {
        let inner = column(
            first + 1,
            "element",
            "list",
            vec![scalar(first + 2, "element", "int32")],
        );
        column(first, "l", "list", vec![inner])
    };
    let entries = vec![scalar(7, "key", "varchar"), scalar(8, "value", "int32")];
    vec![
        lists(1),
        column(4, "long", "list", vec![scalar(5, "element", "varchar")]),
        column(6, "m", "map", entries),
        scalar(9, "v", "variant"),
        column(10, "s", "struct", vec![scalar(11, "x", "int64"), lists(12)]),
    ]
}

#[test]
fn nested_values_and_variants_are_in_the_file_as_they_were() {
    let arrays = nested();
    let (flushed, read) = flush(&arrays, nested_columns()).unwrap();
    for (found, expected) in read.columns().iter().zip(&arrays) {
        assert_eq!(found.logical_nulls(), expected.logical_nulls());
        // The names of types differ: Arrow's own field names, and field ids that the reader adds.
        let shown = |array: &ArrayRef| {
            let text = format!("{:?}", array.slice(0, 1)).replace("LargeListArray", "ListArray");
            let values = text.lines().filter(|line| !line.starts_with("-- child"));
            values.map(str::to_owned).collect::<Vec<String>>()
        };
        assert_eq!(shown(found), shown(expected));
    }
    let ids: Vec<u64> = flushed.columns.iter().map(|(column_id, _)| *column_id).collect();
    assert_eq!(ids, [3, 5, 7, 8, 9, 11, 14]);
}

#[test]
fn a_column_of_another_type_than_declared_is_refused_by_name_before_anything_is_written() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let error = flush(&[numbers], vec![column(1, "c", "blob", Vec::new())]).unwrap_err();
    assert!(
        matches!(&error, InlineError::FlushColumn { column, .. } if column == "c"),
        "{error}"
    );
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["[1, 2"]));
    let element = column(2, "element", "int32", Vec::new());
    let error = flush(&[texts], vec![column(1, "c", "list", vec![element])]).unwrap_err();
    assert!(
        matches!(&error, InlineError::FlushValue { column, value, .. } if column == "c" && value == "[1, 2"),
        "{error}"
    );
}
