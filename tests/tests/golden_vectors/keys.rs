//! Vectors of keys: at least one of every kind, those of the format's description among them.

use std::collections::BTreeSet;

use moraine_keys::*;

use crate::document::Document;

const MAX: u64 = u64::MAX;
/// Its encoding begins with 01, which is the escape in strings.
const BEGINS_WITH_01: u64 = 1 << 56;

fn keys() -> Vec<Key> {
    [
        system(),
        current(),
        current_of_later_kinds(),
        history(),
        inline(),
        index(),
        directories(),
        never_written(),
    ]
    .concat()
}

pub(crate) fn document() -> Document {
    let mut document = Document::new("keys.txt", "Keys of every kind.");
    for key in keys() {
        document.add(&key, &key.encode());
    }
    document
}

fn system() -> Vec<Key> {
    vec![
        FormatKey.to_key(),
        HeadKey.to_key(),
        MigrationKey.to_key(),
        MaintenanceStatusKey.to_key(),
        SnapshotKey { snapshot_id: 0 }.to_key(),
        SnapshotKey { snapshot_id: 42 }.to_key(),
        SnapshotKey { snapshot_id: MAX }.to_key(),
        SchemaVersionKey {
            table_id: 7,
            begin_snapshot: 12,
        }
        .to_key(),
        SchemaVersionKey {
            table_id: MAX,
            begin_snapshot: MAX,
        }
        .to_key(),
        ChangelogKey { snapshot_id: 42 }.to_key(),
        ChangelogKey { snapshot_id: MAX }.to_key(),
    ]
}

fn current() -> Vec<Key> {
    vec![
        SchemaKey { schema_id: 0 }.to_key(),
        SchemaKey { schema_id: MAX }.to_key(),
        TableKey { table_id: 7 }.to_key(),
        TableKey {
            table_id: BEGINS_WITH_01,
        }
        .to_key(),
        ViewKey { view_id: 8 }.to_key(),
        ColumnKey {
            table_id: 7,
            column_id: 3,
        }
        .to_key(),
        PartitionKey {
            table_id: 7,
            partition_id: 9,
        }
        .to_key(),
        DataFileKey {
            table_id: 1,
            data_file_id: 2,
        }
        .to_key(),
        DataFileKey {
            table_id: MAX,
            data_file_id: MAX,
        }
        .to_key(),
        DeleteFileKey {
            table_id: 1,
            delete_file_id: 3,
        }
        .to_key(),
    ]
}

fn current_of_later_kinds() -> Vec<Key> {
    vec![
        FileColumnStatsKey {
            table_id: 1,
            data_file_id: 2,
            column_id: 3,
        }
        .to_key(),
        FileColumnStatsKey {
            table_id: MAX,
            data_file_id: MAX,
            column_id: MAX,
        }
        .to_key(),
        TableStatsKey { table_id: 7 }.to_key(),
        TableColumnStatsKey {
            table_id: 7,
            column_id: 3,
        }
        .to_key(),
        TagKey { object_id: 7 }.to_key(),
        OptionKey::global().to_key(),
        OptionKey::schema(1).to_key(),
        OptionKey::table(7).to_key(),
        SortKey {
            table_id: 7,
            sort_id: 9,
        }
        .to_key(),
        MacroKey { macro_id: 3 }.to_key(),
        MappingKey {
            table_id: 4,
            mapping_id: 21,
        }
        .to_key(),
        IndexDefinitionKey {
            table_id: 4,
            index_id: 7,
        }
        .to_key(),
        GcFileKey { data_file_id: 5 }.to_key(),
        GcFileKey { data_file_id: MAX }.to_key(),
    ]
}

fn history() -> Vec<Key> {
    fn ended<K: Versioned>(entity: K, end_snapshot: u64) -> Key {
        History { entity, end_snapshot }.to_key()
    }
    vec![
        ended(SchemaKey { schema_id: 1 }, 9),
        ended(TableKey { table_id: 7 }, 9),
        ended(TableKey { table_id: MAX }, MAX),
        ended(ViewKey { view_id: 8 }, 9),
        ended(
            ColumnKey {
                table_id: 7,
                column_id: 3,
            },
            9,
        ),
        ended(
            PartitionKey {
                table_id: 7,
                partition_id: 9,
            },
            10,
        ),
        ended(
            DataFileKey {
                table_id: 1,
                data_file_id: 2,
            },
            9,
        ),
        ended(
            DeleteFileKey {
                table_id: 1,
                delete_file_id: 3,
            },
            9,
        ),
        ended(
            SortKey {
                table_id: 7,
                sort_id: 9,
            },
            10,
        ),
        ended(MacroKey { macro_id: 3 }, 9),
        ended(
            IndexDefinitionKey {
                table_id: 4,
                index_id: 7,
            },
            9,
        ),
    ]
}

