//! The engine's errors as SQLSTATEs.

use moraine_sql::{InputError, QueryError};
use moraine_tables::TableError;

use crate::errors::{SqlError, state};

/// What the client is told.
pub(super) fn convert(error: QueryError) -> SqlError {
    let text = error.to_string();
    let state = match error {
        QueryError::Relation(error) => {
            return match error.downcast::<TableError>() {
                Ok(error) => SqlError::from(*error),
                Err(error) => match error.downcast::<SqlError>() {
                    Ok(error) => *error,
                    Err(error) => SqlError::internal(error.to_string()),
                },
            };
        }
        QueryError::UndefinedTable { .. } | QueryError::Input(InputError::Relation { .. }) => {
            state::UNDEFINED_TABLE
        }
        QueryError::UndefinedColumn { .. } => state::UNDEFINED_COLUMN,
        QueryError::AmbiguousColumn { .. } => state::AMBIGUOUS_COLUMN,
        QueryError::UndefinedFunction { .. } => state::UNDEFINED_FUNCTION,
        QueryError::Unsupported { .. } => state::FEATURE_NOT_SUPPORTED,
        QueryError::Input(InputError::Syntax { .. }) => state::INVALID_TEXT,
        QueryError::Input(InputError::Range { .. }) | QueryError::OutOfRange { .. } => {
            state::NUMERIC_OUT_OF_RANGE
        }
        QueryError::Input(InputError::Buckets { .. }) => "2201G",
        QueryError::Input(InputError::Logarithm { .. }) => "2201E",
        QueryError::Input(InputError::Power { .. }) => "2201F",
        QueryError::Input(InputError::Setting { .. }) => state::UNDEFINED_OBJECT,
        QueryError::Invalid { .. } => state::DATATYPE_MISMATCH,
        QueryError::DivisionByZero => "22012",
        QueryError::Cardinality => "21000",
        QueryError::Memory { .. } => "53200",
        QueryError::Parameter { .. } => state::UNDEFINED_PARAMETER,
        _ => state::INTERNAL_ERROR,
    };
    SqlError::new(state, text)
}
