//! Blobs and UUIDs.

use std::fmt::Write as _;

/// The text of a blob: printable ASCII as it is, every other byte, quotes and backslashes as `\xAA`.
#[must_use]
pub fn render_blob(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if (b' '..=b'~').contains(&byte) && !matches!(byte, b'\\' | b'\'' | b'"') {
            text.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

/// The bytes of a blob's text.
#[must_use]
pub fn parse_blob(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        if first == b'\\' {
            let digits = rest.strip_prefix("\\x")?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = rest.get(4..)?;
        } else {
            bytes.push(first);
            rest = rest.get(1..)?;
        }
    }
    (render_blob(&bytes) == text).then_some(bytes)
}

/// The text of a UUID.
#[must_use]
pub fn render_uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (position, byte) in bytes.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of a UUID's text.
#[must_use]
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let value = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
    let bytes = value.to_be_bytes();
    (render_uuid(bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{parse_blob, parse_uuid, render_blob};

    #[test]
    fn blobs_and_uuids_come_back_as_they_went() {
        for bytes in [&b"\xaa\x00a'\\"[..], b"", b"plain text"] {
            assert_eq!(parse_blob(&render_blob(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!(render_blob(b"\xaa\x00a'"), r"\xAA\x00a\x27");
        assert_eq!(
            (parse_blob(r"\xA"), parse_blob("ü"), parse_blob("\\")),
            (None, None, None)
        );
        assert!(parse_uuid("11111111-2222-3333-4444-555555555555").is_some());
        assert_eq!(parse_uuid("11111111-2222-3333-4444-55555555555Z"), None);
    }
}
