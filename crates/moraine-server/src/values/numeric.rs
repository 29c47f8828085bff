//! Exact decimals: from text, and Postgres's base-10000 binary form. At most 38 digits, as in DuckDB.

use bytes::{Buf, BufMut};
use moraine_tables::Numeric;

/// Digits of one binary "digit". Source: PostgreSQL, `numeric.c` (NBASE = 10000).
const DIGITS_PER_GROUP: i32 = 4;
const GROUP: u128 = 10_000;
const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_POSITIVE: u16 = 0x0000;
/// 10^38 is the first magnitude a DECIMAL(38) cannot hold; no exponent beyond that is worth reading.
const EXPONENT_MAX: i32 = 1_000;

/// Why a text or a binary form is no decimal of the wanted size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumericError {
    /// Not a number at all.
    Syntax,
    /// A number with more digits than the type holds.
    Range,
}

/// Reads decimal text (sign, digits, fraction, exponent) at the given scale, rounding half away from zero.
pub(crate) fn parse(text: &str, precision: u8, scale: i8) -> Result<Numeric, NumericError> {
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
fn shifted(digits: &[u8], shift: i32) -> Result<u128, NumericError> {
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
pub(crate) struct Floor {
    pub(crate) whole: i128,
    pub(crate) exact: bool,
}

/// The floor of decimal text; a number beyond 128 bits is as good as the largest. `None` when the text is no number.
pub(crate) fn floor(text: &str) -> Option<Floor> {
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
pub(crate) fn rescale(value: Numeric, precision: u8, scale: i8) -> Option<Numeric> {
    parse(&value.to_string(), precision, scale).ok()
}

/// Postgres's binary form: group count, weight, sign, display scale, base-10000 groups.
pub(crate) fn put_binary(value: Numeric, out: &mut impl BufMut) {
    let scale = i32::from(value.scale.max(0));
    // Groups are aligned at the decimal point, so the fraction is padded to whole groups.
    let fraction_groups = (scale + DIGITS_PER_GROUP - 1) / DIGITS_PER_GROUP;
    let padding = fraction_groups * DIGITS_PER_GROUP - scale;
    let mut groups: Vec<u16> = Vec::new();
    let magnitude = value.unscaled.unsigned_abs();
    let padding_power = 10u128.pow(padding.unsigned_abs());
    // The lowest group takes the padding; the division keeps 38 digits and the padding within 128 bits.
    let low_power = GROUP / padding_power;
    let mut rest = magnitude;
    if padding > 0 {
        groups.push(narrow((rest % low_power) * padding_power));
        rest /= low_power;
    }
    while rest > 0 || i32::try_from(groups.len()).unwrap_or(i32::MAX) < fraction_groups {
        groups.push(narrow(rest % GROUP));
        rest /= GROUP;
    }
    groups.reverse();
    let count = i32::try_from(groups.len()).unwrap_or(0);
    let weight = count - fraction_groups - 1;
    out.put_i16(i16::try_from(count).unwrap_or(i16::MAX));
    out.put_i16(i16::try_from(weight).unwrap_or(0));
    out.put_u16(if value.unscaled < 0 {
        SIGN_NEGATIVE
    } else {
        SIGN_POSITIVE
    });
    out.put_i16(i16::from(value.scale.max(0)));
    for group in groups {
        out.put_u16(group);
    }
}

fn narrow(group: u128) -> u16 {
    u16::try_from(group).unwrap_or(0)
}

/// Reads Postgres's binary form at the wanted scale; NaN and the infinities are no decimals.
pub(crate) fn from_binary(mut bytes: &[u8], precision: u8, scale: i8) -> Result<Numeric, NumericError> {
    if bytes.len() < 8 {
        return Err(NumericError::Syntax);
    }
    let count = usize::from(bytes.get_u16());
    let weight = i32::from(bytes.get_i16());
    let sign = bytes.get_u16();
    let _display_scale = bytes.get_u16();
    if bytes.len() != count * 2 || (sign != SIGN_POSITIVE && sign != SIGN_NEGATIVE) {
        return Err(NumericError::Syntax);
    }
    let mut digits = Vec::with_capacity(count * 4);
    for _ in 0..count {
        let group = bytes.get_u16();
        if u128::from(group) >= GROUP {
            return Err(NumericError::Syntax);
        }
        for power in [1_000u16, 100, 10, 1] {
            digits.push(u8::try_from(group / power % 10).unwrap_or(0));
        }
    }
    let groups = i32::try_from(count).map_err(|_| NumericError::Range)?;
    let exponent = (weight + 1 - groups) * DIGITS_PER_GROUP;
    let magnitude = shifted(&digits, exponent + i32::from(scale))?;
    if magnitude >= 10u128.pow(u32::from(precision.min(38))) {
        return Err(NumericError::Range);
    }
    let unscaled = i128::try_from(magnitude).map_err(|_| NumericError::Range)?;
    Ok(Numeric {
        unscaled: if sign == SIGN_NEGATIVE {
            -unscaled
        } else {
            unscaled
        },
        scale,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_at_every_scale() {
        for (text, precision, scale) in [
            ("0", 1, 0),
            ("0.00", 4, 2),
            ("-0.01", 4, 2),
            ("12345678901234567890123456789012345678", 38, 0),
            ("-1234567890123456789012345678.0123456789", 38, 10),
            ("0.00000000000000000000000000000000000001", 38, 38),
        ] {
            let value = parse(text, precision, scale).unwrap();
            assert_eq!(value.to_string(), text);
            let mut binary = Vec::new();
            put_binary(value, &mut binary);
            assert_eq!(from_binary(&binary, precision, scale), Ok(value), "{text}");
        }
    }

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

    #[test]
    fn binary_form_is_the_one_of_postgres() {
        let mut binary = Vec::new();
        put_binary(
            Numeric {
                unscaled: 1_234_512,
                scale: 2,
            },
            &mut binary,
        );
        // 12345.12 = groups 1, 2345, 1200; weight 1; scale 2
        assert_eq!(binary, [0, 3, 0, 1, 0, 0, 0, 2, 0, 1, 9, 41, 4, 176]);
    }
}
