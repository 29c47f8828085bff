//! Timestamps of every resolution and their text. The greatest number is `infinity`, its negation `-infinity`.

use crate::text::civil::{render_day, take_day};
use crate::text::clock::{parse_offset, push_clock, take_clock};
use crate::text::{INFINITY, NEGATIVE_INFINITY};

const DAY_SECONDS: i64 = 86_400;
const UTC_SUFFIX: &str = "+00";

/// The resolution of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Whole seconds (`TIMESTAMP_S`).
    Second,
    /// Thousandths (`TIMESTAMP_MS`).
    Millisecond,
    /// Millionths (`TIMESTAMP`).
    Microsecond,
    /// Billionths (`TIMESTAMP_NS`).
    Nanosecond,
}

impl TimeUnit {
    fn digits(self) -> usize {
        match self {
            Self::Second => 0,
            Self::Millisecond => 3,
            Self::Microsecond => 6,
            Self::Nanosecond => 9,
        }
    }

    fn per_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }
}

/// DuckDB's text of a timestamp, `ticks` of `unit` since 1970-01-01 00:00:00.
#[must_use]
pub fn render_timestamp(ticks: i64, unit: TimeUnit) -> String {
    match ticks {
        i64::MAX => INFINITY.into(),
        ticks if ticks == -i64::MAX => NEGATIVE_INFINITY.into(),
        ticks => {
            let seconds = ticks.div_euclid(unit.per_second());
            let fraction = ticks.rem_euclid(unit.per_second());
            let mut out = render_day(seconds.div_euclid(DAY_SECONDS));
            out.push(' ');
            push_clock(&mut out, seconds.rem_euclid(DAY_SECONDS), fraction, unit.digits());
            out
        }
    }
}

/// The ticks of DuckDB's text of a timestamp; `None` when DuckDB would not have written it so.
#[must_use]
pub fn parse_timestamp(text: &str, unit: TimeUnit) -> Option<i64> {
    let ticks = match text {
        INFINITY => i64::MAX,
        NEGATIVE_INFINITY => -i64::MAX,
        text => {
            let (days, rest) = take_day(text)?;
            let (seconds, fraction, "") = take_clock(rest.strip_prefix(' ')?, unit.digits())? else {
                return None;
            };
            let seconds = i128::from(days) * i128::from(DAY_SECONDS) + i128::from(seconds);
            let ticks = seconds * i128::from(unit.per_second()) + i128::from(fraction);
            i64::try_from(ticks).ok()?
        }
    };
    (render_timestamp(ticks, unit) == text).then_some(ticks)
}

/// DuckDB's text of a timestamp with time zone, microseconds since 1970 UTC, as DuckLake inlines it: always in UTC.
#[must_use]
pub fn render_timestamp_tz(micros: i64) -> String {
    let mut out = render_timestamp(micros, TimeUnit::Microsecond);
    if micros != i64::MAX && micros != -i64::MAX {
        out.push_str(UTC_SUFFIX);
    }
    out
}

/// The microseconds of DuckDB's text of a timestamp with time zone in UTC.
#[must_use]
pub fn parse_timestamp_tz(text: &str) -> Option<i64> {
    let finite = text.strip_suffix(UTC_SUFFIX).unwrap_or(text);
    let micros = parse_timestamp(finite, TimeUnit::Microsecond)?;
    (render_timestamp_tz(micros) == text).then_some(micros)
}

/// The microseconds of DuckDB's text of a timestamp with time zone, at whatever offset its session has written it.
#[must_use]
pub fn parse_timestamp_at_offset(text: &str) -> Option<i64> {
    if let Some(micros) = parse_timestamp_tz(text) {
        return Some(micros);
    }
    // The offset is what follows the last sign; the date before the clock has hyphens too.
    let (day, clock) = text.rsplit_once(' ')?;
    let sign = clock.rfind(['+', '-'])?;
    let (clock, offset) = clock.split_at(sign);
    let local = parse_timestamp(&format!("{day} {clock}"), TimeUnit::Microsecond)?;
    local.checked_sub(parse_offset(offset)? * TimeUnit::Microsecond.per_second())
}
