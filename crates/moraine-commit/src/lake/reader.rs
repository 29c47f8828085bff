//! Asking for snapshots: of a catalog that is open for writing, and through a handle that cannot write.

use std::sync::Arc;

use moraine_codec::proto::SnapshotValue;
use moraine_keys::{LeadingId, SnapshotKey};
use moraine_store::{OpenError, ReadExt, ReadPoint, StoreUrl, View};

use crate::catalog::{Access, Catalog, CatalogOptions};
use crate::lake::entities::SnapshotInfo;
use crate::lake::error::LakeError;
use crate::lake::reading::StoredDirectories;
use crate::lake::snapshot::Snapshot;
use crate::views;

/// Which snapshot is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotAt {
    /// The snapshot of this id.
    Id(u64),
    /// The newest that was committed at or before this time, in microseconds since 1970-01-01 UTC.
    TimeMicros(i64),
}

impl From<u64> for SnapshotAt {
    fn from(snapshot_id: u64) -> Self {
        SnapshotAt::Id(snapshot_id)
    }
}

impl From<std::time::SystemTime> for SnapshotAt {
    fn from(time: std::time::SystemTime) -> Self {
        let micros = match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        SnapshotAt::TimeMicros(micros)
    }
}

/// A handle on a lake that has no method which changes it. Clones are handles to the same lake.
///
/// ```compile_fail
/// async fn change(lake: moraine_commit::lake::ReadOnlyLake) {
///     lake.commit(|tx| async move { tx.create_schema("s").await }).await.ok();
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ReadOnlyLake {
    catalog: Arc<Catalog>,
}

impl Catalog {
    /// A handle that reads this lake, and cannot change it.
    #[must_use]
    pub fn read_only(self: &Arc<Self>) -> ReadOnlyLake {
        ReadOnlyLake {
            catalog: Arc::clone(self),
        }
    }

    /// The newest snapshot.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn snapshot(self: &Arc<Self>) -> Result<Snapshot, LakeError> {
        let shown = Shown::newest(self).await?;
        let info = shown.info(shown.newest).await?;
        shown.snapshot(info).await
    }

    /// The snapshot of an id, or the newest as of a time.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn snapshot_at(self: &Arc<Self>, at: impl Into<SnapshotAt>) -> Result<Snapshot, LakeError> {
        let shown = Shown::newest(self).await?;
        let info = match at.into() {
            SnapshotAt::Id(snapshot_id) => shown.info(snapshot_id).await?,
            SnapshotAt::TimeMicros(time_micros) => shown.as_of(time_micros).await?,
        };
        shown.snapshot(info).await
    }

    /// All snapshots that have not expired, oldest first.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn snapshots(self: &Arc<Self>) -> Result<Vec<SnapshotInfo>, LakeError> {
        let shown = Shown::newest(self).await?;
        let found = views::snapshots(shown.view.as_ref()).await?;
        shown.view.settled().await.map_err(LakeError::NotDurable)?;
        Ok(found.into_iter().map(SnapshotInfo::of).collect())
    }
}

impl ReadOnlyLake {
    /// Opens the lake at `url` for reading only: whoever writes it goes on undisturbed, and credentials that cannot write
    /// are enough. Shows the newest state, as far as it is known, or that of a checkpoint.
    ///
    /// # Errors
    /// See [`OpenError`]; each names the reason and the way out.
    pub async fn open(
        url: &StoreUrl,
        point: ReadPoint,
        options: &CatalogOptions,
    ) -> Result<ReadOnlyLake, OpenError> {
        let options = CatalogOptions {
            access: Access::Read(point),
            ..options.clone()
        };
        let catalog = Catalog::open(url, &options).await?;
        Ok(ReadOnlyLake { catalog })
    }

    /// The newest snapshot.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn snapshot(&self) -> Result<Snapshot, LakeError> {
        self.catalog.snapshot().await
    }

    /// The snapshot of an id, or the newest as of a time.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn snapshot_at(&self, at: impl Into<SnapshotAt>) -> Result<Snapshot, LakeError> {
        self.catalog.snapshot_at(at).await
    }

    /// All snapshots that have not expired, oldest first.
    ///
    /// # Errors
    /// See [`LakeError`].
    pub async fn snapshots(&self) -> Result<Vec<SnapshotInfo>, LakeError> {
        self.catalog.snapshots().await
    }
}

/// The newest state, from which every snapshot is shown.
struct Shown {
    view: Arc<dyn View>,
    directories: moraine_inline::DirectoriesAt,
    newest: u64,
}

impl Shown {
    async fn newest(catalog: &Arc<Catalog>) -> Result<Self, LakeError> {
        let transaction = catalog.begin().await?;
        let newest = transaction.head().ok_or(LakeError::NoLake)?.snapshot_id;
        Ok(Shown {
            view: Arc::clone(transaction.read().base()),
            directories: transaction.directories(),
            newest,
        })
    }

    async fn info(&self, snapshot_id: u64) -> Result<SnapshotInfo, LakeError> {
        if snapshot_id > self.newest {
            return Err(LakeError::NoSuchSnapshot {
                snapshot_id,
                newest: self.newest,
            });
        }
        let found = views::snapshot(self.view.as_ref(), snapshot_id).await?;
        found
            .map(SnapshotInfo::of)
            .ok_or(LakeError::SnapshotExpired { snapshot_id })
    }

    /// The newest snapshot at or before a time. Times increase with ids, so this is a search by halves.
    async fn as_of(&self, time_micros: i64) -> Result<SnapshotInfo, LakeError> {
        let (mut least, mut past) = (0, self.newest.saturating_add(1));
        let mut best: Option<SnapshotValue> = None;
        while least < past {
            let middle = least + (past - least) / 2;
            match self.first_in(middle, past).await? {
                Some(found) if found.snapshot_time_micros <= time_micros => {
                    least = found.snapshot_id.saturating_add(1);
                    best = Some(found);
                }
                _ => past = middle,
            }
        }
        best.map(SnapshotInfo::of)
            .ok_or(LakeError::NothingAtTime { time_micros })
    }

    /// The first snapshot from an id on, before another.
    async fn first_in(&self, least: u64, past: u64) -> Result<Option<SnapshotValue>, LakeError> {
        let range = SnapshotKey::scan_ids(least..=past.saturating_sub(1));
        let mut scan = self.view.record_scan::<SnapshotKey>(range).await?;
        while let Some((_, found)) = scan.next().await? {
            if !found.changes_only {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The snapshot, once nothing that it shows can be taken back.
    async fn snapshot(self, info: SnapshotInfo) -> Result<Snapshot, LakeError> {
        self.view.settled().await.map_err(LakeError::NotDurable)?;
        let newest = info.snapshot_id == self.newest;
        let stored = StoredDirectories::of(self.view.as_ref()).await?;
        Ok(Snapshot::new(self.view, self.directories, stored, info, newest))
    }
}
