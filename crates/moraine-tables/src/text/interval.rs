//! Intervals as DuckLake sends them: the three parts spelt out, so that each survives on its own.

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
