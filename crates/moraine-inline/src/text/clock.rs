//! Times of day and their text: `HH:MM:SS`, a fraction without trailing zeros, and the offset of a time with zone.

use std::fmt::Write as _;

use crate::text::two_digits;

const SECOND_MICROS: i64 = 1_000_000;

/// Appends `HH:MM:SS` and the fraction, `digits` decimal digits of it, trailing zeros and an empty fraction left out.
pub(crate) fn push_clock(out: &mut String, seconds: i64, fraction: i64, digits: usize) {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    // Writing into a String cannot fail.
    let _ = write!(out, "{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if fraction > 0 {
        let text = format!("{fraction:0digits$}");
        out.push('.');
        out.push_str(text.trim_end_matches('0'));
    }
}

/// Reads `HH:MM:SS[.fraction]` at the start of `text`: whole seconds, the fraction in units of 10^−`digits`, and the
/// rest. Hours go to 24, which only a time of day may use in full.
pub(crate) fn take_clock(text: &str, digits: usize) -> Option<(i64, i64, &str)> {
    let (hours, rest) = two_digits(text, 25)?;
    let (minutes, rest) = two_digits(rest.strip_prefix(':')?, 60)?;
    let (seconds, rest) = two_digits(rest.strip_prefix(':')?, 60)?;
    let total = hours * 3600 + minutes * 60 + seconds;
    let Some(fraction_text) = rest.strip_prefix('.') else {
        return Some((total, 0, rest));
    };
    let length = fraction_text.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 || length > digits {
        return None;
    }
    let (fraction, rest) = fraction_text.split_at(length);
    let padded = format!("{fraction:0<digits$}");
    Some((total, padded.parse().ok()?, rest))
}

/// The text of a time of day, or of any other number of microseconds that is not negative: `12:00:00.5`.
#[must_use]
pub fn render_time(micros: i64) -> String {
    let mut out = String::with_capacity(24);
    push_clock(
        &mut out,
        micros.div_euclid(SECOND_MICROS),
        micros.rem_euclid(SECOND_MICROS),
        6,
    );
    out
}

/// The microseconds since midnight of DuckDB's text of a time of day.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    let (seconds, fraction, "") = take_clock(text, 6)? else {
        return None;
    };
    let micros = seconds * SECOND_MICROS + fraction;
    (render_time(micros) == text).then_some(micros)
}

/// The seconds east of UTC of an offset as DuckDB writes it: `+02`, `-11:30`, `+00:00:01`.
pub(crate) fn parse_offset(text: &str) -> Option<i64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+')?),
    };
    let mut offset = 0;
    let mut unit = 3600;
    for part in rest.split(':') {
        let (number, "") = two_digits(part, 60)? else {
            return None;
        };
        offset += number * unit;
        unit /= 60;
    }
    Some(if negative { -offset } else { offset })
}

/// DuckDB's text of a time with zone: `12:00:00.5+05:30`, the offset's minutes and seconds only when they are not zero.
#[must_use]
pub fn render_time_tz(micros: i64, offset_seconds: i32) -> String {
    let mut out = render_time(micros);
    out.push(if offset_seconds < 0 { '-' } else { '+' });
    let offset = offset_seconds.unsigned_abs();
    let (hours, minutes, seconds) = (offset / 3600, offset / 60 % 60, offset % 60);
    // Writing into a String cannot fail.
    let _ = write!(out, "{hours:02}");
    if minutes > 0 || seconds > 0 {
        let _ = write!(out, ":{minutes:02}");
    }
    if seconds > 0 {
        let _ = write!(out, ":{seconds:02}");
    }
    out
}

/// The microseconds since local midnight and the seconds east of UTC of DuckDB's text of a time with zone.
#[must_use]
pub fn parse_time_tz(text: &str) -> Option<(i64, i32)> {
    let (seconds, fraction, rest) = take_clock(text, 6)?;
    let offset = i32::try_from(parse_offset(rest)?).ok()?;
    let micros = seconds * SECOND_MICROS + fraction;
    (render_time_tz(micros, offset) == text).then_some((micros, offset))
}
