//! Statistics of tables, of their columns and of the columns of their files, the parts of variant columns included.

use moraine_codec::proto;
use moraine_keys::FileColumnStatsKey;

use crate::cell::{child_cells, record_cells};
use crate::relation::Relation;
use crate::relations::{
    EmbeddedRelation, KeyColumns, Order, RecordRelation, flat_children, owner_by_key, plain_relation,
};

/// `ducklake_table_stats`
pub(crate) struct TableStats;

impl RecordRelation for TableStats {
    const RELATION: Relation = Relation::TableStats;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const IN_KEY_ORDER: bool = true;

    plain_relation!(leading_plan, TableStatsKey { table_id }, TableStatsValue);

    record_cells!(proto::TableStatsValue {
        0: key(table_id),
        1: id(record_count, 2),
        2: id(next_row_id, 3),
        3: id(file_size_bytes, 4),
    });

    fn order(record: &Self::Record) -> Order {
        [record.table_id, 0, 0]
    }
}

/// `ducklake_table_column_stats`
pub(crate) struct TableColumnStats;

impl RecordRelation for TableColumnStats {
    const RELATION: Relation = Relation::TableColumnStats;
    const KEY_COLUMNS: KeyColumns = [Some(0), Some(1), None];
    const IN_KEY_ORDER: bool = true;

    plain_relation!(
        child_plan,
        TableColumnStatsKey { table_id, column_id },
        TableColumnStatsValue
    );

    record_cells!(proto::TableColumnStatsValue {
        0: key(table_id),
        1: key(column_id),
        2: opt_flag(contains_null),
        3: opt_flag(contains_nan),
        4: opt_text(min_value),
        5: opt_text(max_value),
        6: opt_text(extra_stats),
    });

    fn order(record: &Self::Record) -> Order {
        [record.table_id, record.column_id, 0]
    }
}

/// `ducklake_file_column_stats`
pub(crate) struct FileColumnStats;

impl RecordRelation for FileColumnStats {
    const RELATION: Relation = Relation::FileColumnStats;
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), Some(2)];
    const IN_KEY_ORDER: bool = true;

    plain_relation!(
        child_plan,
        FileColumnStatsKey {
            table_id,
            data_file_id,
            column_id
        },
        FileColumnStatsValue
    );

    record_cells!(proto::FileColumnStatsValue {
        0: key(data_file_id),
        1: key(table_id),
        2: key(column_id),
        3: id(column_size_bytes, 4),
        4: id(value_count, 5),
        5: id(null_count, 6),
        6: opt_text(min_value),
        7: opt_text(max_value),
        8: opt_flag(contains_nan),
        9: opt_text(extra_stats),
    });

    fn order(record: &Self::Record) -> Order {
        [record.table_id, record.data_file_id, record.column_id]
    }

    fn third(key: &FileColumnStatsKey) -> u64 {
        key.column_id
    }
}

/// `ducklake_file_variant_stats`
pub(crate) struct FileVariantStats;

impl EmbeddedRelation for FileVariantStats {
    const RELATION: Relation = Relation::FileVariantStats;
    type Owner = FileColumnStats;
    type Child = proto::FileVariantStats;
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), Some(2)];
    const OWNER_COLUMNS: &'static [usize] = &[1, 0, 2];

    child_cells!(proto::FileColumnStatsValue, proto::FileVariantStats {
        0: of(data_file_id),
        1: of(table_id),
        2: of(column_id),
        ;
        3: text(variant_path, 1),
        4: text(shredded_type, 2),
        5: id(column_size_bytes, 3),
        6: id(value_count, 4),
        7: id(null_count, 5),
        8: opt_text(min_value),
        9: opt_text(max_value),
        10: opt_flag(contains_nan),
        11: opt_text(extra_stats),
    });

    flat_children!(variant_stats);
    owner_by_key!(|[table_id, data_file_id, column_id]| FileColumnStatsKey {
        table_id,
        data_file_id,
        column_id
    });

    fn order(owner: &proto::FileColumnStatsValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.table_id, owner.data_file_id, owner.column_id]
    }
}
