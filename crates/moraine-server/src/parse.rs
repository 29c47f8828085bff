//! A message into statements: long inserts by their own reader, everything else by `sqlparser`. All of a message is read
//! before any of it runs, as Postgres does, so a syntax error leaves nothing half done.

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use crate::errors::{SqlError, state};
use crate::insert_values::{self, InsertValues};
use crate::lexer::{Lexer, Token, split_statements};

/// One statement, read but not bound.
#[derive(Debug, Clone)]
pub(crate) enum Parsed {
    /// Rows of literals.
    Insert(InsertValues),
    /// `CHECKPOINT`, which the parser does not know.
    Checkpoint,
    /// Anything else.
    Sql(Box<Statement>),
}

/// The statements of a message; 42601 when one of them is not SQL.
pub(crate) fn statements(text: &str) -> Result<Vec<Parsed>, SqlError> {
    split_statements(text)?.into_iter().map(statement).collect()
}

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
    let parsed = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| SqlError::new(state::SYNTAX_ERROR, format!("syntax error: {}", reason(&error))))?;
    let mut parsed = parsed.into_iter();
    match (parsed.next(), parsed.next()) {
        (Some(statement), None) => Ok(Parsed::Sql(Box::new(statement))),
        _ => Err(SqlError::new(
            state::SYNTAX_ERROR,
            "syntax error: a statement was expected",
        )),
    }
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
