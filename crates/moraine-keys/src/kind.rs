//! What every kind of key has in common: its place in the tree, its text, and the scan bounds that follow from its
//! components. The kinds themselves are in [`crate::kinds`].

use std::fmt;
use std::hash::Hash;
use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::error::KeyError;
use crate::key::{EntityKey, HistoryKey, InlineKey, InlineOperation, Key};
use crate::range::KeyRange;

/// Encoded length of an integer component.
pub(crate) const ID_BYTES: usize = size_of::<u64>();

/// The components of a kind: what follows its discriminants. Sealed, because the set of kinds is the format.
pub trait Components {
    /// Encoded length of all components.
    fn components_len(&self) -> usize;
    /// Calls `field` with name and value of each component in order.
    fn each(&self, field: &mut dyn FnMut(&'static str, &dyn fmt::Display) -> fmt::Result) -> fmt::Result;
    /// Name and type of each component in order.
    fn shape() -> Vec<(&'static str, ComponentType)>
    where
        Self: Sized;
}

/// What a component is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentType {
    /// An integer.
    Id,
    /// A text.
    Name,
    /// Bytes.
    Bytes,
}

/// A kind of key: one leaf of the tree [`Key`] as a type of its own.
pub trait Kind:
    Components + Clone + Default + fmt::Debug + fmt::Display + Eq + Ord + Hash + Send + Sync + 'static
{
    /// Path in the tree, such as `current/table`. Errors and reports use it.
    const NAME: &'static str;

    /// The key in the tree.
    fn to_key(&self) -> Key;

    /// The kind's own form of `key`.
    ///
    /// # Errors
    /// [`KeyError::WrongKind`] when the key is of another kind.
    fn from_key(key: Key) -> Result<Self, KeyError>;

    /// The bytes of the key.
    fn encode(&self) -> Bytes {
        self.to_key().encode()
    }

    /// The key of this kind whose bytes these are.
    ///
    /// # Errors
    /// [`KeyError::WrongKind`] for a key of another kind, and whatever [`Key::decode`] finds.
    fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_key(Key::decode(bytes)?)
    }

    /// All keys of this kind.
    fn scan() -> KeyRange {
        KeyRange::prefix(&prefix_with_ids(&Self::default(), 0))
    }
}

/// A kind whose first component is an id.
pub trait LeadingId: Kind {
    /// The least key of this kind whose first component is `id`: everything after it is zero or empty.
    fn least_with_id(id: u64) -> Self;

    /// The first component.
    fn leading_id(&self) -> u64;

    /// All keys of this kind whose first component lies in `ids`.
    fn scan_ids(ids: RangeInclusive<u64>) -> KeyRange {
        KeyRange::ids(&ids, |id| prefix_with_ids(&Self::least_with_id(id), 1))
    }
}

/// A kind whose first component is a table id.
pub trait TableScoped: LeadingId {
    /// All keys of this kind that belong to the table.
    fn scan_table(table_id: u64) -> KeyRange {
        Self::scan_ids(table_id..=table_id)
    }
}

/// A kind whose first component is a table id and whose second is an integer too.
pub trait TableChild: TableScoped {
    /// The least key of this kind that starts with these two components: everything after them is zero or empty.
    fn least_with_ids(table_id: u64, id: u64) -> Self;

    /// The second component.
    fn child_id(&self) -> u64;

    /// All keys of this kind that belong to the table and whose second component lies in `ids`.
    fn scan_table_ids(table_id: u64, ids: RangeInclusive<u64>) -> KeyRange {
        KeyRange::ids(&ids, |id| prefix_with_ids(&Self::least_with_ids(table_id, id), 2))
    }
}

/// One of the sixteen kinds of `current/entity`.
pub trait Entity: Kind {
    /// Path in the tree of the kind's ended versions, such as `history/table`.
    const HISTORY_NAME: &'static str;

    /// The entity's key in the tree.
    fn to_entity(&self) -> EntityKey;

    /// The kind's own form of `entity`.
    ///
    /// # Errors
    /// [`KeyError::WrongKind`] when the entity is of another kind.
    fn from_entity(entity: EntityKey) -> Result<Self, KeyError>;
}

/// An entity whose ended versions are kept in subspace `history`.
pub trait Versioned: Entity {}

/// An ended version of the entity `K`: a key of subspace `history`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct History<K> {
    /// The entity.
    pub entity: K,
    /// The first snapshot at which this version is no longer seen.
    pub end_snapshot: u64,
}

impl<K: Versioned> Components for History<K> {
    fn components_len(&self) -> usize {
        self.entity.components_len() + ID_BYTES
    }

