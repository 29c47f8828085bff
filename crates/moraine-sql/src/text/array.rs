//! Arrays of one dimension as Postgres reads and writes them: `{1,NULL,"a b"}`.

/// The elements of an array's text, `None` standing for NULL; `None` for text that is no array of one dimension.
#[must_use]
pub fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inner.trim().is_empty() {
        return Some(items);
    }
    let mut signs = inner.chars().peekable();
    loop {
        while signs.next_if(|sign| sign.is_whitespace()).is_some() {}
        let item = match signs.peek() {
            Some('"') => Some(quoted(&mut signs)?),
            _ => plain(&mut signs)?,
        };
        items.push(item);
        while signs.next_if(|sign| sign.is_whitespace()).is_some() {}
        match signs.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

type Signs<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn quoted(signs: &mut Signs<'_>) -> Option<String> {
    signs.next();
    let mut item = String::new();
    loop {
        match signs.next()? {
            '"' => return Some(item),
            '\\' => item.push(signs.next()?),
            sign => item.push(sign),
        }
    }
}

fn plain(signs: &mut Signs<'_>) -> Option<Option<String>> {
    let mut item = String::new();
    while let Some(sign) = signs.next_if(|sign| *sign != ',') {
        match sign {
            '{' | '}' | '"' => return None,
            '\\' => item.push(signs.next()?),
            sign => item.push(sign),
        }
    }
    let item = item.trim_end();
    if item.is_empty() {
        return None;
    }
    Some((!item.eq_ignore_ascii_case("null")).then(|| item.to_owned()))
}

/// The text of an array of these elements, `None` standing for NULL.
#[must_use]
pub fn text<'e>(elements: impl IntoIterator<Item = Option<&'e str>>) -> String {
    let mut out = String::from("{");
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match element {
            None => out.push_str("NULL"),
            Some(element) => push(&mut out, element),
        }
    }
    out.push('}');
    out
}

fn push(out: &mut String, element: &str) {
    let plain = !element.is_empty()
        && !element.eq_ignore_ascii_case("null")
        && !element
            .chars()
            .any(|sign| matches!(sign, '{' | '}' | ',' | '"' | '\\') || sign.is_whitespace());
    if plain {
        out.push_str(element);
        return;
    }
    out.push('"');
    for sign in element.chars() {
        if matches!(sign, '"' | '\\') {
            out.push('\\');
        }
        out.push(sign);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let elements = [Some("a"), None, Some(""), Some("null"), Some("b \"c\" \\ {d}")];
        let written = text(elements);
        assert_eq!(written, "{a,NULL,\"\",\"null\",\"b \\\"c\\\" \\\\ {d}\"}");
        let read = super::elements(&written).unwrap();
        assert_eq!(read.iter().map(Option::as_deref).collect::<Vec<_>>(), elements);
    }

    #[test]
    fn what_is_no_array_is_none() {
        for text in ["", "1,2", "{1,,2}", "{1,2", "{{1},{2}}", "{\"a}", "{\"a\"b}"] {
            assert_eq!(elements(text), None, "{text}");
        }
        assert_eq!(elements("{ }"), Some(Vec::new()));
        assert_eq!(elements("{ 1 , 2 }").unwrap().len(), 2);
    }
}
