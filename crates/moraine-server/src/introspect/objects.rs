//! The objects that are the same in every lake: types, ranges, access methods, collations, languages, roles, tablespaces.

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
        "pg_range" => ranges(table),
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

/// The ranges of PostgreSQL 15: a type, that of its bounds, that of several such ranges, an operator class, the function
/// that brings one into canonical form. Source: PostgreSQL, `pg_range.dat`.
fn ranges(table: &mut VirtualTable) {
    for (oid, bounds, several, operators, canonical, difference) in [
        (3904, 23, 4451, 1978, "int4range_canonical", "int4range_subdiff"),
        (3906, 1700, 4532, 3125, "", "numrange_subdiff"),
        (3908, 1114, 4533, 3128, "", "tsrange_subdiff"),
        (3910, 1184, 4534, 3127, "", "tstzrange_subdiff"),
        (3912, 1082, 4535, 3122, "daterange_canonical", "daterange_subdiff"),
        (3926, 20, 4536, 3124, "int8range_canonical", "int8range_subdiff"),
    ] {
        let function = |name: &str| match name {
            "" => int(0),
            name => int(i64::from(procedure_oid(name))),
        };
        table.push(&[
            ("rngtypid", int(oid)),
            ("rngsubtype", int(bounds)),
            ("rngmultitypid", int(several)),
            ("rngcollation", int(0)),
            ("rngsubopc", int(operators)),
            ("rngcanonical", function(canonical)),
            ("rngsubdiff", function(difference)),
        ]);
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
