//! Records as JSON, for people: fields by the names of the protobuf definitions, absent ones left out, integers as
//! numbers, bytes in base64. Nothing reads this back.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

use crate::record::Record;

/// What a message is made of, from the definitions.
static POOL: LazyLock<Result<DescriptorPool, String>> = LazyLock::new(|| {
    let definitions: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/moraine.store.bin"));
    DescriptorPool::decode(definitions).map_err(|error| error.to_string())
});

/// Why a record could not be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} cannot be printed as JSON: {detail}")]
pub struct JsonError {
    /// The message that the record's value is.
    pub message: String,
    /// What is wrong.
    pub detail: String,
}

/// The value of a record as JSON: an object for a message, a number for the row id of a unique index, null where there is
/// no value. NULL in SQL is told from a default value by the field's absence or by `null_fields`.
///
/// ```
/// use moraine_codec::{Record, proto::HeadValue, to_json};
/// use moraine_keys::HeadKey;
/// let head = Record::Head(HeadKey, HeadValue { snapshot_id: 7, batch_seq: 0 });
/// assert_eq!(to_json(&head).unwrap(), serde_json::json!({ "snapshot_id": 7, "batch_seq": 0 }));
/// ```
///
/// # Errors
/// [`JsonError`] when the definitions do not know the message, which would be a fault of this crate.
pub fn to_json(record: &Record) -> Result<Value, JsonError> {
    match record {
        Record::UniqueIndex(_, row_id) => return Ok(Value::from(*row_id)),
        Record::MultiIndex(..) | Record::Name(..) | Record::DeleteTarget(..) => return Ok(Value::Null),
        _ => {}
    }
    let (message, bytes) = record.message();
    let failed = |detail: String| JsonError {
        message: message.clone(),
        detail,
    };
    let pool = POOL.as_ref().map_err(|detail| failed(detail.clone()))?;
    let descriptor = pool
        .get_message_by_name(&message)
        .ok_or_else(|| failed("there is no such message".to_owned()))?;
    let value =
        DynamicMessage::decode(descriptor, bytes.as_slice()).map_err(|error| failed(error.to_string()))?;
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true)
        .skip_default_fields(false);
    value
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| failed(error.to_string()))
}
