//! The bytes of keys: those that the format lays down, and back from bytes to the same key for every kind.

use std::collections::BTreeSet;

use moraine_keys::{
    Archived, ChangelogKey, ChunkLocatorKey, ChunkRangeKey, ColumnKey, DataFileKey, DeleteFileKey,
    DeleteTargetKey, FileColumnStatsKey, FileDeleteTableKey, FormatKey, GcFileKey, HeadKey, History,
    IndexDefinitionKey, InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey, Key,
    KeyError, Kind, MacroKey, MaintenanceStatusKey, MappingKey, MigrationKey, MultiIndexKey, NameKey,
    OptionKey, PartitionKey, RowTombstoneKey, SchemaDroppedKey, SchemaKey, SchemaVersionKey, SnapshotKey,
    SortKey, Subspace, TableColumnStatsKey, TableKey, TableStatsKey, TagKey, UniqueIndexKey, ViewKey,
};
use proptest::prelude::*;

use crate::samples::{Sample, check, for_every_kind, keys};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

#[track_caller]
fn assert_bytes<K: Kind>(key: &K, expected: &str) {
    assert_eq!(hex(&key.encode()), expected, "{key}");
    assert_eq!(K::decode(&bytes(expected)).as_ref(), Ok(key));
    assert_eq!(Key::decode(&bytes(expected)), Ok(key.to_key()));
}

#[test]
fn system_and_commit_keys() {
    assert_bytes(&FormatKey, "0202");
    assert_bytes(&HeadKey, "0203");
    assert_bytes(&MigrationKey, "0204");
    assert_bytes(&MaintenanceStatusKey, "0205");
    assert_bytes(&SnapshotKey { snapshot_id: 42 }, "03000000000000002a");
    assert_bytes(
        &SchemaVersionKey {
            table_id: 7,
            begin_snapshot: 12,
        },
        "080000000000000007000000000000000c",
    );
    assert_bytes(&ChangelogKey { snapshot_id: 42 }, "09000000000000002a");
}

#[test]
fn current_keys() {
    assert_bytes(&SchemaKey { schema_id: 0 }, "0402020000000000000000");
    assert_bytes(&TableKey { table_id: 7 }, "0402030000000000000007");
    assert_bytes(&ViewKey { view_id: 8 }, "0402040000000000000008");
    assert_bytes(
        &ColumnKey {
            table_id: 7,
            column_id: 3,
        },
        "04020500000000000000070000000000000003",
    );
    assert_bytes(
        &PartitionKey {
            table_id: 7,
            partition_id: 9,
        },
        "04020600000000000000070000000000000009",
    );
    assert_bytes(
        &DataFileKey {
            table_id: 1,
            data_file_id: 2,
        },
        "04020700000000000000010000000000000002",
    );
    assert_bytes(
        &DeleteFileKey {
            table_id: 1,
            delete_file_id: 3,
        },
        "04020800000000000000010000000000000003",
    );
}

#[test]
fn current_keys_of_the_later_kinds() {
    assert_bytes(
        &FileColumnStatsKey {
            table_id: 1,
            data_file_id: 2,
            column_id: 3,
        },
        "040209000000000000000100000000000000020000000000000003",
    );
    assert_bytes(&TableStatsKey { table_id: 7 }, "04020a0000000000000007");
    assert_bytes(
        &TableColumnStatsKey {
            table_id: 7,
            column_id: 3,
        },
        "04020b00000000000000070000000000000003",
    );
    assert_bytes(&TagKey { object_id: 7 }, "04020c0000000000000007");
    assert_bytes(&OptionKey::table(7), "04020d00000000000000020000000000000007");
    assert_bytes(
        &SortKey {
            table_id: 7,
            sort_id: 9,
        },
        "04020e00000000000000070000000000000009",
    );
    assert_bytes(&MacroKey { macro_id: 3 }, "04020f0000000000000003");
    assert_bytes(
        &MappingKey {
            table_id: 4,
            mapping_id: 21,
        },
        "04021000000000000000040000000000000015",
    );
    assert_bytes(
        &IndexDefinitionKey {
            table_id: 4,
            index_id: 7,
        },
        "04021100000000000000040000000000000007",
    );
    assert_bytes(&GcFileKey { data_file_id: 5 }, "04030000000000000005");
}

