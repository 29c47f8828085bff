//! The types of the columns of a lake's tables at any snapshot, as its rows of `ducklake_column` tell them: as DuckLake writes
//! them and as DuckDB does. Inlined tables need them, whose columns are those of a table at one schema version.

use std::collections::{BTreeMap, BTreeSet};

use moraine_tables::Value;

/// Positions of columns in `ducklake_column`.
const ID: usize = 0;
const BEGIN: usize = 1;
const END: usize = 2;
const TABLE: usize = 3;
const ORDER: usize = 4;
const NAME: usize = 5;
const TYPE: usize = 6;
const PARENT: usize = 10;

/// Nested columns within nested columns, at most; more is damage.
const DEPTH_MAX: usize = 64;

/// One version of a column.
#[derive(Debug, Clone)]
struct Version {
    column_id: u64,
    begin: u64,
    end: Option<u64>,
    order: u64,
    name: String,
    ducklake_type: String,
    parent: Option<u64>,
}

/// The columns of some tables.
#[derive(Debug, Default)]
pub(crate) struct ColumnTypes {
    tables: BTreeMap<u64, Vec<Version>>,
    /// The snapshot at which a table came to a schema version, by (table id, schema version).
    begins: BTreeMap<(u64, u64), u64>,
    /// The first snapshot of a schema version.
    first_snapshots: BTreeMap<u64, u64>,
}

impl ColumnTypes {
    /// Adds a row of `ducklake_column`, if it is of one of `tables`.
    pub(crate) fn add_column(&mut self, row: &[Value], tables: &BTreeSet<u64>) {
        self.add(row, Some(tables));
    }

    /// Adds a row of `ducklake_column`, whatever its table.
    pub(crate) fn add_any_column(&mut self, row: &[Value]) {
        self.add(row, None);
    }

    /// The names of a table's top-level columns at a schema version, in order.
    pub(crate) fn names(&self, table_id: u64, schema_version: u64) -> Vec<String> {
        let snapshot = self.snapshot(table_id, schema_version);
        let versions = self.tables.get(&table_id).map(Vec::as_slice).unwrap_or_default();
        let mut found: Vec<&Version> = versions
            .iter()
            .filter(|version| version.parent.is_none())
            .filter(|version| match snapshot {
                Some(snapshot) => version.is_visible_at(snapshot),
                None => version.end.is_none(),
            })
            .collect();
        found.sort_by_key(|version| (version.order, version.column_id));
        found.iter().map(|version| version.name.clone()).collect()
    }

    fn add(&mut self, row: &[Value], tables: Option<&BTreeSet<u64>>) {
        let number = |column: usize| match row.get(column) {
            Some(Value::Int64(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        let text = |column: usize| match row.get(column) {
            Some(Value::Text(text)) => text.to_string(),
            _ => String::new(),
        };
        let (Some(table_id), Some(column_id), Some(begin)) = (number(TABLE), number(ID), number(BEGIN))
        else {
            return;
        };
        if tables.is_none_or(|tables| tables.contains(&table_id)) {
            self.tables.entry(table_id).or_default().push(Version {
                column_id,
                begin,
                end: number(END),
                order: number(ORDER).unwrap_or_default(),
                name: text(NAME),
                ducklake_type: text(TYPE),
                parent: number(PARENT),
            });
        }
    }

    /// Notes since which snapshot a table has a schema version.
    pub(crate) fn add_schema_version(&mut self, table_id: u64, schema_version: u64, begin_snapshot: u64) {
        self.begins.insert((table_id, schema_version), begin_snapshot);
    }

    /// Notes that a snapshot has a schema version.
    pub(crate) fn add_snapshot(&mut self, snapshot_id: u64, schema_version: u64) {
        let first = self.first_snapshots.entry(schema_version).or_insert(snapshot_id);
        *first = snapshot_id.min(*first);
    }

    /// The DuckLake type that a table's column of this name has at a schema version, else the one it had last.
    pub(crate) fn ducklake_type(&self, table_id: u64, schema_version: u64, name: &str) -> Option<&str> {
        let found = self.find(table_id, schema_version, name)?;
        Some(&found.ducklake_type)
    }

    /// Like [`ColumnTypes::ducklake_type`], as DuckDB writes the type, nested ones spelt out.
    pub(crate) fn native_type(&self, table_id: u64, schema_version: u64, name: &str) -> Option<String> {
        let found = self.find(table_id, schema_version, name)?;
        let snapshot = self.snapshot(table_id, schema_version);
        self.spelt(table_id, found, snapshot, 0)
    }

    fn snapshot(&self, table_id: u64, schema_version: u64) -> Option<u64> {
        let begin = self.begins.get(&(table_id, schema_version));
        begin
            .or_else(|| self.first_snapshots.get(&schema_version))
            .copied()
    }

    fn find(&self, table_id: u64, schema_version: u64, name: &str) -> Option<&Version> {
        let snapshot = self.snapshot(table_id, schema_version);
        let versions = self.tables.get(&table_id)?;
        let named = versions
            .iter()
            .filter(|version| version.parent.is_none() && version.name == name);
        best(named, snapshot)
    }

    fn spelt(&self, table_id: u64, version: &Version, snapshot: Option<u64>, depth: usize) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        let plain = version.ducklake_type.to_ascii_lowercase();
        if !["struct", "list", "map"].contains(&plain.as_str()) {
            return Some(scalar(&version.ducklake_type));
        }
        let versions = self.tables.get(&table_id)?;
        let ids: BTreeSet<u64> = versions
            .iter()
            .filter(|child| child.parent == Some(version.column_id))
            .map(|child| child.column_id)
            .collect();
        let mut children: Vec<&Version> = ids
            .iter()
            .filter_map(|id| {
                let of_id = versions.iter().filter(|child| child.column_id == *id);
                best(of_id, snapshot)
            })
            .filter(|child| snapshot.is_none_or(|snapshot| child.is_visible_at(snapshot)))
            .collect();
        children.sort_by_key(|child| (child.order, child.column_id));
        let mut parts = Vec::with_capacity(children.len());
        for child in &children {
            let spelt = self.spelt(table_id, child, snapshot, depth + 1)?;
            parts.push((child.name.as_str(), spelt));
        }
        match (plain.as_str(), parts.as_slice()) {
            ("list", [(_, element)]) => Some(format!("{element}[]")),
            ("map", [(_, key), (_, value)]) => Some(format!("MAP({key}, {value})")),
            ("struct", [_, ..]) => {
                let fields: Vec<String> = parts
                    .iter()
                    .map(|(name, spelt)| format!("{} {spelt}", crate::lake::quoted(name)))
                    .collect();
                Some(format!("STRUCT({})", fields.join(", ")))
            }
            _ => None,
        }
    }
}

impl Version {
    fn is_visible_at(&self, snapshot: u64) -> bool {
        self.begin <= snapshot && self.end.is_none_or(|end| snapshot < end)
    }
}

/// The version that is visible at the snapshot, else the newest.
fn best<'a>(
    versions: impl Iterator<Item = &'a Version> + Clone,
    snapshot: Option<u64>,
) -> Option<&'a Version> {
    let visible =
        snapshot.and_then(|snapshot| versions.clone().find(|version| version.is_visible_at(snapshot)));
    visible.or_else(|| versions.max_by_key(|version| (version.end.is_none(), version.begin)))
}

