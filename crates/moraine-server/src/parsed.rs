//! Messages that come again and again, kept as they were parsed: a DuckLake client opens each of its transactions with the
//! same texts, and to parse them takes as long as to answer them. Texts that bring rows or differ each time are parsed
//! anew; what a text means is decided when it is bound, and nothing of that is kept.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use crate::errors::SqlError;
use crate::parse::{self, Parsed};

/// Texts kept. What one client sends again and again is a tenth of that.
const TEXTS_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Longer texts are not kept.
const TEXT_BYTES_MAX: usize = 1024;

/// The statements of one text.
type Statements = Arc<[Arc<Parsed>]>;

/// The texts that all sessions of a server sent last.
#[derive(Debug)]
pub(crate) struct ParsedTexts {
    texts: Mutex<LruCache<Box<str>, Statements>>,
}

impl Default for ParsedTexts {
    fn default() -> Self {
        ParsedTexts {
            texts: Mutex::new(LruCache::new(TEXTS_MAX)),
        }
    }
}

impl ParsedTexts {
    /// The statements of a message; 42601 when one of them is not SQL.
    pub(crate) fn statements(&self, text: &str) -> Result<VecDeque<Arc<Parsed>>, SqlError> {
        if let Some(known) = self.known(text) {
            return Ok(known.iter().cloned().collect());
        }
        let parsed: Statements = parse::statements(text)?.into_iter().map(Arc::new).collect();
        let brings_rows = parsed.iter().any(|parsed| matches!(**parsed, Parsed::Insert(_)));
        if !brings_rows && text.len() <= TEXT_BYTES_MAX {
            let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
            texts.put(text.into(), Arc::clone(&parsed));
        }
        Ok(parsed.iter().cloned().collect())
    }

    fn known(&self, text: &str) -> Option<Statements> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get(text).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &VecDeque<Arc<Parsed>>, other: &VecDeque<Arc<Parsed>>) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    #[test]
    fn a_text_is_parsed_once_while_it_comes_again() {
        let texts = ParsedTexts::default();
        let first = texts.statements("BEGIN; SELECT 1").unwrap();
        assert_eq!(first.len(), 2);
        for number in 0..TEXTS_MAX.get() * 2 {
            texts.statements(&format!("SELECT {number}")).unwrap();
            assert!(same(&first, &texts.statements("BEGIN; SELECT 1").unwrap()));
        }
        let forgotten = texts.statements("SELECT 0").unwrap();
        assert!(same(&forgotten, &texts.statements("SELECT 0").unwrap()));
        assert!(
            !same(&first, &texts.statements("BEGIN; SELECT  1").unwrap()),
            "another text"
        );
    }

    #[test]
    fn rows_and_long_texts_and_errors_are_not_kept() {
        let texts = ParsedTexts::default();
        let long = format!("SELECT '{}'", "x".repeat(TEXT_BYTES_MAX));
        for text in ["INSERT INTO t VALUES (1)", &long] {
            let first = texts.statements(text).unwrap();
            assert!(!same(&first, &texts.statements(text).unwrap()), "{text}");
        }
        for _ in 0..2 {
            assert_eq!(texts.statements("SELEC 1").unwrap_err().state, "42601");
        }
        assert!(texts.statements(" ; ").unwrap().is_empty());
    }
}
