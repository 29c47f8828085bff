//! Every record for itself: its key decodes, its value belongs under it, and its kind is one that this format has.

use moraine_codec::format::{CURRENT, Format, format_value_has_unknown_fields};
use moraine_codec::{DecodeError, decode_record};
use moraine_keys::{
    FormatKey, HeadKey, HexBytes, IndexDefinitionKey, IndexKey, InlineKey, InlineOperation, Key, KeyRange,
    Kind, LeadingId, MigrationKey,
};
use moraine_store::ReadError;

use super::{Check, Invariant};

/// Goes once through everything.
pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    let indexes = index_ids(check).await?;
    let mut scan = check.read.scan(KeyRange::all()).await?;
    while let Some((bytes, value)) = scan.next().await? {
        check.checked.records += 1;
        let key = match Key::decode(&bytes) {
            Ok(key) => key,
            Err(error) => {
                let name = HexBytes::from(bytes.as_ref()).to_string();
                check.found_at(Invariant::KeyOfTheTree, name, error.to_string());
                continue;
            }
        };
        match decode_record(&bytes, &value) {
            Ok(_) => {}
            Err(DecodeError::Unwritten { key }) => {
                check.found_at(
                    Invariant::KeyOfTheTree,
                    key,
                    "no version of the format writes such records",
                );
            }
            Err(error) => check.found_at(Invariant::ValueOfTheKey, key.to_string(), error.to_string()),
        }
        of_its_kind(check, &key, &indexes);
    }
    if check.checked.records > 0 {
        check.load_stamps().await?;
        stamps(check).await?;
    }
    Ok(())
}

/// What a key says by its mere presence.
fn of_its_kind(check: &mut Check<'_>, key: &Key, indexes: &[u64]) {
    match key {
        Key::Inline(InlineKey::ChunkRange(_) | InlineKey::Live(InlineOperation::Delete(_))) => {
            let detail = "format 9 and later have another kind for it";
            check.found_at(Invariant::NoReplacedKind, key.to_string(), detail);
        }
        Key::Index(entry) => {
            let index_id = match entry {
                IndexKey::Unique(entry) => entry.leading_id(),
                IndexKey::Multi(entry) => entry.leading_id(),
            };
            if indexes.binary_search(&index_id).is_err() {
                let detail = format!("there is no index {index_id}");
                check.found_at(Invariant::IndexEntriesOfIndexes, key.to_string(), detail);
            }
        }
        _ => {}
    }
}

async fn index_ids(check: &Check<'_>) -> Result<Vec<u64>, ReadError> {
    let mut ids = Vec::new();
    let mut scan = check
        .scan::<IndexDefinitionKey>(IndexDefinitionKey::scan())
        .await?;
    while let Some((key, _)) = scan.next().await? {
        ids.push(key.index_id);
    }
    ids.sort_unstable();
    Ok(ids)
}

async fn stamps(check: &mut Check<'_>) -> Result<(), ReadError> {
    if let Some(marker) = check.value(&MigrationKey).await? {
        let detail = format!(
            "a migration from format {} to {} has not been finished",
            marker.from_format, marker.to_format
        );
        check.found(Invariant::StampedAndWhole, &MigrationKey, detail);
    }
    if check.head.is_none() {
        check.found(Invariant::StampedAndWhole, &HeadKey, "there is no head");
    }
    let Some(bytes) = check.read.get(&FormatKey.encode()).await? else {
        check.found(Invariant::StampedAndWhole, &FormatKey, "there is no format stamp");
        return Ok(());
    };
    let Ok(format) = moraine_codec::decode(&FormatKey, &bytes) else {
        return Ok(());
    };
    let oldest = Format::RowTombstones.number();
    if !(oldest..=CURRENT).contains(&format.format_version) {
        let detail = format!(
            "the format is {}, and these checks are for {oldest} to {CURRENT}",
            format.format_version
        );
        check.found(Invariant::StampedAndWhole, &FormatKey, detail);
    }
    if format_value_has_unknown_fields(&bytes).unwrap_or_default() {
        let detail = "it has fields that this version does not know";
        check.found(Invariant::StampedAndWhole, &FormatKey, detail);
    }
    Ok(())
}
