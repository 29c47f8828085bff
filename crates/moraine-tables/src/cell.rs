//! Between one field of a record and one SQL value, both ways. `NULL` in a field without presence is kept in the record's
//! list of null fields. Nothing here knows which relation it serves; [`CellError::at`] says so afterwards.

use std::sync::Arc;

use moraine_codec::Nullable;

use crate::error::TableError;
use crate::relation::Relation;
use crate::schema::fixed_schema;
use crate::value::Value;

/// Why a value cannot be read from or written to a field.
#[derive(Debug)]
pub(crate) enum CellError {
    /// The position is not one of the relation's columns.
    NoColumn,
    /// `NULL` for a field that is part of the record's key.
    Null,
    /// A value of another type.
    Type(&'static str, Value),
    /// An integer outside what the field holds.
    Range(i64, &'static str),
    /// The value names another record than the one the row is embedded in.
    Owner(u64),
    /// A stored number or text that no row can show.
    Corrupt(String),
}

impl CellError {
    /// The error for a column of a relation.
    pub(crate) fn at(self, relation: Relation, column: usize) -> TableError {
        let columns = fixed_schema(relation)
            .map(|schema| schema.columns)
            .unwrap_or_default();
        let name = columns
            .get(column)
            .map_or_else(|| format!("#{}", column + 1), |found| found.name.clone());
        match self {
            Self::NoColumn => TableError::Width {
                relation,
                expected: columns.len(),
                found: column + 1,
            },
            Self::Null => TableError::NotNull {
                relation,
                column: name,
            },
            Self::Type(expected, value) => TableError::Type {
                relation,
                column: name,
                expected: expected.to_owned(),
                found: value.type_name(),
            },
            Self::Range(value, detail) => TableError::OutOfRange {
                relation,
                column: name,
                value: value.to_string(),
                detail,
            },
            Self::Owner(owner) => TableError::Unsupported {
                relation,
                detail: format!(
                    "{name} of a row cannot be changed from {owner}; delete the row and insert it anew"
                ),
            },
            Self::Corrupt(detail) => TableError::Corrupt {
                relation,
                detail: format!("{name}: {detail}"),
            },
        }
    }
}

const NOT_NEGATIVE: &str = "ids, counts and sizes are not negative";

/// The `BIGINT` of a stored number.
pub(crate) fn show_id(number: u64) -> Result<Value, CellError> {
    i64::try_from(number)
        .map(Value::Int64)
        .map_err(|_| CellError::Corrupt(format!("{number} is larger than any BIGINT")))
}

/// The number of a `BIGINT`; `None` for `NULL`.
pub(crate) fn take_id(cell: &Value) -> Result<Option<u64>, CellError> {
    match cell {
        Value::Null => Ok(None),
        Value::Int64(number) => u64::try_from(*number)
            .map(Some)
            .map_err(|_| CellError::Range(*number, NOT_NEGATIVE)),
        other => Err(CellError::Type("bigint", other.clone())),
    }
}

/// The number of a `BIGINT` that must not be `NULL`.
pub(crate) fn take_key(cell: &Value) -> Result<u64, CellError> {
    take_id(cell)?.ok_or(CellError::Null)
}

pub(crate) fn take_text(cell: &Value) -> Result<Option<String>, CellError> {
    match cell {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(text.to_string())),
        other => Err(CellError::Type("varchar", other.clone())),
    }
}

pub(crate) fn take_flag(cell: &Value) -> Result<Option<bool>, CellError> {
    match cell {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        other => Err(CellError::Type("boolean", other.clone())),
    }
}

pub(crate) fn take_micros(cell: &Value) -> Result<Option<i64>, CellError> {
    match cell {
        Value::Null => Ok(None),
        Value::TimestampTz(micros) => Ok(Some(*micros)),
        other => Err(CellError::Type("timestamp with time zone", other.clone())),
    }
}

pub(crate) fn take_uuid(cell: &Value) -> Result<Option<String>, CellError> {
    match cell {
        Value::Null => Ok(None),
        Value::Uuid(bytes) => Ok(Some(uuid::Uuid::from_bytes(*bytes).hyphenated().to_string())),
        other => Err(CellError::Type("uuid", other.clone())),
    }
}

pub(crate) fn show_uuid(text: &str) -> Result<Value, CellError> {
    uuid::Uuid::parse_str(text)
        .map(|id| Value::Uuid(*id.as_bytes()))
        .map_err(|_| CellError::Corrupt(format!("\"{text}\" is not a UUID")))
}

pub(crate) fn show_text(text: &str) -> Value {
    Value::Text(Arc::from(text))
}

/// `NULL` when the field is listed as such, else what `show` makes of it.
pub(crate) fn unless_null<R: Nullable>(
    record: &R,
    field: u32,
    show: impl FnOnce() -> Result<Value, CellError>,
) -> Result<Value, CellError> {
    if record.is_null(field) {
        Ok(Value::Null)
    } else {
        show()
    }
}

/// Notes whether the field is `NULL` and gives the value to store in it.
pub(crate) fn noting_null<R: Nullable, T: Default>(record: &mut R, field: u32, value: Option<T>) -> T {
    record.set_null(field, value.is_none());
    value.unwrap_or_default()
}

/// Reads one field as a value. The kinds: `key` (an id that the record is keyed by), `id`, `text`, `flag`, `uuid`, `micros`
/// with the field's number (no presence), and `opt_id`, `opt_text`, `opt_flag` (presence).
macro_rules! read_cell {
    ($record:ident, key, $field:ident) => {
        $crate::cell::show_id($record.$field)
    };
    ($record:ident, id, $field:ident, $number:literal) => {
        $crate::cell::unless_null($record, $number, || $crate::cell::show_id($record.$field))
    };
    ($record:ident, text, $field:ident, $number:literal) => {
        $crate::cell::unless_null($record, $number, || Ok($crate::cell::show_text(&$record.$field)))
    };
    ($record:ident, flag, $field:ident, $number:literal) => {
        $crate::cell::unless_null($record, $number, || {
            Ok($crate::value::Value::Bool($record.$field))
        })
    };
    ($record:ident, uuid, $field:ident, $number:literal) => {
        $crate::cell::unless_null($record, $number, || $crate::cell::show_uuid(&$record.$field))
    };
    ($record:ident, micros, $field:ident, $number:literal) => {
        $crate::cell::unless_null($record, $number, || {
            Ok($crate::value::Value::TimestampTz($record.$field))
        })
    };
    ($record:ident, opt_id, $field:ident) => {
        $record
            .$field
            .map_or(Ok($crate::value::Value::Null), $crate::cell::show_id)
    };
    ($record:ident, opt_text, $field:ident) => {
        Ok($record
            .$field
            .as_deref()
            .map_or($crate::value::Value::Null, $crate::cell::show_text))
    };
    ($record:ident, opt_flag, $field:ident) => {
        Ok($record
            .$field
            .map_or($crate::value::Value::Null, $crate::value::Value::Bool))
    };
}

/// Writes a value into one field; kinds as in [`read_cell`].
macro_rules! write_cell {
    ($record:ident, $cell:ident, key, $field:ident) => {
        $record.$field = $crate::cell::take_key($cell)?
    };
    ($record:ident, $cell:ident, id, $field:ident, $number:literal) => {
        $record.$field = $crate::cell::noting_null($record, $number, $crate::cell::take_id($cell)?)
    };
    ($record:ident, $cell:ident, text, $field:ident, $number:literal) => {
        $record.$field = $crate::cell::noting_null($record, $number, $crate::cell::take_text($cell)?)
    };
    ($record:ident, $cell:ident, flag, $field:ident, $number:literal) => {
        $record.$field = $crate::cell::noting_null($record, $number, $crate::cell::take_flag($cell)?)
    };
    ($record:ident, $cell:ident, uuid, $field:ident, $number:literal) => {
        $record.$field = $crate::cell::noting_null($record, $number, $crate::cell::take_uuid($cell)?)
    };
    ($record:ident, $cell:ident, micros, $field:ident, $number:literal) => {
        $record.$field = $crate::cell::noting_null($record, $number, $crate::cell::take_micros($cell)?)
    };
    ($record:ident, $cell:ident, opt_id, $field:ident) => {
        $record.$field = $crate::cell::take_id($cell)?
    };
    ($record:ident, $cell:ident, opt_text, $field:ident) => {
        $record.$field = $crate::cell::take_text($cell)?
    };
    ($record:ident, $cell:ident, opt_flag, $field:ident) => {
        $record.$field = $crate::cell::take_flag($cell)?
    };
}

/// The two functions `get` and `set` of a relation whose row is a record.
macro_rules! record_cells {
    ($record:ty { $($column:literal: $kind:ident($($arg:tt)*),)* }) => {
        fn get(record: &$record, column: usize) -> Result<$crate::value::Value, $crate::cell::CellError> {
            match column {
                $($column => $crate::cell::read_cell!(record, $kind, $($arg)*),)*
                _ => Err($crate::cell::CellError::NoColumn),
            }
        }

        fn set(
            record: &mut $record,
            column: usize,
            cell: &$crate::value::Value,
        ) -> Result<(), $crate::cell::CellError> {
            match column {
                $($column => $crate::cell::write_cell!(record, cell, $kind, $($arg)*),)*
                _ => return Err($crate::cell::CellError::NoColumn),
            }
            Ok(())
        }
    };
}

/// The two functions `get` and `set` of a relation whose row is embedded in a record: first the columns that belong to the
/// record it is embedded in, then its own.
macro_rules! child_cells {
    (
        $owner:ty, $child:ty {
            $($owner_column:literal: of($owner_field:ident),)*
            ; $($column:literal: $kind:ident($($arg:tt)*),)*
        }
    ) => {
        fn get(
            owner: &$owner,
            _outer: u64,
            child: &$child,
            column: usize,
        ) -> Result<$crate::value::Value, $crate::cell::CellError> {
            match column {
                $($owner_column => $crate::cell::show_id(owner.$owner_field),)*
                $($column => $crate::cell::read_cell!(child, $kind, $($arg)*),)*
                _ => Err($crate::cell::CellError::NoColumn),
            }
        }

        fn set(
            owner: &$owner,
            _outer: u64,
            child: &mut $child,
            column: usize,
            cell: &$crate::value::Value,
        ) -> Result<(), $crate::cell::CellError> {
            match column {
                $($owner_column => $crate::cell::check_owner(owner.$owner_field, cell)?,)*
                $($column => $crate::cell::write_cell!(child, cell, $kind, $($arg)*),)*
                _ => return Err($crate::cell::CellError::NoColumn),
            }
            Ok(())
        }
    };
}

/// Refuses a value that would move an embedded row to another record.
pub(crate) fn check_owner(owner: u64, cell: &Value) -> Result<(), CellError> {
    if take_key(cell)? == owner {
        Ok(())
    } else {
        Err(CellError::Owner(owner))
    }
}

pub(crate) use {child_cells, read_cell, record_cells, write_cell};
