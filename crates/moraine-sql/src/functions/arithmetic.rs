//! Arithmetic as Postgres does it: what does not fit is an error, division by zero is one, and quotients of exact numbers
//! are exact to as many digits as Postgres shows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Date32Array, Decimal256Array, Float32Array, Float64Array, Int32Array};
use arrow_buffer::i256;
use arrow_schema::DataType;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::evaluation::Evaluation;
use crate::error::QueryError;
use crate::quotient;
use crate::types::{NUMERIC_PRECISION, NUMERIC_SCALE};

/// An operation on two numbers, or on dates and days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Integers(Operator),
    Floats(Operator),
    Quotient,
    DaysLater,
    DaysEarlier,
    DaysBetween,
}

/// The function an operator is on operands of these types, where Postgres's meaning is not DataFusion's.
pub(crate) fn checked(op: Operator, left: &DataType, right: &DataType) -> Option<Arc<ScalarUDF>> {
    let operation = match (op, left, right) {
        (Operator::Plus, DataType::Date32, days) if days.is_integer() => Operation::DaysLater,
        (Operator::Minus, DataType::Date32, days) if days.is_integer() => Operation::DaysEarlier,
        (Operator::Minus, DataType::Date32, DataType::Date32) => Operation::DaysBetween,
        (
            Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo,
            left,
            right,
        ) if left.is_integer() && right.is_integer() => Operation::Integers(op),
        (Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide, left, right)
            if left.is_numeric() && right.is_numeric() && (left.is_floating() || right.is_floating()) =>
        {
            Operation::Floats(op)
        }
        (Operator::Divide, left, right) if left.is_numeric() && right.is_numeric() => Operation::Quotient,
        _ => return None,
    };
    Some(function(operation))
}

/// `avg` from a sum and a count: NULL over no rows.
pub(crate) fn average() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Arithmetic {
        name: "avg_of".to_owned(),
        operation: Operation::Quotient,
        signature: Signature::any(2, Volatility::Immutable),
    }))
}

