//! Dates, times and intervals taken apart, put together and written in a format.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::text::{civil_from_days, days_from_civil};
use moraine_tables::{ColumnType, Numeric, Value};

use super::formats;
use super::row::{function, whole};
use super::session::SessionFacts;
use crate::error::{InputError, QueryError};
use crate::text::temporal::MICROS_PER_DAY;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
/// Seconds of the year that Postgres counts an interval's years with.
const YEAR_SECONDS: i64 = 31_557_600;
const MONTH_SECONDS: i64 = 30 * 86_400;

/// The parts a moment has, with the digits after the point of each. Source: PostgreSQL, section 9.9.1.
const PARTS: &[(&str, i8)] = &[
    ("century", 0),
    ("day", 0),
    ("decade", 0),
    ("dow", 0),
    ("doy", 0),
    ("epoch", 6),
    ("hour", 0),
    ("isodow", 0),
    ("isoyear", 0),
    ("microseconds", 0),
    ("millennium", 0),
    ("milliseconds", 3),
    ("minute", 0),
    ("month", 0),
    ("quarter", 0),
    ("second", 6),
    ("timezone", 0),
    ("timezone_hour", 0),
    ("timezone_minute", 0),
    ("week", 0),
    ("year", 0),
];

/// The name of the function that takes this part out of a moment; `None` for a part that no moment has.
pub(crate) fn part_function(part: &str, exact: bool) -> Option<String> {
    let lower = part.trim().to_lowercase();
    let singular = match lower.as_str() {
        "seconds" | "minutes" | "hours" | "days" | "weeks" | "months" | "quarters" | "years" | "decades" => {
            lower.trim_end_matches('s')
        }
        other => other,
    };
    let (known, _) = PARTS.iter().find(|(known, _)| *known == singular)?;
    let prefix = if exact { "extract" } else { "date_part" };
    Some(format!("{prefix}_{known}"))
}

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = Vec::new();
    for (part, scale) in PARTS {
        let result = ColumnType::Numeric {
            precision: 38,
            scale: *scale,
        };
        functions.push(function(
            format!("extract_{part}"),
            result,
            (1, 1),
            move |arguments| {
                let found = taken_out(part, arguments.first())?;
                Ok(found.map_or(Value::Null, |micros| {
                    let divisor = 10_i128.pow(6 - u32::try_from(*scale).unwrap_or_default());
                    Value::Numeric(Numeric {
                        unscaled: micros / divisor,
                        scale: *scale,
                    })
                }))
            },
        ));
        functions.push(function(
            format!("date_part_{part}"),
            ColumnType::Float64,
            (1, 1),
            move |arguments| {
                let found = taken_out(part, arguments.first())?;
                Ok(found.map_or(Value::Null, |micros| {
                    let digits = Numeric {
                        unscaled: micros,
                        scale: 6,
                    };
                    Value::Float64(digits.to_string().parse().unwrap_or(f64::NAN))
                }))
            },
        ));
    }
    functions.push(function("make_date", ColumnType::Date, (3, 3), |arguments| {
        let parts = (
            whole(arguments.first()),
            whole(arguments.get(1)),
            whole(arguments.get(2)),
        );
        let (Some(year), Some(month), Some(day)) = parts else {
            return Ok(Value::Null);
        };
        let days = days_from_civil(year, month, day).and_then(|days| i32::try_from(days).ok());
        days.map(Value::Date).ok_or_else(|| {
            let detail = format!("date field value out of range: {year}-{month:02}-{day:02}");
            QueryError::OutOfRange { detail }
        })
    }));
    functions.extend(justified());
    functions.extend(written());
    functions
}

