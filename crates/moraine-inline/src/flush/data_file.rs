//! The data files of a flush, as DuckLake writes and reads them: columns known by field id, row ids and begin snapshots in columns
//! of their own, one file after another.

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use moraine_codec::format::{ROW_ID_FIELD_ID, SNAPSHOT_ID_FIELD_ID};
use moraine_store::Read;
use parquet::basic::Repetition;
use parquet::file::metadata::ParquetMetaData;

use crate::error::InlineError;
use crate::flush::column::{FlushColumn, Kind, Leaf, field_id};
use crate::flush::convert::{bigints, note_nans};
use crate::flush::encrypted::ParquetOutput;
use crate::flush::ordered_rows::{FlushBatch, OrderedRows, SortField};
use crate::flush::parquet_error;
use crate::flush::parquet_options::ParquetOptions;
use crate::flush::partition::{self, PartitionField};
use crate::flush::row_multiset::RowMultiset;
use crate::flush::row_windows::InlinedRows;
use crate::flush::statistics::{self, ColumnStatistics};

/// The column of row ids in files whose rows have them of their own.
pub(super) const ROW_ID_COLUMN: &str = "_ducklake_internal_row_id";
/// The column of begin snapshots in files of several, and of end snapshots in delete files.
pub(super) const SNAPSHOT_ID_COLUMN: &str = "_ducklake_internal_snapshot_id";

/// How the files of one inlined table are to look.
#[derive(Debug, Clone, Default)]
pub struct FlushLayout {
    /// Its top-level columns in order, as they were at its schema version.
    pub columns: Vec<FlushColumn>,
    /// The partitioning it had then.
    pub partition: Vec<PartitionField>,
    /// The sort order that the table has now.
    pub sort: Vec<SortField>,
    /// Whether files lie in folders named after their partition.
    pub hive_folders: bool,
    /// The table's options.
    pub parquet: ParquetOptions,
    /// The key that files are encrypted with.
    pub encryption_key: Option<Vec<u8>>,
}

/// A data file that a flush has written.
#[derive(Debug, Clone, Default)]
pub struct FlushedFile {
    /// Versions of rows in it.
    pub rows: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// The length of its footer in bytes.
    pub footer_bytes: u64,
    /// The least row id.
    pub first_row_id: u64,
    /// The least and the greatest begin snapshot.
    pub begin_snapshots: Option<RangeInclusive<u64>>,
    /// Statistics of columns and fields by column id; lists, structs and maps have none of their own.
    pub columns: Vec<(u64, ColumnStatistics)>,
    /// Rows that have ended: position in the file, end snapshot. Ascending.
    pub ended: Vec<(u64, u64)>,
    /// The values of the partition it lies in.
    pub partition_values: Vec<Option<String>>,
    /// The folder below the table's that it belongs in: empty, or with a slash at its end.
    pub folder: String,
}

/// Writes the rows of one inlined table, file by file.
pub struct DataFileStream {
    rows: OrderedRows,
    layout: FlushLayout,
    key_names: Vec<String>,
    schema: SchemaRef,
    leaves: Vec<Leaf>,
    written: RowMultiset,
}

impl DataFileStream {
    /// Begins with the first of `rows`.
    ///
    /// # Errors
    /// [`InlineError::FlushColumn`] for a column that cannot be written, [`InlineError::FlushOrder`] for one that the table cannot
    /// be partitioned or sorted by here. Nothing has been read then.
    pub fn new(rows: InlinedRows, layout: FlushLayout) -> Result<Self, InlineError> {
        let rows = OrderedRows::new(rows, &layout)?;
        let user = rows.nodes().iter().map(|node| node.field(&node.name, true));
        let own = [ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(user.chain(own).collect::<Vec<_>>()));
        let mut leaves = Vec::new();
        rows.nodes().iter().for_each(|node| node.leaves(&mut leaves));
        let keys = layout.partition.iter().filter_map(|field| {
            let column = layout.columns.get(field.column)?;
            Some((field.transform, column.name.as_str()))
        });
        let key_names = partition::key_names(&keys.collect::<Vec<_>>());
        Ok(Self {
            rows,
            key_names,
            schema,
            leaves,
            written: RowMultiset::default(),
            layout,
        })
    }

    /// The row ids that the files written so far hold.
    #[must_use]
    pub fn written(&self) -> &RowMultiset {
        &self.written
    }

