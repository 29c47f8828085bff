//! The binder: a parsed statement becomes a bound one, with every name resolved against the transaction's view and every
//! literal coerced to its column's type. What a statement of one relation cannot express is refused here, by name.

mod condition;
mod copy;
mod ddl;
mod expr;
mod filter;
mod modify;
mod names;
mod query;
mod scope;

use std::sync::Arc;

use async_trait::async_trait;
use moraine_tables::{Column, ColumnType, Relation, RelationSchema, Value};
use postgres_types::Type;
use sqlparser::ast::{Expr, Query, SetExpr, Statement};

pub(crate) use condition::Condition;
pub(crate) use copy::{CopyCsvOptions, CopyFormat, CopyIn, CopyTextOptions, ForceQuote, copy_format};
pub(crate) use modify::positions;
pub(crate) use names::{TableName, fold, object_name};

use crate::errors::SqlError;
use crate::parse::Parsed;
use crate::temporary::TemporaryTable;
use crate::values::literal::Literal;
use crate::values::parameters::Parameters;
use crate::values::types;

/// Where a table lives: in a lake, or in the session.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A relation of the lake in this schema of the session's database.
    Relation {
        lake: String,
        relation: Relation,
        schema: Arc<RelationSchema>,
    },
    /// A temporary table of the session.
    Temporary(Arc<TemporaryTable>),
}

impl Source {
    /// The columns, in order.
    pub(crate) fn columns(&self) -> &[Column] {
        match self {
            Source::Relation { schema, .. } => &schema.columns,
            Source::Temporary(table) => &table.columns,
        }
    }

    /// The name without a schema.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Relation { relation, .. } => relation.name(),
            Source::Temporary(table) => table.name.clone(),
        }
    }
}

/// What the binder asks the session's transaction: which tables there are.
#[async_trait]
pub(crate) trait Tables: Send {
    /// The table of this name in this transaction's view, or `None`.
    async fn find(&mut self, name: &TableName) -> Result<Option<Source>, SqlError>;
}

/// A statement ready to run.
#[derive(Debug)]
pub(crate) enum Bound {
    Select(Box<Select>),
    Insert(Insert),
    Update(Box<Update>),
    Delete(Delete),
    CreateTable(CreateTable),
    CreateTemporary(TemporaryTable),
    DropTables { names: Vec<TableName>, if_exists: bool },
    CreateSchema { name: String, if_not_exists: bool },
    CopyOut { select: Box<Select>, format: CopyFormat },
    CopyIn(CopyIn),
}

/// One column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) kind: OutputKind,
    pub(crate) wire_type: Type,
    pub(crate) type_modifier: i32,
}

/// What a result column shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OutputKind {
    /// A column of the source.
    Column(usize),
    /// A column of the source under a cast.
    Cast(usize, ColumnType),
    /// The row's address.
    Ctid,
    /// The same value in every row.
    Constant(Value),
    /// The number of rows, or of rows in which the column is not NULL.
    Count(Option<usize>),
    Min(usize),
    Max(usize),
}

impl OutputKind {
    pub(crate) fn is_aggregate(&self) -> bool {
        matches!(
            self,
            OutputKind::Count(_) | OutputKind::Min(_) | OutputKind::Max(_)
        )
    }

    /// The source column this shows or counts.
    pub(crate) fn column(&self) -> Option<usize> {
        match self {
            OutputKind::Column(column)
            | OutputKind::Cast(column, _)
            | OutputKind::Count(Some(column))
            | OutputKind::Min(column)
            | OutputKind::Max(column) => Some(*column),
            OutputKind::Ctid | OutputKind::Constant(_) | OutputKind::Count(None) => None,
        }
    }
}

/// A read of one source.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) source: Source,
    pub(crate) outputs: Vec<Output>,
    pub(crate) filter: RowFilter,
    pub(crate) order: Vec<SortKey>,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
}

impl Select {
    pub(crate) fn is_aggregate(&self) -> bool {
        self.outputs.iter().any(|output| output.kind.is_aggregate())
    }
}

/// One column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortKey {
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// The WHERE of one source, split by what evaluates it.
#[derive(Debug, Default)]
pub(crate) struct RowFilter {
    /// Conjuncts the tables evaluate, and turn into key ranges.
    pub(crate) pushed: Vec<moraine_tables::Comparison>,
    /// Conjuncts on `ctid`: the row must be one of these.
    pub(crate) ctids: Option<Vec<u64>>,
    /// Conjuncts that are evaluated row by row.
    pub(crate) residual: Vec<Condition>,
    /// Conjuncts that compare a column with the single value of another read.
    pub(crate) scalars: Vec<ScalarComparison>,
}

/// `column op (SELECT …)`.
#[derive(Debug)]
pub(crate) struct ScalarComparison {
    pub(crate) column: usize,
    pub(crate) op: moraine_tables::CompareOp,
    pub(crate) select: Box<Select>,
}

/// New rows, complete and typed.
#[derive(Debug)]
pub(crate) struct Insert {
    pub(crate) target: Source,
    pub(crate) rows: Vec<Vec<Value>>,
}

#[derive(Debug)]
pub(crate) struct Delete {
    pub(crate) target: Source,
    pub(crate) filter: RowFilter,
}

