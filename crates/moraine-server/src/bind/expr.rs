//! Constant expressions: literals, casts of literals, the clock, parameters.

use moraine_tables::{ColumnType, Value};
use sqlparser::ast::{DataType, Expr, FunctionArguments, UnaryOperator, Value as SqlValue};

use super::Binder;
use crate::errors::{SqlError, state};
use crate::values::literal::{Literal, Target};
use crate::values::types;

impl Binder<'_> {
    /// The literal an expression is; `None` when it is not constant.
    pub(super) fn constant(&self, expr: &Expr) -> Result<Option<Literal>, SqlError> {
        Ok(match expr {
            Expr::Value(value) => Some(self.value(&value.value)?),
            Expr::Nested(inner) => self.constant(inner)?,
            Expr::Collate { expr, collation } => {
                check_collation(&collation.to_string())?;
                self.constant(expr)?
            }
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => self.constant(expr)?.and_then(Literal::negated),
            Expr::UnaryOp {
                op: UnaryOperator::Plus,
                expr,
            } => self.constant(expr)?,
            Expr::Cast { expr, data_type, .. } if !is_tid(data_type) => match self.constant(expr)? {
                Some(literal) => Some(Literal::Cast(Box::new(literal), types::from_sql(data_type)?)),
                None => None,
            },
            Expr::TypedString(typed) => {
                let column_type = types::from_sql(&typed.data_type)?;
                let literal = self.value(&typed.value.value)?;
                Some(Literal::Cast(Box::new(literal), column_type))
            }
            Expr::Interval(interval) if interval.leading_field.is_none() => self
                .constant(&interval.value)?
                .map(|literal| Literal::Cast(Box::new(literal), ColumnType::Interval)),
            Expr::Function(function) => {
                let no_arguments = match &function.args {
                    FunctionArguments::None => true,
                    FunctionArguments::List(list) => list.args.is_empty(),
                    FunctionArguments::Subquery(_) => false,
                };
                let name = function.name.to_string().to_lowercase();
                let clock = matches!(
                    name.as_str(),
                    "now" | "current_timestamp" | "transaction_timestamp" | "pg_catalog.now"
                );
                (clock && no_arguments && function.over.is_none()).then_some(Literal::Now)
            }
            _ => None,
        })
    }

    fn value(&self, value: &SqlValue) -> Result<Literal, SqlError> {
        Ok(match value {
            SqlValue::Null => Literal::Null,
            SqlValue::Boolean(value) => Literal::Bool(*value),
            SqlValue::Number(digits, _) => Literal::Number(digits.clone()),
            SqlValue::SingleQuotedString(text)
            | SqlValue::EscapedStringLiteral(text)
            | SqlValue::UnicodeStringLiteral(text)
            | SqlValue::NationalStringLiteral(text) => Literal::Quoted(text.clone()),
            SqlValue::DollarQuotedString(text) => Literal::Quoted(text.value.clone()),
            SqlValue::Placeholder(name) => self.parameter(name)?,
            other => return Err(SqlError::unsupported(format!("the literal {other}"))),
        })
    }

    fn parameter(&self, name: &str) -> Result<Literal, SqlError> {
        self.parameters.literal(parameter_index(name)?)
    }

    /// The position of the parameter an expression is, under whatever casts: `$1`, `$1::bigint[]`.
    pub(super) fn array_parameter(&self, expr: &Expr) -> Result<Option<usize>, SqlError> {
        match expr {
            Expr::Nested(inner) => self.array_parameter(inner),
            Expr::Cast {
                expr,
                data_type: DataType::Array(_),
                ..
            } => self.array_parameter(expr),
            Expr::Value(value) => match &value.value {
                SqlValue::Placeholder(name) => parameter_index(name).map(Some),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The value of a literal in a column.
    pub(super) fn coerce(
        &self,
        literal: &Literal,
        column: &str,
        column_type: ColumnType,
    ) -> Result<Value, SqlError> {
        literal.coerce(Target {
            column,
            column_type,
            now: self.now,
        })
    }

    /// A row count of LIMIT or OFFSET; `None` for NULL and ALL.
    pub(super) fn row_count(&self, expr: &Expr, clause: &str) -> Result<Option<usize>, SqlError> {
        let Some(literal) = self.constant(expr)? else {
            return Err(SqlError::unsupported(format!("{clause} of an expression")));
        };
        match self.coerce(&literal, clause, ColumnType::Int64)? {
            Value::Null => Ok(None),
            Value::Int64(count) => usize::try_from(count).map(Some).map_err(|_| {
                SqlError::new(state::INVALID_PARAMETER, format!("{clause} must not be negative"))
            }),
            _ => Err(SqlError::internal("a row count that is no number")),
        }
    }
}

/// The position of the parameter `$n`, from 0.
fn parameter_index(name: &str) -> Result<usize, SqlError> {
    let number = name
        .strip_prefix('$')
        .and_then(|digits| digits.parse::<usize>().ok());
    number.and_then(|number| number.checked_sub(1)).ok_or_else(|| {
        SqlError::new(
            state::SYNTAX_ERROR,
            format!("syntax error: {name} is no parameter"),
        )
    })
}

/// Text compares bytewise here, which is what the collation "C" asks for.
pub(super) fn check_collation(name: &str) -> Result<(), SqlError> {
    match name.trim_matches('"') {
        "C" | "POSIX" | "default" => Ok(()),
        _ => Err(SqlError::unsupported(format!("COLLATE {name}"))),
    }
}

/// Whether a type is `tid`, the type of `ctid`.
pub(super) fn is_tid(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("tid"))
}
