//! The directories of names and of delete targets: complete, and nothing else in them.

use moraine_codec::Stored;
use moraine_codec::format::Format;
use moraine_keys::{DeleteFileKey, DeleteTargetKey, Kind, NameKey, SchemaKey, TableKey};
use moraine_store::ReadError;

use super::{Check, Invariant};

pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    if check.has(Format::NameDirectory) {
        complete::<SchemaKey, _>(check, Invariant::NamesComplete, |key, value| {
            NameKey::schema(&value.schema_name, key.schema_id)
        })
        .await?;
        complete::<TableKey, _>(check, Invariant::NamesComplete, |key, value| {
            NameKey::table(value.schema_id, &value.table_name, key.table_id)
        })
        .await?;
    }
    if check.has(Format::DeleteTargetDirectory) {
        complete::<DeleteFileKey, _>(check, Invariant::DeleteTargetsComplete, |key, value| {
            DeleteTargetKey {
                table_id: key.table_id,
                data_file_id: value.data_file_id,
                delete_file_id: key.delete_file_id,
            }
        })
        .await?;
    }
    names(check).await?;
    delete_targets(check).await
}

/// Each live record has its entry.
async fn complete<K: Stored, E: Kind>(
    check: &mut Check<'_>,
    invariant: Invariant,
    entry: fn(&K, &K::Value) -> E,
) -> Result<(), ReadError> {
    let mut scan = check.scan::<K>(K::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        let entry = entry(&key, &value);
        if !check.exists(&entry).await? {
            check.found(invariant, &key, format!("there is no {entry}"));
        }
    }
    Ok(())
}

async fn names(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut scan = check.scan::<NameKey>(NameKey::scan()).await?;
    while let Some((entry, _)) = scan.next().await? {
        let id = entry.entity_id;
        let (what, named) = match entry.kind {
            NameKey::SCHEMA => {
                let value = check.value(&SchemaKey { schema_id: id }).await?;
                (
                    "schema",
                    value.map(|value| NameKey::schema(&value.schema_name, id)),
                )
            }
            NameKey::TABLE => {
                let value = check.value(&TableKey { table_id: id }).await?;
                let named = value.map(|value| NameKey::table(value.schema_id, &value.table_name, id));
                ("table", named)
            }
            _ => ("kind of name", None),
        };
        if named.as_ref() == Some(&entry) {
            continue;
        }
        let detail = match named {
            Some(named) => format!("that {what} is live as {named}"),
            None => format!("there is no such live {what}"),
        };
        check.found(Invariant::NamesExact, &entry, detail);
    }
    Ok(())
}

/// Entries name live delete files of their data file, and one data file has one at most.
async fn delete_targets(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut before: Option<DeleteTargetKey> = None;
    let mut scan = check.scan::<DeleteTargetKey>(DeleteTargetKey::scan()).await?;
    while let Some((entry, _)) = scan.next().await? {
        let file = DeleteFileKey {
            table_id: entry.table_id,
            delete_file_id: entry.delete_file_id,
        };
        match check.value(&file).await? {
            Some(value) if value.data_file_id == entry.data_file_id => {}
            Some(value) => {
                let detail = format!("{file} deletes from data file {}", value.data_file_id);
                check.found(Invariant::DeleteTargetsExact, &entry, detail);
            }
            None => {
                let detail = format!("there is no live {file}");
                check.found(Invariant::DeleteTargetsExact, &entry, detail);
            }
        }
        if let Some(before) = &before
            && (before.table_id, before.data_file_id) == (entry.table_id, entry.data_file_id)
        {
            let detail = format!("delete file {} is for the same data file", before.delete_file_id);
            check.found(Invariant::OneDeleteFile, &entry, detail);
        }
        before = Some(entry);
    }
    Ok(())
}
