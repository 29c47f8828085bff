//! Texts that DuckDB 1.5.5 wrote, each with the number behind it: `duckdb_texts.tsv` holds type, number and text; the texts
//! with time zone are those DuckLake inlined in a session whose zone was not UTC.

use arrow_buffer::i256;
use moraine_tables::text::{
    TimeUnit, civil_from_days, days_from_civil, parse_date, parse_interval, parse_time_tz, parse_timestamp,
    parse_timestamp_tz, parse_u64, parse_wide, render_date, render_interval, render_time, render_time_tz,
    render_timestamp, render_timestamp_tz, render_wide,
};
use proptest::prelude::*;

const TEXTS: &str = include_str!("duckdb_texts.tsv");

fn unit(data_type: &str) -> TimeUnit {
    match data_type {
        "timestamp_s" => TimeUnit::Second,
        "timestamp_ms" => TimeUnit::Millisecond,
        "timestamp" => TimeUnit::Microsecond,
        "timestamp_ns" => TimeUnit::Nanosecond,
        other => panic!("{other} is not a timestamp"),
    }
}

/// The number we read from the text.
fn read(data_type: &str, text: &str) -> Option<String> {
    match data_type {
        "date" => parse_date(text).map(|days| days.to_string()),
        "timestamptz" => parse_timestamp_tz(text).map(|ticks| ticks.to_string()),
        "uint64" => parse_u64(text).map(|number| number.to_string()),
        "int128" | "uint128" => parse_wide(text).map(|number| number.to_string()),
        "timetz" => parse_time_tz(text).map(|(micros, offset)| format!("{micros} {offset}")),
        timestamp => parse_timestamp(text, unit(timestamp)).map(|ticks| ticks.to_string()),
    }
}

/// The text we write for the number.
fn written(data_type: &str, number: &str) -> String {
    match data_type {
        "date" => render_date(number.parse().unwrap()),
        "timestamptz" => render_timestamp_tz(number.parse().unwrap()),
        "uint64" => number.parse::<u64>().unwrap().to_string(),
        "int128" | "uint128" => render_wide(i256::from_string(number).unwrap()),
        "timetz" => {
            let (micros, offset) = number.split_once(' ').unwrap();
            render_time_tz(micros.parse().unwrap(), offset.parse().unwrap())
        }
        timestamp => render_timestamp(number.parse().unwrap(), unit(timestamp)),
    }
}

#[test]
fn texts_are_byte_for_byte_duckdbs_own_and_read_back_to_the_same_number() {
    let mut count = 0;
    for line in TEXTS.lines() {
        let mut parts = line.split('\t');
        let (data_type, number, text) = (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap(),
        );
        assert_eq!(written(data_type, number), text, "{data_type} {number}");
        assert_eq!(
            read(data_type, text).as_deref(),
            Some(number),
            "{data_type} '{text}'"
        );
        count += 1;
    }
    assert!(count > 900, "{count} texts");
}

/// Texts that are not as DuckDB writes a value of the type.
const FOREIGN: [(&str, &[&str]); 7] = [
    (
        "date",
        &[
            "",
            "2024-1-1",
            "2024-02-30",
            "2023-02-29",
            "24-01-01",
            "02024-01-01",
            "+2024-01-01",
            "2024-01-01 ",
            "0000-01-01",
            "2024-01-01 (bc)",
            "2024-01-01(BC)",
            "Infinity",
            "inf",
            "5881580-07-11",
            "5877642-06-24 (BC)",
            "99999999999999999999-01-01",
            "2024-+1-01",
        ],
    ),
    (
        "timestamp",
        &[
            "2024-01-01",
            "2024-01-01T00:00:00",
            "2024-01-01 00:00",
            "2024-01-01 00:00:00.",
            "2024-01-01 00:00:00.10",
            "2024-01-01 00:00:00.0",
            "2024-01-01 24:00:00",
            "2024-01-01 00:60:00",
            "2024-01-01 00:00:60",
            "2024-01-01 00:00:00+00",
            "294247-01-10 04:00:54.775808",
            "2024-01-01  00:00:00",
            "2024-01-01 00:00:00.1234567",
        ],
    ),
    ("timestamp_s", &["2024-01-01 00:00:00.1"]),
    (
        "timestamptz",
        &[
            "2024-01-01 00:00:00",
            "2024-01-01 00:00:00-05",
            "2024-01-01 00:00:00+00:00",
            "infinity+00",
        ],
    ),
    (
        "uint64",
        &["", "+1", "01", "-0", "1.0", "1e3", " 1", "18446744073709551616"],
    ),
    (
        "int128",
        &[
            "",
            "-",
            "+1",
            "01",
            "-0",
            "0x1",
            "340282366920938463463374607431768211456",
            "-170141183460469231731687303715884105729",
        ],
    ),
    (
        "timetz",
        &[
            "12:00:00",
            "12:00:00+0",
            "12:00:00+00:00",
            "25:00:00+00",
            "12:00:00+01:00:00",
        ],
    ),
];

