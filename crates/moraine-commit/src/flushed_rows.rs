//! Whether the files of a client's flush hold exactly the inlined rows that its commit removes, read from their columns of row ids.
//! Where the files lie out of this process's reach, only their numbers of rows are held against it: see [`crate::flush_check`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moraine_codec::proto::DataFileValue;
use moraine_inline::{InlineError, RowMultiset, read_row_ids};
use moraine_keys::{OptionKey, SchemaKey, TableKey};
use moraine_store::{DataFiles, ReadError, ReadExt, Staging, StoreUrl};

use crate::error::CommitFailure;
use crate::flush::folder;
use crate::flush_check::FileChanges;
use crate::transaction::Staged;

/// Refuses a commit of `snapshot_id` whose files of earlier snapshots hold other rows of a table than it removes. With `remote`
/// data paths in buckets are read too.
pub(crate) async fn check(
    staging: &Staging,
    snapshot_id: u64,
    staged: &Staged,
    files: &FileChanges,
    remote: bool,
) -> Result<(), CommitFailure> {
    for (table_id, removed) in &staged.drained_rows {
        let of_snapshot = |(table, begin): &(u64, u64)| table == table_id && *begin >= snapshot_id;
        if files.replaced.contains(table_id) || staged.drained.keys().any(of_snapshot) {
            continue;
        }
        let flushed = files.files.iter();
        let flushed: Vec<&DataFileValue> = flushed
            .filter(|file| file.table_id == *table_id && file.begin_snapshot < snapshot_id)
            .collect();
        let Some(written) = rows_of(staging, *table_id, &flushed, remote).await? else {
            continue;
        };
        if let Some(row_id) = written.first_difference(removed) {
            let detail = format!(
                "this commit registers files with {} rows of table {table_id} and removes {} inlined rows of it, which differ \
                 from row id {row_id} on, so rows would be lost or doubled; nothing was written, and the inlined rows are all \
                 there: flush the table again",
                written.len(),
                removed.len()
            );
            return Err(CommitFailure::Constraint { detail });
        }
    }
    Ok(())
}

/// The row ids in files of a table; `None` when they cannot be read from here, or do not say.
async fn rows_of(
    staging: &Staging,
    table_id: u64,
    files: &[&DataFileValue],
    remote: bool,
) -> Result<Option<RowMultiset>, ReadError> {
    let Some(folder) = table_folder(staging, table_id).await? else {
        return Ok(None);
    };
    let mut rows = RowMultiset::default();
    for file in files {
        let path = if file.path_is_relative {
            format!("{folder}{}", file.path)
        } else {
            file.path.clone()
        };
        match read(&path, file, remote, &mut rows).await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(reason) => {
                tracing::debug!(path, reason, "a flushed file is taken at its number of rows");
                return Ok(None);
            }
        }
    }
    Ok(Some(rows))
}

/// Adds the row ids of one file; `false` when it has no column of them.
async fn read(
    path: &str,
    file: &DataFileValue,
    remote: bool,
    rows: &mut RowMultiset,
) -> Result<bool, String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let url: StoreUrl = folder
        .parse()
        .map_err(|error: moraine_store::OpenError| error.to_string())?;
    if url.is_local().is_none() && !remote {
        return Err("the data path is in a bucket, and the catalog is not".to_owned());
    }
    let place = DataFiles::open_existing(&url).map_err(|error| error.to_string())?;
    let key = file.encryption_key.as_ref().map(|key| STANDARD.decode(key));
    let key = key.transpose().map_err(|error| error.to_string())?;
    let fetch = |range| async { place.get_range(name, range).await.map_err(InlineError::from) };
    let read = read_row_ids(
        file.file_size_bytes,
        file.footer_size,
        key.as_deref(),
        fetch,
        rows,
    );
    read.await.map_err(|error| error.to_string())
}

async fn table_folder(staging: &Staging, table_id: u64) -> Result<Option<String>, ReadError> {
    let Some(table) = staging.value(&TableKey { table_id }).await? else {
        return Ok(None);
    };
    let schema_id = table.schema_id;
    let schema = staging.value(&SchemaKey { schema_id }).await?;
    let lake = OptionKey {
        scope_kind: 0,
        scope_id: 0,
    };
    let options = staging.value(&lake).await?.unwrap_or_default().options;
    let data_path = options.get("data_path").filter(|path| !path.is_empty());
    Ok(data_path
        .zip(schema)
        .map(|(path, schema)| folder(path, &schema, &table)))
}
