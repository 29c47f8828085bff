//! Scans and changes of relations whose rows are embedded in another relation's records, whatever the relation. Changes of
//! one statement are grouped by record, so that each record is read and written once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use moraine_commit::{CatalogTransaction, Change};
use moraine_keys::{Key, Kind};
use moraine_store::Staging;

use crate::cell::take_key;
use crate::error::TableError;
use crate::filter::CompiledFilter;
use crate::relations::records::{Assignments, Wanted, load, visit};
use crate::relations::{EmbeddedRelation, Order, OwnerIds, OwnerRecord, RecordRelation};
use crate::row::{ChildPlace, Place, Row, RowAddress, fingerprint};
use crate::scan::Sorted;
use crate::schema::fixed_schema;
use crate::value::Value;

/// The rows that pass, sorted by their records' order and, within a record, as stored.
pub(crate) async fn scan_sorted<E: EmbeddedRelation>(
    read: &Staging,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    Ok(Sorted::new(scan_rows::<E>(read, filter, projection).await?))
}

/// The rows that pass with what they are sorted by, those of a record as stored.
pub(crate) async fn scan_rows<E: EmbeddedRelation>(
    read: &Staging,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Vec<(Order, Row)>, TableError> {
    let wanted = Wanted::of(filter, E::KEY_COLUMNS, None);
    let mut rows = Vec::new();
    if E::NEWEST_ONLY {
        for (key, owner) in newest_owners::<E>(read, &wanted).await?.into_values() {
            push_rows::<E>(filter, projection, &key, &owner, &mut rows)?;
        }
    } else {
        let each = |key, owner| push_rows::<E>(filter, projection, &key, &owner, &mut rows);
        visit::<E::Owner>(read, &wanted, each).await?;
    }
    Ok(rows)
}

/// Of each entity the live record, else the one that ended last, by the live record's key.
async fn newest_owners<E: EmbeddedRelation>(
    read: &Staging,
    wanted: &Wanted,
) -> Result<BTreeMap<Key, (Key, OwnerRecord<E>)>, TableError> {
    let mut owners = BTreeMap::new();
    visit::<E::Owner>(read, wanted, |key, owner| {
        let live = <E::Owner as RecordRelation>::key(&owner).to_key();
        // Live records come first, ended ones after them by their end: a later ended one replaces an ended one.
        match owners.get(&live) {
            Some((found, _)) if *found == live => {}
            _ => {
                owners.insert(live, (key, owner));
            }
        }
        Ok(())
    })
    .await?;
    Ok(owners)
}

fn push_rows<E: EmbeddedRelation>(
    filter: &CompiledFilter,
    projection: &[usize],
    key: &Key,
    owner: &OwnerRecord<E>,
    rows: &mut Vec<(Order, Row)>,
) -> Result<(), TableError> {
    for (position, (outer, child)) in E::children(owner).into_iter().enumerate() {
        let get = |column| E::get(owner, outer, child, column).map_err(|error| error.at(E::RELATION, column));
        if !filter.matches(get)? {
            continue;
        }
        let place = ChildPlace {
            position: count(position),
            fingerprint: fingerprint(outer, child),
        };
        let address = RowAddress(Place::Child(key.clone(), place));
        if filter
            .addresses()
            .is_some_and(|addresses| !addresses.contains(&address))
        {
            continue;
        }
        let values = projection
            .iter()
            .map(|column| get(*column))
            .collect::<Result<_, _>>()?;
        rows.push((E::order(owner, outer, child), Row { values, address }));
    }
    Ok(())
}

fn count(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Inserts rows: each goes to the end of its record.
pub(crate) async fn insert<E: EmbeddedRelation>(
    tx: &mut CatalogTransaction,
    rows: &[impl AsRef<[Value]> + Sync],
) -> Result<u64, TableError> {
    let orphans = insert_owned::<E>(tx, rows).await?;
    match orphans.first() {
        None => Ok(rows.len() as u64),
        Some(orphan) => Err(no_parent::<E>(owner_ids::<E>(orphan)?)),
    }
}

/// Inserts those rows whose record is there, and gives back the others.
pub(crate) async fn insert_owned<'a, E: EmbeddedRelation>(
    tx: &mut CatalogTransaction,
    rows: &'a [impl AsRef<[Value]> + Sync],
) -> Result<Vec<&'a [Value]>, TableError> {
    let mut changes = Vec::new();
    let mut orphans = Vec::new();
    for (ids, members) in group_by_owner::<E>(rows)? {
        let (key, mut owner) = match E::find_owner(tx.read(), ids).await? {
            Some((key, owner)) => (Some(key), owner),
            None if E::OWNER_IS_CONTAINER => (None, E::new_owner(ids)),
            None => {
                orphans.extend(members);
                continue;
            }
        };
        let mut children = E::take(&mut owner);
        for row in members {
            children.push(build::<E>(&owner, row)?);
        }
        E::put(&mut owner, children).map_err(|outer| no_outer::<E>(ids, outer))?;
        let record = <E::Owner as RecordRelation>::stored(owner);
        changes.push(match key {
            Some(old) => Change::Replace { old, new: record },
            None => Change::Insert(record),
        });
    }
    tx.stage(changes).await?;
    Ok(orphans)
}

