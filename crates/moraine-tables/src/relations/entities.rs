//! Schemas, tables, views and columns: one record per version.

use moraine_keys::{History, LeadingId, TableChild};

use crate::cell::record_cells;
use crate::relation::Relation;
use crate::relations::{KeyColumns, Order, RecordRelation, versioned_relation};

/// `ducklake_schema`
pub(crate) struct Schemas;

impl RecordRelation for Schemas {
    const RELATION: Relation = Relation::Schema;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];

    versioned_relation!(leading_plan, SchemaKey { schema_id }, SchemaValue, |key| {
        History::<moraine_keys::SchemaKey>::scan_ids(key.schema_id..=key.schema_id)
    });

    record_cells!(moraine_codec::proto::SchemaValue {
        0: key(schema_id),
        1: uuid(schema_uuid, 2),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
        4: text(schema_name, 5),
        5: text(path, 6),
        6: flag(path_is_relative, 7),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.schema_id, 0]
    }
}

/// `ducklake_table`
pub(crate) struct Tables;

impl RecordRelation for Tables {
    const RELATION: Relation = Relation::Table;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];

    versioned_relation!(leading_plan, TableKey { table_id }, TableValue, |key| {
        History::<moraine_keys::TableKey>::scan_ids(key.table_id..=key.table_id)
    });

    record_cells!(moraine_codec::proto::TableValue {
        0: key(table_id),
        1: uuid(table_uuid, 2),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
        4: id(schema_id, 5),
        5: text(table_name, 6),
        6: text(path, 7),
        7: flag(path_is_relative, 8),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.table_id, 0]
    }
}

/// `ducklake_view`
pub(crate) struct Views;

impl RecordRelation for Views {
    const RELATION: Relation = Relation::View;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];

    versioned_relation!(leading_plan, ViewKey { view_id }, ViewValue, |key| {
        History::<moraine_keys::ViewKey>::scan_ids(key.view_id..=key.view_id)
    });

    record_cells!(moraine_codec::proto::ViewValue {
        0: key(view_id),
        1: uuid(view_uuid, 2),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
        4: id(schema_id, 5),
        5: text(view_name, 6),
        6: text(dialect, 7),
        7: text(sql, 8),
        8: opt_text(column_aliases),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.view_id, 0]
    }
}

/// `ducklake_column`
pub(crate) struct Columns;

impl RecordRelation for Columns {
    const RELATION: Relation = Relation::Column;
    const END: Option<usize> = Some(2);
    const KEY_COLUMNS: KeyColumns = [Some(3), Some(0), None];

    versioned_relation!(
        child_plan,
        ColumnKey { table_id, column_id },
        ColumnValue,
        |key| {
            History::<moraine_keys::ColumnKey>::scan_table_ids(key.table_id, key.column_id..=key.column_id)
        }
    );

    record_cells!(moraine_codec::proto::ColumnValue {
        0: key(column_id),
        1: id(begin_snapshot, 2),
        2: opt_id(end_snapshot),
        3: key(table_id),
        4: id(column_order, 5),
        5: text(column_name, 6),
        6: text(column_type, 7),
        7: opt_text(initial_default),
        8: opt_text(default_value),
        9: flag(nulls_allowed, 10),
        10: opt_id(parent_column),
        11: opt_text(default_value_type),
        12: opt_text(default_value_dialect),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.table_id, record.column_id]
    }
}