#[test]
fn a_text_that_duckdb_would_write_otherwise_is_refused() {
    for (data_type, texts) in FOREIGN {
        for text in texts {
            assert_eq!(read(data_type, text), None, "{data_type} '{text}'");
        }
    }
    for text in [
        "1 month",
        "1 months 2 days",
        "1 months 2 days 3 seconds",
        "01 months 0 days 0 microseconds",
    ] {
        assert_eq!(parse_interval(text), None, "{text}");
    }
}

#[test]
fn the_calendar_has_its_own_days_and_no_others() {
    assert_eq!(days_from_civil(1970, 1, 1), Some(0));
    assert_eq!(days_from_civil(2000, 2, 29), Some(11_016));
    assert_eq!(civil_from_days(-1), (1969, 12, 31));
    // The day before 0001-01-01 is in 1 BC, which is year 0.
    assert_eq!(civil_from_days(-719_163), (0, 12, 31));
    let none = [
        (1900, 2, 29),
        (2023, 2, 29),
        (2024, 4, 31),
        (2024, 0, 1),
        (2024, 13, 1),
        (2024, 1, 0),
        (2024, 1, 32),
        (i64::MAX, 1, 1),
        (i64::MIN, 1, 1),
        (2024, i64::MAX, i64::MAX),
    ];
    for (year, month, day) in none {
        assert_eq!(days_from_civil(year, month, day), None, "{year}-{month}-{day}");
    }
    for days in [i64::MIN, i64::MAX] {
        let (_, month, day) = civil_from_days(days);
        assert!((1..=12).contains(&month) && (1..=31).contains(&day));
    }
    assert_eq!(render_time(86_400_000_000), "24:00:00");
    assert_eq!(render_time(360_000_500_000), "100:00:00.5");
}

proptest! {
    #[test]
    fn every_day_is_found_again(days in -400_000_000_000_i64..400_000_000_000) {
        let (year, month, day) = civil_from_days(days);
        prop_assert_eq!(days_from_civil(year, month, day), Some(days));
        let (next_year, next_month, next_day) = civil_from_days(days + 1);
        prop_assert!((year, month, day) < (next_year, next_month, next_day));
    }

    #[test]
    fn every_number_survives_its_text(ticks: i64, days: i32, months: i32, wide: i128, offset in -57_599_i32..=57_599, time in 0_i64..=86_400_000_000) {
        prop_assert_eq!(parse_date(&render_date(days)).unwrap_or(days), days);
        for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            let text = render_timestamp(ticks, unit);
            prop_assert!(text.len() > 20 || parse_timestamp(&text, unit) == Some(ticks));
            // Years beyond six digits are none DuckDB has; within, every tick reads back.
            if unit != TimeUnit::Second && unit != TimeUnit::Millisecond {
                prop_assert_eq!(parse_timestamp(&text, unit), Some(ticks));
            }
        }
        prop_assert_eq!(parse_timestamp_tz(&render_timestamp_tz(ticks)), Some(ticks));
        prop_assert_eq!(parse_time_tz(&render_time_tz(time, offset)), Some((time, offset)));
        prop_assert_eq!(parse_interval(&render_interval(months, days, ticks)), Some((months, days, ticks)));
        prop_assert_eq!(parse_wide(&wide.to_string()), Some(i256::from_i128(wide)));
    }

    #[test]
    fn no_text_panics_and_what_is_read_is_written_back(text in "\\PC{0,30}|[-0-9: .+()BCinfty]{0,30}") {
        prop_assert!(parse_date(&text).is_none_or(|days| render_date(days) == text));
        prop_assert!(parse_timestamp(&text, TimeUnit::Nanosecond).is_none_or(|t| render_timestamp(t, TimeUnit::Nanosecond) == text));
        prop_assert!(parse_timestamp_tz(&text).is_none_or(|t| render_timestamp_tz(t) == text));
        prop_assert!(parse_time_tz(&text).is_none_or(|(t, o)| render_time_tz(t, o) == text));
        prop_assert!(parse_wide(&text).is_none_or(|n| render_wide(n) == text));
        prop_assert!(parse_interval(&text).is_none_or(|(m, d, u)| render_interval(m, d, u) == text));
    }
}
