//! `INSERT INTO t [(columns)] VALUES (…), (…)` read from its tokens: one commit may carry a hundred thousand rows of
//! literals, which a general parser turns into ten times their size. Whatever this reader does not know is not an
//! error: it gives up, and the statement goes to the parser.

use crate::errors::SqlError;
use crate::lexer::{Lexer, Token};
use crate::values::literal::Literal;
use moraine_tables::ColumnType;

/// An insert of literal rows, before any name is resolved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InsertValues {
    /// The schema, when the name has one.
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
    /// The columns named, in the order of the values; empty for all.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Literal>>,
}

/// Reads the statement, or `None` when it holds anything but literals in plain rows.
pub(crate) fn read(statement: &str) -> Result<Option<InsertValues>, SqlError> {
    let mut reader = Reader {
        lexer: Lexer::new(statement),
        next: None,
    };
    reader.advance()?;
    if !reader.word("insert")? || !reader.word("into")? {
        return Ok(None);
    }
    let Some(first) = reader.name()? else {
        return Ok(None);
    };
    let (schema, table) = if reader.symbol('.')? {
        let Some(table) = reader.name()? else {
            return Ok(None);
        };
        (Some(first), table)
    } else {
        (None, first)
    };
    let Some(columns) = reader.columns()? else {
        return Ok(None);
    };
    if !reader.word("values")? {
        return Ok(None);
    }
    let mut rows = Vec::new();
    loop {
        let Some(row) = reader.row(columns.len().max(4))? else {
            return Ok(None);
        };
        rows.push(row);
        if !reader.symbol(',')? {
            break;
        }
    }
    // Anything after the last row (RETURNING, ON CONFLICT) is for the parser.
    Ok(reader.next.is_none().then_some(InsertValues {
        schema,
        table,
        columns,
        rows,
    }))
}

struct Reader<'a> {
    lexer: Lexer<'a>,
    next: Option<Token<'a>>,
}

