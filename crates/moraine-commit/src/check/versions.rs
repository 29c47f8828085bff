//! The versions of each entity: within the snapshots there are, and one at a time.

use moraine_codec::{Stored, Version};
use moraine_keys::{
    ColumnKey, DataFileKey, DeleteFileKey, History, IndexDefinitionKey, Kind, MacroKey, PartitionKey,
    SchemaKey, SortKey, TableKey, Versioned, ViewKey,
};
use moraine_store::ReadError;

use super::{Check, Invariant};

pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    kind::<SchemaKey>(check).await?;
    kind::<TableKey>(check).await?;
    kind::<ViewKey>(check).await?;
    kind::<ColumnKey>(check).await?;
    kind::<PartitionKey>(check).await?;
    kind::<DataFileKey>(check).await?;
    kind::<DeleteFileKey>(check).await?;
    kind::<SortKey>(check).await?;
    kind::<MacroKey>(check).await?;
    kind::<IndexDefinitionKey>(check).await
}

async fn kind<K>(check: &mut Check<'_>) -> Result<(), ReadError>
where
    K: Versioned + Stored,
    K::Value: Version,
{
    let newest = check.newest_id();
    // History sorts by entity, then by end: each version has to begin when the one before it has ended.
    let mut before: Option<(K, u64)> = None;
    let mut ended = check.scan::<History<K>>(History::<K>::scan()).await?;
    while let Some((key, value)) = ended.next().await? {
        if let Some((entity, end)) = before.take_if(|(entity, _)| *entity != key.entity) {
            current_follows(check, &entity, end).await?;
        }
        if key.end_snapshot > newest || value.begin_snapshot() > newest {
            beyond(
                check,
                &key,
                value.begin_snapshot(),
                Some(key.end_snapshot),
                newest,
            );
        }
        if let Some((_, end)) = &before
            && value.begin_snapshot() < *end
        {
            overlap(check, &key, value.begin_snapshot(), *end);
        }
        before = Some((key.entity, key.end_snapshot));
    }
    if let Some((entity, end)) = before {
        current_follows(check, &entity, end).await?;
    }
    let mut live = check.scan::<K>(K::scan()).await?;
    while let Some((key, value)) = live.next().await? {
        if value.begin_snapshot() > newest {
            beyond(check, &key, value.begin_snapshot(), None, newest);
        }
    }
    Ok(())
}

/// The live version of an entity begins when its last ended one has ended.
async fn current_follows<K>(check: &mut Check<'_>, entity: &K, end: u64) -> Result<(), ReadError>
where
    K: Versioned + Stored,
    K::Value: Version,
{
    if let Some(value) = check.value(entity).await?
        && value.begin_snapshot() < end
    {
        overlap(check, entity, value.begin_snapshot(), end);
    }
    Ok(())
}

fn overlap(check: &mut Check<'_>, key: &impl Kind, begin: u64, end: u64) {
    let detail = format!("it begins at snapshot {begin}, and another version ends at {end} only");
    check.found(Invariant::VersionsApart, key, detail);
}

fn beyond(check: &mut Check<'_>, key: &impl Kind, begin: u64, end: Option<u64>, newest: u64) {
    let end = end.map_or_else(String::new, |end| format!(" and ends at {end}"));
    let detail = format!("it begins at snapshot {begin}{end}, and the newest is {newest}");
    check.found(Invariant::VersionsWithinHead, key, detail);
}