fn function(operation: Operation) -> Arc<ScalarUDF> {
    let name = match operation {
        Operation::Integers(op) | Operation::Floats(op) => format!("{op}"),
        Operation::Quotient => "/".to_owned(),
        Operation::DaysLater => "days_later".to_owned(),
        Operation::DaysEarlier => "days_earlier".to_owned(),
        Operation::DaysBetween => "days_between".to_owned(),
    };
    Arc::new(ScalarUDF::new_from_impl(Arithmetic {
        name,
        operation,
        signature: Signature::any(2, Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    name: String,
    operation: Operation,
    signature: Signature,
}

/// The integer type both operands fit into. Unsigned ones come from counts and are never that large.
fn common_integer(left: &DataType, right: &DataType) -> DataType {
    let width = |data_type: &DataType| match data_type {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => 2,
        DataType::Int32 | DataType::UInt16 => 4,
        _ => 8,
    };
    match width(left).max(width(right)) {
        2 => DataType::Int16,
        4 => DataType::Int32,
        _ => DataType::Int64,
    }
}

fn common_float(left: &DataType, right: &DataType) -> DataType {
    let single = |data_type: &DataType| matches!(data_type, DataType::Float32 | DataType::Float16);
    if single(left) && single(right) {
        DataType::Float32
    } else {
        DataType::Float64
    }
}

impl Arithmetic {
    fn operands(&self, arguments: &[DataType]) -> Result<(DataType, DataType)> {
        let [left, right] = arguments else {
            let detail = "arithmetic without two operands".to_owned();
            return Err(QueryError::Internal { detail }.wrapped());
        };
        Ok(match self.operation {
            Operation::Integers(_) => {
                let common = common_integer(left, right);
                (common.clone(), common)
            }
            Operation::Floats(_) => {
                let common = common_float(left, right);
                (common.clone(), common)
            }
            Operation::Quotient if left.is_floating() || right.is_floating() => {
                (DataType::Float64, DataType::Float64)
            }
            Operation::Quotient => (exact(left), exact(right)),
            Operation::DaysLater | Operation::DaysEarlier => (DataType::Date32, DataType::Int64),
            Operation::DaysBetween => (DataType::Date32, DataType::Date32),
        })
    }
}

/// The exact type of an operand of a division.
fn exact(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal128(..) | DataType::Decimal256(..) => data_type.clone(),
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => DataType::Decimal128(38, *scale),
        _ => DataType::Decimal128(20, 0),
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let (left, _) = self.operands(arguments)?;
        Ok(match self.operation {
            Operation::Integers(_) | Operation::Floats(_) => left,
            Operation::Quotient if left.is_floating() => DataType::Float64,
            Operation::Quotient => DataType::Decimal256(NUMERIC_PRECISION, NUMERIC_SCALE),
            Operation::DaysLater | Operation::DaysEarlier => DataType::Date32,
            Operation::DaysBetween => DataType::Int32,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let (left_type, right_type) = self.operands(&types)?;
        let evaluation = Evaluation::of(&args);
        let rows = evaluation.rows;
        let mut operands = args
            .args
            .iter()
            .zip([left_type, right_type])
            .map(|(argument, data_type)| argument.cast_to(&data_type, None)?.into_array(rows));
        let (Some(left), Some(right)) = (operands.next(), operands.next()) else {
            let detail = "arithmetic without two operands".to_owned();
            return Err(QueryError::Internal { detail }.wrapped());
        };
        let (left, right): (Result<ArrayRef>, Result<ArrayRef>) = (left, right);
        let result = self.operated(&left?, &right?)?;
        evaluation.result(result)
    }
}

impl Arithmetic {
    fn operated(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        match self.operation {
            Operation::Integers(op) => integers(op, left, right),
            Operation::Quotient if left.data_type().is_floating() => floats(Operator::Divide, left, right),
            Operation::Floats(op) => floats(op, left, right),
            Operation::Quotient => quotients(left, right),
            Operation::DaysLater => days(left, right, 1),
            Operation::DaysEarlier => days(left, right, -1),
            Operation::DaysBetween => {
                let (left, right) = (
                    left.as_primitive::<Date32Type>(),
                    right.as_primitive::<Date32Type>(),
                );
                let between = left.iter().zip(right.iter()).map(|pair| match pair {
                    (Some(left), Some(right)) => left
                        .checked_sub(right)
                        .map(Some)
                        .ok_or_else(|| out_of_range("integer")),
                    _ => Ok(None),
                });
                Ok(Arc::new(between.collect::<Result<Int32Array>>()?))
            }
        }
    }
}

fn out_of_range(what: &str) -> datafusion::error::DataFusionError {
    let detail = format!("{what} out of range");
    QueryError::OutOfRange { detail }.wrapped()
}

fn integers(op: Operator, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let result = match op {
        Operator::Plus => numeric::add(left, right),
        Operator::Minus => numeric::sub(left, right),
        Operator::Multiply => numeric::mul(left, right),
        Operator::Divide => numeric::div(left, right),
        _ => numeric::rem(left, right),
    };
    result.map_err(|error| match error {
        ArrowError::ArithmeticOverflow(_) => out_of_range(match left.data_type() {
            DataType::Int16 => "smallint",
            DataType::Int32 => "integer",
            _ => "bigint",
        }),
        other => other.into(),
    })
}

fn floats(op: Operator, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    if left.data_type() == &DataType::Float32 {
        let (left, right) = (
            left.as_primitive::<Float32Type>(),
            right.as_primitive::<Float32Type>(),
        );
        let results = left.iter().zip(right.iter()).map(|pair| match pair {
            (Some(left), Some(right)) => {
                let (wide, other) = (f64::from(left), f64::from(right));
                float(op, wide, other)?;
                let result = match op {
                    Operator::Plus => left + right,
                    Operator::Minus => left - right,
                    Operator::Multiply => left * right,
                    _ => left / right,
                };
                bounded(f64::from(result), wide, other)?;
                Ok(Some(result))
            }
            _ => Ok(None),
        });
        return Ok(Arc::new(results.collect::<Result<Float32Array>>()?));
    }
    let (left, right) = (
        left.as_primitive::<Float64Type>(),
        right.as_primitive::<Float64Type>(),
    );
    let results = left.iter().zip(right.iter()).map(|pair| match pair {
        (Some(left), Some(right)) => float(op, left, right).map(Some),
        _ => Ok(None),
    });
    Ok(Arc::new(results.collect::<Result<Float64Array>>()?))
}

fn float(op: Operator, left: f64, right: f64) -> Result<f64> {
    let result = match op {
        Operator::Plus => left + right,
        Operator::Minus => left - right,
        Operator::Multiply => left * right,
        _ if right == 0.0 && !left.is_nan() => return Err(QueryError::DivisionByZero.wrapped()),
        _ => left / right,
    };
    bounded(result, left, right)
}

/// Infinity comes from infinity only.
fn bounded(result: f64, left: f64, right: f64) -> Result<f64> {
    if result.is_infinite() && left.is_finite() && right.is_finite() {
        let detail = "value out of range: overflow".to_owned();
        return Err(QueryError::OutOfRange { detail }.wrapped());
    }
    Ok(result)
}

fn quotients(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let mut results = Vec::with_capacity(left.len());
    for row in 0..left.len() {
        results.push(match (digits(left, row), digits(right, row)) {
            (Some(dividend), Some(divisor)) => {
                Some(quotient::divide(dividend, divisor).map_err(QueryError::wrapped)?)
            }
            _ => None,
        });
    }
    let array = Decimal256Array::from(results).with_precision_and_scale(NUMERIC_PRECISION, NUMERIC_SCALE)?;
    Ok(Arc::new(array))
}

/// The digits of a decimal and its scale; `None` for NULL.
fn digits(array: &ArrayRef, row: usize) -> Option<(i256, i8)> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Decimal128(_, scale) => Some((
            i256::from_i128(array.as_primitive::<Decimal128Type>().value(row)),
            *scale,
        )),
        DataType::Decimal256(_, scale) => Some((array.as_primitive::<Decimal256Type>().value(row), *scale)),
        _ => None,
    }
}

fn days(left: &ArrayRef, right: &ArrayRef, sign: i64) -> Result<ArrayRef> {
    let (left, right) = (
        left.as_primitive::<Date32Type>(),
        right.as_primitive::<Int64Type>(),
    );
    let results = left.iter().zip(right.iter()).map(|pair| match pair {
        (Some(date), Some(days)) => {
            let moved = days
                .checked_mul(sign)
                .and_then(|days| days.checked_add(i64::from(date)));
            let moved = moved.and_then(|moved| i32::try_from(moved).ok());
            moved.map(Some).ok_or_else(|| out_of_range("date"))
        }
        _ => Ok(None),
    });
    Ok(Arc::new(results.collect::<Result<Date32Array>>()?))
}
