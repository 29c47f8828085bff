//! SQL text into tokens, and a message into its statements. This is only as much of SQL's surface as is needed to find
//! where a statement ends and to read the rows of an `INSERT … VALUES`; everything else is parsed by `sqlparser`.

use std::borrow::Cow;

use crate::errors::{SqlError, state};

/// One token; comments and white space are skipped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'a> {
    /// An unquoted word: a keyword or an identifier.
    Word(&'a str),
    /// A `"quoted"` identifier, unescaped.
    Identifier(Cow<'a, str>),
    /// A `'quoted'` literal, unescaped.
    Quoted(Cow<'a, str>),
    /// A number without its sign.
    Number(&'a str),
    /// `E'…'`, `$tag$…$tag$` and the like: a literal whose rules are left to the parser.
    Other(&'a str),
    /// Any other single character.
    Symbol(char),
}

/// Reads tokens off a text.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The position of the next byte to read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The next token, or `None` at the end; 42601 for a quote or comment that never ends.
    pub(crate) fn token(&mut self) -> Result<Option<Token<'a>>, SqlError> {
        self.skip_blank()?;
        let Some(byte) = self.peek(0) else {
            return Ok(None);
        };
        let start = self.at;
        let token = match byte {
            b'\'' => Token::Quoted(self.quoted(b'\'', "string")?),
            b'"' => Token::Identifier(self.quoted(b'"', "identifier")?),
            b'e' | b'E' if self.peek(1) == Some(b'\'') => {
                self.escape_string()?;
                Token::Other(self.text.get(start..self.at).unwrap_or_default())
            }
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if self.peek(1) == Some(b'\'') => {
                self.at += 1;
                self.quoted(b'\'', "string")?;
                Token::Other(self.text.get(start..self.at).unwrap_or_default())
            }
            b'$' if self.dollar_tag().is_some() => {
                self.dollar_string()?;
                Token::Other(self.text.get(start..self.at).unwrap_or_default())
            }
            b'0'..=b'9' => Token::Number(self.number()),
            b'.' if self.peek(1).is_some_and(|next| next.is_ascii_digit()) => Token::Number(self.number()),
            byte if is_word_start(byte) => Token::Word(self.word()),
            _ => {
                let symbol = self.rest().chars().next().unwrap_or('\0');
                self.at += symbol.len_utf8();
                Token::Symbol(symbol)
            }
        };
        Ok(Some(token))
    }

    fn skip_blank(&mut self) -> Result<(), SqlError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(byte), _) if byte.is_ascii_whitespace() => self.at += 1,
                (Some(b'-'), Some(b'-')) => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                (Some(b'/'), Some(b'*')) => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Comments nest in Postgres.
    fn skip_comment(&mut self) -> Result<(), SqlError> {
        let mut depth = 0usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    self.at += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                (Some(_), _) => self.at += 1,
                (None, _) => return Err(unterminated("/* comment")),
            }
        }
    }

    /// A quoted text in which a doubled quote stands for one; nothing else is special.
    fn quoted(&mut self, quote: u8, what: &str) -> Result<Cow<'a, str>, SqlError> {
        self.at += 1;
        let start = self.at;
        let mut doubled = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let Some(found) = rest.iter().position(|byte| *byte == quote) else {
                return Err(unterminated(&format!("quoted {what}")));
            };
            self.at += found + 1;
            if self.peek(0) == Some(quote) {
                doubled = true;
                self.at += 1;
                continue;
            }
            break;
        }
        let inner = self.text.get(start..self.at - 1).unwrap_or_default();
        Ok(match (doubled, quote) {
            (false, _) => Cow::Borrowed(inner),
            (true, b'"') => Cow::Owned(inner.replace("\"\"", "\"")),
            (true, _) => Cow::Owned(inner.replace("''", "'")),
        })
    }

    /// `E'…'`: a backslash takes the next character with it.
    fn escape_string(&mut self) -> Result<(), SqlError> {
        self.at += 2;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'\\'), Some(_)) | (Some(b'\''), Some(b'\'')) => self.at += 2,
                (Some(b'\''), _) => {
                    self.at += 1;
                    return Ok(());
                }
                (Some(_), _) => self.at += 1,
                (None, _) => return Err(unterminated("quoted string")),
            }
        }
    }

    /// The length of `$tag$` at the position, if one is there.
    fn dollar_tag(&self) -> Option<usize> {
        let rest = self.rest().get(1..)?;
        let end = rest.find('$')?;
        let tag = rest.get(..end)?;
        let well_formed = tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !tag.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        well_formed.then_some(end + 2)
    }

    fn dollar_string(&mut self) -> Result<(), SqlError> {
        let length = self.dollar_tag().unwrap_or(0);
        let tag = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        let Some(end) = self.rest().find(tag) else {
            return Err(unterminated("dollar-quoted string"));
        };
        self.at += end + length;
        Ok(())
    }

    fn number(&mut self) -> &'a str {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            let sign_of_exponent = matches!(byte, b'+' | b'-')
                && self.at > start
                && matches!(self.text.as_bytes().get(self.at - 1), Some(b'e' | b'E'));
            if byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || sign_of_exponent {
                self.at += 1;
            } else {
                break;
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|byte| is_word_start(byte) || byte.is_ascii_digit() || byte == b'$')
        {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// The byte at which a name stands first in a text.
pub(crate) fn find_name(text: &str, name: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text);
    loop {
        lexer.skip_blank().ok()?;
        let start = lexer.position();
        let found = match lexer.token().ok()?? {
            Token::Word(word) => word.eq_ignore_ascii_case(name),
            Token::Identifier(identifier) => identifier == name,
            _ => false,
        };
        if found {
            return Some(start);
        }
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn unterminated(what: &str) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, format!("unterminated {what}"))
}

