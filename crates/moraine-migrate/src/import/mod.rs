//! Bringing a lake in from another catalog: all of its tables, read side by side in the order of their ids, become the records
//! of a store that holds nothing yet, batch by batch behind a marker that every reader refuses. What breaks the rules is
//! noted with table and row, and imported only where a repair was asked for.

mod catalog;
mod context;
mod error;
mod files;
mod inlined;
mod parents;
mod rules;
mod scheduled;
mod snapshots;
mod stream;
mod tables;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use moraine_codec::format::CHANGELOG_SNAPSHOTS_MAX;
use moraine_commit::bulk::{BulkLoad, Changelog};
use moraine_store::Store;
use moraine_tables::{Relation, Value, fixed_schema};

pub use error::{ImportError, Problem, Problems};
pub(crate) use rules::{number, query_of};

use crate::column_types::ColumnTypes;
use crate::import::context::Context;
use crate::import::inlined::InlinedPlan;
use crate::import::parents::Parents;
use crate::import::stream::{Checks, KeyedStream};
use crate::lake::{Query, Source};
use crate::progress::Progress;

/// The version of the specification that is imported.
const VERSION: &str = "1.0";

/// How a lake is imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Whether what is broken is imported as far as it goes.
    pub repair: bool,
    /// Whether what an interrupted import left is removed first.
    pub restart: bool,
    /// The data path to record in place of the lake's own.
    pub data_path: Option<String>,
}

/// What was imported.
#[derive(Debug, Clone, Default)]
pub struct ImportReport {
    /// The newest snapshot.
    pub snapshot_id: u64,
    /// Rows by table of DuckLake.
    pub rows: BTreeMap<String, u64>,
    /// What was repaired.
    pub problems: Problems,
    /// Batches of records that an interrupted import had left, and that were not written again.
    pub resumed_batches: u64,
}

/// Imports the lake of `source` into `store`, which must hold nothing, or what the same import left when it was interrupted.
/// On any error but those of the two sides themselves nothing is left.
///
/// # Errors
/// See [`ImportError`].
pub async fn import(
    source: &mut dyn Source,
    store: Arc<dyn Store>,
    options: &ImportOptions,
    progress: &dyn Progress,
) -> Result<ImportReport, ImportError> {
    check_version(source).await?;
    let mut checks = Checks::default();
    check_shape(source, &mut checks);
    let survey = survey(source, &mut checks).await?;
    let fingerprint = fingerprint(source, &survey, options).await?;
    let load = BulkLoad::begin(store, source.name(), &fingerprint, options.restart).await?;
    let resumed_batches = load.resumed_batches();
    let mut context = Context {
        source,
        load,
        checks,
        changelog: Changelog::since((survey.newest + 1).saturating_sub(CHANGELOG_SNAPSHOTS_MAX)),
        touched: BTreeSet::new(),
        snapshots: survey.covered,
        parents: survey.parents,
        catalog_id_max: 0,
        counters_max: [0; 2],
        schema_version_max: 0,
        file_id_max: None,
        row_counts: BTreeMap::new(),
        progress,
        rows: BTreeMap::new(),
    };
    import_parts(&mut context, &survey.plan, options).await?;
    let is_unchanged = context.source.is_unchanged().await?;
    let Context {
        load,
        checks,
        rows,
        source,
        ..
    } = context;
    let catalog = source.name().to_owned();
    if !is_unchanged {
        load.discard().await?;
        return Err(crate::lake::LakeError::Changed { catalog }.into());
    }
    if !checks.problems.is_empty() && !options.repair {
        load.discard().await?;
        return Err(ImportError::Broken {
            catalog,
            problems: checks.problems,
        });
    }
    if let Some(detail) = checks.beyond_repair {
        load.discard().await?;
        return Err(ImportError::Hopeless { catalog, detail });
    }
    load.finish(survey.newest).await?;
    Ok(ImportReport {
        snapshot_id: survey.newest,
        rows,
        problems: checks.problems,
        resumed_batches,
    })
}

