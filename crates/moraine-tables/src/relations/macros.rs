//! Macros: one record per version, its implementations embedded and their parameters embedded in those.

use moraine_codec::proto;
use moraine_keys::{History, LeadingId, MacroKey};

use crate::cell::{
    CellError, check_owner, child_cells, read_cell, record_cells, show_id, take_key, write_cell,
};
use crate::relation::Relation;
use crate::relations::{
    EmbeddedRelation, KeyColumns, Order, RecordRelation, flat_children, owner_by_key, versioned_relation,
};
use crate::value::Value;

/// `ducklake_macro`
pub(crate) struct Macros;

impl RecordRelation for Macros {
    const RELATION: Relation = Relation::Macro;
    const END: Option<usize> = Some(4);
    const KEY_COLUMNS: KeyColumns = [Some(1), None, None];

    versioned_relation!(leading_plan, MacroKey { macro_id }, MacroValue, |key| {
        History::<MacroKey>::scan_ids(key.macro_id..=key.macro_id)
    });

    record_cells!(proto::MacroValue {
        0: id(schema_id, 4),
        1: key(macro_id),
        2: text(macro_name, 5),
        3: id(begin_snapshot, 2),
        4: opt_id(end_snapshot),
    });

    fn order(record: &Self::Record) -> Order {
        [record.begin_snapshot, record.macro_id, 0]
    }
}

/// `ducklake_macro_impl`
pub(crate) struct MacroImplementations;

impl EmbeddedRelation for MacroImplementations {
    const RELATION: Relation = Relation::MacroImpl;
    type Owner = Macros;
    type Child = proto::MacroImplementation;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const OWNER_COLUMNS: &'static [usize] = &[0];

    child_cells!(proto::MacroValue, proto::MacroImplementation {
        0: of(macro_id),
        ;
        1: key(impl_id),
        2: text(dialect, 2),
        3: text(sql, 3),
        4: text(macro_type, 4),
    });

    flat_children!(implementations);
    owner_by_key!(|[macro_id, ..]| MacroKey { macro_id });

    fn order(owner: &proto::MacroValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.begin_snapshot, owner.macro_id, 0]
    }
}

/// `ducklake_macro_parameters`
pub(crate) struct MacroParameters;

impl EmbeddedRelation for MacroParameters {
    const RELATION: Relation = Relation::MacroParameters;
    type Owner = Macros;
    type Child = proto::MacroParameter;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const OWNER_COLUMNS: &'static [usize] = &[0];

    fn get(
        owner: &proto::MacroValue,
        outer: u64,
        child: &proto::MacroParameter,
        column: usize,
    ) -> Result<Value, CellError> {
        match column {
            0 => show_id(owner.macro_id),
            1 => show_id(outer),
            2 => read_cell!(child, id, column_id, 1),
            3 => read_cell!(child, text, parameter_name, 2),
            4 => read_cell!(child, text, parameter_type, 3),
            5 => read_cell!(child, opt_text, default_value),
            6 => read_cell!(child, text, default_value_type, 5),
            _ => Err(CellError::NoColumn),
        }
    }

    fn set(
        owner: &proto::MacroValue,
        outer: u64,
        child: &mut proto::MacroParameter,
        column: usize,
        cell: &Value,
    ) -> Result<(), CellError> {
        match column {
            0 => check_owner(owner.macro_id, cell)?,
            1 => check_owner(outer, cell)?,
            2 => write_cell!(child, cell, id, column_id, 1),
            3 => write_cell!(child, cell, text, parameter_name, 2),
            4 => write_cell!(child, cell, text, parameter_type, 3),
            5 => write_cell!(child, cell, opt_text, default_value),
            6 => write_cell!(child, cell, text, default_value_type, 5),
            _ => return Err(CellError::NoColumn),
        }
        Ok(())
    }

    fn children(owner: &proto::MacroValue) -> Vec<(u64, &Self::Child)> {
        owner
            .implementations
            .iter()
            .flat_map(|implementation| {
                implementation
                    .parameters
                    .iter()
                    .map(|p| (implementation.impl_id, p))
            })
            .collect()
    }

    fn take(owner: &mut proto::MacroValue) -> Vec<(u64, Self::Child)> {
        owner
            .implementations
            .iter_mut()
            .flat_map(|implementation| {
                let impl_id = implementation.impl_id;
                std::mem::take(&mut implementation.parameters)
                    .into_iter()
                    .map(move |p| (impl_id, p))
            })
            .collect()
    }

    fn put(owner: &mut proto::MacroValue, children: Vec<(u64, Self::Child)>) -> Result<(), u64> {
        for (impl_id, parameter) in children {
            let implementation = owner
                .implementations
                .iter_mut()
                .find(|found| found.impl_id == impl_id);
            implementation.ok_or(impl_id)?.parameters.push(parameter);
        }
        Ok(())
    }

    fn order(owner: &proto::MacroValue, _outer: u64, _child: &Self::Child) -> Order {
        [owner.begin_snapshot, owner.macro_id, 0]
    }

    fn outer(row: &[Value]) -> Result<u64, (usize, CellError)> {
        row.get(1).map_or(Err((1, CellError::NoColumn)), |cell| {
            take_key(cell).map_err(|error| (1, error))
        })
    }

    owner_by_key!(|[macro_id, ..]| MacroKey { macro_id });
}
