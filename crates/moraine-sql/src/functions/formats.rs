//! The formats of `to_char`, `to_timestamp` and `to_date`. Source: PostgreSQL, section 9.8. A pattern that is not known is
//! refused by name rather than copied.

use moraine_tables::Numeric;
use moraine_tables::text::{civil_from_days, days_from_civil};

use super::moments::{day_of_year, iso_week, weekday};
use crate::error::{InputError, QueryError};
use crate::text::temporal::MICROS_PER_DAY;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Patterns, the longer of two that begin alike first.
const PATTERNS: &[&str] = &[
    "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "AM", "PM", "A.M.", "P.M.", "am", "pm", "a.m.", "p.m.", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY",
    "IY", "IDDD", "ID", "IW", "I", "BC", "AD", "MONTH", "Month", "month", "MON", "Mon", "mon", "MM", "DAY",
    "Day", "day", "DY", "Dy", "dy", "DDD", "DD", "D", "WW", "W", "CC", "J", "Q", "RM", "rm", "TZH", "TZM",
    "TZ", "tz", "OF", "TH", "th",
];

/// One piece of a format.
enum Piece<'f> {
    Pattern(&'static str),
    Literal(&'f str),
    /// The next pattern without padding.
    FillMode,
}

fn pieces(format: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        let pattern = PATTERNS.iter().find(|pattern| {
            let exact = rest.starts_with(**pattern);
            // Patterns of digits may be written in either case.
            let digits = !pattern.starts_with(['M', 'm', 'D', 'd', 'A', 'a', 'P', 'p', 'T', 't'])
                || matches!(**pattern, "MI" | "MM" | "MS" | "DD" | "DDD" | "D");
            exact
                || digits
                    && rest
                        .get(..pattern.len())
                        .is_some_and(|head| head.eq_ignore_ascii_case(pattern))
        });
        let (piece, length) = if rest.starts_with("FM") || rest.starts_with("fm") {
            (Piece::FillMode, 2)
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            (
                Piece::Literal(quoted.get(..end).unwrap_or_default()),
                (end + 2).min(rest.len()),
            )
        } else if let Some(pattern) = pattern {
            (Piece::Pattern(pattern), pattern.len())
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            (Piece::Literal(rest.get(..length).unwrap_or_default()), length)
        };
        pieces.push(piece);
        rest = rest.get(length..).unwrap_or_default();
    }
    pieces
}

/// A moment, in microseconds since 1970, in a format.
///
/// # Errors
/// 0A000 for a pattern that is not known here.
pub(super) fn moment(micros: i64, format: &str) -> Result<String, QueryError> {
    let mut out = String::new();
    let mut fill = false;
    let mut last: i64 = 0;
    for piece in pieces(format) {
        match piece {
            Piece::FillMode => fill = true,
            Piece::Literal(text) => out.push_str(text),
            Piece::Pattern("TH") => out.push_str(&ordinal(last).to_uppercase()),
            Piece::Pattern("th") => out.push_str(ordinal(last)),
            Piece::Pattern(pattern) => {
                let written = written(micros, pattern, fill)?;
                last = written.parse().unwrap_or_default();
                out.push_str(&written);
                fill = false;
            }
        }
    }
    Ok(out)
}

