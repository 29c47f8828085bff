//! The text of keys and of the errors about them, which operators read.

use moraine_keys::{
    ColumnKey, DataFileKey, EntityKey, HeadKey, History, HistoryKey, InlineDeleteKey, Key, Kind,
    MultiIndexKey, NameKey, TagKey,
};
use proptest::prelude::*;

use crate::samples::{Sample, check, for_every_kind};

#[test]
fn a_key_prints_its_kind_and_components() {
    assert_eq!(HeadKey.to_key().to_string(), "system/head");
    let column = ColumnKey {
        table_id: 7,
        column_id: 3,
    };
    assert_eq!(column.to_string(), "current/column{table_id=7, column_id=3}");
    let ended = History {
        entity: column,
        end_snapshot: 9,
    };
    assert_eq!(
        ended.to_string(),
        "history/column{table_id=7, column_id=3, end_snapshot=9}"
    );
    let name = NameKey::table(1, "a\"\0", 4);
    assert_eq!(
        name.to_string(),
        r#"name{kind=1, parent_id=1, name="a\"\0", entity_id=4}"#
    );
    let entry = MultiIndexKey {
        index_id: 1,
        canonical: vec![0, 0x61].into(),
        row_id: 3,
    };
    assert_eq!(
        entry.to_string(),
        "index/multi{index_id=1, canonical=0061, row_id=3}"
    );
    let never_written = HistoryKey {
        entity: EntityKey::Tag(TagKey { object_id: 2 }),
        end_snapshot: 5,
    };
    assert_eq!(
        Key::History(never_written).to_string(),
        "history/tag{object_id=2, end_snapshot=5}"
    );
    let archived = moraine_keys::Archived {
        operation: InlineDeleteKey {
            table_id: 7,
            row_id: 9,
        },
    };
    assert_eq!(
        archived.to_string(),
        "inline/archived/delete{table_id=7, row_id=9}"
    );
}

#[test]
fn a_kind_and_its_key_in_the_tree_print_the_same() {
    fn prints_the_same<K: Sample>() {
        check(&K::arbitrary(), |key| {
            prop_assert_eq!(key.to_string(), key.to_key().to_string());
            prop_assert!(key.to_string().starts_with(K::NAME));
            Ok(())
        });
    }
    for_every_kind!(prints_the_same);
}

#[test]
fn a_key_knows_its_table() {
    let file = DataFileKey {
        table_id: 7,
        data_file_id: 2,
    };
    assert_eq!(file.to_key().table_id(), Some(7));
    assert_eq!(
        History {
            entity: file,
            end_snapshot: 3
        }
        .to_key()
        .table_id(),
        Some(7)
    );
    assert_eq!(TagKey { object_id: 7 }.to_key().table_id(), None);
}
