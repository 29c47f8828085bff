//! The system catalogs as tables in memory, made for one SELECT from the tables its conditions confine it to.

use std::collections::BTreeSet;

use moraine_tables::{ColumnType, Relation, RelationSchema, Value};

use super::columns::{self, VirtualTable};
use super::information;
use super::objects::{
    self, BTREE_OID, DEFAULT_COLLATION_OID, DEFAULT_TABLESPACE_OID, HEAP_OID, OWNER, OWNER_OID,
    PG_CATALOG_OID,
};
use super::scan_names::Hint;
use crate::errors::SqlError;
use crate::lakes::DEFAULT_SCHEMA;
use crate::transaction::Transaction;
use crate::values::types;

/// The object id of `public`. Source: PostgreSQL, `pg_namespace.dat`.
const PUBLIC_OID: i64 = 2200;
const INFORMATION_SCHEMA_OID: i64 = 13_000;
/// Object ids of user objects start here. Source: PostgreSQL, `transam.h` (FirstNormalObjectId).
const FIRST_USER_OID: u32 = 16_384;
/// The number of UTF-8 among Postgres's encodings. Source: PostgreSQL, `pg_wchar.h`.
const UTF8_ENCODING: i64 = 6;
/// The operator class of a key of `bigint`. Source: PostgreSQL, `pg_opclass.dat`.
const INT8_OPERATORS_OID: i64 = 3124;

/// A table of a lake, as the catalogs describe it.
pub(super) struct Described {
    pub(super) schema: String,
    pub(super) relation: Relation,
    pub(super) shape: RelationSchema,
}

/// The primary key of a table: it is an index and a constraint at once.
pub(super) struct Key {
    /// Its name, as an index and as a constraint.
    pub(super) name: String,
    pub(super) index_oid: i64,
    pub(super) constraint_oid: i64,
    /// The key's column, from 0.
    pub(super) column: usize,
    pub(super) column_name: String,
}

impl Described {
    pub(super) fn oid(&self) -> i64 {
        object_id(&format!("{}.{}", self.schema, self.relation))
    }

    pub(super) fn key(&self) -> Option<Key> {
        let column = self.shape.primary_key?;
        let name = format!("{}_pkey", self.relation);
        Some(Key {
            index_oid: object_id(&format!("index {}.{name}", self.schema)),
            constraint_oid: object_id(&format!("{}.{name}", self.schema)),
            column_name: self.shape.columns.get(column)?.name.clone(),
            column,
            name,
        })
    }
}

/// A stable object id: the same name has the same id in every session.
fn object_id(name: &str) -> i64 {
    // FNV-1a, 32 bit.
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    i64::from(FIRST_USER_OID + hash % (u32::MAX / 2 - FIRST_USER_OID))
}

fn schema_oid(schema: &str) -> i64 {
    match schema {
        DEFAULT_SCHEMA => PUBLIC_OID,
        "pg_catalog" => PG_CATALOG_OID,
        "information_schema" => INFORMATION_SCHEMA_OID,
        other => object_id(other),
    }
}

fn int(value: i64) -> Value {
    Value::Int64(value)
}

fn text(value: impl AsRef<str>) -> Value {
    Value::text(value)
}

fn yes() -> Value {
    Value::Bool(true)
}

fn count(of: usize) -> Value {
    int(i64::try_from(of).unwrap_or(i64::MAX))
}

/// A column's number, from 1.
pub(super) fn position(index: usize) -> i64 {
    i64::try_from(index).map_or(i64::MAX, |index| index + 1)
}

/// A relation by which functions find its name and definition.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) oid: u32,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// The primary key's constraint and column, if this is a key's index or its table.
    pub(crate) key: Option<(u32, String)>,
    /// The table, if this is an index.
    pub(crate) index_of: Option<String>,
}

