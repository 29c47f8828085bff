//! Calendar days and their text: the proleptic Gregorian calendar without a year zero.

use crate::text::{INFINITY, NEGATIVE_INFINITY};

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_SHIFT_DAYS: i64 = 719_468;
/// Days of a full Gregorian cycle of 400 years.
const CYCLE_DAYS: i64 = 146_097;
/// The greatest year with a text here: twelve digits, more than any count of seconds in 64 bits reaches.
const YEAR_MAX: i64 = 999_999_999_999;

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar, 1 BC being year 0; `None` when the calendar has no
/// such day, or the year has more than twelve digits.
#[must_use]
pub fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(-YEAR_MAX..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let march_year = if month <= 2 { year - 1 } else { year };
    let cycle = march_year.div_euclid(400);
    let year_of_cycle = march_year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    let days = cycle * CYCLE_DAYS + day_of_cycle - EPOCH_SHIFT_DAYS;
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// Year (1 BC is 0), month and day of a number of days since 1970-01-01. The last 719468 numbers are one day.
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(EPOCH_SHIFT_DAYS);
    let cycle = shifted.div_euclid(CYCLE_DAYS);
    let day_of_cycle = shifted.rem_euclid(CYCLE_DAYS);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_cycle + cycle * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The text of a finite day, as in `2024-02-29` and `0044-03-15 (BC)`.
pub(crate) fn render_day(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    if year > 0 {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{:04}-{month:02}-{day:02} (BC)", 1 - year)
    }
}

/// Reads a finite day at the start of `text`; the days since 1970 and what follows the date and its `(BC)`.
pub(crate) fn take_day(text: &str) -> Option<(i64, &str)> {
    let (year, rest) = text.split_once('-')?;
    if year.len() < 4 || year.len() > 12 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year: i64 = year.parse().ok()?;
    let (month, day_text) = (rest.get(..2)?, rest.get(2..)?.strip_prefix('-')?);
    let (day, after) = (day_text.get(..2)?, day_text.get(2..)?);
    let (month, day): (i64, i64) = (month.parse().ok()?, day.parse().ok()?);
    let (year, after) = match after.strip_prefix(" (BC)") {
        Some(after) => (1 - year, after),
        None => (year, after),
    };
    Some((days_from_civil(year, month, day)?, after))
}

/// DuckDB's text of a date. The greatest `i32` is `infinity`, its negation `-infinity`.
#[must_use]
pub fn render_date(days: i32) -> String {
    match days {
        i32::MAX => INFINITY.into(),
        days if days == -i32::MAX => NEGATIVE_INFINITY.into(),
        days => render_day(i64::from(days)),
    }
}

/// The days since 1970-01-01 of DuckDB's text of a date; `None` when DuckDB would not have written it so.
#[must_use]
pub fn parse_date(text: &str) -> Option<i32> {
    let days = match text {
        INFINITY => i32::MAX,
        NEGATIVE_INFINITY => -i32::MAX,
        text => match take_day(text)? {
            (days, "") => i32::try_from(days).ok()?,
            _ => return None,
        },
    };
    (render_date(days) == text).then_some(days)
}
