//! What can go wrong with a query. Each error names the construct, column or value; the server turns them into SQLSTATEs.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

/// An error of whoever serves the relations, kept as it came.
pub type RelationError = Box<dyn std::error::Error + Send + Sync>;

/// A value that a function or a cast cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Text that is not of the form of its type (22P02).
    #[error("invalid input syntax for type {type_name}: \"{text}\"")]
    Syntax {
        /// The SQL name of the type.
        type_name: String,
        /// The text.
        text: String,
    },
    /// A value beyond what the type holds (22003).
    #[error("value \"{text}\" is out of range for type {type_name}")]
    Range {
        /// The SQL name of the type.
        type_name: String,
        /// The value.
        text: String,
    },
    /// A setting that does not exist (42704).
    #[error("unrecognized configuration parameter \"{name}\"")]
    Setting {
        /// Its name.
        name: String,
    },
    /// A range that cannot be cut into parts (2201G).
    #[error("{detail}")]
    Buckets {
        /// What is wrong with it.
        detail: String,
    },
    /// A number that has no logarithm (2201E).
    #[error("{detail}")]
    Logarithm {
        /// What is wrong with it.
        detail: String,
    },
    /// A power or a root that is no real number (2201F).
    #[error("{detail}")]
    Power {
        /// What is wrong with it.
        detail: String,
    },
    /// A relation that a `regclass` names and that does not exist (42P01).
    #[error("relation \"{name}\" does not exist")]
    Relation {
        /// Its name.
        name: String,
    },
}

/// A query that was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A relation that does not exist (42P01).
    #[error("relation \"{name}\" does not exist")]
    UndefinedTable {
        /// The name as the query wrote it.
        name: String,
    },
    /// A column that does not exist (42703).
    #[error("column \"{name}\" does not exist")]
    UndefinedColumn {
        /// The name as the query wrote it.
        name: String,
    },
    /// A column name that means more than one column (42702).
    #[error("column reference \"{name}\" is ambiguous")]
    AmbiguousColumn {
        /// The name as the query wrote it.
        name: String,
    },
    /// A function that is not there, or not with these arguments (42883).
    #[error("function {name} does not exist; no function matches the given name and argument types")]
    UndefinedFunction {
        /// The function's name.
        name: String,
    },
    /// Something this engine does not have (0A000).
    #[error("{construct} is not supported by moraine")]
    Unsupported {
        /// The construct.
        construct: String,
    },
    /// A query whose parts do not fit together: types, GROUP BY, number of columns (42804).
    #[error("{detail}")]
    Invalid {
        /// What does not fit.
        detail: String,
    },
    /// A value that cannot be read or used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A number beyond its type (22003).
    #[error("{detail}")]
    OutOfRange {
        /// Which, as far as known.
        detail: String,
    },
    /// Division by zero (22012).
    #[error("division by zero")]
    DivisionByZero,
    /// A subquery used as a value gave more than one row (21000).
    #[error("more than one row returned by a subquery used as an expression")]
    Cardinality,
    /// The query needs more memory than one query may have (53200).
    #[error("the query needs more memory than one query may have: {detail}; narrow it down")]
    Memory {
        /// What was asked for.
        detail: String,
    },
    /// A parameter without a value (42P02).
    #[error("there is no parameter ${number}")]
    Parameter {
        /// Its number, from 1.
        number: usize,
    },
    /// The relations could not be read.
    #[error("{0}")]
    Relation(RelationError),
    /// A defect of the engine (XX000).
    #[error("internal error of the query engine: {detail}")]
    Internal {
        /// What went wrong.
        detail: String,
    },
}

impl QueryError {
    /// A construct that is not there.
    #[must_use]
    pub fn unsupported(construct: impl Into<String>) -> Self {
        Self::Unsupported {
            construct: construct.into(),
        }
    }

    /// The error as DataFusion passes it on; [`QueryError::from`] finds it again.
    pub(crate) fn wrapped(self) -> DataFusionError {
        DataFusionError::External(Box::new(Carried(std::sync::Mutex::new(Some(self)))))
    }
}

/// An error on its way through DataFusion. It can be taken out of a shared reference, once.
#[derive(Debug)]
struct Carried(std::sync::Mutex<Option<QueryError>>);

impl std::fmt::Display for Carried {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.lock() {
            Ok(error) => match &*error {
                Some(error) => std::fmt::Display::fmt(error, out),
                None => out.write_str("an error that was reported before"),
            },
            Err(_) => out.write_str("an error that cannot be read"),
        }
    }
}

impl std::error::Error for Carried {}

