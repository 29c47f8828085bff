//! Data files, their delete files, partition values and statistics, and the files that wait to be deleted.

use std::collections::{BTreeMap, BTreeSet};

use moraine_codec::Stored;
use moraine_codec::proto::{DataFileValue, DeleteFileValue};
use moraine_keys::{
    DataFileKey, DeleteFileKey, FileColumnStatsKey, GcFileKey, History, Kind, MappingKey, PartitionKey,
    TableChild, TableColumnStatsKey, TableScoped, TableStatsKey,
};
use moraine_store::ReadError;

use super::{Check, Invariant};

pub(super) async fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    let scheduled = scheduled(check).await?;
    data_files::<DataFileKey>(check).await?;
    data_files::<History<DataFileKey>>(check).await?;
    unused::<DataFileKey>(check, &scheduled, |key| key.data_file_id).await?;
    unused::<DeleteFileKey>(check, &scheduled, |key| key.delete_file_id).await?;
    delete_files(check).await?;
    statistics(check).await
}

async fn scheduled(check: &Check<'_>) -> Result<BTreeSet<u64>, ReadError> {
    let mut ids = BTreeSet::new();
    let mut scan = check.scan::<GcFileKey>(GcFileKey::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        ids.insert(key.data_file_id);
    }
    Ok(ids)
}

async fn unused<K: Stored>(
    check: &mut Check<'_>,
    scheduled: &BTreeSet<u64>,
    id: fn(&K) -> u64,
) -> Result<(), ReadError> {
    if scheduled.is_empty() {
        return Ok(());
    }
    let mut scan = check.scan::<K>(K::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        if scheduled.contains(&id(&key)) {
            let detail = "it is live, and the next clean-up deletes the file";
            check.found(Invariant::ScheduledFilesUnused, &key, detail);
        }
    }
    Ok(())
}

/// The files of one table after another, with what is known of the table.
#[derive(Debug, Default)]
struct OfTable {
    table_id: Option<u64>,
    next_row_id: Option<u64>,
    /// The columns that each partitioning of the table has.
    partitionings: BTreeMap<u64, usize>,
}

impl OfTable {
    async fn load(check: &Check<'_>, table_id: u64) -> Result<Self, ReadError> {
        let stats = check.value(&TableStatsKey { table_id }).await?;
        let mut partitionings = BTreeMap::new();
        let mut scan = check
            .scan::<PartitionKey>(PartitionKey::scan_table(table_id))
            .await?;
        while let Some((key, value)) = scan.next().await? {
            partitionings.insert(key.partition_id, value.columns.len());
        }
        let mut scan = check
            .scan::<History<PartitionKey>>(History::<PartitionKey>::scan_table(table_id))
            .await?;
        while let Some((key, value)) = scan.next().await? {
            partitionings.insert(key.entity.partition_id, value.columns.len());
        }
        Ok(Self {
            table_id: Some(table_id),
            next_row_id: stats.map(|stats| stats.next_row_id),
            partitionings,
        })
    }
}

