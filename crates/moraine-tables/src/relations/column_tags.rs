//! `ducklake_column_tag`: the tags of a column are embedded in the column's record; those that name a column which is not
//! there, in the table's. DuckLake writes the tags of a new column before the column, and a tag may name one that never
//! comes. When the column comes, `moraine-commit` moves its tags over. A new version of a column or a table takes them
//! along, so only the newest version shows them.

use moraine_codec::proto;
use moraine_commit::CatalogTransaction;
use moraine_keys::{ColumnKey, TableKey};
use moraine_store::Staging;

use crate::cell::{CellError, check_owner, child_cells, read_cell, show_id, take_key, write_cell};
use crate::error::TableError;
use crate::filter::CompiledFilter;
use crate::relation::Relation;
use crate::relations::entities::{Columns, Tables};
use crate::relations::records::Assignments;
use crate::relations::{EmbeddedRelation, KeyColumns, Order, embedded, flat_children, owner_by_key};
use crate::row::RowAddress;
use crate::scan::Sorted;
use crate::value::Value;

/// The rows whose column is there.
struct ColumnTags;

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

    fn order(owner: &proto::ColumnValue, _outer: u64, child: &Self::Child) -> Order {
        [child.begin_snapshot, owner.table_id, owner.column_id]
    }
}

/// The rows whose column is not there; the level between table and row is the column named.
struct StrayColumnTags;

impl EmbeddedRelation for StrayColumnTags {
    const RELATION: Relation = Relation::ColumnTag;
    type Owner = Tables;
    type Child = proto::ColumnTag;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const OWNER_COLUMNS: &'static [usize] = &[0];
    const NEWEST_ONLY: bool = true;

    fn get(
        owner: &proto::TableValue,
        outer: u64,
        child: &proto::ColumnTag,
        column: usize,
    ) -> Result<Value, CellError> {
        match column {
            0 => show_id(owner.table_id),
            1 => show_id(outer),
            2 => read_cell!(child, id, begin_snapshot, 1),
            3 => read_cell!(child, opt_id, end_snapshot),
            4 => read_cell!(child, text, key, 3),
            5 => read_cell!(child, text, value, 4),
            _ => Err(CellError::NoColumn),
        }
    }

    fn set(
        owner: &proto::TableValue,
        outer: u64,
        child: &mut proto::ColumnTag,
        column: usize,
        cell: &Value,
    ) -> Result<(), CellError> {
        match column {
            0 => check_owner(owner.table_id, cell)?,
            1 => check_owner(outer, cell)?,
            2 => write_cell!(child, cell, id, begin_snapshot, 1),
            3 => write_cell!(child, cell, opt_id, end_snapshot),
            4 => write_cell!(child, cell, text, key, 3),
            5 => write_cell!(child, cell, text, value, 4),
            _ => return Err(CellError::NoColumn),
        }
        Ok(())
    }

    fn children(owner: &proto::TableValue) -> Vec<(u64, &Self::Child)> {
        let strays = owner.stray_column_tags.iter();
        strays
            .filter_map(|stray| Some((stray.column_id, stray.tag.as_ref()?)))
            .collect()
    }

    fn take(owner: &mut proto::TableValue) -> Vec<(u64, Self::Child)> {
        let strays = std::mem::take(&mut owner.stray_column_tags).into_iter();
        strays
            .filter_map(|stray| Some((stray.column_id, stray.tag?)))
            .collect()
    }

    fn put(owner: &mut proto::TableValue, children: Vec<(u64, Self::Child)>) -> Result<(), u64> {
        let stray = |(column_id, tag)| proto::StrayColumnTag {
            column_id,
            tag: Some(tag),
        };
        owner.stray_column_tags = children.into_iter().map(stray).collect();
        Ok(())
    }

    fn order(owner: &proto::TableValue, outer: u64, child: &Self::Child) -> Order {
        [child.begin_snapshot, owner.table_id, outer]
    }

    fn outer(row: &[Value]) -> Result<u64, (usize, CellError)> {
        row.get(1).map_or(Err((1, CellError::NoColumn)), |cell| {
            take_key(cell).map_err(|error| (1, error))
        })
    }

    owner_by_key!(|[table_id, ..]| TableKey { table_id });
}

/// The rows that pass, by begin snapshot, table and column, those of a column as stored.
pub(crate) async fn scan(
    read: &Staging,
    filter: &CompiledFilter,
    projection: &[usize],
) -> Result<Sorted, TableError> {
    let mut rows = embedded::scan_rows::<ColumnTags>(read, filter, projection).await?;
    rows.extend(embedded::scan_rows::<StrayColumnTags>(read, filter, projection).await?);
    Ok(Sorted::new(rows))
}

/// Inserts rows. Their column need not be there, their table must.
pub(crate) async fn insert(tx: &mut CatalogTransaction, rows: &[Vec<Value>]) -> Result<u64, TableError> {
    let strays = embedded::insert_owned::<ColumnTags>(tx, rows).await?;
    embedded::insert::<StrayColumnTags>(tx, &strays).await?;
    Ok(rows.len() as u64)
}

/// Changes rows in place.
pub(crate) async fn update(tx: &mut CatalogTransaction, rows: &Assignments) -> Result<u64, TableError> {
    let changed = embedded::update::<ColumnTags>(tx, rows).await?;
    Ok(changed + embedded::update::<StrayColumnTags>(tx, rows).await?)
}

/// Removes rows from their records.
pub(crate) async fn delete(tx: &mut CatalogTransaction, rows: &[RowAddress]) -> Result<u64, TableError> {
    let removed = embedded::delete::<ColumnTags>(tx, rows).await?;
    Ok(removed + embedded::delete::<StrayColumnTags>(tx, rows).await?)
}
