//! A message into statements: long inserts by their own reader, everything else by `sqlparser`. All of a message is read
//! before any of it runs, as Postgres does, so a syntax error leaves nothing half done.

use sqlparser::ast::Statement;

use crate::errors::{SqlError, state};
use crate::insert_values::{self, InsertValues};
use crate::lexer::{Lexer, Token, split_statements};
use crate::session::Direction;

/// One statement, read but not bound.
#[derive(Debug, Clone)]
pub(crate) enum Parsed {
    /// Rows of literals.
    Insert(InsertValues),
    /// `CHECKPOINT`, which the parser does not know.
    Checkpoint,
    /// `FETCH` and `MOVE`, which the parser knows in part.
    Fetch(Fetch),
    /// Anything else.
    Sql(Box<Statement>),
}

/// A movement of a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) cursor: String,
    pub(crate) direction: Direction,
    /// MOVE: no rows are given.
    pub(crate) moves_only: bool,
}

/// The statements of a message; 42601 when one of them is not SQL.
pub(crate) fn statements(text: &str) -> Result<Vec<Parsed>, SqlError> {
    let one = |part: &str| {
        // Both are parts of one text.
        let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        statement(part).map_err(|mut error| match error.position.take() {
            Some(byte) => error.at(text, offset + byte),
            None => error,
        })
    };
    split_statements(text)?.into_iter().map(one).collect()
}

/// One statement. An error's position is the byte it is at.
fn statement(text: &str) -> Result<Parsed, SqlError> {
    let mut lexer = Lexer::new(text);
    let first = lexer.token()?;
    let keyword =
        |wanted: &str| matches!(&first, Some(Token::Word(word)) if word.eq_ignore_ascii_case(wanted));
    if keyword("insert")
        && let Some(insert) = insert_values::read(text)?
    {
        return Ok(Parsed::Insert(insert));
    }
    if keyword("checkpoint") && lexer.token()?.is_none() {
        return Ok(Parsed::Checkpoint);
    }
    if keyword("fetch") || keyword("move") {
        return Ok(Parsed::Fetch(fetch(&mut lexer, keyword("move"))?));
    }
    let with_all = if keyword("copy") { quote_all(text)? } else { None };
    let text = with_all.as_deref().unwrap_or(text);
    let parsed = moraine_sql::parse_statements(text).map_err(|error| unread(text, &error))?;
    let mut parsed = parsed.into_iter();
    match (parsed.next(), parsed.next()) {
        (Some(statement), None) => Ok(Parsed::Sql(Box::new(statement))),
        _ => Err(SqlError::new(
            state::SYNTAX_ERROR,
            "syntax error: a statement was expected",
        )),
    }
}

/// `FORCE_QUOTE *` of a COPY with the star as a name, which is how the parser can read it.
fn quote_all(text: &str) -> Result<Option<String>, SqlError> {
    let mut lexer = Lexer::new(text);
    let mut before = [String::new(), String::new()];
    while let Some(token) = lexer.token()? {
        let end = lexer.position();
        let is_star = token == Token::Symbol('*');
        let name = match (is_star, before[0].as_str(), before[1].as_str()) {
            (true, _, "force_quote") => "(\"*\")",
            (true, "force", "quote") => "\"*\"",
            _ => {
                let word = match token {
                    Token::Word(word) => word.to_lowercase(),
                    _ => String::new(),
                };
                before.swap(0, 1);
                before[1] = word;
                continue;
            }
        };
        let head = text.get(..end - 1).unwrap_or_default();
        let tail = text.get(end..).unwrap_or_default();
        return Ok(Some(format!("{head}{name}{tail}")));
    }
    Ok(None)
}

