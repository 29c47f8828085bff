//! The inlined rows of a lake, and its inlined deletions from data files: one inlined table after the other, its rows by the
//! snapshot they began at.

use std::collections::{BTreeMap, BTreeSet};

use moraine_commit::bulk::scratch;
use moraine_commit::{CatalogTransaction, InlineChange};
use moraine_tables::{Column, Relation, Value, inlined_schema};

use crate::column_types::ColumnTypes;
use crate::import::context::Context;
use crate::import::error::{ImportError, Problem};
use crate::import::parents::Lives;
use crate::import::rules::{number, query, query_columns, query_of, text};
use crate::import::stream::{Checks, next_group};
use crate::inlined_tables::{SYSTEM_COLUMNS, delete_columns, door_columns, inlined, user_columns};
use crate::lake::{Query, Source};

/// Rows that are staged together.
const ROWS_STAGED: usize = 4096;
/// Bytes staged from which on they are added once all rows of a snapshot are there.
const STAGED_BYTES: usize = 8 * 1024 * 1024;

/// How the inlined tables of a source are read.
#[derive(Debug, Default)]
pub(crate) struct InlinedPlan {
    pub(crate) types: ColumnTypes,
    /// The inlined data tables.
    data: Vec<DataPlan>,
    /// Each inlined delete table with its query.
    deletes: Vec<(u64, Query)>,
    registered: BTreeSet<(u64, u64)>,
}

/// How an inlined data table is read.
#[derive(Debug)]
struct DataPlan {
    table_id: u64,
    schema_version: u64,
    columns: Vec<Column>,
    /// All of its rows, in the order in which they began.
    rows: Query,
    /// When its rows began and ended, row after row.
    versions: Query,
}

impl InlinedPlan {
    /// The queries of this part.
    pub(crate) fn queries(&self) -> Vec<Query> {
        let data = self.data.iter();
        let data = data.flat_map(|table| [table.rows.clone(), table.versions.clone()]);
        data.chain(self.deletes.iter().map(|(_, query)| query.clone()))
            .collect()
    }
}

/// The queries by which [`plan`] finds out what there is.
pub(crate) fn survey_queries() -> Vec<(Relation, Query)> {
    let columns = query(Relation::Column, &["table_id"]);
    let versions = query_columns(
        Relation::SchemaVersions,
        &["begin_snapshot", "schema_version", "table_id"],
        &["table_id"],
    );
    vec![
        (Relation::Column, columns),
        (Relation::SchemaVersions, versions),
        (
            Relation::InlinedDataTables,
            query(Relation::InlinedDataTables, &["table_id"]),
        ),
    ]
}

/// Finds out which inlined tables there are and what their columns are. `types` knows the schema version of each snapshot.
pub(crate) async fn plan(
    source: &dyn Source,
    checks: &mut Checks,
    types: ColumnTypes,
    tables: &Lives,
) -> Result<InlinedPlan, ImportError> {
    let mut plan = InlinedPlan {
        types,
        ..InlinedPlan::default()
    };
    let relations = inlined(source.tables());
    let wanted: BTreeSet<u64> = relations
        .iter()
        .map(|relation| match relation {
            Relation::InlinedData { table_id, .. } | Relation::InlinedDelete { table_id } => *table_id,
            _ => 0,
        })
        .collect();
    let mut registrations = Vec::new();
    for (relation, query) in survey_queries() {
        // What is wrong with these rows is noted where they are imported.
        let mut unnoted = Checks {
            newest: checks.newest,
            ..Checks::default()
        };
        let noted = if relation == Relation::InlinedDataTables {
            &mut *checks
        } else {
            &mut unnoted
        };
        let mut stream = crate::import::stream::KeyedStream::open(source, relation, &query).await?;
        loop {
            let rows = stream.next_rows(noted).await?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                match relation {
                    Relation::Column => plan.types.add_column(&row, &wanted),
                    Relation::SchemaVersions => {
                        if let (Some(begin), Some(version), Some(table)) =
                            (number(&row, 0), number(&row, 1), number(&row, 2))
                            && wanted.contains(&table)
                        {
                            plan.types.add_schema_version(table, version, begin);
                        }
                    }
                    _ => registrations.push(row),
                }
            }
        }
    }
    register(&mut plan, source, checks, tables, &registrations);
    for relation in relations {
        add_table(&mut plan, source, checks, tables, relation);
    }
    Ok(plan)
}

