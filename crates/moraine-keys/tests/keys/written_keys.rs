//! Keys as people write them: what is printed reads back, and what cannot be read says why.

use moraine_keys::{
    ColumnKey, GcFileKey, History, InlineInsertKey, KeyRange, KeyTextError, Kind, NameKey, Subspace,
    TableKey, TableScoped,
};
use proptest::prelude::*;

use crate::samples::{self, Sample, check, for_every_kind};

#[test]
fn every_key_reads_back_from_its_text() {
    fn reads_back<K: Sample>() {
        check(&K::arbitrary(), |key| {
            let range = KeyRange::from_text(&key.to_string()).unwrap();
            prop_assert_eq!(&range.start, &key.encode());
            prop_assert!(range.contains(&key.encode()));
            Ok(())
        });
    }
    for_every_kind!(reads_back);
}

#[test]
fn a_name_of_any_characters_reads_back() {
    check(&(any::<String>(), any::<u64>()), |(name, parent_id)| {
        let key = NameKey {
            kind: NameKey::TABLE,
            parent_id,
            name,
            entity_id: 7,
        };
        let range = KeyRange::from_text(&key.to_string()).unwrap();
        prop_assert_eq!(range.start, key.encode());
        Ok(())
    });
}

#[test]
fn any_text_is_read_or_refused() {
    check(&any::<String>(), |text| {
        let _ = KeyRange::from_text(&text);
        let _ = KeyRange::from_text(&format!("0x{text}"));
        let _ = KeyRange::from_text(&format!("name{{kind=1, parent_id=2, name={text}"));
        let _ = KeyRange::from_text(&format!("name{{kind=1, parent_id=2, name=\"{text}}}"));
        Ok(())
    });
}

#[test]
fn a_path_stands_for_everything_below_it() {
    assert_eq!(KeyRange::from_text(""), Ok(KeyRange::all()));
    for subspace in Subspace::ALL {
        let range = KeyRange::from_text(subspace.name()).unwrap();
        check(&samples::keys(), |key| {
            prop_assert_eq!(range.contains(&key.encode()), key.subspace() == subspace);
            Ok(())
        });
    }
    let live = KeyRange::from_text("inline/live").unwrap();
    assert!(live.contains(&InlineInsertKey::default().encode()));
    assert!(!live.contains(&GcFileKey::default().encode()));
}

#[test]
fn the_first_components_stand_for_all_keys_that_begin_so() {
    assert_eq!(
        KeyRange::from_text("current/column{table_id=7}"),
        Ok(ColumnKey::scan_table(7))
    );
    assert_eq!(
        KeyRange::from_text(" current/column{ table_id = 7 } "),
        Ok(ColumnKey::scan_table(7))
    );
    assert_eq!(
        KeyRange::from_text("history/column{table_id=7}"),
        Ok(History::<ColumnKey>::scan_table(7))
    );
    assert_eq!(
        KeyRange::from_text("name{kind=1, parent_id=0, name=\"a, b\"}"),
        Ok(NameKey::scan_exact(1, 0, "a, b"))
    );
    assert!(
        KeyRange::from_text("0x040203")
            .unwrap()
            .contains(&TableKey { table_id: 9 }.encode())
    );
}

#[test]
fn what_is_not_understood_is_named() {
    let told = |text: &str| KeyRange::from_text(text).unwrap_err();
    assert!(matches!(told("tables"), KeyTextError::UnknownKind { .. }));
    assert!(told("tables").to_string().contains("current/table"));
    assert!(matches!(told("current/tab"), KeyTextError::UnknownKind { .. }));
    assert!(matches!(
        told("current/column{column_id=3}"),
        KeyTextError::UnknownComponent { .. }
    ));
    assert!(matches!(
        told("current/table{table_id=1, x=3}"),
        KeyTextError::UnknownComponent { .. }
    ));
    assert!(matches!(
        told("current/table{table_id=a}"),
        KeyTextError::InvalidComponent { .. }
    ));
    assert!(matches!(
        told("current/table{table_id=-1}"),
        KeyTextError::InvalidComponent { .. }
    ));
    assert!(matches!(
        told("current/table{table_id=1"),
        KeyTextError::Unclosed { .. }
    ));
    assert!(matches!(told("0x4"), KeyTextError::InvalidHex { .. }));
    assert!(matches!(told("0xzz"), KeyTextError::InvalidHex { .. }));
    assert!(matches!(
        told("name{kind=1, parent_id=0, name=orders}"),
        KeyTextError::InvalidComponent { .. }
    ));
}
