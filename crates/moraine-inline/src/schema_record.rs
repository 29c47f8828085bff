//! Schema records: which inlined tables a table has, the columns of each, and whether DuckLake lists it. A record is written once
//! and stays until the table is dropped; deregistering hides it from the list and stores its bytes once among equal versions.

use std::collections::BTreeSet;

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use moraine_codec::proto::{InlineSchemaDroppedValue, InlineSchemaValue};
use moraine_keys::{InlineInsertKey, InlineSchemaKey, Kind, SchemaDroppedKey, TableScoped};
use moraine_store::{Read, ReadExt, Staging};

use crate::error::{InlineError, corruption};
use crate::frame::{decode_schema, encode_schema};

/// Creates `ducklake_inlined_data_<table_id>_<schema_version>` with the user columns `schema`; `registered` says whether
/// `ducklake_inlined_data_tables` lists it. A record with the same columns stays as it is (its marker goes when `registered`).
///
/// # Errors
/// [`InlineError::Frame`] for columns that cannot be inlined; [`InlineError::SchemaConflict`] when the version exists with other
/// columns and has rows, or other versions share its record.
pub async fn create_table(
    staging: &mut Staging,
    table_id: u64,
    schema_version: u64,
    schema: &Schema,
    registered: bool,
) -> Result<(), InlineError> {
    let bytes = encode_schema(schema)?;
    let key = InlineSchemaKey {
        table_id,
        schema_version,
    };
    if let Some(stored) = schema_bytes(staging, &key).await? {
        // Another writer's stream of the same columns may differ in padding.
        let same = *decode_schema(&stored).map_err(|error| corruption(&key, error.to_string()))? == *schema;
        if same {
            return if registered {
                clear_marker(staging, &key).await
            } else {
                Ok(())
            };
        }
        require_replaceable(staging, &key).await?;
    }
    if registered {
        clear_marker(staging, &key).await?;
    } else {
        staging.put(&marker(&key), &InlineSchemaDroppedValue {})?;
    }
    let record = InlineSchemaValue {
        arrow_schema: bytes,
        same_as_version: None,
    };
    staging.put(&key, &record)?;
    Ok(())
}

/// Lists the version in `ducklake_inlined_data_tables`. DuckLake inserts that row before it creates the table: remember it and
/// pass `registered` to [`create_table`] then.
///
/// # Errors
/// [`InlineError::NoSuchVersion`] when the version has not been created.
pub async fn register(staging: &mut Staging, table_id: u64, schema_version: u64) -> Result<(), InlineError> {
    let key = InlineSchemaKey {
        table_id,
        schema_version,
    };
    require_record(staging, &key).await?;
    clear_marker(staging, &key).await
}

/// Takes the version off `ducklake_inlined_data_tables`. Its schema record stays, so that a reader with an older list still binds
/// it; it collapses to a reference when another version of the table holds the same bytes, this one is no reference, and none
/// refers to this one.
///
/// # Errors
/// [`InlineError::NoSuchVersion`] when the version has not been created.
pub async fn deregister(
    staging: &mut Staging,
    table_id: u64,
    schema_version: u64,
) -> Result<(), InlineError> {
    let key = InlineSchemaKey {
        table_id,
        schema_version,
    };
    require_record(staging, &key).await?;
    let twin = collapse_target(staging, &key).await?;
    staging.put(&marker(&key), &InlineSchemaDroppedValue {})?;
    if let Some(version) = twin {
        let reference = InlineSchemaValue {
            arrow_schema: Bytes::new(),
            same_as_version: Some(version),
        };
        staging.put(&key, &reference)?;
    }
    Ok(())
}

/// The user columns of `ducklake_inlined_data_<table_id>_<schema_version>`, registered or not; `None` when it was never created.
/// Columns go by position: a foreign writer's names need not be DuckLake's.
///
/// # Errors
/// [`moraine_store::ReadError::Corruption`] for a record that is damaged, or refers to itself, to a reference or to nothing.
pub async fn schema(
    read: &dyn Read,
    table_id: u64,
    schema_version: u64,
) -> Result<Option<SchemaRef>, InlineError> {
    let key = InlineSchemaKey {
        table_id,
        schema_version,
    };
    match schema_bytes(read, &key).await? {
        Some(bytes) => decode_schema(&bytes)
            .map(Some)
            .map_err(|error| corruption(&key, error.to_string())),
        None => Ok(None),
    }
}

