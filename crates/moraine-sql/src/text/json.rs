//! JSON text: read whole, written as Postgres writes `jsonb`. Numbers keep the digits they have.

/// How deep a document may be nested.
const DEPTH_MAX: usize = 512;

/// A JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Fields in the order in which they were written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a document; `None` for text that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader {
            rest: text.trim_start(),
        };
        let document = reader.value(0)?;
        reader.rest.trim().is_empty().then_some(document)
    }

    /// The value of a field; of fields of one name the last.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The element at a position from 0, or counted from the end.
    #[must_use]
    pub fn element(&self, position: i64) -> Option<&Self> {
        let Self::List(items) = self else { return None };
        let length = i64::try_from(items.len()).ok()?;
        let at = if position < 0 { length + position } else { position };
        items.get(usize::try_from(at).ok()?)
    }

    /// The text of a text, or the JSON of anything else; `None` for `null`.
    #[must_use]
    pub fn plain_text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text.clone()),
            other => Some(other.binary_text()),
        }
    }

    /// The document as `jsonb` is written: shorter keys first, of fields of one name the last.
    #[must_use]
    pub fn binary_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(digits) => digits.clone(),
            Self::Text(text) => quoted(text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::binary_text).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Object(fields) => {
                let mut last: Vec<&(String, Json)> = Vec::with_capacity(fields.len());
                for field in fields {
                    last.retain(|(name, _)| *name != field.0);
                    last.push(field);
                }
                last.sort_by(|(left, _), (right, _)| {
                    left.len()
                        .cmp(&right.len())
                        .then_with(|| left.as_bytes().cmp(right.as_bytes()))
                });
                let fields: Vec<String> = last
                    .into_iter()
                    .map(|(name, value)| format!("{}: {}", quoted(name), value.binary_text()))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
        }
    }
}

/// A text as JSON writes it.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for sign in text.chars() {
        match sign {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            sign if sign < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(sign))),
            sign => out.push(sign),
        }
    }
    out.push('"');
    out
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn takes(&mut self, sign: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip();
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Some(value);
            }
        }
        match self.rest.chars().next()? {
            '"' => self.text().map(Json::Text),
            '[' => {
                self.takes('[');
                let mut items = Vec::new();
                if self.takes(']') {
                    return Some(Json::List(items));
                }
                loop {
                    items.push(self.value(depth + 1)?);
                    if self.takes(']') {
                        return Some(Json::List(items));
                    }
                    self.takes(',').then_some(())?;
                }
            }
            '{' => {
                self.takes('{');
                let mut fields = Vec::new();
                if self.takes('}') {
                    return Some(Json::Object(fields));
                }
                loop {
                    self.skip();
                    let name = self.text()?;
                    self.takes(':').then_some(())?;
                    fields.push((name, self.value(depth + 1)?));
                    if self.takes('}') {
                        return Some(Json::Object(fields));
                    }
                    self.takes(',').then_some(())?;
                }
            }
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Option<Json> {
        let length = self
            .rest
            .find(|sign: char| !matches!(sign, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(length);
        let plain = digits.strip_prefix('-').unwrap_or(digits);
        let leads = plain.starts_with(|sign: char| sign.is_ascii_digit());
        let padded = plain.len() > 1
            && plain.starts_with('0')
            && plain.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if !leads || padded || digits.ends_with('.') || digits.parse::<f64>().is_err() {
            return None;
        }
        self.rest = rest;
        Some(Json::Number(digits.to_owned()))
    }

    fn text(&mut self) -> Option<String> {
        let mut signs = self.rest.strip_prefix('"')?.char_indices();
        let body = self.rest.get(1..)?;
        let mut out = String::new();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '"' => {
                    self.rest = body.get(at + 1..)?;
                    return Some(out);
                }
                '\\' => match signs.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    'b' => out.push('\u{8}'),
                    'f' => out.push('\u{c}'),
                    'u' => out.push(escaped(&mut signs)?),
                    sign @ ('"' | '\\' | '/') => out.push(sign),
                    _ => return None,
                },
                sign if sign < ' ' => return None,
                sign => out.push(sign),
            }
        }
        None
    }
}

fn escaped(signs: &mut std::str::CharIndices<'_>) -> Option<char> {
    let first = unit(signs)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    if (signs.next()?.1, signs.next()?.1) != ('\\', 'u') {
        return None;
    }
    let second = unit(signs)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}

fn unit(signs: &mut std::str::CharIndices<'_>) -> Option<u32> {
    let mut value = 0;
    for _ in 0..4 {
        value = value * 16 + signs.next()?.1.to_digit(16)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_written_as_jsonb() {
        for (text, expected) in [
            (
                "{\"bb\":1,\"a\":[1.10,null,true],\"a\":2}",
                "{\"a\": 2, \"bb\": 1}",
            ),
            (" [ 1 , \"x\\u00e9\\n\" ] ", "[1, \"xé\\n\"]"),
            ("\"\\ud83d\\ude00\"", "\"😀\""),
            ("-0.5e3", "-0.5e3"),
        ] {
            assert_eq!(Json::parse(text).unwrap().binary_text(), expected, "{text}");
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{a:1}",
            "01",
            "1.",
            "\"\\x\"",
            "nulll",
            "\"\\ud83d\"",
        ] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
    }
}
