//! Exact decimals from text, as Postgres reads them. At most 38 digits, as in DuckDB.

use moraine_tables::Numeric;

/// 10^38 is the first magnitude a DECIMAL(38) cannot hold; no exponent beyond that is worth reading.
const EXPONENT_MAX: i32 = 1_000;

/// Why a text or a binary form is no decimal of the wanted size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumericError {
    /// Not a number at all.
    Syntax,
    /// A number with more digits than the type holds.
    Range,
}

/// Reads decimal text (sign, digits, fraction, exponent) at the given scale, rounding half away from zero.
///
/// # Errors
/// [`NumericError::Syntax`] for text that is no number, [`NumericError::Range`] for too many digits.
pub fn parse(text: &str, precision: u8, scale: i8) -> Result<Numeric, NumericError> {
    let (negative, digits, exponent) = split(text)?;
    // The value is digits × 10^exponent; wanted is unscaled × 10^-scale.
    let shift = exponent + i32::from(scale);
    let magnitude = shifted(&digits, shift)?;
    if magnitude >= 10u128.pow(u32::from(precision.min(38))) {
        return Err(NumericError::Range);
    }
    let unscaled = i128::try_from(magnitude).map_err(|_| NumericError::Range)?;
    Ok(Numeric {
        unscaled: if negative { -unscaled } else { unscaled },
        scale,
    })
}

/// Sign, significant digits and the power of ten of decimal text.
fn split(text: &str) -> Result<(bool, Vec<u8>, i32), NumericError> {
    let text = text.trim();
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => {
            let exponent = rest.get(at + 1..).unwrap_or_default();
            (
                rest.get(..at).unwrap_or_default(),
                exponent.parse::<i32>().map_err(|_| NumericError::Syntax)?,
            )
        }
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumericError::Syntax);
    }
    let mut digits = Vec::with_capacity(whole.len() + fraction.len());
    for byte in whole.bytes().chain(fraction.bytes()) {
        match byte {
            b'0'..=b'9' => digits.push(byte - b'0'),
            _ => return Err(NumericError::Syntax),
        }
    }
    let places = i32::try_from(fraction.len()).map_err(|_| NumericError::Range)?;
    if exponent.abs() > EXPONENT_MAX {
        return Err(NumericError::Range);
    }
    Ok((negative, digits, exponent - places))
}

/// digits × 10^shift as an integer, rounded half up in magnitude.
///
/// # Errors
/// [`NumericError::Range`] when it does not fit into 128 bits.
pub fn shifted(digits: &[u8], shift: i32) -> Result<u128, NumericError> {
    let kept = if shift < 0 {
        let cut = usize::try_from(-shift).map_err(|_| NumericError::Range)?;
        digits.len().checked_sub(cut)
    } else {
        Some(digits.len())
    };
    let Some(kept) = kept else {
        return Ok(0);
    };
    let mut value = 0u128;
    for digit in digits.iter().take(kept) {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u128::from(*digit)))
            .ok_or(NumericError::Range)?;
    }
    if digits.get(kept).is_some_and(|next| *next >= 5) {
        value += 1;
    }
    for _ in 0..shift.max(0) {
        if value == 0 {
            break;
        }
        value = value.checked_mul(10).ok_or(NumericError::Range)?;
    }
    Ok(value)
}

/// The greatest integer not above a number, and whether it is the number itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The greatest integer that is not above the number.
    pub whole: i128,
    /// Whether the number is that integer.
    pub exact: bool,
}

/// The floor of decimal text; a number beyond 128 bits is as good as the largest. `None` when the text is no number.
pub fn floor(text: &str) -> Option<Floor> {
    let (negative, digits, exponent) = split(text).ok()?;
    let length = i32::try_from(digits.len()).ok()?;
    let kept = usize::try_from((length + exponent.min(0)).max(0)).ok()?;
    let exact = digits.iter().skip(kept).all(|digit| *digit == 0);
    let whole_digits = digits.get(..kept)?;
    let beyond = if negative { i128::MIN } else { i128::MAX };
    let magnitude = shifted(whole_digits, exponent.max(0))
        .ok()
        .and_then(|whole| i128::try_from(whole).ok());
    let whole = match magnitude {
        None => beyond,
        Some(whole) if negative && !exact => -whole - 1,
        Some(whole) if negative => -whole,
        Some(whole) => whole,
    };
    Some(Floor { whole, exact })
}

/// The same number at another scale, rounded half away from zero; `None` when it has more digits than `precision`.
pub fn rescale(value: Numeric, precision: u8, scale: i8) -> Option<Numeric> {
    parse(&value.to_string(), precision, scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_beyond_the_scale_round_and_beyond_the_precision_fail() {
        assert_eq!(parse("1.005", 10, 2).unwrap().unscaled, 101);
        assert_eq!(parse("-1.005e2", 10, 0).unwrap().unscaled, -101);
        assert_eq!(parse("100", 2, 0), Err(NumericError::Range));
        assert_eq!(parse("1x", 2, 0), Err(NumericError::Syntax));
        assert_eq!(parse("", 2, 0), Err(NumericError::Syntax));
    }

    #[test]
    fn a_floor_goes_down() {
        let of = |text| floor(text).map(|floor| (floor.whole, floor.exact));
        assert_eq!(of("1.5"), Some((1, false)));
        assert_eq!(of("-1.5"), Some((-2, false)));
        assert_eq!(of("-2.0"), Some((-2, true)));
        assert_eq!(of("0.25"), Some((0, false)));
        assert_eq!(of("1e3"), Some((1000, true)));
        assert_eq!(of("1e60"), Some((i128::MAX, true)));
        assert_eq!(of("x"), None);
    }
}
