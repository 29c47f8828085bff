//! WHERE of one source: split into conjuncts, each bound to what evaluates it best.

use moraine_tables::{ColumnType, CompareOp, Numeric, Value};
use sqlparser::ast::{BinaryOperator, Expr, Query, UnaryOperator};

use super::condition::{Condition, flipped};
use super::expr::{check_collation, is_tid};
use super::scope::{Reference, Scope};
use super::{Binder, OutputKind, RowFilter, ScalarComparison};
use crate::errors::{SqlError, state};
use crate::tid;
use crate::values::literal::{Literal, Target, number_type};
use crate::values::types::{sql_name, wire_type};

/// The conjuncts of a condition, parentheses removed.
pub(super) fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    let mut found = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match expr {
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                open.push(right);
                open.push(left);
            }
            Expr::Nested(inner) => open.push(inner),
            other => found.push(other),
        }
    }
    found
}

/// The comparison an operator stands for.
pub(super) fn comparison(op: &BinaryOperator) -> Option<CompareOp> {
    Some(match op {
        BinaryOperator::Eq => CompareOp::Eq,
        BinaryOperator::NotEq => CompareOp::Ne,
        BinaryOperator::Lt => CompareOp::Lt,
        BinaryOperator::LtEq => CompareOp::Le,
        BinaryOperator::Gt => CompareOp::Gt,
        BinaryOperator::GtEq => CompareOp::Ge,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds a WHERE against one source.
    pub(super) async fn row_filter(
        &mut self,
        selection: Option<&Expr>,
        scope: &Scope,
    ) -> Result<RowFilter, SqlError> {
        let mut filter = RowFilter::default();
        for expr in selection.map(conjuncts).unwrap_or_default() {
            self.add_conjunct(expr, scope, &mut filter).await?;
        }
        Ok(filter)
    }

    /// Binds one conjunct of a WHERE.
    pub(super) async fn add_conjunct(
        &mut self,
        expr: &Expr,
        scope: &Scope,
        filter: &mut RowFilter,
    ) -> Result<(), SqlError> {
        if let Some(ctids) = self.ctids(expr, scope)? {
            filter.ctids = Some(match filter.ctids.take() {
                Some(earlier) => earlier.into_iter().filter(|tid| ctids.contains(tid)).collect(),
                None => ctids,
            });
            return Ok(());
        }
        if let Some((column, op, query)) = scalar_subquery(expr, scope)? {
            let select = self.query(query).await?;
            if select.outputs.len() != 1 {
                return Err(SqlError::new(
                    state::SYNTAX_ERROR,
                    "subquery must return only one column",
                ));
            }
            filter.scalars.push(ScalarComparison {
                column,
                op,
                select: Box::new(select),
            });
            return Ok(());
        }
        let mut open = vec![self.condition(expr, scope)?];
        while let Some(condition) = open.pop() {
            match condition {
                Condition::All(parts) => open.extend(parts.into_iter().rev()),
                other => match other.into_comparison() {
                    Ok(comparison) => filter.pushed.push(comparison),
                    Err(condition) => filter.residual.push(condition),
                },
            }
        }
        Ok(())
    }

    /// Binds a condition on one row.
    pub(super) fn condition(&self, expr: &Expr, scope: &Scope) -> Result<Condition, SqlError> {
        Ok(match expr {
            Expr::Nested(inner) => self.condition(inner, scope)?,
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => Condition::All(vec![self.condition(left, scope)?, self.condition(right, scope)?]),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Or,
                right,
            } => Condition::Any(vec![self.condition(left, scope)?, self.condition(right, scope)?]),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => Condition::Not(Box::new(self.condition(expr, scope)?)),
            Expr::BinaryOp { left, op, right } => {
                let op = comparison(op).ok_or_else(|| SqlError::unsupported(format!("the operator {op}")))?;
                self.binary(left, op, right, scope)?
            }
            Expr::IsNull(inner) => Condition::IsNull(column_of(inner, scope)?),
            Expr::IsNotNull(inner) => Condition::IsNotNull(column_of(inner, scope)?),
            Expr::InList { expr, list, negated } => {
                negate(*negated, self.in_list(column_of(expr, scope)?, list, scope)?)
            }
            Expr::AnyOp {
                left,
                compare_op: BinaryOperator::Eq,
                right,
                ..
            } => self.any_of(left, right, scope)?,
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let column = column_of(expr, scope)?;
                let low = self.against(column, CompareOp::Ge, &self.literal(low)?, scope)?;
                let high = self.against(column, CompareOp::Le, &self.literal(high)?, scope)?;
                negate(*negated, Condition::All(vec![low, high]))
            }
            Expr::Value(_) | Expr::Cast { .. } if self.constant(expr)?.is_some() => {
                match self.coerce(&self.literal(expr)?, "where", ColumnType::Bool)? {
                    Value::Bool(truth) => Condition::Constant(Some(truth)),
                    _ => Condition::Constant(None),
                }
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let column = column_of(expr, scope)?;
                if scope.type_of(column) != Some(ColumnType::Bool) {
                    let message = "argument of WHERE must be type boolean";
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, message));
                }
                Condition::Compare {
                    column,
                    op: CompareOp::Eq,
                    value: Value::Bool(true),
                }
            }
            other => {
                return Err(SqlError::unsupported(format!(
                    "the condition {}",
                    construct(other)
                )));
            }
        })
    }

    fn binary(&self, left: &Expr, op: CompareOp, right: &Expr, scope: &Scope) -> Result<Condition, SqlError> {
        if let Some(literal) = self.constant(right)? {
            if let Some(constant) = self.constant(left)? {
                return self.constants(&constant, op, &literal);
            }
            return self.against(column_of(left, scope)?, op, &literal, scope);
        }
        if let Some(literal) = self.constant(left)? {
            return self.against(column_of(right, scope)?, flipped(op), &literal, scope);
        }
        let (left, right) = (column_of(left, scope)?, column_of(right, scope)?);
        Ok(Condition::Columns { left, op, right })
    }

    /// Two constants: `1 = 1`, `'a' = 'a'`.
    fn constants(&self, left: &Literal, op: CompareOp, right: &Literal) -> Result<Condition, SqlError> {
        let column_type = match (left.natural_type(), right.natural_type()) {
            (ColumnType::Text, other) => other,
            (ColumnType::Int32 | ColumnType::Int64, wider @ ColumnType::Numeric { .. }) => wider,
            (ColumnType::Int32, ColumnType::Int64) => ColumnType::Int64,
            (own, _) => own,
        };
        let left = self.coerce(left, "?column?", column_type)?;
        let right = self.coerce(right, "?column?", column_type)?;
        Ok(Condition::Constant(super::condition::compare(&left, op, &right)))
    }

    fn in_list(&self, column: usize, list: &[Expr], scope: &Scope) -> Result<Condition, SqlError> {
        let mut values = Vec::with_capacity(list.len());
        let mut others = Vec::new();
        for item in list {
            match self.against(column, CompareOp::Eq, &self.literal(item)?, scope)? {
                Condition::Compare {
                    op: CompareOp::Eq,
                    value,
                    ..
                } => values.push(value),
                other => others.push(other),
            }
        }
        if others.is_empty() {
            return Ok(Condition::In { column, values });
        }
        others.push(Condition::In { column, values });
        Ok(Condition::Any(others))
    }

    /// `column = ANY($1)`.
    fn any_of(&self, left: &Expr, right: &Expr, scope: &Scope) -> Result<Condition, SqlError> {
        let Some(index) = self.array_parameter(right)? else {
            return Err(SqlError::unsupported("= ANY of anything but a parameter here"));
        };
        let column = column_of(left, scope)?;
        let target = Target {
            column: scope.name_of(column),
            column_type: scope.type_of(column).unwrap_or(ColumnType::Text),
            now: self.now,
        };
        Ok(match self.parameters.array(index, target)? {
            Some(values) => Condition::In { column, values },
            None => Condition::Constant(None),
        })
    }

    fn literal(&self, expr: &Expr) -> Result<Literal, SqlError> {
        self.constant(expr)?
            .ok_or_else(|| SqlError::unsupported(format!("a comparison with {}", construct(expr))))
    }

    /// A column against a literal, exactly: a literal beyond or between the column's values is not rounded.
    fn against(
        &self,
        column: usize,
        op: CompareOp,
        literal: &Literal,
        scope: &Scope,
    ) -> Result<Condition, SqlError> {
        let column_type = scope.type_of(column).unwrap_or(ColumnType::Text);
        let name = scope.name_of(column);
        let integer = matches!(
            column_type,
            ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64
        );
        if let Literal::Parameter(index, parameters) = literal {
            parameters.learn(*index, wire_type(column_type));
        }
        // A number that came with a type is compared by its digits like one that stands in the statement.
        let digits = number_digits(literal, column_type);
        match digits.as_ref().unwrap_or(literal) {
            Literal::Typed(value) if column_type == ColumnType::Text => {
                Err(no_operator(column_type, value.type_name()))
            }
            Literal::Number(digits) if integer => integer_against(column, op, digits, name),
            Literal::Number(digits) if column_type == ColumnType::Float32 => {
                Ok(real_against(column, op, digits.parse().unwrap_or(f64::NAN)))
            }
            Literal::Typed(Value::Float64(number)) if column_type == ColumnType::Float32 => {
                Ok(real_against(column, op, *number))
            }
            Literal::Typed(Value::Numeric(number)) if column_type == ColumnType::Float32 => {
                let number = number.to_string().parse().unwrap_or(f64::NAN);
                Ok(real_against(column, op, number))
            }
            Literal::Number(digits) | Literal::Quoted(digits)
                if matches!(column_type, ColumnType::Numeric { .. })
                    && Numeric::parse(digits.trim()).is_some() =>
            {
                let value = Numeric::parse(digits.trim()).map_or(Value::Null, Value::Numeric);
                Ok(Condition::Compare { column, op, value })
            }
            Literal::Number(digits) if column_type == ColumnType::Text => {
                Err(no_operator(column_type, number_type(digits)))
            }
            Literal::Bool(_) if column_type != ColumnType::Bool => Err(no_operator(column_type, "boolean")),
            literal => {
                let target = if integer { ColumnType::Int64 } else { column_type };
                let value = self.coerce(literal, name, target)?;
                Ok(Condition::Compare { column, op, value })
            }
        }
    }

    /// The addresses of `ctid = x`, `x = ctid` and `ctid IN (x, …)`; `None` for any other condition.
    fn ctids(&self, expr: &Expr, scope: &Scope) -> Result<Option<Vec<u64>>, SqlError> {
        let is_ctid = |expr: &Expr| -> Result<bool, SqlError> {
            let Some(reference) = Reference::of(expr) else {
                return Ok(false);
            };
            Ok(scope.find(&reference)? == Some(&OutputKind::Ctid))
        };
        match expr {
            Expr::InList {
                expr,
                list,
                negated: false,
            } if is_ctid(expr)? => list
                .iter()
                .map(|item| self.tid(item))
                .collect::<Result<_, _>>()
                .map(Some),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } if is_ctid(left)? => Ok(Some(vec![self.tid(right)?])),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } if is_ctid(right)? => Ok(Some(vec![self.tid(left)?])),
            _ => Ok(None),
        }
    }

    fn tid(&self, expr: &Expr) -> Result<u64, SqlError> {
        let inner = match expr {
            Expr::Cast { expr, data_type, .. } if is_tid(data_type) => expr,
            other => other,
        };
        match self.constant(inner)? {
            Some(Literal::Quoted(text)) => tid::parse(&text),
            _ => Err(SqlError::unsupported(format!(
                "ctid compared with {}",
                construct(expr)
            ))),
        }
    }
}

