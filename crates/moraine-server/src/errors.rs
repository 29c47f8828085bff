//! Errors as the wire carries them: an SQLSTATE, a sentence, and the conversions from what lies below. No statement
//! is looked at here, and no wording of a conflict is made here: those words come from the commit protocol.

use moraine_commit::words::permanent;
use moraine_commit::{CatalogError, CommitFailure, OpenError, ReadError, StageError};
use moraine_tables::TableError;
use pgwire::error::{ErrorInfo, PgWireError};

/// The SQLSTATE classes this server answers with. Source: PostgreSQL, appendix A.
pub(crate) mod state {
    pub(crate) const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub(crate) const PROTOCOL_VIOLATION: &str = "08P01";
    pub(crate) const NUMERIC_OUT_OF_RANGE: &str = "22003";
    pub(crate) const INVALID_PARAMETER: &str = "22023";
    pub(crate) const INVALID_ENCODING: &str = "22021";
    pub(crate) const INVALID_TEXT: &str = "22P02";
    pub(crate) const INVALID_BINARY: &str = "22P03";
    pub(crate) const BAD_COPY_FORMAT: &str = "22P04";
    pub(crate) const NOT_NULL_VIOLATION: &str = "23502";
    pub(crate) const FOREIGN_KEY_VIOLATION: &str = "23503";
    pub(crate) const CHECK_VIOLATION: &str = "23514";
    pub(crate) const UNIQUE_VIOLATION: &str = "23505";
    pub(crate) const ACTIVE_TRANSACTION: &str = "25001";
    pub(crate) const READ_ONLY_TRANSACTION: &str = "25006";
    pub(crate) const FAILED_TRANSACTION: &str = "25P02";
    pub(crate) const INVALID_CATALOG_NAME: &str = "3D000";
    pub(crate) const INVALID_SCHEMA_NAME: &str = "3F000";
    pub(crate) const SERIALIZATION_FAILURE: &str = "40001";
    pub(crate) const COMPLETION_UNKNOWN: &str = "40003";
    pub(crate) const SYNTAX_ERROR: &str = "42601";
    pub(crate) const UNDEFINED_COLUMN: &str = "42703";
    pub(crate) const UNDEFINED_OBJECT: &str = "42704";
    pub(crate) const UNDEFINED_FUNCTION: &str = "42883";
    pub(crate) const DATATYPE_MISMATCH: &str = "42804";
    pub(crate) const AMBIGUOUS_COLUMN: &str = "42702";
    pub(crate) const INVALID_COLUMN_REFERENCE: &str = "42P10";
    pub(crate) const UNDEFINED_TABLE: &str = "42P01";
    pub(crate) const UNDEFINED_PARAMETER: &str = "42P02";
    pub(crate) const INVALID_TABLE_DEFINITION: &str = "42P16";
    pub(crate) const DUPLICATE_TABLE: &str = "42P07";
    pub(crate) const DUPLICATE_SCHEMA: &str = "42P06";
    pub(crate) const LIMIT_EXCEEDED: &str = "54000";
    pub(crate) const INVALID_STATEMENT_NAME: &str = "26000";
    pub(crate) const INVALID_CURSOR_NAME: &str = "34000";
    pub(crate) const INVALID_SAVEPOINT: &str = "3B001";
    pub(crate) const NO_ACTIVE_TRANSACTION: &str = "25P01";
    pub(crate) const DUPLICATE_STATEMENT: &str = "42P05";
    pub(crate) const DUPLICATE_CURSOR: &str = "42P03";
    pub(crate) const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55000";
    pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(crate) const ADMIN_SHUTDOWN: &str = "57P01";
    pub(crate) const CANNOT_CONNECT_NOW: &str = "57P03";
    pub(crate) const QUERY_CANCELED: &str = "57014";
    pub(crate) const SYSTEM_ERROR: &str = "58000";
    pub(crate) const DATA_CORRUPTED: &str = "XX001";
    pub(crate) const INTERNAL_ERROR: &str = "XX000";
}

/// One error of one statement: what goes into an `ErrorResponse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct SqlError {
    /// The five characters clients decide on.
    pub(crate) state: &'static str,
    /// The sentence shown to the user.
    pub(crate) message: String,
    /// What to do about it, when there is something to do.
    pub(crate) hint: Option<String>,
    /// A fatal error ends the session.
    pub(crate) fatal: bool,
    /// The character of the client's text that it is about, counted from 1.
    pub(crate) position: Option<usize>,
    /// In what it happened, when the statement's text does not show it: a line of a COPY.
    pub(crate) context: Option<String>,
}

