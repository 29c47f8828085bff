//! The versions of one thing, one at a time: of those that are there at the same snapshot one is ended or left out, so that
//! every snapshot still has one.

use std::collections::BTreeMap;

use moraine_tables::{Relation, Value, fixed_schema};

use crate::import::context::Context;
use crate::import::error::Problem;
use crate::import::rules::number;
use crate::import::stream::{Checks, shown};
use crate::lake::raw_of;

/// The columns that say which thing a row is a version of.
fn identity(relation: Relation) -> &'static [&'static str] {
    match relation {
        Relation::Schema => &["schema_id"],
        Relation::Table => &["table_id"],
        Relation::View => &["view_id"],
        Relation::Macro => &["macro_id"],
        Relation::Tag => &["object_id", "key"],
        Relation::Column => &["table_id", "column_id"],
        Relation::ColumnTag => &["table_id", "column_id", "key"],
        Relation::PartitionInfo => &["table_id", "partition_id"],
        Relation::SortInfo => &["table_id", "sort_id"],
        Relation::DataFile => &["table_id", "data_file_id"],
        Relation::DeleteFile => &["table_id", "delete_file_id"],
        _ => &[],
    }
}

/// A version: the snapshots it is there at, and its row.
#[derive(Debug, Clone, Copy)]
struct Version {
    begin: u64,
    /// `u64::MAX` for one that lives.
    end: u64,
    row: usize,
}

impl Context<'_> {
    /// Sees to it that of each thing among `rows`, which hold all its versions, there is one version at a snapshot.
    pub(crate) fn separate_versions(&mut self, relation: Relation, rows: &mut Vec<Vec<Value>>) {
        separate(&mut self.checks, relation, rows);
    }
}

fn separate(checks: &mut Checks, relation: Relation, rows: &mut Vec<Vec<Value>>) {
    let Some(schema) = fixed_schema(relation).filter(|_| rows.len() > 1) else {
        return;
    };
    let columns: Vec<usize> = identity(relation)
        .iter()
        .filter_map(|name| schema.position(name))
        .collect();
    let (Some(begin), Some(end)) = (schema.position("begin_snapshot"), schema.position("end_snapshot"))
    else {
        return;
    };
    let mut things: BTreeMap<Vec<String>, Vec<Version>> = BTreeMap::new();
    for (position, row) in rows.iter().enumerate() {
        let version = Version {
            begin: number(row, begin).unwrap_or_default(),
            end: number(row, end).unwrap_or(u64::MAX),
            row: position,
        };
        // What begins and ends at once is there at no snapshot.
        if version.begin < version.end {
            let cell = |column: &usize| {
                row.get(*column)
                    .map_or_else(String::new, |cell| raw_of(cell).shown())
            };
            let thing = columns.iter().map(cell).collect();
            things.entry(thing).or_default().push(version);
        }
    }
    let mut left_out = Vec::new();
    for versions in things.into_values().filter(|versions| versions.len() > 1) {
        one_at_a_time(checks, relation, rows, [begin, end], versions, &mut left_out);
    }
    left_out.sort_unstable();
    for position in left_out.into_iter().rev() {
        rows.remove(position);
    }
}

/// Whether a thing has rows in other tables that are of it, rather than of one of its versions. There is no telling which of
/// two versions they make up.
fn has_parts(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Macro | Relation::PartitionInfo | Relation::SortInfo | Relation::DataFile
    )
}

/// Goes through the versions of one thing. One that begins with another, or ends while another goes on, is left out; one that
/// is still there when the next begins ends there.
fn one_at_a_time(
    checks: &mut Checks,
    relation: Relation,
    rows: &mut [Vec<Value>],
    ends: [usize; 2],
    mut versions: Vec<Version>,
    left_out: &mut Vec<usize>,
) {
    versions.sort_by_key(|version| (version.begin, std::cmp::Reverse(version.end), version.row));
    let [_, end] = ends;
    let mut last: Option<Version> = None;
    for version in versions {
        let Some(before) = last.as_mut().filter(|before| before.end > version.begin) else {
            last = Some(version);
            continue;
        };
        let detail = format!(
            "it {}, and another version of it {}",
            version.span(),
            before.span()
        );
        let repair = if has_parts(relation) && !is_same(rows, before.row, version.row, ends) {
            let row = rows
                .get(version.row)
                .map_or_else(String::new, |row| shown(relation, row));
            checks.beyond_repair.get_or_insert(format!(
                "{relation} ({row}): {detail}, which is not the same otherwise; delete the one that what belongs to it is not of"
            ));
            "there is none".to_owned()
        } else if has_parts(relation) && version.end > before.end {
            before.end = version.end;
            set_end(rows, before.row, end, before.end);
            left_out.push(version.row);
            format!("the row is left out, and the other one {}", before.span())
        } else if before.end > version.end || before.begin == version.begin || has_parts(relation) {
            left_out.push(version.row);
            "the row is left out".to_owned()
        } else {
            before.end = version.begin;
            set_end(rows, before.row, end, before.end);
            let repair = format!("the other one {}", before.span());
            *before = version;
            repair
        };
        let row = rows.get(version.row);
        checks.problems.add(Problem {
            table: relation.name(),
            row: row.map_or_else(String::new, |row| shown(relation, row)),
            detail,
            repair,
        });
    }
}

impl Version {
    /// The snapshots it is there at, for a message.
    fn span(&self) -> String {
        match self.end {
            u64::MAX => format!("lives from snapshot {} on", self.begin),
            end => format!("lives from snapshot {} to {end}", self.begin),
        }
    }
}

fn set_end(rows: &mut [Vec<Value>], row: usize, column: usize, end: u64) {
    if let Some(cell) = rows.get_mut(row).and_then(|row| row.get_mut(column)) {
        *cell = match i64::try_from(end) {
            Ok(end) => Value::Int64(end),
            Err(_) => Value::Null,
        };
    }
}

/// Whether two rows are the same but for the snapshots they are there at.
fn is_same(rows: &[Vec<Value>], one: usize, other: usize, ends: [usize; 2]) -> bool {
    let cells = |row: usize| {
        let cells = rows.get(row).into_iter().flatten().enumerate();
        cells.filter(move |(column, _)| !ends.contains(column))
    };
    cells(one).eq(cells(other))
}