#[test]
fn history_keys() {
    let schema = History {
        entity: SchemaKey { schema_id: 1 },
        end_snapshot: 9,
    };
    assert_bytes(&schema, "050200000000000000010000000000000009");
    let file = History {
        entity: DataFileKey {
            table_id: 1,
            data_file_id: 2,
        },
        end_snapshot: 9,
    };
    assert_bytes(&file, "0507000000000000000100000000000000020000000000000009");
    let a_macro = History {
        entity: MacroKey { macro_id: 3 },
        end_snapshot: 9,
    };
    assert_bytes(&a_macro, "050f00000000000000030000000000000009");
    let index = History {
        entity: IndexDefinitionKey {
            table_id: 4,
            index_id: 7,
        },
        end_snapshot: 9,
    };
    assert_bytes(&index, "0511000000000000000400000000000000070000000000000009");
}

#[test]
fn inline_keys() {
    assert_bytes(
        &InlineSchemaKey {
            table_id: 7,
            schema_version: 3,
        },
        "060200000000000000070000000000000003",
    );
    let insert = InlineInsertKey {
        table_id: 7,
        schema_version: 3,
        begin_snapshot: 11,
        chunk_seq: 0,
    };
    assert_bytes(
        &insert,
        "06030200000000000000070000000000000003000000000000000b0000000000000000",
    );
    assert_bytes(
        &Archived { operation: insert },
        "06040200000000000000070000000000000003000000000000000b0000000000000000",
    );
    assert_bytes(
        &InlineDeleteKey {
            table_id: 7,
            row_id: 9,
        },
        "06030300000000000000070000000000000009",
    );
    assert_bytes(
        &InlineFileDeleteKey {
            table_id: 7,
            data_file_id: 2,
            row_id: 9,
        },
        "060304000000000000000700000000000000020000000000000009",
    );
}

#[test]
fn inline_keys_of_markers_and_directories() {
    assert_bytes(&FileDeleteTableKey { table_id: 7 }, "06050000000000000007");
    assert_bytes(
        &ChunkRangeKey {
            table_id: 7,
            row_id_end: 29,
        },
        "06060000000000000007000000000000001d",
    );
    assert_bytes(
        &SchemaDroppedKey {
            table_id: 7,
            schema_version: 3,
        },
        "060700000000000000070000000000000003",
    );
    let locator = ChunkLocatorKey {
        table_id: 7,
        row_id_end: 29,
        schema_version: 3,
        begin_snapshot: 11,
        chunk_seq: 2,
    };
    assert_bytes(
        &locator,
        "06080000000000000007000000000000001d0000000000000003000000000000000b0000000000000002",
    );
    assert_bytes(
        &RowTombstoneKey {
            table_id: 7,
            row_id: 9,
            end_snapshot: 12,
        },
        "060900000000000000070000000000000009000000000000000c",
    );
}

/// The second component is what RFC 0016 makes of values; it has 00 and 01 in it and is escaped once more in the key.
#[test]
fn index_keys() {
    let seven = bytes("00800100010001000100010001000700");
    assert_bytes(
        &UniqueIndexKey {
            index_id: 1,
            canonical: seven.clone().into(),
        },
        "0702000000000000000101008001010100010101000101010001010100010101000101010007010000",
    );
    assert_bytes(
        &MultiIndexKey {
            index_id: 1,
            canonical: seven.into(),
            row_id: 3,
        },
        "07030000000000000001010080010101000101010001010100010101000101010001010100070100000000000000000003",
    );
    let text = bytes("00616200");
    assert_bytes(
        &MultiIndexKey {
            index_id: 1,
            canonical: text.into(),
            row_id: 3,
        },
        "07030000000000000001010061620100000000000000000003",
    );
    let null = bytes("01");
    assert_bytes(
        &MultiIndexKey {
            index_id: 1,
            canonical: null.into(),
            row_id: 3,
        },
        "070300000000000000010101000000000000000003",
    );
    // The row id begins with 01, right behind the terminator.
    let slice = bytes("00010001014100");
    assert_bytes(
        &MultiIndexKey {
            index_id: 1,
            canonical: slice.into(),
            row_id: 1 << 56,
        },
        "0703000000000000000101000101010001010101410100000100000000000000",
    );
}