async fn data_files<K>(check: &mut Check<'_>) -> Result<(), ReadError>
where
    K: Stored<Value = DataFileValue>,
{
    let mut table = OfTable::default();
    let mut scan = check.scan::<K>(K::scan()).await?;
    while let Some((key, file)) = scan.next().await? {
        if table.table_id != Some(file.table_id) {
            table = OfTable::load(check, file.table_id).await?;
        }
        row_ids(check, &key, &file, &table);
        partition_values(check, &key, &file, &table);
        if let Some(mapping_id) = file.mapping_id {
            let mapping = MappingKey {
                table_id: file.table_id,
                mapping_id,
            };
            if !check.exists(&mapping).await? {
                check.found(Invariant::ParentExists, &key, format!("there is no {mapping}"));
            }
        }
    }
    Ok(())
}

fn row_ids(check: &mut Check<'_>, key: &impl Kind, file: &DataFileValue, table: &OfTable) {
    let (Some(start), Some(next)) = (file.row_id_start, table.next_row_id) else {
        return;
    };
    // A file of several snapshots carries its row ids, and one may be there more than once.
    let rows = match file.partial_max {
        Some(_) => file.record_count.min(1),
        None => file.record_count,
    };
    let end = start.saturating_add(rows);
    if end > next {
        let detail = format!(
            "it has row id {}, and the table's next_row_id is {next}",
            end.saturating_sub(1)
        );
        check.found(Invariant::RowIdsBelowCounter, key, detail);
    }
}

fn partition_values(check: &mut Check<'_>, key: &impl Kind, file: &DataFileValue, table: &OfTable) {
    let Some(partition_id) = file.partition_id else {
        return;
    };
    match table.partitionings.get(&partition_id) {
        None => {
            let detail = format!("there is no partitioning {partition_id} of its table");
            check.found(Invariant::ParentExists, key, detail);
        }
        Some(columns) if *columns != file.partition_values.len() => {
            let detail = format!(
                "it has {} partition values, and partitioning {partition_id} has {columns} columns",
                file.partition_values.len()
            );
            check.found(Invariant::PartitionValuesComplete, key, detail);
        }
        Some(_) => {}
    }
}

/// Delete files are for data files that are there, or were: DuckLake ends a data file without its delete files where all
/// rows go at once.
async fn delete_files(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut scan = check.scan::<DeleteFileKey>(DeleteFileKey::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        delete_file(check, &key, &value).await?;
    }
    let mut ended = check
        .scan::<History<DeleteFileKey>>(History::<DeleteFileKey>::scan())
        .await?;
    while let Some((key, value)) = ended.next().await? {
        delete_file(check, &key, &value).await?;
    }
    Ok(())
}

async fn delete_file(
    check: &mut Check<'_>,
    key: &impl Kind,
    value: &DeleteFileValue,
) -> Result<(), ReadError> {
    let target = target(value);
    match file_version(check, &target).await? {
        None => {
            let detail = format!("there is no {target}, nor was there one");
            check.found(Invariant::ParentExists, key, detail);
        }
        Some(file) if value.delete_count > file.record_count => {
            let detail = format!(
                "it deletes {} rows, and {target} has {}",
                value.delete_count, file.record_count
            );
            check.found(Invariant::DeletesWithinFile, key, detail);
        }
        Some(_) => {}
    }
    Ok(())
}

fn target(value: &DeleteFileValue) -> DataFileKey {
    DataFileKey {
        table_id: value.table_id,
        data_file_id: value.data_file_id,
    }
}

/// A version of the data file that was asked for last: records of one file come one after another.
#[derive(Debug, Default)]
pub(super) struct LastFile(Option<(DataFileKey, Option<DataFileValue>)>);

impl LastFile {
    /// The live version of the file, or the last ended one.
    pub(super) async fn version(
        &mut self,
        check: &Check<'_>,
        file: DataFileKey,
    ) -> Result<Option<&DataFileValue>, ReadError> {
        if self.0.as_ref().is_none_or(|(known, _)| *known != file) {
            let version = file_version(check, &file).await?;
            self.0 = Some((file, version));
        }
        Ok(self.0.as_ref().and_then(|(_, version)| version.as_ref()))
    }
}

/// The live version of a data file, or the last ended one.
async fn file_version(check: &Check<'_>, file: &DataFileKey) -> Result<Option<DataFileValue>, ReadError> {
    if let Some(value) = check.value(file).await? {
        return Ok(Some(value));
    }
    let range = History::<DataFileKey>::scan_table_ids(file.table_id, file.data_file_id..=file.data_file_id);
    let mut scan = check.scan::<History<DataFileKey>>(range).await?;
    let mut last = None;
    while let Some((_, value)) = scan.next().await? {
        last = Some(value);
    }
    Ok(last)
}

/// The statistics of a file's columns belong to a file, and the table's statistics admit what they say.
async fn statistics(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut file = LastFile::default();
    let mut without_null = (None, BTreeSet::new());
    let mut scan = check
        .scan::<FileColumnStatsKey>(FileColumnStatsKey::scan())
        .await?;
    while let Some((key, value)) = scan.next().await? {
        let of = DataFileKey {
            table_id: key.table_id,
            data_file_id: key.data_file_id,
        };
        let Some(version) = file.version(check, of).await? else {
            let detail = format!("there is no data file {}, nor was there one", key.data_file_id);
            check.found(Invariant::ParentExists, &key, detail);
            continue;
        };
        if without_null.0 != Some(key.table_id) {
            without_null = (
                Some(key.table_id),
                columns_without_null(check, key.table_id).await?,
            );
        }
        let is_live = version.end_snapshot.is_none();
        if is_live && value.null_count > 0 && without_null.1.contains(&key.column_id) {
            let detail = format!(
                "it counts {} NULLs, and the table's statistics say that the column has none",
                value.null_count
            );
            check.found(Invariant::StatisticsAgree, &key, detail);
        }
    }
    Ok(())
}

/// The columns of a table that its statistics say hold no NULL.
async fn columns_without_null(check: &Check<'_>, table_id: u64) -> Result<BTreeSet<u64>, ReadError> {
    let mut columns = BTreeSet::new();
    let range = TableColumnStatsKey::scan_table(table_id);
    let mut scan = check.scan::<TableColumnStatsKey>(range).await?;
    while let Some((key, value)) = scan.next().await? {
        if value.contains_null == Some(false) {
            columns.insert(key.column_id);
        }
    }
    Ok(columns)
}