    /// Writes the next file, whole, to `out`; `None`, with nothing written, behind the last row. A file of a partitioned table
    /// holds one partition, that of another as many rows as its target size lets in.
    ///
    /// # Errors
    /// [`InlineError::FlushValue`] for a value that Parquet does not hold as it is; [`InlineError::Parquet`];
    /// [`moraine_store::ReadError::Corruption`] for damaged records.
    pub async fn next_file(
        &mut self,
        read: &dyn Read,
        out: impl Write + Send,
    ) -> Result<Option<FlushedFile>, InlineError> {
        let Some(mut batch) = self.rows.next(read).await? else {
            return Ok(None);
        };
        let mut file = ParquetOutput::new(out, self.layout.encryption_key.as_deref())?;
        let options = self.layout.parquet.clone();
        let mut writer = options.writer(&mut file, Arc::clone(&self.schema), self.types()?)?;
        let mut flushed = self.begun(&batch);
        let mut has_nan = vec![false; self.leaves.len()];
        loop {
            let mut found = has_nan.iter_mut();
            batch
                .columns
                .iter()
                .for_each(|column| note_nans(column, &mut found));
            writer.write(&self.file_batch(&batch)?).map_err(parquet_error)?;
            if writer.in_progress_size() > options.row_group_bytes() {
                writer.flush().map_err(parquet_error)?;
            }
            flushed.note(&batch, &mut self.written);
            let bytes = (writer.bytes_written() + writer.in_progress_size()) as u64;
            if self.layout.partition.is_empty() && bytes >= options.file_bytes() {
                break;
            }
            match self.rows.next(read).await? {
                Some(next) if next.partition == flushed.partition_values => batch = next,
                Some(next) => {
                    self.rows.put_back(next);
                    break;
                }
                None => break,
            }
        }
        let metadata = ParquetOutput::close(writer)?;
        let written = file.finish(metadata)?;
        flushed.columns = column_statistics(&self.leaves, &written.metadata, &has_nan);
        (flushed.file_bytes, flushed.footer_bytes) = (written.file_bytes, written.footer_bytes);
        Ok(Some(flushed))
    }

    fn begun(&self, first: &FlushBatch) -> FlushedFile {
        let folder = if self.layout.hive_folders {
            partition::folder(&self.key_names, &first.partition)
        } else {
            String::new()
        };
        FlushedFile {
            partition_values: first.partition.clone(),
            folder,
            ..FlushedFile::default()
        }
    }

    fn types(&self) -> Result<Vec<Arc<parquet::schema::types::Type>>, InlineError> {
        let user = self.rows.nodes().iter();
        let user = user.map(|node| node.parquet_type(&node.name, Repetition::OPTIONAL));
        let own = [
            (ROW_ID_COLUMN, ROW_ID_FIELD_ID),
            (SNAPSHOT_ID_COLUMN, SNAPSHOT_ID_FIELD_ID),
        ];
        let own = own
            .map(|(name, id)| Kind::Signed(64).parquet_type(name, Repetition::OPTIONAL, Some(field_id(id)?)));
        user.chain(own).collect()
    }

    fn file_batch(&self, batch: &FlushBatch) -> Result<RecordBatch, InlineError> {
        let mut columns = batch.columns.clone();
        columns.push(bigints(batch.row_ids.values().iter().copied()));
        columns.push(bigints(batch.begins.values().iter().copied()));
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|source| InlineError::Assemble { source })
    }
}

impl FlushedFile {
    fn note(&mut self, batch: &FlushBatch, written: &mut RowMultiset) {
        for (position, (row_id, begin)) in batch
            .row_ids
            .values()
            .iter()
            .zip(batch.begins.values())
            .enumerate()
        {
            let (row_id, begin) = (*row_id, *begin);
            written.add_row(row_id);
            self.first_row_id = if self.rows == 0 {
                row_id
            } else {
                self.first_row_id.min(row_id)
            };
            self.begin_snapshots = Some(match &self.begin_snapshots {
                Some(seen) => begin.min(*seen.start())..=begin.max(*seen.end()),
                None => begin..=begin,
            });
            if batch.ends.is_valid(position) {
                self.ended.push((self.rows, batch.ends.value(position)));
            }
            self.rows += 1;
        }
    }
}

fn column_statistics(
    leaves: &[Leaf],
    metadata: &ParquetMetaData,
    has_nan: &[bool],
) -> Vec<(u64, ColumnStatistics)> {
    let mut found: Vec<(u64, ColumnStatistics)> = Vec::new();
    for (position, (leaf, has_nan)) in leaves.iter().zip(has_nan).enumerate() {
        let groups = metadata.row_groups().iter();
        let chunks: Vec<_> = groups.filter_map(|group| group.columns().get(position)).collect();
        let statistics = statistics::of_column(leaf.kind, &chunks, *has_nan);
        match found.last_mut() {
            // The second part of a variant: its bytes count, its values are those of the first.
            Some((column_id, whole)) if *column_id == leaf.column_id => {
                whole.column_size_bytes += statistics.column_size_bytes;
            }
            _ => found.push((leaf.column_id, statistics)),
        }
    }
    found
}
