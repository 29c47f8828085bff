//! The files that wait to be deleted. None of them is in use: the next clean-up would delete it.

use moraine_commit::bulk::scratch;
use moraine_tables::{Relation, Value};

use crate::import::context::Context;
use crate::import::error::ImportError;
use crate::import::file_ids_queries;
use crate::import::rules::{self, number};
use crate::import::stream::{Checks, GroupKey, KeyedStream, shown};
use crate::lake::{LakeError, Query};

/// Rows that are staged together.
const ROWS_STAGED: usize = 4096;
const RELATION: Relation = Relation::FilesScheduledForDeletion;
/// Positions of `table_id` and `end_snapshot` in what is read of files.
const TABLE_ID: usize = 1;
const END: usize = 2;

/// The query of this part.
pub(crate) fn query() -> (Relation, Query) {
    (RELATION, rules::query(RELATION, &["data_file_id"]))
}

/// Imports this part. Of the files of tables no more are gone through than there are up to the last scheduled one.
pub(crate) async fn import(context: &mut Context<'_>) -> Result<(), ImportError> {
    let mut scheduled = context.stream(RELATION, &query().1).await?;
    let mut files = Vec::new();
    for (relation, query) in file_ids_queries() {
        files.push((relation, context.stream(relation, &query).await?));
    }
    context.progress.table(&RELATION.name(), None);
    let mut tx = scratch().await?;
    let mut rows_staged = 0;
    while let Some(id) = scheduled.peek(&mut context.checks).await? {
        let rows = scheduled.take(id, &mut context.checks).await?;
        if let Some(detail) = use_of(&mut files, id).await? {
            for row in rows {
                let row = shown(RELATION, &row);
                context.checks.leave_out(RELATION, row, detail.clone());
            }
            continue;
        }
        rows_staged += rows.len();
        context.stage(&mut tx, RELATION, &rows).await?;
        if rows_staged >= ROWS_STAGED {
            rows_staged = 0;
            let full = std::mem::replace(&mut tx, scratch().await?);
            context.add(full).await?;
        }
    }
    context.add(tx).await
}

/// What a file of this id is in use as.
async fn use_of(files: &mut [(Relation, KeyedStream)], id: GroupKey) -> Result<Option<String>, LakeError> {
    let mut found = None;
    for (relation, files) in files {
        let rows = rows_of(files, id).await?;
        if let Some(row) = rows.iter().find(|row| row.get(END).is_some_and(Value::is_null)) {
            let table_id = number(row, TABLE_ID).unwrap_or_default();
            found = Some(format!(
                "{relation} has a row of it that lives, of table {table_id}, and the next clean-up would delete the file"
            ));
        }
    }
    Ok(found)
}

/// The rows of a group; those before it are passed over. What is wrong with them is noted where they are imported.
async fn rows_of(stream: &mut KeyedStream, id: GroupKey) -> Result<Vec<Vec<Value>>, LakeError> {
    let mut unnoted = Checks {
        newest: u64::MAX,
        ..Checks::default()
    };
    while let Some(at) = stream.peek(&mut unnoted).await?
        && at < id
    {
        stream.take(at, &mut unnoted).await?;
    }
    stream.take(id, &mut unnoted).await
}
