//! Which of a plan's conditions the tables can evaluate themselves, and what they are called there.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator};
use datafusion::physical_expr::PhysicalExpr;
use moraine_tables::{ColumnType, CompareOp, Comparison, Value};

use crate::dependent::is_of_run;
use crate::error::QueryError;
use crate::relations::SqlColumn;
use crate::types::SqlType;
use crate::values;

/// The comparison a condition is, if the tables have it. It holds for exactly the same rows.
pub(crate) fn comparison(expr: &Expr, columns: &[SqlColumn]) -> Option<Comparison> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => match (left.as_ref(), right.as_ref()) {
            // Of two conditions of which one never holds, the other decides.
            (never, other) | (other, never) if holds_never(never) => comparison(other, columns),
            (left, right) => either(comparison(left, columns)?, comparison(right, columns)?),
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let op = operator(*op)?;
            match (left.as_ref(), right.as_ref()) {
                (Expr::Column(_), Expr::Literal(literal, _)) => compare(left, op, literal, columns),
                (Expr::Literal(literal, _), Expr::Column(_)) => compare(right, flipped(op), literal, columns),
                _ => None,
            }
        }
        Expr::IsNull(inner) => Some(Comparison::IsNull {
            column: column(inner, columns)?,
        }),
        Expr::IsNotNull(inner) => Some(Comparison::IsNotNull {
            column: column(inner, columns)?,
        }),
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let column = column(expr, columns)?;
            let values = list.iter().map(|item| match item {
                Expr::Literal(literal, _) => value(literal, columns.get(column)?),
                _ => None,
            });
            Some(Comparison::In {
                column,
                values: values.collect::<Option<Vec<_>>>()?,
            })
        }
        never if holds_never(never) && !columns.is_empty() => Some(Comparison::In {
            column: 0,
            values: Vec::new(),
        }),
        // A truth value by itself.
        Expr::Column(_) => boolean(expr, true, columns),
        Expr::Not(inner) => boolean(inner, false, columns),
        _ => None,
    }
}

/// Whether a condition is false or NULL whatever the row.
fn holds_never(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Literal(ScalarValue::Boolean(Some(false) | None) | ScalarValue::Null, _)
    )
}

/// `c = 1 OR c = 2` is a list: DataFusion writes short lists that way.
fn either(left: Comparison, right: Comparison) -> Option<Comparison> {
    let (column, mut values) = listed(left)?;
    let (other, more) = listed(right)?;
    values.extend(more);
    (column == other).then_some(Comparison::In { column, values })
}

fn listed(comparison: Comparison) -> Option<(usize, Vec<Value>)> {
    match comparison {
        Comparison::Compare {
            column,
            op: CompareOp::Eq,
            value,
        } => Some((column, vec![value])),
        Comparison::In { column, values } => Some((column, values)),
        _ => None,
    }
}

fn operator(op: Operator) -> Option<CompareOp> {
    Some(match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::Ne,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::Le,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::Ge,
        _ => return None,
    })
}

fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

fn column(expr: &Expr, columns: &[SqlColumn]) -> Option<usize> {
    let Expr::Column(named) = expr else {
        return None;
    };
    columns.iter().position(|column| column.name == named.name)
}

fn compare(left: &Expr, op: CompareOp, literal: &ScalarValue, columns: &[SqlColumn]) -> Option<Comparison> {
    let column = column(left, columns)?;
    let value = value(literal, columns.get(column)?)?;
    Some(Comparison::Compare { column, op, value })
}

fn boolean(expr: &Expr, wanted: bool, columns: &[SqlColumn]) -> Option<Comparison> {
    let column = column(expr, columns)?;
    if columns.get(column)?.sql_type != SqlType::Column(ColumnType::Bool) {
        return None;
    }
    Some(Comparison::Compare {
        column,
        op: CompareOp::Eq,
        value: Value::Bool(wanted),
    })
}

/// The literal as a value of the column's type; `None` when it is of another.
fn value(literal: &ScalarValue, column: &SqlColumn) -> Option<Value> {
    let value = values::of_scalar(literal).ok()?;
    value.has_type(column.sql_type.column_type()).then_some(value)
}

/// A comparison of a column with a value that each run of the plan has anew.
#[derive(Clone, Debug)]
pub(crate) struct RunComparison {
    column: usize,
    op: CompareOp,
    value: Arc<dyn PhysicalExpr>,
    sql_type: SqlType,
}

impl RunComparison {
    /// The comparison of this run.
    pub(crate) fn of_run(&self, no_rows: &RecordBatch) -> Result<Comparison> {
        let value = match self.value.evaluate(no_rows)? {
            ColumnarValue::Scalar(scalar) => scalar,
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0)?,
        };
        let value = values::of_scalar(&value).map_err(QueryError::wrapped)?;
        if !value.has_type(self.sql_type.column_type()) {
            let detail = format!(
                "{} beside a column of {}",
                value.type_name(),
                self.sql_type.sql_name()
            );
            return Err(QueryError::Internal { detail }.wrapped());
        }
        Ok(Comparison::Compare {
            column: self.column,
            op: self.op,
            value,
        })
    }
}

/// The parts of a condition that is a comparison with a value of the run: only for columns whose type has one form.
fn parts_of_run<'a>(expr: &'a Expr, columns: &[SqlColumn]) -> Option<(usize, CompareOp, &'a Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return None;
    };
    let op = operator(*op)?;
    let (column, op, value) = match (column(left, columns), column(right, columns)) {
        (Some(column), None) => (column, op, right.as_ref()),
        (None, Some(column)) => (column, flipped(op), left.as_ref()),
        _ => return None,
    };
    let sql_type = columns.get(column)?.sql_type;
    let one_form = matches!(
        sql_type,
        SqlType::Column(
            ColumnType::Bool
                | ColumnType::Int16
                | ColumnType::Int32
                | ColumnType::Int64
                | ColumnType::Text
                | ColumnType::Bytes
                | ColumnType::Uuid
                | ColumnType::Date
                | ColumnType::Timestamp
                | ColumnType::TimestampTz
        )
    );
    let same_type = value.get_type(&DFSchema::empty()).ok()? == sql_type.arrow();
    (one_form && same_type && is_of_run(value)).then_some((column, op, value))
}

/// Whether a condition is a comparison with a value that each run of the plan has anew.
pub(crate) fn is_run_comparison(expr: &Expr, columns: &[SqlColumn]) -> bool {
    parts_of_run(expr, columns).is_some()
}

/// The same as what is evaluated for each run.
pub(crate) fn run_comparison(
    expr: &Expr,
    columns: &[SqlColumn],
    session: &dyn Session,
) -> Result<Option<RunComparison>> {
    let Some((column, op, value)) = parts_of_run(expr, columns) else {
        return Ok(None);
    };
    let Some(sql_type) = columns.get(column).map(|column| column.sql_type) else {
        return Ok(None);
    };
    let value = session.create_physical_expr(value.clone(), &DFSchema::empty())?;
    Ok(Some(RunComparison {
        column,
        op,
        value,
        sql_type,
    }))
}
