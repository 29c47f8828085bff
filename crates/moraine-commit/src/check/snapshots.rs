//! Snapshots among themselves, against the head, and the changelog.

use moraine_codec::format::CHANGELOG_SNAPSHOTS_MAX;
use moraine_codec::proto::{ChangelogValue, SnapshotValue};
use moraine_keys::{ChangelogKey, HeadKey, Key, Kind, SnapshotKey};
use moraine_store::ReadError;

use super::{Check, Invariant};

pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    order(check).await?;
    head(check);
    changelog(check).await
}

async fn order(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut scan = check.scan::<SnapshotKey>(SnapshotKey::scan()).await?;
    let mut before: Option<SnapshotValue> = None;
    while let Some((key, value)) = scan.next().await? {
        if value.changes_only {
            continue;
        }
        if let Some(before) = &before {
            pair(check, &key, before, &value);
        }
        before = Some(value);
    }
    check.newest = before;
    Ok(())
}

fn pair(check: &mut Check<'_>, key: &SnapshotKey, before: &SnapshotValue, value: &SnapshotValue) {
    let mut fell = |what: &str, was: String, is: String| {
        let detail = format!(
            "its {what} is {is}, and snapshot {} has {was}",
            before.snapshot_id
        );
        check.found(Invariant::SnapshotsInOrder, key, detail);
    };
    if value.snapshot_time_micros < before.snapshot_time_micros {
        let (was, is) = (before.snapshot_time_micros, value.snapshot_time_micros);
        fell(
            "snapshot_time (microseconds since 1970)",
            was.to_string(),
            is.to_string(),
        );
    }
    for (what, was, is) in [
        ("schema_version", before.schema_version, value.schema_version),
        ("next_catalog_id", before.next_catalog_id, value.next_catalog_id),
        ("next_file_id", before.next_file_id, value.next_file_id),
    ] {
        if is < was {
            fell(what, was.to_string(), is.to_string());
        }
    }
}

fn head(check: &mut Check<'_>) {
    let Some(head) = check.head else { return };
    let newest = check.newest.as_ref().map(|newest| newest.snapshot_id);
    if newest != Some(head.snapshot_id) {
        let newest = newest.map_or_else(|| "there is none".to_owned(), |id| format!("the newest is {id}"));
        let detail = format!("it names snapshot {}, and {newest}", head.snapshot_id);
        check.found(Invariant::HeadIsNewestSnapshot, &HeadKey, detail);
    }
}

async fn changelog(check: &mut Check<'_>) -> Result<(), ReadError> {
    let newest = check.newest_id();
    let mut scan = check.scan::<ChangelogKey>(ChangelogKey::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        if key.snapshot_id > newest {
            let detail = format!("the newest snapshot is {newest}");
            check.found(Invariant::ChangelogInWindow, &key, detail);
        } else if key.snapshot_id.saturating_add(CHANGELOG_SNAPSHOTS_MAX) <= newest {
            let detail = format!(
                "the window is the last {CHANGELOG_SNAPSHOTS_MAX} snapshots, and the newest is {newest}"
            );
            check.found(Invariant::ChangelogInWindow, &key, detail);
        }
        if let Some(detail) = bad_keys(&value) {
            check.found(Invariant::ChangelogInWindow, &key, detail);
        }
    }
    Ok(())
}

fn bad_keys(value: &ChangelogValue) -> Option<String> {
    if !value.keys.is_sorted_by(|left, right| left < right) {
        return Some("its keys are not sorted, or one is there twice".to_owned());
    }
    value.keys.iter().find_map(|key| match Key::decode(key) {
        Ok(Key::Current(_)) => None,
        Ok(key) => Some(format!(
            "it speaks of {key}, which is not of the current subspace"
        )),
        Err(error) => Some(format!("it speaks of a key that is none: {error}")),
    })
}
