//! Keys as people write them: a subspace, a kind, a key as errors and reports print it, or bytes in hexadecimal, read as
//! the range of keys that it stands for. What is printed reads back; the bytes themselves are in [`crate::key`].

use bytes::Bytes;

use crate::bytes_text::ByteString;
use crate::kind::{Archived, ComponentType, History, Kind, prefix_with_ids};
use crate::kinds::directory::{DeleteTargetKey, NameKey};
use crate::kinds::entity::{
    ColumnKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, IndexDefinitionKey, MacroKey,
    MappingKey, OptionKey, PartitionKey, SchemaKey, SortKey, TableColumnStatsKey, TableKey, TableStatsKey,
    TagKey, ViewKey,
};
use crate::kinds::index::{MultiIndexKey, UniqueIndexKey};
use crate::kinds::inline::{
    ChunkLocatorKey, ChunkRangeKey, FileDeleteTableKey, InlineDeleteKey, InlineFileDeleteKey,
    InlineInsertKey, InlineSchemaKey, RowTombstoneKey, SchemaDroppedKey,
};
use crate::kinds::system::{
    ChangelogKey, FormatKey, HeadKey, MaintenanceStatusKey, MigrationKey, SchemaVersionKey, SnapshotKey,
};
use crate::range::KeyRange;

/// Why a text stands for no keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextError {
    /// No kind, subspace or path of the tree is called that.
    #[error("{name:?} is no kind of key; kinds are {kinds}")]
    UnknownKind {
        /// What was written.
        name: String,
        /// The kinds there are, separated by commas.
        kinds: String,
    },
    /// A component that the kind does not have there.
    #[error(
        "the components of {kind} are {{{components}}}, in this order from the first on; {found:?} is out of place"
    )]
    UnknownComponent {
        /// The kind.
        kind: &'static str,
        /// Its components, separated by commas.
        components: String,
        /// What was written.
        found: String,
    },
    /// A component whose value cannot be read.
    #[error("{component} of {kind} is {expected}, not {found:?}")]
    InvalidComponent {
        /// The kind.
        kind: &'static str,
        /// The component.
        component: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// What was written.
        found: String,
    },
    /// Bytes that are not written as pairs of hexadecimal digits.
    #[error("{found:?} is not bytes in hexadecimal, two digits each")]
    InvalidHex {
        /// What was written.
        found: String,
    },
    /// A list of components that does not end.
    #[error("{found:?} has no closing brace")]
    Unclosed {
        /// What was written.
        found: String,
    },
}

/// A kind, for reading texts.
struct KindText {
    name: &'static str,
    discriminants: Bytes,
    shape: Vec<(&'static str, ComponentType)>,
}

fn of<K: Kind>() -> KindText {
    KindText {
        name: K::NAME,
        discriminants: prefix_with_ids(&K::default(), 0),
        shape: K::shape(),
    }
}

macro_rules! kinds {
    ($($key:ty),+ $(,)?) => {
        fn kinds() -> Vec<KindText> {
            vec![$(of::<$key>()),+]
        }
    };
}

kinds![
    FormatKey,
    HeadKey,
    MigrationKey,
    MaintenanceStatusKey,
    SnapshotKey,
    SchemaKey,
    TableKey,
    ViewKey,
    ColumnKey,
    PartitionKey,
    DataFileKey,
    DeleteFileKey,
    FileColumnStatsKey,
    TableStatsKey,
    TableColumnStatsKey,
    TagKey,
    OptionKey,
    SortKey,
    MacroKey,
    MappingKey,
    IndexDefinitionKey,
    GcFileKey,
    History<SchemaKey>,
    History<TableKey>,
    History<ViewKey>,
    History<ColumnKey>,
    History<PartitionKey>,
    History<DataFileKey>,
    History<DeleteFileKey>,
    History<SortKey>,
    History<MacroKey>,
    History<IndexDefinitionKey>,
    InlineSchemaKey,
    InlineInsertKey,
    InlineDeleteKey,
    InlineFileDeleteKey,
    Archived<InlineInsertKey>,
    Archived<InlineDeleteKey>,
    Archived<InlineFileDeleteKey>,
    FileDeleteTableKey,
    ChunkRangeKey,
    SchemaDroppedKey,
    ChunkLocatorKey,
    RowTombstoneKey,
    UniqueIndexKey,
    MultiIndexKey,
    SchemaVersionKey,
    ChangelogKey,
    NameKey,
    DeleteTargetKey,
];

impl KeyRange {
    /// The keys that `text` stands for:
    /// - a subspace or another path of the tree (`current`, `inline/live`): every key below it;
    /// - a kind (`current/column`): every key of it;
    /// - a kind with its first components, or all of them (`current/column{table_id=7}`): every key that begins so.
    ///   Texts are in double quotes as errors print them, bytes in hexadecimal;
    /// - `0x` and bytes in hexadecimal: every key that begins with them;
    /// - nothing: every key.
    ///
    /// ```
    /// use moraine_keys::{ColumnKey, Kind, KeyRange, TableScoped};
    /// assert_eq!(KeyRange::from_text("current/column{table_id=7}"), Ok(ColumnKey::scan_table(7)));
    /// assert_eq!(KeyRange::from_text("0x040205"), Ok(ColumnKey::scan()));
    /// ```
    ///
    /// # Errors
    /// [`KeyTextError`] says what of the text is not understood.
    pub fn from_text(text: &str) -> Result<Self, KeyTextError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::all());
        }
        if let Some(digits) = text.strip_prefix("0x") {
            return Ok(Self::prefix(&hex(digits)?));
        }
        match text.split_once('{') {
            None => path(text),
            Some((name, rest)) => {
                let components = rest.strip_suffix('}').ok_or_else(|| KeyTextError::Unclosed {
                    found: text.to_owned(),
                })?;
                of_kind(name, components)
            }
        }
    }
}

