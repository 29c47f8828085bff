//! Tags: those of an object in one record made for them, those of a column in the column's record.

use moraine_codec::proto;
use moraine_keys::{ColumnKey, TagKey};

use crate::cell::{CellError, child_cells};
use crate::relation::Relation;
use crate::relations::entities::Columns;
use crate::relations::{
    EmbeddedRelation, KeyColumns, Order, OwnerIds, RecordRelation, flat_children, owner_by_key,
    plain_relation,
};
use crate::value::Value;

/// The records in which the tags of objects are. No relation shows them as rows.
pub(crate) struct TagContainers;

impl RecordRelation for TagContainers {
    const RELATION: Relation = Relation::Tag;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];

    plain_relation!(leading_plan, TagKey { object_id }, TagValue);

    fn get(_record: &proto::TagValue, _column: usize) -> Result<Value, CellError> {
        Err(CellError::NoColumn)
    }

    fn set(_record: &mut proto::TagValue, _column: usize, _cell: &Value) -> Result<(), CellError> {
        Err(CellError::NoColumn)
    }

    fn order(record: &Self::Record) -> Order {
        [record.object_id, 0, 0]
    }
}

/// `ducklake_tag`
pub(crate) struct Tags;

impl EmbeddedRelation for Tags {
    const RELATION: Relation = Relation::Tag;
    type Owner = TagContainers;
    type Child = proto::TagEntry;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const OWNER_COLUMNS: &'static [usize] = &[0];
    const OWNER_IS_CONTAINER: bool = true;

    child_cells!(proto::TagValue, proto::TagEntry {
        0: of(object_id),
        ;
        1: id(begin_snapshot, 1),
        2: opt_id(end_snapshot),
        3: text(key, 3),
        4: text(value, 4),
    });

    flat_children!(entries);
    owner_by_key!(|[object_id, ..]| TagKey { object_id });

    fn new_owner([object_id, ..]: OwnerIds) -> proto::TagValue {
        proto::TagValue {
            object_id,
            ..Default::default()
        }
    }

    fn order(owner: &proto::TagValue, child: &Self::Child) -> Order {
        [child.begin_snapshot, owner.object_id, 0]
    }
}

/// `ducklake_column_tag`: a new version of a column takes the tags along, so only the newest version shows them.
pub(crate) struct ColumnTags;

impl EmbeddedRelation for ColumnTags {
    const RELATION: Relation = Relation::ColumnTag;
    type Owner = Columns;
    type Child = proto::ColumnTag;
    const KEY_COLUMNS: KeyColumns = [Some(0), Some(1), None];
    const OWNER_COLUMNS: &'static [usize] = &[0, 1];
    const NEWEST_ONLY: bool = true;

    child_cells!(proto::ColumnValue, proto::ColumnTag {
        0: of(table_id),
        1: of(column_id),
        ;
        2: id(begin_snapshot, 1),
        3: opt_id(end_snapshot),
        4: text(key, 3),
        5: text(value, 4),
    });

    flat_children!(tags);
    owner_by_key!(|[table_id, column_id, _]| ColumnKey { table_id, column_id });

    fn order(owner: &proto::ColumnValue, child: &Self::Child) -> Order {
        [child.begin_snapshot, owner.table_id, owner.column_id]
    }
}
