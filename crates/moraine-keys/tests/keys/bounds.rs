//! Scan bounds: each holds exactly the keys it is for, whatever else a store has.

use moraine_keys::{
    Archived, ChangelogKey, ChunkLocatorKey, ChunkRangeKey, ColumnKey, DataFileKey, DeleteFileKey,
    DeleteTargetKey, FileColumnStatsKey, FileDeleteTableKey, GcFileKey, History, IndexDefinitionKey,
    InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey, Key, KeyRange, Kind, LeadingId,
    MacroKey, MappingKey, MultiIndexKey, NameKey, PartitionKey, RowTombstoneKey, SchemaDroppedKey, SchemaKey,
    SchemaVersionKey, SnapshotKey, SortKey, Subspace, TableChild, TableColumnStatsKey, TableKey, TableScoped,
    TableStatsKey, TagKey, UniqueIndexKey, ViewKey,
};
use proptest::prelude::*;

use crate::samples::{Sample, check, for_every_kind, ids, keys, names};

/// `range` holds `key` exactly when `key` is of kind `K` and `wanted`.
fn holds_exactly<K: Kind>(
    range: &KeyRange,
    key: &Key,
    wanted: impl Fn(&K) -> bool,
) -> Result<(), TestCaseError> {
    let expected = K::from_key(key.clone()).is_ok_and(|key| wanted(&key));
    prop_assert_eq!(range.contains(&key.encode()), expected, "{} in {:?}", key, range);
    Ok(())
}

#[test]
fn the_bounds_of_a_kind_hold_its_keys_and_no_others() {
    fn holds<K: Sample>() {
        let range = K::scan();
        check(&keys(), |key| holds_exactly::<K>(&range, &key, |_| true));
        check(&K::arbitrary(), |key| {
            holds_exactly::<K>(&range, &key.to_key(), |_| true)
        });
    }
    for_every_kind!(holds);
}

#[test]
fn the_bounds_of_a_subspace_hold_its_keys_and_no_others() {
    check(&keys(), |key| {
        for subspace in Subspace::ALL {
            prop_assert_eq!(
                subspace.scan().contains(&key.encode()),
                key.subspace() == subspace
            );
        }
        prop_assert!(KeyRange::all().contains(&key.encode()));
        Ok(())
    });
}

#[test]
fn bounds_by_leading_id_hold_these_ids_and_no_others() {
    fn holds<K: Sample + LeadingId>() {
        check(
            &(K::arbitrary(), keys(), ids(), ids()),
            |(own, any, first, last)| {
                let range = K::scan_ids(first..=last);
                let wanted = |key: &K| (first..=last).contains(&key.leading_id());
                holds_exactly::<K>(&range, &own.to_key(), wanted)?;
                holds_exactly::<K>(&range, &any, wanted)?;
                prop_assert_eq!(range.is_empty(), first > last);
                let least = K::least_with_id(first);
                prop_assert_eq!(least.leading_id(), first);
                prop_assert_eq!(range.is_empty(), !range.contains(&least.encode()));
                Ok(())
            },
        );
    }
    macro_rules! kinds {
        ($($kind:ty),+ $(,)?) => {{ $( holds::<$kind>(); )+ }};
    }
    kinds!(
        SnapshotKey,
        ChangelogKey,
        SchemaKey,
        ViewKey,
        TagKey,
        MacroKey,
        GcFileKey,
        TableKey,
        TableStatsKey
    );
    kinds!(
        FileDeleteTableKey,
        UniqueIndexKey,
        MultiIndexKey,
        History<SchemaKey>,
        History<ViewKey>
    );
    kinds!(
        History<MacroKey>,
        History<TableKey>,
        ColumnKey,
        History<ColumnKey>,
        Archived<InlineInsertKey>
    );
}

#[test]
fn bounds_of_a_table_hold_its_keys_and_no_others() {
    fn holds<K: Sample + TableScoped>() {
        check(&(K::arbitrary(), keys(), ids()), |(own, any, table_id)| {
            let range = K::scan_table(table_id);
            let wanted = |key: &K| key.leading_id() == table_id;
            holds_exactly::<K>(&range, &own.to_key(), wanted)?;
            holds_exactly::<K>(&range, &any, wanted)?;
            prop_assert_eq!(own.to_key().table_id(), Some(own.leading_id()));
            Ok(())
        });
    }
    macro_rules! kinds {
        ($($kind:ty),+ $(,)?) => {{ $( holds::<$kind>(); )+ }};
    }
    kinds!(
        TableKey,
        TableStatsKey,
        FileDeleteTableKey,
        ColumnKey,
        DataFileKey,
        History<TableKey>,
        MappingKey
    );
    kinds!(
        FileColumnStatsKey,
        History<DataFileKey>,
        SchemaVersionKey,
        DeleteTargetKey,
        Archived<InlineDeleteKey>
    );
}