fn ordinal(number: i64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

fn digits(value: i64, width: usize, fill: bool) -> String {
    match fill {
        true => value.to_string(),
        false => format!("{value:0width$}"),
    }
}

/// A pattern of the time of day; `None` for any other.
fn of_clock(of_day: i64, pattern: &str, fill: bool) -> Option<String> {
    let (hour, minute) = (of_day / 3_600_000_000, of_day / 60_000_000 % 60);
    let (second, fraction) = (of_day / 1_000_000 % 60, of_day % 1_000_000);
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    Some(match pattern {
        "HH24" => digits(hour, 2, fill),
        "HH12" | "HH" => digits(twelve, 2, fill),
        "MI" => digits(minute, 2, fill),
        "SS" => digits(second, 2, fill),
        "SSSS" | "SSSSS" => (of_day / 1_000_000).to_string(),
        "MS" | "FF3" => format!("{:03}", fraction / 1_000),
        "US" | "FF6" => format!("{fraction:06}"),
        "FF1" | "FF2" | "FF4" | "FF5" => {
            let kept = pattern.trim_start_matches("FF").parse().unwrap_or(6);
            format!("{fraction:06}").chars().take(kept).collect()
        }
        "AM" | "PM" => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        "am" | "pm" => if hour < 12 { "am" } else { "pm" }.to_owned(),
        "A.M." | "P.M." => if hour < 12 { "A.M." } else { "P.M." }.to_owned(),
        "a.m." | "p.m." => if hour < 12 { "a.m." } else { "p.m." }.to_owned(),
        _ => return None,
    })
}

/// A pattern of a month's or a day's name; `None` for any other.
fn of_names(days: i64, pattern: &str, fill: bool) -> Option<String> {
    let (_, month, _) = civil_from_days(days);
    let name = |name: &str| match fill {
        true => name.to_owned(),
        false => format!("{name:<9}"),
    };
    let month_name = MONTHS.get(usize::try_from(month - 1).ok()?).copied()?;
    let day_name = DAYS.get(usize::try_from(weekday(days)).ok()?).copied()?;
    let short = |name: &str| name.chars().take(3).collect::<String>();
    Some(match pattern {
        "MONTH" => name(&month_name.to_uppercase()),
        "Month" => name(month_name),
        "month" => name(&month_name.to_lowercase()),
        "MON" => short(month_name).to_uppercase(),
        "Mon" => short(month_name),
        "mon" => short(month_name).to_lowercase(),
        "DAY" => name(&day_name.to_uppercase()),
        "Day" => name(day_name),
        "day" => name(&day_name.to_lowercase()),
        "DY" => short(day_name).to_uppercase(),
        "Dy" => short(day_name),
        "dy" => short(day_name).to_lowercase(),
        _ => return None,
    })
}

fn written(micros: i64, pattern: &str, fill: bool) -> Result<String, QueryError> {
    let days = micros.div_euclid(MICROS_PER_DAY);
    let named = of_clock(micros.rem_euclid(MICROS_PER_DAY), pattern, fill);
    if let Some(written) = named.or_else(|| of_names(days, pattern, fill)) {
        return Ok(written);
    }
    let (year, month, day) = civil_from_days(days);
    let shown = if year > 0 { year } else { 1 - year };
    let digits = |value: i64, width: usize| digits(value, width, fill);
    Ok(match pattern {
        "Y,YYY" => format!("{},{:03}", shown / 1_000, shown % 1_000),
        "YYYY" => digits(shown, 4),
        "YYY" => digits(shown % 1_000, 3),
        "YY" => digits(shown % 100, 2),
        "Y" => (shown % 10).to_string(),
        "IYYY" => digits(iso_week(days).0, 4),
        "IYY" => digits(iso_week(days).0 % 1_000, 3),
        "IY" => digits(iso_week(days).0 % 100, 2),
        "I" => (iso_week(days).0 % 10).to_string(),
        "IW" => digits(iso_week(days).1, 2),
        "ID" => ((weekday(days) + 6) % 7 + 1).to_string(),
        "BC" | "AD" => if year > 0 { "AD" } else { "BC" }.to_owned(),
        "MM" => digits(month, 2),
        "DDD" => digits(day_of_year(days), 3),
        "DD" => digits(day, 2),
        "D" => (weekday(days) + 1).to_string(),
        "WW" => digits((day_of_year(days) - 1) / 7 + 1, 2),
        "W" => ((day - 1) / 7 + 1).to_string(),
        "CC" => digits((shown + 99) / 100, 2),
        "J" => (days + 2_440_588).to_string(),
        "Q" => ((month - 1) / 3 + 1).to_string(),
        "TZ" => "UTC".to_owned(),
        "tz" => "utc".to_owned(),
        "TZH" => "+00".to_owned(),
        "TZM" => "00".to_owned(),
        "OF" => "+00".to_owned(),
        other => return Err(QueryError::unsupported(format!("the pattern {other} of to_char"))),
    })
}

/// A moment read in a format, in microseconds since 1970.
///
/// # Errors
/// 22007 as [`InputError::Syntax`] for text of another form, 0A000 for a pattern that is not read here.
pub(super) fn read(text: &str, format: &str) -> Result<i64, QueryError> {
    let invalid = || InputError::Syntax {
        type_name: format!("format \"{format}\""),
        text: text.to_owned(),
    };
    let (mut year, mut month, mut day) = (1_i64, 1_i64, 1_i64);
    let (mut hour, mut minute, mut second, mut fraction) = (0_i64, 0_i64, 0_i64, 0_i64);
    let mut afternoon = None;
    let mut rest = text;
    for piece in pieces(format) {
        let pattern = match piece {
            Piece::FillMode => continue,
            Piece::Literal(literal) => {
                let skipped = literal.chars().count();
                let length: usize = rest.chars().take(skipped).map(char::len_utf8).sum();
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            Piece::Pattern(pattern) => pattern,
        };
        rest = rest.trim_start();
        match pattern {
            "YYYY" => year = digits_of(&mut rest, 4).ok_or_else(invalid)?,
            "MM" => month = digits_of(&mut rest, 2).ok_or_else(invalid)?,
            "DD" => day = digits_of(&mut rest, 2).ok_or_else(invalid)?,
            "HH24" | "HH12" | "HH" => hour = digits_of(&mut rest, 2).ok_or_else(invalid)?,
            "MI" => minute = digits_of(&mut rest, 2).ok_or_else(invalid)?,
            "SS" => second = digits_of(&mut rest, 2).ok_or_else(invalid)?,
            "MS" | "US" => {
                let width = if pattern == "MS" { 3 } else { 6 };
                let before = rest.len();
                let value = digits_of(&mut rest, width).ok_or_else(invalid)?;
                let read = u32::try_from(before - rest.len()).unwrap_or(6);
                fraction = value * 10_i64.pow(6 - read.min(6));
            }
            "AM" | "PM" | "am" | "pm" => {
                let half = rest.get(..2).ok_or_else(invalid)?;
                afternoon = Some(half.eq_ignore_ascii_case("pm"));
                rest = rest.get(2..).unwrap_or_default();
            }
            "MON" | "Mon" | "mon" | "MONTH" | "Month" | "month" => {
                month = named_month(&mut rest, pattern.len() > 3).ok_or_else(invalid)?;
            }
            other => {
                let construct = format!("the pattern {other} of to_timestamp");
                return Err(QueryError::unsupported(construct));
            }
        }
    }
    if let Some(afternoon) = afternoon {
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    let days = days_from_civil(year, month, day).ok_or_else(invalid)?;
    if hour > 23 || minute > 59 || second > 59 {
        return Err(QueryError::OutOfRange {
            detail: format!("date/time field value out of range: \"{text}\""),
        });
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    Ok(days * MICROS_PER_DAY + seconds * 1_000_000 + fraction)
}

fn digits_of(rest: &mut &str, width: usize) -> Option<i64> {
    let length = rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at_checked(length)?;
    *rest = after;
    digits.parse().ok()
}

fn named_month(rest: &mut &str, whole: bool) -> Option<i64> {
    let at = MONTHS.iter().position(|name| {
        let wanted = if whole { name.len() } else { 3 };
        let head = rest.get(..wanted);
        head.zip(name.get(..wanted))
            .is_some_and(|(head, name)| head.eq_ignore_ascii_case(name))
    })?;
    let length = if whole { MONTHS.get(at)?.len() } else { 3 };
    *rest = rest.get(length..)?;
    i64::try_from(at + 1).ok()
}

fn number_format_error(pattern: char) -> QueryError {
    QueryError::unsupported(format!("the pattern {pattern} of to_char for a number"))
}

/// A number in a format of digits, point, groups, sign and fill mode.
///
/// # Errors
/// 0A000 for any other pattern.
pub(super) fn number(value: Numeric, format: &str) -> Result<String, QueryError> {
    let fill = format.starts_with("FM") || format.starts_with("fm");
    let body = if fill {
        format.get(2..).unwrap_or_default()
    } else {
        format
    };
    let upper = body.to_uppercase();
    let (whole, fraction) = match upper.find(['.', 'D']) {
        Some(at) => (
            upper.get(..at).unwrap_or_default(),
            upper.get(at + 1..).unwrap_or_default(),
        ),
        None => (upper.as_str(), ""),
    };
    let known = |sign: char| matches!(sign, '9' | '0' | ',' | 'G');
    if let Some(other) = whole.chars().chain(fraction.chars()).find(|sign| !known(*sign)) {
        return Err(number_format_error(other));
    }
    let places = fraction.chars().filter(|sign| matches!(sign, '9' | '0')).count();
    let scale = i8::try_from(places).unwrap_or(i8::MAX);
    let rounded = crate::text::numeric::rescale(value, 38, scale);
    let rounded = rounded.ok_or_else(|| QueryError::OutOfRange {
        detail: format!("{value} has more than 38 digits"),
    })?;
    let text = rounded.unscaled.unsigned_abs().to_string();
    let text = format!("{text:0>width$}", width = places + 1);
    let (digits, decimals) = text.split_at(text.len() - places);
    let digits = if digits == "0" { "" } else { digits };
    let room = whole.chars().filter(|sign| matches!(sign, '9' | '0')).count();
    let overflows = digits.len() > room;
    let mut out = before_point(digits, whole, overflows);
    let zeros = whole.contains('0');
    if digits.is_empty() && places == 0 && !zeros && out.ends_with(' ') {
        out.pop();
        out.push('0');
    }
    let sign = if rounded.unscaled < 0 { '-' } else { ' ' };
    let at = out.find(|sign| sign != ' ').unwrap_or(out.len());
    out.insert(at, sign);
    if places > 0 {
        out.push('.');
        let shown = if overflows {
            "#".repeat(places)
        } else {
            decimals.to_owned()
        };
        let kept = if fill {
            let least = fraction.rfind('0').map_or(0, |last| last + 1);
            let trimmed = shown.trim_end_matches('0').len().max(least);
            shown.get(..trimmed).unwrap_or_default().to_owned()
        } else {
            shown
        };
        out.push_str(&kept);
    }
    Ok(if fill { out.trim_start().to_owned() } else { out })
}

/// The digits before the point in their places: blanks before the first, groups, and signs for too many digits.
fn before_point(digits: &str, whole: &str, overflows: bool) -> String {
    let room = whole.chars().filter(|sign| matches!(sign, '9' | '0')).count();
    let blanks = std::iter::repeat_n(' ', room.saturating_sub(digits.len()));
    let mut taken = blanks.chain(digits.chars());
    let mut out = String::new();
    let (mut zeros, mut begun) = (false, false);
    for sign in whole.chars() {
        if matches!(sign, ',' | 'G') {
            out.push(if begun { ',' } else { ' ' });
            continue;
        }
        zeros |= sign == '0';
        match taken.next() {
            _ if overflows => out.push('#'),
            Some(' ') if zeros => out.push('0'),
            Some(digit) => out.push(digit),
            None => {}
        }
        begun = begun || out.chars().last().is_some_and(|last| last != ' ');
    }
    out
}
