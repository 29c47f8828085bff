//! What a migration has to do, from the two records that say where a store stands: the stamp and the marker.

use moraine_codec::format::{Format, format_value_has_unknown_fields};
use moraine_codec::proto::MigrationValue;
use moraine_keys::{FormatKey, HeadKey, Key, Kind, MigrationKey};
use moraine_store::{Bytes, FormatState, KeyRange, OpenError, Read, ReadError, ReadExt, check_format};

use super::error::MigrateError;
use super::step::Unit;
use super::steps::{additive_to_8, delete_targets_12, names_11, row_tombstones_9};

/// The format that a migration leads to.
pub(crate) const NEWEST: u64 = 12;

/// Every structural step, ascending. From each format at most one leads on.
pub(crate) const CHAIN: [Unit; 4] = [
    row_tombstones_9::UNIT,
    names_11::FROM_9,
    names_11::FROM_10,
    delete_targets_12::UNIT,
];

/// What is to be done with a store.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The format in the stamp.
    pub(crate) stamped: u64,
    /// The marker of a migration that was interrupted: the first of `units` is to be resumed.
    pub(crate) marker: Option<MigrationValue>,
    /// Whether the stamp is to be raised before anything else, and to what.
    pub(crate) raise_to: Option<u64>,
    /// The units to run, in order.
    pub(crate) units: Vec<&'static Unit>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The last key that the interrupted unit has done; `None` where it is to begin, or there is none.
    pub(crate) fn cursor(&self) -> Option<&Bytes> {
        let cursor = self.marker.as_ref().map(|marker| &marker.cursor);
        cursor.filter(|cursor| !cursor.is_empty())
    }

    /// Reads where the store stands. Everything that says that this version must not write to it is an error.
    pub(crate) async fn read(read: &dyn Read) -> Result<Plan, MigrateError> {
        let marker = read.value(&MigrationKey).await?;
        if marker.as_ref().is_some_and(|marker| marker.from_format == 0) {
            return Err(MigrateError::MidImport);
        }
        let Some(stamp) = read.value(&FormatKey).await? else {
            return Err(without_stamp(read).await?);
        };
        let stamped = stamp.format_version;
        if stamped > NEWEST {
            return Err(OpenError::Newer {
                found: stamped,
                newest: NEWEST,
                writer: stamp.writer_version,
            }
            .into());
        }
        if stamped < additive_to_8::OLDEST {
            return Err(MigrateError::UnknownFormat { found: stamped });
        }
        check_ours(read).await?;
        if marker.is_none() && stamped >= Format::RowTombstones.number() {
            check_format(read).await?;
        }
        Plan::of(stamped, marker)
    }

    /// The plan for a stamp and a marker.
    pub(crate) fn of(stamped: u64, marker: Option<MigrationValue>) -> Result<Plan, MigrateError> {
        let Some(MigrationValue {
            from_format: from,
            to_format: to,
            cursor,
        }) = marker.clone()
        else {
            let raise_to = (stamped < additive_to_8::TO).then_some(additive_to_8::TO);
            return Ok(Plan {
                stamped,
                marker: None,
                raise_to,
                units: chain_from(raise_to.unwrap_or(stamped)),
            });
        };
        if from != stamped {
            return Err(MigrateError::Contradiction { stamped, from, to });
        }
        let known = CHAIN.iter().find(|unit| (unit.from, unit.to) == (from, to));
        let unit = known.ok_or(MigrateError::UnknownUnit { from, to })?;
        let is_ours = |cursor: &Bytes| unit.walks.iter().any(|walk| cursor.starts_with(walk.prefix));
        if !cursor.is_empty() && (Key::decode(&cursor).is_err() || !is_ours(&cursor)) {
            return Err(MigrateError::ForeignCursor {
                from,
                to,
                cursor: key_text(&cursor),
            });
        }
        let mut units = vec![unit];
        units.extend(chain_from(to));
        Ok(Plan {
            stamped,
            marker,
            raise_to: None,
            units,
        })
    }
}

fn chain_from(format: u64) -> Vec<&'static Unit> {
    let mut units = Vec::new();
    let mut at = format;
    while let Some(unit) = CHAIN.iter().find(|unit| unit.from == at) {
        at = unit.to;
        units.push(unit);
    }
    units
}

