//! The versions of the format, and what a stamp of another software may carry.

use bytes::Bytes;
use moraine_codec::format::{self, Format};
use moraine_codec::proto::{FormatValue, MigrationValue};
use moraine_codec::{DecodeError, format_value_has_unknown_fields, frame};

#[test]
fn formats_are_numbered_from_one_to_the_current_one() {
    let numbers: Vec<u64> = Format::ALL.into_iter().map(Format::number).collect();
    assert_eq!(
        numbers,
        (format::OLDEST_KNOWN..=format::CURRENT).collect::<Vec<_>>()
    );
    assert_eq!(format::CURRENT, 12);
    for format in Format::ALL {
        assert_eq!(Format::from_number(format.number()), Some(format));
    }
    assert_eq!(Format::from_number(0), None);
    assert_eq!(Format::from_number(13), None);
}

#[test]
fn a_stamp_of_ours_has_no_unknown_fields() {
    for stamp in [
        FormatValue::default(),
        FormatValue {
            format_version: 12,
            writer_version: "moraine 0.1.0".to_owned(),
        },
    ] {
        assert_eq!(format_value_has_unknown_fields(&frame(&stamp)), Ok(false));
    }
}

#[test]
fn a_stamp_with_another_field_is_recognised() {
    let marked = MigrationValue {
        from_format: 12,
        to_format: 0,
        cursor: Bytes::from_static(b"origin"),
    };
    assert_eq!(format_value_has_unknown_fields(&frame(&marked)), Ok(true));
}

#[test]
fn a_damaged_stamp_is_an_error_that_names_the_key() {
    let cut = frame(&FormatValue {
        format_version: 12,
        writer_version: "moraine".to_owned(),
    });
    let error = format_value_has_unknown_fields(&cut.slice(..cut.len() - 1)).unwrap_err();
    assert!(
        matches!(&error, DecodeError::Payload { key, .. } if key == "system/format"),
        "{error:?}"
    );
    let error = format_value_has_unknown_fields(&Bytes::from_static(b"RLCK\0")).unwrap_err();
    assert!(matches!(&error, DecodeError::Magic { .. }), "{error:?}");
}
