//! The rest of the system catalogs: columns that say the same of every object, and catalogs of kinds of objects that no
//! lake has. Clients join them to describe a table.

use moraine_tables::Value;
use postgres_types::Type;

use super::catalog::VirtualTable;

/// A column that is the same in every row.
type Constant = (&'static str, Type, fn() -> Value);

fn null() -> Value {
    Value::Null
}

fn zero() -> Value {
    Value::Int64(0)
}

fn zero4() -> Value {
    Value::Int32(0)
}

fn no() -> Value {
    Value::Bool(false)
}

fn yes() -> Value {
    Value::Bool(true)
}

fn empty_text() -> Value {
    Value::text("")
}

/// The access method of tables. Source: PostgreSQL, `pg_am.dat`.
const HEAP_OID: i64 = 2;
/// The catalog's own number. Source: PostgreSQL, `pg_class.h`.
const PG_CLASS_OID: i64 = 1259;

/// Adds the columns of a catalog that are the same for every object.
pub(super) fn complete(name: &str, table: &mut VirtualTable) {
    for (column, wire_type, value) in constants(name) {
        if table.columns.iter().any(|(known, _)| known == column) {
            continue;
        }
        table.columns.push((column, wire_type.clone()));
        table.rows.iter_mut().for_each(|row| row.push(value()));
    }
}

fn constants(name: &str) -> &'static [Constant] {
    const CLASS: &[Constant] = &[
        ("tableoid", Type::INT8, || Value::Int64(PG_CLASS_OID)),
        ("relam", Type::INT8, || Value::Int64(HEAP_OID)),
        ("relchecks", Type::INT4, zero4),
        ("relhasrules", Type::BOOL, no),
        ("relhastriggers", Type::BOOL, no),
        ("relhassubclass", Type::BOOL, no),
        ("relrowsecurity", Type::BOOL, no),
        ("relforcerowsecurity", Type::BOOL, no),
        ("relispopulated", Type::BOOL, yes),
        ("relreplident", Type::CHAR, || Value::text("d")),
        ("reltablespace", Type::INT8, zero),
        ("reloftype", Type::INT8, zero),
        ("reltoastrelid", Type::INT8, zero),
        ("relacl", Type::TEXT_ARRAY, null),
        ("reloptions", Type::TEXT_ARRAY, null),
        ("relpartbound", Type::TEXT, null),
    ];
    const ATTRIBUTE: &[Constant] = &[
        ("attcollation", Type::INT8, zero),
        ("attstattarget", Type::INT4, || Value::Int32(-1)),
        ("attstorage", Type::CHAR, || Value::text("p")),
        ("attcompression", Type::CHAR, empty_text),
        ("attislocal", Type::BOOL, yes),
        ("attinhcount", Type::INT4, zero4),
        ("atthasmissing", Type::BOOL, no),
        ("attacl", Type::TEXT_ARRAY, null),
        ("attoptions", Type::TEXT_ARRAY, null),
        ("attfdwoptions", Type::TEXT_ARRAY, null),
    ];
    const DATABASE: &[Constant] = &[
        ("datcollate", Type::TEXT, || Value::text("C")),
        ("datctype", Type::TEXT, || Value::text("C")),
        ("datconnlimit", Type::INT4, || Value::Int32(-1)),
        ("dattablespace", Type::INT8, || Value::Int64(1663)),
        ("datacl", Type::TEXT_ARRAY, null),
    ];
    const TYPE: &[Constant] = &[
        ("typowner", Type::INT8, || Value::Int64(10)),
        ("typcollation", Type::INT8, zero),
        ("typisdefined", Type::BOOL, yes),
        ("typdelim", Type::CHAR, || Value::text(",")),
        ("typdefault", Type::TEXT, null),
        ("typndims", Type::INT4, zero4),
        ("typacl", Type::TEXT_ARRAY, null),
    ];
    const CONSTRAINT: &[Constant] = &[
        ("condeferrable", Type::BOOL, no),
        ("condeferred", Type::BOOL, no),
        ("convalidated", Type::BOOL, yes),
        ("conindid", Type::INT8, zero),
        ("contypid", Type::INT8, zero),
        ("confrelid", Type::INT8, zero),
        ("conparentid", Type::INT8, zero),
        ("confkey", Type::TEXT, null),
    ];
    match name {
        "pg_class" => CLASS,
        "pg_attribute" => ATTRIBUTE,
        "pg_database" => DATABASE,
        "pg_type" => TYPE,
        "pg_constraint" => CONSTRAINT,
        _ => &[],
    }
}

