//! DuckDB's text of dates, times, timestamps, intervals, fractions, blobs and wide integers, read and written exactly. A text is
//! only accepted when writing its value again gives the same bytes, so nothing that passes through here is changed. Nothing here
//! knows Arrow or columns.

mod blob;
mod civil;
mod clock;
mod fraction;
mod interval;
mod timestamp;
mod wide;

pub use blob::{parse_blob, parse_uuid, render_blob, render_uuid};
pub use civil::{civil_from_days, days_from_civil, parse_date, render_date};
pub use clock::{parse_time, parse_time_tz, render_time, render_time_tz};
pub use fraction::{parse_decimal, render_decimal, render_double, render_float};
pub use interval::{parse_displayed_interval, parse_interval, render_interval};
pub use timestamp::{
    TimeUnit, parse_timestamp, parse_timestamp_at_offset, parse_timestamp_tz, render_timestamp,
    render_timestamp_tz,
};
pub use wide::{parse_u64, parse_wide, render_wide};

/// The text DuckDB uses for the greatest date or timestamp.
pub(crate) const INFINITY: &str = "infinity";
/// The text DuckDB uses for the least date or timestamp.
pub(crate) const NEGATIVE_INFINITY: &str = "-infinity";

/// Exactly two digits at the start of `text`, below `limit`, and the rest.
pub(crate) fn two_digits(text: &str, limit: i64) -> Option<(i64, &str)> {
    let digits = text.get(..2)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    (number < limit).then_some((number, text.get(2..)?))
}
