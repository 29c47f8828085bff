//! SQL NULL in columns whose field cannot be absent.

use moraine_codec::proto::DataFileValue;
use moraine_codec::{Nullable, frame, unframe};

const FOOTER_SIZE: u32 = 11;
const PATH: u32 = 6;

#[test]
fn a_null_is_told_apart_from_a_default() {
    let mut file = DataFileValue::default();
    assert!(!file.is_null(FOOTER_SIZE));
    file.set_null(FOOTER_SIZE, true);
    assert!(file.is_null(FOOTER_SIZE) && !file.is_null(PATH));
    let stored = unframe::<DataFileValue>(&"key", &frame(&file)).unwrap();
    assert!(stored.is_null(FOOTER_SIZE));
}

#[test]
fn the_numbers_ascend_and_are_there_once() {
    let mut file = DataFileValue::default();
    for field in [FOOTER_SIZE, PATH, FOOTER_SIZE] {
        file.set_null(field, true);
    }
    assert_eq!(file.null_fields(), [PATH, FOOTER_SIZE]);
    file.set_null(PATH, false);
    file.set_null(PATH, false);
    assert_eq!(file.null_fields(), [FOOTER_SIZE]);
}
