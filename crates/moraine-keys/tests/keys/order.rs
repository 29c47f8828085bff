//! Keys compare as their bytes do, so that a scan meets them in the order of the types.

use proptest::prelude::*;

use crate::samples::{Sample, check, for_every_kind, keys};

#[test]
fn keys_compare_as_their_bytes() {
    check(&(keys(), keys()), |(left, right)| {
        prop_assert_eq!(
            left.cmp(&right),
            left.encode().cmp(&right.encode()),
            "{} and {}",
            left,
            right
        );
        Ok(())
    });
}

#[test]
fn keys_of_one_kind_compare_as_their_bytes() {
    fn compares<K: Sample>() {
        check(&(K::arbitrary(), K::arbitrary()), |(left, right)| {
            prop_assert_eq!(
                left.cmp(&right),
                left.encode().cmp(&right.encode()),
                "{} and {}",
                left,
                right
            );
            Ok(())
        });
    }
    for_every_kind!(compares);
}
