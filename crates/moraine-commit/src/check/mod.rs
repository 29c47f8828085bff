//! Checks every invariant of the format on a store, whoever wrote it: what holds between its records, and what each says
//! of itself. Reads only, at one state, in bounded memory (what is kept grows with the number of tables and of scheduled
//! files, never with files, rows or snapshots). Nothing is mended here; each [`Invariant`] says what would.

mod counters;
mod directories;
mod files;
mod finding;
mod inlined;
mod inlined_rows;
mod parents;
mod records;
mod snapshots;
mod tables;
mod versions;

use std::collections::BTreeMap;

use bytes::Bytes;
use moraine_codec::Stored;
use moraine_codec::format::Format;
use moraine_codec::proto::{HeadValue, SnapshotValue};
use moraine_inline::InlineError;
use moraine_keys::{FormatKey, HeadKey, Key, KeyRange, Kind};
use moraine_store::{Read, ReadError, Scan};

pub use finding::{Finding, Invariant, Severity};

use crate::check::tables::Tables;

/// What a check went through and how often it found something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Records in the store.
    pub records: u64,
    /// Findings by invariant; those that hold are not listed.
    pub findings: BTreeMap<Invariant, u64>,
}

impl Checked {
    /// Whether every invariant holds, or only leftovers were found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings
            .keys()
            .all(|invariant| invariant.severity() == Severity::Leftover)
    }
}

/// Checks every invariant on the store's records as `read` sees them, and tells `report` of each finding as it is found, in
/// the order of the checks.
///
/// # Errors
/// [`ReadError`] when the store cannot be read on. Records that cannot be decoded are findings.
pub async fn check(read: &dyn Read, report: &mut (dyn FnMut(Finding) + Send)) -> Result<Checked, ReadError> {
    let mut check = Check {
        read,
        report,
        checked: Checked::default(),
        format: None,
        head: None,
        newest: None,
    };
    records::check(&mut check).await?;
    if check.checked.records == 0 {
        return Ok(check.checked);
    }
    snapshots::check(&mut check).await?;
    versions::check(&mut check).await?;
    let tables = Tables::load(&check).await?;
    parents::check(&mut check, &tables).await?;
    counters::check(&mut check).await?;
    directories::check(&mut check).await?;
    files::check(&mut check).await?;
    inlined::check(&mut check, &tables).await?;
    Ok(check.checked)
}

/// A check under way.
struct Check<'a> {
    read: &'a dyn Read,
    report: &'a mut (dyn FnMut(Finding) + Send),
    checked: Checked,
    /// The format, once the records were gone through.
    format: Option<u64>,
    /// The head, once the records were gone through.
    head: Option<HeadValue>,
    /// The newest snapshot, once the snapshots were gone through.
    newest: Option<SnapshotValue>,
}

impl Check<'_> {
    /// Tells of a record that breaks an invariant.
    fn found(&mut self, invariant: Invariant, key: &impl Kind, detail: impl Into<String>) {
        self.found_at(invariant, key.to_string(), detail);
    }

    fn found_at(&mut self, invariant: Invariant, key: String, detail: impl Into<String>) {
        *self.checked.findings.entry(invariant).or_default() += 1;
        (self.report)(Finding {
            invariant,
            key,
            detail: detail.into(),
        });
    }

    /// The newest snapshot's id; what the head says where there is no snapshot.
    fn newest_id(&self) -> u64 {
        let newest = self.newest.as_ref().map(|newest| newest.snapshot_id);
        newest
            .or(self.head.as_ref().map(|head| head.snapshot_id))
            .unwrap_or_default()
    }

    /// The records of a kind in `range`. Those that cannot be decoded are passed over: [`records`] tells of them.
    async fn scan<K: Stored>(&self, range: KeyRange) -> Result<Records<K>, ReadError> {
        Ok(Records {
            scan: self.read.scan(range).await?,
            kind: std::marker::PhantomData,
        })
    }

    /// A value; `None` where there is none, or none that can be decoded.
    async fn value<K: Stored>(&self, key: &K) -> Result<Option<K::Value>, ReadError> {
        let bytes = self.read.get(&key.encode()).await?;
        Ok(bytes.and_then(|bytes| moraine_codec::decode(key, &bytes).ok()))
    }

    /// Whether there is a record under the key, decodable or not.
    async fn exists(&self, key: &impl Kind) -> Result<bool, ReadError> {
        Ok(self.read.get(&key.encode()).await?.is_some())
    }

    async fn load_stamps(&mut self) -> Result<(), ReadError> {
        self.head = self.value(&HeadKey).await?;
        let format = self.value(&FormatKey).await?;
        self.format = format.map(|format| format.format_version);
        Ok(())
    }

    /// Whether the store is of a format that has what `since` introduced; so is one without a stamp.
    fn has(&self, since: Format) -> bool {
        self.format.is_none_or(|format| format >= since.number())
    }
}

/// The decodable records of a kind, in order.
struct Records<K> {
    scan: Box<dyn Scan>,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Stored> Records<K> {
    async fn next(&mut self) -> Result<Option<(K, K::Value)>, ReadError> {
        while let Some((key, value)) = self.scan.next().await? {
            if let Some(record) = decode::<K>(&key, &value) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

fn decode<K: Stored>(key: &[u8], value: &Bytes) -> Option<(K, K::Value)> {
    let key = K::from_key(Key::decode(key).ok()?).ok()?;
    let value = moraine_codec::decode(&key, value).ok()?;
    Some((key, value))
}

/// What is damaged, where inlined rows could not be read because of what is stored; an error where the store failed.
fn damage(error: InlineError) -> Result<String, ReadError> {
    match error {
        InlineError::Read(error @ ReadError::Corruption { .. }) => Ok(error.to_string()),
        InlineError::Read(error) => Err(error),
        error => Ok(error.to_string()),
    }
}
