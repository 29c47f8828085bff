//! How many digits Postgres shows of roots, powers and logarithms of exact numbers: about sixteen significant ones, counted
//! differently for each. A plan holds them with as many as it can, and the number of those says what they are.

use arrow_buffer::i256;
use moraine_tables::Numeric;

use crate::error::QueryError;
use crate::quotient::{rounded, ten_to, too_large};

/// The least significant digits of a result. Source: PostgreSQL, `numeric.h` (`NUMERIC_MIN_SIG_DIGITS`).
const SIGNIFICANT_DIGITS_MIN: i32 = 16;

/// What an exact number came from, for what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A square root.
    Root,
    /// A power of e, or with an exponent that is not whole.
    Power,
    /// A power with a whole exponent, or a logarithm to a base that is said.
    WholePower,
    /// A natural logarithm.
    Logarithm,
    /// A logarithm to another base.
    DecimalLogarithm,
}

const ORIGINS: [(Origin, i8); 5] = [
    (Origin::Root, 35),
    (Origin::Power, 34),
    (Origin::WholePower, 33),
    (Origin::Logarithm, 32),
    (Origin::DecimalLogarithm, 31),
];

impl Origin {
    /// The digits after the point in a plan.
    pub(crate) fn scale(self) -> i8 {
        let of_this = |(origin, _): &&(Self, i8)| *origin == self;
        ORIGINS.iter().find(of_this).map_or(0, |(_, scale)| *scale)
    }

    /// What a number with so many digits after the point came from.
    pub(crate) fn of_scale(scale: i8) -> Option<Self> {
        let of_this = |(_, known): &&(Self, i8)| *known == scale;
        ORIGINS.iter().find(of_this).map(|(origin, _)| *origin)
    }
}

/// A number as Postgres shows it. Source: PostgreSQL, `numeric.c` (`numeric_sqrt`, `numeric_exp`, `power_var`,
/// `estimate_ln_dweight`, `log_var`).
pub(crate) fn shown(unscaled: i256, origin: Origin) -> Result<Numeric, QueryError> {
    let scale = origin.scale();
    let digits = match origin {
        Origin::Root => 15 - 2 * decimal_exponent(unscaled, scale).unwrap_or(0).div_euclid(2),
        Origin::Power => SIGNIFICANT_DIGITS_MIN - toward_zero(unscaled, scale),
        Origin::WholePower => SIGNIFICANT_DIGITS_MIN,
        Origin::Logarithm => SIGNIFICANT_DIGITS_MIN - weight(real(unscaled, scale)),
        Origin::DecimalLogarithm => {
            SIGNIFICANT_DIGITS_MIN - weight(real(unscaled, scale) * std::f64::consts::LN_10)
        }
    };
    let digits = digits.clamp(0, i32::from(scale));
    let cut = ten_to((i32::from(scale) - digits).unsigned_abs()).ok_or_else(too_large)?;
    let unscaled = rounded(unscaled, cut)
        .and_then(i256::to_i128)
        .ok_or_else(too_large)?;
    Ok(Numeric {
        unscaled,
        scale: i8::try_from(digits).unwrap_or(scale),
    })
}

/// The power of ten of a number's first digit; `None` for zero.
pub(crate) fn decimal_exponent(unscaled: i256, scale: i8) -> Option<i32> {
    let digits = unscaled.wrapping_abs().to_string();
    if unscaled == i256::ZERO {
        return None;
    }
    Some(i32::try_from(digits.len()).ok()? - 1 - i32::from(scale))
}

/// The decimal logarithm of a number, cut off at its point.
fn toward_zero(unscaled: i256, scale: i8) -> i32 {
    match decimal_exponent(unscaled, scale) {
        None => 0,
        Some(exponent) if exponent >= 0 => exponent,
        Some(exponent) => {
            let is_power = unscaled.to_string().trim_end_matches('0') == "1";
            if is_power { exponent } else { exponent + 1 }
        }
    }
}

fn real(unscaled: i256, scale: i8) -> f64 {
    let digits: f64 = unscaled.to_string().parse().unwrap_or(0.0);
    digits / 10_f64.powi(i32::from(scale))
}

/// The weight of a logarithm's first digit, as Postgres estimates it from the number whose logarithm it is.
fn weight(logarithm: f64) -> i32 {
    const NEAR_ONE: f64 = 0.1;
    /// What is lost on the way to the logarithm and back.
    const LOST: f64 = 1e-9;
    let beyond_one = (logarithm.exp() - 1.0).abs();
    let exponent = if logarithm == 0.0 {
        0.0
    } else if beyond_one <= NEAR_ONE + LOST {
        (beyond_one.log10() + LOST).floor()
    } else {
        logarithm.abs().log10().trunc()
    };
    // A logarithm of a number of this many digits is far below what an i32 holds.
    format!("{exponent:.0}").parse().unwrap_or(0)
}