#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) target: Source,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) filter: RowFilter,
    pub(crate) join: Option<Join>,
}

/// `SET column = value`.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) column: usize,
    pub(crate) value: AssignedValue,
}

#[derive(Debug)]
pub(crate) enum AssignedValue {
    /// The same for every row, coerced already.
    Constant(Value),
    /// Computed from the row and its partner.
    Scalar(Scalar),
}

/// An expression over a row of the target and its partner from FROM.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Literal(Literal),
    /// A column of the updated row.
    Target(usize),
    /// A column of the partner.
    Partner(usize),
    Cast(Box<Scalar>, ColumnType),
}

/// The rows of FROM and how they find their target rows.
#[derive(Debug)]
pub(crate) struct Join {
    /// The partners, column by column as the statement wrote them: a column's type is that of what it meets.
    pub(crate) rows: Vec<Vec<Literal>>,
    /// (target column, partner column) that must be equal.
    pub(crate) on: Vec<(usize, usize)>,
    /// The partner column that holds the target's `ctid` as text.
    pub(crate) ctid: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct CreateTable {
    pub(crate) lake: String,
    pub(crate) relation: Relation,
    pub(crate) columns: Vec<Column>,
    pub(crate) if_not_exists: bool,
}

/// Binds statements against a transaction.
pub(crate) struct Binder<'a> {
    tables: &'a mut dyn Tables,
    parameters: Arc<Parameters>,
    session: SessionNames,
    now: i64,
}

/// The names a session gives without saying them.
#[derive(Debug, Clone)]
pub(crate) struct SessionNames {
    pub(crate) database: String,
    /// The schema of unqualified names.
    pub(crate) schema: String,
}

impl<'a> Binder<'a> {
    /// A binder for one statement. `now` is the start of the transaction in microseconds since 1970.
    pub(crate) fn new(
        tables: &'a mut dyn Tables,
        parameters: Arc<Parameters>,
        session: SessionNames,
        now: i64,
    ) -> Binder<'a> {
        Binder {
            tables,
            parameters,
            session,
            now,
        }
    }

    /// Binds one statement. Transaction control and session settings are no business of the binder.
    pub(crate) async fn bind(&mut self, parsed: &Parsed) -> Result<Bound, SqlError> {
        match parsed {
            Parsed::Insert(insert) => self.insert_values(insert).await,
            Parsed::Checkpoint | Parsed::Fetch(_) => Err(SqlError::internal(
                "a statement of the session reached the binder",
            )),
            Parsed::Sql(statement) => self.statement(statement).await,
        }
    }

    async fn statement(&mut self, statement: &Statement) -> Result<Bound, SqlError> {
        match statement {
            Statement::Query(query) => self.query_or_change(query).await,
            Statement::Insert(insert) => self.insert(insert).await,
            Statement::Update(update) => self.update(update, None).await,
            Statement::Delete(delete) => self.delete(delete).await,
            Statement::CreateTable(create) => self.create_table(create),
            Statement::CreateSchema {
                schema_name,
                if_not_exists,
                ..
            } => self.create_schema(schema_name, *if_not_exists),
            Statement::Drop { .. } => self.drop_object(statement),
            Statement::Copy { .. } => self.copy(statement).await,
            other => Err(SqlError::unsupported(statement_name(other))),
        }
    }

    /// A SELECT, or a change with common table expressions in front.
    async fn query_or_change(&mut self, query: &Query) -> Result<Bound, SqlError> {
        match query.body.as_ref() {
            SetExpr::Update(Statement::Update(update)) => self.update(update, query.with.as_ref()).await,
            SetExpr::Delete(Statement::Delete(delete)) if query.with.is_none() => self.delete(delete).await,
            SetExpr::Insert(Statement::Insert(insert)) if query.with.is_none() => self.insert(insert).await,
            SetExpr::Insert(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(SqlError::unsupported("WITH before this statement"))
            }
            _ => self
                .query(query)
                .await
                .map(|select| Bound::Select(Box::new(select))),
        }
    }

    /// The table of this name, or 42P01.
    async fn table(&mut self, name: &TableName) -> Result<Source, SqlError> {
        self.tables
            .find(name)
            .await?
            .ok_or_else(|| SqlError::undefined_table(name))
    }
}

/// The literal an expression is, where nothing is known but the expression; 0A000 for anything else.
pub(crate) fn literal(expr: &Expr) -> Result<Literal, SqlError> {
    let mut nothing = NoTables;
    let names = SessionNames {
        database: String::new(),
        schema: String::new(),
    };
    let binder = Binder::new(&mut nothing, Arc::new(Parameters::none()), names, 0);
    binder
        .constant(expr)?
        .ok_or_else(|| SqlError::unsupported(format!("the argument {expr}")))
}

struct NoTables;

#[async_trait]
impl Tables for NoTables {
    async fn find(&mut self, _: &TableName) -> Result<Option<Source>, SqlError> {
        Ok(None)
    }
}

/// The first words of a statement, for the refusal of one that is not known.
fn statement_name(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(" ")
}

/// The wire's view of a source column.
pub(crate) fn column_output(name: String, index: usize, column_type: ColumnType) -> Output {
    Output {
        name,
        kind: OutputKind::Column(index),
        wire_type: types::wire_type(column_type),
        type_modifier: types::type_modifier(column_type),
    }
}