async fn import_parts(
    context: &mut Context<'_>,
    plan: &InlinedPlan,
    options: &ImportOptions,
) -> Result<(), ImportError> {
    check_duplicates(context).await?;
    catalog::import(context, options.data_path.as_deref()).await?;
    files::import(context).await?;
    inlined::import(context, plan).await?;
    tables::import(context).await?;
    snapshots::import(context).await
}

/// Refuses catalogs of other versions by name.
async fn check_version(source: &mut dyn Source) -> Result<(), ImportError> {
    let relation = Relation::Metadata;
    let catalog = source.name().to_owned();
    if !source.tables().contains_key(&relation.name()) {
        return Err(ImportError::NoLake {
            catalog,
            table: relation.name(),
        });
    }
    let query = rules::query_columns(relation, &["key", "value"], &[]);
    source.prepare(std::slice::from_ref(&query)).await?;
    let mut stream = KeyedStream::open(source, relation, &query).await?;
    let mut found = None;
    loop {
        let rows = stream.next_rows(&mut Checks::default()).await?;
        if rows.is_empty() {
            break;
        }
        let version = rows.iter().find(|row| rules::text(row, 0) == Some("version"));
        found = found.or(version.and_then(|row| rules::text(row, 1)).map(str::to_owned));
    }
    match found {
        Some(version) if version == VERSION => Ok(()),
        Some(found) if found.starts_with("0.") => Err(ImportError::OldVersion { catalog, found }),
        found => Err(ImportError::UnknownVersion {
            catalog,
            found: found.unwrap_or_else(|| "none".to_owned()),
        }),
    }
}

/// Notes tables and columns that are not there, or that nobody knows.
fn check_shape(source: &dyn Source, checks: &mut Checks) {
    let mut problem = |table: String, detail: String, repair: &str| {
        checks.problems.add(Problem {
            table,
            row: String::new(),
            detail,
            repair: repair.to_owned(),
        });
    };
    for (name, columns) in source.tables() {
        match Relation::parse(name) {
            None => problem(
                name.clone(),
                "the specification has no such table".to_owned(),
                "it is left out",
            ),
            Some(relation) => {
                let Some(schema) = fixed_schema(relation) else {
                    continue;
                };
                for column in columns
                    .iter()
                    .filter(|column| schema.position(&column.name).is_none())
                {
                    let detail = format!("the specification has no column {}", column.name);
                    problem(name.clone(), detail, "the column is left out");
                }
            }
        }
    }
}

/// What has to be known before the first record is written.
struct Survey {
    newest: u64,
    /// The ids of the newest snapshots, as far back as the changelog goes.
    covered: BTreeSet<u64>,
    parents: Parents,
    plan: InlinedPlan,
    /// Of the ids and the versions of all snapshots.
    hasher: DefaultHasher,
}

/// Finds out what there is, and announces all queries.
async fn survey(source: &mut dyn Source, checks: &mut Checks) -> Result<Survey, ImportError> {
    check_complete(source)?;
    let snapshots = rules::query_columns(
        Relation::Snapshot,
        &["snapshot_id", "schema_version"],
        &["snapshot_id"],
    );
    let mut queries = vec![snapshots.clone()];
    queries.extend(inlined::survey_queries().into_iter().map(|(_, query)| query));
    for part in [
        catalog::queries(),
        files::queries(),
        tables::queries(),
        snapshots::queries(),
    ] {
        queries.extend(part.into_iter().map(|(_, query)| query));
    }
    queries.extend(file_ids_queries().into_iter().map(|(_, query)| query));
    source.prepare(&queries).await?;
    let (mut hasher, mut covered, mut types) =
        (DefaultHasher::new(), BTreeSet::new(), ColumnTypes::default());
    each_row(source, Relation::Snapshot, &snapshots, u64::MAX, |row| {
        let (id, version) = (number(row, 0), number(row, 1).unwrap_or_default());
        (id, version).hash(&mut hasher);
        if let Some(id) = id {
            types.add_snapshot(id, version);
            covered.insert(id);
            if covered.len() as u64 > CHANGELOG_SNAPSHOTS_MAX {
                covered.pop_first();
            }
        }
    })
    .await?;
    let Some(newest) = covered.last().copied() else {
        return Err(ImportError::Hopeless {
            catalog: source.name().to_owned(),
            detail: "ducklake_snapshot has no rows, so no lake can be seen".to_owned(),
        });
    };
    covered.retain(|id| id.saturating_add(CHANGELOG_SNAPSHOTS_MAX) > newest);
    checks.newest = newest;
    let parents = Parents::survey(source, newest).await?;
    let plan = inlined::plan(source, checks, types, &parents.tables).await?;
    source.prepare(&plan.queries()).await?;
    Ok(Survey {
        newest,
        covered,
        parents,
        plan,
        hasher,
    })
}

