//! From the arrays of chunks to the arrays that are written: whole columns, level by level. What Parquet cannot hold as DuckDB would
//! read it back is refused, and a column whose chunks hold something else than its declared type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, GenericListArray, GenericListViewArray, ListArray, MapArray, OffsetSizeTrait,
    StructArray, UInt64Array, new_empty_array,
};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer};
use arrow_schema::DataType;
use arrow_select::take::take;

use crate::flush::column::{Node, Shape};
use crate::flush::nested_text::{Part, split_list, split_map, split_struct};
use crate::flush::scalars;

/// Why a column cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its chunks do not hold what it is declared to be.
    Type,
    /// A value, and what is wrong with it.
    Value {
        /// The value as text, cut short.
        value: String,
        reason: &'static str,
    },
}

/// Characters of a refused value that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 80;

pub(super) const UNREADABLE: &str = "is not a text of its type that can be read back";

impl Refusal {
    pub(super) fn value(value: &str, reason: &'static str) -> Self {
        Self::Value {
            value: value.chars().take(SHOWN_CHARACTERS_MAX).collect(),
            reason,
        }
    }
}

impl Node {
    /// Whether chunks of this type can be written at all.
    pub(super) fn accepts(&self, stored: &DataType) -> bool {
        self.convert(&new_empty_array(stored)).is_ok()
    }

    /// The column as it is written.
    pub(super) fn convert(&self, array: &ArrayRef) -> Result<ArrayRef, Refusal> {
        if let Shape::Scalar(kind) = self.shape {
            return scalars::convert(kind, array);
        }
        if let Some(texts) = scalars::texts(array) {
            let parts: Vec<Part> = texts.map(|text| text.map(str::to_owned)).collect();
            return self.parse_texts(&parts);
        }
        match (&self.shape, array.data_type()) {
            (Shape::List(element), DataType::List(_)) => self.list(element, array.as_list::<i32>()),
            (Shape::List(element), DataType::LargeList(_)) => self.list(element, array.as_list::<i64>()),
            (Shape::List(element), DataType::ListView(_)) => {
                self.list_view(element, array.as_list_view::<i32>())
            }
            (Shape::List(element), DataType::LargeListView(_)) => {
                self.list_view(element, array.as_list_view::<i64>())
            }
            (Shape::Struct(children), DataType::Struct(fields)) if fields.len() == children.len() => {
                let array = array.as_struct();
                let columns = children.iter().zip(array.columns());
                let columns = columns.map(|(child, column)| child.convert(column));
                self.build_struct(columns.collect::<Result<_, _>>()?, array.nulls().cloned())
            }
            (Shape::Map(key, value), DataType::Map(_, _)) => {
                let array = array.as_map();
                let (first, last) = bounds(array.offsets());
                let keys = key.convert(&array.keys().slice(first, last - first))?;
                let values = value.convert(&array.values().slice(first, last - first))?;
                let offsets = OffsetBuffer::from_lengths(array.offsets().lengths());
                self.build_map(keys, values, offsets, array.nulls().cloned())
            }
            (Shape::Variant, DataType::Struct(fields)) => {
                let array = array.as_struct();
                if fields.len() != 2 {
                    return Err(Refusal::Type);
                }
                let part = |name: &str| {
                    let column = array.column_by_name(name).ok_or(Refusal::Type)?;
                    scalars::convert(crate::flush::column::Kind::Blob, column)
                };
                self.build_struct(vec![part("metadata")?, part("value")?], array.nulls().cloned())
            }
            _ => Err(Refusal::Type),
        }
    }

    fn list<O: OffsetSizeTrait>(
        &self,
        element: &Node,
        array: &GenericListArray<O>,
    ) -> Result<ArrayRef, Refusal> {
        let (first, last) = bounds(array.offsets());
        let values = element.convert(&array.values().slice(first, last - first))?;
        let offsets = OffsetBuffer::from_lengths(array.offsets().lengths());
        self.build_list(values, offsets, array.nulls().cloned())
    }

    fn list_view<O: OffsetSizeTrait>(
        &self,
        element: &Node,
        array: &GenericListViewArray<O>,
    ) -> Result<ArrayRef, Refusal> {
        let spans = || {
            let spans = array.offsets().iter().zip(array.sizes());
            spans.enumerate().map(|(row, (offset, size))| {
                let size = if array.is_null(row) { 0 } else { size.as_usize() };
                (offset.as_usize(), size)
            })
        };
        let positions = spans().flat_map(|(offset, size)| offset..offset + size);
        let positions: UInt64Array = positions.map(|position| position as u64).collect();
        let values = take(array.values(), &positions, None).map_err(|_| Refusal::Type)?;
        let offsets = OffsetBuffer::from_lengths(spans().map(|(_, size)| size));
        self.build_list(element.convert(&values)?, offsets, array.nulls().cloned())
    }