/// `FETCH [direction] [FROM | IN] cursor`. Source: PostgreSQL, FETCH.
fn fetch(lexer: &mut Lexer<'_>, moves_only: bool) -> Result<Fetch, SqlError> {
    let mut words = Vec::new();
    let mut cursor = None;
    while let Some(token) = lexer.token()? {
        cursor = match token {
            Token::Word(word) => {
                words.push(word.to_lowercase());
                Some(word.to_lowercase())
            }
            Token::Identifier(name) => {
                words.push(String::new());
                Some(name.into_owned())
            }
            Token::Number(digits) => {
                match words.last_mut() {
                    Some(sign) if sign == "-" => sign.push_str(digits),
                    _ => words.push(digits.to_owned()),
                }
                None
            }
            Token::Symbol(sign @ ('-' | '+')) => {
                words.push(sign.to_string().replace('+', ""));
                None
            }
            _ => None,
        };
    }
    let invalid = || SqlError::new(state::SYNTAX_ERROR, "syntax error in FETCH or MOVE");
    let cursor = cursor.ok_or_else(invalid)?;
    words.pop();
    if words.last().is_some_and(|word| word == "from" || word == "in") {
        words.pop();
    }
    words.retain(|word| !word.is_empty());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<i64>().map_err(|_| invalid());
    let steps = |count: i64| {
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count {
            0 => Direction::Relative(0),
            1.. => Direction::Forward(Some(size)),
            _ => Direction::Backward(Some(size)),
        }
    };
    let direction = match words.as_slice() {
        [] | ["next" | "forward"] => Direction::Forward(Some(1)),
        ["prior" | "backward"] => Direction::Backward(Some(1)),
        ["first"] => Direction::Absolute(1),
        ["last"] => Direction::Absolute(-1),
        ["all"] | ["forward", "all"] => Direction::Forward(None),
        ["backward", "all"] => Direction::Backward(None),
        ["absolute", place] => Direction::Absolute(number(place)?),
        ["relative", distance] => Direction::Relative(number(distance)?),
        [count] | ["forward", count] => steps(number(count)?),
        ["backward", count] => steps(number(count)?.saturating_neg()),
        _ => return Err(invalid()),
    };
    Ok(Fetch {
        cursor,
        direction,
        moves_only,
    })
}

/// The parser's error, and the byte of the statement that it names by line and column.
fn unread(text: &str, error: &sqlparser::parser::ParserError) -> SqlError {
    let reason = reason(error);
    let place = reason.rsplit_once(" at Line: ").and_then(|(_, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        let line: usize = line.trim().parse().ok()?;
        let column: usize = column.trim().parse().ok()?;
        let lines = text.split_inclusive('\n').take(line.checked_sub(1)?);
        let start: usize = lines.map(str::len).sum();
        let rest = text.get(start..)?;
        let within = rest.char_indices().nth(column.checked_sub(1)?);
        Some(start + within.map_or(rest.len(), |(byte, _)| byte))
    });
    let mut error = SqlError::new(state::SYNTAX_ERROR, format!("syntax error: {reason}"));
    error.position = place;
    error
}

/// The parser prefixes its errors with what kind they are; the sentence is what follows.
fn reason(error: &sqlparser::parser::ParserError) -> String {
    use sqlparser::parser::ParserError;
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.clone(),
        ParserError::RecursionLimitExceeded => "the statement is nested too deeply".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_the_scanner_sends_is_read() {
        for text in [
            "COPY (SELECT \"a\", ctid FROM \"public\".\"t\" WHERE \"a\" = 'x' COLLATE \"C\" LIMIT 1) TO STDOUT (FORMAT \"binary\");",
            "COPY \"t\" FROM STDIN (FORMAT TEXT, NULL '\u{8}')",
            "COPY \"public\".\"t\" (\"key\", \"value\") FROM STDIN (FORMAT BINARY)",
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
            "DISCARD ALL",
            "CHECKPOINT",
            "CREATE LOCAL TEMPORARY TABLE \"u\"(\"value\" VARCHAR, __page_id_string VARCHAR) ON COMMIT DROP;",
            "UPDATE \"public\".\"t\" SET \"value\" = \"u\".\"value\" FROM \"u\" WHERE \"t\".ctid=__page_id_string::TID",
            "WITH v(tid, cid) AS (VALUES (1, NULL)) UPDATE t SET a = CAST(x AS BOOLEAN) FROM v WHERE tid = a",
            "DROP Table IF EXISTS \"public\".\"t\"",
            "DELETE FROM t WHERE ctid IN ('(0,1)','(0,2)')",
            "SELECT pg_is_in_recovery(), pg_export_snapshot(), (select count(*) from pg_stat_wal_receiver)",
        ] {
            assert_eq!(statements(text).map(|found| found.len()), Ok(1), "{text}");
        }
    }

    #[test]
    fn one_bad_statement_spoils_the_message() {
        assert_eq!(statements("SELECT 1; SELEC 2").unwrap_err().state, "42601");
        assert!(statements(" ; ").unwrap().is_empty());
    }
}