    fn each(&self, field: &mut dyn FnMut(&'static str, &dyn fmt::Display) -> fmt::Result) -> fmt::Result {
        self.entity.each(field)?;
        field("end_snapshot", &self.end_snapshot)
    }

    fn shape() -> Vec<(&'static str, ComponentType)> {
        let mut shape = K::shape();
        shape.push(("end_snapshot", ComponentType::Id));
        shape
    }
}

impl<K: Versioned> fmt::Display for History<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(f, Self::NAME, self, None)
    }
}

impl<K: Versioned> Kind for History<K> {
    const NAME: &'static str = K::HISTORY_NAME;

    fn to_key(&self) -> Key {
        Key::History(HistoryKey {
            entity: self.entity.to_entity(),
            end_snapshot: self.end_snapshot,
        })
    }

    fn from_key(key: Key) -> Result<Self, KeyError> {
        if let Key::History(history) = &key
            && let Ok(entity) = K::from_entity(history.entity.clone())
        {
            return Ok(Self {
                entity,
                end_snapshot: history.end_snapshot,
            });
        }
        Err(wrong_kind(Self::NAME, &key))
    }
}

impl<K: Versioned + LeadingId> LeadingId for History<K> {
    fn least_with_id(id: u64) -> Self {
        Self {
            entity: K::least_with_id(id),
            end_snapshot: 0,
        }
    }

    fn leading_id(&self) -> u64 {
        self.entity.leading_id()
    }
}

impl<K: Versioned + TableScoped> TableScoped for History<K> {}

impl<K: Versioned + TableChild> TableChild for History<K> {
    fn least_with_ids(table_id: u64, id: u64) -> Self {
        Self {
            entity: K::least_with_ids(table_id, id),
            end_snapshot: 0,
        }
    }

    fn child_id(&self) -> u64 {
        self.entity.child_id()
    }
}

/// One of the three kinds of `inline/live`.
pub trait Live: Kind {
    /// Path in the tree of the same operation under `inline/archived`.
    const ARCHIVED_NAME: &'static str;

    /// The operation in the tree.
    fn to_operation(&self) -> InlineOperation;

    /// The kind's own form of `operation`.
    ///
    /// # Errors
    /// [`KeyError::WrongKind`] when the operation is of another kind.
    fn from_operation(operation: InlineOperation) -> Result<Self, KeyError>;
}

/// The operation `K` under `inline/archived`. No version of the format writes such keys; they only decode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Archived<K> {
    /// The operation.
    pub operation: K,
}

impl<K: Live> Components for Archived<K> {
    fn components_len(&self) -> usize {
        self.operation.components_len()
    }

    fn each(&self, field: &mut dyn FnMut(&'static str, &dyn fmt::Display) -> fmt::Result) -> fmt::Result {
        self.operation.each(field)
    }

    fn shape() -> Vec<(&'static str, ComponentType)> {
        K::shape()
    }
}

impl<K: Live> fmt::Display for Archived<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(f, Self::NAME, self, None)
    }
}

impl<K: Live> Kind for Archived<K> {
    const NAME: &'static str = K::ARCHIVED_NAME;

    fn to_key(&self) -> Key {
        Key::Inline(InlineKey::Archived(self.operation.to_operation()))
    }

    fn from_key(key: Key) -> Result<Self, KeyError> {
        if let Key::Inline(InlineKey::Archived(operation)) = &key
            && let Ok(operation) = K::from_operation(operation.clone())
        {
            return Ok(Self { operation });
        }
        Err(wrong_kind(Self::NAME, &key))
    }
}

impl<K: Live + LeadingId> LeadingId for Archived<K> {
    fn least_with_id(id: u64) -> Self {
        Self {
            operation: K::least_with_id(id),
        }
    }

    fn leading_id(&self) -> u64 {
        self.operation.leading_id()
    }
}

impl<K: Live + TableScoped> TableScoped for Archived<K> {}

/// The bytes that all keys share which agree with `key` in its discriminants and its first `ids` components, all of
/// them integers.
pub(crate) fn prefix_with_ids<K: Kind>(key: &K, ids: usize) -> Bytes {
    let mut bytes = key.encode();
    let discriminants = bytes.len().saturating_sub(key.components_len());
    bytes.truncate(discriminants + ids * ID_BYTES);
    bytes
}

/// The bytes that all keys share which agree with `key` in all but its last component, an integer.
pub(crate) fn prefix_before_last_id<K: Kind>(key: &K) -> Bytes {
    let mut bytes = key.encode();
    bytes.truncate(bytes.len().saturating_sub(ID_BYTES));
    bytes
}

pub(crate) fn wrong_kind(expected: &'static str, found: &dyn fmt::Display) -> KeyError {
    KeyError::WrongKind {
        expected,
        found: found.to_string(),
    }
}

