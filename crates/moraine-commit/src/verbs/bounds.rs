//! The bounds of values that statistics keep as text: which of two is the lesser, by the type of their column. Where that
//! cannot be said surely there is no answer, and whoever asks goes without a bound.

use std::cmp::Ordering;

use crate::lake::ColumnType;

/// How two values of a type, in DuckDB's text, compare; `None` where it cannot be said.
pub(crate) fn compare(column_type: &ColumnType, left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    use ColumnType as T;
    match column_type {
        T::Boolean => Some(truth(left)?.cmp(&truth(right)?)),
        T::Int8
        | T::Int16
        | T::Int32
        | T::Int64
        | T::Int128
        | T::Uint8
        | T::Uint16
        | T::Uint32
        | T::Uint64
        | T::Uint128
        | T::Decimal { .. } => Number::parse(left)?.compare(&Number::parse(right)?),
        T::Float32 | T::Float64 => compare_floats(left, right),
        T::Date | T::Timestamp | T::TimestampS | T::TimestampMs | T::TimestampNs => {
            is_plain_date(left, right).then(|| left.cmp(right))
        }
        T::TimestampTz => {
            let is_utc = |text: &str| text.ends_with("+00");
            (is_plain_date(left, right) && is_utc(left) && is_utc(right)).then(|| {
                let zone = "+00".len();
                let cut = |text: &str| text.get(..text.len().saturating_sub(zone)).map(str::to_owned);
                cut(left).cmp(&cut(right))
            })
        }
        T::Time | T::TimeNs => (is_clock(left) && is_clock(right)).then(|| left.cmp(right)),
        // DuckLake compares these as text.
        T::Varchar | T::Json | T::Blob | T::Uuid => Some(left.as_bytes().cmp(right.as_bytes())),
        T::TimeTz
        | T::Interval
        | T::Variant
        | T::Geometry
        | T::Struct(_)
        | T::List(_)
        | T::Map(..)
        | T::Unknown(_) => None,
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// NaN is the greatest, as in DuckDB.
fn compare_floats(left: &str, right: &str) -> Option<Ordering> {
    let (left, right): (f64, f64) = (left.trim().parse().ok()?, right.trim().parse().ok()?);
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.partial_cmp(&right),
        (left, right) => Some(left.cmp(&right)),
    }
}

/// Whether both are dates of years with four digits after the birth of Christ, possibly with a time: then text compares as
/// they do. DuckDB writes infinities, earlier and later years otherwise.
fn is_plain_date(left: &str, right: &str) -> bool {
    let is_plain = |text: &str| {
        let bytes = text.as_bytes();
        let date = bytes.get(..10).is_some_and(|date| {
            date.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
        });
        date && bytes.get(10).is_none_or(|after| *after == b' ') && !text.contains("BC")
    };
    is_plain(left) && is_plain(right)
}

fn is_clock(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8 && bytes.get(2) == Some(&b':') && bytes.get(5) == Some(&b':')
}

/// An exact number of any length.
struct Number<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Number<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        Some(Number {
            negative,
            whole: whole.trim_start_matches('0'),
            fraction: fraction.trim_end_matches('0'),
        })
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn compare(&self, other: &Self) -> Option<Ordering> {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let (left, right) = (sign(self), sign(other));
        if left != right || left == 0 {
            return Some(left.cmp(&right));
        }
        let magnitude = self
            .whole
            .len()
            .cmp(&other.whole.len())
            .then_with(|| self.whole.cmp(other.whole))
            .then_with(|| self.fraction.cmp(other.fraction));
        Some(if left < 0 { magnitude.reverse() } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::lake::ColumnType as T;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn values_compare_as_their_type_does() {
        assert_eq!(compare(&T::Int64, "9", "10"), Some(Less));
        assert_eq!(compare(&T::Int64, "-9", "-10"), Some(Greater));
        let wide = "340282366920938463463374607431768211455";
        assert_eq!(compare(&T::Uint128, wide, "1"), Some(Greater));
        let decimal = T::Decimal {
            precision: 18,
            scale: 3,
        };
        assert_eq!(compare(&decimal, "1.5", "1.500"), Some(Equal));
        assert_eq!(compare(&decimal, "-0.5", "0.25"), Some(Less));
        assert_eq!(compare(&T::Varchar, "10", "9"), Some(Less));
        assert_eq!(compare(&T::Float64, "nan", "inf"), Some(Greater));
        assert_eq!(
            compare(&T::Timestamp, "2024-01-01 00:00:00", "2024-01-01 00:00:00.5"),
            Some(Less)
        );
    }

    #[test]
    fn what_cannot_be_said_surely_is_not_said() {
        assert_eq!(compare(&T::Date, "-infinity", "2024-01-01"), None);
        assert_eq!(compare(&T::Date, "0044-03-15 (BC)", "2024-01-01"), None);
        assert_eq!(compare(&T::Interval, "1 day", "24:00:00"), None);
        assert_eq!(compare(&T::Int64, "x", "1"), None);
    }
}
