//! Data files with their partition values, delete files, and files scheduled for deletion.

use moraine_codec::proto;
use moraine_keys::{DataFileKey, History, TableChild};

use crate::cell::{child_cells, record_cells};
use crate::relation::Relation;
use crate::relations::{
    EmbeddedRelation, KeyColumns, Order, RecordRelation, flat_children, owner_by_key, plain_relation,
    versioned_relation,
};

/// `ducklake_data_file`
pub(crate) struct DataFiles;

impl RecordRelation for DataFiles {
    const RELATION: Relation = Relation::DataFile;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];

    versioned_relation!(
        child_plan,
        DataFileKey {
            table_id,
            data_file_id
        },
        DataFileValue,
        |key| { History::<DataFileKey>::scan_table_ids(key.table_id, key.data_file_id..=key.data_file_id) }
    );

    record_cells!(proto::DataFileValue {
        0: key(data_file_id),
        1: key(table_id),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
        4: opt_id(file_order),
        5: text(path, 6),
        6: flag(path_is_relative, 7),
        7: text(file_format, 8),
        8: id(record_count, 9),
        9: id(file_size_bytes, 10),
        10: id(footer_size, 11),
        11: opt_id(row_id_start),
        12: opt_id(partition_id),
        13: opt_text(encryption_key),
        14: opt_id(mapping_id),
        15: opt_id(partial_max),
    });

    fn order(record: &Self::Record) -> Order {
        [record.data_file_id, 0, 0]
    }
}

/// `ducklake_file_partition_value`
pub(crate) struct FilePartitionValues;

impl EmbeddedRelation for FilePartitionValues {
    const RELATION: Relation = Relation::FilePartitionValue;
    type Owner = DataFiles;
    type Child = proto::FilePartitionValue;
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];
    const OWNER_COLUMNS: &'static [usize] = &[1, 0];

    child_cells!(proto::DataFileValue, proto::FilePartitionValue {
        0: of(data_file_id),
        1: of(table_id),
        ;
        2: id(partition_key_index, 1),
        3: text(partition_value, 2),
    });

    flat_children!(partition_values);
    owner_by_key!(|[table_id, data_file_id, _]| DataFileKey {
        table_id,
        data_file_id
    });

    fn order(owner: &proto::DataFileValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.data_file_id, 0, 0]
    }
}

/// `ducklake_delete_file`
pub(crate) struct DeleteFiles;

impl RecordRelation for DeleteFiles {
    const RELATION: Relation = Relation::DeleteFile;
    const END: Option<usize> = Some(3);
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];

    versioned_relation!(
        child_plan,
        DeleteFileKey {
            table_id,
            delete_file_id
        },
        DeleteFileValue,
        |key| {
            History::<moraine_keys::DeleteFileKey>::scan_table_ids(
                key.table_id,
                key.delete_file_id..=key.delete_file_id,
            )
        }
    );

    record_cells!(proto::DeleteFileValue {
        0: key(delete_file_id),
        1: key(table_id),
        2: id(begin_snapshot, 3),
        3: opt_id(end_snapshot),
        4: id(data_file_id, 5),
        5: text(path, 6),
        6: flag(path_is_relative, 7),
        7: text(format, 8),
        8: id(delete_count, 9),
        9: id(file_size_bytes, 10),
        10: id(footer_size, 11),
        11: opt_text(encryption_key),
        12: opt_id(partial_max),
    });

    fn order(record: &Self::Record) -> Order {
        [record.delete_file_id, 0, 0]
    }
}

/// `ducklake_files_scheduled_for_deletion`
pub(crate) struct ScheduledFiles;

impl RecordRelation for ScheduledFiles {
    const RELATION: Relation = Relation::FilesScheduledForDeletion;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const IN_KEY_ORDER: bool = true;

    plain_relation!(leading_plan, GcFileKey { data_file_id }, GcFileValue);

    record_cells!(proto::GcFileValue {
        0: key(data_file_id),
        1: text(path, 2),
        2: flag(path_is_relative, 3),
        3: micros(schedule_start_micros, 4),
    });

    fn order(record: &Self::Record) -> Order {
        [record.data_file_id, 0, 0]
    }
}