/// The statements of a message, without their semicolons; empty ones are left out.
pub(crate) fn split_statements(text: &str) -> Result<Vec<&str>, SqlError> {
    let mut lexer = Lexer::new(text);
    let mut statements = Vec::new();
    let mut start = 0;
    let mut tokens = 0usize;
    loop {
        match lexer.token()? {
            Some(Token::Symbol(';')) => {
                let end = lexer.position() - 1;
                if tokens > 0 {
                    statements.push(text.get(start..end).unwrap_or_default());
                }
                start = lexer.position();
                tokens = 0;
            }
            Some(_) => tokens += 1,
            None => break,
        }
    }
    if tokens > 0 {
        statements.push(text.get(start..).unwrap_or_default());
    }
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let text = "a 'x;''y' ; ; \"b;\" -- c;\n; /* d; /* e; */ */ f E'g\\';' ; $$h;$$; $t$;$$;$t$";
        let statements = split_statements(text).unwrap();
        let trimmed: Vec<&str> = statements.iter().map(|statement| statement.trim()).collect();
        assert_eq!(
            trimmed,
            [
                "a 'x;''y'",
                "\"b;\" -- c;",
                "/* d; /* e; */ */ f E'g\\';'",
                "$$h;$$",
                "$t$;$$;$t$"
            ]
        );
    }

    #[test]
    fn what_never_ends_is_a_syntax_error() {
        for text in ["'x", "\"x", "/* x", "E'x\\'", "$$x"] {
            assert_eq!(split_statements(text).unwrap_err().state, "42601", "{text}");
        }
    }

    #[test]
    fn backslashes_are_plain_in_quoted_literals() {
        let mut lexer = Lexer::new(r"'\x00' -1.5e-3");
        assert_eq!(lexer.token().unwrap(), Some(Token::Quoted(r"\x00".into())));
        assert_eq!(lexer.token().unwrap(), Some(Token::Symbol('-')));
        assert_eq!(lexer.token().unwrap(), Some(Token::Number("1.5e-3")));
        assert_eq!(lexer.token().unwrap(), None);
    }
}
