//! The parameters of a prepared statement. While it is described nobody knows their values, and their types are learned
//! from the columns they meet; when it is run, their bytes are read as those types.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use moraine_tables::{ColumnType, Value};
use postgres_types::Type;

use super::literal::{self, Target};
use super::{decode, types};
use crate::errors::{SqlError, state};

/// The parameters of one statement.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    values: Option<Vec<Parameter>>,
    learned: Mutex<BTreeMap<usize, ColumnType>>,
}

/// One parameter as `Bind` sent it.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// `None` is NULL.
    pub(crate) bytes: Option<Bytes>,
    pub(crate) binary: bool,
    /// The type the client declared in `Parse`.
    pub(crate) declared: Option<Type>,
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Parameters) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Parameters {
    /// No parameters at all: a simple query.
    pub(crate) fn none() -> Parameters {
        Parameters {
            values: Some(Vec::new()),
            learned: Mutex::default(),
        }
    }

    /// Parameters whose types are to be learned.
    pub(crate) fn to_learn() -> Parameters {
        Parameters::default()
    }

    pub(crate) fn bound(values: Vec<Parameter>) -> Parameters {
        Parameters {
            values: Some(values),
            learned: Mutex::default(),
        }
    }

    /// The types the client declared, by position; none while they are being learned.
    pub(crate) fn declared(&self) -> Vec<Option<Type>> {
        let values = self.values.iter().flatten();
        values.map(|value| value.declared.clone()).collect()
    }

    /// 42P02 when there is no parameter of this position.
    pub(crate) fn check(&self, index: usize) -> Result<(), SqlError> {
        match &self.values {
            Some(values) if index >= values.len() => Err(SqlError::new(
                state::UNDEFINED_PARAMETER,
                format!("there is no parameter ${}", index + 1),
            )),
            _ => Ok(()),
        }
    }

    /// The types learned: one for each parameter up to the last one seen; text where nothing is known.
    pub(crate) fn learned(&self) -> Vec<Type> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let count = learned.keys().next_back().map_or(0, |last| last + 1);
        (0..count)
            .map(|index| {
                learned
                    .get(&index)
                    .map_or(Type::TEXT, |known| types::wire_type(*known))
            })
            .collect()
    }

    /// The value of a parameter in a column; NULL while its type is being learned.
    pub(crate) fn value(&self, index: usize, target: Target<'_>) -> Result<Value, SqlError> {
        let Some(values) = &self.values else {
            let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            learned.entry(index).or_insert(target.column_type);
            return Ok(Value::Null);
        };
        let Some(Parameter {
            bytes: Some(bytes),
            binary,
            declared,
        }) = values.get(index)
        else {
            self.check(index)?;
            return Ok(Value::Null);
        };
        if !binary {
            let text = std::str::from_utf8(bytes).map_err(|_| invalid(index, "its text is not UTF-8"))?;
            return literal::read(text, target);
        }
        let sent = declared
            .as_ref()
            .and_then(types::of_wire_type)
            .unwrap_or(target.column_type);
        let sent = match (sent, target.column_type) {
            // The digits of a numeric are those of the column it is for.
            (ColumnType::Numeric { .. }, wanted @ ColumnType::Numeric { .. }) => wanted,
            (sent, _) => sent,
        };
        let value = decode::binary(bytes, sent).ok_or_else(|| {
            invalid(
                index,
                &format!("{} bytes are no {}", bytes.len(), types::sql_name(sent)),
            )
        })?;
        literal::assign(value, target)
    }
}

fn invalid(index: usize, detail: &str) -> SqlError {
    SqlError::new(
        state::INVALID_BINARY,
        format!(
            "incorrect binary data format in bind parameter {}: {detail}",
            index + 1
        ),
    )
}
