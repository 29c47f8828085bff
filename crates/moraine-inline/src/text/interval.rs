//! Intervals as DuckLake sends them, the three parts spelt out so that each survives on its own, and as DuckDB shows them.

use crate::text::clock::take_clock;

/// The text of an interval, as in `1 months 2 days 3000000 microseconds`.
#[must_use]
pub fn render_interval(months: i32, days: i32, micros: i64) -> String {
    format!("{months} months {days} days {micros} microseconds")
}

/// Months, days and microseconds of a text that [`render_interval`] wrote.
#[must_use]
pub fn parse_interval(text: &str) -> Option<(i32, i32, i64)> {
    let (months, rest) = text.split_once(" months ")?;
    let (days, rest) = rest.split_once(" days ")?;
    let micros = rest.strip_suffix(" microseconds")?;
    let parts = (months.parse().ok()?, days.parse().ok()?, micros.parse().ok()?);
    (render_interval(parts.0, parts.1, parts.2) == text).then_some(parts)
}

/// Months, days and microseconds of an interval as DuckDB shows it, as in `1 year 2 months 3 days 04:05:06.789`.
#[must_use]
pub fn parse_displayed_interval(text: &str) -> Option<(i32, i32, i64)> {
    let (mut months, mut days, mut micros) = (0_i32, 0_i32, 0_i64);
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if word.contains(':') {
            micros = parse_clock(word)?;
            return words.next().is_none().then_some((months, days, micros));
        }
        let number: i32 = word.parse().ok()?;
        match words.next()? {
            "year" | "years" => months = months.checked_add(number.checked_mul(12)?)?,
            "month" | "months" => months = months.checked_add(number)?,
            "day" | "days" => days = number,
            _ => return None,
        }
    }
    Some((months, days, micros))
}

/// Hours of an interval go beyond a day's.
fn parse_clock(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (hours, rest) = text.split_once(':')?;
    let hours: i64 = hours
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(hours)?
        .parse()
        .ok()?;
    let (seconds, fraction, "") = take_clock(&format!("00:{rest}"), 6)? else {
        return None;
    };
    let seconds = hours.checked_mul(3600)?.checked_add(seconds)?;
    let micros = seconds.checked_mul(1_000_000)?.checked_add(fraction)?;
    Some(if negative { -micros } else { micros })
}