#[test]
fn bounds_by_table_and_second_id_hold_these_and_no_others() {
    fn holds<K: Sample + TableChild>() {
        check(
            &(K::arbitrary(), keys(), ids(), ids(), ids()),
            |(own, any, table_id, first, last)| {
                let range = K::scan_table_ids(table_id, first..=last);
                let wanted =
                    |key: &K| key.leading_id() == table_id && (first..=last).contains(&key.child_id());
                holds_exactly::<K>(&range, &own.to_key(), wanted)?;
                holds_exactly::<K>(&range, &any, wanted)?;
                let of_own = K::scan_table_ids(own.leading_id(), own.child_id()..=own.child_id());
                prop_assert!(of_own.contains(&own.encode()));
                Ok(())
            },
        );
    }
    macro_rules! kinds {
        ($($kind:ty),+ $(,)?) => {{ $( holds::<$kind>(); )+ }};
    }
    kinds!(
        ColumnKey,
        PartitionKey,
        DataFileKey,
        DeleteFileKey,
        FileColumnStatsKey,
        TableColumnStatsKey,
        SortKey
    );
    kinds!(
        MappingKey,
        IndexDefinitionKey,
        History<ColumnKey>,
        History<DataFileKey>,
        History<DeleteFileKey>
    );
    kinds!(
        InlineSchemaKey,
        InlineInsertKey,
        InlineDeleteKey,
        InlineFileDeleteKey,
        ChunkRangeKey
    );
    kinds!(
        SchemaDroppedKey,
        ChunkLocatorKey,
        RowTombstoneKey,
        SchemaVersionKey,
        DeleteTargetKey
    );
}

#[test]
fn bounds_of_a_name_hold_exactly_that_name() {
    check(
        &(keys(), NameKey::arbitrary(), names(), ids(), 0..2u64),
        |(any, own, name, parent_id, kind)| {
            let range = NameKey::scan_exact(kind, parent_id, &name);
            let wanted = |key: &NameKey| key.kind == kind && key.parent_id == parent_id && key.name == name;
            holds_exactly::<NameKey>(&range, &any, wanted)?;
            holds_exactly::<NameKey>(&range, &own.to_key(), wanted)?;
            let of_own = NameKey::scan_exact(own.kind, own.parent_id, &own.name);
            prop_assert!(of_own.contains(&own.encode()));
            let siblings = NameKey::scan_parent(kind, parent_id);
            holds_exactly::<NameKey>(&siblings, &own.to_key(), |key| {
                key.kind == kind && key.parent_id == parent_id
            })
        },
    );
}

#[test]
fn bounds_within_inlined_rows() {
    check(
        &(InlineInsertKey::arbitrary(), ids(), ids(), ids()),
        |(key, table_id, version, snapshot)| {
            let of_version =
                |key: &InlineInsertKey| key.table_id == table_id && key.schema_version == version;
            let range = InlineInsertKey::scan_version(table_id, version);
            holds_exactly::<InlineInsertKey>(&range, &key.to_key(), of_version)?;
            let range = InlineInsertKey::scan_snapshot(table_id, version, snapshot);
            holds_exactly(&range, &key.to_key(), |key| {
                of_version(key) && key.begin_snapshot == snapshot
            })
        },
    );
    check(
        &(ChunkLocatorKey::arbitrary(), ids(), ids()),
        |(key, table_id, row_id)| {
            let range = ChunkLocatorKey::scan_from_row(table_id, row_id);
            holds_exactly::<ChunkLocatorKey>(&range, &key.to_key(), |key| {
                key.table_id == table_id && key.row_id_end >= row_id
            })
        },
    );
    check(
        &(RowTombstoneKey::arbitrary(), ids(), ids()),
        |(key, table_id, row_id)| {
            let range = RowTombstoneKey::scan_row(table_id, row_id);
            holds_exactly::<RowTombstoneKey>(&range, &key.to_key(), |key| {
                key.table_id == table_id && key.row_id == row_id
            })
        },
    );
}

#[test]
fn a_range_goes_on_from_or_after_a_key() {
    check(&(keys(), keys(), keys()), |(start, at, other)| {
        let range = KeyRange {
            start: start.encode(),
            end: None,
        };
        let on = range.from_key_on(&at.encode());
        prop_assert_eq!(on.contains(&other.encode()), other >= start && other >= at);
        let after = range.after_key(&at.encode());
        prop_assert_eq!(after.contains(&other.encode()), other >= start && other > at);
        Ok(())
    });
    let schemas = SchemaKey::scan();
    let beyond = schemas.from_key_on(&TableKey { table_id: 0 }.encode());
    assert!(beyond.is_empty() && !beyond.contains(&TableKey { table_id: 0 }.encode()));
}