impl From<InputError> for DataFusionError {
    fn from(error: InputError) -> Self {
        QueryError::Input(error).wrapped()
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        let root = error.find_root();
        match root {
            DataFusionError::External(inner) => {
                let carried = inner.downcast_ref::<Carried>();
                let taken =
                    carried.and_then(|carried| carried.0.lock().ok().and_then(|mut error| error.take()));
                taken.unwrap_or_else(|| Self::Internal {
                    detail: inner.to_string(),
                })
            }
            DataFusionError::SchemaError(schema, _) => of_schema(schema),
            DataFusionError::NotImplemented(detail) => Self::unsupported(first_sentence(detail)),
            DataFusionError::ArrowError(arrow, _) => of_arrow(arrow),
            DataFusionError::ResourcesExhausted(detail) => Self::Memory {
                detail: first_sentence(detail),
            },
            DataFusionError::Plan(detail) => of_plan(detail),
            DataFusionError::Execution(detail) => of_execution(detail),
            DataFusionError::SQL(error, _) => Self::Invalid {
                detail: error.to_string(),
            },
            DataFusionError::Internal(detail)
                if detail.contains("Unsupported") || detail.contains("not implemented") =>
            {
                Self::unsupported(first_sentence(detail))
            }
            DataFusionError::Internal(detail) => Self::Internal {
                detail: first_sentence(detail),
            },
            other => Self::Invalid {
                detail: first_sentence(&other.strip_backtrace()),
            },
        }
    }
}

fn of_schema(error: &SchemaError) -> QueryError {
    match error {
        SchemaError::FieldNotFound { field, .. } => QueryError::UndefinedColumn {
            name: field.flat_name(),
        },
        SchemaError::AmbiguousReference { field } => QueryError::AmbiguousColumn {
            name: field.flat_name(),
        },
        other => QueryError::Invalid {
            detail: other.to_string(),
        },
    }
}

fn of_arrow(error: &datafusion::arrow::error::ArrowError) -> QueryError {
    use datafusion::arrow::error::ArrowError;
    match error {
        ArrowError::DivideByZero => QueryError::DivisionByZero,
        ArrowError::ArithmeticOverflow(detail) => QueryError::OutOfRange {
            detail: detail.clone(),
        },
        ArrowError::CastError(detail) if detail.starts_with("Can't cast value") => QueryError::OutOfRange {
            detail: out_of_range(detail),
        },
        ArrowError::InvalidArgumentError(detail) if detail.contains("too large to store in a Decimal") => {
            QueryError::OutOfRange {
                detail: "numeric field overflow".to_owned(),
            }
        }
        ArrowError::NotYetImplemented(detail) => QueryError::unsupported(detail),
        ArrowError::CastError(detail) | ArrowError::ParseError(detail) | ArrowError::ComputeError(detail) => {
            QueryError::Invalid {
                detail: detail.clone(),
            }
        }
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(carried)) => carried
                .downcast_ref::<Carried>()
                .and_then(|carried| carried.0.lock().ok().and_then(|mut error| error.take()))
                .unwrap_or_else(|| QueryError::Internal {
                    detail: inner.to_string(),
                }),
            _ => QueryError::Internal {
                detail: inner.to_string(),
            },
        },
        other => QueryError::Internal {
            detail: other.to_string(),
        },
    }
}

/// Arrow's words for a number that does not fit, as Postgres's.
fn out_of_range(detail: &str) -> String {
    let kind = match detail.rsplit(' ').next() {
        Some("Int16") => "smallint",
        Some("Int32") => "integer",
        Some("Int64") => "bigint",
        _ => return detail.to_owned(),
    };
    format!("{kind} out of range")
}

/// A function that is not there: one that Postgres has is refused, any other does not exist.
fn without_function(name: &str) -> QueryError {
    let bare = name.split('(').next().unwrap_or_default();
    if bare == name && crate::functions::is_of_postgres(name) {
        return QueryError::unsupported(format!("function {name}"));
    }
    QueryError::UndefinedFunction {
        name: name.to_owned(),
    }
}

fn of_plan(detail: &str) -> QueryError {
    if let Some(rest) = detail.strip_prefix("Invalid function '") {
        return without_function(rest.split('\'').next().unwrap_or_default());
    }
    if let Some(at) = detail.find("No function matches the given name and argument types '") {
        let call = detail.get(at..).and_then(|rest| rest.split('\'').nth(1));
        return QueryError::UndefinedFunction {
            name: call.unwrap_or_default().to_owned(),
        };
    }
    if detail.starts_with("Unsupported")
        || detail.contains("not supported")
        || detail.contains("can only be used in")
    {
        return QueryError::unsupported(first_sentence(detail));
    }
    QueryError::Invalid {
        detail: first_sentence(detail),
    }
}

fn of_execution(detail: &str) -> QueryError {
    if detail.contains("more than one row") {
        return QueryError::Cardinality;
    }
    if detail.contains("Divide by zero") || detail.contains("division by zero") {
        return QueryError::DivisionByZero;
    }
    if detail.contains("overflow") {
        return QueryError::OutOfRange {
            detail: first_sentence(detail),
        };
    }
    QueryError::Invalid {
        detail: first_sentence(detail),
    }
}

/// What DataFusion says, without the candidates and advice it adds.
fn first_sentence(detail: &str) -> String {
    let line = detail.lines().next().unwrap_or_default().trim();
    line.strip_prefix("Error during planning: ")
        .unwrap_or(line)
        .to_owned()
}
