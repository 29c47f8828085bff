//! How two bounds of a column compare: the text of statistics, under the column's DuckLake type, as DuckLake compares it when
//! it merges statistics. Numbers, times and booleans compare as values, everything else by its bytes. What cannot be read
//! for sure is not compared at all.

use std::cmp::Ordering;

use moraine_inline::text::days_from_civil;

const NANOS_OF_SECOND: i128 = 1_000_000_000;
const NANOS_OF_DAY: i128 = 86_400 * NANOS_OF_SECOND;
/// Digits of a fraction of a second that are told apart.
const FRACTION_DIGITS_MAX: usize = 9;
/// Digits of the widest decimal.
const DECIMAL_DIGITS_MAX: usize = 38;

/// The order of two bounds of a column of this type; `None` where it is not sure.
pub(crate) fn compare(column_type: &str, left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    match column_type {
        "boolean" => Some(boolean(left)?.cmp(&boolean(right)?)),
        "int8" | "int16" | "int32" | "int64" | "int128" | "uint8" | "uint16" | "uint32" | "uint64" => {
            Some(left.parse::<i128>().ok()?.cmp(&right.parse().ok()?))
        }
        "uint128" => Some(left.parse::<u128>().ok()?.cmp(&right.parse().ok()?)),
        "float32" => float(
            f64::from(left.parse::<f32>().ok()?),
            f64::from(right.parse::<f32>().ok()?),
        ),
        "float64" => float(left.parse().ok()?, right.parse().ok()?),
        "date" => Some(date(left)?.cmp(&date(right)?)),
        "time" | "time_ns" => Some(time(left)?.cmp(&time(right)?)),
        "timestamp" | "timestamp_us" | "timestamp_ms" | "timestamp_ns" | "timestamp_s" => {
            Some(timestamp(left)?.cmp(&timestamp(right)?))
        }
        "timestamptz" => Some(timestamp_with_zone(left)?.cmp(&timestamp_with_zone(right)?)),
        "timetz" => time_with_zone(left, right),
        "varchar" | "json" | "blob" | "uuid" | "interval" => Some(left.as_bytes().cmp(right.as_bytes())),
        decimal if decimal.starts_with("decimal(") => {
            let scale = decimal
                .strip_suffix(')')?
                .rsplit(',')
                .next()?
                .trim()
                .parse()
                .ok()?;
            Some(scaled(left, scale)?.cmp(&scaled(right, scale)?))
        }
        _ => None,
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Numbers only: where NaN stands is not asked, because bounds that include it are none.
fn float(left: f64, right: f64) -> Option<Ordering> {
    left.partial_cmp(&right)
}

/// A decimal of `scale` digits after the point, as an integer of the last of them.
fn scaled(text: &str, scale: usize) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let written = whole.len() + fraction.len();
    let readable = written > 0 && fraction.len() <= scale && whole.len() + scale <= DECIMAL_DIGITS_MAX + 1;
    if !readable || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let mut all = String::with_capacity(whole.len() + scale);
    all.push_str(whole);
    all.push_str(fraction);
    all.extend(std::iter::repeat_n('0', scale - fraction.len()));
    let value: i128 = if all.is_empty() { 0 } else { all.parse().ok()? };
    Some(if negative { -value } else { value })
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A date before or after all others, or the days from 1970-01-01 to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Before,
    At(i128),
    After,
}

fn infinity(text: &str) -> Option<Point> {
    match text {
        "-infinity" => Some(Point::Before),
        "infinity" => Some(Point::After),
        _ => None,
    }
}

fn date(text: &str) -> Option<Point> {
    infinity(text).or_else(|| Some(Point::At(i128::from(days(text)?))))
}

/// Days from 1970-01-01 to `YYYY-MM-DD`, in the Gregorian calendar; years before the first end in ` (BC)`.
fn days(text: &str) -> Option<i64> {
    let (text, before_christ) = match text.strip_suffix(" (BC)") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let mut parts = text.split('-');
    let (year, month, day) = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        number(parts.next()?)?,
    );
    if parts.next().is_some() {
        return None;
    }
    let year = if before_christ {
        1_i64.checked_sub(year)?
    } else {
        year
    };
    days_from_civil(year, month, day)
}