/// DuckDB's name of a DuckLake type that is not nested.
fn scalar(ducklake_type: &str) -> String {
    let lower = ducklake_type.to_ascii_lowercase();
    let name = match lower.as_str() {
        "int8" => "TINYINT",
        "int16" => "SMALLINT",
        "int32" => "INTEGER",
        "int64" => "BIGINT",
        "int128" => "HUGEINT",
        "uint8" => "UTINYINT",
        "uint16" => "USMALLINT",
        "uint32" => "UINTEGER",
        "uint64" => "UBIGINT",
        "uint128" => "UHUGEINT",
        "float32" => "FLOAT",
        "float64" => "DOUBLE",
        "timetz" => "TIME WITH TIME ZONE",
        "timestamptz" => "TIMESTAMP WITH TIME ZONE",
        "timestamp_us" => "TIMESTAMP",
        _ => return ducklake_type.to_ascii_uppercase(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::ColumnTypes;
    use moraine_tables::Value;
    use std::collections::BTreeSet;

    fn column(
        id: i64,
        begin: i64,
        end: Option<i64>,
        name: &str,
        kind: &str,
        parent: Option<i64>,
    ) -> Vec<Value> {
        let number = |number: Option<i64>| number.map_or(Value::Null, Value::Int64);
        let mut row = vec![
            Value::Int64(id),
            Value::Int64(begin),
            number(end),
            Value::Int64(7),
            Value::Int64(id),
            Value::text(name),
            Value::text(kind),
        ];
        row.extend([Value::Null, Value::Null, Value::Bool(true), number(parent)]);
        row
    }

    #[test]
    fn a_column_has_the_type_it_had_at_the_schema_version() {
        let mut types = ColumnTypes::default();
        let tables = BTreeSet::from([7]);
        for row in [
            column(1, 1, Some(5), "a", "int32", None),
            column(1, 5, None, "a", "int64", None),
            column(2, 1, Some(5), "gone", "varchar", None),
            column(3, 1, None, "s", "struct", None),
            column(4, 1, None, "x", "int8", Some(3)),
            column(5, 1, None, "l", "list", Some(3)),
            column(6, 1, None, "element", "decimal(4,1)", Some(5)),
            column(7, 5, None, "y", "json", Some(3)),
        ] {
            types.add_column(&row, &tables);
        }
        types.add_schema_version(7, 1, 1);
        types.add_schema_version(7, 2, 5);
        assert_eq!(types.ducklake_type(7, 1, "a"), Some("int32"));
        assert_eq!(types.ducklake_type(7, 2, "a"), Some("int64"));
        assert_eq!(types.ducklake_type(7, 2, "gone"), Some("varchar"));
        assert_eq!(types.ducklake_type(7, 2, "never"), None);
        let spelt = |version| types.native_type(7, version, "s");
        assert_eq!(
            spelt(1).as_deref(),
            Some(r#"STRUCT("x" TINYINT, "l" DECIMAL(4,1)[])"#)
        );
        assert_eq!(
            spelt(2).as_deref(),
            Some(r#"STRUCT("x" TINYINT, "l" DECIMAL(4,1)[], "y" JSON)"#)
        );
    }
}
