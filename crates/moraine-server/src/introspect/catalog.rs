//! The system catalogs as tables in memory, made for one SELECT from the tables its conditions confine it to.

use std::collections::BTreeSet;

use moraine_tables::{ColumnType, Relation, RelationSchema, Value};
use postgres_types::Type;

use super::objects;
use super::scan_names::Hint;
use crate::errors::SqlError;
use crate::lakes::DEFAULT_SCHEMA;
use crate::transaction::Transaction;
use crate::values::types;

/// The object id of `pg_catalog`. Source: PostgreSQL, `pg_namespace.dat`.
const PG_CATALOG_OID: i64 = 11;
/// The object id of `public`. Source: PostgreSQL, `pg_namespace.dat`.
const PUBLIC_OID: i64 = 2200;
const INFORMATION_SCHEMA_OID: i64 = 13_000;
/// Object ids of user objects start here. Source: PostgreSQL, `transam.h` (FirstNormalObjectId).
const FIRST_USER_OID: u32 = 16_384;
/// The owner of everything. Source: PostgreSQL, `pg_authid.dat`.
const OWNER_OID: i64 = 10;

/// One virtual table: column names with their types, and rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct VirtualTable {
    pub(crate) columns: Vec<(&'static str, Type)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A table of a lake, as the catalogs describe it.
struct Described {
    schema: String,
    relation: Relation,
    shape: RelationSchema,
}

impl Described {
    fn oid(&self) -> i64 {
        object_id(&format!("{}.{}", self.schema, self.relation))
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

fn int4(value: impl Into<i32>) -> Value {
    Value::Int32(value.into())
}

fn text(value: impl AsRef<str>) -> Value {
    Value::text(value)
}

fn position(index: usize) -> i32 {
    i32::try_from(index + 1).unwrap_or(i32::MAX)
}

/// All relations of the database with their object ids and schemas.
pub(crate) async fn relations(
    transaction: &mut Transaction,
) -> Result<Vec<(u32, String, Relation)>, SqlError> {
    let found = described(transaction, &Hint::default()).await?;
    let named = found.into_iter().map(|table| {
        (
            u32::try_from(table.oid()).unwrap_or_default(),
            table.schema,
            table.relation,
        )
    });
    Ok(named.collect())
}

/// The virtual table of a system relation; 42P01 for one that is not offered.
pub(super) async fn table(
    transaction: &mut Transaction,
    schema: &str,
    name: &str,
    hint: &Hint,
    settings: &[(&'static str, String)],
) -> Result<VirtualTable, SqlError> {
    if schema == "information_schema" {
        return information_schema(transaction, name, hint).await;
    }
    let mut found = match name {
        "pg_namespace" => pg_namespace(&schemas(transaction).await?),
        "pg_class" => pg_class(&described(transaction, hint).await?),
        "pg_attribute" => pg_attribute(&described(transaction, hint).await?),
        "pg_constraint" => pg_constraint(&described(transaction, hint).await?),
        "pg_tables" => pg_tables(&described(transaction, hint).await?),
        "pg_type" => pg_type(),
        "pg_database" => pg_database(transaction.database()),
        "pg_settings" => pg_settings(settings),
        other => empty(other)
            .or_else(|| objects::table(other))
            .ok_or_else(|| SqlError::undefined_table(format!("{schema}.{other}")))?,
    };
    objects::complete(name, &mut found);
    Ok(found)
}

async fn schemas(transaction: &mut Transaction) -> Result<BTreeSet<String>, SqlError> {
    let database = transaction.database().to_owned();
    let lakes = std::sync::Arc::clone(transaction.lakes());
    lakes.schemas(&database).await
}

/// The tables of all lakes of the database that the hint allows, in order of their schemas.
async fn described(transaction: &mut Transaction, hint: &Hint) -> Result<Vec<Described>, SqlError> {
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
            let relations: BTreeSet<Relation> =
                names.iter().filter_map(|name| Relation::parse(name)).collect();
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

fn pg_namespace(schemas: &BTreeSet<String>) -> VirtualTable {
    let columns = vec![
        ("oid", Type::INT8),
        ("nspname", Type::TEXT),
        ("nspowner", Type::INT8),
        ("nspacl", Type::TEXT),
    ];
    let system = ["pg_catalog", "information_schema"];
    let names = system.into_iter().chain(schemas.iter().map(String::as_str));
    let rows = names
        .map(|name| vec![int(schema_oid(name)), text(name), int(OWNER_OID), Value::Null])
        .collect();
    VirtualTable { columns, rows }
}

fn pg_class(tables: &[Described]) -> VirtualTable {
    let columns = vec![
        ("oid", Type::INT8),
        ("relname", Type::TEXT),
        ("relnamespace", Type::INT8),
        ("reltype", Type::INT8),
        ("relowner", Type::INT8),
        ("relkind", Type::TEXT),
        ("relpages", Type::INT4),
        ("reltuples", Type::FLOAT4),
        ("relnatts", Type::INT4),
        ("relhasindex", Type::BOOL),
        ("relpersistence", Type::TEXT),
        ("relispartition", Type::BOOL),
        ("xmin", Type::INT8),
    ];
    let row = |table: &Described| {
        vec![
            int(table.oid()),
            text(table.relation.name()),
            int(schema_oid(&table.schema)),
            int(0),
            int(OWNER_OID),
            text("r"),
            // No pages: a client that sees any scans by ranges of ctid, and in parallel.
            int4(0),
            Value::Float32(-1.0),
            int4(i32::try_from(table.shape.columns.len()).unwrap_or(i32::MAX)),
            Value::Bool(table.shape.primary_key.is_some()),
            text("p"),
            Value::Bool(false),
            // The columns of a table never change, so neither does the version of its description.
            int(1),
        ]
    };
    VirtualTable {
        columns,
        rows: tables.iter().map(row).collect(),
    }
}

fn pg_attribute(tables: &[Described]) -> VirtualTable {
    let columns = vec![
        ("attrelid", Type::INT8),
        ("attname", Type::TEXT),
        ("atttypid", Type::INT8),
        ("attlen", Type::INT4),
        ("attnum", Type::INT4),
        ("attndims", Type::INT4),
        ("atttypmod", Type::INT4),
        ("attnotnull", Type::BOOL),
        ("atthasdef", Type::BOOL),
        ("attisdropped", Type::BOOL),
        ("attidentity", Type::TEXT),
        ("attgenerated", Type::TEXT),
    ];
    let mut rows = Vec::new();
    for table in tables {
        let oid = table.oid();
        for (index, column) in table.shape.columns.iter().enumerate() {
            let wire_type = types::wire_type(column.column_type);
            rows.push(vec![
                int(oid),
                text(&column.name),
                int(i64::from(wire_type.oid())),
                int4(types::type_size(&wire_type)),
                int4(position(index)),
                int4(0),
                int4(types::type_modifier(column.column_type)),
                Value::Bool(column.not_null),
                Value::Bool(false),
                Value::Bool(false),
                text(""),
                text(""),
            ]);
        }
    }
    VirtualTable { columns, rows }
}

fn pg_constraint(tables: &[Described]) -> VirtualTable {
    let columns = vec![
        ("oid", Type::INT8),
        ("conname", Type::TEXT),
        ("connamespace", Type::INT8),
        ("contype", Type::TEXT),
        ("conrelid", Type::INT8),
        ("conkey", Type::TEXT),
    ];
    let row = |table: &Described| {
        let key = table.shape.primary_key?;
        let name = format!("{}_pkey", table.relation);
        let oid = object_id(&format!("{}.{name}", table.schema));
        let key = format!("{{{}}}", position(key));
        Some(vec![
            int(oid),
            text(name),
            int(schema_oid(&table.schema)),
            text("p"),
            int(table.oid()),
            text(key),
        ])
    };
    VirtualTable {
        columns,
        rows: tables.iter().filter_map(row).collect(),
    }
}

fn pg_tables(tables: &[Described]) -> VirtualTable {
    let columns = vec![
        ("schemaname", Type::TEXT),
        ("tablename", Type::TEXT),
        ("tableowner", Type::TEXT),
        ("tablespace", Type::TEXT),
        ("hasindexes", Type::BOOL),
    ];
    let row = |table: &Described| {
        let indexed = Value::Bool(table.shape.primary_key.is_some());
        vec![
            text(&table.schema),
            text(table.relation.name()),
            text("moraine"),
            Value::Null,
            indexed,
        ]
    };
    VirtualTable {
        columns,
        rows: tables.iter().map(row).collect(),
    }
}

fn pg_type() -> VirtualTable {
    let columns = vec![
        ("oid", Type::INT8),
        ("typname", Type::TEXT),
        ("typnamespace", Type::INT8),
        ("typlen", Type::INT4),
        ("typtype", Type::TEXT),
        ("typcategory", Type::TEXT),
        ("typrelid", Type::INT8),
        ("typelem", Type::INT8),
        ("typarray", Type::INT8),
        ("typbasetype", Type::INT8),
        ("typtypmod", Type::INT4),
        ("typnotnull", Type::BOOL),
    ];
    let known = [
        (Type::BOOL, "B"),
        (Type::BYTEA, "U"),
        (Type::CHAR, "Z"),
        (Type::NAME, "S"),
        (Type::INT8, "N"),
        (Type::INT2, "N"),
        (Type::INT4, "N"),
        (Type::TEXT, "S"),
        (Type::OID, "N"),
        (Type::TID, "U"),
        (Type::XID, "U"),
        (Type::FLOAT4, "N"),
        (Type::FLOAT8, "N"),
        (Type::VARCHAR, "S"),
        (Type::DATE, "D"),
        (Type::TIME, "D"),
        (Type::TIMESTAMP, "D"),
        (Type::TIMESTAMPTZ, "D"),
        (Type::INTERVAL, "T"),
        (Type::TIMETZ, "D"),
        (Type::NUMERIC, "N"),
        (Type::UUID, "U"),
    ];
    let row = |(wire_type, category): &(Type, &str)| {
        vec![
            int(i64::from(wire_type.oid())),
            text(wire_type.name()),
            int(PG_CATALOG_OID),
            int4(types::type_size(wire_type)),
            text("b"),
            text(category),
            int(0),
            int(0),
            int(0),
            int(0),
            int4(-1),
            Value::Bool(false),
        ]
    };
    VirtualTable {
        columns,
        rows: known.iter().map(row).collect(),
    }
}

fn pg_database(database: &str) -> VirtualTable {
    let columns = vec![
        ("oid", Type::INT8),
        ("datname", Type::TEXT),
        ("datdba", Type::INT8),
        ("encoding", Type::INT4),
        ("datallowconn", Type::BOOL),
        ("datistemplate", Type::BOOL),
    ];
    let row = vec![
        int(object_id(database)),
        text(database),
        int(OWNER_OID),
        int4(6),
        Value::Bool(true),
        Value::Bool(false),
    ];
    VirtualTable {
        columns,
        rows: vec![row],
    }
}

fn pg_settings(settings: &[(&'static str, String)]) -> VirtualTable {
    let columns = vec![("name", Type::TEXT), ("setting", Type::TEXT)];
    let rows = settings
        .iter()
        .map(|(name, value)| vec![text(name), text(value)])
        .collect();
    VirtualTable { columns, rows }
}

/// Catalogs of things that no lake has.
fn empty(name: &str) -> Option<VirtualTable> {
    let columns: Vec<(&'static str, Type)> = match name {
        "pg_description" => vec![
            ("objoid", Type::INT8),
            ("classoid", Type::INT8),
            ("objsubid", Type::INT4),
            ("description", Type::TEXT),
        ],
        "pg_enum" => vec![
            ("oid", Type::INT8),
            ("enumtypid", Type::INT8),
            ("enumsortorder", Type::FLOAT4),
            ("enumlabel", Type::TEXT),
        ],
        "pg_indexes" => vec![
            ("schemaname", Type::TEXT),
            ("tablename", Type::TEXT),
            ("indexname", Type::TEXT),
            ("tablespace", Type::TEXT),
            ("indexdef", Type::TEXT),
        ],
        "pg_attrdef" => vec![
            ("oid", Type::INT8),
            ("adrelid", Type::INT8),
            ("adnum", Type::INT4),
            ("adbin", Type::TEXT),
        ],
        "pg_views" | "pg_matviews" => {
            vec![
                ("schemaname", Type::TEXT),
                ("viewname", Type::TEXT),
                ("definition", Type::TEXT),
            ]
        }
        "pg_extension" => vec![
            ("oid", Type::INT8),
            ("extname", Type::TEXT),
            ("extversion", Type::TEXT),
        ],
        "pg_range" => vec![("rngtypid", Type::INT8), ("rngsubtype", Type::INT8)],
        "pg_proc" => vec![
            ("oid", Type::INT8),
            ("proname", Type::TEXT),
            ("pronamespace", Type::INT8),
        ],
        "pg_stat_wal_receiver" => vec![("pid", Type::INT4), ("status", Type::TEXT)],
        _ => return None,
    };
    Some(VirtualTable {
        columns,
        rows: Vec::new(),
    })
}

async fn information_schema(
    transaction: &mut Transaction,
    name: &str,
    hint: &Hint,
) -> Result<VirtualTable, SqlError> {
    let database = transaction.database().to_owned();
    match name {
        "schemata" => {
            let columns = vec![
                ("catalog_name", Type::TEXT),
                ("schema_name", Type::TEXT),
                ("schema_owner", Type::TEXT),
            ];
            let schemas = schemas(transaction).await?;
            let names = ["pg_catalog", "information_schema"]
                .into_iter()
                .chain(schemas.iter().map(String::as_str));
            let rows = names
                .map(|name| vec![text(&database), text(name), text("moraine")])
                .collect();
            Ok(VirtualTable { columns, rows })
        }
        "tables" => {
            let columns = vec![
                ("table_catalog", Type::TEXT),
                ("table_schema", Type::TEXT),
                ("table_name", Type::TEXT),
                ("table_type", Type::TEXT),
            ];
            let tables = described(transaction, hint).await?;
            let row = |table: &Described| {
                vec![
                    text(&database),
                    text(&table.schema),
                    text(table.relation.name()),
                    text("BASE TABLE"),
                ]
            };
            Ok(VirtualTable {
                columns,
                rows: tables.iter().map(row).collect(),
            })
        }
        "columns" => Ok(columns(&database, &described(transaction, hint).await?)),
        other => Err(SqlError::undefined_table(format!("information_schema.{other}"))),
    }
}

fn columns(database: &str, tables: &[Described]) -> VirtualTable {
    let columns = vec![
        ("table_catalog", Type::TEXT),
        ("table_schema", Type::TEXT),
        ("table_name", Type::TEXT),
        ("column_name", Type::TEXT),
        ("ordinal_position", Type::INT4),
        ("column_default", Type::TEXT),
        ("is_nullable", Type::TEXT),
        ("data_type", Type::TEXT),
        ("numeric_precision", Type::INT4),
        ("numeric_scale", Type::INT4),
        ("udt_name", Type::TEXT),
    ];
    let mut rows = Vec::new();
    for table in tables {
        for (index, column) in table.shape.columns.iter().enumerate() {
            let (precision, scale) = match column.column_type {
                ColumnType::Numeric { precision, scale } => (int4(precision), int4(scale)),
                _ => (Value::Null, Value::Null),
            };
            rows.push(vec![
                text(database),
                text(&table.schema),
                text(table.relation.name()),
                text(&column.name),
                int4(position(index)),
                Value::Null,
                text(if column.not_null { "NO" } else { "YES" }),
                text(types::sql_name(column.column_type)),
                precision,
                scale,
                text(types::wire_type(column.column_type).name()),
            ]);
        }
    }
    VirtualTable { columns, rows }
}
