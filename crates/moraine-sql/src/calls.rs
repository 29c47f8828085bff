//! Calls and operators whose meaning depends on the types of what they are given: rounding, dates beside intervals,
//! comparisons of intervals. Part of giving a plan Postgres's meaning.

use arrow_schema::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use moraine_tables::ColumnType;

use crate::error::QueryError;
use crate::functions;
use crate::types::SqlType;

/// Functions that are exact for exact numbers in Postgres and not here.
const INEXACT: &[&str] = &["exp", "ln", "log", "log10", "power", "sqrt"];

/// A call with Postgres's meaning.
pub(crate) fn call(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = function.func.name().to_owned();
    let types = function
        .args
        .iter()
        .map(|argument| argument.get_type(schema))
        .collect::<Result<Vec<_>>>();
    // The arguments of a lambda have no types of their own.
    let Ok(types) = types else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    match (name.as_str(), types.as_slice()) {
        ("timezone", [_, DataType::Timestamp(_, None)]) => {
            let zoned = functions::timezone(ColumnType::TimestampTz);
            Ok(Transformed::yes(zoned.call(function.args)))
        }
        ("date_trunc", [_, DataType::Date32]) => {
            let mut function = function;
            if let Some(date) = function.args.get_mut(1) {
                *date = cast(
                    std::mem::take(date),
                    SqlType::Column(ColumnType::TimestampTz).arrow(),
                );
            }
            Ok(Transformed::yes(Expr::ScalarFunction(function)))
        }
        ("concat" | "concat_ws", _) => {
            let mut function = function;
            for (argument, data_type) in function.args.iter_mut().zip(&types) {
                if written_otherwise(data_type) {
                    *argument = functions::output_text().call(vec![std::mem::take(argument)]);
                }
            }
            Ok(Transformed::yes(Expr::ScalarFunction(function)))
        }
        ("round", [float]) if float.is_floating() => {
            Ok(Transformed::yes(functions::round_even().call(function.args)))
        }
        ("ceil" | "floor" | "trunc" | "round", [number]) if is_decimal(number) => {
            let rounded = Expr::ScalarFunction(function);
            Ok(Transformed::yes(cast(rounded, DataType::Decimal128(38, 0))))
        }
        ("trunc", [number, _]) if is_decimal(number) => {
            let scale = function.args.get(1).and_then(places).unwrap_or(0).clamp(0, 38);
            let rounded = Expr::ScalarFunction(function);
            Ok(Transformed::yes(cast(rounded, DataType::Decimal128(38, scale))))
        }
        (inexact, types) if INEXACT.contains(&inexact) && types.iter().any(is_decimal) => {
            let construct = format!("{inexact} of numeric (of double precision it is)");
            Err(QueryError::unsupported(construct).wrapped())
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
    }
}

/// Whether Arrow writes values of the type in another way than Postgres.
fn written_otherwise(data_type: &DataType) -> bool {
    let text = matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    !text && !data_type.is_integer() && !data_type.is_null()
}

fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
}

fn places(expr: &Expr) -> Option<i8> {
    match expr {
        Expr::Literal(ScalarValue::Int32(Some(places)), _) => i8::try_from(*places).ok(),
        Expr::Literal(ScalarValue::Int64(Some(places)), _) => i8::try_from(*places).ok(),
        _ => None,
    }
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type))
}

/// An operator with Postgres's meaning.
pub(crate) fn operator(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (left, right) = (binary.left.get_type(schema)?, binary.right.get_type(schema)?);
    if let Some(function) = functions::checked(binary.op, &left, &right) {
        return Ok(Transformed::yes(function.call(vec![*binary.left, *binary.right])));
    }
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let BinaryExpr {
        left: a,
        op,
        right: b,
    } = binary;
    let span = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
    let (a, b) = match op {
        Operator::Plus | Operator::Minus if left == DataType::Date32 && span(&right) => {
            (cast(*a, timestamp), *b)
        }
        Operator::Plus if span(&left) && right == DataType::Date32 => (*a, cast(*b, timestamp)),
        op if compares(op) && (real_and_decimal(&left, &right) || real_and_decimal(&right, &left)) => {
            (cast(*a, DataType::Float64), cast(*b, DataType::Float64))
        }
        op if compares(op) && span(&left) && span(&right) => {
            let length = functions::interval_length;
            (length().call(vec![*a]), length().call(vec![*b]))
        }
        Operator::StringConcat if written_otherwise(&left) && is_text(&right) => {
            (functions::text_of().call(vec![*a]), *b)
        }
        Operator::StringConcat if is_text(&left) && written_otherwise(&right) => {
            (*a, functions::text_of().call(vec![*b]))
        }
        Operator::BitwiseXor if is_decimal(&left) || is_decimal(&right) => {
            return Err(QueryError::unsupported("^ of numeric (of double precision it is)").wrapped());
        }
        _ => {
            return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr {
                left: a,
                op,
                right: b,
            })));
        }
    };
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr {
        left: Box::new(a),
        op,
        right: Box::new(b),
    })))
}

/// Postgres compares such as doubles.
fn real_and_decimal(real: &DataType, decimal: &DataType) -> bool {
    *real == DataType::Float32 && is_decimal(decimal)
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn compares(op: Operator) -> bool {
    op.supports_propagation()
        || matches!(
            op,
            Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
        )
}

/// What rows are sorted by: intervals by how long they are.
pub(crate) fn sorted_by(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if matches!(expr.get_type(schema)?, DataType::Interval(_)) {
        return Ok(functions::interval_length().call(vec![expr]));
    }
    Ok(expr)
}
