//! `width_bucket`: which of so many equal parts of a range a number is in.

use std::sync::Arc;

use arrow_buffer::i256;
use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};

use super::row::{function, whole};
use crate::error::{InputError, QueryError};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![function("width_bucket", ColumnType::Int32, (4, 4), |arguments| {
        let [operand, low, high, count] = arguments else {
            return Ok(Value::Null);
        };
        if arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let Some(count) = whole(Some(count)) else {
            return Err(undefined());
        };
        if count <= 0 {
            return Err(invalid("count must be greater than zero"));
        }
        let bucket = match (exact(operand), exact(low), exact(high)) {
            (Some(operand), Some(low), Some(high)) => among_exact(operand, low, high, count)?,
            _ => {
                let [Some(operand), Some(low), Some(high)] = [operand, low, high].map(float) else {
                    return Err(undefined());
                };
                among_floats(operand, low, high, count)?
            }
        };
        i32::try_from(bucket)
            .map(Value::Int32)
            .map_err(|_| QueryError::OutOfRange {
                detail: "integer out of range".to_owned(),
            })
    })]
}

fn undefined() -> QueryError {
    QueryError::UndefinedFunction {
        name: "width_bucket of these types".to_owned(),
    }
}

fn invalid(detail: &str) -> QueryError {
    InputError::Buckets {
        detail: detail.to_owned(),
    }
    .into()
}

/// A number as its digits and how many of them stand after the point.
fn exact(value: &Value) -> Option<(i256, u32)> {
    match value {
        Value::Numeric(number) => {
            let scale = u32::try_from(number.scale).ok()?;
            Some((i256::from_i128(number.unscaled), scale))
        }
        other => whole(Some(other)).map(|number| (i256::from_i128(i128::from(number)), 0)),
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float32(number) => Some(f64::from(*number)),
        Value::Float64(number) => Some(*number),
        other => crate::text::format(other)?.parse().ok(),
    }
}

fn among_floats(operand: f64, low: f64, high: f64, count: i64) -> Result<i64, QueryError> {
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return Err(invalid("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(invalid("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(invalid("lower bound cannot equal upper bound"));
    }
    // A range that falls is the mirror of one that rises.
    let (operand, low, high) = if low < high {
        (operand, low, high)
    } else {
        (-operand, -low, -high)
    };
    if operand < low {
        return Ok(0);
    }
    if operand >= high {
        return Ok(count + 1);
    }
    let parts = i32::try_from(count).map_err(|_| undefined())?;
    let place = f64::from(parts) * ((operand - low) / (high - low));
    let whole_parts = partition(count, |parts| {
        i32::try_from(parts).is_ok_and(|parts| f64::from(parts) <= place)
    });
    Ok(whole_parts + 1)
}

/// The largest number below `count` for which a test holds that holds for 0 and up to some number.
fn partition(count: i64, holds: impl Fn(i64) -> bool) -> i64 {
    let (mut least, mut beyond) = (0, count);
    while beyond - least > 1 {
        let middle = least + (beyond - least) / 2;
        if holds(middle) {
            least = middle;
        } else {
            beyond = middle;
        }
    }
    least
}

fn among_exact(
    operand: (i256, u32),
    low: (i256, u32),
    high: (i256, u32),
    count: i64,
) -> Result<i64, QueryError> {
    let scale = operand.1.max(low.1).max(high.1);
    let same = |(digits, own): (i256, u32)| {
        let power = i256::from_i128(10).checked_pow(scale - own)?;
        digits.checked_mul(power)
    };
    let wide = || QueryError::OutOfRange {
        detail: "value overflows numeric format".to_owned(),
    };
    let [operand, low, high] = [operand, low, high].map(same);
    let (operand, low, high) = (
        operand.ok_or_else(wide)?,
        low.ok_or_else(wide)?,
        high.ok_or_else(wide)?,
    );
    if low == high {
        return Err(invalid("lower bound cannot equal upper bound"));
    }
    let (past, width) = if low < high {
        (operand.checked_sub(low), high.checked_sub(low))
    } else {
        (low.checked_sub(operand), low.checked_sub(high))
    };
    let (past, width) = (past.ok_or_else(wide)?, width.ok_or_else(wide)?);
    if past < i256::ZERO {
        return Ok(0);
    }
    if past >= width {
        return Ok(count + 1);
    }
    let parts = past
        .checked_mul(i256::from_i128(i128::from(count)))
        .ok_or_else(wide)?;
    let whole_parts = parts
        .checked_div(width)
        .and_then(i256::to_i128)
        .ok_or_else(wide)?;
    i64::try_from(whole_parts)
        .map(|whole_parts| whole_parts + 1)
        .map_err(|_| wide())
}
