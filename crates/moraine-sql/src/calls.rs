//! Calls and operators whose meaning depends on the types of what they are given: rounding, dates beside intervals,
//! comparisons of intervals. Part of giving a plan Postgres's meaning.

use arrow_schema::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use moraine_tables::ColumnType;

use crate::error::QueryError;
use crate::functions::{self, Exponential};
use crate::types::SqlType;

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
        ("overlaps", [from, until, other_from, other_until]) => {
            let mut function = function;
            function.args = periods(
                std::mem::take(&mut function.args),
                &[(from, until), (other_from, other_until)],
            );
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
        (name, types) if let Some(exact) = exponential(name, &function.args, types) => {
            Ok(Transformed::yes(functions::exact(exact).call(function.args)))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
    }
}

/// Periods whose ends are moments: the second end may be how long one is.
fn periods(args: Vec<Expr>, types: &[(&DataType, &DataType)]) -> Vec<Expr> {
    let instant = |data_type: &DataType| matches!(data_type, DataType::Timestamp(..) | DataType::Date32);
    let zoned = types.iter().flat_map(|(from, until)| [from, until]);
    let zoned = zoned
        .into_iter()
        .any(|data_type| matches!(data_type, DataType::Timestamp(_, Some(_))));
    let common = if zoned {
        SqlType::Column(ColumnType::TimestampTz).arrow()
    } else {
        SqlType::Column(ColumnType::Timestamp).arrow()
    };
    let as_common = |expr: Expr, data_type: &DataType| {
        if instant(data_type) && *data_type != common {
            cast(expr, common.clone())
        } else {
            expr
        }
    };
    let mut ends = args.into_iter();
    let mut periods = Vec::with_capacity(types.len() * 2);
    for (from_type, until_type) in types {
        let (Some(from), Some(until)) = (ends.next(), ends.next()) else {
            break;
        };
        let from = as_common(from, from_type);
        let until = if matches!(until_type, DataType::Interval(_)) {
            from.clone() + until
        } else {
            as_common(until, until_type)
        };
        periods.extend([from, until]);
    }
    periods
}

/// The function that is exact for exact numbers; of others it is one of doubles.
fn exponential(name: &str, arguments: &[Expr], types: &[DataType]) -> Option<Exponential> {
    if !types.iter().any(is_decimal) || types.iter().any(DataType::is_floating) {
        return None;
    }
    Some(match name {
        "sqrt" => Exponential::SquareRoot,
        "exp" => Exponential::PowerOfE,
        "ln" => Exponential::NaturalLogarithm,
        "log" | "log10" if arguments.len() == 1 => Exponential::DecimalLogarithm,
        "log" => Exponential::Logarithm,
        "power" | "pow" => Exponential::Power {
            whole: is_whole(arguments.last()?, types.last()?),
        },
        _ => return None,
    })
}

/// Whether a number has no digits after its point.
fn is_whole(number: &Expr, data_type: &DataType) -> bool {
    match (number, data_type) {
        (Expr::Literal(ScalarValue::Decimal128(Some(unscaled), _, scale), _), _) => u32::try_from(*scale)
            .ok()
            .and_then(|scale| 10_i128.checked_pow(scale))
            .is_some_and(|one| unscaled % one == 0),
        (_, DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) => *scale == 0,
        (_, other) => other.is_integer(),
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
    if matches!(
        binary.op,
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
    ) {
        ordered(&binary.left, schema)?;
        ordered(&binary.right, schema)?;
    }
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
        Operator::BitwiseXor
            if let Some(exact) = exponential("power", &[(*b).clone()], &[left.clone(), right.clone()]) =>
        {
            return Ok(Transformed::yes(functions::exact(exact).call(vec![*a, *b])));
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

/// Refuses what has no order.
fn ordered(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let (_, field) = expr.to_field(schema)?;
    let sql_type = SqlType::of_field(&field).unwrap_or(SqlType::Column(ColumnType::Text));
    functions::refuse_order(sql_type).map_err(QueryError::wrapped)
}

/// What rows are sorted by: intervals by how long they are.
pub(crate) fn sorted_by(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    ordered(&expr, schema)?;
    if matches!(expr.get_type(schema)?, DataType::Interval(_)) {
        return Ok(functions::interval_length().call(vec![expr]));
    }
    Ok(expr)
}
