//! Names of columns within SQL expressions of a sort order. Only as much of SQL as it takes to tell a column's name from
//! a string, a comment, a function and a field.

use crate::lake::entities::same_name;

/// A piece of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// A name, quoted or not, as it stands.
    Name(&'a str),
    /// Anything else, as it stands.
    Other(&'a str),
}

/// Whether an expression mentions a column by its own name.
pub(crate) fn mentions(expression: &str, column: &str) -> bool {
    let pieces = pieces(expression);
    (0..pieces.len()).any(|at| is_column(&pieces, at, column))
}

/// The expression with a column by its new name.
pub(crate) fn renamed(expression: &str, column: &str, name: &str) -> String {
    let pieces = pieces(expression);
    let new = as_written(name);
    let mut renamed = String::with_capacity(expression.len());
    for (at, piece) in pieces.iter().enumerate() {
        let (Piece::Name(text) | Piece::Other(text)) = piece;
        renamed.push_str(if is_column(&pieces, at, column) {
            &new
        } else {
            text
        });
    }
    renamed
}

/// Whether the piece is a name that stands for the column: not one of a function, nor a field of something else.
fn is_column(pieces: &[Piece<'_>], at: usize, column: &str) -> bool {
    let Some(Piece::Name(text)) = pieces.get(at) else {
        return false;
    };
    if !same_name(&unquoted(text), column) {
        return false;
    }
    let solid = |piece: &&Piece<'_>| !matches!(piece, Piece::Other(text) if text.trim().is_empty());
    let before = pieces.get(..at).unwrap_or_default().iter().rev().find(solid);
    let after = pieces.get(at + 1..).unwrap_or_default().iter().find(solid);
    let is_field = matches!(before, Some(Piece::Other(text)) if text.ends_with('.'));
    let is_function = matches!(after, Some(Piece::Other(text)) if text.starts_with('('));
    !is_field && !is_function
}

fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

/// A name as DuckDB writes it: bare where that is the same name.
fn as_written(name: &str) -> String {
    let mut letters = name.chars();
    let starts_well = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_lowercase() || letter == '_');
    let goes_on_well =
        letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if starts_well && goes_on_well {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn pieces(expression: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let (length, is_name) = match first {
            '"' => (quoted_len(rest, '"'), true),
            '\'' => (quoted_len(rest, '\''), false),
            letter if letter.is_alphabetic() || letter == '_' => (run_len(rest, is_name_letter), true),
            digit if digit.is_ascii_digit() => (run_len(rest, is_name_letter), false),
            space if space.is_whitespace() => (run_len(rest, char::is_whitespace), false),
            other => (other.len_utf8(), false),
        };
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        pieces.push(if is_name {
            Piece::Name(piece)
        } else {
            Piece::Other(piece)
        });
        rest = after;
    }
    pieces
}

fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

fn run_len(text: &str, belongs: fn(char) -> bool) -> usize {
    text.find(|letter: char| !belongs(letter)).unwrap_or(text.len())
}

/// The length of what stands in quotes at the start of `text`, the quotes included; doubled ones are inner ones.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            continue;
        }
        match letters.peek() {
            Some((_, next)) if *next == quote => {
                letters.next();
            }
            _ => return at + quote.len_utf8(),
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{mentions, renamed};

    #[test]
    fn a_column_is_told_from_strings_functions_and_fields() {
        assert!(mentions("lower(A)", "a"));
        assert!(mentions("\"a b\" + 1", "a b"));
        assert!(!mentions("'a'", "a"));
        assert!(!mentions("a(b)", "a"));
        assert!(!mentions("b.a", "a"));
        assert!(!mentions("ab", "a"));
    }

    #[test]
    fn a_renamed_column_is_quoted_where_it_must_be() {
        assert_eq!(renamed("lower(a) || 'a'", "A", "b"), "lower(b) || 'a'");
        assert_eq!(renamed("a", "a", "B c"), "\"B c\"");
        assert_eq!(renamed("\"a\"\"b\"", "a\"b", "c"), "c");
    }
}