impl SqlError {
    /// An error that another try cannot cure. DuckLake tries a commit again on certain words, so the sentence is freed
    /// of them, whatever it quotes.
    pub(crate) fn new(state: &'static str, message: impl Into<String>) -> SqlError {
        SqlError::try_again(state, permanent(message.into()))
    }

    /// An error in the commit protocol's own words, on which DuckLake tries again.
    fn try_again(state: &'static str, message: String) -> SqlError {
        SqlError {
            state,
            message,
            hint: None,
            fatal: false,
            position: None,
            context: None,
        }
    }

    /// The same error with advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> SqlError {
        // Clients read the hint as part of the message.
        self.hint = Some(permanent(hint.into()));
        self
    }

    /// The same error at a byte of the text the client sent.
    pub(crate) fn at(mut self, text: &str, byte: usize) -> SqlError {
        let before = text.get(..byte).map_or(0, |before| before.chars().count());
        self.position = Some(before + 1);
        self
    }

    /// The same error with what it happened in.
    pub(crate) fn within(mut self, context: impl Into<String>) -> SqlError {
        self.context.get_or_insert(permanent(context.into()));
        self
    }

    /// The same error at the name it is about, where the text of the statement shows it.
    pub(crate) fn located(self, text: &str) -> SqlError {
        let is_about_a_name = matches!(
            self.state,
            state::UNDEFINED_TABLE
                | state::UNDEFINED_COLUMN
                | state::AMBIGUOUS_COLUMN
                | state::UNDEFINED_FUNCTION
        );
        let named = self.message.split(['"', '(']).nth(1).unwrap_or_default();
        let last = named.rsplit('.').next().unwrap_or_default();
        if self.position.is_some() || !is_about_a_name || last.is_empty() {
            return self;
        }
        match crate::lexer::find_name(text, last) {
            Some(byte) => self.at(text, byte),
            None => self,
        }
    }

    /// The same error, ending the session.
    pub(crate) fn fatal(mut self) -> SqlError {
        self.fatal = true;
        self
    }

    /// The lake is another process's now. Opening it again would take it from there in turn, so nobody does.
    pub(crate) fn taken_over(schema: &str) -> SqlError {
        let message = format!(
            "another process has taken over the lake of schema \"{schema}\"; attach to it there, or restart this \
             server to take the lake back"
        );
        SqlError::new(state::CANNOT_CONNECT_NOW, message)
    }

    /// A change was asked of a server that only reads.
    pub(crate) fn only_reads() -> SqlError {
        let message = "cannot change anything on this server: it only reads";
        SqlError::new(state::READ_ONLY_TRANSACTION, message)
            .hint("Attach to the server that writes, or attach with READ_ONLY to read here.")
    }

    /// A construct that the language of this server does not have.
    pub(crate) fn unsupported(construct: impl std::fmt::Display) -> SqlError {
        SqlError::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("{construct} is not supported by moraine"),
        )
    }

    pub(crate) fn undefined_table(name: impl std::fmt::Display) -> SqlError {
        SqlError::new(
            state::UNDEFINED_TABLE,
            format!("relation \"{name}\" does not exist"),
        )
    }

    pub(crate) fn undefined_column(name: impl std::fmt::Display) -> SqlError {
        SqlError::new(
            state::UNDEFINED_COLUMN,
            format!("column \"{name}\" does not exist"),
        )
    }

    pub(crate) fn mismatch(column: &str, column_type: &str, found: &str) -> SqlError {
        SqlError::new(
            state::DATATYPE_MISMATCH,
            format!("column \"{column}\" is of type {column_type} but expression is of type {found}"),
        )
        .hint("You will need to rewrite or cast the expression.")
    }

    pub(crate) fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new(state::INTERNAL_ERROR, message)
    }

    /// The answer to every statement after a failed one, until ROLLBACK.
    pub(crate) fn in_failed_transaction() -> SqlError {
        SqlError::new(
            state::FAILED_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block",
        )
    }

    pub(crate) fn canceled() -> SqlError {
        SqlError::new(state::QUERY_CANCELED, "canceling statement due to user request")
    }

    pub(crate) fn into_info(self) -> ErrorInfo {
        let severity = if self.fatal { "FATAL" } else { "ERROR" };
        let mut info = ErrorInfo::new(severity.to_owned(), self.state.to_owned(), self.message);
        info.severity_nonlocalized = Some(severity.to_owned());
        info.hint = self.hint;
        info.position = self.position.map(|position| position.to_string());
        info.where_context = self.context;
        info
    }
}

