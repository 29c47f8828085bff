//! Text into statements: by `sqlparser`, once the few constructs of Postgres that it does not read have been given a form
//! that it reads.

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

/// What the lower bound of `BETWEEN SYMMETRIC` is given to. No query can write it.
pub(crate) const SYMMETRIC: &str = "\u{1}symmetric";

/// The statements of a text.
///
/// # Errors
/// What `sqlparser` says of text that is none.
pub fn parse_statements(text: &str) -> Result<Vec<Statement>, ParserError> {
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location()?;
    Parser::new(&dialect)
        .with_tokens_with_locations(in_known_form(tokens))
        .parse_statements()
}

/// Tokens that the parser can read. Nearly all are left as they are.
fn in_known_form(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const WANTED: [&str; 3] = ["table", "symmetric", "asymmetric"];
    if !tokens.iter().any(|token| is_any_word(Some(token), &WANTED)) {
        return tokens;
    }
    let mut plain = tokens.clone();
    plain.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let has_bounds = plain
        .windows(2)
        .any(|pair| is_word(pair.first(), "between") && is_any_word(pair.get(1), &WANTED));
    let has_tables = (0..plain.len()).any(|at| is_table_command(&plain, at));
    if !has_bounds && !has_tables {
        return tokens;
    }
    if has_bounds {
        plain = without_symmetric(plain);
    }
    without_table_command(&plain)
}

fn is_word(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn is_any_word(token: Option<&TokenWithSpan>, wanted: &[&str]) -> bool {
    wanted.iter().any(|wanted| is_word(token, wanted))
}

/// Whether a query that is all rows of a table begins at a token.
fn is_table_command(tokens: &[TokenWithSpan], at: usize) -> bool {
    if !is_word(tokens.get(at), "table") {
        return false;
    }
    let before = |steps: usize| at.checked_sub(steps).and_then(|at| tokens.get(at));
    let begins = match before(1).map(|token| &token.token) {
        None | Some(Token::SemiColon | Token::LParen | Token::RParen) => true,
        Some(Token::Word(_)) if is_any_word(before(1), &["all", "distinct"]) => {
            is_any_word(before(2), &["union", "except", "intersect"])
        }
        Some(Token::Word(_)) => is_any_word(before(1), &["union", "except", "intersect"]),
        _ => false,
    };
    let names = matches!(tokens.get(at + 1).map(|token| &token.token), Some(Token::Word(_)));
    begins && names
}

/// `TABLE t` as `SELECT * FROM t`.
fn without_table_command(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len() + 2);
    for at in 0..tokens.len() {
        let Some(token) = tokens.get(at) else { break };
        if is_table_command(tokens, at) {
            let word = |text: &str, keyword: Keyword| {
                Token::Word(Word {
                    value: text.to_owned(),
                    quote_style: None,
                    keyword,
                })
            };
            for part in [
                word("SELECT", Keyword::SELECT),
                Token::Mul,
                word("FROM", Keyword::FROM),
            ] {
                out.push(TokenWithSpan::new(part, token.span));
            }
            continue;
        }
        out.push(token.clone());
    }
    out
}

/// `BETWEEN SYMMETRIC low AND high` with its lower bound in a call; `ASYMMETRIC` means nothing.
fn without_symmetric(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 3);
    // What is open: parentheses, CASE, and the lower bounds.
    let mut open: Vec<Open> = Vec::new();
    for token in tokens {
        let after_between = is_word(out.last(), "between");
        if after_between && is_word(Some(&token), "asymmetric") {
            continue;
        }
        if after_between && is_word(Some(&token), "symmetric") {
            let name = Token::Word(Word {
                value: SYMMETRIC.to_owned(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
            out.push(TokenWithSpan::new(name, token.span));
            out.push(TokenWithSpan::new(Token::LParen, token.span));
            open.push(Open::Bound);
            continue;
        }
        match (&token.token, open.last()) {
            (Token::LParen | Token::LBracket, _) => open.push(Open::Bracket),
            (Token::RParen | Token::RBracket, Some(Open::Bracket)) => {
                open.pop();
            }
            _ if is_word(Some(&token), "case") => open.push(Open::Case),
            (_, Some(Open::Case)) if is_word(Some(&token), "end") => {
                open.pop();
            }
            (_, Some(Open::Bound)) if is_word(Some(&token), "and") => {
                open.pop();
                out.push(TokenWithSpan::new(Token::RParen, token.span));
            }
            _ => {}
        }
        out.push(token);
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Bracket,
    Case,
    Bound,
}