fn inline() -> Vec<Key> {
    vec![
        InlineSchemaKey {
            table_id: 7,
            schema_version: 3,
        }
        .to_key(),
        InlineInsertKey {
            table_id: 7,
            schema_version: 3,
            begin_snapshot: 11,
            chunk_seq: 0,
        }
        .to_key(),
        InlineInsertKey {
            table_id: MAX,
            schema_version: MAX,
            begin_snapshot: MAX,
            chunk_seq: MAX,
        }
        .to_key(),
        InlineDeleteKey {
            table_id: 7,
            row_id: 9,
        }
        .to_key(),
        InlineFileDeleteKey {
            table_id: 7,
            data_file_id: 2,
            row_id: 9,
        }
        .to_key(),
        FileDeleteTableKey { table_id: 7 }.to_key(),
        ChunkRangeKey {
            table_id: 7,
            row_id_end: 29,
        }
        .to_key(),
        SchemaDroppedKey {
            table_id: 7,
            schema_version: 3,
        }
        .to_key(),
        ChunkLocatorKey {
            table_id: 7,
            row_id_end: 29,
            schema_version: 3,
            begin_snapshot: 11,
            chunk_seq: 2,
        }
        .to_key(),
        RowTombstoneKey {
            table_id: 7,
            row_id: 9,
            end_snapshot: 12,
        }
        .to_key(),
        RowTombstoneKey {
            table_id: MAX,
            row_id: MAX,
            end_snapshot: MAX,
        }
        .to_key(),
    ]
}

/// What RFC 0016 makes of BIGINT 7, of the text `ab`, of NULL and of the bytes 00 01 41.
fn index() -> Vec<Key> {
    let seven: &[u8] = &[0, 0x80, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 7, 0];
    let text: &[u8] = &[0, 0x61, 0x62, 0];
    let null: &[u8] = &[1];
    let bytes: &[u8] = &[0, 1, 0, 1, 1, 0x41, 0];
    let multi = |canonical: &[u8], row_id| {
        MultiIndexKey {
            index_id: 1,
            canonical: canonical.into(),
            row_id,
        }
        .to_key()
    };
    vec![
        UniqueIndexKey {
            index_id: 1,
            canonical: seven.into(),
        }
        .to_key(),
        UniqueIndexKey {
            index_id: MAX,
            canonical: Vec::new().into(),
        }
        .to_key(),
        multi(seven, 3),
        multi(text, 3),
        multi(null, 3),
        multi(bytes, BEGINS_WITH_01),
        multi(&[], MAX),
    ]
}

fn directories() -> Vec<Key> {
    vec![
        NameKey::schema("main", 0).to_key(),
        NameKey::table(0, "orders", 7).to_key(),
        NameKey::table(1, "", MAX).to_key(),
        NameKey::table(1, "a\0\u{1}b", BEGINS_WITH_01).to_key(),
        NameKey::table(1, "Größe 語 🪨", 8).to_key(),
        DeleteTargetKey {
            table_id: 1,
            data_file_id: 2,
            delete_file_id: 3,
        }
        .to_key(),
        DeleteTargetKey {
            table_id: MAX,
            data_file_id: MAX,
            delete_file_id: MAX,
        }
        .to_key(),
    ]
}