/// The digits of a typed number that meets a column of exact numbers.
fn number_digits(literal: &Literal, column_type: ColumnType) -> Option<Literal> {
    let whole = matches!(
        column_type,
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64
    );
    if !whole && !matches!(column_type, ColumnType::Numeric { .. }) {
        return None;
    }
    let Literal::Typed(value) = literal else {
        return None;
    };
    Some(Literal::Number(match value {
        Value::Float64(number) if number.is_finite() => number.to_string(),
        Value::Float32(number) if number.is_finite() => number.to_string(),
        Value::Numeric(number) => number.to_string(),
        Value::Int16(number) if !whole => number.to_string(),
        Value::Int32(number) if !whole => number.to_string(),
        Value::Int64(number) if !whole => number.to_string(),
        _ => return None,
    }))
}

fn negate(negated: bool, condition: Condition) -> Condition {
    if negated {
        Condition::Not(Box::new(condition))
    } else {
        condition
    }
}

fn no_operator(column_type: ColumnType, found: &str) -> SqlError {
    let message = format!("operator does not exist: {} = {found}", sql_name(column_type));
    SqlError::new(state::UNDEFINED_FUNCTION, message).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// A column of REAL against a number that is not one: both are compared as doubles, so few numbers equal any of its values.
fn real_against(column: usize, op: CompareOp, number: f64) -> Condition {
    // The nearest value that the column may have; text rounds as Postgres does.
    let nearest = number.to_string().parse().unwrap_or(f32::NAN);
    let compare = |op, value| Condition::Compare {
        column,
        op,
        value: Value::Float32(value),
    };
    let beyond = f64::from(nearest) > number;
    match op {
        op if f64::from(nearest) == number || number.is_nan() => compare(op, nearest),
        // Nothing is greater than NaN, in Postgres's order.
        CompareOp::Eq => compare(CompareOp::Gt, f32::NAN),
        CompareOp::Ne => compare(CompareOp::Le, f32::NAN),
        CompareOp::Lt | CompareOp::Le if beyond => compare(CompareOp::Lt, nearest),
        CompareOp::Lt | CompareOp::Le => compare(CompareOp::Le, nearest),
        CompareOp::Gt | CompareOp::Ge if beyond => compare(CompareOp::Ge, nearest),
        CompareOp::Gt | CompareOp::Ge => compare(CompareOp::Gt, nearest),
    }
}

/// An integer column against digits of any size or fraction.
fn integer_against(column: usize, op: CompareOp, digits: &str, name: &str) -> Result<Condition, SqlError> {
    let invalid = || {
        SqlError::new(
            state::NUMERIC_OUT_OF_RANGE,
            format!("value \"{digits}\" is out of range for a comparison with column \"{name}\""),
        )
    };
    let floor = crate::values::numeric::floor(digits).ok_or_else(invalid)?;
    // Comparisons that hold for every number, or for none; NULL stays unknown in both.
    let always = Condition::Compare {
        column,
        op: CompareOp::Le,
        value: Value::Int64(i64::MAX),
    };
    let never = Condition::Compare {
        column,
        op: CompareOp::Gt,
        value: Value::Int64(i64::MAX),
    };
    let Ok(whole) = i64::try_from(floor.whole) else {
        let above = floor.whole > 0;
        return Ok(match op {
            CompareOp::Ne => always,
            CompareOp::Lt | CompareOp::Le if above => always,
            CompareOp::Gt | CompareOp::Ge if !above => always,
            _ => never,
        });
    };
    let value = Value::Int64(whole);
    Ok(match (floor.exact, op) {
        (true, op) => Condition::Compare { column, op, value },
        (false, CompareOp::Eq) => never,
        (false, CompareOp::Ne) => always,
        (false, CompareOp::Lt | CompareOp::Le) => Condition::Compare {
            column,
            op: CompareOp::Le,
            value,
        },
        (false, CompareOp::Gt | CompareOp::Ge) => Condition::Compare {
            column,
            op: CompareOp::Gt,
            value,
        },
    })
}

/// The source column an expression names; COLLATE "C" is how text compares anyway.
pub(super) fn column_of(expr: &Expr, scope: &Scope) -> Result<usize, SqlError> {
    if let Expr::Collate { expr, collation } = expr {
        check_collation(&collation.to_string())?;
        return column_of(expr, scope);
    }
    let Some(reference) = Reference::of(expr) else {
        return Err(SqlError::unsupported(format!(
            "a condition on {}",
            construct(expr)
        )));
    };
    match scope.resolve(&reference)? {
        OutputKind::Column(column) => Ok(*column),
        OutputKind::Ctid => Err(SqlError::unsupported("this condition on ctid")),
        _ => Err(SqlError::unsupported(format!(
            "a condition on the computed column {}",
            reference.column
        ))),
    }
}

/// `column op (SELECT …)` with the subquery on either side.
fn scalar_subquery<'e>(
    expr: &'e Expr,
    scope: &Scope,
) -> Result<Option<(usize, CompareOp, &'e Query)>, SqlError> {
    let Expr::BinaryOp { left, op, right } = expr else {
        return Ok(None);
    };
    let Some(op) = comparison(op) else {
        return Ok(None);
    };
    match (left.as_ref(), right.as_ref()) {
        (column, Expr::Subquery(query)) => Ok(Some((column_of(column, scope)?, op, query))),
        (Expr::Subquery(query), column) => Ok(Some((column_of(column, scope)?, flipped(op), query))),
        _ => Ok(None),
    }
}

/// What an expression is, for a refusal: a function by its name, anything else as written.
pub(super) fn construct(expr: &Expr) -> String {
    match expr {
        Expr::Function(function) if function.over.is_some() => format!("window function {}", function.name),
        Expr::Function(function) => format!("function {}", function.name),
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => "a subquery here".to_owned(),
        Expr::Case { .. } => "CASE".to_owned(),
        Expr::Like { .. } => "LIKE".to_owned(),
        Expr::ILike { .. } => "ILIKE".to_owned(),
        other => {
            const QUOTED_CHARS_MAX: usize = 80;
            let text = other.to_string();
            text.chars().take(QUOTED_CHARS_MAX).collect()
        }
    }
}
