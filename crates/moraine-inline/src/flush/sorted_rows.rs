//! Rows in another order than they were inserted in, in bounded memory: what does not fit is sorted in runs, which wait in temporary
//! files and are merged. The keys are Arrow's row format, bytes that compare as the columns do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::interleave::interleave_record_batch;

use crate::error::InlineError;
use crate::flush::batch_bytes;

/// Bytes of rows that are sorted in memory.
const RUN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Runs that are merged into one, so that however many rows there are few runs are read at once.
const FAN_IN: usize = 16;
/// Bytes of rows that a run is read by, and that are given out at once.
const BATCH_BYTES: usize = 1024 * 1024;
/// The most rows given out at once.
const BATCH_ROWS_MAX: usize = 8192;
const KEY_COLUMN: &str = "_key";

/// Takes rows in any order.
pub(super) struct Sorter {
    schema: SchemaRef,
    keys: RowConverter,
    held: Vec<RecordBatch>,
    held_bytes: usize,
    /// Runs in files, by how often their rows have been merged; fewer than [`FAN_IN`] of each.
    levels: Vec<Vec<Run>>,
}

/// Gives the rows in order.
pub(super) struct SortedRows {
    runs: Vec<Cursor>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

/// Rows in order that wait.
enum Run {
    Held {
        batches: Vec<RecordBatch>,
        order: std::vec::IntoIter<(usize, usize)>,
        batch_rows: usize,
    },
    File(Box<StreamReader<BufReader<File>>>),
}

struct Cursor {
    run: Run,
    batch: Option<RecordBatch>,
    row: usize,
    row_bytes: usize,
}

impl Sorter {
    /// Sorts rows of the columns `schema` by keys of these types and orders.
    pub(super) fn new(schema: &Schema, keys: Vec<SortField>) -> Result<Self, InlineError> {
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(KEY_COLUMN, DataType::Binary, false)));
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            keys: RowConverter::new(keys).map_err(assemble)?,
            held: Vec::new(),
            held_bytes: 0,
            levels: Vec::new(),
        })
    }

    /// Takes rows, with the columns of their keys.
    pub(super) fn push(&mut self, mut columns: Vec<ArrayRef>, keys: &[ArrayRef]) -> Result<(), InlineError> {
        let keys = self.keys.convert_columns(keys).map_err(assemble)?;
        columns.push(Arc::new(keys.try_into_binary().map_err(assemble)?));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(assemble)?;
        self.held_bytes += batch_bytes(&batch);
        self.held.push(batch);
        if self.held_bytes >= RUN_BYTES_MAX {
            self.spill_held()?;
        }
        Ok(())
    }

    /// Puts the rows in memory into a file, in order. As many runs as are to be merged become one of the next level.
    fn spill_held(&mut self) -> Result<(), InlineError> {
        let mut held = self.take_held();
        let mut run = self.spill(|| held.next_batch())?;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(runs) = self.levels.get_mut(level) else {
                break;
            };
            runs.push(run);
            if runs.len() < FAN_IN {
                break;
            }
            let mut merged = SortedRows::new(std::mem::take(runs))?;
            run = self.spill(|| merged.next_merged())?;
        }
        Ok(())
    }

    /// The rows taken so far, in order.
    pub(super) fn finish(mut self) -> Result<SortedRows, InlineError> {
        if self.levels.is_empty() {
            let held = self.take_held();
            return SortedRows::new(vec![held]);
        }
        // Whoever writes the rows needs the memory.
        if !self.held.is_empty() {
            self.spill_held()?;
        }
        SortedRows::new(self.levels.into_iter().flatten().collect())
    }

    /// The rows in memory, as a run.
    fn take_held(&mut self) -> Run {
        let batches = std::mem::take(&mut self.held);
        let bytes = std::mem::take(&mut self.held_bytes);
        let positions = batches.iter().enumerate();
        let mut order: Vec<(usize, usize)> = positions
            .flat_map(|(batch, rows)| (0..rows.num_rows()).map(move |row| (batch, row)))
            .collect();
        let keys: Vec<_> = batches.iter().filter_map(keys_of).collect();
        let key = |place: &(usize, usize)| keys.get(place.0).map(|keys| keys.value(place.1));
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let row_bytes = (bytes / order.len().max(1)).max(1);
        Run::Held {
            batches,
            batch_rows: (BATCH_BYTES / row_bytes).clamp(1, BATCH_ROWS_MAX),
            order: order.into_iter(),
        }
    }

    fn spill(
        &self,
        mut next: impl FnMut() -> Result<Option<RecordBatch>, InlineError>,
    ) -> Result<Run, InlineError> {
        let file = tempfile::tempfile().map_err(spool)?;
        let mut writer = StreamWriter::try_new(BufWriter::new(file), &self.schema).map_err(assemble)?;
        while let Some(batch) = next()? {
            writer.write(&batch).map_err(assemble)?;
        }
        let written = writer.into_inner().map_err(assemble)?;
        let mut file = written.into_inner().map_err(|error| spool(error.into_error()))?;
        file.rewind().map_err(spool)?;
        let reader = StreamReader::try_new(BufReader::new(file), None).map_err(assemble)?;
        Ok(Run::File(Box::new(reader)))
    }
}

