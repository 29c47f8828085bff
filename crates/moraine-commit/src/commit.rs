//! Writing a transaction: the outermost loop. Here alone a commit is tried again, and only where the store says that
//! somebody else was quicker and the premise still stands. What is written is settled before, in [`crate::batch`];
//! whether it may be, in [`crate::premise`].

use std::sync::Arc;

use moraine_codec::format;
use moraine_codec::proto::{HeadValue, OptionScopeValue};
use moraine_keys::{ChangelogKey, FormatKey, HeadKey, Kind, LeadingId, MigrationKey, OptionKey};
use moraine_store::{CommitError, Pending, ReadExt, Staging, Transaction, View, WriteSet};
use tracing::Instrument;

use crate::catalog::Catalog;
use crate::error::{CommitFailure, StageError};
use crate::genesis;
use crate::premise::{self, Verdict};
use crate::slot::Hold;
use crate::transaction::Staged;
use crate::{batch, derive};

/// How often a batch is taken to the store before the client is told to begin again. Each lost try means that another
/// batch got through.
const COMMIT_TRIES_MAX: usize = 16;

/// A commit that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The snapshot the commit minted; `None` for reads and maintenance.
    pub snapshot_id: Option<u64>,
}

/// Where a commit says that its batch is written.
pub(crate) type Written = tokio::sync::oneshot::Sender<()>;

/// A batch ready to be written: everything but what depends on the head it will meet.
struct Batch {
    base: Arc<dyn View>,
    premise: Option<HeadValue>,
    minted: Option<u64>,
    writes: WriteSet,
}

/// What became of one try.
enum Try {
    Written(Pending),
    /// The lake this batch creates is there already; nothing needs to be written.
    Adopted,
    /// Somebody else was quicker; nothing was written.
    Overtaken,
}

/// Commits. The work is done on a task of its own, so that a caller who stops waiting leaves nothing half done.
pub(crate) async fn run(
    catalog: Arc<Catalog>,
    staging: Staging,
    premise: Option<HeadValue>,
    staged: Staged,
    slot: Option<Hold>,
    noting: Option<Written>,
) -> Result<Committed, CommitFailure> {
    if staging.is_empty() && staged.is_empty() {
        drop(slot);
        staging.base().settled().await?;
        return Ok(Committed { snapshot_id: None });
    }
    if let Some(slot) = &slot {
        slot.writing();
    }
    let work = async move {
        let minted = staged.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id);
        let changes = staged.changes.as_ref();
        let changes_made = changes.and_then(|changes| changes.changes_made.clone());
        let base = Arc::clone(staging.base());
        let (indexes, remote_data) = (catalog.indexes(), catalog.is_remote());
        let writes = batch::finish(staging, premise.as_ref(), staged, indexes, remote_data).await?;
        catalog.check_batch_bytes(writes.bytes())?;
        let batch = Batch {
            base,
            premise,
            minted,
            writes,
        };
        let written = write(&catalog, &batch).await?;
        if let Some(minted) = batch.minted {
            catalog
                .activity()
                .note_commit(minted, changes_made.as_deref().unwrap_or_default());
        }
        // Written is enough for the next committer to build on; durable is for the client.
        drop(slot);
        if let Some(noting) = noting {
            let _unheard = noting.send(());
        }
        match written {
            Some(pending) => pending.durable().await?,
            None => catalog.store().view()?.settled().await?,
        }
        Ok(Committed {
            snapshot_id: batch.minted,
        })
    };
    let outcome = tokio::spawn(work.instrument(tracing::Span::current())).await;
    let outcome = outcome.unwrap_or_else(|error| {
        Err(CommitFailure::Unknown {
            detail: format!("the commit's task ended early: {error}"),
        })
    });
    report(&outcome);
    outcome
}

/// Tells operators how a commit came out. Conflicts are everyday; an unknown outcome is not.
fn report(outcome: &Result<Committed, CommitFailure>) {
    match outcome {
        Ok(Committed { snapshot_id }) => tracing::debug!(?snapshot_id, "committed"),
        Err(failure @ (CommitFailure::Conflict { .. } | CommitFailure::Constraint { .. })) => {
            tracing::debug!(%failure, "commit refused");
        }
        Err(failure) => tracing::warn!(%failure, "commit failed"),
    }
}

