//! Kinds of subspace `index` (RFC 0016): the entries of equality and range indexes.

use crate::bytes_text::ByteString;
use crate::key::{IndexKey, Key};
use crate::kind::{kind, leading_id};

kind! {
    /// An entry of a unique index. Its value is the row id.
    UniqueIndexKey, "index/unique", {
        /// The index.
        index_id: u64,
        /// The indexed values in their ordered form.
        canonical: ByteString,
    }, key => Key::Index(IndexKey::Unique(key))
}

kind! {
    /// An entry of an index that admits duplicates. It has no value.
    MultiIndexKey, "index/multi", {
        /// The index.
        index_id: u64,
        /// The indexed values in their ordered form.
        canonical: ByteString,
        /// The row.
        row_id: u64,
    }, key => Key::Index(IndexKey::Multi(key))
}

leading_id!(UniqueIndexKey.index_id, MultiIndexKey.index_id);
