//! Which of many keys exist below a transaction, found with few reads: new records mostly come with new ids, so one scan
//! over where a large group of them would be finds nothing and is done.

use std::collections::BTreeSet;

use bytes::Bytes;
use moraine_keys::KeyRange;
use moraine_store::{ReadError, Staging};

/// Bytes that keys of one kind and one leading id share at most: three discriminants and the id.
const GROUP_PREFIX_BYTES: usize = 3 + size_of::<u64>();

/// Keys of a group that are looked for one by one. The engine knows of most keys that are absent without reading a block;
/// a scan has to read one of each of its runs, past the cache.
const SINGLE_GETS_MAX: usize = 8;

/// Records that a scan may go past, per key looked for, before single gets are cheaper.
const SCANNED_PER_KEY_MAX: usize = 4;

/// The keys, of those asked for, that exist in the view below a transaction.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    present: BTreeSet<Bytes>,
}

impl Presence {
    /// Looks `keys` up in the view below `staging`.
    pub(crate) async fn load(staging: &Staging, keys: BTreeSet<Bytes>) -> Result<Self, ReadError> {
        let mut present = BTreeSet::new();
        let keys: Vec<Bytes> = keys.into_iter().collect();
        for group in keys.chunk_by(|left, right| group_of(left) == group_of(right)) {
            find(staging, group, &mut present).await?;
        }
        Ok(Presence { present })
    }

    /// Whether the view below the transaction has `key`, one of those asked for.
    pub(crate) fn below(&self, key: &[u8]) -> bool {
        self.present.contains(key)
    }

    /// Whether the transaction sees `key`, one of those asked for.
    pub(crate) fn sees(&self, staging: &Staging, key: &[u8]) -> bool {
        staging
            .writes()
            .get(key)
            .map_or_else(|| self.below(key), Option::is_some)
    }
}

fn group_of(key: &Bytes) -> &[u8] {
    key.get(..GROUP_PREFIX_BYTES).unwrap_or(key)
}

/// Finds which keys of an ascending group exist.
async fn find(staging: &Staging, group: &[Bytes], present: &mut BTreeSet<Bytes>) -> Result<(), ReadError> {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return Ok(());
    };
    let mut rest = group;
    if group.len() > SINGLE_GETS_MAX {
        let after_last: Vec<u8> = last.iter().copied().chain([0]).collect();
        let range = KeyRange {
            start: first.clone(),
            end: Some(after_last.into()),
        };
        let mut scan = staging.base().scan(range).await?;
        let mut budget = group.len().saturating_mul(SCANNED_PER_KEY_MAX);
        loop {
            let Some((key, _)) = scan.next().await? else {
                return Ok(());
            };
            rest = rest
                .get(rest.partition_point(|wanted| *wanted < key)..)
                .unwrap_or_default();
            if rest.first() == Some(&key) {
                present.insert(key);
            }
            budget = budget.saturating_sub(1);
            if budget == 0 {
                break;
            }
        }
    }
    for key in rest {
        if staging.base().get(key).await?.is_some() {
            present.insert(key.clone());
        }
    }
    Ok(())
}