async fn without_stamp(read: &dyn Read) -> Result<MigrateError, MigrateError> {
    if read.scan(KeyRange::all()).await?.next().await?.is_none() {
        return Ok(MigrateError::NoLake);
    }
    // The gate knows how to say what is there instead.
    Ok(match check_format(read).await {
        Err(error) => error.into(),
        Ok(FormatState::Empty | FormatState::Ready) => MigrateError::NoLake,
    })
}

/// A catalog whose commits come by another way than through this store's head must not be written to.
async fn check_ours(read: &dyn Read) -> Result<(), MigrateError> {
    let foreign = |at: String, detail: String| MigrateError::Open(OpenError::Foreign { at, detail });
    let stamp = read.get(&FormatKey.encode()).await?.unwrap_or_default();
    if format_value_has_unknown_fields(&stamp).map_err(ReadError::from)? {
        let detail = "its format record has fields that this version does not know";
        return Err(foreign(FormatKey.to_string(), detail.to_owned()));
    }
    let mut scan = read.scan(moraine_keys::Subspace::System.scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        if let Err(error) = Key::decode(&key) {
            let detail = format!("it has a system record that this version does not know: {error}");
            return Err(foreign(key_text(&key), detail));
        }
    }
    if read.value(&HeadKey).await?.is_none() {
        let detail = "there is a format record, but no head record";
        return Err(foreign(HeadKey.to_string(), detail.to_owned()));
    }
    Ok(())
}

/// A key in words, or in hexadecimal digits where it is none.
pub(crate) fn key_text(key: &[u8]) -> String {
    match Key::decode(key) {
        Ok(key) => key.to_string(),
        Err(_) => format!("key {}", moraine_keys::HexBytes::from(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::{CHAIN, MigrateError, NEWEST, Plan};
    use moraine_codec::format;
    use moraine_codec::proto::MigrationValue;

    fn marker(from_format: u64, to_format: u64, cursor: &'static [u8]) -> Option<MigrationValue> {
        Some(MigrationValue {
            from_format,
            to_format,
            cursor: cursor.into(),
        })
    }

    fn path(plan: &Plan) -> Vec<u64> {
        let units = plan.units.iter().map(|unit| unit.to);
        plan.raise_to.into_iter().chain(units).collect()
    }

    #[test]
    fn every_format_leads_to_the_newest() {
        assert_eq!(NEWEST, format::CURRENT);
        for stamped in 1..=NEWEST {
            let expected: &[u64] = match stamped {
                ..8 => &[8, 9, 11, 12],
                8 => &[9, 11, 12],
                9 | 10 => &[11, 12],
                11 => &[12],
                _ => &[],
            };
            assert_eq!(
                path(&Plan::of(stamped, None).unwrap()),
                expected,
                "from {stamped}"
            );
        }
    }

    #[test]
    fn an_interrupted_unit_is_resumed_and_the_rest_follows() {
        let cursor: &[u8] = &[6, 3, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
        let plan = Plan::of(8, marker(8, 9, cursor)).unwrap();
        assert_eq!(path(&plan), [9, 11, 12]);
        assert_eq!(plan.cursor().unwrap().as_ref(), cursor);
        assert_eq!(path(&Plan::of(10, marker(10, 11, b"")).unwrap()), [11, 12]);
    }

    #[test]
    fn what_no_migration_of_ours_leaves_behind_is_refused() {
        let refused = |stamped, marker| Plan::of(stamped, marker).unwrap_err();
        assert!(matches!(
            refused(9, marker(8, 9, b"")),
            MigrateError::Contradiction {
                stamped: 9,
                from: 8,
                to: 9
            }
        ));
        assert!(matches!(
            refused(9, marker(9, 10, b"")),
            MigrateError::UnknownUnit { from: 9, to: 10 }
        ));
        for cursor in [&b"\x06\x03\x03"[..], &[3, 0, 0, 0, 0, 0, 0, 0, 1], b"x"] {
            assert!(matches!(
                refused(8, marker(8, 9, cursor)),
                MigrateError::ForeignCursor { .. }
            ));
        }
    }

    #[test]
    fn the_chain_ascends_and_its_walks_do_too() {
        for unit in &CHAIN {
            assert!(unit.from < unit.to, "{}", unit.name);
            assert!(unit.walks.is_sorted_by_key(|walk| walk.prefix), "{}", unit.name);
        }
    }
}