/// Takes in the list of inlined tables.
fn register(
    plan: &mut InlinedPlan,
    source: &dyn Source,
    checks: &mut Checks,
    tables: &Lives,
    rows: &[Vec<Value>],
) {
    for row in rows {
        let (table_id, schema_version) = (
            number(row, 0).unwrap_or_default(),
            number(row, 2).unwrap_or_default(),
        );
        let expected = Relation::InlinedData {
            table_id,
            schema_version,
        }
        .name();
        let listed = text(row, 1).unwrap_or_default();
        let detail = if !tables.has(table_id) {
            format!("it belongs to table {table_id}, of which ducklake_table has no row")
        } else if listed != expected {
            format!("it lists {listed}, and the table of these ids is called {expected}")
        } else if !source.tables().contains_key(&expected) {
            format!("it lists {expected}, which is not there")
        } else if !plan.registered.insert((table_id, schema_version)) {
            format!("it lists {expected} again")
        } else {
            continue;
        };
        let row = format!("table_id {table_id}, schema_version {schema_version}");
        checks.leave_out(Relation::InlinedDataTables, row, detail);
    }
}

fn add_table(
    plan: &mut InlinedPlan,
    source: &dyn Source,
    checks: &mut Checks,
    tables: &Lives,
    relation: Relation,
) {
    let declared = source.tables().get(&relation.name()).cloned().unwrap_or_default();
    let mut unreadable = |detail: &str| {
        checks.problems.add(Problem {
            table: relation.name(),
            row: String::new(),
            detail: detail.to_owned(),
            repair: "the table is left out".to_owned(),
        });
    };
    let (Relation::InlinedData { table_id, .. } | Relation::InlinedDelete { table_id }) = relation else {
        return;
    };
    if !tables.has(table_id) {
        return unreadable(&format!(
            "it belongs to table {table_id}, of which ducklake_table has no row"
        ));
    }
    match relation {
        Relation::InlinedData { schema_version, .. } => match user_columns(&declared) {
            Some(user) if !user.is_empty() => {
                let columns = door_columns(table_id, schema_version, user, &plan.types);
                let rows = query_of(&relation.name(), &columns, &["begin_snapshot", "row_id"]);
                let system = columns.get(..SYSTEM_COLUMNS.len()).unwrap_or_default();
                let versions = query_of(&relation.name(), system, &["row_id"]);
                plan.data.push(DataPlan {
                    table_id,
                    schema_version,
                    columns,
                    rows,
                    versions,
                });
            }
            _ => unreadable(
                "it does not begin with row_id, begin_snapshot and end_snapshot, with user columns after them",
            ),
        },
        Relation::InlinedDelete { .. } => {
            let columns = delete_columns();
            let same = declared
                .iter()
                .map(|column| &column.name)
                .eq(columns.iter().map(|column| &column.name));
            if same {
                let query = query_of(&relation.name(), &columns, &["file_id", "row_id"]);
                plan.deletes.push((table_id, query));
            } else {
                unreadable("its columns are not file_id, row_id and begin_snapshot");
            }
        }
        _ => {}
    }
}

/// Imports this part.
pub(crate) async fn import(context: &mut Context<'_>, plan: &InlinedPlan) -> Result<(), ImportError> {
    for tables in plan.data.chunk_by(|left, right| left.table_id == right.table_id) {
        for table in tables {
            let (table_id, schema_version) = (table.table_id, table.schema_version);
            let data = DataTable {
                table_id,
                schema_version,
                is_registered: plan.registered.contains(&(table_id, schema_version)),
                schema: schema(&plan.types, table_id, schema_version, &table.columns),
            };
            import_data(context, &data, &table.rows).await?;
        }
        check_versions(context, tables).await?;
    }
    for (table_id, query) in &plan.deletes {
        import_deletes(context, *table_id, query).await?;
    }
    Ok(())
}

fn schema(
    types: &ColumnTypes,
    table_id: u64,
    schema_version: u64,
    columns: &[Column],
) -> arrow_schema::SchemaRef {
    let user = columns.iter().skip(SYSTEM_COLUMNS.len());
    inlined_schema(user.map(|column| {
        let ducklake_type = types.ducklake_type(table_id, schema_version, &column.name);
        (column.name.as_str(), ducklake_type, column.column_type)
    }))
}

/// An inlined data table on its way.
struct DataTable {
    table_id: u64,
    schema_version: u64,
    is_registered: bool,
    schema: arrow_schema::SchemaRef,
}

impl DataTable {
    fn relation(&self) -> Relation {
        Relation::InlinedData {
            table_id: self.table_id,
            schema_version: self.schema_version,
        }
    }

