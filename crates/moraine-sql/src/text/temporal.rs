//! Dates, times and intervals as text, in the ISO forms of Postgres and the plain form DuckDB writes intervals in.
//! Days count from 1970-01-01, times in microseconds; the infinities are the ends of the integer ranges.

use moraine_tables::text::{civil_from_days, days_from_civil, render_time};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
/// Microseconds of a day of 24 hours.
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
/// Days from 1970-01-01 to 2000-01-01, where Postgres's binary dates begin.
pub const POSTGRES_EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const POSTGRES_EPOCH_MICROS: i64 = POSTGRES_EPOCH_DAYS as i64 * MICROS_PER_DAY;
/// The largest year any of the types can name; longer digits are no year.
const YEAR_MAX: i64 = 300_000;
/// The largest offset from UTC Postgres accepts.
const OFFSET_SECONDS_MAX: i32 = 16 * 3_600;

/// Reads `YYYY-MM-DD`, optionally followed by `BC` or `(BC)`, `infinity` and `-infinity`.
pub fn parse_date(text: &str) -> Option<i32> {
    match text.trim() {
        "infinity" => return Some(i32::MAX),
        "-infinity" => return Some(i32::MIN),
        _ => {}
    }
    let (text, before_christ) = strip_era(text.trim());
    let mut parts = text.splitn(3, '-');
    let year = digits(parts.next()?, YEAR_MAX)?;
    let month = digits(parts.next()?, 12)?;
    let day = digits(parts.next()?, 31)?;
    let year = if before_christ { 1 - year } else { year };
    i32::try_from(days_from_civil(year, month, day)?).ok()
}

fn strip_era(text: &str) -> (&str, bool) {
    for suffix in ["(BC)", "BC"] {
        if let Some(rest) = text.strip_suffix(suffix) {
            return (rest.trim_end(), true);
        }
    }
    (text, false)
}

fn digits(text: &str, max: i64) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse::<i64>().ok().filter(|value| *value <= max)
}

/// Reads `HH:MM[:SS[.ffffff]]` as microseconds since midnight; `24:00:00` is the end of the day.
pub fn parse_time(text: &str) -> Option<i64> {
    let mut parts = text.trim().splitn(3, ':');
    let hours = digits(parts.next()?, 24)?;
    let minutes = digits(parts.next()?, 59)?;
    let seconds = match parts.next() {
        Some(seconds) => parse_seconds(seconds)?,
        None => 0,
    };
    let micros = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE + seconds;
    (micros <= MICROS_PER_DAY && seconds <= 60 * MICROS_PER_SECOND).then_some(micros)
}

/// Seconds with a fraction, as microseconds, rounded half up.
fn parse_seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = digits(whole, i64::MAX / MICROS_PER_SECOND - 1)?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut micros = 0i64;
    for place in 0..6 {
        micros = micros * 10
            + fraction
                .as_bytes()
                .get(place)
                .map_or(0, |byte| i64::from(byte - b'0'));
    }
    if fraction.as_bytes().get(6).is_some_and(|byte| *byte >= b'5') {
        micros += 1;
    }
    Some(whole * MICROS_PER_SECOND + micros)
}

/// Splits a trailing UTC offset (`Z`, `UTC`, `+HH`, `+HH:MM`, `+HHMM`, `+HH:MM:SS`) off a time; seconds east.
fn split_offset(text: &str) -> Option<(&str, Option<i32>)> {
    let text = text.trim();
    for zulu in ["Z", "z", " UTC", " utc", "UTC"] {
        if let Some(rest) = text.strip_suffix(zulu) {
            return Some((rest, Some(0)));
        }
    }
    let Some(at) = text.rfind(['+', '-']) else {
        return Some((text, None));
    };
    let (time, offset) = text.split_at(at);
    let (sign, digits_of) = offset.split_at(1);
    let numbers: Vec<i32> = if digits_of.contains(':') {
        digits_of
            .split(':')
            .map(|part| digits(part, 59).and_then(|n| i32::try_from(n).ok()))
            .collect::<Option<_>>()?
    } else {
        let (hours, minutes) = digits_of.split_at_checked(2).unwrap_or((digits_of, ""));
        let minutes = if minutes.is_empty() {
            Some(0)
        } else {
            digits(minutes, 59)
        };
        vec![
            i32::try_from(digits(hours, 16)?).ok()?,
            i32::try_from(minutes?).ok()?,
        ]
    };
    let unit = [3_600, 60, 1];
    let seconds: i32 = numbers.iter().zip(unit).map(|(number, unit)| number * unit).sum();
    let seconds = if sign == "-" { -seconds } else { seconds };
    (numbers.len() <= 3 && seconds.abs() < OFFSET_SECONDS_MAX).then_some((time.trim_end(), Some(seconds)))
}

