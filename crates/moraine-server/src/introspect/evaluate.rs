//! Expressions of system queries, evaluated on one joined row. Types are loose, as text is compared with names and
//! numbers with quoted numbers; what is not known is refused by name.

use std::cmp::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;
use moraine_tables::{ColumnType, CompareOp, Value};
use postgres_types::Type;
use sqlparser::ast::{BinaryOperator, CaseWhen, Expr, Query, UnaryOperator, Value as SqlValue};

use super::engine::{Engine, Outer};
use super::functions;
use crate::bind::fold;
use crate::errors::{SqlError, state};
use crate::values::literal::{Literal, Target};
use crate::values::{encode, types};

/// One column a row can be asked for.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) qualifier: String,
    pub(super) name: String,
    pub(super) wire_type: Type,
    /// Whether `*` leaves it out.
    pub(super) hidden: bool,
}

/// The columns of a joined row.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(pub(super) Vec<Field>);

impl Fields {
    /// The position of a column; 42703 and 42702 as for tables.
    pub(super) fn position(&self, qualifier: Option<&str>, name: &str) -> Result<Option<usize>, SqlError> {
        let mut found = self.0.iter().enumerate().filter(|(_, field)| {
            field.name == name && qualifier.is_none_or(|qualifier| field.qualifier == qualifier)
        });
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(SqlError::new(
                state::AMBIGUOUS_COLUMN,
                format!("column reference \"{name}\" is ambiguous"),
            )),
            (first, _) => Ok(first.map(|(position, _)| position)),
        }
    }

    /// The position of the column an expression is, if it is one of these.
    pub(super) fn column(&self, expr: &Expr) -> Result<Option<usize>, SqlError> {
        match expr {
            Expr::Identifier(ident) => self.position(None, &fold(ident)),
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                [.., qualifier, name] => self.position(Some(&fold(qualifier)), &fold(name)),
                _ => Ok(None),
            },
            Expr::Nested(inner) => self.column(inner),
            _ => Ok(None),
        }
    }
}