type Groups<'a> = Vec<(OwnerIds, Vec<&'a [Value]>)>;

fn group_by_owner<E: EmbeddedRelation>(rows: &[impl AsRef<[Value]>]) -> Result<Groups<'_>, TableError> {
    let mut groups: Groups<'_> = Vec::new();
    let mut places: HashMap<OwnerIds, usize> = HashMap::new();
    for row in rows.iter().map(AsRef::as_ref) {
        let ids = owner_ids::<E>(row)?;
        match places.entry(ids) {
            Entry::Occupied(place) => {
                if let Some((_, members)) = groups.get_mut(*place.get()) {
                    members.push(row);
                }
            }
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push((ids, vec![row]));
            }
        }
    }
    Ok(groups)
}

fn owner_ids<E: EmbeddedRelation>(row: &[Value]) -> Result<OwnerIds, TableError> {
    let mut ids = OwnerIds::default();
    for (id, column) in ids.iter_mut().zip(E::OWNER_COLUMNS) {
        let cell = row.get(*column).unwrap_or(&Value::Null);
        *id = take_key(cell).map_err(|error| error.at(E::RELATION, *column))?;
    }
    Ok(ids)
}

fn build<E: EmbeddedRelation>(owner: &OwnerRecord<E>, row: &[Value]) -> Result<(u64, E::Child), TableError> {
    let outer = E::outer(row).map_err(|(column, error)| error.at(E::RELATION, column))?;
    let mut child = E::Child::default();
    for (column, cell) in row.iter().enumerate() {
        E::set(owner, outer, &mut child, column, cell).map_err(|error| error.at(E::RELATION, column))?;
    }
    Ok((outer, child))
}

fn no_parent<E: EmbeddedRelation>(ids: OwnerIds) -> TableError {
    let owner = <E::Owner as RecordRelation>::RELATION;
    TableError::NoParent {
        relation: E::RELATION,
        parent: format!("the row of {owner} with {}", named::<E>(ids)),
    }
}

fn no_outer<E: EmbeddedRelation>(ids: OwnerIds, outer: u64) -> TableError {
    let parent = format!("impl_id {outer} of {}", named::<E>(ids));
    TableError::NoParent {
        relation: E::RELATION,
        parent,
    }
}