    /// A place to stage rows of the table.
    async fn scratch(&self) -> Result<CatalogTransaction, ImportError> {
        let DataTable {
            table_id,
            schema_version,
            ..
        } = *self;
        let mut tx = scratch().await?;
        tx.inline(InlineChange::CreateTable {
            table_id,
            schema_version,
            schema: self.schema.clone(),
        })
        .await?;
        if self.is_registered {
            tx.inline(InlineChange::Register {
                table_id,
                schema_version,
            })
            .await?;
        }
        Ok(tx)
    }
}

async fn import_data(context: &mut Context<'_>, table: &DataTable, query: &Query) -> Result<(), ImportError> {
    let relation = table.relation();
    let count = context.source.count(&relation.name()).await?;
    context.progress.table(&relation.name(), Some(count));
    if !table.is_registered && count > 0 {
        context.checks.problems.add(Problem {
            table: relation.name(),
            row: String::new(),
            detail: format!("ducklake_inlined_data_tables does not list it, and it has {count} rows"),
            repair: "it is imported and listed".to_owned(),
        });
    }
    let mut stream = context.stream(relation, query).await?;
    let mut tx = table.scratch().await?;
    let mut waiting: Vec<Vec<Value>> = Vec::new();
    let mut begin = None;
    while let Some(key) = stream.peek(&mut context.checks).await? {
        let [begins, _] = key;
        let is_next = begin.is_some_and(|begin| begin != begins);
        if is_next || waiting.len() >= ROWS_STAGED {
            stage_data(context, table, &mut tx, std::mem::take(&mut waiting)).await?;
        }
        if is_next && tx.read().bytes() >= STAGED_BYTES {
            let full = std::mem::replace(&mut tx, table.scratch().await?);
            context.add(full).await?;
        }
        begin = Some(begins);
        let rows = stream.take(key, &mut context.checks).await?;
        for row in rows.iter().skip(1) {
            let detail = "there is another version of this row that began at the same snapshot".to_owned();
            let row = format!(
                "row_id {}, begin_snapshot {begins}",
                number(row, 0).unwrap_or_default()
            );
            context.checks.leave_out(relation, row, detail);
        }
        waiting.extend(rows.into_iter().take(1));
    }
    stage_data(context, table, &mut tx, waiting).await?;
    context.add(tx).await
}

/// Stages rows that began at one snapshot, then their ends.
async fn stage_data(
    context: &mut Context<'_>,
    table: &DataTable,
    tx: &mut CatalogTransaction,
    rows: Vec<Vec<Value>>,
) -> Result<(), ImportError> {
    let mut ends: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut live = rows;
    for row in &mut live {
        let (row_id, begin, end) = (number(row, 0), number(row, 1), number(row, 2));
        let counts = context.row_counts.entry(table.table_id).or_default();
        counts.row_id_max = counts.row_id_max.max(row_id);
        counts.records += u64::from(end.is_none());
        for snapshot in [begin, end].into_iter().flatten() {
            if context.changelog.covers(snapshot) {
                context.touched.insert((snapshot, table.table_id));
            }
        }
        if let (Some(row_id), Some(begin), Some(end)) = (row_id, begin, end) {
            ends.entry(end).or_default().push((row_id, begin));
            if let Some(cell) = row.get_mut(2) {
                *cell = Value::Null;
            }
        }
    }
    keep_insertable(context, table.relation(), tx, &mut live).await?;
    context.stage(tx, table.relation(), &live).await?;
    for (end_snapshot, rows) in ends {
        let change = InlineChange::EndRows {
            table_id: table.table_id,
            rows: rows.clone(),
            end_snapshot,
        };
        if let Err(error) = tx.inline(change).await {
            let (row_id, begin) = rows.first().copied().unwrap_or_default();
            context.checks.problems.add(Problem {
                table: table.relation().name(),
                row: format!(
                    "row_id {row_id}, begin_snapshot {begin} and {} more",
                    rows.len() - 1
                ),
                detail: error.to_string(),
                repair: "the rows stay live".to_owned(),
            });
        }
    }
    Ok(())
}

