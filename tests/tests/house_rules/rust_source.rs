//! A scanner of Rust text that is just good enough to count lines of functions: it knows strings, raw strings,
//! characters, lifetimes and comments, and so does not mistake a brace in one of them for a block.

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Its first line, counted from 1.
    pub(crate) line: usize,
    /// Lines from `fn` to the closing brace, both included.
    pub(crate) lines: usize,
}

/// The functions of a source text, in the order in which they end.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let code = without_text(text);
    let mut found = Vec::new();
    // Functions whose body has begun, with the depth outside it; and one whose signature is being read.
    let mut open: Vec<(String, usize, usize)> = Vec::new();
    let mut signature: Option<(String, usize)> = None;
    let (mut depth, mut brackets, mut line) = (0_usize, 0_usize, 1);
    let mut words = Words::default();
    for character in code.chars() {
        if let Some(name) = words.next(character) {
            signature = Some((name, line));
            brackets = 0;
        }
        match character {
            '\n' => line += 1,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if brackets == 0 => signature = None,
            '{' => {
                if let (Some((name, start)), 0) = (signature.take(), brackets) {
                    open.push((name, start, depth));
                }
                depth += 1;
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if let Some((name, start, _)) = open.pop_if(|(_, _, outside)| *outside == depth) {
                    let lines = line - start + 1;
                    found.push(Function {
                        name,
                        line: start,
                        lines,
                    });
                }
            }
            _ => {}
        }
    }
    found
}

/// Watches for `fn name`.
#[derive(Default)]
struct Words {
    word: String,
    after_fn: bool,
}

impl Words {
    /// The name of a function, at the character that ends it.
    fn next(&mut self, character: char) -> Option<String> {
        if character.is_alphanumeric() || character == '_' {
            self.word.push(character);
            return None;
        }
        if self.word.is_empty() {
            // `fn(` is the type of a function, not one.
            self.after_fn &= character.is_whitespace();
            return None;
        }
        let word = std::mem::take(&mut self.word);
        let name = self.after_fn.then(|| word.clone());
        self.after_fn = word == "fn" && character.is_whitespace();
        name
    }
}

/// The text with every comment, string and character replaced by blanks; line breaks stay.
pub(crate) fn without_text(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = match characters[at..] {
            ['/', '/', ..] => line_end(&characters, at),
            ['/', '*', ..] => comment_end(&characters, at),
            ['"', ..] => string_end(&characters, at),
            ['r', '"' | '#', ..] if !continues_word(&code) => raw_string_end(&characters, at),
            ['b' | 'c', 'r', '"' | '#', ..] if !continues_word(&code) => raw_string_end(&characters, at + 1),
            ['\'', ..] => character_end(&characters, at),
            _ => at,
        };
        if end == at {
            code.push(characters[at]);
            at += 1;
        } else {
            let blank = |character: &char| if *character == '\n' { '\n' } else { ' ' };
            code.extend(characters[at..end].iter().map(blank));
            at = end;
        }
    }
    code
}

/// Whether a character that follows belongs to a word: `for"` does not begin a raw string.
fn continues_word(code: &str) -> bool {
    code.chars()
        .next_back()
        .is_some_and(|last| last.is_alphanumeric() || last == '_')
}

fn line_end(characters: &[char], at: usize) -> usize {
    let rest = characters[at..].iter().position(|character| *character == '\n');
    rest.map_or(characters.len(), |length| at + length)
}

/// Block comments nest.
fn comment_end(characters: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < characters.len() {
        match characters[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn string_end(characters: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < characters.len() {
        match characters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    characters.len()
}

/// The end of a raw string whose `r` is at `start`; `start` itself when it is a raw identifier.
fn raw_string_end(characters: &[char], start: usize) -> usize {
    let hashes = characters[start + 1..]
        .iter()
        .take_while(|character| **character == '#')
        .count();
    let open = start + 1 + hashes;
    if characters.get(open) != Some(&'"') {
        return start;
    }
    let mut at = open + 1;
    while at < characters.len() {
        let closed = characters[at] == '"'
            && characters[at + 1..]
                .iter()
                .take(hashes)
                .filter(|character| **character == '#')
                .count()
                == hashes;
        if closed {
            return at + 1 + hashes;
        }
        at += 1;
    }
    characters.len()
}

/// The end of a character; `start` itself when it is a lifetime.
fn character_end(characters: &[char], start: usize) -> usize {
    match characters[start + 1..] {
        ['\\', ..] => {
            let rest = characters[start + 3..]
                .iter()
                .position(|character| *character == '\'');
            rest.map_or(characters.len(), |length| start + 3 + length + 1)
        }
        [_, '\'', ..] => start + 3,
        _ => start,
    }
}

#[test]
fn functions_are_found_and_measured() {
    let text = "impl A {\n    fn one(&self) -> fn(u8) -> u8 {\n        if true {\n        }\n    }\n}\nfn two<T>(x: [T; 2]) where T: B { x }\n";
    let one = Function {
        name: "one".into(),
        line: 2,
        lines: 4,
    };
    let two = Function {
        name: "two".into(),
        line: 7,
        lines: 1,
    };
    assert_eq!(functions(text), [one, two]);
}

#[test]
fn functions_within_functions_and_without_bodies_are_told_apart() {
    let text = "trait T {\n    fn none(&self);\n}\nfn outer() {\n    fn inner() {\n    }\n}\n";
    let names: Vec<_> = functions(text)
        .into_iter()
        .map(|found| (found.name, found.lines))
        .collect();
    assert_eq!(names, [("inner".to_owned(), 2), ("outer".to_owned(), 4)]);
}

#[test]
fn braces_in_texts_are_not_blocks() {
    let text = r###"fn a<'a>(x: &'a str) -> char {
    // } not this {
    /* nor /* this } */ } */
    let s = "} \" {";
    let r = r#"} " {"#;
    let b = br"}";
    let (c, d) = ('}', '\'');
    d
}
fn b() {}
"###;
    let lines: Vec<_> = functions(text)
        .into_iter()
        .map(|found| (found.name, found.lines))
        .collect();
    assert_eq!(lines, [("a".to_owned(), 9), ("b".to_owned(), 1)]);
}
