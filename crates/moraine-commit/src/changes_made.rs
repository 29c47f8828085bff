//! The text of `ducklake_snapshot_changes.changes_made`: its grammar as types, parsed and written. The stored text is
//! kept as the client wrote it; this is for those who need to know what it says.

use std::collections::BTreeSet;
use std::fmt;

/// What one snapshot changed, entry by entry, in the order of the text.
///
/// ```
/// use moraine_commit::{ChangeEntry, ChangesMade};
/// let changes = ChangesMade::parse(r#"created_table:"main"."a,b",inlined_insert:7"#);
/// assert_eq!(changes.entries[1], ChangeEntry::InlinedInsert(7));
/// assert_eq!(changes.to_string(), r#"created_table:"main"."a,b",inlined_insert:7"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangesMade {
    /// The entries, in order.
    pub entries: Vec<ChangeEntry>,
}

/// One entry of [`ChangesMade`]. Ids are those of the catalog tables; names are exact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeEntry {
    /// `dropped_schema:<schema_id>`
    DroppedSchema(u64),
    /// `dropped_table:<table_id>`
    DroppedTable(u64),
    /// `dropped_view:<view_id>`
    DroppedView(u64),
    /// `created_schema:"<name>"`
    CreatedSchema(String),
    /// `created_table:"<schema>"."<name>"`
    CreatedTable(QualifiedName),
    /// `created_view:"<schema>"."<name>"`
    CreatedView(QualifiedName),
    /// `created_scalar_macro:"<schema>"."<name>"`
    CreatedScalarMacro(QualifiedName),
    /// `created_table_macro:"<schema>"."<name>"`
    CreatedTableMacro(QualifiedName),
    /// `dropped_scalar_macro:<macro_id>`
    DroppedScalarMacro(u64),
    /// `dropped_table_macro:<macro_id>`
    DroppedTableMacro(u64),
    /// `inserted_into_table:<table_id>`
    InsertedIntoTable(u64),
    /// `deleted_from_table:<table_id>`
    DeletedFromTable(u64),
    /// `altered_table:<table_id>`
    AlteredTable(u64),
    /// `altered_view:<view_id>`
    AlteredView(u64),
    /// `inlined_insert:<table_id>`: rows inserted without a file
    InlinedInsert(u64),
    /// `inlined_delete:<table_id>`: rows deleted without a delete file
    InlinedDelete(u64),
    /// `inline_flush:<table_id>`, also written `flushed_inlined`
    InlineFlush(u64),
    /// `merge_adjacent:<table_id>`
    MergeAdjacent(u64),
    /// `rewrite_delete:<table_id>`
    RewriteDelete(u64),
    /// `compacted_table:<table_id>`, by older clients
    CompactedTable(u64),
    /// Anything else, verbatim. Whoever looks for conflicts must take it to conflict with everything.
    Unknown(String),
}

/// A name within a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    /// The name of the schema.
    pub schema: String,
    /// The name of the table, view or macro.
    pub name: String,
}

impl ChangesMade {
    /// Parses the text. Never fails: what the grammar does not know becomes [`ChangeEntry::Unknown`]. Kinds are
    /// recognised in any case of letters.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        ChangesMade {
            entries: split_unquoted(text).into_iter().map(ChangeEntry::parse).collect(),
        }
    }

    /// Whether an entry is outside the grammar.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(entry, ChangeEntry::Unknown(_)))
    }

    /// The tables that rows were deleted from by delete files or by ending whole files.
    #[must_use]
    pub fn tables_deleted_from(&self) -> BTreeSet<u64> {
        let table_id = |entry: &ChangeEntry| match entry {
            ChangeEntry::DeletedFromTable(table_id) => Some(*table_id),
            _ => None,
        };
        self.entries.iter().filter_map(table_id).collect()
    }

    /// The tables that rows were deleted from without a file that names them.
    #[must_use]
    pub fn tables_inline_deleted_from(&self) -> BTreeSet<u64> {
        let table_id = |entry: &ChangeEntry| match entry {
            ChangeEntry::InlinedDelete(table_id) => Some(*table_id),
            _ => None,
        };
        self.entries.iter().filter_map(table_id).collect()
    }
}

impl fmt::Display for ChangesMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, entry) in self.entries.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl ChangeEntry {
    fn parse(text: &str) -> Self {
        Self::parse_known(text).unwrap_or_else(|| ChangeEntry::Unknown(text.to_owned()))
    }

