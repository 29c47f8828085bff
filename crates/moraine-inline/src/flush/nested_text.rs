//! DuckDB's text of lists, structs and maps, taken apart as DuckDB's own cast does: one level at a time, each part as the text of
//! its own type. What DuckDB would not read, and so would not show of an inlined row either, is `None`.

/// A part of a nested text; `None` is NULL.
pub(super) type Part = Option<String>;

/// The elements of the text of a list.
pub(super) fn split_list(text: &str) -> Option<Vec<Part>> {
    let mut scan = Scan::new(text);
    scan.open(b"[")?;
    let mut parts = Vec::new();
    loop {
        let part = scan.part(b",]")?;
        let last = scan.next()? == b']';
        if !(last && part.is_empty() && parts.is_empty()) {
            parts.push(scan.value(part)?);
        }
        if last {
            break;
        }
        scan.skip_spaces();
    }
    scan.end()?;
    Some(parts)
}

/// The fields of the text of a struct whose fields are called `names`; those it does not name are NULL.
pub(super) fn split_struct(text: &str, names: &[&str]) -> Option<Vec<Part>> {
    let mut scan = Scan::new(text);
    let mut parts: Vec<Part> = vec![None; names.len()];
    let open = scan.open(b"{(")?;
    let close = if open == b'{' { b'}' } else { b')' };
    if scan.peek()? == close {
        scan.next();
        scan.end()?;
        return Some(parts);
    }
    let mut unnamed = 0..names.len();
    loop {
        let position = if open == b'{' {
            let key = scan.key()?;
            names.iter().position(|name| **name == key)?
        } else {
            unnamed.next()?
        };
        let part = scan.part(&[b',', close])?;
        let last = scan.next()? == close;
        *parts.get_mut(position)? = scan.value(part)?;
        if last {
            break;
        }
        scan.skip_spaces();
    }
    scan.end()?;
    Some(parts)
}

/// The entries of the text of a map.
pub(super) fn split_map(text: &str) -> Option<Vec<(String, Part)>> {
    let mut scan = Scan::new(text);
    scan.open(b"{")?;
    let mut entries = Vec::new();
    if scan.peek()? == b'}' {
        scan.next();
        scan.end()?;
        return Some(entries);
    }
    loop {
        let key = scan.part(b"=")?;
        scan.next()?;
        // A map has no NULL key.
        let key = scan.value(key)??;
        scan.skip_spaces();
        let value = scan.part(b",}")?;
        let last = scan.next()? == b'}';
        entries.push((key, scan.value(value)?));
        if last {
            break;
        }
        scan.skip_spaces();
    }
    scan.end()?;
    Some(entries)
}

/// A position in a text, and whether the byte before it was a backslash that escapes it.
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    escaped: bool,
}