impl Run {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, InlineError> {
        match self {
            Self::Held {
                batches,
                order,
                batch_rows,
            } => {
                let places: Vec<(usize, usize)> = order.take(*batch_rows).collect();
                if places.is_empty() {
                    return Ok(None);
                }
                let batches: Vec<&RecordBatch> = batches.iter().collect();
                interleave_record_batch(&batches, &places)
                    .map(Some)
                    .map_err(assemble)
            }
            Self::File(reader) => reader.next().transpose().map_err(assemble),
        }
    }
}

impl Cursor {
    /// Goes on to the next row; its batch is `None` behind the last.
    fn advance(&mut self) -> Result<(), InlineError> {
        self.row += 1;
        while self
            .batch
            .as_ref()
            .is_none_or(|batch| self.row >= batch.num_rows())
        {
            self.batch = self.run.next_batch()?;
            self.row = 0;
            let Some(batch) = &self.batch else {
                break;
            };
            self.row_bytes = batch_bytes(batch) / batch.num_rows().max(1);
        }
        Ok(())
    }

    fn key(&self) -> Option<Vec<u8>> {
        let keys = keys_of(self.batch.as_ref()?)?;
        Some(keys.value(self.row).to_vec())
    }
}

impl SortedRows {
    fn new(runs: Vec<Run>) -> Result<Self, InlineError> {
        let mut sorted = Self {
            runs: Vec::new(),
            heap: BinaryHeap::new(),
        };
        for run in runs {
            let mut cursor = Cursor {
                run,
                batch: None,
                row: 0,
                row_bytes: 0,
            };
            cursor.advance()?;
            if let Some(key) = cursor.key() {
                sorted.heap.push(Reverse((key, sorted.runs.len())));
            }
            sorted.runs.push(cursor);
        }
        Ok(sorted)
    }

    /// The next rows, without their keys; `None` behind the last.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>, InlineError> {
        let merged = self.next_merged()?;
        merged.as_ref().map(without_key).transpose()
    }

    /// The next rows.
    fn next_merged(&mut self) -> Result<Option<RecordBatch>, InlineError> {
        if let [only] = self.runs.as_mut_slice() {
            let whole = only.batch.take();
            only.batch = only.run.next_batch()?;
            return Ok(whole);
        }
        let mut sources: Vec<RecordBatch> = Vec::new();
        // Where the current batch of each run is among `sources`.
        let mut known: Vec<Option<usize>> = vec![None; self.runs.len()];
        let mut places = Vec::new();
        let mut bytes = 0;
        while places.len() < BATCH_ROWS_MAX && bytes < BATCH_BYTES {
            let Some(Reverse((_, run))) = self.heap.pop() else {
                break;
            };
            let (Some(cursor), Some(known)) = (self.runs.get_mut(run), known.get_mut(run)) else {
                break;
            };
            let Some(batch) = &cursor.batch else {
                continue;
            };
            let source = *known.get_or_insert_with(|| {
                sources.push(batch.clone());
                sources.len() - 1
            });
            bytes += cursor.row_bytes;
            places.push((source, cursor.row));
            let last = cursor.row + 1 >= batch.num_rows();
            cursor.advance()?;
            if last {
                *known = None;
            }
            if let Some(key) = cursor.key() {
                self.heap.push(Reverse((key, run)));
            }
        }
        if places.is_empty() {
            return Ok(None);
        }
        let sources: Vec<&RecordBatch> = sources.iter().collect();
        interleave_record_batch(&sources, &places)
            .map(Some)
            .map_err(assemble)
    }
}

fn keys_of(batch: &RecordBatch) -> Option<&arrow_array::BinaryArray> {
    batch.columns().last()?.as_binary_opt::<i32>()
}

fn without_key(batch: &RecordBatch) -> Result<RecordBatch, InlineError> {
    let columns: Vec<usize> = (0..batch.num_columns().saturating_sub(1)).collect();
    batch.project(&columns).map_err(assemble)
}

fn assemble(source: ArrowError) -> InlineError {
    InlineError::Assemble { source }
}

fn spool(source: std::io::Error) -> InlineError {
    InlineError::Spool { source }
}
