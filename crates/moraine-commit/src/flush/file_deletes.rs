//! Inlined deletions from data files, written out as delete files. One that a data file has already is read and replaced by one that
//! holds both, as DuckLake's own flush does.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moraine_codec::proto::{DataFileValue, DeleteFileValue};
use moraine_inline::{DeleteFileFormat, file_deletes, read_delete_file};
use moraine_keys::{DataFileKey, History, TableScoped};
use moraine_store::{DataFiles, ReadExt, StoreUrl};

use crate::flush::FlushError;
use crate::flush::litter::Litter;
use crate::flush::plan::{Plan, TablePlan};
use crate::flush::write::{WrittenDeleteFile, new_key, put_delete_file};
use crate::transaction::CatalogTransaction;
use crate::views;

/// A delete file that lies at the data path and is not yet known to the catalog.
pub(super) struct WrittenDeletes {
    pub(super) data_file_id: u64,
    pub(super) file: WrittenDeleteFile,
    /// The last snapshot that deletes a row.
    pub(super) last_snapshot: u64,
    /// The inlined positions that went into it.
    pub(super) positions: Vec<u64>,
    /// The delete file that it replaces.
    pub(super) replaced: Option<DeleteFileValue>,
    pub(super) encryption_key: Option<Vec<u8>>,
}

/// Writes out the inlined deletions of one table.
pub(super) async fn write(
    transaction: &CatalogTransaction,
    plan: &Plan,
    table: &TablePlan,
    litter: &mut Litter,
) -> Result<Vec<WrittenDeletes>, FlushError> {
    let read = transaction.read();
    let inlined = file_deletes(read, table.table_id, 0..=u64::MAX).await;
    let mut by_file: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (data_file_id, position, begin_snapshot) in inlined.map_err(|error| table.error(error))? {
        by_file
            .entry(data_file_id)
            .or_default()
            .push((position, begin_snapshot));
    }
    if by_file.is_empty() {
        return Ok(Vec::new());
    }
    let files = data_files(transaction, table.table_id).await?;
    let live = views::delete_files_at(read, plan.until, table.table_id).await?;
    let encryption_key = plan.encrypted.then(new_key).transpose()?;
    let place = DataFiles::open(&table.folder.parse::<StoreUrl>()?)?;
    let mut written = Vec::new();
    for (data_file_id, deletions) in by_file {
        let Some(file) = files.get(&data_file_id) else {
            let reason =
                format!("it has inlined deletions from data file {data_file_id}, which does not exist");
            return Err(table.unsupported(reason));
        };
        let replaced = live.iter().find(|(_, value)| value.data_file_id == data_file_id);
        let replaced = replaced.map(|(_, value)| value.clone());
        let mut all: BTreeMap<u64, u64> = deletions.iter().copied().collect();
        if let Some(replaced) = &replaced {
            for (position, end) in existing(table, replaced).await? {
                // A row that is deleted twice went with the first.
                let first = all.entry(position).or_insert(end);
                *first = end.min(*first);
            }
        }
        let all: Vec<(u64, u64)> = all.into_iter().collect();
        let path = full_path(table, &file.path, file.path_is_relative);
        let file = put_delete_file(table, &place, &path, &all, encryption_key.as_deref(), litter).await?;
        written.push(WrittenDeletes {
            data_file_id,
            file,
            last_snapshot: all.iter().map(|(_, end)| *end).max().unwrap_or_default(),
            positions: deletions.into_iter().map(|(position, _)| position).collect(),
            replaced,
            encryption_key: encryption_key.clone(),
        });
    }
    Ok(written)
}

/// The path of a file of the table as readers know it.
pub(super) fn full_path(table: &TablePlan, path: &str, is_relative: bool) -> String {
    if is_relative {
        format!("{}{path}", table.folder)
    } else {
        path.to_owned()
    }
}

/// The data files of a table, ended ones too.
async fn data_files(
    transaction: &CatalogTransaction,
    table_id: u64,
) -> Result<BTreeMap<u64, DataFileValue>, FlushError> {
    let read = transaction.read();
    let ended = History::<DataFileKey>::scan_table(table_id);
    let ended = read.records::<History<DataFileKey>>(ended).await?;
    let current = read
        .records::<DataFileKey>(DataFileKey::scan_table(table_id))
        .await?;
    let ended = ended
        .into_iter()
        .map(|(key, value)| (key.entity.data_file_id, value));
    let current = current.into_iter().map(|(key, value)| (key.data_file_id, value));
    Ok(ended.chain(current).collect())
}

/// The deletions in a delete file: position, and the snapshot that deletes it.
async fn existing(table: &TablePlan, file: &DeleteFileValue) -> Result<Vec<(u64, u64)>, FlushError> {
    let path = full_path(table, &file.path, file.path_is_relative);
    let format = match file.format.to_ascii_lowercase().as_str() {
        "" | "parquet" => DeleteFileFormat::Parquet,
        "puffin" => DeleteFileFormat::Puffin,
        other => return Err(table.unsupported(format!("its delete file {path} is in the format {other}"))),
    };
    let key =
        match &file.encryption_key {
            None => None,
            Some(text) => {
                let decoded = STANDARD.decode(text);
                Some(decoded.map_err(|error| {
                    table.unsupported(format!("the key of {path} is not base64: {error}"))
                })?)
            }
        };
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", &path));
    let content = DataFiles::open(&folder.parse::<StoreUrl>()?)?.get(name).await?;
    let found = read_delete_file(content, format, key.as_deref()).map_err(|error| table.error(error))?;
    let found = found.into_iter();
    Ok(found
        .map(|(position, snapshot)| (position, snapshot.unwrap_or(file.begin_snapshot)))
        .collect())
}
