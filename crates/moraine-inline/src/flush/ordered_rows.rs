//! The rows of a flush in the order of its files: converted to what is written, by partition where there is one, and sorted.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_row::SortField as RowSortField;
use arrow_schema::{DataType, Field, Schema, SortOptions};
use moraine_store::Read;

use crate::error::InlineError;
use crate::flush::column::{Kind, Node};
use crate::flush::convert::Refusal;
use crate::flush::data_file::FlushLayout;
use crate::flush::partition::PartitionTransform;
use crate::flush::row_windows::{FlushWindow, InlinedRows};
use crate::flush::sorted_rows::{SortedRows, Sorter};

/// One column of a table's sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    /// Position of the column among the flushed ones.
    pub column: usize,
    /// From the greatest to the least.
    pub descending: bool,
    /// NULLs before all values, whatever the direction.
    pub nulls_first: bool,
}

/// Rows that follow one another in one partition.
pub(super) struct FlushBatch {
    /// As they are written.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) row_ids: UInt64Array,
    pub(super) begins: UInt64Array,
    pub(super) ends: UInt64Array,
    /// A value for each key; none where the table is not partitioned.
    pub(super) partition: Vec<Option<String>>,
}

/// A column that decides on the order.
#[derive(Clone, Copy)]
struct PartitionKey {
    column: usize,
    kind: Kind,
    transform: PartitionTransform,
}

#[derive(Clone, Copy)]
struct SortKey {
    column: usize,
    kind: Kind,
    options: SortOptions,
}

/// Gives all rows of one inlined table in order.
pub(super) struct OrderedRows {
    rows: InlinedRows,
    nodes: Vec<Node>,
    types: Vec<String>,
    partition: Vec<PartitionKey>,
    sort: Vec<SortKey>,
    sorted: Option<SortedRows>,
    ready: VecDeque<FlushBatch>,
}