/// Keys that have bytes although no version of the format writes them.
fn never_written() -> Vec<Key> {
    let insert = InlineInsertKey {
        table_id: 7,
        schema_version: 3,
        begin_snapshot: 11,
        chunk_seq: 0,
    };
    let delete = InlineDeleteKey {
        table_id: 7,
        row_id: 9,
    };
    let file_delete = InlineFileDeleteKey {
        table_id: 7,
        data_file_id: 2,
        row_id: 9,
    };
    let ended = |entity| {
        Key::History(HistoryKey {
            entity,
            end_snapshot: 9,
        })
    };
    vec![
        Archived { operation: insert }.to_key(),
        Archived { operation: delete }.to_key(),
        Archived {
            operation: file_delete,
        }
        .to_key(),
        ended(
            FileColumnStatsKey {
                table_id: 1,
                data_file_id: 2,
                column_id: 3,
            }
            .to_entity(),
        ),
        ended(TableStatsKey { table_id: 7 }.to_entity()),
        ended(
            TableColumnStatsKey {
                table_id: 7,
                column_id: 3,
            }
            .to_entity(),
        ),
        ended(TagKey { object_id: 7 }.to_entity()),
        ended(OptionKey::table(7).to_entity()),
        ended(
            MappingKey {
                table_id: 4,
                mapping_id: 21,
            }
            .to_entity(),
        ),
    ]
}

/// The bytes that the description of the format gives, computed with another program.
#[test]
fn the_bytes_of_the_description_are_among_the_vectors() {
    let text = document().text().to_owned();
    for hex in [
        "0202",
        "0203",
        "0204",
        "0205",
        "03000000000000002a",
        "080000000000000007000000000000000c",
        "09000000000000002a",
        "0402020000000000000000",
        "0402030000000000000007",
        "0402040000000000000008",
        "04020500000000000000070000000000000003",
        "04020600000000000000070000000000000009",
        "04020700000000000000010000000000000002",
        "04020800000000000000010000000000000003",
        "040209000000000000000100000000000000020000000000000003",
        "04020a0000000000000007",
        "04020b00000000000000070000000000000003",
        "04020c0000000000000007",
        "04020d00000000000000020000000000000007",
        "04020e00000000000000070000000000000009",
        "04020f0000000000000003",
        "04021000000000000000040000000000000015",
        "04021100000000000000040000000000000007",
        "04030000000000000005",
        "050200000000000000010000000000000009",
        "0507000000000000000100000000000000020000000000000009",
        "050f00000000000000030000000000000009",
        "0511000000000000000400000000000000070000000000000009",
        "060200000000000000070000000000000003",
        "06040200000000000000070000000000000003000000000000000b0000000000000000",
        "06050000000000000007",
        "06060000000000000007000000000000001d",
        "060700000000000000070000000000000003",
        "06080000000000000007000000000000001d0000000000000003000000000000000b0000000000000002",
        "060900000000000000070000000000000009000000000000000c",
        "06030200000000000000070000000000000003000000000000000b0000000000000000",
        "06030300000000000000070000000000000009",
        "060304000000000000000700000000000000020000000000000009",
        "0702000000000000000101008001010100010101000101010001010100010101000101010007010000",
        "07030000000000000001010080010101000101010001010100010101000101010001010100070100000000000000000003",
        "07030000000000000001010061620100000000000000000003",
        "070300000000000000010101000000000000000003",
        "0703000000000000000101000101010001010101410100000100000000000000",
        "0b000000000000000100000000000000020000000000000003",
        "0a000000000000000000000000000000006d61696e000000000000000000",
        "0a000000000000000100000000000000006f7264657273000000000000000007",
    ] {
        assert!(
            text.lines().any(|line| line.trim_start() == hex),
            "{hex} is not among the vectors"
        );
    }
}

/// Finds the kinds by decoding, not by listing: discriminants are small and all else may be zero.
#[test]
fn every_kind_that_decodes_has_a_vector() {
    const DISCRIMINANT_MAX: u8 = 24;
    const KEY_BYTES_MAX: usize = 48;
    let mut kinds = BTreeSet::new();
    for first in 0..=DISCRIMINANT_MAX {
        for second in 0..=DISCRIMINANT_MAX {
            for third in 0..=DISCRIMINANT_MAX {
                let mut bytes = vec![first, second, third];
                bytes.resize(KEY_BYTES_MAX, 0);
                for len in 1..=KEY_BYTES_MAX {
                    if let Ok(key) = Key::decode(&bytes[..len]) {
                        kinds.insert(key.kind_name());
                    }
                }
            }
        }
    }
    assert!(kinds.len() > 50, "{kinds:?}");
    let with_vectors: BTreeSet<&str> = keys().iter().map(Key::kind_name).collect();
    assert_eq!(with_vectors, kinds);
}
