//! Small lakes and raw records for tests.

use std::sync::Arc;

use moraine_codec::proto::{FormatValue, HeadValue, SchemaValue};
use moraine_keys::{FormatKey, HeadKey, Kind, NameKey, SchemaKey};
use moraine_store::{Bytes, CommitError, KeyRange, Read, ReadError, Store, collect};

/// Raw records, ascending.
pub(crate) type Records = Vec<(Bytes, Bytes)>;

/// The records of a lake with one schema, at `format`.
pub(crate) fn genesis(format: u64) -> Records {
    let format = FormatValue {
        format_version: format,
        writer_version: "moraine test".to_owned(),
    };
    let schema = SchemaKey { schema_id: 0 };
    let value = SchemaValue {
        schema_id: 0,
        schema_name: "main".to_owned(),
        ..SchemaValue::default()
    };
    let name = NameKey {
        kind: NameKey::SCHEMA,
        parent_id: 0,
        name: "main".to_owned(),
        entity_id: 0,
    };
    vec![
        (
            FormatKey.encode(),
            moraine_codec::encode(&FormatKey, &format).unwrap(),
        ),
        (
            HeadKey.encode(),
            moraine_codec::encode(&HeadKey, &HeadValue::default()).unwrap(),
        ),
        (schema.encode(), moraine_codec::encode(&schema, &value).unwrap()),
        (name.encode(), Bytes::new()),
    ]
}

/// Commits `records` in one batch and waits until it is durable.
pub(crate) async fn put(store: &dyn Store, records: &[(Bytes, Bytes)]) -> Result<(), CommitError> {
    let mut transaction = store.begin()?;
    for (key, value) in records {
        transaction.put(key.clone(), value.clone())?;
    }
    transaction.commit().await?.durable().await
}

/// Every record.
pub(crate) async fn all(read: &dyn Read) -> Result<Records, ReadError> {
    collect(read.scan(KeyRange::all()).await?).await
}

/// Every record of the newest state of `store`.
pub(crate) async fn newest(store: &Arc<impl Store>) -> Result<Records, ReadError> {
    all(store.view()?.as_ref()).await
}

/// A key of subspace `subspace` (its first byte) for tests that do not care what it means.
pub(crate) fn key(subspace: u8, id: u64) -> Bytes {
    let mut key = vec![subspace];
    key.extend_from_slice(&id.to_be_bytes());
    key.into()
}