/// All relations of the database, the system's and the indexes of keys among them.
pub(crate) async fn relations(transaction: &mut Transaction) -> Result<Vec<Known>, SqlError> {
    let number = |oid: i64| u32::try_from(oid).unwrap_or_default();
    let mut known: Vec<Known> = columns::all()
        .map(|relation| Known {
            oid: number(relation.oid),
            schema: relation.schema.to_owned(),
            name: relation.name.to_owned(),
            key: None,
            index_of: None,
        })
        .collect();
    for table in described(transaction, &Hint::default()).await? {
        let name = table.relation.name();
        let key = table.key();
        let column = key
            .as_ref()
            .map(|key| (number(key.constraint_oid), key.column_name.clone()));
        if let Some(key) = key {
            known.push(Known {
                oid: number(key.index_oid),
                schema: table.schema.clone(),
                name: key.name,
                key: column.clone(),
                index_of: Some(name.clone()),
            });
        }
        known.push(Known {
            oid: number(table.oid()),
            schema: table.schema,
            name,
            key: column,
            index_of: None,
        });
    }
    Ok(known)
}

/// The virtual table of a system relation; 42P01 for one that PostgreSQL has not.
pub(super) async fn table(
    transaction: &mut Transaction,
    schema: &str,
    name: &str,
    hint: &Hint,
    settings: &[(&'static str, String)],
) -> Result<VirtualTable, SqlError> {
    let relation = columns::relation(schema, name)
        .ok_or_else(|| SqlError::undefined_table(format!("{schema}.{name}")))?;
    let mut table = VirtualTable::new(relation);
    if schema == "information_schema" {
        information::fill(&mut table, name, transaction, hint).await?;
        return Ok(table);
    }
    match name {
        "pg_namespace" => pg_namespace(&mut table, &schemas(transaction).await?),
        "pg_class" => pg_class(&mut table, &described(transaction, hint).await?),
        "pg_attribute" => pg_attribute(&mut table, &described(transaction, hint).await?),
        "pg_constraint" => pg_constraint(&mut table, &described(transaction, hint).await?),
        "pg_index" => pg_index(&mut table, &described(transaction, hint).await?),
        "pg_indexes" => pg_indexes(&mut table, &described(transaction, hint).await?),
        "pg_tables" => pg_tables(&mut table, &described(transaction, hint).await?),
        "pg_database" => pg_database(&mut table, transaction.database()),
        "pg_settings" => pg_settings(&mut table, settings),
        other => objects::fill(&mut table, other),
    }
    Ok(table)
}

pub(super) async fn schemas(transaction: &mut Transaction) -> Result<BTreeSet<String>, SqlError> {
    let database = transaction.database().to_owned();
    let lakes = std::sync::Arc::clone(transaction.lakes());
    lakes.schemas(&database).await
}

/// The tables of all lakes of the database that the hint allows, in order of their schemas.
pub(super) async fn described(
    transaction: &mut Transaction,
    hint: &Hint,
) -> Result<Vec<Described>, SqlError> {
    let known = match &hint.schemas {
        // A schema asked for by name need not be listed: its lake is asked directly.
        Some(named) => named
            .iter()
            .filter(|name| !name.starts_with("pg_"))
            .cloned()
            .collect(),
        None => schemas(transaction).await?,
    };
    let by_name = hint.schemas.is_some() || known.len() == 1;
    let mut found = Vec::new();
    for schema in known {
        match described_in(transaction, &schema, hint).await {
            Ok(tables) => found.extend(tables),
            // One lake that cannot be opened must not hide the others.
            Err(error) if !by_name => tracing::warn!(schema, %error, "a lake is left out of the catalogs"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

async fn described_in(
    transaction: &mut Transaction,
    schema: &str,
    hint: &Hint,
) -> Result<Vec<Described>, SqlError> {
    let Some(catalog) = transaction.read(schema).await? else {
        return Ok(Vec::new());
    };
    let mut shapes = Vec::new();
    match &hint.tables {
        Some(names) => {
            let relations: BTreeSet<Relation> = names.iter().filter_map(|name| of_name(name)).collect();
            for relation in relations {
                let shape = Box::pin(moraine_tables::describe(catalog, relation)).await?;
                shapes.extend(shape.map(|shape| (relation, shape)));
            }
        }
        None => shapes = Box::pin(moraine_tables::list(catalog)).await?,
    }
    let schema = schema.to_owned();
    Ok(shapes
        .into_iter()
        .map(|(relation, shape)| Described {
            schema: schema.clone(),
            relation,
            shape,
        })
        .collect())
}

/// The relation of a name, or of the name of its key.
fn of_name(name: &str) -> Option<Relation> {
    Relation::parse(name).or_else(|| Relation::parse(name.strip_suffix("_pkey")?))
}

fn pg_namespace(table: &mut VirtualTable, schemas: &BTreeSet<String>) {
    let system = ["pg_catalog", "information_schema"];
    for name in system.into_iter().chain(schemas.iter().map(String::as_str)) {
        table.push(&[
            ("oid", int(schema_oid(name))),
            ("nspname", text(name)),
            ("nspowner", int(OWNER_OID)),
        ]);
    }
}

fn pg_class(table: &mut VirtualTable, tables: &[Described]) {
    for described in tables {
        let key = described.key();
        let schema = int(schema_oid(&described.schema));
        let same = |oid: i64, name: &str, kind: &str, access: i64, columns: usize| {
            vec![
                ("oid", int(oid)),
                ("relname", text(name)),
                ("relnamespace", schema.clone()),
                ("relowner", int(OWNER_OID)),
                ("relam", int(access)),
                ("relfilenode", int(oid)),
                ("relpersistence", text("p")),
                ("relkind", text(kind)),
                ("relnatts", count(columns)),
                ("relispopulated", yes()),
            ]
        };
        let name = described.relation.name();
        let mut row = same(
            described.oid(),
            &name,
            "r",
            HEAP_OID,
            described.shape.columns.len(),
        );
        row.extend([
            // No pages: a client that sees any scans by ranges of ctid, and in parallel.
            ("relpages", int(0)),
            ("reltuples", Value::Float32(-1.0)),
            ("relhasindex", Value::Bool(key.is_some())),
            ("relreplident", text("d")),
        ]);
        table.push(&row);
        if let Some(key) = key {
            let mut row = same(key.index_oid, &key.name, "i", BTREE_OID, 1);
            row.push(("relreplident", text("n")));
            table.push(&row);
        }
    }
}

fn pg_attribute(table: &mut VirtualTable, tables: &[Described]) {
    for described in tables {
        for (index, column) in described.shape.columns.iter().enumerate() {
            let row = attribute(described.oid(), position(index), column);
            table.push(&row);
        }
        if let Some(key) = described.key()
            && let Some(column) = described.shape.columns.get(key.column)
        {
            let mut row = attribute(key.index_oid, 1, column);
            row.retain(|(name, _)| *name != "attnotnull");
            table.push(&row);
        }
    }
}

fn attribute(relation: i64, number: i64, column: &moraine_tables::Column) -> Vec<(&'static str, Value)> {
    let wire_type = types::wire_type(column.column_type);
    let size = types::type_size(&wire_type);
    let (storage, align) = match size {
        -1 if matches!(column.column_type, ColumnType::Numeric { .. }) => ("m", "i"),
        -1 => ("x", "i"),
        1 | 16 => ("p", "c"),
        2 => ("p", "s"),
        4 => ("p", "i"),
        _ => ("p", "d"),
    };
    let collation = match column.column_type {
        ColumnType::Text => DEFAULT_COLLATION_OID,
        _ => 0,
    };
    vec![
        ("attrelid", int(relation)),
        ("attname", text(&column.name)),
        ("atttypid", int(i64::from(wire_type.oid()))),
        ("attstattarget", int(-1)),
        ("attlen", int(i64::from(size))),
        ("attnum", int(number)),
        ("attcacheoff", int(-1)),
        (
            "atttypmod",
            int(i64::from(types::type_modifier(column.column_type))),
        ),
        ("attbyval", Value::Bool((1..=8).contains(&size))),
        ("attalign", text(align)),
        ("attstorage", text(storage)),
        ("attnotnull", Value::Bool(column.not_null)),
        ("attislocal", yes()),
        ("attcollation", int(collation)),
    ]
}

fn pg_constraint(table: &mut VirtualTable, tables: &[Described]) {
    for described in tables {
        let Some(key) = described.key() else { continue };
        table.push(&[
            ("oid", int(key.constraint_oid)),
            ("conname", text(&key.name)),
            ("connamespace", int(schema_oid(&described.schema))),
            ("contype", text("p")),
            ("convalidated", yes()),
            ("conrelid", int(described.oid())),
            ("conindid", int(key.index_oid)),
            ("confupdtype", text(" ")),
            ("confdeltype", text(" ")),
            ("confmatchtype", text(" ")),
            ("conislocal", yes()),
            ("connoinherit", yes()),
            ("conkey", text(format!("{{{}}}", position(key.column)))),
        ]);
    }
}

fn pg_index(table: &mut VirtualTable, tables: &[Described]) {
    for described in tables {
        let Some(key) = described.key() else { continue };
        let mut row = vec![
            ("indexrelid", int(key.index_oid)),
            ("indrelid", int(described.oid())),
            ("indnatts", int(1)),
            ("indnkeyatts", int(1)),
            ("indkey", text(format!("{{{}}}", position(key.column)))),
            ("indcollation", text("{0}")),
            ("indclass", text(format!("{{{INT8_OPERATORS_OID}}}"))),
            ("indoption", text("{0}")),
        ];
        let so = [
            "indisunique",
            "indisprimary",
            "indimmediate",
            "indisvalid",
            "indisready",
            "indislive",
        ];
        row.extend(so.map(|flag| (flag, yes())));
        table.push(&row);
    }
}

fn pg_indexes(table: &mut VirtualTable, tables: &[Described]) {
    for described in tables {
        let Some(key) = described.key() else { continue };
        let name = described.relation.name();
        let definition = format!(
            "CREATE UNIQUE INDEX {} ON {}.{name} USING btree ({})",
            key.name, described.schema, key.column_name
        );
        table.push(&[
            ("schemaname", text(&described.schema)),
            ("tablename", text(&name)),
            ("indexname", text(&key.name)),
            ("indexdef", text(definition)),
        ]);
    }
}

fn pg_tables(table: &mut VirtualTable, tables: &[Described]) {
    let no = || Value::Bool(false);
    for described in tables {
        table.push(&[
            ("schemaname", text(&described.schema)),
            ("tablename", text(described.relation.name())),
            ("tableowner", text(OWNER)),
            ("hasindexes", Value::Bool(described.shape.primary_key.is_some())),
            ("hasrules", no()),
            ("hastriggers", no()),
            ("rowsecurity", no()),
        ]);
    }
}

fn pg_database(table: &mut VirtualTable, database: &str) {
    table.push(&[
        ("oid", int(object_id(database))),
        ("datname", text(database)),
        ("datdba", int(OWNER_OID)),
        ("encoding", int(UTF8_ENCODING)),
        ("datlocprovider", text("c")),
        ("datallowconn", yes()),
        ("datconnlimit", int(-1)),
        ("dattablespace", int(DEFAULT_TABLESPACE_OID)),
        ("datcollate", text("C")),
        ("datctype", text("C.UTF-8")),
    ]);
}

fn pg_settings(table: &mut VirtualTable, settings: &[(&'static str, String)]) {
    for (name, value) in settings {
        table.push(&[
            ("name", text(name)),
            ("setting", text(value)),
            ("context", text("user")),
            ("vartype", text("string")),
            ("source", text("default")),
            ("boot_val", text(value)),
            ("reset_val", text(value)),
            ("pending_restart", Value::Bool(false)),
        ]);
    }
}
