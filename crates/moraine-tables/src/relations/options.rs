//! `ducklake_metadata`: the options of a scope are one record, a map from name to value; a row is one entry. The global scope
//! comes first, then schemas, then tables, each by id; within a scope by name.

use std::collections::BTreeMap;

use moraine_codec::Record;
use moraine_codec::proto::OptionScopeValue;
use moraine_commit::{CatalogTransaction, Change};
use moraine_keys::{Key, Kind, OptionKey};
use moraine_store::{ReadExt, Staging};

use crate::cell::{CellError, show_id, show_text, take_key, take_text};
use crate::error::TableError;
use crate::filter::{CompiledFilter, Ids};
use crate::relation::Relation;
use crate::relations::records::Assignments;
use crate::row::{Place, Row, RowAddress};
use crate::scan::Sorted;
use crate::value::Value;

const RELATION: Relation = Relation::Metadata;
const KEY: usize = 0;
const VALUE: usize = 1;
const SCOPE: usize = 2;
const SCOPE_ID: usize = 3;

const GLOBAL: u64 = 0;
const SCHEMA: u64 = 1;
const TABLE: u64 = 2;

/// The option by which DuckLake knows the version of a catalog, and the version whose tables these are.
const VERSION: (&str, &str) = ("version", "1.0");

/// The options of a transaction's statement, by scope, changed in memory and written at the end.
type Scopes = BTreeMap<OptionKey, OptionScopeValue>;

pub(crate) async fn scan(
    read: &Staging,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    let mut rows = Vec::new();
    let ids = filter.ids(SCOPE_ID);
    for (key, mut scope) in read.records::<OptionKey>(OptionKey::scan()).await? {
        if ids != Ids::All && (key.scope_kind == GLOBAL || !ids.contains(key.scope_id)) {
            continue;
        }
        if key.scope_kind == GLOBAL {
            // Catalogs not written by DuckLake itself do not have it, but DuckLake attaches to none without it.
            let (name, version) = VERSION;
            scope.options.entry(name.into()).or_insert_with(|| version.into());
        }
        for (name, value) in &scope.options {
            let get = |column| cell(&key, name, value, column).map_err(|error| error.at(RELATION, column));
            let address = RowAddress(Place::Option(key.to_key(), name.clone()));
            if filter
                .addresses()
                .is_some_and(|addresses| !addresses.contains(&address))
                || !filter.matches(get)?
            {
                continue;
            }
            let values = projection
                .iter()
                .map(|column| get(*column))
                .collect::<Result<_, _>>()?;
            rows.push(Row { values, address });
        }
    }
    Ok(Sorted::in_order(rows))
}

fn cell(scope: &OptionKey, name: &str, value: &str, column: usize) -> Result<Value, CellError> {
    match column {
        KEY => Ok(show_text(name)),
        VALUE => Ok(show_text(value)),
        SCOPE => match scope.scope_kind {
            GLOBAL => Ok(Value::Null),
            SCHEMA => Ok(show_text("schema")),
            TABLE => Ok(show_text("table")),
            other => Err(CellError::Corrupt(format!("there is no scope of kind {other}"))),
        },
        SCOPE_ID if scope.scope_kind == GLOBAL => Ok(Value::Null),
        SCOPE_ID => show_id(scope.scope_id),
        _ => Err(CellError::NoColumn),
    }
}

pub(crate) async fn insert(tx: &mut CatalogTransaction, rows: &[Vec<Value>]) -> Result<u64, TableError> {
    let (mut before, mut scopes) = (Scopes::new(), Scopes::new());
    for row in rows {
        let at = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let key = scope_key(at(SCOPE), at(SCOPE_ID))?;
        let (name, value) = (text(at(KEY), KEY)?, text(at(VALUE), VALUE)?);
        let scope = load(tx.read(), &key, &mut before, &mut scopes).await?;
        add(&key, scope, name, value)?;
    }
    write(tx, before, scopes).await?;
    Ok(rows.len() as u64)
}

