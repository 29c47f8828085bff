//! From sets of ids to the key ranges that hold them, and the records of those ranges one after the other. When the table
//! of a record is not known but its own id is, the scan leaps from table to table.

use std::collections::VecDeque;

use bytes::Bytes;
use moraine_codec::Stored;
use moraine_keys::{KeyRange, LeadingId, TableChild};
use moraine_store::{Read, ReadError, Scan, Staging};

use crate::filter::{CompiledFilter, Ids};
use crate::relations::KeyColumns;

/// From here on a set of single ids is read as the one range around it.
const POINT_RANGES_MAX: usize = 1024;
/// Records that a leaping scan passes over before it leaps: opening a scan costs about as much as reading these.
const LEAP_AFTER_RECORDS: u32 = 32;

/// The sets of ids that a filter leaves for the components of a key. Ranges are made of the first two.
#[derive(Clone, Debug)]
pub(crate) struct KeyIds {
    pub(crate) first: Ids,
    pub(crate) second: Ids,
    pub(crate) third: Ids,
}

impl KeyIds {
    /// What the filter says about the columns that hold the key's components.
    pub(crate) fn of(filter: &CompiledFilter, columns: KeyColumns) -> Self {
        let [first, second, third] =
            columns.map(|column| column.map_or(Ids::All, |column| filter.ids(column)));
        Self { first, second, third }
    }
}

/// Where the records of kind `K` lie that may pass.
pub(crate) enum Plan<K> {
    /// In these ranges, ascending.
    Ranges(VecDeque<KeyRange>),
    /// In every table, where the second component lies within bounds.
    Leap(Leap<K>),
}

/// Bounds of a leaping scan and what it needs of the kind.
pub(crate) struct Leap<K> {
    tables: (u64, u64),
    least: u64,
    greatest: u64,
    seek: fn(u64, u64) -> Bytes,
    place: fn(&K) -> (u64, u64),
    passed: u32,
    started: bool,
}

/// The plan for a kind keyed by one id.
pub(crate) fn leading_plan<K: LeadingId>(ids: &KeyIds) -> Plan<K> {
    Plan::Ranges(match &ids.first {
        Ids::All => VecDeque::from([K::scan()]),
        Ids::Points(points) if points.len() <= POINT_RANGES_MAX => {
            points.iter().map(|id| K::scan_ids(*id..=*id)).collect()
        }
        bounded => bounded
            .bounds()
            .map(|(first, last)| K::scan_ids(first..=last))
            .into_iter()
            .collect(),
    })
}

/// The plan for a kind keyed by a table and an id.
pub(crate) fn child_plan<K: TableChild>(ids: &KeyIds) -> Plan<K> {
    if let Ids::Points(tables) = &ids.first
        && tables.len() <= POINT_RANGES_MAX
    {
        return Plan::Ranges(
            tables
                .iter()
                .flat_map(|table| table_ranges::<K>(*table, &ids.second))
                .collect(),
        );
    }
    let (Some(tables), Some((least, greatest))) = (ids.first.bounds(), ids.second.bounds()) else {
        return Plan::Ranges(VecDeque::new());
    };
    if ids.second == Ids::All {
        return leading_plan(ids);
    }
    Plan::Leap(Leap {
        tables,
        least,
        greatest,
        seek: |table, id| K::least_with_ids(table, id).encode(),
        place: |key| (key.leading_id(), key.child_id()),
        passed: 0,
        started: false,
    })
}

fn table_ranges<K: TableChild>(table: u64, ids: &Ids) -> Vec<KeyRange> {
    match ids {
        Ids::All => vec![K::scan_table(table)],
        Ids::Points(points) if points.len() <= POINT_RANGES_MAX => points
            .iter()
            .map(|id| K::scan_table_ids(table, *id..=*id))
            .collect(),
        bounded => match bounded.bounds() {
            Some((first, last)) => vec![K::scan_table_ids(table, first..=last)],
            None => Vec::new(),
        },
    }
}

/// The records of a plan, in key order.
pub(crate) struct RecordSource<K> {
    plan: Plan<K>,
    third: Ids,
    scan: Option<Box<dyn Scan>>,
}

impl<K: Stored> RecordSource<K> {
    pub(crate) fn new(plan: Plan<K>) -> Self {
        Self {
            plan,
            third: Ids::All,
            scan: None,
        }
    }

    /// Leaves out, undecoded, the records whose third key component is not among these.
    pub(crate) fn with_third(plan: Plan<K>, third: Ids) -> Self {
        Self {
            plan,
            third,
            scan: None,
        }
    }

    /// The next record, or `None` at the end. `read` is the same at each call; `third` gives a key's third component.
    pub(crate) async fn next_where(
        &mut self,
        read: &Staging,
        third: fn(&K) -> u64,
    ) -> Result<Option<(K, K::Value)>, ReadError> {
        loop {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => match self.plan.next_range() {
                    Some(range) => self.scan.insert(read.scan(range).await?),
                    None => return Ok(None),
                },
            };
            let Some((key, value)) = scan.next().await? else {
                self.scan = None;
                continue;
            };
            let key = decode_key::<K>(&key)?;
            match self.plan.judge(&key) {
                Verdict::Take if self.third != Ids::All && !self.third.contains(third(&key)) => {}
                Verdict::Take => return decode_value(key, &value).map(Some),
                Verdict::Pass => {}
                Verdict::Leap => self.scan = None,
            }
        }
    }

    /// The next record, or `None` at the end. `read` is the same at each call.
    pub(crate) async fn next(&mut self, read: &Staging) -> Result<Option<(K, K::Value)>, ReadError> {
        self.next_where(read, |_| 0).await
    }
}

fn decode_key<K: Stored>(key: &[u8]) -> Result<K, ReadError> {
    K::decode(key).map_err(|error| {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        ReadError::corruption(format!("key {hex}"), error.to_string())
    })
}

fn decode_value<K: Stored>(key: K, value: &Bytes) -> Result<(K, K::Value), ReadError> {
    match moraine_codec::decode(&key, value) {
        Ok(value) => Ok((key, value)),
        Err(error) => Err(ReadError::corruption(key.to_string(), error.to_string())),
    }
}

enum Verdict {
    Take,
    Pass,
    Leap,
}

impl<K: Stored> Plan<K> {
    fn next_range(&mut self) -> Option<KeyRange> {
        match self {
            Self::Ranges(ranges) => ranges.pop_front(),
            Self::Leap(leap) if leap.started => None,
            Self::Leap(leap) => {
                leap.started = true;
                leap.passed = 0;
                let (first, last) = leap.tables;
                let mut range = K::scan();
                range.start = (leap.seek)(first, leap.least);
                if let Some(after) = last.checked_add(1) {
                    range.end = Some((leap.seek)(after, 0));
                }
                (!range.is_empty()).then_some(range)
            }
        }
    }

    fn judge(&mut self, key: &K) -> Verdict {
        let Self::Leap(leap) = self else {
            return Verdict::Take;
        };
        let (table, id) = (leap.place)(key);
        if (leap.least..=leap.greatest).contains(&id) {
            leap.passed = 0;
            return Verdict::Take;
        }
        leap.passed += 1;
        if leap.passed < LEAP_AFTER_RECORDS {
            return Verdict::Pass;
        }
        let next_table = if id > leap.greatest {
            table.checked_add(1)
        } else {
            Some(table)
        };
        if let Some(next) = next_table {
            leap.tables.0 = next;
            leap.started = false;
        }
        Verdict::Leap
    }
}
