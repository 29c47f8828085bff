//! Tags of schemas, tables, views and macros: all of an object in one record made for them. Those of columns are in
//! [`crate::relations::column_tags`].

use moraine_codec::proto;
use moraine_keys::TagKey;

use crate::cell::{CellError, child_cells};
use crate::relation::Relation;
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

    fn order(owner: &proto::TagValue, _outer: u64, child: &Self::Child) -> Order {
        [child.begin_snapshot, owner.object_id, 0]
    }
}