/// Takes the batch to the store until it is written or refused. `None`: there was nothing to write.
async fn write(catalog: &Catalog, batch: &Batch) -> Result<Option<Pending>, CommitFailure> {
    for _ in 0..COMMIT_TRIES_MAX {
        match try_write(catalog, batch).await? {
            Try::Written(pending) => return Ok(Some(pending)),
            Try::Adopted => return Ok(None),
            Try::Overtaken => {}
        }
    }
    let detail = format!("other transactions were quicker {COMMIT_TRIES_MAX} times in a row");
    Err(CommitFailure::Conflict { detail })
}

/// One try: the premise is read through the transaction that writes, so that nothing can come between.
async fn try_write(catalog: &Catalog, batch: &Batch) -> Result<Try, CommitFailure> {
    let mut transaction = catalog.store().begin()?;
    let head = transaction.value(&HeadKey {}).await?;
    if !catalog.is_known_unmigrated(head.as_ref())
        && let Some(marker) = transaction.value(&MigrationKey {}).await?
    {
        let detail = format!(
            "the store is in the middle of a migration from format {} to {}; let `moraine migrate` finish it, then try again",
            marker.from_format, marker.to_format
        );
        return Err(CommitFailure::Constraint { detail });
    }
    match premise::judge(batch.premise.as_ref(), head.as_ref(), batch.minted) {
        Verdict::Apply => {}
        Verdict::CompareRecords => compare_records(batch, transaction.as_ref()).await?,
        Verdict::Adopt => {
            let key = OptionKey {
                scope_kind: 0,
                scope_id: 0,
            };
            let ours = staged_options(batch, &key)?;
            let theirs = transaction.value(&key).await?.unwrap_or_default();
            genesis::check_same_lake(&ours, &theirs)?;
            return Ok(Try::Adopted);
        }
        Verdict::Conflict { detail } => return Err(CommitFailure::Conflict { detail }),
    }
    batch.writes.apply(transaction.as_mut())?;
    expire_changelog(batch, head.as_ref(), transaction.as_mut()).await?;
    let next = premise::next_head(head.as_ref(), batch.minted);
    transaction.put(HeadKey {}.encode(), moraine_codec::encode(&HeadKey {}, &next)?)?;
    match transaction.commit().await {
        Ok(pending) => {
            if let Some(head) = head {
                catalog.advance(head, next, &batch.writes);
            }
            Ok(Try::Written(pending))
        }
        Err(CommitError::Conflicted) => Ok(Try::Overtaken),
        Err(error) => Err(error.into()),
    }
}

/// Refuses unless every record the batch writes is still what the pinned view shows. Other batches have landed since;
/// where they touched nothing of this one, either order gives the same state.
async fn compare_records(batch: &Batch, transaction: &dyn Transaction) -> Result<(), CommitFailure> {
    // What a batch has to write follows from the format too.
    let format = FormatKey {}.encode();
    for key in batch.writes.iter().map(|(key, _)| key).chain([&format]) {
        if batch.base.get(key).await? != transaction.get(key).await? {
            let key = derive::name_of(key);
            return Err(CommitFailure::Conflict {
                detail: format!("{key} was changed by another transaction"),
            });
        }
    }
    Ok(())
}

/// Deletes the changelog records that fall out of the window when the batch's snapshot enters it.
async fn expire_changelog(
    batch: &Batch,
    head: Option<&HeadValue>,
    transaction: &mut dyn Transaction,
) -> Result<(), CommitFailure> {
    let (Some(minted), Some(head)) = (batch.minted, head) else {
        return Ok(());
    };
    let Some(newest_expired) = minted.checked_sub(format::CHANGELOG_SNAPSHOTS_MAX) else {
        return Ok(());
    };
    if minted == head.snapshot_id.saturating_add(1) {
        transaction.delete(
            ChangelogKey {
                snapshot_id: newest_expired,
            }
            .encode(),
        )?;
        return Ok(());
    }
    // Ids were skipped, so more than one record may leave the window.
    let range = ChangelogKey::scan_ids(0..=newest_expired);
    for key in transaction.keys::<ChangelogKey>(range).await? {
        transaction.delete(key.encode())?;
    }
    Ok(())
}

/// The lake's options as a batch that creates it has staged them.
fn staged_options(batch: &Batch, key: &OptionKey) -> Result<OptionScopeValue, CommitFailure> {
    match batch.writes.get(&key.encode()) {
        Some(Some(bytes)) => {
            let decoded = moraine_codec::decode(key, bytes);
            decoded.map_err(|error| {
                StageError::Constraint {
                    detail: error.to_string(),
                }
                .into()
            })
        }
        _ => Ok(OptionScopeValue::default()),
    }
}
