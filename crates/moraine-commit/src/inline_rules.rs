//! Staged changes of inlined rows: what they do is `moraine-inline`'s; here is only what a commit must know of them, the
//! registrations that came before their table, and how many rows a flush has drained.

use std::collections::BTreeSet;

use arrow_schema::Schema;
use moraine_inline::{DirectoriesAt, InlineError};
use moraine_store::Staging;

use crate::change::InlineChange;
use crate::error::StageError;
use crate::transaction::Staged;

/// Stages one change of inlined rows. What was staged before an error stays; the caller takes it back.
pub(crate) async fn apply(
    staging: &mut Staging,
    directories: &DirectoriesAt,
    staged: &mut Staged,
    change: InlineChange,
) -> Result<(), StageError> {
    match change {
        InlineChange::CreateTable {
            table_id,
            schema_version,
            schema,
        } => {
            create_table(staging, staged, table_id, schema_version, &schema).await?;
        }
        InlineChange::Register {
            table_id,
            schema_version,
        } => {
            register(staging, staged, table_id, schema_version).await?;
        }
        InlineChange::Deregister {
            table_id,
            schema_version,
        } => {
            if !staged.pending_registrations.remove(&(table_id, schema_version)) {
                moraine_inline::deregister(staging, table_id, schema_version).await?;
            }
        }
        InlineChange::RemoveRows {
            table_id,
            schema_version,
            rows,
        } => {
            moraine_inline::remove_rows(staging, directories, table_id, schema_version, &rows).await?;
            count_drained(staged, table_id, rows);
        }
        InlineChange::Drain {
            table_id,
            schema_version,
            until_snapshot,
            written,
        } => {
            let removed = moraine_inline::drain(
                staging,
                directories,
                table_id,
                schema_version,
                until_snapshot,
                &written,
            );
            for (begin_snapshot, count) in removed.await? {
                *staged.drained.entry((table_id, begin_snapshot)).or_default() += count;
            }
        }
        change => apply_rows(staging, directories, change).await?,
    }
    Ok(())
}

/// Notes what has been drained; a row version that one call names twice is one.
fn count_drained(staged: &mut Staged, table_id: u64, rows: Vec<(u64, u64)>) {
    let rows: BTreeSet<(u64, u64)> = rows.into_iter().collect();
    for (row_id, begin_snapshot) in rows {
        staged.drained_rows.entry(table_id).or_default().add_row(row_id);
        *staged.drained.entry((table_id, begin_snapshot)).or_default() += 1;
    }
}

async fn create_table(
    staging: &mut Staging,
    staged: &mut Staged,
    table_id: u64,
    schema_version: u64,
    schema: &Schema,
) -> Result<(), StageError> {
    let registered = staged.pending_registrations.remove(&(table_id, schema_version));
    moraine_inline::create_table(staging, table_id, schema_version, schema, registered).await?;
    if registered {
        // The table may have been there already, unregistered.
        moraine_inline::register(staging, table_id, schema_version).await?;
    }
    Ok(())
}

async fn register(
    staging: &mut Staging,
    staged: &mut Staged,
    table_id: u64,
    schema_version: u64,
) -> Result<(), StageError> {
    if moraine_inline::schema(staging, table_id, schema_version)
        .await?
        .is_some()
    {
        moraine_inline::register(staging, table_id, schema_version).await?;
    } else if !staged.pending_registrations.insert((table_id, schema_version)) {
        let key = format!("ducklake_inlined_data_tables({table_id}, {schema_version})");
        return Err(StageError::Duplicate { key });
    }
    Ok(())
}

/// The changes that a commit needs to know nothing of.
async fn apply_rows(
    staging: &mut Staging,
    directories: &DirectoriesAt,
    change: InlineChange,
) -> Result<(), InlineError> {
    match change {
        InlineChange::CreateTable { .. }
        | InlineChange::Register { .. }
        | InlineChange::Deregister { .. }
        | InlineChange::RemoveRows { .. }
        | InlineChange::Drain { .. } => Ok(()),
        InlineChange::DropTable {
            table_id,
            schema_version,
        } => moraine_inline::drop_version(staging, directories, table_id, schema_version).await,
        InlineChange::Insert {
            table_id,
            schema_version,
            begin_snapshot,
            row_ids,
            batch,
        } => {
            moraine_inline::insert(
                staging,
                directories,
                table_id,
                schema_version,
                begin_snapshot,
                &row_ids,
                &batch,
            )
            .await
        }
        InlineChange::EndRows {
            table_id,
            rows,
            end_snapshot,
        } => moraine_inline::end_rows(staging, table_id, &rows, end_snapshot).await,
        InlineChange::CreateFileDeleteTable { table_id } => {
            moraine_inline::create_file_delete_table(staging, table_id).await
        }
        InlineChange::DropFileDeleteTable { table_id } => {
            moraine_inline::drop_file_delete_table(staging, table_id).await
        }
        InlineChange::InsertFileDeletes { table_id, rows } => {
            moraine_inline::insert_file_deletes(staging, table_id, &rows).await
        }
        InlineChange::RemoveFileDeletes { table_id, rows } => {
            moraine_inline::remove_file_deletes(staging, table_id, &rows).await
        }
    }
}