fn justified() -> Vec<Arc<ScalarUDF>> {
    let justify = |name: &'static str, in_days: bool, in_hours: bool| {
        function(name, ColumnType::Interval, (1, 1), move |arguments| {
            let Some(Value::Interval { months, days, micros }) = arguments.first() else {
                return Ok(Value::Null);
            };
            let (mut months, mut days, mut micros) = (i64::from(*months), i64::from(*days), *micros);
            if in_hours {
                days += micros / MICROS_PER_DAY;
                micros %= MICROS_PER_DAY;
            }
            if in_days {
                months += days / 30;
                days %= 30;
            }
            Ok(Value::Interval {
                months: i32::try_from(months).unwrap_or(i32::MAX),
                days: i32::try_from(days).unwrap_or(i32::MAX),
                micros,
            })
        })
    };
    vec![
        justify("justify_days", true, false),
        justify("justify_hours", false, true),
    ]
}

fn written() -> Vec<Arc<ScalarUDF>> {
    let format = |arguments: &[Value]| match arguments.get(1) {
        Some(Value::Text(format)) => Some(format.to_string()),
        _ => None,
    };
    vec![
        function("to_char", ColumnType::Text, (2, 2), move |arguments| {
            let Some(format) = format(arguments) else {
                return Ok(Value::Null);
            };
            Ok(match arguments.first() {
                None | Some(Value::Null) => Value::Null,
                Some(moment @ (Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_))) => {
                    let micros = instant(moment).unwrap_or_default();
                    Value::text(formats::moment(micros, &format)?)
                }
                Some(number) => match crate::text::format(number).and_then(|text| Numeric::parse(&text)) {
                    Some(number) => Value::text(formats::number(number, &format)?),
                    None => {
                        return Err(QueryError::unsupported(format!(
                            "to_char of {}",
                            number.type_name()
                        )));
                    }
                },
            })
        }),
        function(
            "to_timestamp",
            ColumnType::TimestampTz,
            (1, 2),
            move |arguments| {
                if let (Some(Value::Text(text)), Some(format)) = (arguments.first(), format(arguments)) {
                    return formats::read(text, &format).map(Value::TimestampTz);
                }
                let Some(seconds) = arguments.first().and_then(crate::text::format) else {
                    return Ok(Value::Null);
                };
                let micros = crate::text::numeric::parse(&format!("{seconds}e6"), 38, 0).ok();
                let micros = micros.and_then(|micros| i64::try_from(micros.unscaled).ok());
                micros.map(Value::TimestampTz).ok_or_else(|| {
                    let detail = format!("timestamp out of range: \"{seconds}\"");
                    QueryError::OutOfRange { detail }
                })
            },
        ),
        function("to_date", ColumnType::Date, (2, 2), move |arguments| {
            let (Some(Value::Text(text)), Some(format)) = (arguments.first(), format(arguments)) else {
                return Ok(Value::Null);
            };
            let micros = formats::read(text, &format)?;
            let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY));
            days.map(Value::Date).map_err(|_| {
                InputError::Range {
                    type_name: "date".to_owned(),
                    text: text.to_string(),
                }
                .into()
            })
        }),
    ]
}

/// `age`, which of one moment means the age at the beginning of today.
pub(super) fn of_session(facts: &Arc<SessionFacts>) -> Vec<Arc<ScalarUDF>> {
    let today = facts.now.div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY;
    vec![function("age", ColumnType::Interval, (1, 2), move |arguments| {
        let first = arguments.first().and_then(instant);
        let (later, earlier) = match arguments.len() {
            1 => (Some(today), first),
            _ => (first, arguments.get(1).and_then(instant)),
        };
        Ok(match (later, earlier) {
            (Some(later), Some(earlier)) => age(later, earlier),
            _ => Value::Null,
        })
    })]
}

/// The length of an interval by which intervals compare: months have thirty days, days twenty-four hours. Source:
/// PostgreSQL, `interval_cmp_value`.
pub(crate) fn interval_length() -> Arc<ScalarUDF> {
    let result = ColumnType::Numeric {
        precision: 38,
        scale: 0,
    };
    function("interval_length", result, (1, 1), |arguments| {
        Ok(match arguments.first() {
            Some(Value::Interval { months, days, micros }) => {
                let days = i128::from(*months) * 30 + i128::from(*days);
                Value::Numeric(Numeric {
                    unscaled: days * i128::from(MICROS_PER_DAY) + i128::from(*micros),
                    scale: 0,
                })
            }
            _ => Value::Null,
        })
    })
}