/// A catalog of objects that there is one of, or none; `None` for one that is not offered.
pub(super) fn table(name: &str) -> Option<VirtualTable> {
    let columns = columns_about_tables(name).or_else(|| columns_about_others(name))?;
    let rows = match name {
        "pg_am" => vec![vec![
            Value::Int64(HEAP_OID),
            Value::text("heap"),
            Value::text("t"),
        ]],
        "pg_roles" => vec![vec![
            Value::Int64(10),
            Value::text("moraine"),
            Value::Bool(true),
            Value::Bool(true),
            Value::Bool(true),
        ]],
        _ => Vec::new(),
    };
    Some(VirtualTable { columns, rows })
}

type Columns = Vec<(&'static str, Type)>;

/// Catalogs of what may belong to a table.
fn columns_about_tables(name: &str) -> Option<Columns> {
    let (oid, number, flag, text) = (Type::INT8, Type::INT4, Type::BOOL, Type::TEXT);
    Some(match name {
        "pg_index" => vec![
            ("indexrelid", oid.clone()),
            ("indrelid", oid),
            ("indkey", Type::TEXT_ARRAY),
            ("indnatts", number.clone()),
            ("indnkeyatts", number),
            ("indisunique", flag.clone()),
            ("indisprimary", flag.clone()),
            ("indisclustered", flag.clone()),
            ("indisvalid", flag.clone()),
            ("indisreplident", flag),
            ("indoption", Type::TEXT_ARRAY),
            ("indpred", text.clone()),
            ("indexprs", text),
        ],
        "pg_inherits" => vec![
            ("inhrelid", oid.clone()),
            ("inhparent", oid),
            ("inhseqno", number),
            ("inhdetachpending", flag),
        ],
        "pg_policy" => vec![
            ("oid", oid.clone()),
            ("polname", text.clone()),
            ("polrelid", oid),
            ("polcmd", Type::CHAR),
            ("polpermissive", flag),
            ("polroles", Type::TEXT_ARRAY),
            ("polqual", text.clone()),
            ("polwithcheck", text),
        ],
        "pg_statistic_ext" => vec![
            ("oid", oid.clone()),
            ("stxrelid", oid.clone()),
            ("stxnamespace", oid),
            ("stxname", text),
            ("stxkind", Type::TEXT_ARRAY),
            ("stxstattarget", number),
        ],
        "pg_trigger" => vec![
            ("oid", oid.clone()),
            ("tgrelid", oid.clone()),
            ("tgname", text),
            ("tgenabled", Type::CHAR),
            ("tgisinternal", flag),
            ("tgparentid", oid),
        ],
        "pg_rewrite" => vec![
            ("oid", oid.clone()),
            ("rulename", text),
            ("ev_class", oid),
            ("ev_enabled", Type::CHAR),
        ],
        "pg_foreign_table" => vec![("ftrelid", oid.clone()), ("ftserver", oid)],
        _ => return None,
    })
}

/// Catalogs of what belongs to a database.
fn columns_about_others(name: &str) -> Option<Columns> {
    let (oid, flag, text) = (Type::INT8, Type::BOOL, Type::TEXT);
    Some(match name {
        "pg_am" => vec![("oid", oid), ("amname", text), ("amtype", Type::CHAR)],
        "pg_collation" => vec![("oid", oid.clone()), ("collname", text), ("collnamespace", oid)],
        "pg_publication" => vec![("oid", oid), ("pubname", text), ("puballtables", flag)],
        "pg_publication_rel" => vec![("oid", oid.clone()), ("prpubid", oid.clone()), ("prrelid", oid)],
        "pg_roles" => vec![
            ("oid", oid),
            ("rolname", text),
            ("rolsuper", flag.clone()),
            ("rolcanlogin", flag.clone()),
            ("rolinherit", flag),
        ],
        "pg_sequence" => vec![("seqrelid", oid)],
        _ => return None,
    })
}
