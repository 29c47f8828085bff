//! Records of any kind from raw keys and values.

use std::collections::BTreeSet;

use moraine_codec::{Record, decode_record, encode_record};
use moraine_keys::Kind;
use proptest::prelude::*;

use crate::messages::{DrawRecord, check, for_every_stored_kind};

#[test]
fn every_kind_has_a_record_of_its_own() {
    thread_local!(static VARIANTS: std::cell::RefCell<BTreeSet<String>> = const { std::cell::RefCell::new(BTreeSet::new()) });
    fn has_a_variant<K: DrawRecord>()
    where
        Record: From<(K, K::Value)>,
    {
        check(|entropy| {
            let record = Record::from(K::draw_record(entropy));
            prop_assert_eq!(record.key().kind_name(), K::NAME);
            Ok(())
        });
        let record = Record::from((K::default(), K::Value::default()));
        let variant = format!("{record:?}")
            .split('(')
            .next()
            .unwrap_or_default()
            .to_owned();
        assert!(
            VARIANTS.with_borrow_mut(|variants| variants.insert(variant)),
            "{}",
            K::NAME
        );
    }
    for_every_stored_kind!(has_a_variant);
}

#[test]
fn a_value_under_the_key_of_another_kind_does_not_decode_to_its_record() {
    fn is_not_taken<K: DrawRecord>()
    where
        Record: From<(K, K::Value)>,
    {
        let key = moraine_keys::DataFileKey {
            table_id: 1,
            data_file_id: 1_000_003,
        }
        .encode();
        check(|entropy| {
            let record = Record::from(K::draw_record(entropy));
            let (_, value) = encode_record(&record)?;
            prop_assert!(decode_record(&key, &value).is_err());
            Ok(())
        });
    }
    for_every_stored_kind!(is_not_taken);
}