fn named<E: EmbeddedRelation>(ids: OwnerIds) -> String {
    let columns = fixed_schema(E::RELATION)
        .map(|schema| schema.columns)
        .unwrap_or_default();
    let name = |column: &usize| {
        columns
            .get(*column)
            .map_or("id", |found| found.name.as_str())
            .to_owned()
    };
    let parts = E::OWNER_COLUMNS
        .iter()
        .zip(ids)
        .map(|(column, id)| format!("{} {id}", name(column)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Changes rows in place; a row named twice is changed once.
pub(crate) async fn update<E: EmbeddedRelation>(
    tx: &mut CatalogTransaction,
    rows: &Assignments,
) -> Result<u64, TableError> {
    let mut changes = Vec::new();
    let mut changed = 0;
    let places = rows
        .iter()
        .map(|(address, assignments)| (address, assignments.as_slice()));
    for (key, members) in group_by_record(places) {
        let Some(mut owner) = load::<E::Owner>(tx.read(), key).await? else {
            continue;
        };
        let mut children = E::take(&mut owner);
        let mut finder = Finder::new::<E>(&children);
        for (place, assignments) in members {
            let Some((outer, child)) = finder.find(place).and_then(|index| children.get_mut(index)) else {
                continue;
            };
            for (column, cell) in assignments {
                E::set(&owner, *outer, child, *column, cell)
                    .map_err(|error| error.at(E::RELATION, *column))?;
            }
            changed += 1;
        }
        changes.extend(rewrite::<E>(key, owner, children)?);
    }
    tx.stage(changes).await?;
    Ok(changed)
}

/// Removes rows from their records.
pub(crate) async fn delete<E: EmbeddedRelation>(
    tx: &mut CatalogTransaction,
    rows: &[RowAddress],
) -> Result<u64, TableError> {
    let mut changes = Vec::new();
    let mut removed = 0;
    for (key, members) in group_by_record(rows.iter().map(|address| (address, ()))) {
        let Some(mut owner) = load::<E::Owner>(tx.read(), key).await? else {
            continue;
        };
        let children = E::take(&mut owner);
        let mut finder = Finder::new::<E>(&children);
        let gone: HashSet<usize> = members
            .into_iter()
            .filter_map(|(place, ())| finder.find(place))
            .collect();
        if gone.is_empty() {
            continue;
        }
        removed += gone.len() as u64;
        let kept = children
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !gone.contains(index));
        let kept: Vec<_> = kept.map(|(_, child)| child).collect();
        changes.extend(rewrite::<E>(key, owner, kept)?);
    }
    tx.stage(changes).await?;
    Ok(removed)
}

fn group_by_record<'a, T>(
    rows: impl Iterator<Item = (&'a RowAddress, T)>,
) -> BTreeMap<&'a Key, Vec<(ChildPlace, T)>> {
    let mut groups: BTreeMap<&Key, Vec<(ChildPlace, T)>> = BTreeMap::new();
    for (address, with) in rows {
        if let Place::Child(key, place) = &address.0 {
            groups.entry(key).or_default().push((*place, with));
        }
    }
    groups
}

fn rewrite<E: EmbeddedRelation>(
    key: &Key,
    mut owner: OwnerRecord<E>,
    children: Vec<(u64, E::Child)>,
) -> Result<Option<Change>, TableError> {
    if children.is_empty() && E::OWNER_IS_CONTAINER {
        return Ok(Some(Change::Remove { key: key.clone() }));
    }
    E::put(&mut owner, children).map_err(|outer| TableError::Corrupt {
        relation: E::RELATION,
        detail: format!("{key} has no level {outer} to hold its rows"),
    })?;
    Ok(Some(Change::Replace {
        old: key.clone(),
        new: <E::Owner as RecordRelation>::stored(owner),
    }))
}

/// Finds rows of one record by address, each at most once.
struct Finder {
    fingerprints: Vec<Option<u64>>,
    /// Positions by fingerprint, made when a row is not where it was.
    moved: Option<HashMap<u64, Vec<usize>>>,
}

impl Finder {
    fn new<E: EmbeddedRelation>(children: &[(u64, E::Child)]) -> Self {
        let fingerprints = children
            .iter()
            .map(|(outer, child)| Some(fingerprint(*outer, child)))
            .collect();
        Self {
            fingerprints,
            moved: None,
        }
    }

    fn find(&mut self, place: ChildPlace) -> Option<usize> {
        let stood = place.position as usize;
        let index = if self.fingerprints.get(stood) == Some(&Some(place.fingerprint)) {
            stood
        } else {
            self.find_moved(place.fingerprint)?
        };
        *self.fingerprints.get_mut(index)? = None;
        Some(index)
    }

    fn find_moved(&mut self, fingerprint: u64) -> Option<usize> {
        let moved = self.moved.get_or_insert_with(|| {
            let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
            for (index, found) in self.fingerprints.iter().enumerate().rev() {
                if let Some(found) = found {
                    places.entry(*found).or_default().push(index);
                }
            }
            places
        });
        let candidates = moved.get_mut(&fingerprint)?;
        while let Some(index) = candidates.pop() {
            if self.fingerprints.get(index) == Some(&Some(fingerprint)) {
                return Some(index);
            }
        }
        None
    }
}