fn number(text: &str) -> Option<i64> {
    if text.is_empty() || !are_digits(text) {
        return None;
    }
    text.parse().ok()
}

/// Nanoseconds from midnight to `HH:MM:SS[.fraction]`.
fn time(text: &str) -> Option<i128> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        number(parts.next()?)?,
    );
    let in_range = hours <= 24 && minutes < 60 && seconds < 60;
    if parts.next().is_some() || !in_range || fraction.len() > FRACTION_DIGITS_MAX || !are_digits(fraction) {
        return None;
    }
    let nanos: i128 = format!("{fraction:0<FRACTION_DIGITS_MAX$}").parse().ok()?;
    Some(i128::from(hours * 3600 + minutes * 60 + seconds) * NANOS_OF_SECOND + nanos)
}

/// `date time`, in nanoseconds from 1970-01-01.
fn timestamp(text: &str) -> Option<Point> {
    if let Some(infinite) = infinity(text) {
        return Some(infinite);
    }
    let (text, before_christ) = match text.strip_suffix(" (BC)") {
        Some(text) => (text, " (BC)"),
        None => (text, ""),
    };
    let (day, clock) = text.split_once(' ')?;
    let days = days(&format!("{day}{before_christ}"))?;
    Some(Point::At(i128::from(days) * NANOS_OF_DAY + time(clock)?))
}

/// `date time+HH[:MM[:SS]]`, in nanoseconds from 1970-01-01 UTC.
fn timestamp_with_zone(text: &str) -> Option<Point> {
    if let Some(infinite) = infinity(text) {
        return Some(infinite);
    }
    let (text, before_christ) = match text.strip_suffix(" (BC)") {
        Some(text) => (text, " (BC)"),
        None => (text, ""),
    };
    let clock = text.find(' ')?;
    let sign = clock + text.get(clock..)?.find(['+', '-'])?;
    let (local, zone) = text.split_at(sign);
    match timestamp(&format!("{local}{before_christ}"))? {
        Point::At(nanos) => Some(Point::At(nanos - offset(zone)?)),
        infinite => Some(infinite),
    }
}

/// `+HH[:MM[:SS]]` in nanoseconds.
fn offset(zone: &str) -> Option<i128> {
    let (sign, zone) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(zone), _) => (1, zone),
        (_, Some(zone)) => (-1, zone),
        _ => return None,
    };
    let mut seconds = 0;
    let mut unit = 3600;
    for part in zone.split(':') {
        seconds += number(part)? * unit;
        unit /= 60;
    }
    (unit < 3600).then_some(i128::from(sign * seconds) * NANOS_OF_SECOND)
}

