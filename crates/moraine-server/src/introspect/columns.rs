//! The relations that PostgreSQL 15 has in `pg_catalog` and `information_schema`, with the names and types of their
//! columns, and how a row of one is put together. What stands in the rows is others' business.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use moraine_sql::{Element, SqlType};
use moraine_tables::{ColumnType, Value};

/// One line for a relation: schema and name, kind, object id, then its columns with their types. A query of a PostgreSQL 15
/// wrote it (`pg_class` joined with `pg_attribute` and `pg_type`; a domain is given as what it is a domain over).
const LISTED: &str = include_str!("system_columns.txt");

/// A system relation of PostgreSQL 15.
#[derive(Debug)]
pub(super) struct SystemRelation {
    pub(super) schema: &'static str,
    pub(super) name: &'static str,
    pub(super) oid: i64,
    /// Whether it is a table there, and not a view.
    is_table: bool,
    pub(super) columns: Vec<(&'static str, SqlType)>,
}

/// By schema and name.
type Relations = BTreeMap<String, SystemRelation>;

static ALL: LazyLock<Relations> = LazyLock::new(|| LISTED.lines().filter_map(listed).collect());

/// The relation of this name; `None` when PostgreSQL has none.
pub(super) fn relation(schema: &str, name: &str) -> Option<&'static SystemRelation> {
    ALL.get(&format!("{schema}.{name}"))
}

/// All system relations.
pub(super) fn all() -> impl Iterator<Item = &'static SystemRelation> {
    ALL.values()
}

fn listed(line: &'static str) -> Option<(String, SystemRelation)> {
    let (head, columns) = line.split_once(':')?;
    let mut words = head.split(' ');
    let (schema, name) = words.next()?.split_once('.')?;
    let is_table = words.next()? == "r";
    let oid = words.next()?.parse().ok()?;
    let columns = columns
        .split(',')
        .filter_map(|column| column.split_once(' '))
        .map(|(column, declared)| (column, sql_type(declared)));
    let relation = SystemRelation {
        schema,
        name,
        oid,
        is_table,
        columns: columns.collect(),
    };
    Some((format!("{schema}.{name}"), relation))
}

/// The type of a column by its name in `pg_type`. Types that no client reads the insides of are text.
fn sql_type(declared: &str) -> SqlType {
    SqlType::Column(match declared {
        "oid" | "xid" | "regproc" | "regtype" => return SqlType::Oid,
        "name" => return SqlType::Name,
        "char" => return SqlType::Char,
        "int2vector" => return SqlType::Vector(Element::Column(ColumnType::Int16)),
        "oidvector" => return SqlType::Vector(Element::Oid),
        array if array.starts_with('_') => {
            return SqlType::Array(match sql_type(array.trim_start_matches('_')) {
                SqlType::Oid => Element::Oid,
                other => Element::Column(other.column_type()),
            });
        }
        "bool" => ColumnType::Bool,
        "int2" => ColumnType::Int16,
        "int4" => ColumnType::Int32,
        "int8" => ColumnType::Int64,
        "float4" => ColumnType::Float32,
        "float8" => ColumnType::Float64,
        "timestamptz" => ColumnType::TimestampTz,
        "interval" => ColumnType::Interval,
        "bytea" => ColumnType::Bytes,
        _ => ColumnType::Text,
    })
}

/// A system relation with rows.
#[derive(Debug)]
pub(crate) struct VirtualTable {
    relation: &'static SystemRelation,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A column of a system relation: its name, its type, and whether `*` leaves it out.
pub(crate) type VirtualColumn = (&'static str, SqlType, bool);

impl VirtualTable {
    pub(super) fn new(relation: &'static SystemRelation) -> Self {
        Self {
            relation,
            rows: Vec::new(),
        }
    }

    /// The columns; tables have the hidden ones that every table of Postgres has.
    pub(crate) fn columns(&self) -> Vec<VirtualColumn> {
        let shown = self.relation.columns.iter();
        let mut columns: Vec<VirtualColumn> =
            shown.map(|(name, sql_type)| (*name, *sql_type, false)).collect();
        if self.relation.is_table {
            columns.push(("tableoid", SqlType::Oid, true));
            columns.push(("xmin", SqlType::Oid, true));
        }
        columns
    }

    /// Adds a row of these columns' values. The others are what they are for an object with nothing special about it:
    /// NULL in a view and where a column has no plain value, else false, zero or empty.
    pub(super) fn push(&mut self, values: &[(&str, Value)]) {
        let mut row = Vec::with_capacity(self.relation.columns.len() + 2);
        for (name, sql_type) in &self.relation.columns {
            let given = values.iter().find(|(given, _)| given == name);
            row.push(match given {
                Some((_, value)) => fitted(value, *sql_type),
                None if self.relation.is_table => plain(*sql_type),
                None => Value::Null,
            });
        }
        if self.relation.is_table {
            row.push(Value::Int64(self.relation.oid));
            // What is described never changes, so neither does the version of its description.
            row.push(Value::Int64(1));
        }
        debug_assert!(
            values
                .iter()
                .all(|(given, _)| self.relation.columns.iter().any(|(name, _)| name == given)),
            "{} has not all of these columns",
            self.relation.name
        );
        self.rows.push(row);
    }
}

/// A whole number as the width its column has.
fn fitted(value: &Value, sql_type: SqlType) -> Value {
    match (value, sql_type) {
        (Value::Int64(number), SqlType::Column(ColumnType::Int16)) => {
            Value::Int16(i16::try_from(*number).unwrap_or(i16::MAX))
        }
        (Value::Int64(number), SqlType::Column(ColumnType::Int32)) => {
            Value::Int32(i32::try_from(*number).unwrap_or(i32::MAX))
        }
        (value, _) => value.clone(),
    }
}

fn plain(sql_type: SqlType) -> Value {
    match sql_type {
        SqlType::Oid => Value::Int64(0),
        SqlType::Char | SqlType::Name => Value::text(""),
        SqlType::Column(ColumnType::Bool) => Value::Bool(false),
        SqlType::Column(ColumnType::Int16) => Value::Int16(0),
        SqlType::Column(ColumnType::Int32) => Value::Int32(0),
        SqlType::Column(ColumnType::Int64) => Value::Int64(0),
        SqlType::Column(ColumnType::Float32) => Value::Float32(0.0),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole() {
        assert_eq!(ALL.len(), LISTED.lines().count());
        let class = relation("pg_catalog", "pg_class").unwrap();
        assert_eq!((class.oid, class.columns.len()), (1259, 33));
        assert_eq!(class.columns.first(), Some(&("oid", SqlType::Oid)));
        assert!(relation("pg_catalog", "pg_classes").is_none());
        assert!(relation("information_schema", "pg_class").is_none());
    }
}