impl Engine<'_, '_> {
    /// The value of an expression on a row.
    pub(super) fn value<'f>(
        &'f mut self,
        expr: &'f Expr,
        row: &'f [Value],
        outer: &'f Outer<'f>,
    ) -> BoxFuture<'f, Result<Value, SqlError>> {
        self.whole_value(expr, row, outer).boxed()
    }

    async fn whole_value(
        &mut self,
        expr: &Expr,
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Value, SqlError> {
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.column_value(expr, row, outer),
            Expr::Value(value) => literal(&value.value),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.value(inner, row, outer).await,
            Expr::Cast { expr, data_type, .. } => cast(self.value(expr, row, outer).await?, data_type),
            Expr::UnaryOp { op, expr } => unary(*op, self.value(expr, row, outer).await?),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, row, outer).await,
            Expr::IsNull(inner) => Ok(Value::Bool(self.value(inner, row, outer).await?.is_null())),
            Expr::IsNotNull(inner) => Ok(Value::Bool(!self.value(inner, row, outer).await?.is_null())),
            Expr::InList { expr, list, negated } => {
                let found = self.in_list(expr, list, row, outer).await?;
                Ok(boolean(found.map(|found| found != *negated)))
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let inside = self.between(expr, low, high, row, outer).await?;
                Ok(boolean(inside.map(|inside| inside != *negated)))
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => {
                let matches = self.like(expr, pattern, row, outer).await?;
                Ok(boolean(matches.map(|matches| matches != *negated)))
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), row, outer)
                    .await
            }
            Expr::Subquery(query) => self.scalar_subquery(query, row, outer).await,
            Expr::Exists { subquery, negated } => {
                let inner = Outer {
                    fields: outer.fields,
                    row,
                    parent: Some(outer),
                };
                let result = self.query(subquery, &inner).await?;
                Ok(Value::Bool(result.rows.is_empty() == *negated))
            }
            Expr::Function(function) => {
                let mut arguments = Vec::new();
                for argument in functions::arguments(function)? {
                    arguments.push(self.value(argument, row, outer).await?);
                }
                functions::call(self, function, &arguments).await
            }
            other => Err(SqlError::unsupported(format!(
                "the expression {other} in a query of the system"
            ))),
        }
    }

    /// Whether a value is in a list; unknown when it might be.
    async fn in_list(
        &mut self,
        expr: &Expr,
        list: &[Expr],
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Option<bool>, SqlError> {
        let value = self.value(expr, row, outer).await?;
        let mut found = Some(false);
        for item in list {
            let item = self.value(item, row, outer).await?;
            match compare(&value, &item)? {
                Some(Ordering::Equal) => return Ok(Some(true)),
                Some(_) => {}
                None => found = None,
            }
        }
        Ok(found)
    }

    async fn between(
        &mut self,
        expr: &Expr,
        low: &Expr,
        high: &Expr,
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Option<bool>, SqlError> {
        let value = self.value(expr, row, outer).await?;
        let low = compare(&value, &self.value(low, row, outer).await?)?;
        let high = compare(&value, &self.value(high, row, outer).await?)?;
        let above = low.map(|low| low != Ordering::Less);
        let below = high.map(|high| high != Ordering::Greater);
        Ok(match (above, below) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    async fn like(
        &mut self,
        expr: &Expr,
        pattern: &Expr,
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Option<bool>, SqlError> {
        let value = text_of(&self.value(expr, row, outer).await?);
        let pattern = text_of(&self.value(pattern, row, outer).await?);
        Ok(value.zip(pattern).map(|(value, pattern)| like(&value, &pattern)))
    }

    async fn scalar_subquery(
        &mut self,
        query: &Query,
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Value, SqlError> {
        let inner = Outer {
            fields: outer.fields,
            row,
            parent: Some(outer),
        };
        let result = self.query(query, &inner).await?;
        if result.rows.len() > 1 {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(SqlError::new("21000", message));
        }
        let first = result
            .rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        Ok(first.unwrap_or(Value::Null))
    }

    fn column_value(&self, expr: &Expr, row: &[Value], outer: &Outer<'_>) -> Result<Value, SqlError> {
        if let Some(position) = outer.fields.column(expr)? {
            return Ok(row.get(position).cloned().unwrap_or(Value::Null));
        }
        let mut scope = outer.parent;
        while let Some(around) = scope {
            if let Some(position) = around.fields.column(expr)? {
                return Ok(around.row.get(position).cloned().unwrap_or(Value::Null));
            }
            scope = around.parent;
        }
        Err(SqlError::undefined_column(expr))
    }

    async fn binary(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Value, SqlError> {
        let left = self.value(left, row, outer).await?;
        match (op, truth(&left)) {
            (BinaryOperator::And, Some(false)) => return Ok(Value::Bool(false)),
            (BinaryOperator::Or, Some(true)) => return Ok(Value::Bool(true)),
            _ => {}
        }
        let right = self.value(right, row, outer).await?;
        let comparison = match op {
            BinaryOperator::And => {
                return Ok(match (truth(&left), truth(&right)) {
                    (_, Some(false)) => Value::Bool(false),
                    (Some(true), Some(true)) => Value::Bool(true),
                    _ => Value::Null,
                });
            }
            BinaryOperator::Or => {
                return Ok(match (truth(&left), truth(&right)) {
                    (_, Some(true)) => Value::Bool(true),
                    (Some(false), Some(false)) => Value::Bool(false),
                    _ => Value::Null,
                });
            }
            BinaryOperator::StringConcat => {
                let joined = text_of(&left)
                    .zip(text_of(&right))
                    .map(|(left, right)| left + &right);
                return Ok(joined.map_or(Value::Null, Value::text));
            }
            BinaryOperator::Eq => CompareOp::Eq,
            BinaryOperator::NotEq => CompareOp::Ne,
            BinaryOperator::Lt => CompareOp::Lt,
            BinaryOperator::LtEq => CompareOp::Le,
            BinaryOperator::Gt => CompareOp::Gt,
            BinaryOperator::GtEq => CompareOp::Ge,
            other => {
                return Err(SqlError::unsupported(format!(
                    "the operator {other} in a query of the system"
                )));
            }
        };
        Ok(boolean(compare(&left, &right)?.map(
            |ordering| match comparison {
                CompareOp::Eq => ordering == Ordering::Equal,
                CompareOp::Ne => ordering != Ordering::Equal,
                CompareOp::Lt => ordering == Ordering::Less,
                CompareOp::Le => ordering != Ordering::Greater,
                CompareOp::Gt => ordering == Ordering::Greater,
                CompareOp::Ge => ordering != Ordering::Less,
            },
        )))
    }

    async fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        row: &[Value],
        outer: &Outer<'_>,
    ) -> Result<Value, SqlError> {
        let operand = match operand {
            Some(operand) => Some(self.value(operand, row, outer).await?),
            None => None,
        };
        for when in conditions {
            let condition = self.value(&when.condition, row, outer).await?;
            let holds = match &operand {
                Some(operand) => compare(operand, &condition)? == Some(Ordering::Equal),
                None => truth(&condition) == Some(true),
            };
            if holds {
                return self.value(&when.result, row, outer).await;
            }
        }
        match otherwise {
            Some(otherwise) => self.value(otherwise, row, outer).await,
            None => Ok(Value::Null),
        }
    }
}

fn boolean(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

/// The truth of a condition's value; anything but a boolean is none.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        _ => None,
    }
}

pub(super) fn text_of(value: &Value) -> Option<String> {
    encode::text(value)
}

fn literal(value: &SqlValue) -> Result<Value, SqlError> {
    Ok(match value {
        SqlValue::Null => Value::Null,
        SqlValue::Boolean(value) => Value::Bool(*value),
        SqlValue::SingleQuotedString(text) | SqlValue::EscapedStringLiteral(text) => Value::text(text),
        SqlValue::Number(digits, _) => {
            let literal = Literal::Number(digits.clone());
            let column_type = literal.natural_type();
            literal.coerce(Target {
                column: "?column?",
                column_type,
                now: 0,
            })?
        }
        SqlValue::Placeholder(name) => {
            return Err(SqlError::new(
                state::UNDEFINED_PARAMETER,
                format!("there is no parameter {name}"),
            ));
        }
        other => {
            return Err(SqlError::unsupported(format!(
                "the literal {other} in a query of the system"
            )));
        }
    })
}

fn unary(op: UnaryOperator, value: Value) -> Result<Value, SqlError> {
    match (op, value) {
        (_, Value::Null) => Ok(Value::Null),
        (UnaryOperator::Not, Value::Bool(truth)) => Ok(Value::Bool(!truth)),
        (UnaryOperator::Minus, Value::Int32(number)) => Ok(Value::Int32(number.wrapping_neg())),
        (UnaryOperator::Minus, Value::Int64(number)) => Ok(Value::Int64(number.wrapping_neg())),
        (UnaryOperator::Minus, Value::Numeric(mut number)) => {
            number.unscaled = -number.unscaled;
            Ok(Value::Numeric(number))
        }
        (UnaryOperator::Plus, value) => Ok(value),
        (op, _) => Err(SqlError::unsupported(format!(
            "the operator {op} in a query of the system"
        ))),
    }
}

/// Casts to the types of columns; to the object-identifier types a name is left as it is.
fn cast(value: Value, data_type: &sqlparser::ast::DataType) -> Result<Value, SqlError> {
    let name = data_type.to_string().to_lowercase();
    match name.as_str() {
        "name" | "\"char\"" | "char" => return Ok(text_of(&value).map_or(Value::Null, Value::text)),
        "oid" | "xid" => {
            let target = Target {
                column: "oid",
                column_type: ColumnType::Int64,
                now: 0,
            };
            return Literal::Typed(value).coerce_explicit(target);
        }
        "regclass" | "regtype" | "regnamespace" | "regproc" => {
            return Err(SqlError::unsupported(format!("a cast to {name}")));
        }
        _ => {}
    }
    let target = Target {
        column: "?column?",
        column_type: types::from_sql(data_type)?,
        now: 0,
    };
    Literal::Typed(value).coerce_explicit(target)
}

/// Compares two values of any types: as numbers where one is a number, else as text.
pub(super) fn compare(left: &Value, right: &Value) -> Result<Option<Ordering>, SqlError> {
    if left.is_null() || right.is_null() {
        return Ok(None);
    }
    if let Some(ordering) = left.compare(right) {
        return Ok(Some(ordering));
    }
    let adapted = |value: &Value, like: &Value| {
        let column_type = Literal::Typed(like.clone()).natural_type();
        Literal::Typed(value.clone()).coerce_explicit(Target {
            column: "?column?",
            column_type,
            now: 0,
        })
    };
    match (left, right) {
        (Value::Text(_), other) => Ok(adapted(left, other)?.compare(other)),
        (other, Value::Text(_)) => Ok(other.compare(&adapted(right, other)?)),
        (Value::Numeric(_) | Value::Float32(_) | Value::Float64(_), _) => {
            Ok(left.compare(&adapted(right, left)?))
        }
        (_, Value::Numeric(_) | Value::Float32(_) | Value::Float64(_)) => {
            Ok(adapted(left, right)?.compare(right))
        }
        _ => Err(SqlError::new(
            state::UNDEFINED_FUNCTION,
            format!(
                "operator does not exist: {} = {}",
                left.type_name(),
                right.type_name()
            ),
        )),
    }
}

/// `%` is any text, `_` any character, a backslash takes the next one literally.
fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        tokens.push(match sign {
            '%' => None,
            '_' => Some(None),
            '\\' => Some(Some(signs.next().unwrap_or('\\'))),
            plain => Some(Some(plain)),
        });
    }
    // The classical two-pointer match: on a mismatch the last `%` takes one character more.
    let (mut at, mut token, mut retry) = (0usize, 0usize, None::<(usize, usize)>);
    while at < text.len() {
        match tokens.get(token) {
            Some(None) => {
                retry = Some((token + 1, at));
                token += 1;
                continue;
            }
            Some(Some(wanted)) if wanted.is_none_or(|wanted| text.get(at) == Some(&wanted)) => {
                at += 1;
                token += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = retry else {
            return false;
        };
        retry = Some((after, from + 1));
        at = from + 1;
        token = after;
    }
    tokens
        .get(token..)
        .unwrap_or_default()
        .iter()
        .all(Option::is_none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_knows_its_wildcards() {
        for (text, pattern, expected) in [
            ("rds.x", "rds%", true),
            ("ardsx", "rds%", false),
            ("abc", "a_c", true),
            ("abbc", "a_c", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("xaxbxc", "%a%b%c", true),
            ("", "%", true),
            ("", "_", false),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn numbers_and_quoted_numbers_compare() {
        assert_eq!(
            compare(&Value::Int64(2), &Value::text("10")).unwrap(),
            Some(Ordering::Less)
        );
        assert_eq!(
            compare(&Value::text("b"), &Value::text("a")).unwrap(),
            Some(Ordering::Greater)
        );
        assert_eq!(compare(&Value::Null, &Value::text("a")).unwrap(), None);
    }
}
