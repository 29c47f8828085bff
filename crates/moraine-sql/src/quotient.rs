//! Quotients and averages of exact numbers. A plan holds them with more digits than anybody asks for; a client sees as
//! many as Postgres shows, which depends on the value.

use arrow_buffer::i256;
use moraine_tables::Numeric;

use crate::error::QueryError;
use crate::types::NUMERIC_SCALE;

/// The least significant digits of a quotient. Source: PostgreSQL, `numeric.h` (`NUMERIC_MIN_SIG_DIGITS`).
const SIGNIFICANT_DIGITS_MIN: i32 = 16;
/// Decimal digits of one of Postgres's digits. Source: PostgreSQL, `numeric.c` (`DEC_DIGITS`).
const DIGITS_OF_ONE: i32 = 4;

/// A power of ten; `None` for one that cannot be held.
pub(crate) fn ten_to(exponent: u32) -> Option<i256> {
    let mut power = i256::ONE;
    for _ in 0..exponent {
        power = power.checked_mul(i256::from_i128(10))?;
    }
    Some(power)
}

/// The error of a number with too many digits.
pub(crate) fn too_large() -> QueryError {
    QueryError::OutOfRange {
        detail: "value overflows numeric format".to_owned(),
    }
}

/// A decimal as a plan holds a quotient.
pub(crate) fn widened(value: Numeric) -> Result<i256, QueryError> {
    scaled(i256::from_i128(value.unscaled), value.scale)
}

/// The digits of a number at a quotient's scale, half away from zero.
pub(crate) fn scaled(unscaled: i256, scale: i8) -> Result<i256, QueryError> {
    let shift = i32::from(NUMERIC_SCALE) - i32::from(scale);
    let power = ten_to(shift.unsigned_abs()).ok_or_else(too_large)?;
    if shift >= 0 {
        return unscaled.checked_mul(power).ok_or_else(too_large);
    }
    rounded(unscaled, power).ok_or_else(too_large)
}

/// A quotient rounded half away from zero.
pub(crate) fn rounded(dividend: i256, divisor: i256) -> Option<i256> {
    let quotient = dividend.checked_div(divisor)?;
    let rest = dividend.checked_rem(divisor)?;
    let twice = rest.wrapping_abs().checked_mul(i256::from_i128(2))?;
    if twice < divisor.wrapping_abs() {
        return Some(quotient);
    }
    let away = if dividend.is_negative() == divisor.is_negative() {
        i256::ONE
    } else {
        i256::MINUS_ONE
    };
    quotient.checked_add(away)
}

/// The quotient of two decimals, each with its digits after the point, as a plan holds it.
///
/// # Errors
/// [`QueryError::DivisionByZero`]; [`QueryError::OutOfRange`] for more digits than a plan holds.
pub(crate) fn divide(dividend: (i256, i8), divisor: (i256, i8)) -> Result<i256, QueryError> {
    if divisor.0 == i256::ZERO {
        return Err(QueryError::DivisionByZero);
    }
    let shift = i32::from(NUMERIC_SCALE) + i32::from(divisor.1) - i32::from(dividend.1);
    let power = ten_to(shift.unsigned_abs()).ok_or_else(too_large)?;
    let quotient = if shift >= 0 {
        let dividend = dividend.0.checked_mul(power).ok_or_else(too_large)?;
        rounded(dividend, divisor.0)
    } else {
        let divisor = divisor.0.checked_mul(power).ok_or_else(too_large)?;
        rounded(dividend.0, divisor)
    };
    quotient.ok_or_else(too_large)
}

/// A quotient with the digits that Postgres shows: sixteen significant ones, counted in groups of four.
/// Source: PostgreSQL, `numeric.c` (`select_div_scale`).
pub(crate) fn shown(unscaled: i256) -> Result<Numeric, QueryError> {
    let magnitude = unscaled.wrapping_abs();
    let mut weight = -(i32::from(NUMERIC_SCALE) / DIGITS_OF_ONE);
    let step = i256::from_i128(10_000);
    let mut power = i256::ONE;
    while let Some(next) = power.checked_mul(step)
        && magnitude >= next
    {
        power = next;
        weight += 1;
    }
    if magnitude == i256::ZERO {
        weight = -1;
    } else if magnitude == power {
        // Postgres only compares the first groups of dividend and divisor, and then expects one group less.
        weight -= 1;
    }
    let scale = (SIGNIFICANT_DIGITS_MIN - weight * DIGITS_OF_ONE).clamp(0, i32::from(NUMERIC_SCALE));
    let cut = i32::from(NUMERIC_SCALE) - scale;
    let cut = ten_to(cut.unsigned_abs()).ok_or_else(too_large)?;
    let digits = rounded(unscaled, cut)
        .and_then(i256::to_i128)
        .ok_or_else(too_large)?;
    Ok(Numeric {
        unscaled: digits,
        scale: i8::try_from(scale).unwrap_or(NUMERIC_SCALE),
    })
}

/// A number without the zeros at the end of its fraction.
pub(crate) fn trimmed(unscaled: i256, scale: i8) -> Result<Numeric, QueryError> {
    let ten = i256::from_i128(10);
    let (mut digits, mut scale) = (unscaled, scale);
    while scale > 0 && digits.wrapping_rem(ten) == i256::ZERO {
        digits = digits.wrapping_div(ten);
        scale -= 1;
    }
    let unscaled = digits.to_i128().ok_or_else(too_large)?;
    Ok(Numeric { unscaled, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_have_the_digits_postgres_shows() {
        for (dividend, divisor, expected) in [
            (7, 2, "3.5000000000000000"),
            (1, 3, "0.33333333333333333333"),
            (3, 3, "1.00000000000000000000"),
            (0, 3, "0.00000000000000000000"),
            (100_000, 3, "33333.333333333333"),
            (-2, 3, "-0.66666666666666666667"),
            (1, 30_000, "0.000033333333333333333333"),
        ] {
            let whole = |value: i128| (i256::from_i128(value), 0);
            let quotient = divide(whole(dividend), whole(divisor)).unwrap();
            assert_eq!(
                shown(quotient).unwrap().to_string(),
                expected,
                "{dividend}/{divisor}"
            );
        }
    }
}