/// `interval * number`.
pub(crate) fn interval_times() -> Arc<ScalarUDF> {
    function("interval_times", ColumnType::Interval, (2, 2), |arguments| {
        scaled(arguments, Ok)
    })
}

/// `interval / number`.
pub(crate) fn interval_over() -> Arc<ScalarUDF> {
    function("interval_over", ColumnType::Interval, (2, 2), |arguments| {
        scaled(arguments, |divisor| {
            if divisor == 0.0 {
                return Err(QueryError::DivisionByZero);
            }
            Ok(1.0 / divisor)
        })
    })
}

/// An interval times a factor; fractions of months go into days and fractions of days into the clock. Source: PostgreSQL,
/// `interval_mul`.
fn scaled(arguments: &[Value], factor: impl Fn(f64) -> Result<f64, QueryError>) -> Result<Value, QueryError> {
    let [Value::Interval { months, days, micros }, Value::Float64(number)] = arguments else {
        return Ok(Value::Null);
    };
    let factor = factor(*number)?;
    let too_large = || QueryError::OutOfRange {
        detail: "interval out of range".to_owned(),
    };
    let all_months = f64::from(*months) * factor;
    let all_days = f64::from(*days) * factor + (all_months - all_months.trunc()) * 30.0;
    // Rounded to a millionth, because a fraction of a month is seldom exact.
    let all_days = (all_days * 1e6).round() / 1e6;
    let day_micros = (all_days - all_days.trunc()) * 86_400e6;
    let clock = crate::text::format(&Value::Int64(*micros)).and_then(|text| text.parse::<f64>().ok());
    let all_micros = (clock.unwrap_or_default() * factor + day_micros).round();
    let whole = |value: f64| format!("{:.0}", value.trunc());
    Ok(Value::Interval {
        months: whole(all_months).parse().map_err(|_| too_large())?,
        days: whole(all_days).parse().map_err(|_| too_large())?,
        micros: whole(all_micros).parse().map_err(|_| too_large())?,
    })
}

/// Microseconds since 1970 of a moment.
fn instant(value: &Value) -> Option<i64> {
    match value {
        Value::Date(days) => Some(i64::from(*days) * MICROS_PER_DAY),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Some(*micros),
        _ => None,
    }
}

/// What lies between two moments in years, months and days. Source: PostgreSQL, `timestamp_age`.
fn age(later: i64, earlier: i64) -> Value {
    if later < earlier {
        return match age(earlier, later) {
            Value::Interval { months, days, micros } => Value::Interval {
                months: -months,
                days: -days,
                micros: -micros,
            },
            other => other,
        };
    }
    let split = |micros: i64| {
        let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
        (year * 12 + month - 1, day, micros.rem_euclid(MICROS_PER_DAY))
    };
    let ((later_month, later_day, later_time), (month, day, time)) = (split(later), split(earlier));
    let (mut months, mut days, mut micros) = (later_month - month, later_day - day, later_time - time);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        // The days of the month in which the earlier moment lies.
        let first =
            |of: i64| days_from_civil(of.div_euclid(12), of.rem_euclid(12) + 1, 1).unwrap_or_default();
        days += first(month + 1) - first(month);
        months -= 1;
    }
    Value::Interval {
        months: i32::try_from(months).unwrap_or(i32::MAX),
        days: i32::try_from(days).unwrap_or(i32::MAX),
        micros,
    }
}