/// All inlined tables, of one table or of all, as (table id, schema version, registered), ascending. Decodes no schema.
///
/// # Errors
/// See [`InlineError::Read`].
pub async fn versions(read: &dyn Read, table: Option<u64>) -> Result<Vec<(u64, u64, bool)>, InlineError> {
    let (records, markers) = match table {
        Some(table_id) => (
            InlineSchemaKey::scan_table(table_id),
            SchemaDroppedKey::scan_table(table_id),
        ),
        None => (InlineSchemaKey::scan(), SchemaDroppedKey::scan()),
    };
    let dropped: BTreeSet<SchemaDroppedKey> = read.keys(markers).await?.into_iter().collect();
    let records: Vec<InlineSchemaKey> = read.keys(records).await?;
    let version = |key: &InlineSchemaKey| (key.table_id, key.schema_version, !dropped.contains(&marker(key)));
    Ok(records.iter().map(version).collect())
}

/// Removes the marker of a dropped version, if it has one.
pub(crate) async fn clear_marker(staging: &mut Staging, key: &InlineSchemaKey) -> Result<(), InlineError> {
    let marker = marker(key);
    if staging.get(&marker.encode()).await?.is_some() {
        staging.delete(&marker);
    }
    Ok(())
}

/// Whether the version has been created.
pub(crate) async fn exists(read: &dyn Read, key: &InlineSchemaKey) -> Result<bool, InlineError> {
    Ok(read.get(&key.encode()).await?.is_some())
}

fn marker(key: &InlineSchemaKey) -> SchemaDroppedKey {
    SchemaDroppedKey {
        table_id: key.table_id,
        schema_version: key.schema_version,
    }
}

async fn require_record(read: &dyn Read, key: &InlineSchemaKey) -> Result<(), InlineError> {
    if exists(read, key).await? {
        return Ok(());
    }
    Err(InlineError::NoSuchVersion {
        table_id: key.table_id,
        schema_version: key.schema_version,
    })
}

/// The schema stream that `key` holds or refers to.
async fn schema_bytes(read: &dyn Read, key: &InlineSchemaKey) -> Result<Option<Bytes>, InlineError> {
    let Some(record) = read.value(key).await? else {
        return Ok(None);
    };
    let Some(version) = record.same_as_version else {
        return Ok(Some(record.arrow_schema));
    };
    let target = InlineSchemaKey {
        table_id: key.table_id,
        schema_version: version,
    };
    match read.value(&target).await? {
        Some(target) if target.same_as_version.is_none() => Ok(Some(target.arrow_schema)),
        Some(_) => Err(corruption(
            key,
            format!("version {version}, which it refers to, is itself a reference"),
        )),
        None => Err(corruption(
            key,
            format!("version {version}, which it refers to, does not exist"),
        )),
    }
}

/// The version whose record `key` may refer to instead of holding its own bytes.
async fn collapse_target(read: &dyn Read, key: &InlineSchemaKey) -> Result<Option<u64>, InlineError> {
    let records: Vec<(InlineSchemaKey, InlineSchemaValue)> =
        read.records(InlineSchemaKey::scan_table(key.table_id)).await?;
    let referenced = records
        .iter()
        .any(|(_, value)| value.same_as_version == Some(key.schema_version));
    let own = records
        .iter()
        .find(|(other, _)| other == key)
        .map(|(_, value)| value);
    let Some(own) = own.filter(|own| own.same_as_version.is_none() && !referenced) else {
        return Ok(None);
    };
    let twin = records.iter().find(|(other, value)| {
        other != key && value.same_as_version.is_none() && value.arrow_schema == own.arrow_schema
    });
    Ok(twin.map(|(other, _)| other.schema_version))
}

async fn require_replaceable(read: &dyn Read, key: &InlineSchemaKey) -> Result<(), InlineError> {
    let InlineSchemaKey {
        table_id,
        schema_version,
    } = *key;
    let conflict = |held_by| {
        Err(InlineError::SchemaConflict {
            table_id,
            schema_version,
            held_by,
        })
    };
    let mut chunks = read
        .scan(InlineInsertKey::scan_version(table_id, schema_version))
        .await?;
    if chunks.next().await?.is_some() {
        return conflict("has rows");
    }
    let records: Vec<(InlineSchemaKey, InlineSchemaValue)> =
        read.records(InlineSchemaKey::scan_table(table_id)).await?;
    if records
        .iter()
        .any(|(_, value)| value.same_as_version == Some(schema_version))
    {
        return conflict("other versions share its record");
    }
    Ok(())
}