/// Reads a time with an offset from UTC (none means UTC): microseconds since midnight and seconds east.
pub fn parse_time_tz(text: &str) -> Option<(i64, i32)> {
    let (time, offset) = split_offset(text)?;
    Some((parse_time(time)?, offset.unwrap_or(0)))
}

/// Reads a timestamp: microseconds since 1970 and the offset it carried, if any.
pub fn parse_timestamp(text: &str) -> Option<(i64, Option<i32>)> {
    let text = text.trim();
    match text {
        "infinity" => return Some((i64::MAX, None)),
        "-infinity" => return Some((i64::MIN, None)),
        _ => {}
    }
    let (text, before_christ) = strip_era(text);
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, "00:00:00"),
    };
    let days = if before_christ {
        parse_date(&format!("{date} BC"))
    } else {
        parse_date(date)
    }?;
    let (time, offset) = split_offset(time)?;
    let micros = i64::from(days)
        .checked_mul(MICROS_PER_DAY)?
        .checked_add(parse_time(time)?)?;
    Some((micros, offset))
}

/// The same instant in UTC for a timestamp that may carry an offset.
pub fn parse_timestamp_tz(text: &str) -> Option<i64> {
    let (micros, offset) = parse_timestamp(text)?;
    if micros == i64::MAX || micros == i64::MIN {
        return Some(micros);
    }
    micros.checked_sub(i64::from(offset.unwrap_or(0)) * MICROS_PER_SECOND)
}

/// Reads an interval: number and unit pairs (`1 months 2 days 3000000 microseconds`, `1 year 2 mons`) with an optional
/// clock part (`-04:05:06.7`). Months, days, microseconds.
pub fn parse_interval(text: &str) -> Option<(i32, i32, i64)> {
    let (mut months, mut days, mut micros) = (0i64, 0i64, 0i64);
    let mut words = text.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            micros = micros.checked_add(parse_clock(word)?)?;
            continue;
        }
        let (negative, number) = match word.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, word.strip_prefix('+').unwrap_or(word)),
        };
        let sign = if negative { -1 } else { 1 };
        if let Some((years, rest)) = number.split_once('-') {
            // Years and months, as SQL writes them.
            let of = digits(years, i64::MAX / 12)? * 12 + digits(rest, 11)?;
            months = months.checked_add(sign * of)?;
            continue;
        }
        let unit = words.next()?.to_ascii_lowercase();
        if matches!(unit.as_str(), "second" | "seconds" | "sec" | "secs") {
            micros = micros.checked_add(sign * parse_seconds(number)?)?;
            continue;
        }
        let amount = sign * digits(number, i64::MAX)?;
        let (field, factor): (&mut i64, i64) = match unit.as_str() {
            "year" | "years" => (&mut months, 12),
            "month" | "months" | "mon" | "mons" => (&mut months, 1),
            "week" | "weeks" => (&mut days, 7),
            "day" | "days" => (&mut days, 1),
            "hour" | "hours" => (&mut micros, MICROS_PER_HOUR),
            "minute" | "minutes" | "min" | "mins" => (&mut micros, MICROS_PER_MINUTE),
            "millisecond" | "milliseconds" | "msec" | "msecs" => (&mut micros, 1_000),
            "microsecond" | "microseconds" | "usec" | "usecs" => (&mut micros, 1),
            _ => return None,
        };
        *field = field.checked_add(amount.checked_mul(factor)?)?;
    }
    Some((i32::try_from(months).ok()?, i32::try_from(days).ok()?, micros))
}

/// `[-]H..H:MM[:SS[.f]]`, where the hours may exceed a day.
fn parse_clock(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = text.splitn(3, ':');
    let hours = digits(parts.next()?, i64::MAX / MICROS_PER_HOUR - 1)?;
    let minutes = digits(parts.next()?, 59)?;
    let seconds = parts.next().map_or(Some(0), parse_seconds)?;
    Some(sign * (hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE + seconds))
}

/// `YYYY-MM-DD`, with ` BC` before year 1.
pub fn format_date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => {
            let (date, era) = date_and_era(i64::from(days));
            date + era
        }
    }
}