#[test]
fn directory_keys() {
    assert_bytes(
        &DeleteTargetKey {
            table_id: 1,
            data_file_id: 2,
            delete_file_id: 3,
        },
        "0b000000000000000100000000000000020000000000000003",
    );
    assert_bytes(
        &NameKey::schema("main", 0),
        "0a000000000000000000000000000000006d61696e000000000000000000",
    );
    assert_bytes(
        &NameKey::table(0, "orders", 7),
        "0a000000000000000100000000000000006f7264657273000000000000000007",
    );
    // 00 and 01 in the name, and an id that begins with 01 right behind its terminator.
    assert_bytes(
        &NameKey::table(1, "a\0\u{1}b", 1 << 56),
        "0a00000000000000010000000000000001610100010162000100000000000000",
    );
    assert_bytes(
        &NameKey::schema("Übergröße", 2),
        "0a00000000000000000000000000000000c39c6265726772c3b6c39f65000000000000000002",
    );
}

#[test]
fn every_kind_comes_back_from_its_bytes() {
    fn comes_back<K: Sample>() {
        check(&K::arbitrary(), |key| {
            prop_assert_eq!(K::decode(&key.encode()), Ok(key.clone()));
            prop_assert_eq!(K::from_key(key.to_key()), Ok(key));
            Ok(())
        });
    }
    for_every_kind!(comes_back);
}

#[test]
fn every_key_of_the_tree_comes_back_from_its_bytes() {
    check(&keys(), |key| {
        let bytes = key.encode();
        prop_assert_eq!(Key::decode(&bytes), Ok(key.clone()));
        prop_assert_eq!(bytes.first().copied(), Some(key.subspace().byte()));
        prop_assert_eq!(
            bytes.first().copied().and_then(Subspace::from_byte),
            Some(key.subspace())
        );
        Ok(())
    });
}

#[test]
fn no_kind_takes_the_key_of_another() {
    fn refuses_others<K: Sample>() {
        check(&keys(), |key| {
            match K::decode(&key.encode()) {
                Ok(own) => prop_assert_eq!(own.to_key(), key),
                Err(error) => {
                    let expected = KeyError::WrongKind {
                        expected: K::NAME,
                        found: key.to_string(),
                    };
                    prop_assert_eq!(error, expected);
                    prop_assert_ne!(key.kind_name(), K::NAME);
                }
            }
            Ok(())
        });
    }
    for_every_kind!(refuses_others);
}

#[test]
fn subspaces_have_the_bytes_02_to_0b_in_order() {
    let bytes = Subspace::ALL.map(Subspace::byte);
    assert_eq!(
        bytes,
        [0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b]
    );
    assert_eq!(Subspace::from_byte(0x0c), None);
    assert_eq!(Subspace::from_byte(0x01), None);
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    thread_local!(static NAMES: std::cell::RefCell<BTreeSet<&'static str>> = const { std::cell::RefCell::new(BTreeSet::new()) });
    fn name_is_new<K: Sample>() {
        assert_eq!(K::default().to_key().kind_name(), K::NAME);
        assert!(
            NAMES.with_borrow_mut(|names| names.insert(K::NAME)),
            "{} names two kinds",
            K::NAME
        );
    }
    for_every_kind!(name_is_new);
}
