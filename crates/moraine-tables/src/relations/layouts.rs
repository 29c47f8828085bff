//! How a table's data is laid out: partitionings with their columns, sort orders with their expressions.

use moraine_codec::proto;
use moraine_keys::{History, PartitionKey, SortKey, TableChild};

use crate::cell::{child_cells, record_cells};
use crate::relation::Relation;
use crate::relations::{
    EmbeddedRelation, KeyColumns, Order, RecordRelation, flat_children, owner_by_key, versioned_relation,
};

/// `ducklake_partition_info`
pub(crate) struct Partitions;

impl RecordRelation for Partitions {
    const RELATION: Relation = Relation::PartitionInfo;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];

    versioned_relation!(
        child_plan,
        PartitionKey {
            table_id,
            partition_id
        },
        PartitionValue,
        |key| { History::<PartitionKey>::scan_table_ids(key.table_id, key.partition_id..=key.partition_id) }
    );

    record_cells!(proto::PartitionValue {
        0: key(partition_id),
        1: key(table_id),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.partition_id, 0]
    }
}

/// `ducklake_partition_column`
pub(crate) struct PartitionColumns;

impl EmbeddedRelation for PartitionColumns {
    const RELATION: Relation = Relation::PartitionColumn;
    type Owner = Partitions;
    type Child = proto::PartitionColumn;
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];
    const OWNER_COLUMNS: &'static [usize] = &[1, 0];

    child_cells!(proto::PartitionValue, proto::PartitionColumn {
        0: of(partition_id),
        1: of(table_id),
        ;
        2: id(partition_key_index, 1),
        3: id(column_id, 2),
        4: text(transform, 3),
    });

    flat_children!(columns);
    owner_by_key!(|[table_id, partition_id, _]| PartitionKey {
        table_id,
        partition_id
    });

    fn order(owner: &proto::PartitionValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.begin_snapshot, owner.partition_id, 0]
    }
}

/// `ducklake_sort_info`
pub(crate) struct Sorts;

impl RecordRelation for Sorts {
    const RELATION: Relation = Relation::SortInfo;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];

    versioned_relation!(child_plan, SortKey { table_id, sort_id }, SortValue, |key| {
        History::<SortKey>::scan_table_ids(key.table_id, key.sort_id..=key.sort_id)
    });

    record_cells!(proto::SortValue {
        0: key(sort_id),
        1: key(table_id),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.sort_id, 0]
    }
}

/// `ducklake_sort_expression`
pub(crate) struct SortExpressions;

impl EmbeddedRelation for SortExpressions {
    const RELATION: Relation = Relation::SortExpression;
    type Owner = Sorts;
    type Child = proto::SortExpression;
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];
    const OWNER_COLUMNS: &'static [usize] = &[1, 0];

    child_cells!(proto::SortValue, proto::SortExpression {
        0: of(sort_id),
        1: of(table_id),
        ;
        2: id(sort_key_index, 1),
        3: text(expression, 2),
        4: text(dialect, 3),
        5: text(sort_direction, 4),
        6: text(null_order, 5),
    });

    flat_children!(expressions);
    owner_by_key!(|[table_id, sort_id, _]| SortKey { table_id, sort_id });

    fn order(owner: &proto::SortValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.begin_snapshot, owner.sort_id, 0]
    }
}
