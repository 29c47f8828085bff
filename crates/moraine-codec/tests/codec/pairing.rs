//! A value has to say the same as its key. Protobuf alone reads one message as another without complaint.

use moraine_codec::proto::{
    DataFileValue, DeleteFileValue, InlineChunkRangeValue, InlineChunkValue, InlineInlineDeleteValue,
    InlineSchemaValue, SchemaValue, TableStatsValue, TableValue,
};
use moraine_codec::{DecodeError, EncodeError, Stored, decode, encode, frame};
use moraine_keys::{
    ChunkLocatorKey, DataFileKey, DeleteFileKey, History, InlineInsertKey, InlineSchemaKey, RowTombstoneKey,
    SchemaKey, TableKey, TableStatsKey,
};

/// The value is refused when it is stored and when it is read, with the same detail.
#[track_caller]
fn assert_refused<K: Stored>(key: &K, value: &K::Value, expected: &str) {
    let refused = EncodeError::Mismatch {
        key: key.to_string(),
        detail: expected.to_owned(),
    };
    assert_eq!(encode(key, value), Err(refused));
    let found = DecodeError::Mismatch {
        key: key.to_string(),
        detail: expected.to_owned(),
    };
    assert_eq!(decode(key, &frame(value)), Err(found));
}

#[test]
fn a_value_under_a_key_with_another_id_is_refused() {
    let value = SchemaValue {
        schema_id: 4,
        ..Default::default()
    };
    assert_refused(&SchemaKey { schema_id: 3 }, &value, "its schema_id is 4");
    let value = DataFileValue {
        table_id: 1,
        data_file_id: 5,
        ..Default::default()
    };
    assert_refused(
        &DataFileKey {
            table_id: 1,
            data_file_id: 2,
        },
        &value,
        "its data_file_id is 5",
    );
    assert_refused(
        &DataFileKey {
            table_id: 2,
            data_file_id: 5,
        },
        &value,
        "its table_id is 1",
    );
    let value = TableStatsValue {
        table_id: 8,
        ..Default::default()
    };
    assert_refused(&TableStatsKey { table_id: 7 }, &value, "its table_id is 8");
}

#[test]
fn a_message_of_another_kind_is_found_out_by_its_ids() {
    // Both messages begin with two ids, so protobuf takes one for the other.
    let delete_file = DeleteFileValue {
        delete_file_id: 3,
        table_id: 1,
        ..Default::default()
    };
    let key = DataFileKey {
        table_id: 1,
        data_file_id: 2,
    };
    let error = decode(&key, &frame(&delete_file)).unwrap_err();
    let expected = DecodeError::Mismatch {
        key: key.to_string(),
        detail: "its data_file_id is 3".to_owned(),
    };
    assert_eq!(error, expected);
}

#[test]
fn a_live_version_has_no_end() {
    let key = TableKey { table_id: 7 };
    let mut value = TableValue {
        table_id: 7,
        begin_snapshot: 2,
        ..Default::default()
    };
    assert!(encode(&key, &value).is_ok());
    value.end_snapshot = Some(9);
    assert_refused(
        &key,
        &value,
        "it ended at snapshot 9, so it belongs to the history",
    );
}

#[test]
fn an_ended_version_ends_where_its_key_says() {
    let key = History {
        entity: TableKey { table_id: 7 },
        end_snapshot: 9,
    };
    let ended = |begin_snapshot, end_snapshot| TableValue {
        table_id: 7,
        begin_snapshot,
        end_snapshot,
        ..Default::default()
    };
    assert!(encode(&key, &ended(2, Some(9))).is_ok());
    assert_refused(&key, &ended(2, None), "it has no end_snapshot");
    assert_refused(&key, &ended(2, Some(8)), "its end_snapshot is 8");
    assert_refused(
        &key,
        &ended(10, Some(9)),
        "it ends at snapshot 9 but begins at 10",
    );
    let other = TableValue {
        table_id: 6,
        ..ended(2, Some(9))
    };
    assert_refused(&key, &other, "its table_id is 6");
}

#[test]
fn a_tombstone_ends_where_its_key_says() {
    let key = RowTombstoneKey {
        table_id: 7,
        row_id: 9,
        end_snapshot: 12,
    };
    assert!(encode(&key, &InlineInlineDeleteValue { end_snapshot: 12 }).is_ok());
    assert_refused(
        &key,
        &InlineInlineDeleteValue { end_snapshot: 11 },
        "its end_snapshot is 11",
    );
}

#[test]
fn a_locator_names_its_chunk_twice() {
    let key = ChunkLocatorKey {
        table_id: 7,
        row_id_end: 29,
        schema_version: 3,
        begin_snapshot: 11,
        chunk_seq: 2,
    };
    let value = InlineChunkRangeValue {
        row_id_start: 29,
        schema_version: 3,
        begin_snapshot: 11,
        chunk_seq: 2,
    };
    assert!(encode(&key, &value).is_ok());
    let after = InlineChunkRangeValue {
        row_id_start: 30,
        ..value
    };
    assert_refused(&key, &after, "its row_id_start 30 is after its row_id_end");
    assert_refused(
        &key,
        &InlineChunkRangeValue {
            schema_version: 4,
            ..value
        },
        "its schema_version is 4",
    );
    assert_refused(
        &key,
        &InlineChunkRangeValue {
            begin_snapshot: 4,
            ..value
        },
        "its begin_snapshot is 4",
    );
    assert_refused(
        &key,
        &InlineChunkRangeValue {
            chunk_seq: 4,
            ..value
        },
        "its chunk_seq is 4",
    );
}

#[test]
fn a_chunk_has_rows_and_their_ids_exist() {
    let key = InlineInsertKey {
        table_id: 7,
        schema_version: 3,
        begin_snapshot: 11,
        chunk_seq: 0,
    };
    let chunk = |row_id_start, row_count| InlineChunkValue {
        row_id_start,
        row_count,
        ..Default::default()
    };
    assert!(encode(&key, &chunk(u64::MAX, 1)).is_ok());
    assert_refused(&key, &chunk(0, 0), "it holds no rows");
    assert_refused(
        &key,
        &chunk(u64::MAX, 2),
        "its 2 rows from row id 18446744073709551615 on exceed the greatest row id",
    );
}

#[test]
fn an_inline_schema_is_there_or_elsewhere_but_not_both() {
    let key = InlineSchemaKey {
        table_id: 7,
        schema_version: 3,
    };
    let schema = |arrow_schema: &'static [u8], same_as_version| InlineSchemaValue {
        arrow_schema: arrow_schema.into(),
        same_as_version,
    };
    assert!(encode(&key, &schema(b"schema", None)).is_ok());
    assert!(encode(&key, &schema(b"", Some(2))).is_ok());
    assert_refused(&key, &schema(b"", None), "it holds no schema");
    assert_refused(&key, &schema(b"", Some(3)), "it refers to itself");
    assert_refused(
        &key,
        &schema(b"schema", Some(2)),
        "it refers to version 2 and holds a schema too",
    );
}

#[test]
fn delete_files_are_told_apart_from_their_data_files() {
    let key = DeleteFileKey {
        table_id: 1,
        delete_file_id: 3,
    };
    let value = DeleteFileValue {
        delete_file_id: 3,
        table_id: 1,
        data_file_id: 2,
        ..Default::default()
    };
    assert_eq!(decode(&key, &encode(&key, &value).unwrap()), Ok(value));
}
