//! The objects that are the same in every lake: types, access methods, collations, languages, roles, tablespaces.

use moraine_sql::procedure_oid;
use moraine_tables::Value;

use super::columns::VirtualTable;

/// The owner of everything. Source: PostgreSQL, `pg_authid.dat`.
pub(super) const OWNER_OID: i64 = 10;
/// The owner's name.
pub(super) const OWNER: &str = "moraine";
/// The access method of tables. Source: PostgreSQL, `pg_am.dat`.
pub(super) const HEAP_OID: i64 = 2;
/// The access method of primary keys. Source: PostgreSQL, `pg_am.dat`.
pub(super) const BTREE_OID: i64 = 403;
/// The collation of text. Source: PostgreSQL, `pg_collation.dat`.
pub(super) const DEFAULT_COLLATION_OID: i64 = 100;
/// The default tablespace. Source: PostgreSQL, `pg_tablespace.dat`.
pub(super) const DEFAULT_TABLESPACE_OID: i64 = 1663;
/// The object id of `pg_catalog`. Source: PostgreSQL, `pg_namespace.dat`.
pub(super) const PG_CATALOG_OID: i64 = 11;

/// Columns of `pg_type` in the order in which a query of a PostgreSQL 15 wrote the lines of [`TYPES`].
const TYPE_COLUMNS: &[(&str, Form)] = &[
    ("oid", Form::Number),
    ("typname", Form::Text),
    ("typnamespace", Form::Number),
    ("typowner", Form::Number),
    ("typlen", Form::Number),
    ("typbyval", Form::Flag),
    ("typtype", Form::Text),
    ("typcategory", Form::Text),
    ("typispreferred", Form::Flag),
    ("typisdefined", Form::Flag),
    ("typdelim", Form::Text),
    ("typrelid", Form::Number),
    ("typsubscript", Form::Function),
    ("typelem", Form::Number),
    ("typarray", Form::Number),
    ("typinput", Form::Function),
    ("typoutput", Form::Function),
    ("typreceive", Form::Function),
    ("typsend", Form::Function),
    ("typmodin", Form::Function),
    ("typmodout", Form::Function),
    ("typanalyze", Form::Function),
    ("typalign", Form::Text),
    ("typstorage", Form::Text),
    ("typnotnull", Form::Flag),
    ("typbasetype", Form::Number),
    ("typtypmod", Form::Number),
    ("typndims", Form::Number),
    ("typcollation", Form::Number),
];

/// The types of PostgreSQL 15 that are no row types.
const TYPES: &str = include_str!("system_types.txt");

#[derive(Clone, Copy)]
enum Form {
    Number,
    Flag,
    Text,
    Function,
}

fn int(value: i64) -> Value {
    Value::Int64(value)
}

fn yes() -> Value {
    Value::Bool(true)
}

/// Fills a relation of objects that every lake has; any other stays as it is.
pub(super) fn fill(table: &mut VirtualTable, name: &str) {
    match name {
        "pg_type" => types(table),
        "pg_am" => access_methods(table),
        // Text has the collation of the database, and there is no other to name.
        "pg_collation" => {}
        "pg_language" => languages(table),
        "pg_roles" | "pg_authid" => roles(table),
        "pg_user" => {
            let name = ("usename", Value::text(OWNER));
            let flags = ["usecreatedb", "usesuper", "userepl", "usebypassrls"].map(|flag| (flag, yes()));
            let mut row = vec![name, ("usesysid", int(OWNER_OID))];
            row.extend(flags);
            table.push(&row);
        }
        "pg_tablespace" => {
            for (oid, name) in [(DEFAULT_TABLESPACE_OID, "pg_default"), (1664, "pg_global")] {
                table.push(&[
                    ("oid", int(oid)),
                    ("spcname", Value::text(name)),
                    ("spcowner", int(OWNER_OID)),
                ]);
            }
        }
        _ => {}
    }
}

fn types(table: &mut VirtualTable) {
    for line in TYPES.lines() {
        let values = TYPE_COLUMNS
            .iter()
            .zip(line.split('|'))
            .map(|((name, form), text)| {
                let value = match form {
                    Form::Number => int(text.parse().unwrap_or_default()),
                    Form::Flag => Value::Bool(text == "t"),
                    Form::Text => Value::text(text),
                    Form::Function if text == "-" => int(0),
                    Form::Function => int(i64::from(procedure_oid(text))),
                };
                (*name, value)
            });
        table.push(&values.collect::<Vec<_>>());
    }
}

fn access_methods(table: &mut VirtualTable) {
    for (oid, name, kind) in [
        (HEAP_OID, "heap", "t"),
        (BTREE_OID, "btree", "i"),
        (405, "hash", "i"),
        (783, "gist", "i"),
        (2742, "gin", "i"),
        (4000, "spgist", "i"),
        (3580, "brin", "i"),
    ] {
        let handler = match name {
            "heap" => "heap_tableam_handler".to_owned(),
            index => format!("{index}handler"),
        };
        table.push(&[
            ("oid", int(oid)),
            ("amname", Value::text(name)),
            ("amhandler", int(i64::from(procedure_oid(&handler)))),
            ("amtype", Value::text(kind)),
        ]);
    }
}

fn languages(table: &mut VirtualTable) {
    for (oid, name) in [(12, "internal"), (13, "c"), (14, "sql")] {
        table.push(&[
            ("oid", int(oid)),
            ("lanname", Value::text(name)),
            ("lanowner", int(OWNER_OID)),
            ("lanpltrusted", Value::Bool(name == "sql")),
        ]);
    }
}

fn roles(table: &mut VirtualTable) {
    let mut row = vec![
        ("oid", int(OWNER_OID)),
        ("rolname", Value::text(OWNER)),
        ("rolconnlimit", int(-1)),
    ];
    let flags = [
        "rolsuper",
        "rolinherit",
        "rolcreaterole",
        "rolcreatedb",
        "rolcanlogin",
        "rolreplication",
        "rolbypassrls",
    ];
    row.extend(flags.map(|flag| (flag, yes())));
    table.push(&row);
}
