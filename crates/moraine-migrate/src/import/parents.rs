//! What rows belong to, and whether it is there: schemas and tables by how long they live, partitionings, column mappings.

use std::collections::{BTreeMap, BTreeSet};

use moraine_tables::{Relation, Value};

use crate::import::context::{Context, version_columns};
use crate::import::each_row;
use crate::import::error::{ImportError, Problem};
use crate::import::rules::{number, query};
use crate::import::stream::shown;
use crate::lake::Source;

/// Objects by id, with the snapshot at which the last version of each ended; `None` for those that live.
#[derive(Debug, Default, Hash)]
pub(crate) struct Lives(BTreeMap<u64, Option<u64>>);

impl Lives {
    /// Notes a version.
    pub(crate) fn add(&mut self, id: u64, end: Option<u64>) {
        let last = self.0.entry(id).or_insert(end);
        *last = last.zip(end).map(|(last, end)| last.max(end));
    }

    /// Whether there is a version of the object.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.0.contains_key(&id)
    }
}

/// Everything that rows of other tables can belong to.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// Schemas.
    pub(crate) schemas: Lives,
    /// Tables.
    pub(crate) tables: Lives,
    /// Partitionings, by (table id, partition id), with the number of columns each is by.
    pub(crate) partitions: BTreeMap<(u64, u64), usize>,
    /// Column mappings, by (table id, mapping id); known once they are imported.
    pub(crate) mappings: BTreeSet<(u64, u64)>,
}

impl Parents {
    /// What there is of schemas, tables and partitionings, in queries that the parts of the import ask, too.
    pub(crate) async fn survey(source: &dyn Source, newest: u64) -> Result<Parents, ImportError> {
        let mut parents = Parents::default();
        let schemas = query(Relation::Schema, &["schema_id"]);
        each_row(source, Relation::Schema, &schemas, newest, |row| {
            parents
                .schemas
                .add(number(row, 0).unwrap_or_default(), number(row, 3));
        })
        .await?;
        let tables = query(Relation::Table, &["table_id"]);
        each_row(source, Relation::Table, &tables, newest, |row| {
            let schema = parents.schemas.0.get(&number(row, 4).unwrap_or_default());
            if let Some(schema_end) = schema {
                let end = number(row, 3).or(*schema_end);
                parents.tables.add(number(row, 0).unwrap_or_default(), end);
            }
        })
        .await?;
        let partitions = query(Relation::PartitionInfo, &["table_id"]);
        each_row(source, Relation::PartitionInfo, &partitions, newest, |row| {
            let key = number(row, 1).zip(number(row, 0));
            parents.partitions.extend(key.map(|key| (key, 0)));
        })
        .await?;
        let columns = query(Relation::PartitionColumn, &["table_id"]);
        each_row(source, Relation::PartitionColumn, &columns, newest, |row| {
            let key = number(row, 1).zip(number(row, 0));
            if let Some(count) = key.and_then(|key| parents.partitions.get_mut(&key)) {
                *count += 1;
            }
        })
        .await?;
        Ok(parents)
    }
}

impl Context<'_> {
    /// Leaves out rows whose `column` names a schema or table that is not there, and ends those that outlive it.
    pub(crate) fn retain_known(
        &mut self,
        relation: Relation,
        rows: &mut Vec<Vec<Value>>,
        column: usize,
        of: Relation,
    ) {
        let (known, what) = match of {
            Relation::Schema => (&self.parents.schemas, "schema"),
            _ => (&self.parents.tables, "table"),
        };
        let versions = version_columns(relation);
        let checks = &mut self.checks;
        rows.retain_mut(|row| {
            let id = number(row, column).unwrap_or_default();
            let Some(ended) = known.0.get(&id) else {
                let detail = format!("it belongs to {what} {id}, of which {of} has no row");
                checks.leave_out(relation, shown(relation, row), detail);
                return false;
            };
            let (Some((_, begin, end)), Some(ended)) = (versions, *ended) else {
                return true;
            };
            if row.get(end).is_none_or(|end| !end.is_null()) {
                return true;
            }
            let detail = format!("it lives, and {what} {id}, which it belongs to, ended at snapshot {ended}");
            if number(row, begin).is_none_or(|begin| begin >= ended) {
                checks.leave_out(relation, shown(relation, row), detail);
                return false;
            }
            checks.problems.add(Problem {
                table: relation.name(),
                row: shown(relation, row),
                detail,
                repair: "it ends there, too".to_owned(),
            });
            if let Some(cell) = row.get_mut(end) {
                *cell = Value::Int64(i64::try_from(ended).unwrap_or(i64::MAX));
            }
            true
        });
    }

    /// Takes away what a row refers to in `column`, which is not there.
    pub(crate) fn forget(
        &mut self,
        relation: Relation,
        row: &mut [Value],
        column: usize,
        detail: String,
        repair: &str,
    ) {
        self.checks.problems.add(Problem {
            table: relation.name(),
            row: shown(relation, row),
            detail,
            repair: repair.to_owned(),
        });
        if let Some(cell) = row.get_mut(column) {
            *cell = Value::Null;
        }
    }
}
