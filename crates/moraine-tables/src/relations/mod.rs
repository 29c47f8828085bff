//! How each relation's rows lie in records. A relation whose row is a record of its own is a [`RecordRelation`]; one whose
//! rows are embedded in another relation's record is an [`EmbeddedRelation`]. What is neither has a module of its own.

pub(crate) mod column_tags;
pub(crate) mod embedded;
pub(crate) mod entities;
pub(crate) mod files;
pub(crate) mod layouts;
pub(crate) mod macros;
pub(crate) mod mappings;
pub(crate) mod options;
pub(crate) mod records;
pub(crate) mod registrations;
pub(crate) mod schema_versions;
pub(crate) mod snapshots;
pub(crate) mod stats;
pub(crate) mod tags;

use std::future::Future;

use moraine_codec::{Record, Stored};
use moraine_keys::{Key, KeyRange, Kind};
use moraine_store::{ReadExt, Staging};
use prost::Message;

use crate::cell::CellError;
use crate::error::TableError;
use crate::plan::{KeyIds, Plan};
use crate::relation::Relation;
use crate::value::Value;

/// What rows are sorted by: DuckLake reads without `ORDER BY` and relies on the order of insertion.
pub(crate) type Order = [u64; 3];

/// The ids by which a row names the record it is embedded in, unused ones 0.
pub(crate) type OwnerIds = [u64; 3];

/// The columns that hold the components of the record's key.
pub(crate) type KeyColumns = [Option<usize>; 3];

/// A relation each of whose rows is one record.
pub(crate) trait RecordRelation: Send + Sync + 'static {
    /// The relation.
    const RELATION: Relation;
    /// The key of a live record.
    type Key: Stored<Value = Self::Record>;
    /// The key of an ended record; of relations without history, the same as `Key`.
    type Past: Stored<Value = Self::Record>;
    /// The record.
    type Record: Message + Default + Clone + Send + Sync;
    /// Where `end_snapshot` is, in relations with history.
    const END: Option<usize>;
    /// Where the key's components are.
    const KEY_COLUMNS: KeyColumns;
    /// Whether the order of keys is the order of rows, so that rows need not be sorted.
    const IN_KEY_ORDER: bool = false;

    /// One column of a row.
    fn get(record: &Self::Record, column: usize) -> Result<Value, CellError>;
    /// Sets one column of a row.
    fn set(record: &mut Self::Record, column: usize, cell: &Value) -> Result<(), CellError>;
    /// The key of the record, were it live.
    fn key(record: &Self::Record) -> Self::Key;
    /// The record under the key that its `end_snapshot` asks for.
    fn stored(record: Self::Record) -> Record;
    /// Whether the record stands for a row.
    fn is_row(_record: &Self::Record) -> bool {
        true
    }
    /// What rows are sorted by.
    fn order(record: &Self::Record) -> Order;
    /// Where live records lie.
    fn plan(ids: &KeyIds) -> Plan<Self::Key>;
    /// Where ended records lie; `None` in relations without history.
    fn past_plan(ids: &KeyIds) -> Option<Plan<Self::Past>>;
    /// The third component of a key, in relations that have one; only live records are told apart by it.
    fn third(_key: &Self::Key) -> u64 {
        0
    }
    /// The ended records of the entity that is live under this key; `None` in relations without history.
    fn past_of(key: &Self::Key) -> Option<KeyRange>;
}

/// A relation whose rows are embedded in records of another.
pub(crate) trait EmbeddedRelation: Send + Sync + 'static {
    /// The relation.
    const RELATION: Relation;
    /// The relation whose records hold the rows.
    type Owner: RecordRelation;
    /// One row, without what the record it is in says.
    type Child: Message + Default + Clone + Send + Sync;
    /// Which of this relation's columns hold the components of the owner's key.
    const KEY_COLUMNS: KeyColumns;
    /// Which of this relation's columns name the owner, in the order in which [`EmbeddedRelation::find_owner`] takes them.
    const OWNER_COLUMNS: &'static [usize];
    /// Whether only the newest version of an owner shows its rows.
    const NEWEST_ONLY: bool = false;
    /// Whether an owner that holds no row is removed, and made when the first row comes.
    const OWNER_IS_CONTAINER: bool = false;

    /// One column of a row. `outer` is the id of the level between, 0 if there is none.
    fn get(
        owner: &OwnerRecord<Self>,
        outer: u64,
        child: &Self::Child,
        column: usize,
    ) -> Result<Value, CellError>;
    /// Sets one column of a row; columns of the owner must keep their value.
    fn set(
        owner: &OwnerRecord<Self>,
        outer: u64,
        child: &mut Self::Child,
        column: usize,
        cell: &Value,
    ) -> Result<(), CellError>;
    /// The rows of a record, in stored order.
    fn children(owner: &OwnerRecord<Self>) -> Vec<(u64, &Self::Child)>;
    /// Takes the rows out of a record.
    fn take(owner: &mut OwnerRecord<Self>) -> Vec<(u64, Self::Child)>;
    /// Puts rows into a record that holds none. An outer id that is not there is given back.
    fn put(owner: &mut OwnerRecord<Self>, children: Vec<(u64, Self::Child)>) -> Result<(), u64>;
    /// What rows are sorted by before their stored order.
    fn order(owner: &OwnerRecord<Self>, outer: u64, child: &Self::Child) -> Order;
    /// The id of the level between that a row names, 0 if there is none.
    fn outer(_row: &[Value]) -> Result<u64, (usize, CellError)> {
        Ok(0)
    }
    /// The record that a new row belongs to: its key and itself.
    fn find_owner(
        read: &Staging,
        ids: OwnerIds,
    ) -> impl Future<Output = Result<Option<(Key, OwnerRecord<Self>)>, TableError>> + Send;
    /// An owner without rows, for relations that are containers.
    fn new_owner(_ids: OwnerIds) -> OwnerRecord<Self> {
        OwnerRecord::<Self>::default()
    }
}

