//! Integers wider than Postgres' own: plain decimal digits, no plus sign, no leading zeros.

use arrow_buffer::i256;

/// The number of a text of an unsigned 64-bit integer.
#[must_use]
pub fn parse_u64(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The text of an integer of up to 128 bits, signed or not.
#[must_use]
pub fn render_wide(number: i256) -> String {
    number.to_string()
}

/// The number of a text of an integer of up to 128 bits, signed or not.
#[must_use]
pub fn parse_wide(text: &str) -> Option<i256> {
    if let Ok(number) = text.parse::<i128>() {
        return (number.to_string() == text).then(|| i256::from_i128(number));
    }
    let number: u128 = text.parse().ok()?;
    (number.to_string() == text).then(|| i256::from_parts(number, 0))
}