/// Where a part lies, without the spaces around it.
type Place = std::ops::Range<usize>;

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        let mut scan = Self {
            bytes: text.as_bytes(),
            at: 0,
            escaped: false,
        };
        scan.skip_spaces();
        scan
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
            self.escaped = false;
        }
    }

    /// The opening bracket, one of `brackets`, and the spaces behind it.
    fn open(&mut self, brackets: &[u8]) -> Option<u8> {
        let byte = self.next().filter(|byte| brackets.contains(byte))?;
        self.skip_spaces();
        Some(byte)
    }

    /// Whether nothing but spaces is left.
    fn end(&mut self) -> Option<()> {
        self.skip_spaces();
        (self.at == self.bytes.len()).then_some(())
    }

    /// Goes on to the first of `ends` that is neither quoted nor in brackets.
    fn part(&mut self, ends: &[u8]) -> Option<Place> {
        let (mut start, mut after) = (None, self.at);
        while let Some(byte) = self.peek().filter(|byte| !ends.contains(byte)) {
            let from = self.at;
            let mut escapes = false;
            match byte {
                b'"' | b'\'' if !self.escaped => self.close_quote()?,
                b'{' | b'(' | b'[' => self.close_bracket()?,
                b'\\' => escapes = true,
                _ => {}
            }
            if !is_space(byte) {
                start.get_or_insert(from);
                after = self.at + 1;
            }
            self.escaped = escapes;
            self.at += 1;
        }
        self.peek()?;
        Some(start.map_or(0..0, |start| start..after))
    }

    /// The name of a struct's field and the colon behind it.
    fn key(&mut self) -> Option<String> {
        let (mut start, mut after) = (None, self.at);
        while let Some(byte) = self.peek().filter(|byte| *byte != b':') {
            let from = self.at;
            let mut escapes = false;
            if !self.escaped {
                match byte {
                    b'"' | b'\'' => self.close_quote()?,
                    b'\\' => escapes = true,
                    _ => {}
                }
            }
            if self.escaped || !is_space(byte) {
                start.get_or_insert(from);
                after = self.at + 1;
            }
            self.escaped = escapes;
            self.at += 1;
        }
        self.next()?;
        let place = start?..after;
        if self.is_null(&place) {
            return None;
        }
        let key = self.unquoted(place, false);
        self.skip_spaces();
        key
    }

    /// From a quote to the one that closes it.
    fn close_quote(&mut self) -> Option<()> {
        let quote = self.next()?;
        while let Some(byte) = self.peek() {
            if byte == quote && !self.escaped {
                return Some(());
            }
            self.escaped = byte == b'\\' && !self.escaped;
            self.at += 1;
        }
        None
    }

    /// From a bracket to the one that closes it.
    fn close_bracket(&mut self) -> Option<()> {
        let mut open = Vec::new();
        while let Some(byte) = self.peek() {
            let mut escapes = false;
            match byte {
                b'"' | b'\'' if !self.escaped => self.close_quote()?,
                b'{' => open.push(b'}'),
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                byte if open.last() == Some(&byte) => {
                    open.pop();
                    if open.is_empty() {
                        return Some(());
                    }
                }
                b'\\' => escapes = true,
                _ => {}
            }
            self.escaped = escapes;
            self.at += 1;
        }
        None
    }

    fn is_null(&self, place: &Place) -> bool {
        let bytes = self.bytes.get(place.clone());
        bytes.is_some_and(|bytes| bytes.eq_ignore_ascii_case(b"null"))
    }

    fn value(&self, place: Place) -> Option<Part> {
        if self.is_null(&place) {
            return Some(None);
        }
        self.unquoted(place, true).map(Some)
    }

    /// The text of a part without its quotes and escapes. With `scopes`, what lies in brackets stays as it is, for the next level.
    fn unquoted(&self, place: Place, scopes: bool) -> Option<String> {
        let bytes = self.bytes.get(place)?;
        let mut text = Vec::with_capacity(bytes.len());
        let mut open: Vec<u8> = Vec::new();
        let (mut quote, mut escaped) = (None, false);
        for (position, &byte) in bytes.iter().enumerate() {
            if escaped {
                escaped = false;
                text.push(byte);
                continue;
            }
            if open.is_empty() {
                let before_quote = matches!(bytes.get(position + 1), Some(b'\'' | b'"'));
                if byte == b'\\' && (quote.is_some() || before_quote) {
                    escaped = true;
                    continue;
                }
                if quote == Some(byte) {
                    quote = None;
                    continue;
                }
                if quote.is_none() && matches!(byte, b'\'' | b'"') {
                    quote = Some(byte);
                    continue;
                }
            }
            if quote.is_none() {
                if open.last() == Some(&byte) {
                    open.pop();
                }
                match byte {
                    b'[' if scopes => open.push(b']'),
                    b'{' if scopes => open.push(b'}'),
                    b'(' if scopes => open.push(b')'),
                    _ => {}
                }
            }
            text.push(byte);
        }
        String::from_utf8(text).ok()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::{Part, split_list, split_map, split_struct};

    fn parts(parts: &[Option<&str>]) -> Option<Vec<Part>> {
        Some(parts.iter().map(|part| part.map(str::to_owned)).collect())
    }

    #[test]
    fn lists_come_apart_as_duckdb_wrote_them() {
        let text = r#"[a, 'it\'s', 'NULL', NULL, '', 'a,b', '[x]', '{y', back\slash, 'q"q', ' sp ', ü]"#;
        let expected = [
            Some("a"),
            Some("it's"),
            Some("NULL"),
            None,
            Some(""),
            Some("a,b"),
            Some("[x]"),
            Some("{y"),
            Some(r"back\slash"),
            Some("q\"q"),
            Some(" sp "),
            Some("ü"),
        ];
        assert_eq!(split_list(text), parts(&expected));
        assert_eq!(split_list("[]"), parts(&[]));
        assert_eq!(
            split_list("[[a], NULL, []]"),
            parts(&[Some("[a]"), None, Some("[]")])
        );
        assert_eq!(split_list("[1, 2"), None);
        assert_eq!(split_list("[1] x"), None);
        assert_eq!(split_list("['open]"), None);
        assert_eq!(split_list(""), None);
    }

    #[test]
    fn structs_and_maps_come_apart_as_duckdb_wrote_them() {
        let text = r"{'A b': 1, 'c:d': 'x=y', 'n': {'k': [1, 'it\'s']}}";
        let expected = [Some("1"), Some("x=y"), Some(r"{'k': [1, 'it\'s']}"), None];
        assert_eq!(
            split_struct(text, &["A b", "c:d", "n", "absent"]),
            parts(&expected)
        );
        assert_eq!(split_struct("{'b': 1}", &["a"]), None);
        assert_eq!(
            split_struct("(1, x)", &["a", "b"]),
            parts(&[Some("1"), Some("x")])
        );
        let entries = split_map("{'k=1'=v, ''=NULL, 2=[1, 2]}");
        let expected = vec![
            ("k=1".to_owned(), Some("v".to_owned())),
            (String::new(), None),
            ("2".to_owned(), Some("[1, 2]".to_owned())),
        ];
        assert_eq!(entries, Some(expected));
        assert_eq!(split_map("{}"), Some(Vec::new()));
        assert_eq!(split_map("{NULL=1}"), None);
    }
}