impl OrderedRows {
    /// Checks that every column, key and sort key can be dealt with, before anything is read.
    pub(super) fn new(rows: InlinedRows, layout: &FlushLayout) -> Result<Self, InlineError> {
        let nodes = nodes(&rows, layout)?;
        let key = |position: usize, what: &str, applies: &dyn Fn(Kind) -> bool| {
            let node = nodes.get(position);
            let kind = node.and_then(Node::scalar).filter(|kind| applies(*kind));
            kind.ok_or_else(|| InlineError::FlushOrder {
                column: node.map_or_else(|| format!("#{position}"), |node| node.name.clone()),
                what: what.to_owned(),
            })
        };
        let mut partition = Vec::new();
        for field in &layout.partition {
            partition.push(PartitionKey {
                column: field.column,
                kind: key(field.column, "partitioned", &|kind| {
                    field.transform.applies_to(kind)
                })?,
                transform: field.transform,
            });
        }
        let mut sort = Vec::new();
        for field in &layout.sort {
            sort.push(SortKey {
                column: field.column,
                kind: key(field.column, "sorted", &Kind::is_sortable)?,
                options: SortOptions::new(field.descending, field.nulls_first),
            });
        }
        Ok(Self {
            rows,
            types: layout
                .columns
                .iter()
                .map(|column| column.ducklake_type.clone())
                .collect(),
            nodes,
            partition,
            sort,
            sorted: None,
            ready: VecDeque::new(),
        })
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The next rows, or `None` behind the last.
    pub(super) async fn next(&mut self, read: &dyn Read) -> Result<Option<FlushBatch>, InlineError> {
        if let Some(batch) = self.ready.pop_front() {
            return Ok(Some(batch));
        }
        if self.partition.is_empty() && self.sort.is_empty() {
            let window = self.rows.next_window(read).await?;
            return window.map(|window| self.converted(&window)).transpose();
        }
        if self.sorted.is_none() {
            self.sorted = Some(self.sort_all(read).await?);
        }
        let next = self
            .sorted
            .as_mut()
            .map(SortedRows::next_batch)
            .transpose()?
            .flatten();
        if let Some(batch) = next {
            self.divide(&batch)?;
        }
        Ok(self.ready.pop_front())
    }

    /// Puts rows back that are to be given out next.
    pub(super) fn put_back(&mut self, batch: FlushBatch) {
        self.ready.push_front(batch);
    }

    async fn sort_all(&mut self, read: &dyn Read) -> Result<SortedRows, InlineError> {
        let mut fields: Vec<Field> = self
            .nodes
            .iter()
            .map(|node| node.field(&node.name, true))
            .collect();
        for name in ["_row_id", "_begin", "_end"] {
            fields.push(Field::new(name, DataType::UInt64, true));
        }
        let partition = 0..self.partition.len();
        fields.extend(partition.map(|key| Field::new(format!("_partition_{key}"), DataType::Utf8, true)));
        let texts = self.partition.iter().map(|_| RowSortField::new(DataType::Utf8));
        let sort = self.sort.iter();
        let sort = sort.map(|key| RowSortField::new_with_options(key.kind.data_type(), key.options));
        let ids = [DataType::UInt64, DataType::UInt64].map(RowSortField::new);
        let mut sorter = Sorter::new(&Schema::new(fields), texts.chain(sort).chain(ids).collect())?;
        while let Some(window) = self.rows.next_window(read).await? {
            let batch = self.converted(&window)?;
            let mut keys: Vec<ArrayRef> = Vec::new();
            for key in &self.partition {
                if let Some(column) = batch.columns.get(key.column) {
                    keys.push(Arc::new(key.transform.values(key.kind, column)));
                }
            }
            let texts = keys.clone();
            let sorted = self.sort.iter().filter_map(|key| batch.columns.get(key.column));
            keys.extend(sorted.map(comparable));
            let ids: [ArrayRef; 2] = [Arc::new(batch.row_ids), Arc::new(batch.begins)];
            keys.extend(ids.iter().cloned());
            let mut columns = batch.columns;
            columns.extend(ids);
            columns.push(Arc::new(batch.ends));
            columns.extend(texts);
            sorter.push(columns, &keys)?;
        }
        sorter.finish()
    }

    /// Makes sorted rows ready, partition by partition.
    fn divide(&mut self, batch: &RecordBatch) -> Result<(), InlineError> {
        let user = self.nodes.len();
        let (columns, own) = batch.columns().split_at(user.min(batch.num_columns()));
        let numbers = |position: usize| {
            own.get(position)
                .and_then(|array| array.as_primitive_opt::<UInt64Type>())
        };
        let (Some(row_ids), Some(begins), Some(ends)) = (numbers(0), numbers(1), numbers(2)) else {
            return Err(InlineError::Parquet {
                detail: "sorted rows have lost their row ids".to_owned(),
            });
        };
        let texts: Vec<_> = own
            .iter()
            .skip(3)
            .filter_map(|array| array.as_string_opt::<i32>())
            .collect();
        let value = |row: usize| -> Vec<Option<String>> {
            let values = texts
                .iter()
                .map(|text| text.is_valid(row).then(|| text.value(row).to_owned()));
            values.collect()
        };
        let mut first = 0;
        while first < batch.num_rows() {
            let partition = value(first);
            let length = (first..batch.num_rows()).take_while(|row| {
                let parts = texts.iter().zip(&partition);
                parts.into_iter().all(|(text, part)| {
                    let value = text.is_valid(*row).then(|| text.value(*row));
                    value == part.as_deref()
                })
            });
            let length = length.count();
            self.ready.push_back(FlushBatch {
                columns: columns.iter().map(|column| column.slice(first, length)).collect(),
                row_ids: row_ids.slice(first, length),
                begins: begins.slice(first, length),
                ends: ends.slice(first, length),
                partition,
            });
            first += length;
        }
        Ok(())
    }

    fn converted(&self, window: &FlushWindow) -> Result<FlushBatch, InlineError> {
        let mut columns = Vec::with_capacity(self.nodes.len());
        for ((node, declared), array) in self.nodes.iter().zip(&self.types).zip(window.columns.columns()) {
            let refused = |refusal| match refusal {
                Refusal::Type => flush_column(node, declared, array.data_type()),
                Refusal::Value { value, reason } => InlineError::FlushValue {
                    column: node.name.clone(),
                    value,
                    reason,
                },
            };
            columns.push(node.convert(array).map_err(refused)?);
        }
        let rows = &window.rows;
        Ok(FlushBatch {
            columns,
            row_ids: rows.iter().map(|row| row.row_id).collect::<Vec<_>>().into(),
            begins: rows
                .iter()
                .map(|row| row.begin_snapshot)
                .collect::<Vec<_>>()
                .into(),
            ends: rows.iter().map(|row| row.end_snapshot).collect(),
            partition: Vec::new(),
        })
    }
}

/// The columns as they are written.
fn nodes(rows: &InlinedRows, layout: &FlushLayout) -> Result<Vec<Node>, InlineError> {
    let fields = rows.schema().fields();
    if fields.len() != layout.columns.len() {
        let detail = format!(
            "the inlined table has {} columns, ducklake_column {} at its schema version",
            fields.len(),
            layout.columns.len()
        );
        return Err(InlineError::Parquet { detail });
    }
    let pairs = fields.iter().zip(&layout.columns);
    let nodes = pairs.map(|(field, column)| {
        let stored = field.data_type();
        let node = Node::of(column).filter(|node| node.accepts(stored));
        node.ok_or_else(|| InlineError::FlushColumn {
            column: column.name.clone(),
            ducklake_type: column.ducklake_type.clone(),
            stored: stored.to_string(),
        })
    });
    nodes.collect()
}

fn flush_column(node: &Node, declared: &str, stored: &DataType) -> InlineError {
    InlineError::FlushColumn {
        column: node.name.clone(),
        ducklake_type: declared.to_owned(),
        stored: stored.to_string(),
    }
}

/// Floating point numbers as DuckDB compares them: all NaNs are one, above everything else, and both zeros are one.
fn comparable(column: &ArrayRef) -> ArrayRef {
    if let Some(floats) = column.as_primitive_opt::<Float32Type>() {
        let even = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
        return Arc::new(floats.unary::<_, Float32Type>(even));
    }
    if let Some(doubles) = column.as_primitive_opt::<Float64Type>() {
        let even = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
        return Arc::new(doubles.unary::<_, Float64Type>(even));
    }
    Arc::clone(column)
}
