//! How verbs are told what they are about, and which names things may have.

use crate::lake::entities::same_name;
use crate::verbs::error::{ObjectKind, VerbError};

/// A table that a verb is about: its id, or its name within a schema.
///
/// ```
/// use moraine_commit::verbs::TableRef;
/// let by_name = TableRef::from(("main", "orders"));
/// assert_eq!(by_name.to_string(), "main.orders");
/// assert_eq!(TableRef::from(7).to_string(), "7");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableRef {
    /// The table of this id.
    Id(u64),
    /// The table of this name.
    Name {
        /// The name of the schema.
        schema: String,
        /// The name of the table.
        table: String,
    },
}

impl From<u64> for TableRef {
    fn from(table_id: u64) -> Self {
        TableRef::Id(table_id)
    }
}

impl From<(&str, &str)> for TableRef {
    fn from((schema, table): (&str, &str)) -> Self {
        TableRef::Name {
            schema: schema.to_owned(),
            table: table.to_owned(),
        }
    }
}

impl std::fmt::Display for TableRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TableRef::Id(table_id) => write!(f, "{table_id}"),
            TableRef::Name { schema, table } => write!(f, "{schema}.{table}"),
        }
    }
}

/// A column that a verb is about: its name, or the names of the columns that it is a field of, and its own.
///
/// ```
/// use moraine_commit::verbs::ColumnPath;
/// assert_eq!(ColumnPath::from("a").to_string(), "a");
/// assert_eq!(ColumnPath::from(["address", "street"]).to_string(), "address.street");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnPath(pub(crate) Vec<String>);

impl From<&str> for ColumnPath {
    fn from(name: &str) -> Self {
        ColumnPath(vec![name.to_owned()])
    }
}

impl From<&[&str]> for ColumnPath {
    fn from(names: &[&str]) -> Self {
        ColumnPath(names.iter().map(|name| (*name).to_owned()).collect())
    }
}

impl<const N: usize> From<[&str; N]> for ColumnPath {
    fn from(names: [&str; N]) -> Self {
        ColumnPath::from(names.as_slice())
    }
}

impl From<Vec<String>> for ColumnPath {
    fn from(names: Vec<String>) -> Self {
        ColumnPath(names)
    }
}

impl std::fmt::Display for ColumnPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// What a tag is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagTarget {
    /// The schema of this name.
    Schema(String),
    /// A table.
    Table(TableRef),
    /// A column, or a field of one.
    Column(TableRef, ColumnPath),
    /// A view, by the names of its schema and its own.
    View(String, String),
    /// A macro, by the names of its schema and its own, and its id where two share a name.
    Macro(String, String),
}

/// Column names that the rows of an inlined table have on top of the table's own.
const INLINED_COLUMNS: [&str; 5] = [
    "row_id",
    "begin_snapshot",
    "end_snapshot",
    "_ducklake_internal_snapshot_id",
    "_ducklake_internal_row_id",
];

/// Whether an inlined table cannot have a column of this name.
pub(crate) fn is_inlined_column(name: &str) -> bool {
    INLINED_COLUMNS.iter().any(|taken| same_name(taken, name))
}

/// Refuses a name that nothing can have.
pub(crate) fn check(kind: ObjectKind, name: &str) -> Result<(), VerbError> {
    let refuse = |reason: &str| {
        Err(VerbError::InvalidName {
            kind,
            name: name.to_owned(),
            reason: reason.to_owned(),
        })
    };
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.contains('\0') {
        return refuse("it contains a NUL");
    }
    Ok(())
}

/// The folder of a new schema or table: named like it, or by its UUID where the name has other than letters, digits, `_`
/// and `-` in it. So no name leads out of the lake's data path.
pub(crate) fn folder(name: &str, uuid: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let folder = if name.chars().all(plain) { name } else { uuid };
    format!("{folder}/")
}
