//! What can go wrong with a statement on one relation. Each error names the relation and the value and says what to do;
//! the server turns them into SQLSTATEs.

use moraine_commit::StageError;
use moraine_inline::InlineError;
use moraine_store::ReadError;

use crate::relation::Relation;

/// A statement on a relation that failed; nothing of it stays staged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The relation is not there in this transaction's view (42P01).
    #[error("relation \"{relation}\" does not exist")]
    Missing {
        /// The relation asked for.
        relation: Relation,
    },
    /// `CREATE TABLE` of a relation that is there (42P07).
    #[error("relation \"{relation}\" already exists")]
    AlreadyExists {
        /// The relation to be created.
        relation: Relation,
    },
    /// A `CREATE TABLE` whose columns are not the ones this relation has (42P16).
    #[error("the columns given for \"{relation}\" cannot be used: {detail}")]
    Definition {
        /// The relation to be created.
        relation: Relation,
        /// Which column, and why.
        detail: String,
    },
    /// A row with too many or too few values, or a column that is not there (42601).
    #[error(
        "\"{relation}\" has {expected} columns, the statement gives {found}; name a value for each column"
    )]
    Width {
        /// The relation.
        relation: Relation,
        /// The number of its columns.
        expected: usize,
        /// The number of values, or the position asked for plus one.
        found: usize,
    },
    /// A value of a type the column does not have (42804).
    #[error("column \"{column}\" of \"{relation}\" is of type {expected}, but the value is of type {found}")]
    Type {
        /// The relation.
        relation: Relation,
        /// The column.
        column: String,
        /// The column's type.
        expected: String,
        /// The value's type.
        found: &'static str,
    },
    /// `NULL` where the relation cannot hold it (23502).
    #[error("null value in column \"{column}\" of relation \"{relation}\" violates its not-null constraint")]
    NotNull {
        /// The relation.
        relation: Relation,
        /// The column.
        column: String,
    },
    /// A value outside what the column can hold (22003).
    #[error("value {value} is out of range for column \"{column}\" of \"{relation}\": {detail}")]
    OutOfRange {
        /// The relation.
        relation: Relation,
        /// The column.
        column: String,
        /// The value.
        value: String,
        /// What is allowed.
        detail: &'static str,
    },
    /// A text that is not the text DuckDB writes for the column's type, so storing it would change it (22P02).
    #[error(
        "invalid input for column \"{column}\" of \"{relation}\": \"{value}\" is not the text of a {data_type} as \
         DuckDB writes it"
    )]
    InvalidText {
        /// The relation.
        relation: Relation,
        /// The column.
        column: String,
        /// The text.
        value: String,
        /// The DuckLake type of the column.
        data_type: String,
    },
    /// A row that contradicts the rows already there (23514).
    #[error("row of \"{relation}\" is refused: {detail}")]
    Constraint {
        /// The relation.
        relation: Relation,
        /// What contradicts what, with ids.
        detail: String,
    },
    /// A row that is there already (23505).
    #[error("\"{relation}\" already has a row for {key}")]
    Duplicate {
        /// The relation.
        relation: Relation,
        /// The ids of the row.
        key: String,
    },
    /// A row that belongs to another row which is not there (23503).
    #[error("row of \"{relation}\" belongs to {parent}, which does not exist; insert that row first")]
    NoParent {
        /// The relation of the row.
        relation: Relation,
        /// The missing row: its relation and ids.
        parent: String,
    },
    /// Something this relation cannot do (0A000).
    #[error("\"{relation}\" does not support this: {detail}")]
    Unsupported {
        /// The relation.
        relation: Relation,
        /// What was asked, and what to do instead.
        detail: String,
    },
    /// A stored record that cannot be served as a row (XX001).
    #[error("record of \"{relation}\" is damaged: {detail}")]
    Corrupt {
        /// The relation.
        relation: Relation,
        /// The field and its value.
        detail: String,
    },
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The change was refused by the commit layer; a lost race among them.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Inlined rows could not be read.
    #[error(transparent)]
    Inline(InlineError),
}

impl From<InlineError> for TableError {
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Read(error) => TableError::Read(error),
            error => TableError::Inline(error),
        }
    }
}