/// Times of one zone compare as times; how DuckDB orders those of several is not asked.
fn time_with_zone(left: &str, right: &str) -> Option<Ordering> {
    let split = |text: &str| {
        let sign = text.find(['+', '-'])?;
        let (clock, zone) = text.split_at(sign);
        Some((time(clock)?, offset(zone)?))
    };
    let ((left, left_zone), (right, right_zone)) = (split(left)?, split(right)?);
    (left_zone == right_zone).then(|| left.cmp(&right))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each type, bounds in ascending order.
    const ASCENDING: [(&str, &[&str]); 27] = [
        ("boolean", &["false", "true"]),
        ("int8", &["-128", "-9", "5", "10", "127"]),
        ("int16", &["-32768", "9", "10"]),
        ("int32", &["-10", "-9", "9", "10"]),
        ("int64", &["-9223372036854775808", "-1", "9", "10"]),
        ("int128", &["-170141183460469231731687303715884105728", "9", "10"]),
        ("uint8", &["9", "10", "255"]),
        ("uint16", &["9", "10"]),
        ("uint32", &["9", "10"]),
        ("uint64", &["9", "18446744073709551615"]),
        ("uint128", &["9", "340282366920938463463374607431768211455"]),
        (
            "float32",
            &["-inf", "-1e30", "-2.5", "9.0", "10.0", "1e30", "inf"],
        ),
        (
            "float64",
            &["-inf", "-1e300", "-2.5", "9.0", "10.0", "1e300", "inf"],
        ),
        (
            "decimal(5,2)",
            &["-999.99", "-10.00", "-9.50", "-0.01", "0.00", "9.5", "10.00"],
        ),
        (
            "decimal(38,0)",
            &["-99999999999999999999999999999999999999", "9", "10"],
        ),
        (
            "date",
            &[
                "-infinity",
                "5877642-06-25 (BC)",
                "0045-03-15 (BC)",
                "0044-03-15 (BC)",
                "0001-01-01",
                "1969-12-31",
                "1970-01-01",
                "2000-02-29",
                "2000-03-01",
                "9999-12-31",
                "10000-01-01",
                "infinity",
            ],
        ),
        (
            "time",
            &[
                "00:00:00",
                "00:00:00.000001",
                "09:59:59.5",
                "09:59:59.51",
                "23:59:59.999999",
                "24:00:00",
            ],
        ),
        (
            "time_ns",
            &["00:00:00", "00:00:00.000000001", "23:59:59.999999999"],
        ),
        ("timetz", &["09:00:00+00", "10:00:00+00"]),
        (
            "timestamp",
            &[
                "-infinity",
                "0044-03-15 12:00:00 (BC)",
                "2020-01-01 00:00:00",
                "2020-01-01 00:00:00.5",
                "infinity",
            ],
        ),
        ("timestamp_s", &["2020-01-01 09:00:00", "2020-01-01 10:00:00"]),
        (
            "timestamp_ms",
            &["2020-01-01 09:00:00.1", "2020-01-01 09:00:00.11"],
        ),
        (
            "timestamp_ns",
            &["2020-01-01 09:00:00.000000001", "10020-01-01 09:00:00"],
        ),
        (
            "timestamptz",
            &[
                "2020-01-01 01:00:00+02",
                "2020-01-01 00:00:00+00",
                "2020-01-01 00:00:00-05:30",
                "2020-01-02 00:00:00+00",
            ],
        ),
        ("varchar", &["", "10", "9", "Z", "a", "ä"]),
        (
            "uuid",
            &[
                "00000000-0000-0000-0000-000000000001",
                "ffffffff-0000-0000-0000-000000000000",
            ],
        ),
        ("interval", &["10 days", "9 days"]),
    ];

    #[test]
    fn bounds_of_every_type_compare_as_its_values_do() {
        for (column_type, ascending) in ASCENDING {
            for (at, left) in ascending.iter().enumerate() {
                for (other, right) in ascending.iter().enumerate() {
                    let found = compare(column_type, left, right);
                    assert_eq!(found, Some(at.cmp(&other)), "{column_type}: {left} and {right}");
                }
            }
        }
        assert_eq!(compare("float64", "1.0", "1"), Some(Ordering::Equal));
        assert_eq!(compare("decimal(5,2)", "1.5", "1.50"), Some(Ordering::Equal));
        assert_eq!(compare("date", "2020-01-01", "2020-1-1"), Some(Ordering::Equal));
    }

    #[test]
    fn what_is_not_sure_is_not_compared() {
        for (column_type, left, right) in [
            ("int32", "1", "one"),
            ("int32", "1", "1.5"),
            ("float64", "nan", "1"),
            ("boolean", "true", "maybe"),
            ("decimal(5,2)", "1.234", "1"),
            ("decimal(5,2)", "1e3", "1"),
            ("decimal(5", "2", "1"),
            ("date", "2020-13-01", "2020-01-01"),
            ("date", "yesterday", "2020-01-01"),
            ("time", "25:00:00", "01:00:00"),
            ("time", "1:00", "01:00:00"),
            ("timestamp", "2020-01-01", "2020-01-02 00:00:00"),
            ("timestamptz", "2020-01-01 00:00:00", "2020-01-01 00:00:01+00"),
            ("timetz", "09:00:00+00", "09:00:00+01"),
            ("geometry", "a", "b"),
            ("variant", "a", "b"),
            ("something new", "a", "b"),
        ] {
            assert_eq!(
                compare(column_type, left, right),
                None,
                "{column_type}: {left} and {right}"
            );
        }
    }
}