    fn parse_known(text: &str) -> Option<Self> {
        let (kind, payload) = text.split_once(':')?;
        let id = || payload.parse::<u64>().ok();
        let name = || QualifiedName::parse(payload);
        Some(match kind.to_ascii_lowercase().as_str() {
            "dropped_schema" => Self::DroppedSchema(id()?),
            "dropped_table" => Self::DroppedTable(id()?),
            "dropped_view" => Self::DroppedView(id()?),
            "created_schema" => match quoted(payload)? {
                (schema, "") => Self::CreatedSchema(schema),
                _ => return None,
            },
            "created_table" => Self::CreatedTable(name()?),
            "created_view" => Self::CreatedView(name()?),
            "created_scalar_macro" => Self::CreatedScalarMacro(name()?),
            "created_table_macro" => Self::CreatedTableMacro(name()?),
            "dropped_scalar_macro" => Self::DroppedScalarMacro(id()?),
            "dropped_table_macro" => Self::DroppedTableMacro(id()?),
            "inserted_into_table" => Self::InsertedIntoTable(id()?),
            "deleted_from_table" => Self::DeletedFromTable(id()?),
            "altered_table" => Self::AlteredTable(id()?),
            "altered_view" => Self::AlteredView(id()?),
            "inlined_insert" => Self::InlinedInsert(id()?),
            "inlined_delete" => Self::InlinedDelete(id()?),
            "inline_flush" | "flushed_inlined" => Self::InlineFlush(id()?),
            "merge_adjacent" => Self::MergeAdjacent(id()?),
            "rewrite_delete" => Self::RewriteDelete(id()?),
            "compacted_table" => Self::CompactedTable(id()?),
            _ => return None,
        })
    }
}

impl fmt::Display for ChangeEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DroppedSchema(id) => write!(f, "dropped_schema:{id}"),
            Self::DroppedTable(id) => write!(f, "dropped_table:{id}"),
            Self::DroppedView(id) => write!(f, "dropped_view:{id}"),
            Self::CreatedSchema(name) => write!(f, "created_schema:{}", Quoted(name)),
            Self::CreatedTable(name) => write!(f, "created_table:{name}"),
            Self::CreatedView(name) => write!(f, "created_view:{name}"),
            Self::CreatedScalarMacro(name) => write!(f, "created_scalar_macro:{name}"),
            Self::CreatedTableMacro(name) => write!(f, "created_table_macro:{name}"),
            Self::DroppedScalarMacro(id) => write!(f, "dropped_scalar_macro:{id}"),
            Self::DroppedTableMacro(id) => write!(f, "dropped_table_macro:{id}"),
            Self::InsertedIntoTable(id) => write!(f, "inserted_into_table:{id}"),
            Self::DeletedFromTable(id) => write!(f, "deleted_from_table:{id}"),
            Self::AlteredTable(id) => write!(f, "altered_table:{id}"),
            Self::AlteredView(id) => write!(f, "altered_view:{id}"),
            Self::InlinedInsert(id) => write!(f, "inlined_insert:{id}"),
            Self::InlinedDelete(id) => write!(f, "inlined_delete:{id}"),
            Self::InlineFlush(id) => write!(f, "inline_flush:{id}"),
            Self::MergeAdjacent(id) => write!(f, "merge_adjacent:{id}"),
            Self::RewriteDelete(id) => write!(f, "rewrite_delete:{id}"),
            Self::CompactedTable(id) => write!(f, "compacted_table:{id}"),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

impl QualifiedName {
    fn parse(text: &str) -> Option<Self> {
        let (schema, rest) = quoted(text)?;
        match quoted(rest.strip_prefix('.')?)? {
            (name, "") => Some(QualifiedName { schema, name }),
            _ => None,
        }
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", Quoted(&self.schema), Quoted(&self.name))
    }
}

/// A name in double quotes, inner ones doubled.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// A quoted name at the start of `text`, unquoted, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(after_escape) => {
                name.push('"');
                rest = after_escape;
            }
            None => return Some((name, after)),
        }
    }
}

/// The entries of the text: its parts between commas that stand outside quotes.
fn split_unquoted(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut in_quotes = false;
    text.split(|letter| {
        in_quotes ^= letter == '"';
        letter == ',' && !in_quotes
    })
    .collect()
}