/// Writes a key for people: `current/column{table_id=7, column_id=3}`.
pub(crate) fn write_key(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    components: &dyn Components,
    end_snapshot: Option<u64>,
) -> fmt::Result {
    f.write_str(name)?;
    let mut opened = false;
    let mut field = |name: &'static str, value: &dyn fmt::Display| {
        let before = if opened { ", " } else { "{" };
        opened = true;
        write!(f, "{before}{name}={value}")
    };
    components.each(&mut field)?;
    if let Some(end_snapshot) = end_snapshot {
        field("end_snapshot", &end_snapshot)?;
    }
    if opened { f.write_str("}") } else { Ok(()) }
}

/// Declares a kind: the struct, its codec, its text and its place in the tree.
///
/// The place is both the expression that makes a [`Key`] from `key` and the pattern that takes one apart.
macro_rules! kind {
    ($(#[$meta:meta])* $name:ident, $text:expr, {}, $key:ident => $($place:tt)+) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, storekey::Encode, storekey::Decode,
        )]
        pub struct $name;

        $crate::kind::kind! { @impl $name, $text, {}, $key => $($place)+ }
    };
    ($(#[$meta:meta])* $name:ident, $text:expr, { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? },
     $key:ident => $($place:tt)+) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, storekey::Encode, storekey::Decode,
        )]
        pub struct $name { $($(#[$field_meta])* pub $field: $type),* }

        $crate::kind::kind! { @impl $name, $text, { $($field),* }, $key => $($place)+ }
    };
    (@impl $name:ident, $text:expr, { $($field:ident),* }, $key:ident => $($place:tt)+) => {
        impl $crate::kind::Components for $name {
            fn components_len(&self) -> usize {
                // Writing into memory does not fail.
                storekey::encode_vec(self).map_or(0, |bytes| bytes.len())
            }

            fn each(
                &self,
                field: &mut dyn FnMut(&'static str, &dyn std::fmt::Display) -> std::fmt::Result,
            ) -> std::fmt::Result {
                $(field(stringify!($field), &$crate::kind::text(&self.$field))?;)*
                let _ = field;
                Ok(())
            }

            fn shape() -> Vec<(&'static str, $crate::kind::ComponentType)> {
                let key = Self::default();
                let _ = &key;
                vec![$((stringify!($field), $crate::kind::type_of(&key.$field))),*]
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::kind::write_key(f, <Self as $crate::kind::Kind>::NAME, self, None)
            }
        }

        impl $crate::kind::Kind for $name {
            const NAME: &'static str = $text;

            fn to_key(&self) -> $crate::key::Key {
                let $key = self.clone();
                $($place)+
            }

            fn from_key(key: $crate::key::Key) -> Result<Self, $crate::error::KeyError> {
                match key {
                    $($place)+ => Ok($key),
                    other => Err($crate::kind::wrong_kind(Self::NAME, &other)),
                }
            }
        }
    };
}
pub(crate) use kind;

/// Says which component of a kind is the leading id.
macro_rules! leading_id {
    ($($name:ident.$id:ident),+ $(,)?) => { $(
        impl $crate::kind::LeadingId for $name {
            fn least_with_id(id: u64) -> Self {
                // A kind of one component leaves nothing to be filled in.
                #[allow(clippy::needless_update)]
                Self { $id: id, ..Self::default() }
            }

            fn leading_id(&self) -> u64 {
                self.$id
            }
        }
    )+ };
}
pub(crate) use leading_id;

/// Declares kinds whose first component is `table_id`, and, after a dot, names their second one.
macro_rules! table_scoped {
    ($($name:ident $(. $child:ident)?),+ $(,)?) => { $(
        $crate::kind::leading_id!($name.table_id);
        impl $crate::kind::TableScoped for $name {}
        $(
            impl $crate::kind::TableChild for $name {
                fn least_with_ids(table_id: u64, id: u64) -> Self {
                    #[allow(clippy::needless_update)]
                    Self { table_id, $child: id, ..Self::default() }
                }

                fn child_id(&self) -> u64 {
                    self.$child
                }
            }
        )?
    )+ };
}
pub(crate) use table_scoped;

/// A component as text: numbers as they are, names in quotes, byte strings in hexadecimal.
pub(crate) fn text<T: ComponentText>(component: &T) -> impl fmt::Display + '_ {
    Text(component)
}

struct Text<'a, T>(&'a T);

impl<T: ComponentText> fmt::Display for Text<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_text(f)
    }
}

/// The type of a component.
pub(crate) fn type_of<T: ComponentText>(_: &T) -> ComponentType {
    T::TYPE
}

pub(crate) trait ComponentText {
    const TYPE: ComponentType;

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl ComponentText for u64 {
    const TYPE: ComponentType = ComponentType::Id;

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl ComponentText for String {
    const TYPE: ComponentType = ComponentType::Name;

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl ComponentText for crate::bytes_text::ByteString {
    const TYPE: ComponentType = ComponentType::Bytes;

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
