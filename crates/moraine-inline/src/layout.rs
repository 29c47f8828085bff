//! The bounds of a record batch message, checked against its schema before Arrow's reader sees it: that reader slices buffers by
//! the lengths the message claims and panics when they are false. What the buffers hold is not judged here; array validation does
//! that after decoding.

use arrow_ipc::{Buffer, FieldNode, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

/// Width of one entry of a string or binary view column.
const VIEW_BYTES: u64 = 16;

/// Checks that `batch` describes exactly the columns of `schema` with `rows` rows inside a data block of `data_bytes` bytes.
pub(crate) fn check(
    batch: RecordBatch<'_>,
    schema: &Schema,
    rows: u64,
    data_bytes: usize,
) -> Result<(), String> {
    if batch.compression().is_some() {
        return Err("the body is compressed, and chunk bodies never are".to_owned());
    }
    let nodes = batch
        .nodes()
        .map(|nodes| nodes.iter().copied().collect())
        .unwrap_or_default();
    let buffers: Vec<Buffer> = batch
        .buffers()
        .map(|buffers| buffers.iter().copied().collect())
        .unwrap_or_default();
    let variadic: Vec<i64> = batch
        .variadicBufferCounts()
        .map(|counts| counts.iter().collect())
        .unwrap_or_default();
    let mut walk = Walk {
        nodes: Queue::new(nodes),
        buffers: Queue::new(buffers),
        variadic: Queue::new(variadic),
    };
    for buffer in &walk.buffers.items {
        check_buffer(buffer, data_bytes)?;
    }
    for field in schema.fields() {
        let length = walk.column(field)?;
        if length != rows {
            return Err(format!(
                "column `{}` has {length} rows, expected {rows}",
                field.name()
            ));
        }
    }
    walk.finish()
}

fn check_buffer(buffer: &Buffer, data_bytes: usize) -> Result<(), String> {
    let (offset, length) = (buffer.offset(), buffer.length());
    let end = usize::try_from(offset)
        .ok()
        .zip(usize::try_from(length).ok())
        .and_then(|(o, l)| o.checked_add(l));
    match end {
        Some(end) if end <= data_bytes => Ok(()),
        _ => Err(format!(
            "a buffer at {offset} of {length} bytes leaves the data block of {data_bytes} bytes"
        )),
    }
}

/// A list taken from the front.
struct Queue<T> {
    items: Vec<T>,
    next: usize,
}

impl<T: Copy> Queue<T> {
    fn new(items: Vec<T>) -> Self {
        Self { items, next: 0 }
    }

    fn take(&mut self) -> Option<T> {
        let item = self.items.get(self.next).copied();
        self.next += usize::from(item.is_some());
        item
    }

    fn left(&self) -> usize {
        self.items.len() - self.next
    }
}

/// The message's flat lists, consumed in the depth-first order in which Arrow lays columns out.
struct Walk {
    nodes: Queue<FieldNode>,
    buffers: Queue<Buffer>,
    variadic: Queue<i64>,
}

/// One column's row and null counts, both proven to be sane.
#[derive(Clone, Copy)]
struct Counts {
    rows: u64,
    nulls: u64,
}

impl Walk {
    /// Consumes one column with its children and returns its row count.
    fn column(&mut self, field: &Field) -> Result<u64, String> {
        let counts = self.node(field)?;
        match field.data_type() {
            DataType::Null => {
                if counts.nulls != counts.rows {
                    return Err(format!("column `{}` of type Null claims values", field.name()));
                }
            }
            DataType::Struct(children) => {
                self.validity(field, counts)?;
                for child in children {
                    self.child(field, child, counts.rows)?;
                }
            }
            DataType::FixedSizeList(child, size) => {
                self.validity(field, counts)?;
                let size = u64::try_from(*size)
                    .map_err(|_| format!("`{}` has a negative list size", field.name()))?;
                let expected = counts.rows.checked_mul(size).ok_or_else(|| too_long(field))?;
                self.child(field, child, expected)?;
            }
            DataType::List(child) | DataType::Map(child, _) => self.list(field, child, counts, 4)?,
            DataType::LargeList(child) => self.list(field, child, counts, 8)?,
            DataType::ListView(child) => self.list_view(field, child, counts, 4)?,
            DataType::LargeListView(child) => self.list_view(field, child, counts, 8)?,
            DataType::Utf8 | DataType::Binary => self.text(field, counts, 4)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.text(field, counts, 8)?,
            DataType::Utf8View | DataType::BinaryView => self.view(field, counts)?,
            DataType::Boolean => {
                self.validity(field, counts)?;
                self.buffer(field, "values", bitmap_bytes(counts.rows))?;
            }
            other => {
                self.validity(field, counts)?;
                let width =
                    fixed_width(other).ok_or_else(|| format!("`{}` has unknown width", field.name()))?;
                let bytes = counts.rows.checked_mul(width).ok_or_else(|| too_long(field))?;
                self.buffer(field, "values", bytes)?;
            }
        }
        Ok(counts.rows)
    }

    fn finish(&self) -> Result<(), String> {
        let left = (self.nodes.left(), self.buffers.left(), self.variadic.left());
        if left == (0, 0, 0) {
            return Ok(());
        }
        let (nodes, buffers, variadic) = left;
        Err(format!(
            "{nodes} field nodes, {buffers} buffers and {variadic} view counts more than the schema has"
        ))
    }

    fn node(&mut self, field: &Field) -> Result<Counts, String> {
        let node = self
            .nodes
            .take()
            .ok_or_else(|| format!("column `{}` has no field node", field.name()))?;
        let counts = u64::try_from(node.length())
            .ok()
            .zip(u64::try_from(node.null_count()).ok());
        match counts {
            Some((rows, nulls)) if nulls <= rows => Ok(Counts { rows, nulls }),
            _ => Err(format!(
                "column `{}` claims {} rows of which {} are NULL",
                field.name(),
                node.length(),
                node.null_count()
            )),
        }
    }

    /// Takes the next buffer and requires it to hold at least `needed` bytes.
    fn buffer(&mut self, field: &Field, what: &str, needed: u64) -> Result<u64, String> {
        let missing = || format!("column `{}` lacks its {what} buffer", field.name());
        let buffer = self.buffers.take().ok_or_else(missing)?;
        let length = u64::try_from(buffer.length()).unwrap_or_default();
        if length < needed {
            return Err(format!(
                "the {what} of column `{}` need {needed} bytes and have {length}",
                field.name()
            ));
        }
        Ok(length)
    }

    /// Takes the next buffer and requires it to hold at least `entries` entries of `width` bytes, and no part of one.
    fn entries(&mut self, field: &Field, what: &str, entries: u64, width: u64) -> Result<(), String> {
        let bytes = entries.checked_mul(width).ok_or_else(|| too_long(field))?;
        let length = self.buffer(field, what, bytes)?;
        if length.is_multiple_of(width) {
            return Ok(());
        }
        Err(format!(
            "the {what} of column `{}` have {length} bytes, not a multiple of {width}",
            field.name()
        ))
    }

    fn validity(&mut self, field: &Field, counts: Counts) -> Result<(), String> {
        // A column without NULLs may leave its bitmap out, and the reader does not look at one that is there.
        let needed = if counts.nulls > 0 {
            bitmap_bytes(counts.rows)
        } else {
            0
        };
        self.buffer(field, "validity", needed).map(drop)
    }

    fn offsets(&mut self, field: &Field, rows: u64, width: u64) -> Result<(), String> {
        // Arrow allows a column of no rows to omit even its first offset.
        let entries = if rows == 0 {
            0
        } else {
            rows.checked_add(1).ok_or_else(|| too_long(field))?
        };
        self.entries(field, "offsets", entries, width)
    }

    fn text(&mut self, field: &Field, counts: Counts, width: u64) -> Result<(), String> {
        self.validity(field, counts)?;
        self.offsets(field, counts.rows, width)?;
        self.buffer(field, "bytes", 0).map(drop)
    }

    fn view(&mut self, field: &Field, counts: Counts) -> Result<(), String> {
        self.validity(field, counts)?;
        self.entries(field, "views", counts.rows, VIEW_BYTES)?;
        let count = self.variadic.take().and_then(|count| usize::try_from(count).ok());
        let count =
            count.ok_or_else(|| format!("column `{}` lacks its count of view buffers", field.name()))?;
        if count > self.buffers.left() {
            return Err(format!("column `{}` claims {count} view buffers", field.name()));
        }
        for _ in 0..count {
            self.buffer(field, "bytes", 0)?;
        }
        Ok(())
    }

    fn list(&mut self, field: &Field, child: &Field, counts: Counts, width: u64) -> Result<(), String> {
        self.validity(field, counts)?;
        self.offsets(field, counts.rows, width)?;
        self.column(child).map(drop)
    }

    fn list_view(&mut self, field: &Field, child: &Field, counts: Counts, width: u64) -> Result<(), String> {
        self.validity(field, counts)?;
        self.entries(field, "offsets", counts.rows, width)?;
        self.entries(field, "sizes", counts.rows, width)?;
        self.column(child).map(drop)
    }

    fn child(&mut self, field: &Field, child: &Field, expected: u64) -> Result<(), String> {
        let found = self.column(child)?;
        if found == expected {
            return Ok(());
        }
        Err(format!(
            "`{}` inside `{}` has {found} values, expected {expected}",
            child.name(),
            field.name()
        ))
    }
}

fn bitmap_bytes(rows: u64) -> u64 {
    rows.div_ceil(8)
}

fn too_long(field: &Field) -> String {
    format!("the row count of column `{}` overflows", field.name())
}

fn fixed_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeBinary(width) => u64::try_from(*width).ok(),
        other => other
            .primitive_width()
            .and_then(|width| u64::try_from(width).ok()),
    }
}
