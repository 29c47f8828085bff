//! Column mappings of files that DuckLake did not write, with their names embedded. Rows of names say which mapping they
//! belong to but not of which table.

use moraine_codec::proto;
use moraine_keys::{Key, Kind, MappingKey};
use moraine_store::Staging;

use crate::cell::{child_cells, record_cells};
use crate::error::TableError;
use crate::filter::Ids;
use crate::plan::{KeyIds, RecordSource, child_plan};
use crate::relation::Relation;
use crate::relations::{
    EmbeddedRelation, KeyColumns, Order, OwnerIds, RecordRelation, flat_children, plain_relation,
};

/// `ducklake_column_mapping`
pub(crate) struct Mappings;

impl RecordRelation for Mappings {
    const RELATION: Relation = Relation::ColumnMapping;
    const KEY_COLUMNS: KeyColumns = [Some(1), Some(0), None];

    plain_relation!(child_plan, MappingKey { table_id, mapping_id }, MappingValue);

    record_cells!(proto::MappingValue {
        0: key(mapping_id),
        1: key(table_id),
        2: text(map_type, 3),
    });

    fn order(record: &Self::Record) -> Order {
        [record.mapping_id, record.table_id, 0]
    }
}

/// `ducklake_name_mapping`
pub(crate) struct NameMappings;

impl EmbeddedRelation for NameMappings {
    const RELATION: Relation = Relation::NameMapping;
    type Owner = Mappings;
    type Child = proto::NameMapping;
    const KEY_COLUMNS: KeyColumns = [None, Some(0), None];
    const OWNER_COLUMNS: &'static [usize] = &[0];

    child_cells!(proto::MappingValue, proto::NameMapping {
        0: of(mapping_id),
        ;
        1: id(column_id, 1),
        2: text(source_name, 2),
        3: id(target_field_id, 3),
        4: opt_id(parent_column),
        5: flag(is_partition, 5),
    });

    flat_children!(name_mappings);

    async fn find_owner(
        read: &Staging,
        [mapping_id, ..]: OwnerIds,
    ) -> Result<Option<(Key, proto::MappingValue)>, TableError> {
        let ids = KeyIds {
            first: Ids::All,
            second: Ids::Points(vec![mapping_id]),
            third: Ids::All,
        };
        let mut source = RecordSource::new(child_plan::<MappingKey>(&ids));
        Ok(source
            .next(read)
            .await?
            .map(|(key, record)| (key.to_key(), record)))
    }

    fn order(owner: &proto::MappingValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.mapping_id, owner.table_id, 0]
    }
}
