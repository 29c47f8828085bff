//! Exact decimals: a whole number and a scale, compared by value whatever their scales. Parsing and rendering in plain
//! digits; nothing here knows the wire's base-10000 form.

use std::cmp::Ordering;
use std::fmt;

/// A decimal: `unscaled` × 10^−`scale`.
#[derive(Clone, Copy, Debug)]
pub struct Numeric {
    /// The digits as one whole number.
    pub unscaled: i128,
    /// How many of the digits stand after the point; negative moves the point to the right.
    pub scale: i8,
}

impl Numeric {
    /// The same value at another scale; `None` when digits would be lost or the whole number would not fit.
    #[must_use]
    pub fn rescale(self, scale: i8) -> Option<Self> {
        let shift = i32::from(scale) - i32::from(self.scale);
        let factor = 10_i128.checked_pow(shift.unsigned_abs());
        let unscaled = match (shift >= 0, factor) {
            _ if self.unscaled == 0 => 0,
            (true, Some(factor)) => self.unscaled.checked_mul(factor)?,
            (false, Some(factor)) if self.unscaled % factor == 0 => self.unscaled / factor,
            _ => return None,
        };
        Some(Self { unscaled, scale })
    }

    /// Parses plain digits with an optional sign and point; the scale is the number of digits after the point. `None`
    /// for anything else, and for more digits than fit.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut unscaled: i128 = 0;
        for byte in whole.bytes().chain(fraction.bytes()) {
            let digit = i128::from(byte.is_ascii_digit().then(|| byte - b'0')?);
            let signed = if negative { -digit } else { digit };
            unscaled = unscaled.checked_mul(10)?.checked_add(signed)?;
        }
        Some(Self {
            unscaled,
            scale: i8::try_from(fraction.len()).ok()?,
        })
    }

    /// Sign, digits before the point without leading zeros, digits after it without trailing zeros.
    fn parts(self) -> (i8, String, String) {
        let sign = i8::from(self.unscaled > 0) - i8::from(self.unscaled < 0);
        let mut digits = self.unscaled.unsigned_abs().to_string();
        let scale = i32::from(self.scale);
        let fraction = if scale > 0 {
            let scale = scale.unsigned_abs() as usize;
            if digits.len() < scale {
                digits = format!("{digits:0>scale$}");
            }
            digits.split_off(digits.len() - scale)
        } else {
            digits.extend(std::iter::repeat_n('0', scale.unsigned_abs() as usize));
            String::new()
        };
        (
            sign,
            digits.trim_start_matches('0').to_owned(),
            fraction.trim_end_matches('0').to_owned(),
        )
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.unscaled.cmp(&other.unscaled);
        }
        let (a_sign, a_whole, a_fraction) = self.parts();
        let (b_sign, b_whole, b_fraction) = other.parts();
        let magnitude = || {
            (a_whole.len().cmp(&b_whole.len()))
                .then_with(|| a_whole.cmp(&b_whole))
                .then_with(|| a_fraction.cmp(&b_fraction))
        };
        a_sign.cmp(&b_sign).then_with(|| match a_sign {
            0 => Ordering::Equal,
            1 => magnitude(),
            _ => magnitude().reverse(),
        })
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let digits = self.unscaled.unsigned_abs().to_string();
        let places = usize::from(self.scale.unsigned_abs());
        if self.scale <= 0 {
            let zeros = if self.unscaled == 0 { 0 } else { places };
            return write!(out, "{sign}{digits}{}", "0".repeat(zeros));
        }
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        write!(out, "{sign}{whole}.{fraction}")
    }
}