fn date_and_era(days: i64) -> (String, &'static str) {
    let (year, month, day) = civil_from_days(days);
    if year > 0 {
        (format!("{year:04}-{month:02}-{day:02}"), "")
    } else {
        (format!("{:04}-{month:02}-{day:02}", 1 - year), " BC")
    }
}

/// An ISO timestamp; `zone` is appended (`+00` for instants).
pub fn format_timestamp(micros: i64, zone: &str) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => {
            let (date, era) = date_and_era(micros.div_euclid(MICROS_PER_DAY));
            format!(
                "{date} {}{zone}{era}",
                render_time(micros.rem_euclid(MICROS_PER_DAY))
            )
        }
    }
}

/// Postgres's interval output: `1 year 2 mons 3 days 04:05:06.7`. What is positive after something negative says so.
pub fn format_interval(months: i32, days: i32, micros: i64) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut was_negative = false;
    let mut unit = |amount: i64, one: &str, many: &str| {
        if amount != 0 {
            let sign = if was_negative && amount > 0 { "+" } else { "" };
            parts.push(format!("{sign}{amount} {}", if amount == 1 { one } else { many }));
            was_negative = amount < 0;
        }
    };
    unit(i64::from(months / 12), "year", "years");
    unit(i64::from(months % 12), "mon", "mons");
    unit(i64::from(days), "day", "days");
    if micros != 0 || parts.is_empty() {
        let sign = match micros {
            ..0 => "-",
            _ if was_negative => "+",
            _ => "",
        };
        let micros = i64::try_from(micros.unsigned_abs()).unwrap_or(i64::MAX);
        parts.push(format!("{sign}{}", render_time(micros)));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use moraine_tables::text::render_time_tz;

    #[test]
    fn dates_and_timestamps_round_trip() {
        for text in [
            "1970-01-01",
            "2024-02-29",
            "0001-01-01",
            "0044-03-15 BC",
            "9999-12-31",
            "infinity",
        ] {
            assert_eq!(format_date(parse_date(text).unwrap()), text);
        }
        for bad in ["2023-02-29", "2024-13-01", "2024-00-01", "2024-1", "x", ""] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
        for text in [
            "2024-01-15 12:30:45.5",
            "1969-12-31 23:59:59.999999",
            "0044-03-15 00:00:00 BC",
        ] {
            assert_eq!(format_timestamp(parse_timestamp(text).unwrap().0, ""), text);
        }
        assert_eq!(
            parse_timestamp_tz("2000-01-01 02:00:00+02"),
            Some(POSTGRES_EPOCH_MICROS)
        );
        assert_eq!(
            parse_timestamp_tz("1999-12-31T18:30:00-05:30"),
            Some(POSTGRES_EPOCH_MICROS)
        );
        assert_eq!(
            parse_timestamp_tz("2000-01-01 00:00:00Z"),
            Some(POSTGRES_EPOCH_MICROS)
        );
    }

    #[test]
    fn intervals_are_read_in_both_spellings() {
        assert_eq!(
            parse_interval("1 months 2 days 3000000 microseconds"),
            Some((1, 2, 3_000_000))
        );
        assert_eq!(
            parse_interval("1 year 2 mons -3 days -04:05:06.5"),
            Some((14, -3, -14_706_500_000))
        );
        assert_eq!(parse_interval("1 fortnight"), None);
        assert_eq!(
            format_interval(14, -3, -14_706_500_000),
            "1 year 2 mons -3 days -04:05:06.5"
        );
        assert_eq!(format_interval(0, 0, 0), "00:00:00");
        assert_eq!(format_interval(-3, 5, 0), "-3 mons +5 days");
        assert_eq!(format_interval(1, -1, 3_600_000_000), "1 mon -1 days +01:00:00");
        assert_eq!(
            parse_interval("-1 mons -5 days +03:00:00"),
            Some((-1, -5, 10_800_000_000))
        );
    }

    #[test]
    fn times_know_their_bounds() {
        assert_eq!(parse_time("24:00:00"), Some(MICROS_PER_DAY));
        assert_eq!(parse_time("24:00:01"), None);
        assert_eq!(
            parse_time_tz("12:00:00-15:59:59"),
            Some((43_200_000_000, -57_599))
        );
        assert_eq!(render_time_tz(43_200_000_000, -57_599), "12:00:00-15:59:59");
    }
}