/// A catalog of this version has all tables and columns of it.
fn check_complete(source: &dyn Source) -> Result<(), ImportError> {
    for relation in Relation::FIXED {
        let hopeless = |detail: String| ImportError::Hopeless {
            catalog: source.name().to_owned(),
            detail,
        };
        let Some(columns) = source.tables().get(&relation.name()) else {
            return Err(hopeless(format!(
                "it has no table {relation}, which a catalog of version {VERSION} has"
            )));
        };
        let schema = fixed_schema(relation)
            .map(|schema| schema.columns)
            .unwrap_or_default();
        let missing = schema
            .iter()
            .find(|column| !columns.iter().any(|found| found.name == column.name));
        if let Some(column) = missing {
            return Err(hopeless(format!(
                "{relation} has no column {}, which a catalog of version {VERSION} has",
                column.name
            )));
        }
    }
    Ok(())
}

/// Goes through the rows of a query that are right by themselves, the others unnoted. `newest` is the newest snapshot.
async fn each_row(
    source: &dyn Source,
    relation: Relation,
    query: &Query,
    newest: u64,
    mut visit: impl FnMut(&[Value]) + Send,
) -> Result<(), ImportError> {
    let mut stream = KeyedStream::open(source, relation, query).await?;
    let mut unnoted = Checks {
        newest,
        ..Checks::default()
    };
    loop {
        let rows = stream.next_rows(&mut unnoted).await?;
        if rows.is_empty() {
            return Ok(());
        }
        rows.iter().for_each(|row| visit(row));
    }
}

/// The files of all tables by the ids that are given once in a lake, each with its table and the snapshot it ended at.
fn file_ids_queries() -> Vec<(Relation, Query)> {
    [
        (Relation::DataFile, "data_file_id"),
        (Relation::DeleteFile, "delete_file_id"),
    ]
    .into_iter()
    .map(|(relation, id)| {
        let query = rules::query_columns(relation, &[id, "table_id", "end_snapshot"], &[id]);
        (relation, query)
    })
    .collect()
}

/// Notes files of different tables that have the same id; within a table the record's key finds it out.
async fn check_duplicates(context: &mut Context<'_>) -> Result<(), ImportError> {
    for (relation, query) in file_ids_queries() {
        let (source, checks) = (context.source, &mut context.checks);
        let mut last: Option<(u64, u64)> = None;
        each_row(source, relation, &query, u64::MAX, |row| {
            let Some(found) = number(row, 0).zip(number(row, 1)) else {
                return;
            };
            if let Some((_, other)) = last.filter(|last| last.0 == found.0 && last.1 != found.1) {
                checks.problems.add(Problem {
                    table: relation.name(),
                    row: stream::shown(relation, row),
                    detail: format!("tables {other} and {} both have a file of this id", found.1),
                    repair: "both are imported".to_owned(),
                });
            }
            last = Some(found);
        })
        .await?;
    }
    Ok(())
}

/// What tells one import from another: the state of the source, and how it is imported.
async fn fingerprint(
    source: &dyn Source,
    survey: &Survey,
    options: &ImportOptions,
) -> Result<String, ImportError> {
    let mut hasher = survey.hasher.clone();
    (source.name(), env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    (options.repair, &options.data_path).hash(&mut hasher);
    survey.parents.tables.hash(&mut hasher);
    for table in source.tables().keys() {
        (table, source.count(table).await?).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}
