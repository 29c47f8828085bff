//! Postgres's base-10000 binary form of an exact decimal.

use bytes::{Buf, BufMut};
use moraine_sql::text::numeric::shifted;
pub(crate) use moraine_sql::text::numeric::{NumericError, floor, parse, rescale};
use moraine_tables::Numeric;

/// Digits of one binary "digit". Source: PostgreSQL, `numeric.c` (NBASE = 10000).
const DIGITS_PER_GROUP: i32 = 4;
const GROUP: u128 = 10_000;
const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_POSITIVE: u16 = 0x0000;

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