/// All kinds below a path of the tree. Their keys lie side by side.
fn path(name: &str) -> Result<KeyRange, KeyTextError> {
    let name = name.trim_end_matches('/');
    let below = |kind: &KindText| {
        kind.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let ranges = kinds()
        .into_iter()
        .filter(below)
        .map(|kind| KeyRange::prefix(&kind.discriminants));
    ranges
        .reduce(|all, range| KeyRange {
            start: all.start.min(range.start),
            end: all.end.zip(range.end).map(|(all, end)| all.max(end)),
        })
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> KeyTextError {
    let kinds: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
    KeyTextError::UnknownKind {
        name: name.to_owned(),
        kinds: kinds.join(", "),
    }
}

fn of_kind(name: &str, components: &str) -> Result<KeyRange, KeyTextError> {
    let kind = kinds()
        .into_iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| unknown(name))?;
    let mut prefix = kind.discriminants.to_vec();
    let mut shape = kind.shape.iter();
    let mut rest = components.trim();
    while !rest.is_empty() {
        let out_of_place = || KeyTextError::UnknownComponent {
            kind: kind.name,
            components: kind
                .shape
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", "),
            found: rest.to_owned(),
        };
        let (component, component_type) = shape.next().ok_or_else(out_of_place)?;
        let value = rest
            .strip_prefix(component)
            .and_then(|after| after.trim_start().strip_prefix('='))
            .ok_or_else(out_of_place)?
            .trim_start();
        let (text, after) = split_value(value);
        push(&mut prefix, *component_type, text).map_err(|expected| KeyTextError::InvalidComponent {
            kind: kind.name,
            component,
            expected,
            found: text.to_owned(),
        })?;
        rest = after.trim_start();
    }
    Ok(KeyRange::prefix(&prefix))
}

/// A value, and what follows the comma after it.
fn split_value(text: &str) -> (&str, &str) {
    let mut escaped = false;
    let quoted = text.starts_with('"');
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if quoted && at > 0 => {
                let (value, after) = text.split_at(at + 1);
                return (value, after.trim_start().trim_start_matches(','));
            }
            ',' if !quoted => return (text[..at].trim_end(), &text[at + 1..]),
            _ => {}
        }
    }
    (text.trim_end(), "")
}

/// Appends a component, or says what it has to be.
fn push(prefix: &mut Vec<u8>, component: ComponentType, text: &str) -> Result<(), &'static str> {
    let written = match component {
        ComponentType::Id => {
            let id: u64 = text.parse().map_err(|_| "an integer of 64 bits")?;
            prefix.extend_from_slice(&id.to_be_bytes());
            return Ok(());
        }
        ComponentType::Name => {
            let name = unquoted(text).ok_or("a text in double quotes")?;
            storekey::encode_vec(&name)
        }
        ComponentType::Bytes => {
            let bytes = hex(text).map_err(|_| "bytes in hexadecimal")?;
            storekey::encode_vec(&ByteString(bytes))
        }
    };
    // Writing into memory does not fail.
    prefix.extend(written.unwrap_or_default());
    Ok(())
}

/// The text that Rust's `{:?}` wrote.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut name = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                'u' => code_point(&mut chars)?,
                c => c,
            },
            '"' => return None,
            c => c,
        };
        name.push(c);
    }
    Some(name)
}

/// The rest of `\u{…}`.
fn code_point(chars: &mut std::str::Chars<'_>) -> Option<char> {
    if chars.next() != Some('{') {
        return None;
    }
    let digits: String = chars.by_ref().take_while(|c| *c != '}').collect();
    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
}

fn hex(digits: &str) -> Result<Vec<u8>, KeyTextError> {
    let invalid = || KeyTextError::InvalidHex {
        found: digits.to_owned(),
    };
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(invalid());
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| {
            let pair = digits.get(at..at + 2).ok_or_else(invalid)?;
            u8::from_str_radix(pair, 16).map_err(|_| invalid())
        })
        .collect()
}
