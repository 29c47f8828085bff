//! Decimals and floating point numbers.

/// Decimal exponents from which on, and below which, DuckDB writes a number in scientific notation.
const FIXED_EXPONENTS: std::ops::Range<i32> = -4..16;

/// The text of a decimal of `scale` digits behind the point.
#[must_use]
pub fn render_decimal(value: i128, scale: u8) -> String {
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs().to_string());
    let scale = usize::from(scale);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// The unscaled value of a decimal's text; `None` when it was not written with this scale.
#[must_use]
pub fn parse_decimal(text: &str, scale: u8) -> Option<i128> {
    let value: i128 = text.replacen('.', "", 1).parse().ok()?;
    (render_decimal(value, scale) == text).then_some(value)
}

/// The text of a DOUBLE.
#[must_use]
pub fn render_double(value: f64) -> String {
    render(
        value.is_nan(),
        value.is_finite(),
        &format!("{value:e}"),
        &format!("{value}"),
    )
}

/// The text of a FLOAT.
#[must_use]
pub fn render_float(value: f32) -> String {
    render(
        value.is_nan(),
        value.is_finite(),
        &format!("{value:e}"),
        &format!("{value}"),
    )
}

/// Chooses between the shortest digits in scientific and in plain notation.
fn render(is_nan: bool, is_finite: bool, scientific: &str, plain: &str) -> String {
    if is_nan {
        return "nan".to_owned();
    }
    if !is_finite {
        return plain.to_owned();
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if FIXED_EXPONENTS.contains(&exponent) {
        let point = if plain.contains('.') { "" } else { ".0" };
        return format!("{plain}{point}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::{parse_decimal, render_decimal, render_double, render_float};

    #[test]
    fn floating_point_numbers_are_written_as_duckdb_does() {
        let doubles = [
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e100, "1e+100"),
            (100_000.0, "100000.0"),
            (-0.0, "-0.0"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (number, text) in doubles {
            assert_eq!(render_double(number), text);
        }
        assert_eq!(render_float(3.4e38), "3.4e+38");
        assert_eq!(render_float(16_777_216.0), "16777216.0");
        assert_eq!(render_float(1e-45), "1e-45");
    }

    #[test]
    fn decimals_keep_their_digits() {
        for (text, scale, value) in [("-0.1", 1, -1), ("1.500", 3, 1500), ("7", 0, 7)] {
            assert_eq!(
                (render_decimal(value, scale), parse_decimal(text, scale)),
                (text.to_owned(), Some(value))
            );
        }
        assert_eq!(parse_decimal("1.5", 2), None);
        assert_eq!(parse_decimal("1..5", 1), None);
    }
}