pub(crate) async fn update(tx: &mut CatalogTransaction, rows: &Assignments) -> Result<u64, TableError> {
    let (mut before, mut scopes) = (Scopes::new(), Scopes::new());
    let mut changed = 0;
    for (address, assignments) in rows {
        let Place::Option(stored, old_name) = &address.0 else {
            continue;
        };
        let Ok(old_key) = OptionKey::from_key(stored.clone()) else {
            continue;
        };
        let scope = load(tx.read(), &old_key, &mut before, &mut scopes).await?;
        let Some(old_value) = take_option(&old_key, scope, old_name) else {
            continue;
        };
        let mut row = Vec::with_capacity(4);
        for column in [KEY, VALUE, SCOPE, SCOPE_ID] {
            let kept = cell(&old_key, old_name, &old_value, column);
            row.push(kept.map_err(|error| error.at(RELATION, column))?);
        }
        for (column, cell) in assignments {
            let slot = row
                .get_mut(*column)
                .ok_or_else(|| CellError::NoColumn.at(RELATION, *column))?;
            slot.clone_from(cell);
        }
        let at = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let key = scope_key(at(SCOPE), at(SCOPE_ID))?;
        let (name, value) = (text(at(KEY), KEY)?, text(at(VALUE), VALUE)?);
        let scope = load(tx.read(), &key, &mut before, &mut scopes).await?;
        add(&key, scope, name, value)?;
        changed += 1;
    }
    write(tx, before, scopes).await?;
    Ok(changed)
}

pub(crate) async fn delete(tx: &mut CatalogTransaction, rows: &[RowAddress]) -> Result<u64, TableError> {
    let (mut before, mut scopes) = (Scopes::new(), Scopes::new());
    let mut removed = 0;
    for address in rows {
        let Place::Option(stored, name) = &address.0 else {
            continue;
        };
        let Ok(key) = OptionKey::from_key(stored.clone()) else {
            continue;
        };
        let scope = load(tx.read(), &key, &mut before, &mut scopes).await?;
        removed += u64::from(scope.options.remove(name).is_some());
    }
    write(tx, before, scopes).await?;
    Ok(removed)
}

/// Takes an option out; the version that is only served counts as stored.
fn take_option(key: &OptionKey, scope: &mut OptionScopeValue, name: &str) -> Option<String> {
    let served = (key.scope_kind == GLOBAL && name == VERSION.0).then(|| VERSION.1.to_owned());
    scope.options.remove(name).or(served)
}

fn add(key: &OptionKey, scope: &mut OptionScopeValue, name: String, value: String) -> Result<(), TableError> {
    if scope.options.contains_key(&name) {
        return Err(TableError::Duplicate {
            relation: RELATION,
            key: format!("option {name} of {key}"),
        });
    }
    scope.options.insert(name, value);
    Ok(())
}

fn text(cell: &Value, column: usize) -> Result<String, TableError> {
    take_text(cell)
        .and_then(|text| text.ok_or(CellError::Null))
        .map_err(|error| error.at(RELATION, column))
}

fn scope_key(scope: &Value, scope_id: &Value) -> Result<OptionKey, TableError> {
    let named = take_text(scope).map_err(|error| error.at(RELATION, SCOPE))?;
    let scope_kind = match named.as_deref() {
        None => {
            if !scope_id.is_null() {
                let detail = "a scope_id needs a scope, schema or table".to_owned();
                return Err(TableError::Constraint {
                    relation: RELATION,
                    detail,
                });
            }
            return Ok(OptionKey {
                scope_kind: GLOBAL,
                scope_id: 0,
            });
        }
        Some("schema") => SCHEMA,
        Some("table") => TABLE,
        Some(other) => {
            let detail = format!("the scope is schema, table or null, not '{other}'");
            return Err(TableError::Constraint {
                relation: RELATION,
                detail,
            });
        }
    };
    let scope_id = take_key(scope_id).map_err(|error| error.at(RELATION, SCOPE_ID))?;
    Ok(OptionKey { scope_kind, scope_id })
}

async fn load<'a>(
    read: &Staging,
    key: &OptionKey,
    before: &mut Scopes,
    scopes: &'a mut Scopes,
) -> Result<&'a mut OptionScopeValue, TableError> {
    if !scopes.contains_key(key) {
        let stored = read.value(key).await?;
        if let Some(stored) = &stored {
            before.insert(key.clone(), stored.clone());
        }
        scopes.insert(key.clone(), stored.unwrap_or_default());
    }
    Ok(scopes.entry(key.clone()).or_default())
}

/// Writes every scope that differs from what it was; a scope without options has no record.
async fn write(tx: &mut CatalogTransaction, before: Scopes, scopes: Scopes) -> Result<(), TableError> {
    let mut changes = Vec::new();
    for (key, scope) in scopes {
        let old: Key = key.to_key();
        match before.get(&key) {
            Some(stored) if *stored == scope => {}
            Some(_) if scope.options.is_empty() => changes.push(Change::Remove { key: old }),
            Some(_) => changes.push(Change::Replace {
                old,
                new: Record::from((key, scope)),
            }),
            None if scope.options.is_empty() => {}
            None => changes.push(Change::Insert(Record::from((key, scope)))),
        }
    }
    Ok(tx.stage(changes).await?)
}
