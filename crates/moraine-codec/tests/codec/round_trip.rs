//! Every message comes back from its bytes, and so does every record.

use std::fmt::Debug;

use bytes::Bytes;
use moraine_codec::{
    HEADER_BYTES, Record, decode, decode_record, encode, encode_record, frame, proto, unframe,
};
use proptest::prelude::*;

use crate::messages::{Draw, DrawRecord, check, check_all, for_every_message, for_every_stored_kind, record};

#[test]
fn every_message_comes_back_from_its_frame() {
    fn comes_back<M: prost::Message + Default + Draw + PartialEq + Debug>() {
        check(|entropy| {
            let message = M::draw(entropy);
            let bytes = frame(&message);
            prop_assert_eq!(bytes.len(), HEADER_BYTES + message.encoded_len());
            prop_assert_eq!(unframe::<M>(&"key", &bytes), Ok(message));
            Ok(())
        });
        assert_eq!(frame(&M::default()).as_ref(), b"MRNE\0");
    }
    for_every_message!(comes_back);
}

#[test]
fn every_record_comes_back_from_its_bytes() {
    fn comes_back<K: DrawRecord>()
    where
        Record: From<(K, K::Value)>,
    {
        check(|entropy| {
            let (key, value) = K::draw_record(entropy);
            let bytes = encode(&key, &value)?;
            prop_assert_eq!(decode(&key, &bytes), Ok(value.clone()));
            let record = Record::from((key.clone(), value));
            prop_assert_eq!(record.key(), key.to_key());
            prop_assert_eq!(encode_record(&record), Ok((key.encode(), bytes.clone())));
            prop_assert_eq!(decode_record(&key.encode(), &bytes), Ok(record));
            Ok(())
        });
    }
    for_every_stored_kind!(comes_back);
}

#[test]
fn arbitrary_bytes_give_a_value_or_an_error_that_names_the_key() {
    fn never_panics<K: DrawRecord>()
    where
        Record: From<(K, K::Value)>,
    {
        let payload = prop::collection::vec(any::<u8>(), 0..80);
        check_all(&(payload, any::<bool>()), |(mut bytes, framed)| {
            if framed {
                bytes.splice(0..0, *b"MRNE\0");
            }
            let key = record::<K>(&mut crate::messages::Entropy::new(&bytes)).key();
            if let Err(error) = decode_record(&key.encode(), &Bytes::from(bytes)) {
                prop_assert!(error.to_string().contains(&key.to_string()), "{}", error);
            }
            Ok(())
        });
    }
    for_every_stored_kind!(never_panics);
}

#[test]
fn a_damaged_value_gives_a_value_or_an_error() {
    fn never_panics<K: DrawRecord>() {
        check(|entropy| {
            let (key, value) = K::draw_record(entropy);
            let bytes = encode(&key, &value)?;
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(&key, &Bytes::from(flipped));
            }
            for len in 0..bytes.len() {
                let _ = decode(&key, &bytes.slice(..len));
            }
            Ok(())
        });
    }
    for_every_stored_kind!(never_panics);
}

#[test]
fn bodies_share_the_memory_of_the_stored_value() {
    let chunk = proto::InlineChunkValue {
        body: vec![7; 4096].into(),
        row_count: 1,
        ..Default::default()
    };
    let bytes = frame(&chunk);
    let decoded = unframe::<proto::InlineChunkValue>(&"key", &bytes).unwrap();
    assert!(bytes.as_ptr_range().contains(&decoded.body.as_ptr()));
}

#[test]
fn equal_options_have_equal_bytes_in_whatever_order_they_were_set() {
    let pairs = ["data_path", "encrypted", "a", "zz"].map(|name| (name.to_owned(), "v".to_owned()));
    let forward = proto::OptionScopeValue {
        options: pairs.clone().into_iter().collect(),
    };
    let backward = proto::OptionScopeValue {
        options: pairs.into_iter().rev().collect(),
    };
    assert_eq!(frame(&forward), frame(&backward));
}
