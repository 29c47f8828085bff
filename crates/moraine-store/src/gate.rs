//! The format gate: whether the records of a store are ones that this version may read and write.

use moraine_codec::ImportMarker;
use moraine_codec::format::{CURRENT, Format, OLDEST_OPENABLE, format_value_has_unknown_fields};
use moraine_codec::proto::FormatValue;
use moraine_keys::{FormatKey, HeadKey, Key, Kind, MigrationKey, NameKey, SchemaKey, Subspace};

use crate::{OpenError, Read, ReadExt};

/// Where a store is, in errors of a gate that was not told.
const UNNAMED: &str = "<URL>";

/// What a store that passed the gate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatState {
    /// No records: there is no lake yet.
    Empty,
    /// A lake of a format that this version reads and writes as it is.
    Ready,
}

/// Checks, in this order: an unfinished migration or import, a newer format, an older format, an empty store, system records of
/// other software, and, where the format has a name directory, whether it is laid out as this version lays it out.
///
/// # Errors
/// [`OpenError::MidMigration`], [`OpenError::MidImport`], [`OpenError::Newer`], [`OpenError::Older`], [`OpenError::Foreign`]; read errors.
pub async fn check_format(read: &dyn Read) -> Result<FormatState, OpenError> {
    if let Some(bytes) = read.get(&MigrationKey.encode()).await? {
        let marker =
            moraine_codec::decode(&MigrationKey, &bytes).map_err(|error| foreign(&MigrationKey, &error))?;
        if ImportMarker::is_import(&marker) {
            let source = ImportMarker::from_value(&marker).map(|marker| marker.source);
            return Err(OpenError::MidImport {
                source_catalog: source.unwrap_or_else(|| "another catalog".to_owned()),
            });
        }
        return Err(OpenError::MidMigration {
            url: UNNAMED.to_owned(),
            from: marker.from_format,
            to: marker.to_format,
        });
    }
    let Some(bytes) = read.get(&FormatKey.encode()).await? else {
        return check_empty(read).await;
    };
    let format = moraine_codec::decode(&FormatKey, &bytes).map_err(|error| foreign(&FormatKey, &error))?;
    let FormatValue {
        format_version: found,
        writer_version,
    } = format;
    let writer = if writer_version.is_empty() {
        "its version is not recorded".to_owned()
    } else {
        writer_version
    };
    if found > CURRENT {
        return Err(OpenError::Newer {
            found,
            newest: CURRENT,
            writer,
        });
    }
    if found < OLDEST_OPENABLE {
        return Err(OpenError::Older {
            url: UNNAMED.to_owned(),
            found,
            oldest: OLDEST_OPENABLE,
            writer,
        });
    }
    // Writing back would drop fields that this version does not know, and one of them says that commits come by
    // another way than this version's.
    if format_value_has_unknown_fields(&bytes).map_err(|error| foreign(&FormatKey, &error))? {
        return Err(OpenError::Foreign {
            at: FormatKey.to_key().to_string(),
            detail: "its format record has fields that this version does not know".to_owned(),
        });
    }
    check_system(read).await?;
    check_head(read).await?;
    if found >= Format::NameDirectory.number() {
        check_names(read).await?;
    }
    Ok(FormatState::Ready)
}

/// A system record of a kind that this version does not know may say that commits come by another way than this
/// version's.
async fn check_system(read: &dyn Read) -> Result<(), OpenError> {
    let mut scan = read.scan(Subspace::System.scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        if let Err(error) = Key::decode(&key) {
            return Err(OpenError::Foreign {
                at: crate::slate::guard::KeyName(&key).to_string(),
                detail: format!("it has a system record that this version does not know: {error}"),
            });
        }
    }
    Ok(())
}

async fn check_head(read: &dyn Read) -> Result<(), OpenError> {
    if read.value(&HeadKey).await?.is_some() {
        return Ok(());
    }
    Err(OpenError::Foreign {
        at: HeadKey.to_key().to_string(),
        detail: "there is a format record, but no head record".to_owned(),
    })
}

/// Without a format record there may be no records at all.
async fn check_empty(read: &dyn Read) -> Result<FormatState, OpenError> {
    let first = read.scan(moraine_keys::KeyRange::all()).await?.next().await?;
    match first {
        None => Ok(FormatState::Empty),
        Some((key, _)) => Err(OpenError::Foreign {
            at: FormatKey.to_key().to_string(),
            detail: format!(
                "there is no format record, but there is {}",
                crate::slate::guard::KeyName(&key)
            ),
        }),
    }
}

/// Two readings of the key of a name are possible; a store with the other one must not get entries of both.
async fn check_names(read: &dyn Read) -> Result<(), OpenError> {
    let Some((schema, value)) = read
        .record_scan::<SchemaKey>(SchemaKey::scan())
        .await?
        .next()
        .await?
    else {
        return Ok(());
    };
    let entry = NameKey {
        kind: NameKey::SCHEMA,
        parent_id: 0,
        name: value.schema_name.clone(),
        entity_id: schema.schema_id,
    };
    if read.get(&entry.encode()).await?.is_none() {
        return Err(OpenError::Foreign {
            at: entry.to_key().to_string(),
            detail: format!(
                "the name directory has no entry for schema {:?} where this version puts it",
                value.schema_name
            ),
        });
    }
    Ok(())
}

fn foreign(key: &impl Kind, error: &moraine_codec::DecodeError) -> OpenError {
    OpenError::Foreign {
        at: key.to_key().to_string(),
        detail: error.to_string(),
    }
}