    /// The column of values that chunks hold as DuckDB's text of them.
    fn parse_texts(&self, texts: &[Part]) -> Result<ArrayRef, Refusal> {
        let unreadable = |text: &str| Refusal::value(text, UNREADABLE);
        match &self.shape {
            Shape::Scalar(kind) => scalars::parse(*kind, texts.iter().map(Option::as_deref)),
            Shape::Variant => match texts.iter().flatten().next() {
                Some(text) => Err(unreadable(text)),
                None => Err(Refusal::Type),
            },
            Shape::List(element) => {
                let mut elements: Vec<Part> = Vec::new();
                let mut lengths = Vec::with_capacity(texts.len());
                for text in texts {
                    let parts = text.as_deref().map_or(Some(Vec::new()), split_list);
                    let parts = parts.ok_or_else(|| unreadable(text.as_deref().unwrap_or_default()))?;
                    lengths.push(parts.len());
                    elements.extend(parts);
                }
                let values = element.parse_texts(&elements)?;
                self.build_list(values, OffsetBuffer::from_lengths(lengths), validity(texts))
            }
            Shape::Struct(children) => {
                let names: Vec<&str> = children.iter().map(|child| child.name.as_str()).collect();
                let mut columns: Vec<Vec<Part>> = vec![Vec::with_capacity(texts.len()); children.len()];
                for text in texts {
                    let nothing = || Some(vec![None; names.len()]);
                    let parts = text
                        .as_deref()
                        .map_or_else(nothing, |text| split_struct(text, &names));
                    let parts = parts.ok_or_else(|| unreadable(text.as_deref().unwrap_or_default()))?;
                    for (column, part) in columns.iter_mut().zip(parts) {
                        column.push(part);
                    }
                }
                let columns = children.iter().zip(&columns);
                let columns = columns.map(|(child, column)| child.parse_texts(column));
                self.build_struct(columns.collect::<Result<_, _>>()?, validity(texts))
            }
            Shape::Map(key, value) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                let mut lengths = Vec::with_capacity(texts.len());
                for text in texts {
                    let entries = text.as_deref().map_or(Some(Vec::new()), split_map);
                    let entries = entries.ok_or_else(|| unreadable(text.as_deref().unwrap_or_default()))?;
                    lengths.push(entries.len());
                    for (entry_key, entry_value) in entries {
                        keys.push(Some(entry_key));
                        values.push(entry_value);
                    }
                }
                let (keys, values) = (key.parse_texts(&keys)?, value.parse_texts(&values)?);
                self.build_map(keys, values, OffsetBuffer::from_lengths(lengths), validity(texts))
            }
        }
    }

    fn build_list(
        &self,
        values: ArrayRef,
        offsets: OffsetBuffer<i32>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, Refusal> {
        let DataType::List(field) = self.data_type() else {
            return Err(Refusal::Type);
        };
        let list = ListArray::try_new(field, offsets, values, nulls).map_err(|_| Refusal::Type)?;
        Ok(Arc::new(list))
    }

    fn build_struct(&self, columns: Vec<ArrayRef>, nulls: Option<NullBuffer>) -> Result<ArrayRef, Refusal> {
        let DataType::Struct(fields) = self.data_type() else {
            return Err(Refusal::Type);
        };
        let built = StructArray::try_new(fields, columns, nulls).map_err(|_| Refusal::Type)?;
        Ok(Arc::new(built))
    }

    fn build_map(
        &self,
        keys: ArrayRef,
        values: ArrayRef,
        offsets: OffsetBuffer<i32>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, Refusal> {
        let DataType::Map(entries, sorted) = self.data_type() else {
            return Err(Refusal::Type);
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(Refusal::Type);
        };
        let built =
            StructArray::try_new(fields.clone(), vec![keys, values], None).map_err(|_| Refusal::Type)?;
        let map = MapArray::try_new(entries, offsets, built, nulls, sorted).map_err(|_| Refusal::Type)?;
        Ok(Arc::new(map))
    }
}

fn validity(texts: &[Part]) -> Option<NullBuffer> {
    let mut nulls = NullBufferBuilder::new(texts.len());
    texts.iter().for_each(|text| nulls.append(text.is_some()));
    nulls.finish()
}

/// The first position that a slice's offsets name, and the one behind the last.
fn bounds<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    let first = offsets.first().map_or(0, |offset| offset.as_usize());
    let last = offsets.last().map_or(0, |offset| offset.as_usize());
    (first, last)
}

/// Whether a floating point column, at any depth, holds a NaN; one answer for each Parquet column.
pub(super) fn note_nans(array: &ArrayRef, found: &mut std::slice::IterMut<'_, bool>) {
    match array.data_type() {
        DataType::List(_) => note_nans(array.as_list::<i32>().values(), found),
        DataType::Struct(_) => {
            for column in array.as_struct().columns() {
                note_nans(column, found);
            }
        }
        DataType::Map(_, _) => {
            note_nans(array.as_map().keys(), found);
            note_nans(array.as_map().values(), found);
        }
        _ => {
            if let Some(found) = found.next() {
                *found |= scalars::has_nan(array);
            }
        }
    }
}

/// Row ids or snapshots as BIGINT; those beyond it are refused when they are inlined.
pub(super) fn bigints(ids: impl Iterator<Item = u64>) -> ArrayRef {
    let ids = ids.map(|id| i64::try_from(id).ok());
    Arc::new(ids.collect::<arrow_array::PrimitiveArray<Int64Type>>())
}