/// Leaves out the rows that cannot be inserted, so that the others stay together in one chunk.
async fn keep_insertable(
    context: &mut Context<'_>,
    relation: Relation,
    tx: &mut CatalogTransaction,
    rows: &mut Vec<Vec<Value>>,
) -> Result<(), ImportError> {
    let savepoint = tx.savepoint();
    let together = moraine_tables::insert_borrowed(tx, relation, rows).await;
    tx.rollback_to(savepoint);
    if together.is_ok() {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows.drain(..) {
        let savepoint = tx.savepoint();
        let alone = moraine_tables::insert_borrowed(tx, relation, std::slice::from_ref(&row)).await;
        tx.rollback_to(savepoint);
        match alone {
            Ok(_) => kept.push(row),
            Err(error) if crate::import::context::is_about_rows(&error) => {
                let shown = format!(
                    "row_id {}, begin_snapshot {}",
                    number(&row, 0).unwrap_or_default(),
                    number(&row, 1).unwrap_or_default()
                );
                context.checks.leave_out(relation, shown, error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    *rows = kept;
    Ok(())
}

async fn import_deletes(context: &mut Context<'_>, table_id: u64, query: &Query) -> Result<(), ImportError> {
    let relation = Relation::InlinedDelete { table_id };
    let count = context.source.count(&relation.name()).await?;
    context.progress.table(&relation.name(), Some(count));
    let mut stream = context.stream(relation, query).await?;
    let mut tx = scratch().await?;
    moraine_tables::create(&mut tx, relation, None).await?;
    let mut waiting = Vec::new();
    while let Some(key) = stream.peek(&mut context.checks).await? {
        let rows = stream.take(key, &mut context.checks).await?;
        if rows.len() > 1 {
            let detail = "the row is deleted twice".to_owned();
            let [file, row] = key;
            let row = format!("file_id {file}, row_id {row}");
            context.checks.leave_out(relation, row, detail);
        }
        waiting.extend(rows.into_iter().take(1));
        if waiting.len() >= ROWS_STAGED {
            context.stage(&mut tx, relation, &waiting).await?;
            waiting.clear();
            let full = std::mem::replace(&mut tx, scratch().await?);
            context.add(full).await?;
        }
    }
    context.stage(&mut tx, relation, &waiting).await?;
    context.add(tx).await
}

/// A version of an inlined row ends where the first end after its begin is, whichever version of the row that is written
/// with, and in whichever inlined table of its table. Notes rows whose ends contradict that.
async fn check_versions(context: &mut Context<'_>, tables: &[DataPlan]) -> Result<(), ImportError> {
    let mut streams = Vec::with_capacity(tables.len());
    for table in tables {
        let relation = Relation::InlinedData {
            table_id: table.table_id,
            schema_version: table.schema_version,
        };
        streams.push(context.stream(relation, &table.versions).await?);
    }
    // What is wrong with single rows is noted where they are imported.
    let mut unnoted = Checks {
        newest: context.checks.newest,
        ..Checks::default()
    };
    let table_id = tables.first().map_or(0, |table| table.table_id);
    while let Some(([row_id, _], group)) = next_group(&mut streams, &mut unnoted).await? {
        let versions: BTreeSet<(u64, Option<u64>)> = group
            .iter()
            .flatten()
            .filter_map(|row| Some((number(row, 1)?, number(row, 2))))
            .collect();
        if versions.len() > 1 {
            check_row(&mut context.checks, table_id, row_id, &versions);
        }
    }
    Ok(())
}

/// All versions of one row: (begin, end).
fn check_row(checks: &mut Checks, table_id: u64, row_id: u64, versions: &BTreeSet<(u64, Option<u64>)>) {
    let ends: BTreeSet<u64> = versions.iter().filter_map(|(_, end)| *end).collect();
    let mut last_end = Some(0);
    for (begin, end) in versions {
        let first = ends.range(begin.saturating_add(1)..).next().copied();
        if last_end.is_none_or(|last_end| last_end > *begin) {
            two_at_once(checks, table_id, row_id, *begin);
        }
        last_end = first;
        if first == *end {
            continue;
        }
        let shown = |end: Option<u64>| {
            end.map_or_else(|| "lives".to_owned(), |end| format!("ends at snapshot {end}"))
        };
        checks.problems.add(Problem {
            table: format!("ducklake_inlined_data_{table_id}_*"),
            row: format!("row_id {row_id}, begin_snapshot {begin}"),
            detail: format!(
                "it {}, but another version of the row ends at snapshot {}, which ends this one too",
                shown(*end),
                first.unwrap_or_default()
            ),
            repair: format!("it {}", shown(first)),
        });
    }
}

/// Notes a version of a row that begins while another is there. Neither can be left out: which of them is the row is not known.
fn two_at_once(checks: &mut Checks, table_id: u64, row_id: u64, begin: u64) {
    let table = format!("ducklake_inlined_data_{table_id}_*");
    let row = format!("row_id {row_id}, begin_snapshot {begin}");
    let detail = "it begins while another version of the row is there".to_owned();
    let refusal =
        format!("{table} ({row}): {detail}; delete one of them, or end the earlier one at snapshot {begin}");
    checks.beyond_repair.get_or_insert(refusal);
    checks.problems.add(Problem {
        table,
        row,
        detail,
        repair: "there is none".to_owned(),
    });
}