impl From<SqlError> for PgWireError {
    fn from(error: SqlError) -> PgWireError {
        PgWireError::UserError(Box::new(error.into_info()))
    }
}

impl From<OpenError> for SqlError {
    fn from(error: OpenError) -> SqlError {
        SqlError::new(state::SYSTEM_ERROR, error.to_string())
    }
}

impl From<CatalogError> for SqlError {
    fn from(error: CatalogError) -> SqlError {
        match error {
            CatalogError::Read(error) => SqlError::from(&error),
            other => SqlError::new(state::SYSTEM_ERROR, other.to_string()),
        }
    }
}

impl From<&ReadError> for SqlError {
    fn from(error: &ReadError) -> SqlError {
        let state = match error {
            ReadError::Corruption { .. } => state::DATA_CORRUPTED,
            ReadError::Closed => state::ADMIN_SHUTDOWN,
            ReadError::ReadOnly => return SqlError::only_reads(),
            ReadError::Fenced { .. } => state::CANNOT_CONNECT_NOW,
            ReadError::Invalid { .. } => state::INTERNAL_ERROR,
            _ => state::SYSTEM_ERROR,
        };
        SqlError::new(state, error.to_string())
    }
}

impl From<StageError> for SqlError {
    fn from(error: StageError) -> SqlError {
        let state = match &error {
            StageError::LostRace { .. } => {
                return SqlError::try_again(state::UNIQUE_VIOLATION, error.to_string());
            }
            StageError::SlotTaken { .. } | StageError::SlotBusy { .. } | StageError::Claimed { .. } => {
                return SqlError::try_again(state::SERIALIZATION_FAILURE, error.to_string());
            }
            StageError::Duplicate { .. } => state::UNIQUE_VIOLATION,
            StageError::NoLake => state::UNDEFINED_TABLE,
            StageError::Constraint { .. } => state::CHECK_VIOLATION,
            StageError::Limit { .. } => state::LIMIT_EXCEEDED,
            StageError::Read(error) => return SqlError::from(error),
            _ => state::INTERNAL_ERROR,
        };
        SqlError::new(state, error.to_string())
    }
}

impl From<CommitFailure> for SqlError {
    fn from(error: CommitFailure) -> SqlError {
        let state = match &error {
            CommitFailure::Conflict { .. } => {
                return SqlError::try_again(state::SERIALIZATION_FAILURE, error.to_string());
            }
            CommitFailure::Constraint { .. } => state::CHECK_VIOLATION,
            CommitFailure::Unknown { .. } => state::COMPLETION_UNKNOWN,
            CommitFailure::Fenced { .. } => state::CANNOT_CONNECT_NOW,
            _ => state::SYSTEM_ERROR,
        };
        SqlError::new(state, error.to_string())
    }
}

impl From<TableError> for SqlError {
    fn from(error: TableError) -> SqlError {
        let state = match error {
            TableError::Stage(error) => return SqlError::from(error),
            TableError::Read(error) => return SqlError::from(&error),
            TableError::Missing { .. } => state::UNDEFINED_TABLE,
            TableError::AlreadyExists { .. } => state::DUPLICATE_TABLE,
            TableError::Definition { .. } => state::INVALID_TABLE_DEFINITION,
            TableError::Width { .. } => state::SYNTAX_ERROR,
            TableError::Type { .. } => state::DATATYPE_MISMATCH,
            TableError::NotNull { .. } => state::NOT_NULL_VIOLATION,
            TableError::OutOfRange { .. } => state::NUMERIC_OUT_OF_RANGE,
            TableError::InvalidText { .. } => state::INVALID_TEXT,
            TableError::Constraint { .. } => state::CHECK_VIOLATION,
            TableError::Duplicate { .. } => state::UNIQUE_VIOLATION,
            TableError::NoParent { .. } => state::FOREIGN_KEY_VIOLATION,
            TableError::Unsupported { .. } => state::FEATURE_NOT_SUPPORTED,
            TableError::Corrupt { .. } => state::DATA_CORRUPTED,
            _ => state::INTERNAL_ERROR,
        };
        SqlError::new(state, error.to_string())
    }
}