/// The record that holds the rows of an embedded relation.
pub(crate) type OwnerRecord<E> = <<E as EmbeddedRelation>::Owner as RecordRelation>::Record;

/// The live record of an entity, else its version that ended last.
pub(crate) async fn newest<R: RecordRelation>(
    read: &Staging,
    key: R::Key,
) -> Result<Option<(Key, R::Record)>, TableError> {
    if let Some(record) = read.value(&key).await? {
        return Ok(Some((key.to_key(), record)));
    }
    let Some(range) = R::past_of(&key) else {
        return Ok(None);
    };
    let versions = read.records::<R::Past>(range).await?;
    Ok(versions
        .into_iter()
        .next_back()
        .map(|(key, record)| (key.to_key(), record)))
}

/// Declares a relation with history, keyed by one id (`leading`) or by a table and an id (`child`).
macro_rules! versioned_relation {
    ($plan:ident, $key:ident { $($id:ident),+ }, $record:ident, $range:expr) => {
        type Key = moraine_keys::$key;
        type Past = moraine_keys::History<moraine_keys::$key>;
        type Record = moraine_codec::proto::$record;

        fn key(record: &Self::Record) -> Self::Key {
            moraine_keys::$key { $($id: record.$id),+ }
        }

        fn stored(record: Self::Record) -> moraine_codec::Record {
            let entity = Self::key(&record);
            match record.end_snapshot {
                Some(end_snapshot) => (moraine_keys::History { entity, end_snapshot }, record).into(),
                None => (entity, record).into(),
            }
        }

        fn plan(ids: &$crate::plan::KeyIds) -> $crate::plan::Plan<Self::Key> {
            $crate::plan::$plan(ids)
        }

        fn past_plan(ids: &$crate::plan::KeyIds) -> Option<$crate::plan::Plan<Self::Past>> {
            Some($crate::plan::$plan(ids))
        }

        fn past_of(key: &Self::Key) -> Option<moraine_keys::KeyRange> {
            let range: fn(&Self::Key) -> moraine_keys::KeyRange = $range;
            Some(range(key))
        }
    };
}

/// Declares a relation without history.
macro_rules! plain_relation {
    ($plan:ident, $key:ident { $($id:ident),+ }, $record:ident) => {
        type Key = moraine_keys::$key;
        type Past = moraine_keys::$key;
        type Record = moraine_codec::proto::$record;
        const END: Option<usize> = None;

        fn key(record: &Self::Record) -> Self::Key {
            moraine_keys::$key { $($id: record.$id),+ }
        }

        fn stored(record: Self::Record) -> moraine_codec::Record {
            (Self::key(&record), record).into()
        }

        fn plan(ids: &$crate::plan::KeyIds) -> $crate::plan::Plan<Self::Key> {
            $crate::plan::$plan(ids)
        }

        fn past_plan(_ids: &$crate::plan::KeyIds) -> Option<$crate::plan::Plan<Self::Past>> {
            None
        }

        fn past_of(_key: &Self::Key) -> Option<moraine_keys::KeyRange> {
            None
        }
    };
}

/// An embedded relation whose rows are one list of the record, with nothing between.
macro_rules! flat_children {
    ($list:ident) => {
        fn children(owner: &$crate::relations::OwnerRecord<Self>) -> Vec<(u64, &Self::Child)> {
            owner.$list.iter().map(|child| (0, child)).collect()
        }

        fn take(owner: &mut $crate::relations::OwnerRecord<Self>) -> Vec<(u64, Self::Child)> {
            std::mem::take(&mut owner.$list)
                .into_iter()
                .map(|child| (0, child))
                .collect()
        }

        fn put(
            owner: &mut $crate::relations::OwnerRecord<Self>,
            children: Vec<(u64, Self::Child)>,
        ) -> Result<(), u64> {
            owner.$list = children.into_iter().map(|(_, child)| child).collect();
            Ok(())
        }
    };
}

/// Finds the owner under the key built from the components that a row names: the live version, else the last ended.
macro_rules! owner_by_key {
    (|$ids:pat_param| $key:expr) => {
        fn find_owner(
            read: &moraine_store::Staging,
            ids: $crate::relations::OwnerIds,
        ) -> impl std::future::Future<
            Output = Result<
                Option<(moraine_keys::Key, $crate::relations::OwnerRecord<Self>)>,
                $crate::error::TableError,
            >,
        > + Send {
            let $ids = ids;
            $crate::relations::newest::<Self::Owner>(read, $key)
        }
    };
}

pub(crate) use {flat_children, owner_by_key, plain_relation, versioned_relation};