/// A part of a moment in millionths; `None` for NULL.
fn taken_out(part: &str, value: Option<&Value>) -> Result<Option<i128>, QueryError> {
    const MILLION: i128 = 1_000_000;
    let refused = |kind: &str| {
        let detail = format!("unit \"{part}\" not supported for type {kind}");
        QueryError::unsupported(detail)
    };
    Ok(match value {
        None | Some(Value::Null) => None,
        Some(Value::Interval { months, days, micros }) => {
            Some(of_interval(part, *months, *days, *micros).ok_or_else(|| refused("interval"))?)
        }
        Some(Value::Time(micros)) => Some(of_clock(part, *micros).ok_or_else(|| refused("time"))?),
        Some(moment) => {
            let micros = instant(moment).ok_or_else(|| refused(moment.type_name()))?;
            let zoned = matches!(moment, Value::TimestampTz(_));
            if part.starts_with("timezone") {
                return if zoned {
                    Ok(Some(0))
                } else {
                    Err(refused("timestamp without time zone"))
                };
            }
            if let Some(found) = of_clock(part, micros.rem_euclid(MICROS_PER_DAY)).filter(|_| part != "epoch")
            {
                return if matches!(moment, Value::Date(_)) {
                    Err(refused("date"))
                } else {
                    Ok(Some(found))
                };
            }
            if part == "epoch" {
                return Ok(Some(i128::from(micros)));
            }
            let found = of_day(part, micros.div_euclid(MICROS_PER_DAY));
            found.map(|found| i128::from(found) * MILLION)
        }
    })
}

fn of_clock(part: &str, micros: i64) -> Option<i128> {
    const MILLION: i128 = 1_000_000;
    let seconds = i128::from(micros % MICROS_PER_MINUTE);
    Some(match part {
        "hour" => i128::from(micros / MICROS_PER_HOUR) * MILLION,
        "minute" => i128::from(micros / MICROS_PER_MINUTE % 60) * MILLION,
        "second" => seconds,
        "milliseconds" => seconds * 1_000,
        "microseconds" => seconds * MILLION,
        "epoch" => i128::from(micros),
        _ => return None,
    })
}

fn of_interval(part: &str, months: i32, days: i32, micros: i64) -> Option<i128> {
    const MILLION: i128 = 1_000_000;
    let (months, days) = (i64::from(months), i64::from(days));
    let whole = |value: i64| i128::from(value) * MILLION;
    Some(match part {
        "epoch" => {
            let seconds = months / 12 * YEAR_SECONDS + months % 12 * MONTH_SECONDS + days * 86_400;
            whole(seconds) + i128::from(micros)
        }
        "millennium" => whole(months / 12_000),
        "century" => whole(months / 1_200),
        "decade" => whole(months / 120),
        "year" => whole(months / 12),
        "quarter" => whole(months % 12 / 3 + 1),
        "month" => whole(months % 12),
        "day" => whole(days),
        other => return of_clock(other, micros),
    })
}

/// Day of the week, Sunday being 0.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// The year and week of ISO 8601.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    // The week's Thursday says whose it is.
    let thursday = days - (weekday(days) + 6) % 7 + 3;
    let (year, ..) = civil_from_days(thursday);
    let first = days_from_civil(year, 1, 1).unwrap_or_default();
    (year, (thursday - first) / 7 + 1)
}

/// The number of a day in its year, from 1.
pub(super) fn day_of_year(days: i64) -> i64 {
    let (year, ..) = civil_from_days(days);
    days - days_from_civil(year, 1, 1).unwrap_or_default() + 1
}

fn of_day(part: &str, days: i64) -> Option<i64> {
    let (year, month, day) = civil_from_days(days);
    // There is no year 0: the one before 1 is 1 BC.
    let shown = if year > 0 { year } else { year - 1 };
    let rounded_up = |span: i64| {
        if shown > 0 {
            (shown + span - 1) / span
        } else {
            -((span - 1 - (shown - 1)) / span)
        }
    };
    Some(match part {
        "year" => shown,
        "month" => month,
        "day" => day,
        "quarter" => (month - 1) / 3 + 1,
        "decade" => year.div_euclid(10),
        "century" => rounded_up(100),
        "millennium" => rounded_up(1_000),
        "dow" => weekday(days),
        "isodow" => (weekday(days) + 6) % 7 + 1,
        "doy" => day_of_year(days),
        "week" => iso_week(days).1,
        "isoyear" => iso_week(days).0,
        _ => return None,
    })
}
