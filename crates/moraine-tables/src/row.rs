//! A row as it is served, and where it lives: the address by which a later statement of the same transaction finds it
//! again.

use std::hash::{DefaultHasher, Hasher};

use moraine_keys::Key;
use prost::Message;

use crate::value::Value;

/// One row of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The projected values, in the order of the projection.
    pub values: Vec<Value>,
    /// Where the row lives.
    pub address: RowAddress,
}

/// Where a row lives. It names the row by identity, so it outlives other rows' coming and going within a transaction;
/// once the row itself is changed or removed, the address finds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowAddress(pub(crate) Place);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The row is the record under this key.
    Record(Key),
    /// The row is embedded in the record under this key.
    Child(Key, ChildPlace),
    /// The row is the entry of this name in the option record under this key.
    Option(Key, String),
    /// One version of an inlined row.
    InlinedRow { row_id: u64, begin_snapshot: u64 },
    /// One row of a data file deleted in the catalog.
    InlinedDelete { data_file_id: u64, row_id: u64 },
    /// A registered inlined table.
    Registration { table_id: u64, schema_version: u64 },
}

/// An embedded row: where it stood when it was read, and a fingerprint of what it was. Equal siblings are
/// interchangeable, so either may be taken for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChildPlace {
    /// Position among the record's children, all levels counted through.
    pub(crate) position: u32,
    /// Fingerprint of the child's content and of the child it is nested in.
    pub(crate) fingerprint: u64,
}

impl RowAddress {
    /// The key of the record the row is, or is embedded in.
    pub(crate) fn record_key(&self) -> Option<&Key> {
        match &self.0 {
            Place::Record(key) | Place::Child(key, _) | Place::Option(key, _) => Some(key),
            _ => None,
        }
    }
}

/// A fingerprint of an embedded row nested under `outer`.
pub(crate) fn fingerprint(outer: u64, child: &impl Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(outer);
    hasher.write(&child.encode_to_vec());
    hasher.finish()
}
