//! The parts of a lake that belong to no table: options, schemas, views, macros, tags, column mappings, files to be deleted.

use moraine_commit::CommitFailure;
use moraine_commit::bulk::scratch;
use moraine_tables::{Relation, Value};

use crate::import::context::Context;
use crate::import::error::{ImportError, Problem};
use crate::import::rules::{number, query, text};
use crate::import::scheduled;
use crate::import::stream::next_group;
use crate::lake::Query;

/// Groups of rows that are staged together.
const GROUPS_STAGED: usize = 1024;

/// The option that says where the data files are.
const DATA_PATH: &str = "data_path";

/// Tables whose rows belong together, each with the column that says so; the first one's rows hold those of the others.
type Family = &'static [(Relation, &'static str)];

const FAMILIES: [Family; 5] = [
    &[(Relation::Schema, "schema_id")],
    &[(Relation::View, "view_id")],
    &[
        (Relation::Macro, "macro_id"),
        (Relation::MacroImpl, "macro_id"),
        (Relation::MacroParameters, "macro_id"),
    ],
    &[
        (Relation::ColumnMapping, "mapping_id"),
        (Relation::NameMapping, "mapping_id"),
    ],
    &[(Relation::Tag, "object_id")],
];

/// The queries of this part.
pub(crate) fn queries() -> Vec<(Relation, Query)> {
    let families = FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|(relation, key)| (*relation, query(*relation, &[*key])));
    std::iter::once((Relation::Metadata, query(Relation::Metadata, &[])))
        .chain(families)
        .chain(std::iter::once(scheduled::query()))
        .collect()
}

/// Imports this part. `data_path` takes the place of the one that is recorded.
pub(crate) async fn import(context: &mut Context<'_>, data_path: Option<&str>) -> Result<(), ImportError> {
    metadata(context, data_path).await?;
    for family in FAMILIES {
        import_family(context, family).await?;
    }
    scheduled::import(context).await
}

async fn metadata(context: &mut Context<'_>, data_path: Option<&str>) -> Result<(), ImportError> {
    let relation = Relation::Metadata;
    let mut rows = Vec::new();
    let mut stream = context.stream(relation, &query(relation, &[])).await?;
    loop {
        let more = stream.next_rows(&mut context.checks).await?;
        if more.is_empty() {
            break;
        }
        rows.extend(more);
    }
    if let Some(data_path) = data_path {
        let is_data_path = |row: &[Value]| text(row, 0) == Some(DATA_PATH) && text(row, 2).is_none();
        rows.retain(|row| !is_data_path(row));
        rows.push(vec![
            Value::text(DATA_PATH),
            Value::text(data_path),
            Value::Null,
            Value::Null,
        ]);
    }
    let mut tx = scratch().await?;
    context.progress.table(&relation.name(), None);
    context.stage(&mut tx, relation, &rows).await?;
    context.add(tx).await
}

async fn import_family(context: &mut Context<'_>, family: Family) -> Result<(), ImportError> {
    let mut streams = Vec::with_capacity(family.len());
    for (relation, key) in family {
        streams.push(context.stream(*relation, &query(*relation, &[*key])).await?);
    }
    if let Some((first, _)) = family.first() {
        context.progress.table(&first.name(), None);
    }
    // Whether the embedded rows make a whole is asked of everything staged at once, so such groups are staged alone.
    let groups_staged = if family.len() > 1 { 1 } else { GROUPS_STAGED };
    let mut tx = scratch().await?;
    let mut groups = 0;
    while let Some((_, mut group)) = next_group(&mut streams, &mut context.checks).await? {
        for ((relation, _), rows) in family.iter().zip(&mut group) {
            check(context, *relation, rows);
            context.note(*relation, rows);
            context.stage(&mut tx, *relation, rows).await?;
        }
        groups += 1;
        if groups == groups_staged {
            groups = 0;
            let full = std::mem::replace(&mut tx, scratch().await?);
            add_or_leave_out(context, full, &group, family).await?;
        }
    }
    context.add(tx).await
}

fn check(context: &mut Context<'_>, relation: Relation, rows: &mut Vec<Vec<Value>>) {
    match relation {
        Relation::View => context.retain_known(relation, rows, 4, Relation::Schema),
        Relation::Macro => context.retain_known(relation, rows, 0, Relation::Schema),
        Relation::ColumnMapping => {
            context.retain_known(relation, rows, 1, Relation::Table);
            let ids = rows
                .iter()
                .filter_map(|row| Some((number(row, 1)?, number(row, 0)?)));
            context.parents.mappings.extend(ids);
            let greatest = rows.iter().filter_map(|row| number(row, 0)).max();
            context.file_id_max = context.file_id_max.max(greatest);
        }
        _ => {}
    }
    context.separate_versions(relation, rows);
}

/// Adds a group; a macro or a mapping that is not whole is noted and left out.
async fn add_or_leave_out(
    context: &mut Context<'_>,
    tx: moraine_commit::CatalogTransaction,
    group: &[Vec<Vec<Value>>],
    family: Family,
) -> Result<(), ImportError> {
    match context.add(tx).await {
        Err(ImportError::Commit(CommitFailure::Constraint { detail })) => {
            let (relation, key) = family.first().copied().unwrap_or((Relation::Macro, "id"));
            let column = if relation == Relation::Macro { 1 } else { 0 };
            let first = group.first().and_then(|rows| rows.first());
            let id = first.and_then(|row| number(row, column)).unwrap_or_default();
            context.checks.problems.add(Problem {
                table: relation.name(),
                row: format!("{key} {id}"),
                detail,
                repair: "it is left out with its rows in other tables".to_owned(),
            });
            Ok(())
        }
        outcome => outcome,
    }
}