impl Reader<'_> {
    fn advance(&mut self) -> Result<(), SqlError> {
        self.next = self.lexer.token()?;
        Ok(())
    }

    /// Takes the next token if it is this keyword.
    fn word(&mut self, keyword: &str) -> Result<bool, SqlError> {
        let found = matches!(&self.next, Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn symbol(&mut self, wanted: char) -> Result<bool, SqlError> {
        let found = self.next == Some(Token::Symbol(wanted));
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// An identifier: quoted as written, unquoted folded to lower case.
    fn name(&mut self) -> Result<Option<String>, SqlError> {
        let name = match &self.next {
            Some(Token::Word(word)) => word.to_lowercase(),
            Some(Token::Identifier(name)) => name.clone().into_owned(),
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(name))
    }

    fn columns(&mut self) -> Result<Option<Vec<String>>, SqlError> {
        let mut columns = Vec::new();
        if !self.symbol('(')? {
            return Ok(Some(columns));
        }
        loop {
            let Some(column) = self.name()? else {
                return Ok(None);
            };
            columns.push(column);
            if self.symbol(')')? {
                return Ok(Some(columns));
            }
            if !self.symbol(',')? {
                return Ok(None);
            }
        }
    }

    fn row(&mut self, capacity: usize) -> Result<Option<Vec<Literal>>, SqlError> {
        if !self.symbol('(')? {
            return Ok(None);
        }
        let mut row = Vec::with_capacity(capacity);
        loop {
            let Some(literal) = self.literal()? else {
                return Ok(None);
            };
            row.push(literal);
            if self.symbol(')')? {
                return Ok(Some(row));
            }
            if !self.symbol(',')? {
                return Ok(None);
            }
        }
    }

    fn literal(&mut self) -> Result<Option<Literal>, SqlError> {
        let negative = self.symbol('-')?;
        let literal = match self.next.take() {
            Some(Token::Quoted(text)) if !negative => Literal::Quoted(text.into_owned()),
            Some(Token::Number(digits)) if negative => Literal::Number(format!("-{digits}")),
            Some(Token::Number(digits)) => Literal::Number(digits.to_owned()),
            Some(Token::Word(word)) if !negative => {
                self.advance()?;
                return self.keyword(word);
            }
            _ => return Ok(None),
        };
        self.advance()?;
        if self.symbol(':')? {
            if !self.symbol(':')? {
                return Ok(None);
            }
            // A minus binds looser than `::`; leave that to the parser.
            if negative {
                return Ok(None);
            }
            return Ok(self
                .column_type()?
                .map(|column_type| Literal::Cast(Box::new(literal), column_type)));
        }
        Ok(Some(literal))
    }

    fn keyword(&mut self, word: &str) -> Result<Option<Literal>, SqlError> {
        if word.eq_ignore_ascii_case("null") {
            return Ok(Some(Literal::Null));
        }
        if word.eq_ignore_ascii_case("true") {
            return Ok(Some(Literal::Bool(true)));
        }
        if word.eq_ignore_ascii_case("false") {
            return Ok(Some(Literal::Bool(false)));
        }
        if word.eq_ignore_ascii_case("now") {
            return Ok((self.symbol('(')? && self.symbol(')')?).then_some(Literal::Now));
        }
        if !word.eq_ignore_ascii_case("cast") || !self.symbol('(')? {
            return Ok(None);
        }
        let Some(inner) = self.literal()? else {
            return Ok(None);
        };
        if !self.word("as")? {
            return Ok(None);
        }
        let Some(column_type) = self.column_type()? else {
            return Ok(None);
        };
        Ok(self
            .symbol(')')?
            .then(|| Literal::Cast(Box::new(inner), column_type)))
    }

    /// The types DuckLake casts literals to; the others are for the parser.
    fn column_type(&mut self) -> Result<Option<ColumnType>, SqlError> {
        let Some(Token::Word(word)) = &self.next else {
            return Ok(None);
        };
        let column_type = match word.to_ascii_lowercase().as_str() {
            "varchar" | "text" => ColumnType::Text,
            "bigint" | "int8" => ColumnType::Int64,
            "integer" | "int" | "int4" => ColumnType::Int32,
            "smallint" | "int2" => ColumnType::Int16,
            "boolean" | "bool" => ColumnType::Bool,
            "real" | "float4" => ColumnType::Float32,
            "float8" => ColumnType::Float64,
            "double" => {
                self.advance()?;
                return Ok(self.word("precision")?.then_some(ColumnType::Float64));
            }
            "bytea" => ColumnType::Bytes,
            "uuid" => ColumnType::Uuid,
            "date" => ColumnType::Date,
            _ => return Ok(None),
        };
        self.advance()?;
        // `varchar(10)` and arrays are for the parser.
        Ok(
            (self.next != Some(Token::Symbol('(')) && self.next != Some(Token::Symbol('[')))
                .then_some(column_type),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_literals_are_read() {
        let text = "INSERT INTO \"public\".ducklake_x VALUES (1, -2.50, NULL, true, 'it''s', '\\x00', NOW()), \
                    (0, 1e5, 'x'::varchar, false, CAST('nan' AS DOUBLE PRECISION), CAST(NULL AS VARCHAR), now())";
        let insert = read(text).unwrap().unwrap();
        assert_eq!(
            (insert.schema.as_deref(), insert.table.as_str()),
            (Some("public"), "ducklake_x")
        );
        assert_eq!(insert.rows.len(), 2);
        assert_eq!(
            insert.rows[0],
            [
                Literal::Number("1".into()),
                Literal::Number("-2.50".into()),
                Literal::Null,
                Literal::Bool(true),
                Literal::Quoted("it's".into()),
                Literal::Quoted("\\x00".into()),
                Literal::Now
            ]
        );
        let nan = Literal::Cast(Box::new(Literal::Quoted("nan".into())), ColumnType::Float64);
        assert_eq!(insert.rows[1][4], nan);
    }

    #[test]
    fn anything_else_is_left_to_the_parser() {
        for text in [
            "INSERT INTO t SELECT 1",
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (lower('x'))",
            "INSERT INTO t VALUES (1) RETURNING a",
            "INSERT INTO t VALUES (E'x')",
            "INSERT INTO t VALUES (-1::bigint)",
            "INSERT INTO t VALUES (1),",
            "INSERT INTO a.b.c VALUES (1)",
            "UPDATE t SET a = 1",
        ] {
            assert_eq!(read(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn columns_may_be_named() {
        let insert = read("insert into T (\"A\", b) values ('x', 'y')")
            .unwrap()
            .unwrap();
        assert_eq!((insert.schema, insert.table.as_str()), (None, "t"));
        assert_eq!(insert.columns, ["A", "b"]);
    }
}
